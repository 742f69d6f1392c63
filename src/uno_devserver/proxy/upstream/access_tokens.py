"""The tokens of the servers that the user has signed in to, and the headers that the proxy makes of them.

One file per server, of this user alone, written by `uno-devserver login` and by renewals; the secrets in it may be in
the system's keyring instead. A token is read for the
server whose URL is in its file, and for no other. Tokens are renewed in a short-lived child process
(`oauth_sign_in.py`), because importing the SDK would cost the proxy half a second and 40 MB.
"""

from __future__ import annotations

import asyncio
import os
import time
from typing import TYPE_CHECKING, Any

from ...protocol.http.client import split_url
from ...system.event_loop import run_in_thread, shielded
from ...system.files import FOREIGN, SHARED, FileProblem, names_in, remove_file
from ...system.folders import folders
from ...system.jsonc import JsonProblem, parse
from ...system.log import log
from ...system.run import ask_module
from ...system.state_files import read_own, sha256, write_state
from ...system.text import shown_url
from ...system.values import Value

if TYPE_CHECKING:
    from collections.abc import Mapping

FOLDER = "sign-ins"
RECORD_BYTES = 256 * 1024  # a token with many claims has some kilobytes
EARLY_SECONDS = 60.0  # a token is renewed this long before it expires, so that no request carries an expired one
EARLY_SHARE = 0.2  # but not before this share of its lifetime is left
RENEWAL_SECONDS = 60.0  # for the child process: imports, the lock, the keyring, and one answer of the server
LAST_SECOND = 253_402_300_799.0  # of the year 9999, the last that dates know
PAUSE_SECONDS = 30.0  # from one renewal to the next that no refusal asks for; doubled while they fail
LONGEST_PAUSE_SECONDS = 1800.0
AUTHORIZATION = "Authorization"
SECRETS = ("access_token", "refresh_token", "client_secret")

_told: set[str] = set()  # the damaged files about which the log has warned


class SignIn(Value):
    """What is known of one server. The members of `client`, `tokens` and the metadata are those of OAuth."""

    url: str  # as `server_key` spells it
    issuer: str  # of the authorization server
    client: Mapping[str, Any]  # the registration (RFC 7591)
    registered: bool  # whether the client was registered by us; otherwise the user named it
    tokens: Mapping[str, Any]  # the answer of the token endpoint; empty once it has refused to renew them
    expires_at: float | None  # by the clock of this machine
    authorization_server: Mapping[str, Any] | None  # its metadata (RFC 8414)
    resource: Mapping[str, Any] | None  # the metadata of the server (RFC 9728)
    keyring: bool = False  # whether the secrets are in the keyring; read from the file, they are blank then

    @property
    def access_token(self) -> str | None:
        return header_token(self.tokens.get("access_token"))

    @property
    def renewable(self) -> bool:
        return isinstance(self.tokens.get("refresh_token"), str)

    @property
    def scope(self) -> str | None:
        scope = self.tokens.get("scope")
        return scope if isinstance(scope, str) else None

    def is_due(self, now: float) -> bool:
        """Whether the token should be renewed now."""
        if self.expires_at is None or not self.renewable:
            return False
        lifetime, longest = self.tokens.get("expires_in"), EARLY_SECONDS / EARLY_SHARE
        early = EARLY_SHARE * (min(lifetime, longest) if isinstance(lifetime, int) else longest)
        return now >= self.expires_at - early


class Unsaved(Value):
    """Renewed tokens that could not be stored."""

    record: SignIn
    replaces: str | None  # the access token that is still stored


def header_token(token: object) -> str | None:
    """The token, if a header can carry it."""
    sound = isinstance(token, str) and token.isascii() and token.isprintable() and " " not in token
    return str(token) or None if sound else None


def server_key(url: str) -> str:
    """The URL by which a server is known: without query, fragment and a slash at the end. ValueError if it is none."""
    origin, target = split_url(url)
    return f"{origin}{target.partition('?')[0].rstrip('/')}"


def record_path(url: str) -> str:
    key = server_key(url)
    host = "".join(letter if letter.isalnum() or letter in ".-" else "_" for letter in split_url(key)[0].host)[:60]
    return os.path.join(folders().state, FOLDER, f"{host}-{sha256(key.encode())[:16]}.json")


def read_sign_in(url: str) -> SignIn | None:
    """The sign-in to the server at this URL; None if there is none that can be read."""
    found = _read(record_path(url))
    return found if found is not None and found.url == server_key(url) else None


def sign_ins() -> list[SignIn]:
    """All sign-ins of this user, sorted by URL."""
    folder = os.path.join(folders().state, FOLDER)
    found = (_read(os.path.join(folder, name)) for name in names_in(folder) if name.endswith(".json"))
    return sorted((one for one in found if one is not None), key=lambda one: one.url)


def write_sign_in(record: SignIn) -> str:
    """Store it, and return the path of its file. Raises OSError, and KeyringProblem if its secrets go there."""
    path = record_path(record.url)
    if record.keyring:
        from .keyring_secrets import store

        store(record.url, {"client": record.client, "tokens": record.tokens})
        record = record.replace(client=_blanked(record.client), tokens=_blanked(record.tokens))
    write_state(path, record.__dict__)
    return path


def with_secrets(record: SignIn) -> SignIn:
    """The record with what the keyring has of it. Blocks if it is kept there; KeyringProblem if that fails."""
    if not record.keyring:
        return record
    from .keyring_secrets import KeyringProblem, fetch

    found = _checked(record.replace(**fetch(record.url)))
    if found is None:
        raise KeyringProblem("What the keyring has for this server is damaged.")
    return found


def _blanked(members: Mapping[str, Any]) -> dict[str, Any]:
    return {name: "" if name in SECRETS else value for name, value in members.items()}


def remove_sign_in(url: str) -> bool:
    """Remove a sign-in, readable or not; returns whether there was one. Raises OSError and KeyringProblem."""
    record = read_sign_in(url)
    if record is not None and record.keyring:  # first: without the file, the secrets in the keyring would be forgotten
        from .keyring_secrets import remove

        remove(record.url)
    try:
        remove_file(record_path(url))
    except FileNotFoundError:
        return False
    return True


def lock_path(url: str) -> str:
    """The file of the lock that is held from reading a refresh token to storing its successor."""
    return f"{record_path(url).removesuffix('.json')}.lock"


def _read(path: str) -> SignIn | None:
    why = "it is damaged"
    try:
        kept = parse(read_own(path, RECORD_BYTES))
        if isinstance(kept, dict) and (found := _checked(SignIn(**kept))) is not None:
            return found
    except FileNotFoundError:
        return None
    except FileProblem as problem:
        if problem.reason in (FOREIGN, SHARED):
            return None  # which `read_own` has told
        why = problem.reason
    except (JsonProblem, TypeError):
        pass
    if path not in _told:
        _told.add(path)
        log.warn(f"The sign-in in {path} cannot be used: {why}. Sign in again, or remove the file.")
    return None


def _checked(record: SignIn) -> SignIn | None:
    sound = isinstance(record.url, str) and isinstance(record.issuer, str) and isinstance(record.tokens, dict)
    sound = sound and isinstance(record.client, dict) and isinstance(record.client.get("client_id"), str)
    until = record.expires_at
    sound = sound and (until is None or (isinstance(until, float | int) and 0 <= until <= LAST_SECOND))
    return record if sound else None


# --- the credentials of a request


class TokenCredentials:
    """The given headers, and the access token of the user's sign-in, if there is one. Implements `Credentials`."""

    def __init__(self, url: str, headers: Mapping[str, str]) -> None:
        """ValueError if the URL is not valid."""
        self._path = record_path(url)
        self._seen: tuple[int, ...] | None = ()  # which file was read last; None if there was none
        self._url = url
        self._given = dict(headers)
        self._stored: SignIn | None = None  # as last read
        self._record: SignIn | None = None
        self._headers: Mapping[str, str] = self._given
        self._loading: asyncio.Task[None] | None = None  # from the keyring
        self._locked: SignIn | None = None  # whose secrets the keyring did not give
        self._unsaved: Unsaved | None = None  # in use
        self._renewal: asyncio.Task[None] | None = None
        self._next_try = 0.0  # when a renewal may begin that no refusal asks for
        self._pause = PAUSE_SECONDS

    def headers(self) -> Mapping[str, str]:
        self._read_again()
        now = time.time()
        due = self._record is not None and (self._unsaved is not None or self._record.is_due(now))
        if due and now >= self._next_try:
            self._begin_renewal()
        return self._headers

    async def renew(self, refused: Mapping[str, str]) -> bool:
        current = await self._loaded()
        for _ in range(1 if self._unsaved is None else 2):  # the first one stores what is unsaved
            if current == refused and self._record is not None and self._record.renewable:
                await shielded(self._begin_renewal())
                current = await self._loaded()
        return current != refused

    def _read_again(self) -> None:
        """Read the sign-in if its file is another one than before: each change replaces it."""
        try:
            status = os.stat(self._path)  # a microsecond; reading takes as long as the request that follows
            seen = status.st_ino, status.st_ctime_ns, status.st_size
        except OSError:
            seen = None
        if seen == self._seen:
            return
        self._seen = seen
        record = read_sign_in(self._url)
        if record == self._stored:
            return
        self._stored, self._locked, self._unsaved = record, None, None
        if record is not None and record.keyring:
            self._loading = asyncio.ensure_future(self._load(record))
        else:
            self._use(record)

    def _use(self, record: SignIn | None) -> None:
        self._record = record
        token = record.access_token if record else None
        self._headers = {**self._given, AUTHORIZATION: f"Bearer {token}"} if token else self._given

    async def _loaded(self) -> Mapping[str, str]:
        """The headers with what the keyring has, which is asked again if it has not answered before."""
        self.headers()
        if self._locked is not None and (self._loading is None or self._loading.done()):
            self._loading = asyncio.ensure_future(self._load(self._locked))
        if self._loading is not None:
            await shielded(self._loading)
        return self._headers

    async def _load(self, record: SignIn) -> None:
        from .keyring_secrets import KeyringProblem

        stored, self._locked = self._stored, None
        try:
            found = await run_in_thread(lambda: with_secrets(record))
        except KeyringProblem as problem:
            self._locked = record
            log.warn(f"The sign-in to {shown_url(self._url)} cannot be used: {problem}")
        else:
            if stored == self._stored:
                self._use(found)

    def _begin_renewal(self) -> asyncio.Task[None]:
        if self._renewal is None or self._renewal.done():
            self._next_try = time.time() + self._pause
            used = self._record.access_token if self._record else None
            self._renewal = asyncio.ensure_future(self._renew(used))
        return self._renewal

    async def _renew(self, used: str | None) -> None:
        stored, before = self._stored, self._unsaved
        problem, kept = await run_in_thread(lambda: _renew_in_child(self._url, used, before))
        self._pause = PAUSE_SECONDS if problem is None else min(self._pause * 2, LONGEST_PAUSE_SECONDS)
        if kept is not None and stored == self._stored:
            self._unsaved = before or Unsaved(kept, used)
            self._use(kept)
            log.warn(f"The renewed sign-in to {shown_url(self._url)} is in this process only: {problem}")
        elif problem is not None:
            log.warn(f"The sign-in to {shown_url(self._url)} could not be renewed: {problem}")


def can_sign_in() -> bool:
    """Whether the packages of the extra `login` are installed."""
    from importlib import util

    return all(util.find_spec(name) is not None for name in ("mcp", "httpx2"))


def _renew_in_child(url: str, used: str | None, unsaved: Unsaved | None) -> tuple[str | None, SignIn | None]:
    """Call `renew_stored` of `oauth_sign_in.py` in a child process. Blocks."""
    from .keyring_secrets import install_step

    if not can_sign_in():
        return f"the packages that this needs are not installed. Run: {install_step('login')}", None
    asked: dict[str, object] = {"url": url, "used": used, "unsaved": None}
    if unsaved is not None:
        asked |= {"unsaved": unsaved.record.__dict__, "replaces": unsaved.replaces}
    try:
        answer = ask_module("uno_devserver.proxy.upstream.oauth_sign_in", asked, RENEWAL_SECONDS)
        problem, kept = answer["problem"], answer["unsaved"] and SignIn(**answer["unsaved"])
    except TimeoutError:
        return f"it took more than {RENEWAL_SECONDS:g} s.", None
    except (OSError, ValueError, KeyError, TypeError) as error:
        return f"the process that renews it failed ({type(error).__name__}).", None
    return str(problem) if problem else None, kept
