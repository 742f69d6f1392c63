"""Target frameworks: what MSBuild's SDK derives from a name like `net10.0-android36.0`."""

from __future__ import annotations

import re

from ..system.values import Value

_NAME = re.compile(r"(net|netcoreapp|netstandard)(\d+)\.(\d+)(?:-([a-z]+)([\d.]*))?", re.IGNORECASE)
_CLASSIC = re.compile(r"net(\d)(\d)(\d?)", re.IGNORECASE)
_LONG = re.compile(r"(\.NETCoreApp|\.NETStandard|\.NETFramework),Version=v([\d.]+)", re.IGNORECASE)


class Framework(Value):
    identifier: str  # .NETCoreApp
    version: str  # v10.0
    platform: str  # android, or nothing
    platform_version: str


def parse_framework(name: str) -> Framework | None:
    """What the name stands for; None for a name that no SDK knows."""
    if match := _NAME.fullmatch(name):
        kind, major, minor, platform, platform_version = match.groups()
        identifier = ".NETStandard" if kind.lower() == "netstandard" else ".NETCoreApp"
        return Framework(identifier, f"v{major}.{minor}", (platform or "").lower(), platform_version or "")
    if match := _CLASSIC.fullmatch(name):
        return Framework(".NETFramework", "v" + ".".join(part for part in match.groups() if part), "", "")
    return None


def short_name(name: str) -> str:
    """`net10.0` for `.NETCoreApp,Version=v10.0`, the key of older assets files; other names as they are."""
    match = _LONG.fullmatch(name)
    if not match:
        return name
    kind, version = match[1].lower(), match[2]
    if kind == ".netstandard":
        return f"netstandard{version}"
    if kind == ".netframework":
        return "net" + version.replace(".", "")
    return f"net{version}" if int(version.partition(".")[0]) >= 5 else f"netcoreapp{version}"
