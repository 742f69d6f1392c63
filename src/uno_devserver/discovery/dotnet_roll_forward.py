"""Chooses an installed .NET SDK by a global.json, with the rules of `dotnet`, as a pure function.

If versions of dotnet treat a file differently, or the managed part of dotnet rejects it, the verdict is ASK.
"""

from __future__ import annotations

import json
import re
from enum import Enum

from ..system.files import encoding_of
from ..system.values import Value
from .nuget_version import NuGetVersion, parse_version

TYPE_CHECKING = False
if TYPE_CHECKING:
    from collections.abc import Sequence


class SdkVerdict(Enum):
    FITS = "fits"
    NONE_FITS = "none fits"
    ASK = "ask"


class SdkChoice(Value):
    """The result of the rules: a version, or that no installed SDK fits, or that dotnet must be asked."""

    verdict: SdkVerdict
    version: str | None = None
    installed: tuple[str, ...] = ()
    wanted: str = ""
    advice: str = ""  # the file's own errorMessage


def choose_sdk(global_json: bytes | None, installed: Sequence[str]) -> SdkChoice:
    """Applies the rules that all versions of the native host and the managed part agree on."""
    try:
        wish = _ANYTHING if global_json is None else _read_requirement(global_json)
    except _Unclear:
        return SdkChoice(SdkVerdict.ASK)
    version = _pick(wish, installed)
    if version is None:
        return SdkChoice(SdkVerdict.NONE_FITS, None, tuple(installed), str(wish), wish.advice)
    return SdkChoice(SdkVerdict.FITS, version, tuple(installed))


def lacks_sdk_paths(global_json: bytes) -> bool:
    """Whether no reader can find `sdk.paths` in the file, even if it is no JSON: no string in it is "paths".

    That is certain only if the encoding is known and no letter is escaped.
    """
    bom, encoding = encoding_of(global_json)
    try:
        text = global_json[len(bom) :].decode(encoding)
    except UnicodeDecodeError:
        return False
    texts = (text.lower(), global_json.decode("latin-1").lower())  # for readers with and without regard to the mark
    # UTF-16 without a mark has NULs.
    return "\0" not in text and not any(sign in one for one in texts for sign in ('"paths"', "\\u"))


class _Unclear(Exception):
    """The meaning of the file depends on the version of dotnet, or on more than the file."""


class _RollForward(Value):
    same: int  # how many of major, minor and feature band must equal those of the requested version
    newest: bool  # True selects the newest SDK that fits, False the newest of the nearest feature band


_ROLL_FORWARD = {
    "disable": _RollForward(3, False),
    "patch": _RollForward(3, False),
    "feature": _RollForward(2, False),
    "minor": _RollForward(1, False),
    "major": _RollForward(0, False),
    "latestpatch": _RollForward(3, True),
    "latestfeature": _RollForward(2, True),
    "latestminor": _RollForward(1, True),
    "latestmajor": _RollForward(0, True),
}


class _SdkRequirement(Value):
    version: str | None = None
    policy: str = "latestmajor"
    prerelease: bool = True
    advice: str = ""

    def __str__(self) -> str:
        return f"{self.version} (rollForward {self.policy})" if self.version else "that is not a prerelease"


_ANYTHING = _SdkRequirement()
_TEST_RUNNERS = ("vstest", "microsoft.testing.platform")  # the managed part rejects other names
_MAX_OPENINGS = 64  # the managed part reads 64 levels; counting all brackets is simpler, and enough
# Unterminated strings and comments match up to the end of the text; searching it repeatedly takes quadratic time.
_STRING_OR_COMMENT = r'"[^"\\]*(?:\\.[^"\\]*)*(?:"|\\?\Z)|//[^\r\n]*|/\*.*?(?:\*/|\Z)'


def _read_requirement(data: bytes) -> _SdkRequirement:
    root = _parse(data)
    if root is None:
        return _ANYTHING
    if not isinstance(root, dict) or not _is_test_section(root.get("test")):
        raise _Unclear
    sdk = root.get("sdk")
    if not isinstance(sdk, dict):
        return _ANYTHING
    paths, advice = sdk.get("paths"), sdk.get("errorMessage")
    # Only newer native hosts know these two members; they may search elsewhere or ignore the whole file.
    if paths not in (None, ["$host$"]) or not isinstance(advice, str | None):
        raise _Unclear
    version, policy, prerelease = sdk.get("version"), sdk.get("rollForward"), sdk.get("allowPrerelease")
    understood = (
        (version is None or (isinstance(version, str) and sdk_version(version)))
        and (policy is None or (isinstance(policy, str) and policy.lower() in _ROLL_FORWARD))
        and isinstance(prerelease, bool | None)
    )
    # The host ignores the whole file if one value is unknown, or if a policy lacks its version.
    if not understood or (version is None and policy and policy.lower() != "latestmajor"):
        return _ANYTHING
    default = "patch" if version else "latestmajor"
    return _SdkRequirement(
        version, (policy or default).lower(), prerelease is not False or "-" in (version or ""), advice or ""
    )


def _parse(data: bytes) -> object:
    """Parses JSON as both parts of dotnet do: comments, no trailing commas, the first of equal keys wins."""
    if data.count(b"{") + data.count(b"[") > _MAX_OPENINGS:
        raise _Unclear
    try:
        text = re.sub(_STRING_OR_COMMENT, _without_comment, data.decode("utf-8-sig"), flags=re.DOTALL)
        return json.loads(text, object_pairs_hook=lambda pairs: dict(reversed(pairs)), parse_constant=_refuse)
    except ValueError as error:
        raise _Unclear from error


def _without_comment(match: re.Match[str]) -> str:
    found = match.group()
    if found.startswith("/*") and (len(found) < len("/**/") or not found.endswith("*/")):
        raise ValueError("a comment without an end")
    return " " if found.startswith("/") else found


def _refuse(constant: str) -> None:
    raise ValueError(f"{constant} is not JSON")


def _is_test_section(test: object) -> bool:
    if not isinstance(test, dict):
        return test is None
    runner = test.get("runner")
    return runner is None or (isinstance(runner, str) and runner.lower() in _TEST_RUNNERS)


def _pick(wish: _SdkRequirement, installed: Sequence[str]) -> str | None:
    if wish.policy in ("disable", "patch") and wish.version in installed:
        return wish.version
    if wish.policy == "disable":
        return None
    policy = _ROLL_FORWARD[wish.policy]
    fitting = {name: version for name in installed if (version := sdk_version(name)) and _fits(version, wish, policy)}
    if fitting and not policy.newest:
        nearest = min(map(_band, fitting.values()))
        fitting = {name: version for name, version in fitting.items() if _band(version) == nearest}
    return max(fitting, key=fitting.__getitem__, default=None)


def sdk_version(text: str) -> NuGetVersion | None:
    """Parses a version as the native host does: exactly three numbers, no leading zeros, no blanks."""
    version = parse_version(text)
    release = text.partition("+")[0].partition("-")[0]
    return version if version and release == ".".join(map(str, version.numbers[:3])) else None


def _fits(version: NuGetVersion, wish: _SdkRequirement, policy: _RollForward) -> bool:
    if version.labels and not wish.prerelease:
        return False
    wanted = sdk_version(wish.version or "")
    return wanted is None or (version >= wanted and _band(version)[: policy.same] == _band(wanted)[: policy.same])


def _band(version: NuGetVersion) -> tuple[int, int, int]:
    """Major, minor and feature band: 10.0.401 is a patch of band 4."""
    major, minor, patch = version.numbers[:3]
    return (major, minor, patch // 100)
