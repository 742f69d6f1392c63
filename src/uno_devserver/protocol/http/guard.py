"""Refuses requests of web sites that the user visits; requests of programs and pages of this user are served.

A web page can send requests to loopback, and can make its own name resolve to 127.0.0.1 (DNS rebinding). To loopback
addresses browsers send the name in the URL (Host) and the site of the page (Origin; for pictures and links only
Sec-Fetch-Site), so these headers decide; to other addresses (`--bind`) they do not send Sec-Fetch-Site. A page of this
machine may be another user's, so the kernel is asked who serves it. The rest is pure.

The servers with this guard serve no pages. So a page of their own port is a leftover of a program that had the port
before, maybe another user's: an open tab, or a service worker, which a browser keeps for months.
"""

from __future__ import annotations

import re
import socket
from collections.abc import Callable, Collection, Mapping, Sequence
from functools import partial

from ...system.ports import LOOPBACK, MAX_PORT
from ...system.tcp_peers import is_this_users_port

TYPE_CHECKING = False
if TYPE_CHECKING:
    from ...system.tcp_peers import Address

# The reason to refuse a request with these headers for this path, which came to this address and port of the machine;
# None to serve it.
Guard = Callable[[Mapping[str, str], str, "Address"], str | None]
ServesPages = Callable[[Sequence[str], int], bool]  # whether this port of these addresses is this user's

_AUTHORITY = re.compile(r"(?P<host>\[[0-9A-Fa-f:.]+\]|[^\s:/?#@\[\]\\,]+)(?::(?P<port>\d{0,5}))?")
_ORIGIN = re.compile(r"(?P<scheme>https?)://(?P<authority>[^/]+)")
_DEFAULT_PORTS = {"http": 80, "https": 443}
_IPV6_LOOPBACK = b"\0" * 15 + b"\1"
_IPV4_IN_IPV6 = b"\0" * 10 + b"\xff\xff"  # how such an address begins
# The value of Sec-Fetch-Site without an Origin that is accepted: the user typed the address. A page of another port is
# "same-site", and who serves it could not be asked.
_NO_SITE = "none"
# The only path that is served to a tab. A web site can redirect an address that was typed, and is not named then.
SHOWN = "/health"


def refusal(
    headers: Mapping[str, str],
    path: str,
    own: Address,
    *,
    bind: str | None = None,
    own_names: Collection[str] = (),
    serves_pages: ServesPages = is_this_users_port,
) -> str | None:
    """Why a request with these headers (names in lower case) to the address `own` is refused; None if it is served.

    `own_names` are the machine's names in lower case. They and addresses other than loopback are accepted as Host only
    if `bind` is given.
    """
    reason = misdirected(headers, own_names if bind is not None else None)
    if reason is not None:
        return reason
    if headers.get("sec-fetch-mode") == "navigate" and path.lower().rstrip("/") != SHOWN:
        return f"nothing here is for a browser's tab but {SHOWN}"
    origin = headers.get("origin")
    if origin is None:
        if headers.get("sec-fetch-site", _NO_SITE) != _NO_SITE:
            return "requests of other web sites are not served; a page of another local port must send its Origin"
        return None
    page = _ORIGIN.fullmatch(origin)
    asking, port = split_authority(page["authority"], _DEFAULT_PORTS[page["scheme"]]) if page else (None, 0)
    if asking is not None and _is_loopback(asking):
        addresses: Sequence[str] = LOOPBACK if _is_local_name(asking) else (asking.strip("[]"),)
    elif asking is not None and bind is not None and asking == split_authority(headers["host"])[0]:
        addresses = (str(own[0]),)  # the page has the name of this request, so it is served by this machine
    else:
        return f"requests of the origin {origin!r} are not served; only pages of this machine may ask"
    if port == own[1] and (not _is_loopback(asking) or _is_browsers(headers)):
        return f"requests of the origin {origin!r} are not served: this server has no pages"
    if 0 < port <= MAX_PORT and serves_pages(addresses, port):
        return None
    return (
        f"requests of the origin {origin!r} are not served: pages may ask only if a program of this user, and of no "
        f"other, listens on their port"
    )


def _is_browsers(headers: Mapping[str, str]) -> bool:
    """Whether a request to a loopback address comes from a browser: not all send Sec-Fetch-Site for a WebSocket.

    Programs may name the server's own origin, as the conformance suite of MCP does.
    """
    return "sec-fetch-site" in headers or "upgrade" in headers


def misdirected(headers: Mapping[str, str], own_names: Collection[str] | None = None) -> str | None:
    """Why the Host header is not accepted as a name or address of this machine; None if it is.

    Without `own_names`, only loopback is accepted. With it, also these names, and addresses: those by which others
    reach a machine may be unknown to it, as behind the address translation of a container or an emulator.
    """
    sent = headers.get("host")
    if sent is None:
        return "the Host header is missing"
    host, _ = split_authority(sent)
    if host is None:
        return f"the Host header {sent!r} is not valid"
    if _is_loopback(host) or (own_names is not None and (host in own_names or _is_address_of_one_machine(host))):
        return None
    others = "127.0.0.1 or [::1]" if own_names is None else "an address of this machine"
    return f"the Host header names {sent!r}, by which this server is not reached; use localhost, {others}"


def guard_for(bind: str | None) -> Guard:
    """Make the check for a server that listens on `bind`, or on loopback if that is None."""
    return partial(refusal, bind=bind, own_names=own_names(socket.gethostname(), bind))


def own_names(machine: str, bind: str | None) -> frozenset[str]:
    """The names by which other machines reach this one: its full and short name, the mDNS name, and a name to bind."""
    name = machine.lower().rstrip(".")
    short = name.partition(".")[0]
    given = (bind or "").lower()
    names = (name, short, f"{short}.local", "" if _packed(given) or ":" in given else given)
    return frozenset(each for each in names if each.strip("."))


def split_authority(authority: str, default_port: int = 0) -> tuple[str | None, int]:
    """The host, in lower case, and the port; None for the host if this is no authority."""
    match = _AUTHORITY.fullmatch(authority)
    if match is None:
        return None, 0
    # "localhost." is the same name, fully qualified.
    return match["host"].lower().removesuffix("."), int(match["port"] or default_port)


def _is_local_name(host: str) -> bool:
    return host == "localhost" or host.endswith(".localhost")


def _is_loopback(host: str) -> bool:
    if _is_local_name(host):
        return True
    packed = _packed(host)
    return packed == _IPV6_LOOPBACK or (len(packed) == 4 and packed[0] == 127)


def _is_address_of_one_machine(host: str) -> bool:
    """Whether it is an IP address as in a URL. It needs no DNS, so DNS rebinding is not possible with it.

    Browsers reach loopback by 0.0.0.0, [::] and IPv4 addresses that are written as IPv6, and say nothing of the page
    that asks, so these are not accepted.
    """
    packed = _packed(host)
    return any(packed) and not packed.startswith(_IPV4_IN_IPV6)


def _packed(host: str) -> bytes:
    """The bytes of an IP address as in a URL; b"" if it is none."""
    try:
        if host.startswith("["):
            return socket.inet_pton(socket.AF_INET6, host[1:-1])
        return socket.inet_pton(socket.AF_INET, host)
    except (OSError, ValueError):
        return b""
