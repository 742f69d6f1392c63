"""What clients say about the servers: their own words, as recorded, from programs that print them."""

from __future__ import annotations

import json
import os
import signal
import sys
import time
from pathlib import Path

import pytest

from support.hosts import is_running
from support.machine import Machine
from support.waiting import wait_for
from uno_devserver.setup import client_cli
from uno_devserver.setup.client_cli import ClientAnswer, ask, ask_all
from uno_devserver.setup.profiles import ClientCli, Dialect, Format, Place, Profile, Scope, Use
from uno_devserver.setup.server_definition import Detection, EntrySpec, ServerDefinition

APP = ServerDefinition(
    "UnoApp", "stdio", {"stable": EntrySpec("uno-devserver")}, Detection(("^UnoApp$",), ("uno-devserver",))
)
DOCS = ServerDefinition("UnoDocs", "http", {"stable": EntrySpec(url="https://x/v1")}, Detection(("^UnoDocs$",)))
SERVERS = (APP, DOCS)

CLAUDE = """Checking MCP server health…

UnoApp: /venv/bin/uno-devserver --mcp-app - ✔ Connected
UnoDocs: http://127.0.0.1:9/v1 (HTTP) - ⏸ Pending approval (run `claude` to approve)
"""
GEMINI = """Warning: MCP servers are configured but disabled because this folder is untrusted.
User-level servers are also suppressed in untrusted folders to prevent accidental side-effects.

Configured MCP servers:

○ UnoApp: /venv/bin/uno-devserver --mcp-app (stdio) - Disabled
"""
OPENCODE = """┌  MCP Servers
│
●  ✓ UnoApp \x1b[90mconnected
│      \x1b[90m/venv/bin/uno-devserver --mcp-app
│
●  ✗ UnoDocs \x1b[90mfailed
│      SSE error: Unable to connect. Is the computer able to access the url?
│      \x1b[90mhttp://127.0.0.1:9/v1
│
└  2 server(s)
"""
CODEX = """WARNING: proceeding, even though we could not create PATH aliases
[
  {"name": "UnoApp", "enabled": true, "disabled_reason": null,
   "transport": {"type": "stdio", "command": "uno-devserver", "args": []}, "auth_status": "unsupported"},
  {"name": "other", "enabled": false, "transport": {"type": "stdio", "command": "UnoDocs"}}
]
"""
COPILOT = json.dumps({"mcpServers": {"UnoDocs": {"type": "http", "source": "workspace", "enabled": True}}}, indent=2)


@pytest.fixture
def programs(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> Path:
    """A folder that is all of PATH."""
    folder = tmp_path / "bin"
    folder.mkdir()
    monkeypatch.setenv("PATH", str(folder))
    return folder


def client(programs: Path, script: str, name: str = "client", place: Place | None = None) -> Profile:
    """One whose program runs the script."""
    program = programs / name
    program.write_text(f"#!{sys.executable}\nimport os, sys, time\n{script}\n")
    program.chmod(0o755)
    places = (place,) if place else ()
    return Profile(
        name, "Client", places, Scope.USER, cli=ClientCli(name, ("mcp", "list"), {"EXTRA": "1"}), project=str(programs)
    )


def answer(programs: Path, printed: str) -> ClientAnswer:
    return ask(client(programs, f"print({printed!r})"), SERVERS)


@pytest.mark.parametrize(
    ("printed", "sees", "said"),
    [
        # a line that names a server, with the client's words for its state
        (
            CLAUDE,
            (True, True),
            (
                "UnoApp: /venv/bin/uno-devserver --mcp-app - ✔ Connected",
                "UnoDocs: http://127.0.0.1:9/v1 (HTTP) - ⏸ Pending approval (run `claude` to approve)",
            ),
        ),
        # why a client does not use its servers
        (
            GEMINI,
            (True, False),
            (
                "Warning: MCP servers are configured but disabled because this folder is untrusted.",
                "User-level servers are also suppressed in untrusted folders to prevent accidental side-effects.",
                "○ UnoApp: /venv/bin/uno-devserver --mcp-app (stdio) - Disabled",
            ),
        ),
        (OPENCODE, (True, True), ("●  ✓ UnoApp connected", "●  ✗ UnoDocs failed")),  # colours are no words
        (CODEX, (True, False), ("UnoApp: enabled true",)),  # JSON, whatever stands before it
        (COPILOT, (False, True), ("UnoDocs: enabled true",)),  # names as keys of an object
        # where it names no server, the beginning; and of many lines about one, the first
        ("No MCP servers configured.\n" * 20, (False, False), ("No MCP servers configured.",) * client_cli.MAX_LINES),
        ("UnoApp: retrying\n" * 20, (True, False), ("UnoApp: retrying",) * client_cli.MAX_LINES),
    ],
)
def test_what_a_client_prints_tells_what_it_sees(
    programs: Path, printed: str, sees: tuple[bool, bool], said: tuple[str, ...]
) -> None:
    found = answer(programs, printed)

    assert found.command == "client mcp list"
    assert found.sees == dict(zip(("UnoApp", "UnoDocs"), sees, strict=True))
    assert found.said == said


@pytest.mark.parametrize("line", ["UnoApp2: x", "My-UnoApp: x", "other: /src/UnoApp/run", "x: npx @uno/UnoApp"])
def test_a_name_inside_another_word_is_not_the_server(programs: Path, line: str) -> None:
    assert answer(programs, line).sees["UnoApp"] is False


def test_a_list_that_is_nested_without_end_is_read_as_far_as_lists_go(programs: Path) -> None:
    deep = '{"a":' * 900 + "{}" + "}" * 900

    assert answer(programs, deep).sees == {"UnoApp": False, "UnoDocs": False}


def test_an_entry_under_another_name_is_looked_for_by_that(programs: Path, tmp_path: Path) -> None:
    config = tmp_path / "mcp.json"
    config.write_text(json.dumps({"mcpServers": {"mine": {"command": "uno-devserver"}}}))
    place = Place(str(config), Scope.USER, Use.WRITE, Format.JSON, ("mcpServers",), Dialect())
    profile = client(programs, "print('mine: connected')", place=place)

    assert ask(profile, SERVERS).sees == {"UnoApp": True, "UnoDocs": False}
    assert ask(profile.replace(places=()), SERVERS).sees["UnoApp"] is False


def test_names_of_entries_that_the_client_does_not_read_or_that_may_be_others_are_not_looked_for(
    programs: Path, tmp_path: Path
) -> None:
    config = tmp_path / "mcp.json"
    config.write_text(
        json.dumps({"mcpServers": {"mine": {"command": "uno-devserver"}, "web": {"url": "http://x/mcp"}}})
    )
    place = Place(str(config), Scope.USER, Use.LEGACY, Format.JSON, ("mcpServers",), Dialect())
    docs = DOCS.replace(detection=Detection(("^UnoDocs$",), weak_urls=("/mcp$",)))

    unread = ask(client(programs, "print('mine: connected')", place=place), (APP,))
    unsure = ask(client(programs, "print('web: ok')", place=place.replace(use=Use.WRITE)), (docs,))

    assert (unread.sees, unsure.sees) == ({"UnoApp": False}, {"UnoDocs": False})


def test_it_runs_in_the_workspace_with_the_users_environment_and_its_own(
    programs: Path, tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setenv("MINE", "2")
    profile = client(programs, "print('UnoApp', os.getcwd(), os.environ['EXTRA'], os.environ['MINE'], *sys.argv[1:])")

    assert ask(profile.replace(project=str(tmp_path)), SERVERS).said == (f"UnoApp {tmp_path} 1 2 mcp list",)


def test_a_client_that_is_not_installed_says_so(programs: Path) -> None:
    profile = client(programs, "")
    os.remove(programs / "client")

    assert ask(profile, SERVERS).problem == "'client' is not on PATH"


def test_a_client_without_a_list_command_is_not_asked(programs: Path) -> None:
    profile = client(programs, "").replace(cli=None)

    assert ask(profile, SERVERS).problem == "Client has no command that lists its servers"
    assert ask_all([profile], SERVERS) == ()


def test_a_client_that_fails_is_quoted(programs: Path) -> None:
    said = ask(client(programs, "sys.exit('Error: Configuration is invalid')"), SERVERS)

    assert said.problem == "'client mcp list' ended with exit code 1"
    assert said.said == ("Error: Configuration is invalid",)
    assert said.sees == {}


def test_a_client_that_names_a_server_has_answered_even_if_it_fails(programs: Path) -> None:
    said = ask(client(programs, "print('UnoApp: failed'); sys.exit(1)"), SERVERS)

    assert (said.problem, said.sees) == ("", {"UnoApp": True, "UnoDocs": False})


def test_a_client_that_hangs_is_given_up(programs: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(client_cli, "SECONDS", 2)

    said = ask(client(programs, "print('Checking', flush=True); time.sleep(60)"), SERVERS)

    assert said.problem == "'client mcp list' gave no answer within 2 s and was stopped"
    assert said.said == ("Checking",)


def test_several_clients_are_asked_side_by_side_and_answer_in_their_order(programs: Path, tmp_path: Path) -> None:
    # Each waits until the other has begun: one after the other they would wait for ever.
    script = (
        "open(f'{sys.argv[0]}.begun', 'w').close()\n"
        f"others = [f'{programs}/first.begun', f'{programs}/second.begun']\n"
        "while not all(map(os.path.exists, others)): time.sleep(0.01)\n"
        "print('UnoApp', os.path.basename(sys.argv[0]))"
    )
    profiles = [client(programs, script, name) for name in ("first", "second")]

    answers = ask_all(profiles, SERVERS)

    assert [one.said for one in answers] == [("UnoApp first",), ("UnoApp second",)]


def test_whoever_is_interrupted_meanwhile_leaves_none_of_them_running(machine: Machine) -> None:
    begun = [machine.home / name for name in ("claude", "gemini")]
    for file in begun:
        program = machine.tools / file.name
        script = f"import os, time\nopen({str(file)!r}, 'w').write(f'{{os.getpid()}}\\n')\ntime.sleep(60)\n"
        program.write_text(f"#!{sys.executable}\n{script}")
        program.chmod(0o755)
    process = machine.spawn("mcp", "status", "--verify")
    deadline = time.monotonic() + 20
    while not all(file.exists() and file.read_text().endswith("\n") for file in begun):
        assert time.monotonic() < deadline
        time.sleep(0.01)

    process.send_signal(signal.SIGINT)
    process.communicate(timeout=20)

    assert process.returncode == 130
    clients = [int(file.read_text()) for file in begun]
    wait_for(lambda: not any(map(is_running, clients)))
