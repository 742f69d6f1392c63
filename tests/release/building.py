"""The sdist and the wheel, as `uv build` makes them, and what must be in them.

Both front ends make the same wheel, also from the sdist; the sdist has everything that builds and tests it, and nothing
that lies about in a checkout.
"""

from __future__ import annotations

import hashlib
import os
import subprocess
import sys
import tarfile
import zipfile
from collections.abc import Iterable
from dataclasses import dataclass
from email.message import Message
from email.parser import BytesParser
from pathlib import Path

from release.machine import installer_environment
from release.pythons import UV, Python
from uno_devserver import __version__

ROOT = Path(__file__).parents[2]
SECONDS = 300  # it takes 3, and longer where the build backend is downloaded first
# What `make test` reads. Everything else in a checkout is generated, or the concern of one machine.
SDIST = {
    "src",
    "tests",
    "docs",
    "examples",
    "benchmarks",
    "requirements",
    "Makefile",
    "LICENSE",
    "pyproject.toml",
    ".gitignore",
}
SDIST |= {"AGENTS.md", "CHANGELOG.md", "CONTRIBUTING.md", "README.md", "SECURITY.md", "PKG-INFO"}
SDIST |= {".github", ".pre-commit-config.yaml"}
GENERATED = {"__pycache__", "node_modules", "work", ".venv", "dist"}


@dataclass(frozen=True)
class Built:
    version: str
    sdist: Path
    wheel: Path
    by_pip: Path


def download(folder: Path, pythons: Iterable[Python]) -> dict[str, str]:
    """The locked packages that the program needs, and those that build it; and the settings to install from there only.

    So what is tried is what was locked, also where an installer makes an environment of its own to build in.
    """
    locks = [word for part in ("run", "build") for word in ("-r", str(ROOT / "requirements" / f"{part}.txt"))]
    for python in pythons:
        pip = [sys.executable, "-m", "pip", "--python", python.path, "download", "--quiet", "--dest", str(folder)]
        _run(*pip, "--require-hashes", "--only-binary", ":all:", *locks)
    return {
        "PIP_CONFIG_FILE": os.devnull,
        "PIP_NO_INDEX": "1",
        "PIP_FIND_LINKS": str(folder),
        "UV_NO_CONFIG": "1",
        "UV_OFFLINE": "1",
        "UV_FIND_LINKS": str(folder),
    }


def build(folder: Path) -> Built:
    _run(UV, "build", "--quiet", "--out-dir", str(folder / "uv"), str(ROOT))
    _run(sys.executable, "-m", "pip", "wheel", "--quiet", "--no-deps", "--wheel-dir", str(folder / "pip"), str(ROOT))
    (sdist,), (wheel,) = (folder / "uv").glob("*.tar.gz"), (folder / "uv").glob("*.whl")
    (by_pip,) = (folder / "pip").glob("*.whl")
    return Built(__version__, sdist, wheel, by_pip)


def problems_of(built: Built) -> list[str]:
    ours, pips = _content(built.wheel), _content(built.by_pip)
    different = sorted({name for name, _ in ours.items() ^ pips.items()})
    problems = [f"pip makes another {name} than uv" for name in different]
    package = {name for name in ours if ".dist-info/" not in name}
    if package != _files_of_package():
        problems.append(f"the wheel and the package differ in {sorted(package ^ _files_of_package())}")
    metadata = _metadata(built.wheel)
    if metadata["Version"] != built.version:
        problems.append(f"the wheel is of version {metadata['Version']}")
    if "# uno-devserver" not in str(metadata.get_payload()):
        problems.append("the wheel has no description")
    with tarfile.open(built.sdist) as archive:
        names = [name.partition("/")[2] for name in archive.getnames()]
    tops = {name.partition("/")[0] for name in names}
    if tops != SDIST:
        problems.append(f"the sdist has too much or too little: {sorted(tops ^ SDIST)}")
    problems += [f"the sdist has {name}" for name in names if GENERATED & set(Path(name).parts)]
    return problems


def _content(wheel: Path) -> dict[str, str]:
    with zipfile.ZipFile(wheel) as archive:
        return {name: hashlib.sha256(archive.read(name)).hexdigest() for name in archive.namelist()}


def _files_of_package() -> set[str]:
    sources = ROOT / "src"
    files = (path for path in (sources / "uno_devserver").rglob("*") if path.is_file())
    return {path.relative_to(sources).as_posix() for path in files if "__pycache__" not in path.parts}


def _metadata(wheel: Path) -> Message:
    with zipfile.ZipFile(wheel) as archive:
        (name,) = [name for name in archive.namelist() if name.endswith(".dist-info/METADATA")]
        return BytesParser().parsebytes(archive.read(name))


def _run(*command: str) -> None:
    subprocess.run(command, env=installer_environment(), check=True, timeout=SECONDS)
