"""Every file that discovery reads, damaged in every way: a result, never a traceback; the rest is still discovered.

Each run has 10 seconds and 2 GB of address space. A file that is there but cannot be used is named in an issue.
"""

from __future__ import annotations

import os
import sys
from collections.abc import Callable
from dataclasses import dataclass
from pathlib import Path

import pytest

from support.machine import Machine, Result
from support.packages import app_mcp, direct_add_in, manifest_add_in, settings, targets
from support.privileges import AS_A_USER, needs_a_user
from support.workspace import WorkspaceBuilder

ADDRESS_SPACE = 2 * 1024**3
DEPTH = 10**6
HUGE = 100 * 1024 * 1024

TOOL, LIB, DECLARED = direct_add_in("Acme.Tool"), direct_add_in("Acme.Lib"), manifest_add_in("Acme.Declared")
SDK = ["Uno.Settings.DevServer", "Uno.UI.App.Mcp.Server"]
ALL = [*SDK, "Acme.Declared", "Acme.Tool", "Acme.Lib"]


@dataclass(frozen=True)
class Kind:
    """A kind of file, where it lies, and which add-ins must be found whatever becomes of it."""

    path: str
    rest: list[str]
    solution: str = "App.slnx"
    restore_files: tuple[str, ...] = ("assets", "g", "cache", "dgspec")
    # Without it there is no workspace, and nothing to find.
    essential: bool = False
    # What is left of it when cut in the middle is valid too.
    cut_is_valid: bool = False
    # Read only for details: what is lost with it is not worth an issue.
    silent: bool = False

    def locate(self, machine: Machine) -> Path:
        return Path(self.path.format(ws=machine.workspace, nuget=machine.nuget))


KINDS = {
    "global.json": Kind("{ws}/global.json", [], essential=True),
    ".sln": Kind("{ws}/App.sln", ALL, solution="App.sln", essential=True, cut_is_valid=True),
    ".slnx": Kind("{ws}/App.slnx", ALL, essential=True),
    "packages.json": Kind(
        "{nuget}/uno.sdk/6.5.31/targets/netstandard2.0/packages.json", ["Acme.Declared", "Acme.Tool", "Acme.Lib"]
    ),
    "project.assets.json": Kind(
        "{ws}/src/App/obj/project.assets.json", [*SDK, "Acme.Lib"], restore_files=("assets", "cache")
    ),
    "g.props": Kind("{ws}/src/App/obj/App.csproj.nuget.g.props", [*SDK, "Acme.Lib"]),
    "g.targets": Kind("{ws}/src/App/obj/App.csproj.nuget.g.targets", [*SDK, "Acme.Lib"]),
    ".targets": Kind("{nuget}/acme.tool/1.0.0/buildTransitive/Acme.Tool.targets", [*SDK, "Acme.Declared", "Acme.Lib"]),
    "manifest": Kind("{nuget}/acme.declared/1.0.0/devserver-addin.json", [*SDK, "Acme.Tool", "Acme.Lib"]),
    "nuget.config": Kind("{ws}/nuget.config", ALL),
    "project": Kind("{ws}/src/App/App.csproj", ALL),
    "Directory.Build.props": Kind("{ws}/Directory.Build.props", ALL),
    "project.nuget.cache": Kind("{ws}/src/App/obj/project.nuget.cache", ALL, silent=True),
}


@dataclass(frozen=True)
class Harm:
    do: Callable[[Path], None]
    # A byte order mark does no harm: everything is found, and there is nothing to say.
    harmless: bool = False
    # As good as no file: named or not, what is lost by it is not lost in silence.
    absent: bool = False
    # Fine for a reader that can bear it.
    bearable: bool = False


def _rewrite(change: Callable[[bytes], bytes]) -> Callable[[Path], None]:
    return lambda path: _write(path, change(path.read_bytes()))


def _write(path: Path, content: bytes) -> None:
    path.write_bytes(content)


def _instead(make: Callable[[Path], object]) -> Callable[[Path], None]:
    def replace(path: Path) -> None:
        path.unlink()
        make(path)

    return replace


def _without_mark(content: bytes) -> str:
    return content.decode("utf-8-sig")


def _nested(path: Path) -> None:
    """Valid, and deep: something that nobody asked for stands in front of the content."""
    old = path.read_bytes()
    if path.suffix in (".json", ".cache"):
        _write(path, b'{"deep":' + b"[" * DEPTH + b"]" * DEPTH + b"," + old[old.index(b"{") + 1 :])
    elif path.suffix == ".sln":
        _write(
            path, old.replace(b"\nGlobal\r", b"\n" + b"GlobalSection(A) = preSolution\n" * (DEPTH // 10) + b"Global\r")
        )
    else:
        start = old.index(b">", max(old.find(b"<Project"), old.find(b"<Solution"), old.find(b"<config"))) + 1
        deep = b"<PropertyGroup><Deep>" + b"<b>" * DEPTH + b"</b>" * DEPTH + b"</Deep></PropertyGroup>"
        _write(path, old[:start] + deep + old[start:])


def _unclosed(path: Path) -> None:
    _write(path, b"[" * DEPTH if path.suffix in (".json", ".cache") else b"<Project>" * DEPTH)


def _entity_bomb(path: Path) -> None:
    entities = "".join(f'<!ENTITY e{n} "{f"&e{n - 1};" * 10}">' for n in range(1, 12))
    root = "Solution" if path.suffix == ".slnx" else "Project"
    _write(path, f'<!DOCTYPE x [<!ENTITY e0 "boom">{entities}]><{root}><a>&e11;</a></{root}>'.encode())


def _loop(path: Path) -> None:
    other = path.with_name(path.name + ".loop")
    other.symlink_to(path)
    path.symlink_to(other)


def _huge(path: Path) -> None:
    path.write_bytes(b"")
    os.truncate(path, HUGE)


HARMS = {
    "a byte order mark": Harm(_rewrite(lambda old: b"\xef\xbb\xbf" + _without_mark(old).encode()), harmless=True),
    "UTF-16": Harm(_rewrite(lambda old: _without_mark(old).encode("utf-16")), harmless=True),
    "CRLF": Harm(_rewrite(lambda old: old.replace(b"\r\n", b"\n").replace(b"\n", b"\r\n")), harmless=True),
    "emptiness": Harm(lambda path: _write(path, b"")),
    "truncation": Harm(_rewrite(lambda old: old[: len(old) // 2])),
    "binary": Harm(lambda path: _write(path, bytes(range(256)) * 40)),
    "nesting": Harm(_nested, bearable=True),
    "unclosed nesting": Harm(_unclosed),
    "an entity bomb": Harm(_entity_bomb),
    "a folder": Harm(_instead(Path.mkdir), absent=True),
    "a link to nothing": Harm(_instead(lambda path: path.symlink_to("nothing")), absent=True),
    "a link to itself": Harm(_instead(_loop), absent=True),
    "100 MB": Harm(_huge),
}
if sys.platform != "win32":  # where no file is a pipe
    HARMS["a pipe"] = Harm(_instead(os.mkfifo), absent=True)


def _workspace(machine: Machine, kind: Kind) -> WorkspaceBuilder:
    machine.install_dotnet()
    workspace = WorkspaceBuilder(machine).uno_6_5().nuget_config()
    workspace.file(
        "Directory.Build.props", "<Project>\n  <PropertyGroup>\n    <Mine>1</Mine>\n  </PropertyGroup>\n</Project>\n"
    )
    workspace.project("src/App/App.csproj", [TOOL, DECLARED], restore_files=kind.restore_files)
    return workspace.project("src/Lib/Lib.csproj", [LIB]).solution(kind.solution)


def _names(result: Result) -> list[str]:
    return [Path(path).stem for path in result.add_ins]


@pytest.mark.parametrize("harm", HARMS)
@pytest.mark.parametrize("kind", KINDS)
def test_a_damaged_file_is_named_and_the_rest_is_discovered(machine: Machine, kind: str, harm: str) -> None:
    # given
    damage, file = HARMS[harm], KINDS[kind]
    _workspace(machine, file)
    path = file.locate(machine)
    damage.do(path)

    # when
    result = machine.run("disco", "--json", address_space=ADDRESS_SPACE)

    # then
    assert result.exit_code in (0, 1)
    found, issues = set(_names(result)), result.json["issues"]
    if damage.harmless:
        assert (sorted(found), issues) == (sorted(ALL), [])
    elif damage.absent:
        assert file.essential or set(file.rest) <= found
        assert issues or found == set(ALL)
    else:
        assert set(file.rest) <= found
        named = any(str(path) in issue["message"] for issue in issues)
        fine = (damage.bearable and found == set(ALL)) or (file.cut_is_valid and harm == "truncation")
        assert named or fine or file.silent, result.issue_codes


@pytest.mark.parametrize("kind", KINDS)
def test_an_undamaged_workspace_has_all_add_ins_and_no_issue(machine: Machine, kind: str) -> None:
    """What the test above compares with."""
    _workspace(machine, KINDS[kind])

    result = machine.run("disco", "--json", address_space=ADDRESS_SPACE)

    assert KINDS[kind].locate(machine).is_file()
    assert (result.exit_code, sorted(_names(result)), result.json["issues"]) == (0, sorted(ALL), [])


@needs_a_user
@pytest.mark.parametrize("kind", KINDS)
def test_a_file_that_may_not_be_read_is_named(machine: Machine, kind: str) -> None:
    _workspace(machine, KINDS[kind])
    path = KINDS[kind].locate(machine)
    path.chmod(0)

    result = machine.run("disco", "--json", prefix=AS_A_USER)

    assert set(KINDS[kind].rest) <= set(_names(result))
    assert KINDS[kind].silent or any(str(path) in issue["message"] for issue in result.json["issues"])


# --- folders -------------------------------------------------------------------------------------------------------


def test_a_tree_that_contains_itself_by_links_is_searched_once(machine: Machine) -> None:
    workspace = _workspace(machine, KINDS[".slnx"])
    for name in ("loop", "src/loop", "src/App/loop"):
        (workspace.root / name).symlink_to(workspace.root)

    result = machine.disco()

    assert result.json["candidateSolutions"] == [str(workspace.root / "App.slnx")]
    assert sorted(_names(result)) == sorted(ALL)


@pytest.mark.parametrize("folder", ["src/App/obj", "src/App"])
def test_a_folder_that_is_a_link_to_itself_loses_only_its_project(machine: Machine, folder: str) -> None:
    workspace = _workspace(machine, KINDS[".slnx"])
    place = workspace.root / folder
    place.rename(machine.root / "away")
    place.symlink_to(place)

    result = machine.disco()

    assert set(_names(result)) == {*SDK, "Acme.Lib"}
    assert str(workspace.root / "src/App/App.csproj") in " ".join(issue["message"] for issue in result.json["issues"])


@pytest.mark.parametrize(
    "make", [Path.touch, lambda path: os.mkfifo(path), lambda path: path.symlink_to(path)], ids=["file", "pipe", "loop"]
)
def test_a_nuget_cache_that_is_no_folder_leaves_the_cache_at_home(
    machine: Machine, make: Callable[[Path], None]
) -> None:
    home = machine.home / ".nuget" / "packages"
    workspace = WorkspaceBuilder(machine).uno_sdk(cache=home).package(settings(), app_mcp(), cache=home)
    workspace.project("App/App.csproj", restored=False).solution("App.slnx")
    place = machine.root / "strange"
    make(place)

    result = machine.disco(env={"NUGET_PACKAGES": str(place)})

    assert _names(result) == SDK


def test_a_package_folder_that_is_a_file_is_a_package_that_is_not_there(machine: Machine) -> None:
    workspace = _workspace(machine, KINDS[".slnx"])
    folder = machine.nuget / TOOL.path
    folder.rename(machine.root / "away")
    folder.touch()

    result = machine.disco()

    assert sorted(_names(result)) == sorted(set(ALL) - {"Acme.Tool"})
    assert "Acme.Tool" in result.issue("AddInPackageNotCached")["message"]
    assert workspace.root.exists()


# --- contents ------------------------------------------------------------------------------------------------------


@pytest.mark.parametrize(
    "text",
    [
        "null",
        "[]",
        '"text"',
        "1e999",
        '{"msbuild-sdks": []}',
        '{"msbuild-sdks": {"Uno.Sdk": null}}',
        '{"msbuild-sdks": {"Uno.Sdk": 6.5}}',
        '{"msbuild-sdks": {"Uno.Sdk": ""}}',
        '{"msbuild-sdks": {"Uno.Sdk": {"version": "6.5.31"}}}',
    ],
)
def test_a_global_json_of_another_shape_is_no_workspace(machine: Machine, text: str) -> None:
    _workspace(machine, KINDS["global.json"]).file("global.json", text)

    result = machine.disco()

    assert (result.exit_code, result.json["resolutionKind"]) == (1, "NoValidWorkspace")
    assert any(str(machine.workspace / "global.json") in issue["message"] for issue in result.json["issues"])


@pytest.mark.parametrize(
    "version", ["../../../etc", "/etc", "6.5.31/../6.5.31", "..", "6.5.31\\u0000", "C:\\\\x", "x" * 5000]
)
def test_a_version_that_is_a_path_leads_nowhere(machine: Machine, version: str) -> None:
    _workspace(machine, KINDS["global.json"]).file("global.json", f'{{"msbuild-sdks": {{"Uno.Sdk": "{version}"}}}}')

    result = machine.disco()

    assert result.exit_code == 1
    assert result.json["unoSdkPath"] is None


@pytest.mark.parametrize(
    "text",
    [
        "null",
        "{}",
        "[null, 1, [], {}]",
        '[{"version": 1, "packages": "Uno.UI.App.Mcp"}]',
        '[{"version": "1.1.0", "packages": [null, 3, {}, "../../x", "", "Uno.UI.App.Mcp"]}]',
        '[{"version": "1.1.0", "packages": ["Uno.UI.App.Mcp"], "versionOverride": ["x"]}]',
        '[{"version": "1.1.0", "packages": ["Uno.UI.App.Mcp"], "versionOverride": {"net10.0": 3}}]',
        '[{"version": "../..", "packages": ["Uno.UI.App.Mcp"]}]',
    ],
)
def test_a_packages_json_of_another_shape_hides_only_what_it_does_not_say(machine: Machine, text: str) -> None:
    _workspace(machine, KINDS["packages.json"])
    KINDS["packages.json"].locate(machine).write_text(text, "utf-8")

    result = machine.disco()

    assert result.exit_code == 1, "the Host is not in this list"
    assert {"Acme.Declared", "Acme.Tool", "Acme.Lib"} <= set(_names(result))


@pytest.mark.parametrize(
    "text",
    [
        "null",
        "[]",
        "{}",
        '{"version": 99}',
        '{"version": 4, "targets": [], "libraries": 3, "packageFolders": "x", "project": []}',
        '{"libraries": {"Acme.Tool/1.0.0": null, "NoSlash": {}, "/": {}, "Acme.Tool/": {"type": "package"}}}',
        '{"libraries": {"../../x/1.0.0": {"type": "package", "path": "../../../x"}}}',
        '{"targets": {"net10.0": {"Acme.Tool/1.0.0": {"type": "package", "build": {"../../../x.targets": {}}}}}}',
        # laid out as NuGet does, with other things inside
        '{\n  "version": 4,\n  "targets": {\n    "net10.0": {\n      "Acme.Tool/1.0.0": {\n        "type": 3\n}}}\n}',
    ],
)
def test_an_assets_file_of_another_shape_loses_only_its_project(machine: Machine, text: str) -> None:
    kind = KINDS["project.assets.json"]
    _workspace(machine, kind)
    kind.locate(machine).write_text(text, "utf-8")

    result = machine.disco()

    assert result.exit_code == 0
    assert set(kind.rest) <= set(_names(result)) <= set(ALL)


@pytest.mark.parametrize(
    "text",
    [
        '{"version": "one", "addins": []}',
        '{"version": 1, "addins": {}}',
        '{"version": 1, "addins": [null, 1, [], {}]}',
        '{"version": 1, "addins": [{"entryPoint": 3}]}',
        '{"version": 1, "addins": [{"entryPoint": ""}]}',
        '{"version": 1, "addins": [{"entryPoint": "tools/devserver/\\u0000.dll"}]}',
        '{"version": 1, "addins": [{"entryPoint": "tools/devserver/Acme.Declared.dll", "minHostVersion": {}}]}',
        '{"version": 1e400, "addins": []}',
    ],
)
def test_a_manifest_of_another_shape_loses_at_most_its_package(machine: Machine, text: str) -> None:
    kind = KINDS["manifest"]
    _workspace(machine, kind)
    kind.locate(machine).write_text(text, "utf-8")

    result = machine.disco()

    assert result.exit_code == 0
    assert set(kind.rest) <= set(_names(result)) <= set(ALL)


@pytest.mark.parametrize(
    "path",
    [
        "",
        "/",
        "..",
        "../../../../../etc",
        "src/App",
        "CON",
        "http://localhost/x.csproj",
        "\\\\server\\x.csproj",
        "x\t\n.csproj",
    ],
)
def test_a_solution_with_strange_paths_keeps_its_other_projects(machine: Machine, path: str) -> None:
    workspace = _workspace(machine, KINDS[".sln"])
    workspace.solution("App.sln", [path, "src/Lib/Lib.csproj"])

    result = machine.disco()

    assert "Acme.Lib" in _names(result)


@pytest.mark.parametrize(
    "include",
    [
        "$(" * 10000,
        "$([System.IO.File]::ReadAllText('/etc/hostname'))",
        "$([System.String]::new('x').PadLeft(2000000000))",
        "/**/*.dll",
        "$(MSBuildThisFileDirectory)../**/../**/../**/*.dll",
        "%00",
        "@(UnoRemoteControlAddIns)",
        "a;" * 20000,
    ],
    ids=["references", "file", "memory", "whole disk", "wildcards", "NUL", "itself", "many"],
)
def test_a_hostile_include_costs_no_more_than_its_package(machine: Machine, include: str) -> None:
    kind = KINDS[".targets"]
    _workspace(machine, kind)
    kind.locate(machine).write_text(targets(include), "utf-8")

    result = machine.run("disco", "--json", address_space=ADDRESS_SPACE)

    assert set(kind.rest) <= set(_names(result))


def test_properties_that_double_each_other_do_not_fill_the_memory(machine: Machine) -> None:
    kind = KINDS[".targets"]
    _workspace(machine, kind)
    doubling = "".join(f"<P{n}>$(P{n - 1})$(P{n - 1})</P{n}>" for n in range(1, 64))
    text = targets("$(P63)").replace("<ItemGroup>", f"<PropertyGroup><P0>x</P0>{doubling}</PropertyGroup><ItemGroup>")
    kind.locate(machine).write_text(text, "utf-8")

    result = machine.run("disco", "--json", address_space=ADDRESS_SPACE)

    assert set(kind.rest) <= set(_names(result))
    assert any(str(kind.locate(machine)) in issue["message"] for issue in result.json["issues"])


def test_a_condition_of_a_million_brackets_is_a_warning(machine: Machine) -> None:
    kind = KINDS[".targets"]
    _workspace(machine, kind)
    condition = "(" * DEPTH + "true" + ")" * DEPTH
    kind.locate(machine).write_text(targets("x", group_condition=condition), "utf-8")

    result = machine.run("disco", "--json", address_space=ADDRESS_SPACE)

    assert set(kind.rest) <= set(_names(result))
    assert any(str(kind.locate(machine)) in issue["message"] for issue in result.json["issues"])
