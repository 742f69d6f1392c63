"""The secrets of a sign-in in the system's keyring (`login --keyring`).

A locked keyring may wait for the user's password without an end, so a child process asks it, for a limited time. The
package is the extra `keyring`. Run as a program, this module does what standard input says.
"""

from __future__ import annotations

import json
import os
import sys
from typing import TYPE_CHECKING, Any

from ... import __version__
from ...system.run import ask_module

if TYPE_CHECKING:
    from collections.abc import Mapping

SERVICE = "uno-devserver"
PROXY_SECONDS = 10.0  # an unlocked keyring takes some 100 ms
USER_SECONDS = 60.0  # to type the password of the keyring


def install_step(extra: str, environment: str = sys.prefix) -> str:
    """How to install an extra where this program is: before a release, an index may have another's under our name."""
    released = all(part.isdigit() for part in __version__.split("."))
    by_tool = (("pipx_metadata.json", "pipx install --force"), ("uv-receipt.toml", "uv tool install --force"))
    found = (command for name, command in by_tool if os.path.isfile(os.path.join(environment, name)))
    command = next(found, "pip install")
    return f"{command} '{'uno-devserver' if released else '<folder of the clone>'}[{extra}]'"


class KeyringProblem(Exception):
    """The keyring cannot be used. The text is a sentence."""


def check() -> None:
    """Wait until the user has unlocked the keyring. Blocks; raises KeyringProblem if it cannot be used."""
    _ask({"url": ""}, USER_SECONDS)


def fetch(url: str, seconds: float = PROXY_SECONDS) -> dict[str, Any]:
    """What is stored for a server. Blocks; raises KeyringProblem, also if there is nothing."""
    secrets = _ask({"url": url}, seconds)
    if not isinstance(secrets, dict):
        raise KeyringProblem("The keyring has no tokens for this server.")
    return secrets


def store(url: str, secrets: Mapping[str, Any]) -> None:
    """Blocks; raises KeyringProblem."""
    _ask({"url": url, "secrets": secrets}, PROXY_SECONDS)


def remove(url: str) -> None:
    """Blocks; raises KeyringProblem."""
    _ask({"url": url, "remove": True}, USER_SECONDS)


def _ask(request: Mapping[str, Any], seconds: float) -> object:
    try:
        answer = ask_module("uno_devserver.proxy.upstream.keyring_secrets", request, seconds)
    except TimeoutError:
        raise KeyringProblem(f"The keyring did not answer within {seconds:g} s. Unlock it, then try again.") from None
    except (OSError, ValueError) as error:
        raise KeyringProblem(f"The keyring cannot be asked ({type(error).__name__}).") from error
    if answer["problem"]:
        raise KeyringProblem(answer["problem"])
    found: object = answer["secrets"]
    return found


def main() -> int:
    request = json.load(sys.stdin)
    try:
        secrets, problem = _done(request), None
    except KeyringProblem as error:
        secrets, problem = None, str(error)
    sys.stdout.write(json.dumps({"secrets": secrets, "problem": problem}))
    return 0


def _done(request: Mapping[str, Any]) -> object:
    try:
        import keyring
        from keyring.errors import KeyringError, PasswordDeleteError
    except ImportError:
        raise KeyringProblem(f"The package for the keyring is not installed. Run: {install_step('keyring')}") from None
    try:
        if keyring.get_keyring().priority <= 0:
            raise KeyringProblem("This system has no keyring that can be used.")
        if "secrets" in request:
            keyring.set_password(SERVICE, request["url"], json.dumps(request["secrets"]))
        elif "remove" in request:
            try:
                keyring.delete_password(SERVICE, request["url"])
            except PasswordDeleteError:
                pass  # it was not there
        else:
            text = keyring.get_password(SERVICE, request["url"])
            return None if text is None else json.loads(text)
    except (KeyringError, RuntimeError, ValueError) as error:
        raise KeyringProblem(f"The keyring refuses: {type(error).__name__}.") from error
    return None


if __name__ == "__main__":
    sys.exit(main())
