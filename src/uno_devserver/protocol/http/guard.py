"""Refuses requests of web sites that the user visits; requests of programs and pages of this machine are served.

A web page can send requests to loopback, and can make its own name resolve to 127.0.0.1 (DNS rebinding). A browser
always sends the name in the URL (Host) and the site of the page (Origin; for pictures and links only Sec-Fetch-Site),
so these headers decide. The checks of headers are pure.
"""

from __future__ import annotations

import re
import socket
from collections.abc import Callable, Collection, Mapping
from functools import partial

Guard = Callable[[Mapping[str, str]], str | None]

_AUTHORITY = re.compile(r"(?P<host>\[[0-9A-Fa-f:.]+\]|[^\s:/?#@\[\]\\,]+)(?::\d{0,5})?")
_ORIGIN = re.compile(r"https?://(?P<authority>[^/]+)")
# Accepted values of Sec-Fetch-Site; "none" means that the user typed the address.
_NEAR = ("none", "same-origin", "same-site")


def refusal(headers: Mapping[str, str], *, bind: str | None = None, own_names: Collection[str] = ()) -> str | None:
    """Why a request with these headers (names in lower case) is refused; None if it is served.

    `own_names` are the machine's names in lower case; they are accepted as Host only if `bind` is given.
    """
    reason = misdirected(headers, own_names if bind is not None else ())
    if reason is not None:
        return reason
    host = _host_of(headers["host"])
    origin = headers.get("origin")
    if origin is None:
        if headers.get("sec-fetch-site", "none") not in _NEAR:
            return "requests of other web sites are not served; only pages of this machine may ask"
        return None
    site = _ORIGIN.fullmatch(origin)
    asking = _host_of(site["authority"]) if site else None
    if asking is not None and (_is_loopback(asking) or (bind is not None and asking == host)):
        return None
    return f"requests of the origin {origin!r} are not served; only pages of this machine may ask"


def misdirected(headers: Mapping[str, str], own_names: Collection[str] = ()) -> str | None:
    """Why the Host header is not accepted as a name or address of this machine; None if it is."""
    sent = headers.get("host")
    if sent is None:
        return "the Host header is missing"
    host = _host_of(sent)
    if host is None:
        return f"the Host header {sent!r} is not valid"
    if _is_local_name(host) or _is_ip_address(host) or host in own_names:
        return None
    return f"the Host header names {sent!r}, which is not this machine; use localhost or an IP address"


def guard_for(bind: str | None) -> Guard:
    """Make the check for a server that listens on `bind`, or on loopback if that is None."""
    return partial(refusal, bind=bind, own_names=own_names(socket.gethostname(), bind))


def own_names(machine: str, bind: str | None) -> frozenset[str]:
    """The names by which other machines reach this one: its full and short name, the mDNS name, and `bind`."""
    name = machine.lower().rstrip(".")
    short = name.partition(".")[0]
    return frozenset(each for each in (name, short, f"{short}.local", (bind or "").lower()) if each.strip("."))


def _host_of(authority: str) -> str | None:
    match = _AUTHORITY.fullmatch(authority)
    if match is None:
        return None
    return match["host"].lower().removesuffix(".")  # "localhost." is the same name, fully qualified


def _is_loopback(host: str) -> bool:
    if _is_local_name(host):
        return True
    return _is_ip_address(host) and (host.startswith("127.") or _packed(host.strip("[]")) == _IPV6_LOOPBACK)


def _is_local_name(host: str) -> bool:
    return host == "localhost" or host.endswith(".localhost")


def _is_ip_address(host: str) -> bool:
    """Whether it is an IP address as in a URL. It needs no DNS, so DNS rebinding is not possible with it."""
    if host.startswith("["):
        return _packed(host[1:-1]) is not None
    try:
        socket.inet_pton(socket.AF_INET, host)
    except (OSError, ValueError):
        return False
    return True


def _packed(address: str) -> bytes | None:
    try:
        return socket.inet_pton(socket.AF_INET6, address)
    except (OSError, ValueError):
        return None


_IPV6_LOOPBACK = b"\0" * 15 + b"\1"
