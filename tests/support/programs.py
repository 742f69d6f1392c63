"""Programs of the system that some tests need: a browser, shells, and Go. `make test` has this install what is missing.

It is done by Debian's package manager, where that is there and we may: as root, or with a sudo that asks nothing. Else
it says what to install, and the tests are skipped with that reason; in CI on Linux both are errors, so that no test is
left out unnoticed.
"""

from __future__ import annotations

import os
import re
import shutil
import subprocess
import sys
from pathlib import Path
from typing import NoReturn

import pytest

# The names by which systems know the program, and the package of Debian and Ubuntu that has it.
PROGRAMS = {
    "chromium": ("chromium", "chromium-browser", "google-chrome", "google-chrome-stable"),
    "zsh": ("zsh",),
    "fish": ("fish",),
    "golang": ("go",),
}
INSTALL_SECONDS = 300  # 225 MB on a bare system take 35 s; the rest is for slow lines
ASK_SECONDS = 10
APT = ("env", "DEBIAN_FRONTEND=noninteractive", "apt-get", "-o", "DPkg::Lock::Timeout=60", "-q")


def main() -> int:
    missing = [package for package in PROGRAMS if not found(package)]
    if missing:
        print(f"{', '.join(missing)}: missing, to be installed", flush=True)
        print(_install(missing), flush=True)
    missing = [package for package in missing if not found(package)]
    for package in missing:
        print(_advice(package), file=sys.stderr)
    return 1 if missing and in_ci() else 0


def found(package: str) -> Path | None:
    for name in PROGRAMS[package]:
        if path := shutil.which(name):
            return Path(path)
    return None


def needed(package: str) -> Path:
    """The path of a program that a test cannot do without."""
    return found(package) or _leave_out(package)


def in_ci() -> bool:
    """On Linux, where everything can be installed."""
    return sys.platform == "linux" and os.environ.get("CI", "").lower() not in ("", "0", "false")


def _leave_out(package: str) -> NoReturn:
    if in_ci():
        pytest.fail(_advice(package), pytrace=False)
    pytest.skip(_advice(package))


def _advice(package: str) -> str:
    names = " or ".join(PROGRAMS[package])
    return f"Some tests need {names}, and there is none on PATH. Install it (Debian: apt-get install {package})."


def _install(packages: list[str]) -> str:
    """Ask the package manager for all at once; what came of it."""
    become = _become_root()
    if become is None or not shutil.which("apt-get"):
        return "Nothing was installed: that takes apt-get, and root or a sudo without a password."
    # What these only recommend (printers, the daemons of a desktop) no test needs.
    install = [*become, *APT, "install", "-y", "--no-install-recommends", *packages]
    try:
        if not _is_known(packages):
            _run([*become, *APT, "update"])
        ran = _run(install)
        if ran.returncode:  # lists may be older than what the mirrors still have
            _run([*become, *APT, "update"])
            ran = _run(install)
    except subprocess.TimeoutExpired as slow:
        return f"Nothing was installed: '{' '.join(slow.cmd)}' took more than {slow.timeout:g} s."
    return "Installed." if not ran.returncode else f"'{' '.join(install)}' failed:\n{ran.stdout}"


def _become_root() -> list[str] | None:
    """What to write before a command so that root runs it; None if there is no way."""
    if not hasattr(os, "geteuid"):
        return None
    if os.geteuid() == 0:
        return []
    if not shutil.which("sudo"):
        return None
    asked = subprocess.run(["sudo", "-n", "true"], stdin=subprocess.DEVNULL, capture_output=True, timeout=ASK_SECONDS)
    return ["sudo", "-n"] if asked.returncode == 0 else None


def _is_known(packages: list[str]) -> bool:
    """Whether the lists that are here have them all; images of containers often come without lists."""
    shown = _run(["env", "LC_ALL=C", "apt-cache", "policy", *packages])
    return len(re.findall(r"Candidate: (?!\(none\))", shown.stdout)) == len(packages)


def _run(command: list[str]) -> subprocess.CompletedProcess[str]:
    return subprocess.run(
        command,
        stdin=subprocess.DEVNULL,
        stdout=subprocess.PIPE,
        stderr=subprocess.STDOUT,
        text=True,
        timeout=INSTALL_SECONDS,
        check=False,
    )


if __name__ == "__main__":
    sys.exit(main())
