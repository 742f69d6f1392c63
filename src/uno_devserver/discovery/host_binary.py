"""Chooses the build of the .NET Host in its package that fits an SDK.

Order: the exact target framework; the nearest lower one, at most one major version below, because a Host rolls forward
over one major version only; the nearest higher one whose runtime is installed. Otherwise an issue lists the builds.
"""

from __future__ import annotations

import os
import stat
import sys

from ..issues import Issue, fatal
from ..system.values import Value
from .nuget_version import parse_version

TYPE_CHECKING = False
if TYPE_CHECKING:
    from collections.abc import Callable, Iterable, Mapping, Sequence

    Framework = tuple[int, int]

FOLDER = os.path.join("tools", "rc", "host")
NAME = "Uno.UI.RemoteControl.Host"
OLDEST_MAJOR = 5  # lower versions in netX.Y are those of the .NET Framework


class HostBinary(Value):
    path: str
    tfm: str
    requires_major_roll_forward: bool


def find_host(
    package: str, tfm: str | None, runtimes: Callable[[], Sequence[str]], platform: str = sys.platform
) -> HostBinary | Issue:
    """The Host in its package folder; `runtimes` returns the installed runtimes and is called only if needed."""
    root = os.path.join(package, FOLDER)
    names = (f"{NAME}.exe", f"{NAME}.dll") if platform == "win32" else (f"{NAME}.dll",)
    frameworks = _frameworks(root)
    builds = {framework: path for framework in frameworks if (path := _usable(root, framework, names))}
    wanted = _framework(tfm or "")
    chosen = _nearest(wanted, builds, runtimes) if wanted else None
    if wanted is None or chosen is None:
        return fatal("HostBinaryNotFound", _explain(root, tfm, frameworks, builds, names))
    return HostBinary(builds[chosen], _tfm(chosen), chosen[0] < wanted[0])


def _frameworks(root: str) -> list[Framework]:
    try:
        names = os.listdir(root)
    except OSError:
        return []
    return sorted(framework for name in names if (framework := _framework(name)))


def _framework(tfm: str) -> Framework | None:
    """Parses a framework such as net10.0; None for platform suffixes and older families, which no Host is built for."""
    major, _, minor = tfm.removeprefix("net").partition(".")
    plain = all(number.isascii() and number.isdigit() and len(number) < 5 for number in (major, minor))
    if not tfm.startswith("net") or not plain or int(major) < OLDEST_MAJOR:
        return None
    framework = (int(major), int(minor))
    return framework if _tfm(framework) == tfm else None


def _tfm(framework: Framework) -> str:
    return f"net{framework[0]}.{framework[1]}"


def _usable(root: str, framework: Framework, names: Iterable[str]) -> str | None:
    for name in names:
        path = os.path.join(root, _tfm(framework), name)
        try:
            status = os.stat(path)
        except OSError:
            continue
        # An interrupted restore leaves empty files, which cannot be started.
        if stat.S_ISREG(status.st_mode) and status.st_size:
            return path
    return None


def _nearest(
    wanted: Framework, builds: Mapping[Framework, str], runtimes: Callable[[], Sequence[str]]
) -> Framework | None:
    at_most = [framework for framework in builds if framework <= wanted and framework[0] >= wanted[0] - 1]
    if at_most:
        return max(at_most)
    higher = sorted(framework for framework in builds if framework > wanted)
    installed = [version.numbers for text in runtimes() if (version := parse_version(text))] if higher else []
    for framework in higher:
        if any(numbers[0] == framework[0] and numbers[1] >= framework[1] for numbers in installed):
            return framework
    return None


def _explain(
    root: str, tfm: str | None, frameworks: Sequence[Framework], builds: Mapping[Framework, str], names: Sequence[str]
) -> str:
    if not frameworks:
        return f"DevServer host not found in package folder {root}: there is no folder such as net10.0."
    unusable = ", ".join(_tfm(framework) for framework in frameworks if framework not in builds)
    without = f"; {unusable} without a usable {' or '.join(names)}" if unusable else ""
    goal = f"there is none for {tfm}" if tfm else "none can be chosen, because the version of the .NET SDK is unknown"
    present = ", ".join(map(_tfm, frameworks))
    return f"DevServer host not found in package folder {root}: {goal} (present: {present}{without})."
