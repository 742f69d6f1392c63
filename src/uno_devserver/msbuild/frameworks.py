"""Target framework names such as net10.0-android36.0, as far as packages use them."""

from __future__ import annotations

import re

from ..system.values import Value

# The highest .NETStandard that .NETCoreApp implements from a version on, newest rule first.
_STANDARDS = (((3, 0), (2, 1)), ((2, 0), (2, 0)), ((1, 0), (1, 6)))

# Not compiled in advance, because most projects need only the first.
_MODERN = r"(?a)net(\d+)\.(\d+)(?:-([a-z]+)(\d[\d.]*)?)?"
_DOTTED = r"(?a)(netcoreapp|netstandard)(\d+)\.(\d+)"
_CLASSIC = r"(?a)net(\d)(\d)?(\d)?"
_DOTTED_NAMES = {"netcoreapp": ".NETCoreApp", "netstandard": ".NETStandard"}


class Framework(Value):
    identifier: str
    version: tuple[int, ...]
    platform: str = ""
    platform_version: tuple[int, ...] = ()


def parse_framework(name: str) -> Framework | None:
    """Parses a framework name; returns None for rare kinds, which may be valid."""
    name = name.strip().lower()
    if match := re.fullmatch(_MODERN, name):
        major, minor, platform, platform_version = match.groups()
        version = (_number(major), _number(minor))
        identifier = ".NETCoreApp" if version >= (5, 0) else ".NETFramework"
        numbers = tuple(_number(part) for part in (platform_version or "").split(".") if part)
        return Framework(identifier, version, platform or "", numbers)
    if match := re.fullmatch(_DOTTED, name):
        return Framework(_DOTTED_NAMES[match.group(1)], (_number(match.group(2)), _number(match.group(3))))
    if match := re.fullmatch(_CLASSIC, name):
        return Framework(".NETFramework", tuple(int(digit) for digit in match.groups("0")))
    return None


def version_text(version: tuple[int, ...], least_parts: int) -> str:
    """A version without trailing zeros, but with at least the given number of parts."""
    parts = [*version, 0, 0, 0, 0][:4]
    while len(parts) > least_parts and parts[-1] == 0:
        parts.pop()
    return ".".join(map(str, parts))


def is_compatible(target: Framework, candidate: Framework) -> bool | None:
    """Whether a project for `target` can use a build for `candidate`; None if the rules are not implemented."""
    if target.identifier == candidate.identifier:
        if target.version < candidate.version:
            return False
        if not candidate.platform:
            return True
        same_platform = target.platform == candidate.platform
        return same_platform and target.platform_version >= candidate.platform_version
    if target.identifier == ".NETCoreApp" and candidate.identifier == ".NETStandard":
        # None for a version before 1.0, which does not exist but can be written.
        return next((candidate.version <= standard for since, standard in _STANDARDS if target.version >= since), None)
    if candidate.identifier == ".NETCoreApp":
        return False
    return None


def _number(digits: str) -> int:
    # Platform versions look like 19041; longer numbers are not converted.
    return int(digits) if len(digits) < 10 else 10**9


_LONG_FRAMEWORK = r"(\.netcoreapp|\.netstandard|\.netframework),version=v([0-9]{1,9}(?:\.[0-9]{1,9})+)"


def short_framework_name(name: str) -> str:
    """`net10.0` for `.NETCoreApp,Version=v10.0`, the form in older assets files; other names are returned unchanged."""
    match = re.fullmatch(_LONG_FRAMEWORK, name.lower())
    if not match:
        return name
    kind, version = match.groups()
    if kind == ".netstandard":
        return f"netstandard{version}"
    if kind == ".netframework":
        return "net" + version.replace(".", "")
    return f"net{version}" if int(version.partition(".")[0]) >= 5 else f"netcoreapp{version}"
