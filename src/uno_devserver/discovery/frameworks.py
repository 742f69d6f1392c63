"""Target frameworks: what MSBuild's SDK derives from a name like `net10.0-android36.0`."""

from __future__ import annotations

import re

from ..system.values import Value

# Compiled when used: most workspaces need only the first.
_NAME = r"(net|netcoreapp|netstandard)(\d+)\.(\d+)(?:-([a-z]+)([\d.]*))?"
_CLASSIC = r"net(\d)(\d)(\d?)"
_LONG = r"(\.netcoreapp|\.netstandard|\.netframework),version=v([0-9]{1,9}(?:\.[0-9]{1,9})+)"


class Framework(Value):
    identifier: str  # .NETCoreApp
    version: str  # v10.0
    platform: str  # android, or nothing
    platform_version: str


def parse_framework(name: str) -> Framework | None:
    """What the name stands for; None for a name that no SDK knows."""
    if match := re.fullmatch(_NAME, name.lower()):
        kind, major, minor, platform, platform_version = match.groups()
        identifier = ".NETStandard" if kind == "netstandard" else ".NETCoreApp"
        return Framework(identifier, f"v{major}.{minor}", platform or "", platform_version or "")
    if match := re.fullmatch(_CLASSIC, name.lower()):
        return Framework(".NETFramework", "v" + ".".join(part for part in match.groups() if part), "", "")
    return None


def short_name(name: str) -> str:
    """`net10.0` for `.NETCoreApp,Version=v10.0`, the key of older assets files; other names as they are."""
    match = re.fullmatch(_LONG, name.lower())
    if not match:
        return name
    kind, version = match.groups()
    if kind == ".netstandard":
        return f"netstandard{version}"
    if kind == ".netframework":
        return "net" + version.replace(".", "")
    return f"net{version}" if int(version.partition(".")[0]) >= 5 else f"netcoreapp{version}"
