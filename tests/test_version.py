"""The version is defined once, in the package; everything else reads it from there."""

from __future__ import annotations

import os
import re
from collections.abc import Iterator
from importlib.metadata import version
from pathlib import Path

from support.machine import Machine
from uno_devserver import __version__

ROOT = Path(__file__).parent.parent
READ = ("src", "docs", "examples", "benchmarks", "tests")
RECORDED = {"golden", "results"}  # what was seen or measured, with the version of that day
LEFT_OUT = RECORDED | {"work", "node_modules", "__pycache__", ".hypothesis"}
FIGURES = re.compile(r"<!-- (\w+) figures: .*?<!-- end of \1 figures -->", re.DOTALL)


def test_no_file_but_one_names_the_version() -> None:
    saying = [path.relative_to(ROOT).as_posix() for path in _files() if _says_it(path)]

    assert saying == ["src/uno_devserver/__init__.py"]


def test_the_program_and_its_metadata_tell_that_version(machine: Machine) -> None:
    assert machine.run("--version").stdout == f"{__version__}\n"
    assert version("uno-devserver") == __version__, "the environment is older than the sources: make setup"


def test_the_changelog_begins_with_what_is_new_in_that_version() -> None:
    (newest, *_) = re.findall(r"^## \[(.+?)\]", (ROOT / "CHANGELOG.md").read_text("utf-8"), re.MULTILINE)

    assert newest == ("Unreleased" if "dev" in __version__ else __version__)


def _says_it(path: Path) -> bool:
    data = path.read_bytes()
    return __version__.encode() in data and __version__ in FIGURES.sub("", data.decode("utf-8", "replace"))


def _files() -> Iterator[Path]:
    yield from (path for path in ROOT.iterdir() if path.is_file())
    for top in READ:
        for folder, folders, names in os.walk(ROOT / top):
            folders[:] = [name for name in folders if name not in LEFT_OUT]
            yield from (Path(folder, name) for name in names)
