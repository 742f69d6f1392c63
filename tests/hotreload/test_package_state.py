"""Compiled copies and syntax errors of Python packages, builds of used packages, and the code of C# projects."""

from __future__ import annotations

import os
import py_compile
import subprocess
import sys
from collections.abc import Iterator
from pathlib import Path

import pytest

from support.dotnet_cli import RecordedDotNet, RecordedProject
from uno_devserver.hotreload.digest_store import DigestStore
from uno_devserver.hotreload.package_state import BuildSettings, PackageState
from uno_devserver.hotreload.python_syntax import remove_bytecode, syntax_errors
from uno_devserver.hotreload.watched_package import Role, WatchedPackage

from .projects import Project, stand_in_npm
from .sources.found import link


def test_code_that_a_newer_python_may_understand_is_no_error(tmp_path: Path) -> None:
    (tmp_path / "newer.py").write_text("print 'valid there'\n", "utf-8")
    described = tmp_path / ".venv" / "pyvenv.cfg"
    described.parent.mkdir()

    for version, is_error in (("3.99.1", False), ("3.8.0", True), ("unknown", True)):
        described.write_text(f"home = /usr/bin\nversion = {version}\n", "utf-8")
        assert (syntax_errors(str(tmp_path), ["newer.py"], os.environ) is not None) is is_error, version
    assert syntax_errors(str(tmp_path), ["newer.py"]) is not None, "add-ins run in ours"


def _imported(folder: Path) -> str:
    line = [sys.executable, "-c", "import words; print(words.WORD)"]
    return subprocess.run(line, cwd=folder, capture_output=True, text=True, check=True).stdout.strip()


def _saved_within_the_same_second(source: Path, word: str) -> None:
    source.write_text(f'WORD = "{word}"\n', "utf-8")
    os.utime(source, (1_000_000, 1_000_000))


def test_an_edit_that_python_cannot_tell_from_the_code_before_is_imported(tmp_path: Path) -> None:
    source = tmp_path / "words.py"
    _saved_within_the_same_second(source, "one")
    py_compile.compile(str(source))
    _saved_within_the_same_second(source, "two")
    assert _imported(tmp_path) == "one", "else this test shows nothing"

    remove_bytecode(str(tmp_path), ["words.py"])

    assert _imported(tmp_path) == "two"


def test_only_copies_of_the_changed_sources_go(tmp_path: Path) -> None:
    copies = tmp_path / "pkg" / "__pycache__"
    copies.mkdir(parents=True)
    names = ("a.cpython-311.pyc", "a.cpython-313.opt-1.pyc", "ab.cpython-311.pyc", "a.txt", "b.cpython-311.pyc")
    for name in names:
        (copies / name).touch()

    remove_bytecode(str(tmp_path), ["pkg/a.py", "pkg/b.txt", "gone/c.py"])

    assert sorted(path.name for path in copies.iterdir()) == ["a.txt", "ab.cpython-311.pyc", "b.cpython-311.pyc"]


def test_all_errors_are_told_by_name_as_python_prints_them(tmp_path: Path) -> None:
    (tmp_path / "a.py").write_text("x = 1\nprint(x y)\n")
    (tmp_path / "b.py").write_text("def f(:\n")

    lines = (syntax_errors(str(tmp_path), ["b.py", "a.py"]) or "").splitlines()

    assert lines[:3] == [f'  File "{tmp_path}/a.py", line 2', "    print(x y)", "          ^^^"]
    assert lines[3].startswith("SyntaxError: ")
    assert f'  File "{tmp_path}/b.py", line 1' in lines


@pytest.mark.parametrize(
    "content", [b"a = 1\0", b"\xff\xfe", b"# coding: nonsense\n", b"if x:\nreturn", b"(" * 100_000]
)
def test_whatever_python_cannot_read_is_an_error_that_names_the_file(tmp_path: Path, content: bytes) -> None:
    (tmp_path / "a.py").write_bytes(content)

    assert "a.py" in (syntax_errors(str(tmp_path), ["a.py"]) or "")


def test_nothing_is_run_and_what_is_no_code_or_cannot_be_read_is_no_error(tmp_path: Path) -> None:
    (tmp_path / "a.py").write_text(f"open({str(tmp_path / 'ran')!r}, 'w')\nraise SystemExit\n")
    (tmp_path / "notes.txt").write_text("no code at all")
    (tmp_path / "folder.py").mkdir()

    assert syntax_errors(str(tmp_path), ["a.py", "notes.txt", "folder.py", "missing.py"]) is None
    assert not (tmp_path / "ran").exists()


async def test_the_sdk_says_what_the_code_of_a_watched_csharp_project_is(tmp_path: Path) -> None:
    recorded = RecordedProject("directory-build-targets", tmp_path / "ws")
    dotnet = RecordedDotNet(tmp_path / "net")
    dotnet.knows(recorded.path, recorded.answer())
    package = WatchedPackage(Role.SERVER, str(recorded.path.parent), workspace=str(recorded.folder))
    store = DigestStore(str(tmp_path))
    state = PackageState(package, BuildSettings(store, dotnet.environ, str(tmp_path)))

    await state.disk.digest()
    state.close()

    assert sorted(state.fingerprint.files) == ["../Directory.Build.targets", "Program.cs", "S.csproj"]
    assert [call[:2] for call in dotnet.calls()] == [["msbuild", str(recorded.path)]]


# Packages that the server uses.


class UsedPackage:
    """A server and a package that it uses, each with a build that notes what it does."""

    def __init__(self, folder: Path) -> None:
        programs = folder / "programs"
        programs.mkdir(parents=True)
        stand_in_npm(programs)
        (folder / "repo/.git").mkdir(parents=True)
        self.server = Project(folder / "repo/server", programs)
        self.shared = Project(folder / "repo/shared", programs)
        self.server.describe({"build": "node tools/build.txt"}, dependencies={"shared": "*"})
        self.shared.describe({"build": "node tools/build.txt"}, main="dist/main.js")
        link(self.server.root / "node_modules/shared", self.shared.root)
        package = WatchedPackage(Role.SERVER, str(self.server.root))
        self.refusal = ""
        state = str(folder / "state")
        settings = BuildSettings(DigestStore(state), self.server.environ, state, lambda: self.refusal)
        self.state = PackageState(package, settings)

    async def make(self) -> tuple[str | None, int, int]:
        """Build; the error, and how many builds of the shared package and of the server have begun in all."""
        made = await self.state.make(lambda _message: None)
        noted = (self.shared.noted(), self.server.noted())
        shared, server = (sum(line.startswith("begin") for line in lines) for lines in noted)
        return made.error, shared, server


@pytest.fixture
def used(tmp_path: Path) -> Iterator[UsedPackage]:
    found = UsedPackage(tmp_path)
    yield found
    found.state.close()


async def test_a_used_package_is_built_before_the_server_and_only_if_it_has_changed(used: UsedPackage) -> None:
    assert await used.make() == (None, 1, 1)
    used.server.save("two")
    assert await used.make() == (None, 1, 2)
    used.shared.save("two")
    assert await used.make() == (None, 2, 3)
    assert (used.shared.root / "dist/main.js").read_text() == "two"


async def test_a_used_package_whose_output_is_missing_is_built(used: UsedPackage) -> None:
    await used.make()
    (used.shared.root / "dist/main.js").unlink()
    used.server.save("two")

    assert await used.make() == (None, 2, 2)


@pytest.mark.parametrize("entry", ["dist", "dist/main", "dist/other.js"])
async def test_a_file_that_its_build_does_not_write_is_no_reason_to_build_it_again(
    used: UsedPackage, entry: str
) -> None:
    used.shared.describe({"build": "node tools/build.txt"}, main=entry)
    await used.make()
    used.server.save("two")

    assert await used.make() == (None, 1, 2)


async def test_a_used_package_that_does_not_build_is_told_and_tried_again(used: UsedPackage) -> None:
    used.shared.save("broken")
    error, shared, server = await used.make()

    assert error is not None
    assert error.startswith(f"In {used.shared.root}:\nsrc/main.js: there is an error")
    assert (shared, server) == (1, 0)

    used.shared.save("mended")
    assert await used.make() == (None, 2, 1)


async def test_nothing_is_built_that_the_user_has_not_agreed_to(used: UsedPackage) -> None:
    used.refusal = "the script 'build' of package.json has been added since the user agreed to it"

    error, *built = await used.make()

    assert error is not None
    assert error.startswith("The build was not run: the script 'build' of package.json has been added")
    assert built == [0, 0]


async def test_a_server_without_a_build_has_its_used_packages_built(used: UsedPackage) -> None:
    used.server.describe({}, dependencies={"shared": "*"})

    assert await used.make() == (None, 1, 0)
    used.server.save("two")
    assert await used.make() == (None, 1, 0)
