"""Sign-ins whose secrets are in the system's keyring: a backend of the `keyring` package that tests can lock."""

from __future__ import annotations

import json
import os
from pathlib import Path
from typing import Any

import pytest

from support.machine import DATA_HOME, Machine
from support.proxies import Proxies
from support.sign_ins import AuthorizationServer, login
from uno_devserver.proxy.upstream.access_tokens import SignIn, TokenCredentials, record_path, write_sign_in
from uno_devserver.proxy.upstream.keyring_secrets import KeyringProblem, fetch, store

BACKEND = """
import json, os, pathlib, time
from keyring.backend import KeyringBackend
from keyring.errors import KeyringLocked, PasswordDeleteError

HERE = pathlib.Path(__file__).parent

class Backend(KeyringBackend):
    priority = 5

    def _entries(self):
        if (HERE / "locked").exists():
            raise KeyringLocked("locked")
        while (HERE / "waiting").exists():
            time.sleep(0.01)
        return json.loads((HERE / "entries").read_text())

    def get_password(self, service, username):
        return self._entries().get(service + " " + username)

    def set_password(self, service, username, password):
        if (HERE / "full").exists():
            raise KeyringLocked("full")
        (HERE / "entries").write_text(json.dumps({**self._entries(), service + " " + username: password}))

    def delete_password(self, service, username):
        entries = self._entries()
        if entries.pop(service + " " + username, None) is None:
            raise PasswordDeleteError("not there")
        (HERE / "entries").write_text(json.dumps(entries))
"""
SECRETS = ("access_token", "refresh_token", "client_secret")


class Keyring:
    def __init__(self, folder: Path) -> None:
        self.folder = folder
        folder.mkdir()
        (folder / "test_backend.py").write_text(BACKEND, "utf-8")
        (folder / "entries").write_text("{}", "utf-8")
        self.environment = {"PYTHONPATH": str(folder), "PYTHON_KEYRING_BACKEND": "test_backend.Backend"}

    @property
    def entries(self) -> dict[str, Any]:
        found: dict[str, Any] = json.loads((self.folder / "entries").read_text("utf-8"))
        return {name: json.loads(text) for name, text in found.items()}

    def empty(self) -> None:
        (self.folder / "entries").write_text("{}", "utf-8")


@pytest.fixture
def keyring(machine: Machine, monkeypatch: pytest.MonkeyPatch) -> Keyring:
    keyring = Keyring(machine.root / "keyring")
    monkeypatch.setenv(DATA_HOME, str(machine.data))
    for name, value in keyring.environment.items():
        monkeypatch.setenv(name, value)
        machine.environment[name] = value
    return keyring


async def test_the_secrets_are_in_the_keyring_and_not_in_the_file(keyring: Keyring, machine: Machine, url: str) -> None:
    result = login(machine, url, "--keyring")
    credentials = TokenCredentials(url, {"X-Own": "1"})

    at_first = credentials.headers()
    found = await credentials.renew(at_first)
    after = credentials.headers()
    renewed = await credentials.renew(after)

    (entry,) = keyring.entries.values()
    text = Path(result["file"]).read_text("utf-8")
    kept = [value for part in entry.values() for name, value in part.items() if name in SECRETS]
    assert result["keyring"] is True
    assert at_first == {"X-Own": "1"}
    assert found
    assert renewed
    assert (
        after != credentials.headers() == {"X-Own": "1", "Authorization": f"Bearer {entry['tokens']['access_token']}"}
    )
    assert len(kept) == len(SECRETS)
    assert not any(secret in text for secret in kept)


def test_a_proxy_uses_the_keyring_and_a_sign_out_empties_it(keyring: Keyring, machine: Machine, url: str) -> None:
    login(machine, url, "--keyring")
    again = login(machine, url)

    with Proxies(machine) as proxies:
        client = proxies.connected("--upstream-url", url)
        answer = client.call("greet", name="you")
    listed = machine.run("login", "--list", "--json").json["signIns"]
    out = machine.run("logout", url)

    assert again["keyring"] is True
    assert answer == "Hello, you!"
    assert [one["valid"] for one in listed] == [True]
    assert out.exit_code == 0
    assert keyring.entries == {}


async def test_a_keyring_that_was_locked_is_asked_again_for_the_next_call(
    keyring: Keyring, machine: Machine, url: str, capsys: pytest.CaptureFixture[str]
) -> None:
    login(machine, url, "--keyring")
    lock = keyring.folder / "locked"
    lock.touch()
    credentials = TokenCredentials(url, {})

    while_locked = await credentials.renew({})
    lock.unlink()
    unlocked = await credentials.renew({})

    assert (while_locked, unlocked) == (False, True)
    assert "The keyring refuses: KeyringLocked." in capsys.readouterr().err


def test_a_sign_out_with_a_locked_keyring_can_be_repeated(keyring: Keyring, machine: Machine, url: str) -> None:
    login(machine, url, "--keyring")
    lock = keyring.folder / "locked"
    lock.touch()

    refused = machine.run("logout", url)
    lock.unlink()
    done = machine.run("logout", url)

    assert refused.exit_code == 1
    assert done.stdout.startswith(f"You are signed out of {url}.")
    assert keyring.entries == {}


async def test_a_refresh_token_is_not_sent_while_the_keyring_cannot_store_its_successor(
    keyring: Keyring, machine: Machine, url: str, authorization: AuthorizationServer
) -> None:
    login(machine, url, "--keyring")
    credentials = TokenCredentials(url, {})
    await credentials.renew({})
    asked = authorization.token_requests()
    full = keyring.folder / "full"
    full.touch()

    failed = await credentials.renew(credentials.headers())
    sent = authorization.token_requests() - asked
    full.unlink()

    assert not failed
    assert sent == 0
    assert await credentials.renew(credentials.headers())


def test_a_server_is_signed_in_to_again_after_its_entry_was_removed(
    keyring: Keyring, machine: Machine, url: str
) -> None:
    login(machine, url, "--keyring")
    keyring.empty()

    again = login(machine, url)

    assert again["valid"] is True
    assert len(keyring.entries) == 1


def test_a_client_whose_secret_was_removed_is_named_with_the_ways_on(keyring: Keyring, machine: Machine) -> None:
    url = "https://mcp.example.com/mcp"
    client = {"client_id": "by-hand", "client_secret": "kept"}
    write_sign_in(SignIn(url, "https://mcp.example.com", client, False, {}, None, None, None, keyring=True))
    keyring.empty()

    error = machine.run("login", "--json", url).json["error"]

    assert error["message"] == "The keyring has no tokens for this server."
    assert error["nextStep"].startswith("Set UNO_DEVSERVER_CLIENT_SECRET to the secret of by-hand")
    assert f"uno-devserver logout {url}" in error["nextStep"]


def test_a_keyring_that_waits_for_a_password_is_given_up(keyring: Keyring) -> None:
    store("https://mcp.example.com/mcp", {"tokens": {}})
    (keyring.folder / "waiting").touch()

    with pytest.raises(KeyringProblem, match=r"did not answer within 0.5 s\. Unlock it"):
        fetch("https://mcp.example.com/mcp", 0.5)


@pytest.mark.parametrize(
    ("backend", "told"),
    [("keyring.backends.fail.Keyring", "no keyring"), ("no_such_module.Backend", "cannot be asked")],
)
def test_a_system_without_a_keyring_is_told_before_the_user_signs_in(
    keyring: Keyring, machine: Machine, url: str, backend: str, told: str
) -> None:
    machine.environment["PYTHON_KEYRING_BACKEND"] = backend

    error = machine.run("login", "--keyring", "--json", url).json["error"]

    assert told in error["message"]
    assert not os.path.exists(record_path(url))


def test_without_the_extra_the_error_says_what_to_install(keyring: Keyring, machine: Machine, url: str) -> None:
    (keyring.folder / "keyring.py").write_text("raise ImportError", "utf-8")

    error = machine.run("login", "--keyring", "--json", url).json["error"]

    assert "pip install '<folder of the clone>[keyring]'" in error["message"]
