"""The Pythons of this machine that the program is tested with: of each minor version the newest that works."""

from __future__ import annotations

import json
import os
import re
import subprocess
import sys
import tomllib
from collections.abc import Iterator
from dataclasses import dataclass
from pathlib import Path

_PROJECT = tomllib.loads((Path(__file__).parents[2] / "pyproject.toml").read_text("utf-8"))["project"]
_VERSION = "Programming Language :: Python :: 3."
TESTED = tuple((3, int(one.removeprefix(_VERSION))) for one in _PROJECT["classifiers"] if one.startswith(_VERSION))
OLDEST = TESTED[0]  # pip would refuse an older one
UV = str(Path(sys.executable).with_name("uv"))
SECONDS = 20  # to tell a version takes 20 ms; shims that lead nowhere take longer
_ASKED = "import json, sys; print(json.dumps([*sys.version_info[:3], sys.version_info.releaselevel, sys.executable]))"


@dataclass(frozen=True, order=True)
class Python:
    number: tuple[int, int, int]
    path: str

    @property
    def version(self) -> str:
        return ".".join(map(str, self.number))


def on_this_machine() -> list[Python]:
    """From the oldest to the newest."""
    newest: dict[tuple[int, int], Python] = {}
    for path in sorted(set(_candidates())):
        try:
            python = of_path(path)
        except (OSError, ValueError, subprocess.SubprocessError):
            continue  # a shim for a version that is switched off, or a preview
        minor = python.number[:2]
        if minor in TESTED and (minor not in newest or python > newest[minor]):
            newest[minor] = python
    return sorted(newest.values())


def of_path(path: str) -> Python:
    asked = subprocess.run([path, "-I", "-c", _ASKED], capture_output=True, check=True, timeout=SECONDS)
    major, minor, micro, level, executable = json.loads(asked.stdout)
    if level != "final":
        raise ValueError(f"{path} is a preview")
    return Python((major, minor, micro), executable)


def _candidates() -> Iterator[str]:
    """On PATH, from pyenv, and from uv."""
    for folder in map(Path, os.get_exec_path()):
        if folder.is_dir():
            yield from (str(path) for path in folder.iterdir() if re.fullmatch(r"python3(\.\d+)?", path.name))
    pyenv = Path(os.environ.get("PYENV_ROOT") or Path.home() / ".pyenv")
    yield from map(str, pyenv.glob("versions/*/bin/python"))
    asked = [UV, "python", "list", "--only-installed", "--offline", "--output-format", "json"]
    listed = subprocess.run(asked, capture_output=True, check=False, timeout=SECONDS * 10)
    yield from (python["path"] for python in json.loads(listed.stdout or b"[]"))
