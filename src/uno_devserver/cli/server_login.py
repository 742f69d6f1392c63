"""`login <url>`, `login --list` and `logout`: the user's sign-ins to remote MCP servers.

The sign-in happens in the user's browser; the tokens go into a file of this user alone, where proxies find them.
"""

from __future__ import annotations

import asyncio
import os
import re
import sys
import time

from ..issues import UserError
from ..proxy.upstream.access_tokens import (
    can_sign_in,
    lock_path,
    read_sign_in,
    record_path,
    remove_sign_in,
    server_key,
    sign_ins,
    with_secrets,
    write_sign_in,
)
from ..proxy.upstream.keyring_secrets import KeyringProblem, check, install_step
from ..system.locks import FileLock
from ..system.text import has_credentials
from .parse import MAX_PORT
from .result import Report, Result, Row, Section
from .terminal import Style

TYPE_CHECKING = False
if TYPE_CHECKING:
    from collections.abc import Callable
    from typing import TypeVar

    from ..proxy.upstream.access_tokens import SignIn
    from .parse import Invocation

    T = TypeVar("T")

FAILED = "SignInFailed"
SECRET_VARIABLE = "UNO_DEVSERVER_CLIENT_SECRET"  # noqa: S105  # its name
KEYRING_STEP = (
    "Unlock the keyring and run it again. Its entries of uno-devserver can also be removed with the system's program."
)
LOCK_SECONDS = 30.0  # longer than a renewal takes
_SCOPE = re.compile(r"[\x21\x23-\x5b\x5d-\x7e]+( [\x21\x23-\x5b\x5d-\x7e]+)*")  # RFC 6749, 3.3


def is_address(text: str) -> bool:
    """Whether the text can only be meant as the address of a server, with or without a scheme."""
    return any(mark in text for mark in "./:")


def sign_in(invocation: Invocation) -> Result:
    """Sign in to the server that the only argument names."""
    url = _server(invocation)
    scope = invocation.value("scope")
    if scope is not None and not _SCOPE.fullmatch(scope):
        message = "The value of --scope is not a list of scopes."
        raise UserError("BadValue", message, "Put single spaces between the scopes, and no quotes into them.", 2)
    if not can_sign_in():
        message = "Signing in needs packages that are not installed."
        raise UserError("LoginNotInstalled", message, f"Run: {install_step('login')}")
    from ..proxy.upstream.oauth_sign_in import SignInProblem

    before = read_sign_in(url)
    keyring = invocation.on("keyring") or (before is not None and before.keyring)
    try:
        if keyring:
            check()  # before the user signs in for nothing
        record = asyncio.run(_sign_in(url, scope, before, invocation)).replace(keyring=keyring)
    except SignInProblem as problem:
        raise UserError(FAILED, str(problem), problem.step) from problem
    except KeyringProblem as problem:
        raise _no_keyring(problem) from problem
    path = _locked(url, lambda: write_sign_in(record))
    rows = (
        Row("authorization server", record.issuer),
        Row("scope", record.scope or "none named"),
        Row("valid", _validity(record)),
        Row("kept in", "the system's keyring" if keyring else path),
    )
    note = (
        f"Proxies of this server use it from now on, such as 'uno-devserver mcp start --upstream-url {record.url}'. "
        f"'uno-devserver logout {record.url}' removes it."
    )
    data = {**_facts(record), "file": path}
    return Result(data, Report(f"You are signed in to {record.url}.", (Section("", rows), Section(note, ()))))


def list_sign_ins() -> Result:
    found = sign_ins()
    rows = tuple(
        Row(
            one.url,
            f"by {one.issuer}; scope {one.scope or 'none named'}; {_validity(one)}",
            style=None if _is_valid(one) else Style.WARN,
        )
        for one in found
    )
    count = "1 server" if len(found) == 1 else f"{len(found) or 'no'} servers"
    sections = (Section("", rows),) if rows else ()
    return Result({"signIns": [_facts(one) for one in found]}, Report(f"You are signed in to {count}.", sections))


def logout(invocation: Invocation) -> Result:
    url = _server(invocation)
    record = read_sign_in(url)
    known = _locked(url, lambda: remove_sign_in(url))
    where = server_key(url)
    title = f"You are signed out of {where}." if known else f"You were not signed in to {where}."
    remark = f"{record.issuer} honours the token until it expires; revoke it there to end it now." if record else ""
    return Result({"url": where, "removed": known}, Report(title, (Section(remark, ()),) if remark else ()))


def _server(invocation: Invocation) -> str:
    """The URL of the server; raises UserError unless exactly one is given that can be used."""
    given = (*invocation.arguments, *invocation.forwarded, *invocation.child)
    command = invocation.words[0]
    if len(given) != 1 or not given[0].lower().startswith(("http://", "https://")):
        message = f"'{command}' needs the URL of one MCP server, and no other arguments."
        address = "https://<host>/<path>"
        if len(given) == 1 and "://" not in given[0]:
            message, address = f"'{given[0]}' does not begin with https:// or http://.", f"https://{given[0]}"
        raise UserError("BadValue", message, f"Write: uno-devserver {command} {address}", 2)
    try:
        if has_credentials(given[0]):
            raise ValueError("A URL with a user name or password is not used to sign in")
        server_key(given[0])
    except ValueError as error:
        raise UserError("BadValue", f"{error}.", "Use the URL that the server's documentation names.", 2) from error
    return given[0]


async def _sign_in(url: str, scope: str | None, before: SignIn | None, invocation: Invocation) -> SignIn:
    from ..proxy.upstream.oauth_sign_in import Client, Redirect
    from ..proxy.upstream.oauth_sign_in import sign_in as sign_in_to

    client_id, secret, issuer = invocation.value("client-id"), os.environ.get(SECRET_VARIABLE) or None, None
    if client_id is None and before is not None and not before.registered:  # the one that the user gave last time
        client_id, issuer = str(before.client["client_id"]), before.issuer
        secret = secret or _kept_secret(before)
    if scope is not None and before is not None:
        scope = " ".join(dict.fromkeys(f"{before.scope or ''} {scope}".split()))
    try:
        redirect = Redirect(invocation.number("port", 0, MAX_PORT) or 0)
    except OSError as error:
        message = f"The browser has no port to return to: {error.strerror or error}."
        raise UserError(FAILED, message, "Choose another --port, or leave it out.") from error

    async def show(page: str) -> None:
        from .inspect import open_in_browser

        opened = not invocation.on("no-open") and open_in_browser(page, os.environ)
        lead = "The sign-in goes on in your browser. If no page opens, go to:" if opened else "To sign in, go to:"
        sys.stderr.write(f"{lead}\n{page}\n")
        sys.stderr.flush()

    async with redirect:
        return await sign_in_to(url, Client(client_id, secret, issuer), scope, redirect, show)


def _kept_secret(before: SignIn) -> str | None:
    """The secret of the client that the user named last time; raises UserError if the keyring does not give it."""
    if "client_secret" not in before.client:
        return None
    try:
        secret: str = with_secrets(before).client["client_secret"]
    except KeyringProblem as problem:
        step = f"Set {SECRET_VARIABLE} to the secret of {before.client['client_id']}, and run it again."
        forget = f"To forget that client, run 'uno-devserver logout {before.url}' first."
        raise UserError(FAILED, str(problem), f"{step} {forget}") from problem
    return secret


def _locked(url: str, change: Callable[[], T]) -> T:
    """Change the stored sign-in while no process renews it; raises UserError if that is not possible."""
    lock = FileLock(lock_path(url))
    try:
        if not lock.acquire(LOCK_SECONDS, lambda _: None):
            message = f"Another process has been renewing this sign-in for {LOCK_SECONDS:g} s."
            raise UserError(FAILED, message, "Run it again.")
        try:
            return change()
        finally:
            lock.release()
    except KeyringProblem as problem:
        raise _no_keyring(problem) from problem
    except OSError as error:
        message = f"{error.filename or record_path(url)} could not be changed: {error.strerror or error}."
        raise UserError("StateNotWritable", message, "Make the folder writable, then run it again.") from error


def _no_keyring(problem: KeyringProblem) -> UserError:
    return UserError(FAILED, str(problem), KEYRING_STEP)


def _is_valid(record: SignIn) -> bool:
    alive = "access_token" in record.tokens and (record.expires_at is None or record.expires_at > time.time())
    return alive or record.renewable


def _validity(record: SignIn) -> str:
    if not _is_valid(record):
        return f"expired: run 'uno-devserver login {record.url}'"
    if record.expires_at is None:
        return "until it is revoked"
    if record.expires_at <= time.time():
        return "expired; renewed at its next use"
    until = time.strftime("%Y-%m-%d %H:%M %Z", time.localtime(record.expires_at))
    return f"until {until}, and renewed by itself" if record.renewable else f"until {until}"


def _facts(record: SignIn) -> dict[str, object]:
    return {
        "url": record.url,
        "issuer": record.issuer,
        "clientId": record.client.get("client_id"),
        "scope": record.scope,
        "expiresAt": record.expires_at,
        "renewable": record.renewable,
        "keyring": record.keyring,
        "valid": _is_valid(record),
    }
