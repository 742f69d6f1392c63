"""What must not stand in a checkout that is published. `make release-check ARGS=--publish` asks before it builds."""

from __future__ import annotations

import re
import shutil
import subprocess
from collections.abc import Iterator
from pathlib import Path

from release.building import Built

# Pages of the package index and of the repository. Hosts below `.invalid`, which never exist, are placeholders.
READ = ("pyproject.toml", "*.md", ".github/**/*.yml", ".github/**/*.md")
_PLACEHOLDER = re.compile(r"[\w+.@:/-]+\.invalid\b[\w./-]*")
_RELATIVE = re.compile(r"\]\((?!https:|#)([^)\s]+)\)")
_RELEASED = re.compile(r"\d+\.\d+\.\d+")
_UNTRUE = {"README.md": "There is no release yet", "CHANGELOG.md": "Nothing has been released yet"}
SECONDS = 30


def problems(root: Path) -> list[str]:
    (version,) = re.findall(r'^__version__ = "(.+)"$', _text(root, "src/uno_devserver/__init__.py"), re.MULTILINE)
    return [*_of_version(root, version), *_of_addresses(root), *_of_git(root)]


def keep(built: Built, folder: Path) -> None:
    """What was tried, and nothing else, is in the folder that is uploaded."""
    shutil.rmtree(folder, ignore_errors=True)
    folder.mkdir()
    for path in (built.sdist, built.wheel):
        shutil.copy(path, folder)


def _of_version(root: Path, version: str) -> Iterator[str]:
    if not _RELEASED.fullmatch(version):
        yield f"src/uno_devserver/__init__.py: {version} is no version of a release, as 1.2.3 is"
    else:
        newest = next(iter(re.findall(r"^## (.+)", _text(root, "CHANGELOG.md"), re.MULTILINE)), "nothing")
        if not re.fullmatch(rf"\[{re.escape(version)}\] - \d{{4}}-\d\d-\d\d", newest):
            yield f"CHANGELOG.md: begins with {newest}, not with [{version}] and its date"
        if f"v{version}" not in _git(root, "tag", "--points-at", "HEAD").split():
            yield f"git: the commit has no tag v{version}"
    for name, sentence in _UNTRUE.items():
        if sentence in _text(root, name):
            yield f"{name}: says \N{LEFT DOUBLE QUOTATION MARK}{sentence}\N{RIGHT DOUBLE QUOTATION MARK}"


def _of_addresses(root: Path) -> Iterator[str]:
    for path in sorted({path for pattern in READ for path in root.glob(pattern)}):
        name = path.relative_to(root).as_posix()
        for number, line in enumerate(path.read_text("utf-8").splitlines(), 1):
            yield from (f"{name}:{number}: {found} is a placeholder" for found in _PLACEHOLDER.findall(line))
    # The README is also the page of a package index, where no file stands beside it.
    if relative := list(dict.fromkeys(_RELATIVE.findall(_text(root, "README.md")))):
        yield f"README.md: these links lead nowhere on a package index: {', '.join(relative)}"


def _of_git(root: Path) -> Iterator[str]:
    if _git(root, "status", "--porcelain"):
        yield "git: there are changes that are not committed"


def _git(root: Path, *words: str) -> str:
    ran = subprocess.run(["git", *words], cwd=root, capture_output=True, text=True, check=True, timeout=SECONDS)
    return ran.stdout


def _text(root: Path, name: str) -> str:
    return (root / name).read_text("utf-8")
