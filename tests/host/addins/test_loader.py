"""From `--addins` to add-ins: nothing that an add-in does while it loads hurts anything but itself."""

from __future__ import annotations

import asyncio
import importlib.util
import py_compile
import re
import sys
import threading
from pathlib import Path
from typing import Any, NoReturn

import pytest

from support.addins import AddInFolder, health_of, text_of
from support.waiting import until
from uno_devserver.discovery import discover
from uno_devserver.host.addins.loader import chosen_addins, name_of, parse_addins
from uno_devserver.host.addins.manager import AddInLimits
from uno_devserver.host.flags import read_flags
from uno_devserver.host.health import AddInStatus

GOOD = """
def register(addin):
    @addin.tool
    def hello() -> str:
        return "hello"
"""


@pytest.mark.parametrize(
    ("value", "paths"),
    [
        ("", []),
        (";", []),
        (" ; ;; ", []),
        ("/a.py", ["/a.py"]),
        (" /a.py ; /b.py;", ["/a.py", "/b.py"]),
        ("/my add-ins/a b.py;/c.py", ["/my add-ins/a b.py", "/c.py"]),
        ("/A.py;/a.py;/b.py;/B.PY", ["/A.py", "/b.py"]),
        ("relative.py;/a,b.py", ["relative.py", "/a,b.py"]),
        ("C:\\x\\a.dll;\\\\server\\b.dll", ["C:\\x\\a.dll", "\\\\server\\b.dll"]),
    ],
)
def test_the_value_of_addins_is_split_trimmed_and_made_distinct(value: str, paths: list[str]) -> None:
    assert parse_addins(value) == paths


@pytest.mark.parametrize(
    ("path", "name"),
    [
        ("/a/notes.py", "notes"),
        ("/a/notes", "notes"),
        ("/a/notes/", "notes"),
        ("/a/notes/__init__.py", "notes"),
        ("/a/Uno.Settings.DevServer.dll", "Uno.Settings.DevServer"),
        ("/a/my.tools", "my.tools"),
    ],
)
def test_an_add_in_is_called_as_its_file_or_folder(path: str, name: str) -> None:
    assert name_of(path) == name


async def load(addins: AddInFolder, path: str, **options: Any) -> AddInStatus:
    """Load one add-in beside a good one, which must not suffer."""
    good = addins.write("good.py", GOOD)
    async with addins.serve(path, good, **options) as client:
        assert text_of(await client.call("hello")) == "hello"
        bad, well = client.addins.status.addins
        health = await health_of(client)
        tools = await client.tools()
    assert well == AddInStatus("good", good, loaded=True)
    assert health["status"] == ("Healthy" if bad.loaded else "Degraded")
    assert health["addIns"][0]["error"] == bad.error
    if not bad.loaded:
        assert list(tools) == ["uno_health", "hello"]
    return bad


@pytest.mark.parametrize(
    ("source", "reason"),
    [
        ("def register(:", "SyntaxError: invalid syntax ({path}:1)"),
        ("import nothing_like_this", "ModuleNotFoundError: No module named 'nothing_like_this' ({path}:1)"),
        ("x = 1", "it has no function register(addin) ({path})"),
        ("register = 1", "it has no function register(addin) ({path})"),
        ("raise ValueError('top\\nlevel')", "ValueError: top level ({path}:1)"),
        ("import sys\nsys.exit(3)", "SystemExit: 3 ({path}:2)"),
        ("def register(addin):\n    raise KeyboardInterrupt", "KeyboardInterrupt ({path}:2)"),
        (
            "def register(addin):\n    helper()\ndef helper():\n    1 / 0",
            "ZeroDivisionError: division by zero ({path}:4)",
        ),
        ("def register(addin):\n    register(addin)", "RecursionError: maximum recursion depth exceeded ({path}:2)"),
        (
            "async def register(addin):\n    pass",
            "register(addin) cannot be async; what has to wait goes into on_start",
        ),
        (
            "def register(addin):\n    addin.resource(max)",
            'write @addin.resource("notes://today"), not max() ({path}:2)',
        ),
        ("def register(addin):\n    addin.processor(max)", 'write @addin.processor("Acme.Scope"), not max()'),
        ("def register(addin):\n    addin.ide_message(max)", 'write @addin.ide_message("Acme.Message"), not max()'),
        ("def register(addin):\n    addin.background(print)", "TypeError: print() must be async: a plain one would"),
        ("def register():\n    pass", "TypeError: register() takes 0 positional arguments but 1 was given"),
        (
            "def register(addin):\n    @addin.tool\n    def t(x: Nope) -> str: ...",
            "NameError: name 'Nope' is not defined ({path}:3)",
        ),
        (
            "def register(addin):\n    @addin.tool\n    def hello() -> str: ...\n    addin.tool(hello)",
            "ValueError: the tool 'hello' is registered twice ({path}:4)",
        ),
        ("\0", "source code string cannot contain null bytes"),
    ],
)
async def test_an_add_in_that_cannot_be_loaded_says_why_and_where(
    addins: AddInFolder, source: str, reason: str
) -> None:
    path = addins.write("bad.py", source)
    expected = reason.format(path=path)

    status = await load(addins, path)

    assert (status.name, status.path, status.loaded) == ("bad", path, False)
    assert expected in str(status.error)
    assert "\n" not in str(status.error)
    assert path not in {getattr(module, "__file__", None) for module in sys.modules.values()}


async def test_what_a_failed_add_in_registered_before_is_not_offered(addins: AddInFolder) -> None:
    path = addins.write("bad.py", GOOD.replace("hello", "early") + "\n    raise ValueError\n")

    status = await load(addins, path)

    assert str(status.error).startswith("ValueError (")


@pytest.mark.parametrize(
    ("path", "reason"),
    [
        ("relative/a.py", "relative/a.py is not an absolute path"),
        ("{folder}/missing.py", "{folder}/missing.py does not exist"),
        ("{folder}/Missing.AddIn.dll", "{folder}/Missing.AddIn.dll does not exist"),
        ("{folder}/Some.AddIn.dll", "{folder}/Some.AddIn.dll is a .NET assembly, which only the .NET Host loads"),
        ("{folder}/empty", "{folder}/empty is a folder without an __init__.py"),
        ("{folder}/notes.txt", "{folder}/notes.txt is neither a Python file nor a package folder"),
    ],
)
async def test_a_path_that_is_no_add_in_is_reported(addins: AddInFolder, path: str, reason: str) -> None:
    addins.write("Some.AddIn.dll", "MZ")
    addins.write("notes.txt", "")
    (addins.folder / "empty").mkdir()

    status = await load(addins, path.format(folder=addins.folder))

    assert str(status.error).startswith(reason.format(folder=addins.folder))
    assert not status.loaded


async def test_an_add_in_that_hangs_is_left_out_in_time_and_stopped(addins: AddInFolder) -> None:
    path = addins.write("bad.py", "def register(addin):\n    while True:\n        pass\n")

    status = await load(addins, path, limits=AddInLimits(load=0.8))

    assert str(status.error).startswith("it did not finish loading within 0.8 s")
    assert f"({path}:" in str(status.error)
    await until(lambda: not [thread for thread in threading.enumerate() if thread.name == "load bad"])


async def test_an_add_in_that_wakes_up_too_late_stays_out(addins: AddInFolder, tmp_path: Path) -> None:
    source = f"""
    import time, pathlib
    def register(addin):
        go = pathlib.Path({str(tmp_path)!r}, "go")
        while True:
            try:
                while not go.exists():
                    time.sleep(0.01)
                break
            except SystemExit:
                pass
        addin.tool(late)
        go.with_name("went").touch()
    def late() -> str:
        return "late"
    """
    path = addins.write("bad.py", source)
    async with addins.serve(path, limits=AddInLimits(load=0.2)) as client:
        (tmp_path / "go").touch()
        await until((tmp_path / "went").exists)
        tools = await client.tools()
        (status,) = client.addins.status.addins

    assert list(tools) == ["uno_health"]
    assert not status.loaded


async def test_a_reason_is_short(addins: AddInFolder) -> None:
    path = addins.write("bad.py", "raise ValueError('x' * 10_000)")

    status = await load(addins, path)

    assert str(status.error).endswith(f"xxx ({path}:1)")
    assert len(str(status.error)) < 1000


async def test_a_package_may_import_its_own_modules_and_nothing_is_written_beside_it(
    addins: AddInFolder, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setattr(sys, "dont_write_bytecode", False)
    addins.write(
        "my tools/__init__.py",
        """
        __version__ = "1.4"
        from . import words
        from .words import WORD
        def register(addin):
            @addin.tool
            def word() -> str:
                from .later import LATER
                return WORD + LATER
        """,
    )
    addins.write("my tools/words.py", "WORD = 'spam'")
    addins.write("my tools/later.py", "LATER = ' and eggs'")
    paths = sys.path.copy()
    async with addins.serve(str(addins.folder / "my tools")) as client:
        said = await client.call("word")
        (status,) = client.addins.status.addins

    assert text_of(said) == "spam and eggs"
    assert status == AddInStatus("my tools", str(addins.folder / "my tools"), "1.4", True)
    assert sys.path == paths
    assert "words" not in sys.modules
    assert not list(addins.folder.rglob("__pycache__"))


OTHER = GOOD.replace('"hello"', '"other code"')


def compile_other(source: str, copy: str | None = None) -> None:
    """Put bytecode of other code than this source where Python looks for it; Python would not compare the two."""
    other = Path(source).with_suffix(".txt")
    other.write_text(OTHER)
    unchecked = py_compile.PycInvalidationMode.UNCHECKED_HASH
    py_compile.compile(
        str(other), copy or importlib.util.cache_from_source(source), dfile=source, invalidation_mode=unchecked
    )


@pytest.mark.parametrize("module", ["greeter.py", "greeter/__init__.py", "greeter/_h.py", "greeter/deep/er/_h.py"])
async def test_a_compiled_copy_of_other_code_is_not_run_instead_of_the_source(addins: AddInFolder, module: str) -> None:
    source = addins.write(module, GOOD)
    if module.endswith("_h.py"):
        name = module.removesuffix(".py").replace("/", ".").removeprefix("greeter.")
        addins.write("greeter/__init__.py", f"from .{name} import register")
    compile_other(source)

    async with addins.serve(str(addins.folder / module.split("/")[0])) as client:
        assert text_of(await client.call("hello")) == "hello"


@pytest.mark.parametrize("module", ["_h.pyc", "_h/__init__.pyc"])
@pytest.mark.parametrize("statement", ["from ._h import register", "from . import _h\nregister = _h.register"])
async def test_bytecode_without_its_source_is_not_run(addins: AddInFolder, module: str, statement: str) -> None:
    addins.write("greeter/__init__.py", statement)
    compiled = addins.folder / "greeter" / module
    compile_other(str(addins.folder / "greeter" / "_h.py"), str(compiled))

    status = await load(addins, str(addins.folder / "greeter"))

    assert str(status.error).startswith(f"ImportError: {compiled} is bytecode, and its source is missing (")


async def test_a_source_that_is_no_utf_8_says_so(addins: AddInFolder) -> None:
    path = addins.folder / "bad.py"
    path.write_bytes(b"NAME = 'caf\xe9'\n")

    status = await load(addins, str(path))

    # Python's own words: since 3.14 "Non-UTF-8 code starting with …", before "'utf-8' codec can't …"
    assert re.match(r"SyntaxError: .*utf-8.*xe9", str(status.error), re.IGNORECASE)
    assert str(path) in str(status.error)


@pytest.mark.parametrize("name", ["my tools", 'it\'s "so"', "café ☕", "a.b.c", "-x", "100%"])
@pytest.mark.parametrize("kind", ["{}.py", "{}/__init__.py"])
async def test_an_add_in_may_have_any_name_also_behind_a_link(addins: AddInFolder, name: str, kind: str) -> None:
    addins.write("real/" + kind.format(name), GOOD if kind == "{}.py" else "from .one import register")
    addins.write(f"real/{name}/one.py", GOOD)
    (addins.folder / "link").symlink_to(addins.folder / "real")

    async with addins.serve(str(addins.folder / "link" / kind.format(name))) as client:
        assert client.addins.status.addins[0].name == name
        assert text_of(await client.call("hello")) == "hello"


async def test_the_file_of_a_package_means_the_package(addins: AddInFolder) -> None:
    path = addins.write("pack/__init__.py", "from .one import register")
    addins.write("pack/one.py", GOOD)

    async with addins.serve(path) as client:
        assert text_of(await client.call("hello")) == "hello"
        assert client.addins.status.addins[0].name == "pack"


async def test_a_file_does_not_see_its_neighbours(addins: AddInFolder) -> None:
    addins.write("neighbour_of_bad.py", "X = 1")
    path = addins.write("bad.py", "import neighbour_of_bad")

    status = await load(addins, path)

    assert str(status.error).startswith("ModuleNotFoundError: No module named 'neighbour_of_bad'")


async def test_two_add_ins_of_one_name_do_not_meet(addins: AddInFolder) -> None:
    source = "STATE = []\ndef register(addin):\n    STATE.append(1)\n    addin.tool(name='{0}')(count)\n"
    source += "def count() -> int:\n    return len(STATE)\n"
    paths = [addins.write(f"{folder}/same.py", source.format(folder)) for folder in ("a", "b")]

    async with addins.serve(*paths) as client:
        assert text_of(await client.call("a")) == text_of(await client.call("b")) == "1"


async def test_a_failed_import_inside_a_package_names_its_line(addins: AddInFolder) -> None:
    addins.write("bad/__init__.py", "from .broken import register")
    broken = addins.write("bad/broken.py", "\n\nx = undefined\n")

    status = await load(addins, str(addins.folder / "bad"))

    assert status.error == f"NameError: name 'undefined' is not defined ({broken}:3)"
    assert broken not in {getattr(module, "__file__", None) for module in sys.modules.values()}


async def test_an_addin_that_needs_the_sdk_says_how_to_get_it(
    addins: AddInFolder, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setitem(sys.modules, "mcp", None)  # as if it were not installed
    path = addins.write("server.py", "import mcp\n")

    async with addins.serve(path) as client:
        (addin,) = (await health_of(client))["addIns"]

    assert addin["error"].startswith("ModuleNotFoundError: ")
    assert addin["error"].endswith(f": install uno-devserver[sdk] ({path}:1)")


def chosen(*arguments: str) -> tuple[list[str], str | None]:
    return asyncio.run(chosen_addins(read_flags(arguments, {}), {"PATH": "/nowhere"}))


@pytest.fixture
def solution(tmp_path: Path) -> str:
    path = tmp_path / "App.sln"
    path.touch()
    return str(path)


def test_what_the_host_is_told_counts_and_nobody_is_asked(solution: str) -> None:
    assert chosen("--addins", "/a/x.py; ;/b/y.py", "--solution", solution) == (["/a/x.py", "/b/y.py"], None)
    assert chosen("--addins", "", "--solution", solution) == ([], None)


def test_a_relative_path_is_one_of_the_workspace(tmp_path: Path) -> None:
    assert chosen("--addins", "x;y/a.py", "--workingDir", str(tmp_path)) == (
        [str(tmp_path / "x"), str(tmp_path / "y" / "a.py")],
        None,
    )


def test_msbuild_can_be_asked_whatever_the_host_is_told(solution: str) -> None:
    paths, problem = chosen("--addins", "/a/x.py", "--solution", solution, "--force-msbuild-discovery")

    assert paths == []
    assert problem is not None
    assert "dotnet" in problem


def test_without_a_solution_there_is_nothing_to_ask_msbuild_about() -> None:
    assert chosen("--addins", "/a/x.py", "--force-msbuild-discovery") == (["/a/x.py"], None)
    assert chosen("--force-msbuild-discovery") == ([], None)


def test_a_discovery_that_fails_is_a_reason_and_not_an_end(monkeypatch: pytest.MonkeyPatch, solution: str) -> None:
    def fail(*_: object) -> NoReturn:
        raise LookupError("no such thing")

    monkeypatch.setattr(discover, "discover_addins", fail)

    assert chosen("--solution", solution) == ([], "The discovery of add-ins failed: LookupError('no such thing').")
