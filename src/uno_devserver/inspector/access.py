"""Access to the inspector page: only for programs of its user, and not for other web sites.

Three credentials, each of 192 random bits:

- The token of a proxy, for programs. It is new for each proxy, held in memory and in the proxy's status file.
- A one-time code, by which `inspect` opens a page: the holder of the token can request one. It is part of a URL, and so
  visible in the arguments of the browser; it is worthless once the page has exchanged it, or after a few minutes.
- The key of a page, which the page gets for a code. Later proxies of the workspace accept it too, so that open pages
  can reconnect; a file for each key is named by its digest and contains the time of its last use.

Browsers name the site that sends a request (Origin, Sec-Fetch-Site); other ports of this machine are other origins. A
link from another site to the page is allowed, because nothing is shown without a key, and reading changes nothing.

Each page has an origin of its own, at a random name below `localhost` (except on macOS: `new_host`). Another user could
have served the usual origin while no proxy had the port; a service worker or cached script that was left in the browser
would then run before the page, with its rights. So a code and a key are valid only at the name made for them.
"""

from __future__ import annotations

import json
import os
import re
import sys
import time
from base64 import urlsafe_b64encode
from collections.abc import Mapping

from ..protocol.http.guard import misdirected, split_authority
from ..protocol.http.messages import Request
from ..system.files import FileProblem, remove_file, sweep
from ..system.log import log
from ..system.state_files import read_own, secure_folder, sha256, write_own

try:
    from _operator import _compare_digest as same  # compares in constant time; `hmac` would load a few MB of OpenSSL
except ImportError:  # not CPython
    from hmac import compare_digest as same  # type: ignore[no-redef]

OWN_SITES = ("same-origin", "none")  # values of Sec-Fetch-Site; "none" if the user typed the address
_IN_QUERY = re.compile(r"(?:^|&)token=([^&]*)")
_IN_PATH = re.compile(r"/mcp/([^/]+)/?", re.IGNORECASE)  # for MCP clients that drop the query of a URL
_BEARER = re.compile(r"bearer +(\S+)", re.IGNORECASE)


def page_refusal(headers: Mapping[str, str], _path: str = "", _own: object = None) -> str | None:
    """Why a request with these headers (names in lower case) is refused; None if it is allowed."""
    reason = misdirected(headers)
    if reason is not None:
        return reason
    origin, host = headers.get("origin"), headers["host"]
    if origin is not None and origin.lower() != f"http://{host.lower()}":
        return f"requests of the origin {origin!r} are refused; only this page itself may send requests"
    if headers.get("sec-fetch-site", "none").lower() not in OWN_SITES and not _follows_link(headers):
        return "requests of other web sites are refused; only this page itself may send requests"
    return None


def has_token(request: Request, token: str) -> bool:
    """Whether the request has the token: as `Authorization: Bearer`, after `?token=`, or after `/mcp/`."""
    sent = _in_header(request) or _IN_QUERY.search(request.query) or _IN_PATH.fullmatch(request.path)
    return sent is not None and same(sent[1].encode("utf-8", "replace"), token.encode())


def sent_key(request: Request) -> str:
    """The key in the request, or an empty text: a page sends it only as `Authorization: Bearer`."""
    found = _in_header(request)
    return found[1] if found else ""


def host_of(request: Request) -> str:
    """The name in the address that the request was sent to, without the port; `page_refusal` has checked it."""
    return split_authority(request.headers["host"])[0] or ""


def _in_header(request: Request) -> re.Match[str] | None:
    return _BEARER.fullmatch(request.headers.get("authorization", ""))


def _follows_link(headers: Mapping[str, str]) -> bool:
    """Whether the browser requests a page for a tab, not for a frame or a script."""
    mode, target = (headers.get(name, "").lower() for name in ("sec-fetch-mode", "sec-fetch-dest"))
    return (mode, target) == ("navigate", "document")


RANDOM_BYTES = 24  # 192 bits cannot be guessed
_SECRET = re.compile(r"[A-Za-z0-9_-]{32}")
HOST_BYTES = 10  # in a host name: to occupy it before the page does, another user would have to guess 80 bits
_PAGE_HOST = re.compile(r"(?:[0-9a-f]{20}\.)?localhost")


def new_secret() -> str:
    return urlsafe_b64encode(os.urandom(RANDOM_BYTES)).decode()


def new_host(platform: str = sys.platform) -> str:
    """The name at which a browser of this machine opens a page.

    Browsers know that all names below `localhost` are this machine, whatever DNS says. Only Safari asks the system,
    and macOS does not know them.
    """
    return "localhost" if platform == "darwin" else f"{os.urandom(HOST_BYTES).hex()}.localhost"


CODE_SECONDS = 300.0  # a browser takes a second; a person who pastes the address into one takes longer
MAX_CODES = 20  # codes that are valid at the same time; another one replaces the oldest


class OneTimeCodes:
    """The codes of this proxy that can still be exchanged."""

    def __init__(self, seconds: float = CODE_SECONDS) -> None:
        self._seconds = seconds
        self._codes: dict[str, tuple[float, str]] = {}  # when each expires, and its host; the oldest first

    def new(self) -> tuple[str, str]:
        """A code, and the name of the host at which it can be used."""
        code, host = new_secret(), new_host()
        self._codes[code] = (time.monotonic() + self._seconds, host)
        while len(self._codes) > MAX_CODES:
            del self._codes[next(iter(self._codes))]
        return code, host

    def redeem(self, sent: bytes, host: str) -> bool:
        """Use up the code; return whether it was valid at this host."""
        found = [code for code in self._codes if same(code.encode(), sent)]  # compares with all, in constant time
        made_for = [self._codes.pop(code) for code in found]
        return any(expires > time.monotonic() and at == host for expires, at in made_for)


KEY_FOLDER = "inspector"
KEY_SECONDS = 24 * 3600.0  # without use: a page that was left open overnight finds the next morning's proxy
RECORD_SECONDS = 600.0  # a use is recorded at most this often
MAX_KEYS = 200  # keys that are kept, of all workspaces; another one replaces the one that was not used for longest
TIME_BYTES = 32  # seconds since 1970 have ten digits
NEVER = float("-inf")  # not 0, which is near the present on a machine whose clock is not set yet
_KEY_FILE = re.compile(r"[0-9a-f]{64}")


class PageKeys:
    """The keys of the pages of one workspace, kept for its next proxies: a file for each, named by its digest.

    The file contains the time of the key's last use. The digest covers the key, the page's host and the workspace, so a
    key is valid for one host and one workspace.
    """

    def __init__(self, state: str, folder: str) -> None:
        self._folder = os.path.join(state, KEY_FOLDER)
        self._place = os.path.normcase(os.path.realpath(folder))
        self._recorded: dict[str, float] = {}  # by digest: the last use that was recorded, in seconds since 1970

    def new(self, host: str) -> str:
        """Make a key; blocks on the disk. Where nothing can be written, only this proxy accepts it."""
        key = new_secret()
        self._record(self._digest(key, host))
        remove_old_keys(self._folder)
        for digest, _ in sorted(self._recorded.items(), key=lambda item: item[1])[:-MAX_KEYS]:
            self._recorded.pop(digest, None)  # another thread may have removed it
        return key

    def was_just_used(self, key: str, host: str) -> bool:
        """Whether the key is valid, and its use need not be recorded now; does not block."""
        return _is_within(RECORD_SECONDS, self._recorded.get(self._digest(key, host), NEVER))

    def use(self, key: str, host: str) -> bool:
        """Whether the key is valid; if so, this use is recorded. Blocks on the disk."""
        if not _SECRET.fullmatch(key):
            return False
        digest = self._digest(key, host)
        known = max(self._recorded.get(digest, NEVER), _time_of(os.path.join(self._folder, digest)))
        if not _is_within(KEY_SECONDS, known):
            return False
        self._record(digest)
        return True

    def _digest(self, key: str, host: str) -> str:
        return sha256(f"{key} {host} {self._place}".encode("utf-8", "surrogatepass"))

    def _record(self, digest: str) -> None:
        now = self._recorded[digest] = time.time()
        try:
            write_own(os.path.join(self._folder, digest), f"{now:.0f}".encode(), durable=False)
        except OSError as error:
            log.debug(f"The key of a page could not be stored: {error}")


def remove_old_keys(folder: str) -> list[str]:
    """Remove files that are no valid keys (earlier versions kept tokens here) or exceed MAX_KEYS; return the paths."""
    try:
        secure_folder(folder)  # raises if the folder is another user's, whose keys stay
        sweep(folder)
        names = [name for name in os.listdir(folder) if not name.endswith(".tmp")]  # these are being written
    except OSError:
        return []
    times = {name: _time_of(os.path.join(folder, name)) if _KEY_FILE.fullmatch(name) else NEVER for name in names}
    newest = sorted(names, key=times.__getitem__, reverse=True)[:MAX_KEYS]
    valid = {name for name in newest if _is_within(KEY_SECONDS, times[name])}
    removed = []
    for path in (os.path.join(folder, name) for name in names if name not in valid):
        try:
            remove_file(path)
        except OSError as error:
            log.debug(f"{path} stays: {error}")
        else:
            removed.append(path)
    return removed


def _time_of(path: str) -> float:
    """The time in a key's file; NEVER if it is missing, unreadable, or another user may have written it."""
    try:
        return float(read_own(path, TIME_BYTES))
    except (FileNotFoundError, FileProblem, ValueError):
        return NEVER


def _is_within(seconds: float, then: float) -> bool:
    """Whether the time is less than this many seconds away, in the past or, after a corrected clock, the future."""
    return abs(time.time() - then) < seconds


ASK_SECONDS = 5.0  # an answer takes a few milliseconds; the rest is for busy machines
CODE = "/code"


def page_url(port: int, token: str) -> str | None:
    """The URL by which a browser opens the page of the proxy with that token, once; None without a valid answer.

    Blocks.
    """
    from ..instances.local_http import NoHttpAnswer, http_request

    headers = {"Authorization": f"Bearer {token}", "Content-Length": "0"}
    try:
        answer = http_request("127.0.0.1", port, "POST", CODE, deadline=time.monotonic() + ASK_SECONDS, headers=headers)
        made = json.loads(answer.body) if answer.status == 200 else {}
        code, host = _SECRET.fullmatch(made["code"]), _PAGE_HOST.fullmatch(made["host"])
    except (NoHttpAnswer, ValueError, TypeError, KeyError, RecursionError) as problem:
        log.debug(f"the page on port {port} cannot be opened: {problem}")
        return None
    return url_of(host[0], port, code[0]) if host and code else None


def url_of(host: str, port: int, code: str) -> str:
    return f"http://{host}:{port}/?code={code}"
