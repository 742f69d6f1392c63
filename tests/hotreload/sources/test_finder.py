"""Which files are the code of a package: by what lies in its root, on real folders."""

from __future__ import annotations

import json
import os
import time
from collections.abc import Callable
from pathlib import Path

import pytest

from hotreload.trees import as_ordinary_user
from support.dotnet_cli import RecordedDotNet, RecordedProject
from support.files import write, write_all
from support.machine import WINDOWS
from uno_devserver.hotreload.sources.dotnet import may_ask_sdk
from uno_devserver.hotreload.sources.finder import PackageKind, find_sources, kind_of
from uno_devserver.hotreload.sources.source_tree import Sources
from uno_devserver.hotreload.watched_package import Role, WatchedPackage
from uno_devserver.workspace import repository
from uno_devserver.workspace.repository import ReadBudget

from .found import link, package_json

PYPROJECT = "pyproject.toml"


def package(
    root: Path, include: tuple[str, ...] = (), exclude: tuple[str, ...] = (), addins: bool = False
) -> WatchedPackage:
    return WatchedPackage(Role.SERVER, str(root), include, exclude, addins)


def find(root: Path, include: tuple[str, ...] = (), exclude: tuple[str, ...] = (), addins: bool = False) -> Sources:
    sources = find_sources(package(root, include, exclude, addins))
    for name, path in sources.files.items():
        assert os.path.isabs(path)
        assert os.path.samefile(path, root / name)
        assert os.path.dirname(path) in sources.folders | {os.path.dirname(each) for each in sources.files.values()}
    return sources


def names(root: Path, include: tuple[str, ...] = (), exclude: tuple[str, ...] = ()) -> list[str]:
    return sorted(find(root, include, exclude).files)


# The kind.


@pytest.mark.parametrize(
    ("files", "kind"),
    [
        (["tsconfig.json", "package.json"], PackageKind.TYPESCRIPT),
        (["tsconfig.build.json"], PackageKind.TYPESCRIPT),
        (["package.json", "server.py"], PackageKind.JAVASCRIPT),
        (["package.json", "pyproject.toml"], PackageKind.PYTHON),
        (["package.json", "x.csproj"], PackageKind.DOTNET),
        (["package.json", "setup.py"], PackageKind.PYTHON),
        (["deno.json", "main.ts", "tool.py"], PackageKind.OTHER),
        (["build.zig", "tool.py"], PackageKind.OTHER),
        (["pyproject.toml", "x.csproj"], PackageKind.PYTHON),
        (["x.csproj", "tool.py"], PackageKind.DOTNET),
        (["x.FSPROJ"], PackageKind.DOTNET),
        (["x.VbProj"], PackageKind.DOTNET),
        (["server.cs"], PackageKind.DOTNET),
        (["go.mod", "cmd/main.go", "tool.cs"], PackageKind.GO),
        (["server.py"], PackageKind.PYTHON),
        (["server/main.py", "notes.md"], PackageKind.PYTHON),
        (["requirements.txt", "src/server/main.py"], PackageKind.PYTHON),
        (["go.mod", "main.go", "tool.py"], PackageKind.GO),
        (["Cargo.toml", "src/main.rs", "tool.py"], PackageKind.OTHER),
        (["venv/pyvenv.cfg", "venv/x.py"], PackageKind.OTHER),
        ([], PackageKind.OTHER),
    ],
)
def test_what_lies_in_the_root_tells_the_kind(tmp_path: Path, files: list[str], kind: PackageKind) -> None:
    write_all(tmp_path, dict.fromkeys(files, ""))

    assert kind_of(package(tmp_path)) is kind


@pytest.mark.parametrize("manifest", ['{"main": "a.js"}', '{"scripts": {"start": "node ."}}', '{"bin": "a.js"}'])
def test_a_package_json_with_a_program_tells_the_kind_beside_other_manifests(tmp_path: Path, manifest: str) -> None:
    write_all(tmp_path, {"package.json": manifest, "pyproject.toml": ""})

    assert kind_of(package(tmp_path)) is PackageKind.JAVASCRIPT


def test_a_python_server_beside_a_package_json_that_only_names_tools_is_python(tmp_path: Path) -> None:
    write_all(tmp_path, {"package.json": '{"devDependencies": {"prettier": "3"}}', "server.py": "", "a.js": ""})
    server = package(tmp_path).replace(started=(str(tmp_path / "server.py"),))

    assert kind_of(server) is PackageKind.PYTHON
    assert list(find_sources(server).files) == ["server.py"]


def test_packages_beyond_the_limit_are_reported(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr("uno_devserver.hotreload.sources.finder.MAX_PACKAGES", 2)
    for number in range(5):
        used = f'p{number + 1} = {{path = "../p{number + 1}"}}' if number < 4 else ""
        text = f'[project]\nname = "p{number}"\ndependencies = ["p{number + 1}"]\n[tool.uv.sources]\n{used}\n'
        write_all(tmp_path, {f"p{number}/pyproject.toml": text, f"p{number}/p{number}.py": ""})

    sources = find_sources(package(tmp_path / "p0").replace(workspace=str(tmp_path)))

    assert [os.path.basename(each.root) for each in sources.packages] == ["p0", "p1", "p2"]
    [problem] = sources.problems
    assert problem.startswith(f"{tmp_path / 'p0'} uses more than 2 packages; edits in {tmp_path / 'p3'}")


def test_add_ins_are_a_kind_whatever_lies_beside_them(tmp_path: Path) -> None:
    write(tmp_path / "package.json", "{}")

    assert kind_of(package(tmp_path, addins=True)) is PackageKind.ADDINS


def test_a_typescript_package_is_read_from_its_tsconfig_and_include_and_exclude_count(tmp_path: Path) -> None:
    write_all(
        tmp_path,
        {"tsconfig.json": '{"include": ["src"]}', "src/a.ts": "", "src/b.ts": "", "other.ts": "", "q/x.sql": ""},
    )

    assert names(tmp_path) == ["src/a.ts", "src/b.ts"]
    assert names(tmp_path, ("q/*.sql",), ("src/b.ts",)) == ["q/x.sql", "src/a.ts"]


def test_a_root_that_does_not_exist_is_a_sentence(tmp_path: Path) -> None:
    sources = find(tmp_path / "missing")

    assert not sources.files
    assert any(str(tmp_path / "missing") in problem for problem in sources.problems)


# JavaScript.


def test_javascript_is_all_below_the_root_but_what_others_or_builds_wrote(tmp_path: Path) -> None:
    code = ["a.js", "b.mjs", "c.cjs", "d.jsx", "e.ts", "f.mts", "g.cts", "src/build/x.js", "packages/p/i.js"]
    others = [
        "node_modules/x/i.js", "packages/p/node_modules/y.js", ".cache/x.js", "dist/a.js", "build/a.js", "out/a.js",
        "coverage/a.js", "packages/p/dist/i.js", "README.md", "data.json",
    ]  # fmt: skip
    write_all(tmp_path, dict.fromkeys([*code, *others], ""))
    write_all(tmp_path, {"package.json": "{}", "packages/p/package.json": "{}"})

    assert names(tmp_path) == sorted(code)


# Python.


LAYOUT = [
    "src/my_server/__init__.py", "src/my_server/deep/x.py", "my_server/__init__.py", "other/__init__.py", "tool.py",
    "tests/test_x.py", ".venv/pyvenv.cfg", ".venv/lib/x.py", "env/pyvenv.cfg", "env/lib/x.py", "setup.py",
    "my_server/__pycache__/x.py", "my_server/notes.txt", "lib/pkg_a/a.py", "lib/pkg_b/b.py",
]  # fmt: skip
BUILT = '[build-system]\nrequires = []\n[project]\nname = "my-server"\n'


@pytest.mark.parametrize(
    ("manifest", "expected"),
    [
        (BUILT, ["src/my_server/__init__.py", "src/my_server/deep/x.py"]),
        (BUILT + '[tool.hatch.build.targets.wheel]\npackages = ["other"]', ["other/__init__.py"]),
        (BUILT + '[tool.setuptools]\npackages = ["other"]\npy-modules = ["tool"]', ["other/__init__.py", "tool.py"]),
        (BUILT + '[tool.setuptools]\npackages = ["a"]\npackage-dir = {a = "lib/pkg_a"}', ["lib/pkg_a/a.py"]),
        (BUILT + '[tool.setuptools]\npackages = ["pkg_b"]\npackage-dir = {"" = "lib"}', ["lib/pkg_b/b.py"]),
        (BUILT + '[tool.setuptools]\npackage-dir = {"" = "lib"}', ["lib/pkg_a/a.py", "lib/pkg_b/b.py"]),
        (BUILT + '[tool.setuptools.packages.find]\nwhere = ["lib"]', ["lib/pkg_a/a.py", "lib/pkg_b/b.py"]),
        (BUILT + '[tool.setuptools.packages.find]\nwhere = ["lib"]\nexclude = ["*_b"]', ["lib/pkg_a/a.py"]),
        (BUILT + '[tool.setuptools.packages.find]\ninclude = ["oth*"]', ["other/__init__.py"]),
        (BUILT + '[[tool.poetry.packages]]\ninclude = "pkg_a"\nfrom = "lib"', ["lib/pkg_a/a.py"]),
        (BUILT + '[[tool.poetry.packages]]\ninclude = "lib/**/*.py"', ["lib/pkg_a/a.py", "lib/pkg_b/b.py"]),
        (BUILT + '[tool.flit.module]\nname = "other"', ["other/__init__.py"]),
        (BUILT + '[tool.flit.module]\nname = "tool"', ["tool.py"]),
        (BUILT + '[tool.uv.build-backend]\nmodule-name = "other"\nmodule-root = ""', ["other/__init__.py"]),
        (BUILT + '[tool.uv.build-backend]\nmodule-name = "my_server"', LAYOUT[:2]),
        (BUILT + '[tool.uv.build-backend]\nmodule-name = ["pkg_a", "pkg_b"]\nmodule-root = "lib"', LAYOUT[-2:]),
    ],
)
def test_a_pyproject_means_what_its_build_backend_would_pack(
    tmp_path: Path, manifest: str, expected: list[str]
) -> None:
    write_all(tmp_path, dict.fromkeys(LAYOUT, ""))
    write(tmp_path / PYPROJECT, manifest)

    assert names(tmp_path) == sorted(expected)


@pytest.mark.parametrize(
    ("manifest", "files", "expected"),
    [
        (BUILT, "my_server/a.py other/b.py", "my_server/a.py"),
        (BUILT, "a.py b/c.py tests/t.py conftest.py v/d.py v/pyvenv.cfg", "a.py b/c.py"),
        ('[project]\nname = "app"\n', "app/a.py main.py src/b.py", "app/a.py main.py src/b.py"),
    ],
    ids=["the package named like the project", "else all but tests and environments", "all, where nothing is built"],
)
def test_without_a_src_folder_the_layout_tells_what_counts(
    tmp_path: Path, manifest: str, files: str, expected: str
) -> None:
    write_all(tmp_path, {PYPROJECT: manifest, **dict.fromkeys(files.split(), "")})

    assert names(tmp_path) == expected.split()


@pytest.mark.parametrize(
    "content",
    [
        b"[",
        b"\xff\xfe",
        b"[tool]\nhatch = 3\nsetuptools = []\npoetry = {packages = 1}\n",
        b"a = " + b"[" * 5000,
        b"a." * 15_000 + b"a = 1",
        b'[tool.uv.build-backend]\nmodule-root = "\\u0000"\nmodule-name = ["\\u0000"]\n',
        b'[tool.setuptools.packages.find]\nwhere = ["\\u0000"]\ninclude = ["a"]\n',
    ],
)
def test_a_broken_pyproject_is_told_and_the_code_is_found_all_the_same(tmp_path: Path, content: bytes) -> None:
    write_all(tmp_path, {PYPROJECT: content, "a.py": ""})

    sources = find(tmp_path)

    assert list(sources.files) == ["a.py"]
    assert bool(sources.problems) is (content[:5] != b"[tool")


def test_a_package_outside_of_the_project_is_told(tmp_path: Path) -> None:
    root = tmp_path / "root"
    write_all(root, {PYPROJECT: '[tool.hatch.build.targets.wheel]\npackages = ["../x", "pkg"]', "pkg/a.py": ""})
    write(tmp_path / "x/b.py", "")

    sources = find(root)

    assert list(sources.files) == ["pkg/a.py"]
    assert '"../x"' in sources.problems[0]


def test_without_a_manifest_all_python_files_count(tmp_path: Path) -> None:
    write_all(tmp_path, dict.fromkeys([*LAYOUT, "site-packages/x.py", "node_modules/y.py"], ""))

    others = {name for name in LAYOUT if "env/" in name or "__pycache__" in name or not name.endswith(".py")}
    assert names(tmp_path) == sorted({*LAYOUT} - others)


def test_add_ins_are_the_python_files_in_their_folder(tmp_path: Path) -> None:
    code = [f".devtools/addins/{name}" for name in ("one.py", "two/__init__.py", "two/_own/x.py")]
    others = ["app.py", ".devtools/addins/__pycache__/one.py", ".devtools/addins/notes.md"]
    write_all(tmp_path, dict.fromkeys([*code, *others], ""))

    assert sorted(find(tmp_path, addins=True).files) == code


# .NET.


def test_a_csharp_project_has_the_default_files_of_the_sdk(tmp_path: Path) -> None:
    code = ["Program.cs", "Deep/A.cs", "Deep/bin/B.cs", "Texts.resx", "App.csproj"]
    write_all(tmp_path, dict.fromkeys([*code, "bin/x.cs", "obj/y.cs", ".vs/z.cs", "readme.txt"], ""))
    write(tmp_path / "App.csproj", '<Project Sdk="Microsoft.NET.Sdk"></Project>')

    assert names(tmp_path) == sorted(code)


def test_what_a_project_removes_or_adds_counts(tmp_path: Path) -> None:
    root = tmp_path / "repository" / "app"
    project = (
        '<Project Sdk="Microsoft.NET.Sdk"><ItemGroup><Compile Remove="Old\\**;gone.cs" />'
        '<Compile Include="..\\Shared\\S.cs;..\\..\\x.cs;gen\\*.g" /></ItemGroup></Project>'
    )
    write_all(root, {"App.csproj": project, "a.cs": "", "Old/b.cs": "", "gone.cs": "", "gen/c.g": ""})
    write_all(tmp_path, {"repository/Shared/S.cs": "", "x.cs": ""})
    (tmp_path / "repository" / ".git").mkdir()

    sources = find(root)

    assert sorted(sources.files) == ["../Shared/S.cs", "App.csproj", "a.cs", "gen/c.g"]
    assert [used.root for used in sources.packages] == [str(root)], "a linked file is no program of its own"


def test_a_reference_that_leads_out_of_the_repository_or_nowhere_is_told(tmp_path: Path) -> None:
    references = '<ProjectReference Include="../Lib/Lib.csproj;../Gone/Gone.csproj" />'
    write_all(
        tmp_path,
        {
            "app/App.csproj": f'<Project Sdk="Microsoft.NET.Sdk"><ItemGroup>{references}</ItemGroup></Project>',
            "Lib/Lib.csproj": '<Project Sdk="Microsoft.NET.Sdk" />',
            "Lib/L.cs": "",
        },
    )
    alone = find(tmp_path / "app")
    together = find_sources(package(tmp_path / "app").replace(workspace=str(tmp_path)))

    missing = f"{tmp_path}/app/App.csproj references {tmp_path}/Gone/Gone.csproj, which does not exist."
    outside = f"{tmp_path}/Lib/Lib.csproj is outside of {tmp_path}/app, so its files are not watched."
    assert sorted(alone.files) == ["App.csproj"]
    assert set(alone.problems) == {missing, outside}
    assert sorted(together.files) == ["../Lib/L.cs", "../Lib/Lib.csproj", "App.csproj"]
    assert together.problems == (missing,)
    assert str(tmp_path / "Gone" / "Gone.csproj") in together.deciding


def test_the_files_that_decide_the_build_are_sources(tmp_path: Path) -> None:
    deciding = ["../Directory.Build.props", "../Directory.Packages.props", "../global.json", "../NuGet.config"]
    write_all(tmp_path / "app", {"App.csproj": '<Project Sdk="Microsoft.NET.Sdk" />', **dict.fromkeys(deciding, "")})
    for name in deciding[:2]:
        write(tmp_path / "app" / name, "<Project />")
    (tmp_path / ".git").mkdir()

    assert names(tmp_path / "app") == sorted([*deciding, "App.csproj"])


def test_a_file_based_program_has_its_own_file_and_its_projects(tmp_path: Path) -> None:
    write_all(tmp_path, {"server.cs": "#:project Lib\n", "other.cs": "", "Lib/Lib.csproj": "<Project />", "x.py": ""})
    write_all(tmp_path, {"Lib/Lib.csproj": '<Project Sdk="Microsoft.NET.Sdk" />', "Lib/L.cs": ""})

    assert kind_of(package(tmp_path)) is PackageKind.DOTNET
    assert names(tmp_path) == ["Lib/L.cs", "Lib/Lib.csproj", "server.cs"]


def test_the_sdk_is_asked_only_with_the_users_agreement(tmp_path: Path) -> None:
    recorded = RecordedProject("plain", tmp_path / "ws")
    dotnet = RecordedDotNet(tmp_path / "net")
    dotnet.knows(recorded.path, recorded.answer())
    watched = package(recorded.path.parent)

    without = find_sources(watched)
    assert dotnet.calls() == []
    agreed = find_sources(watched, may_ask_sdk(dotnet.environ))

    assert len(dotnet.calls()) == 1
    assert agreed.files == without.files


def test_the_sdk_is_not_asked_about_a_package_that_the_server_uses(tmp_path: Path) -> None:
    recorded = RecordedProject("plain", tmp_path / "ws")
    dotnet = RecordedDotNet(tmp_path / "net")
    write(tmp_path / "ws" / "js" / "package.json", '{"dependencies": {"lib": "*"}}')
    link(tmp_path / "ws" / "js" / "node_modules" / "lib", recorded.path.parent)
    server = package(tmp_path / "ws" / "js").replace(workspace=str(tmp_path / "ws"))

    found = find_sources(server, may_ask_sdk(dotnet.environ))

    assert os.path.relpath(recorded.path, server.root) in found.files
    assert dotnet.calls() == []


@pytest.mark.parametrize("switch", ["EnableDefaultItems", "EnableDefaultCompileItems"])
def test_without_default_items_only_what_is_named_counts(tmp_path: Path, switch: str) -> None:
    group = f"<PropertyGroup><{switch}> False </{switch}></PropertyGroup>"
    project = f'<Project>{group}<ItemGroup><Compile Include="a.cs" /></ItemGroup></Project>'
    write_all(tmp_path, {"App.csproj": project, "a.cs": "", "b.cs": ""})

    assert names(tmp_path) == ["App.csproj", "a.cs"]


def test_an_fsharp_project_names_its_files(tmp_path: Path) -> None:
    project = '<Project><ItemGroup><Compile Include="B.fs" /><Compile Include="x/A.fs" /></ItemGroup></Project>'
    write_all(tmp_path, {"App.fsproj": project, "B.fs": "", "x/A.fs": "", "C.fs": ""})

    assert names(tmp_path) == ["App.fsproj", "B.fs", "x/A.fs"]


def test_a_project_that_is_no_xml_is_told_and_the_default_files_count(tmp_path: Path) -> None:
    write_all(tmp_path, {"App.csproj": "<Project", "a.cs": ""})

    sources = find(tmp_path)

    assert sorted(sources.files) == ["App.csproj", "a.cs"]
    assert "App.csproj" in sources.problems[0]


# Include and exclude.


def test_include_adds_files_and_exclude_wins_over_everything(tmp_path: Path) -> None:
    write_all(tmp_path, dict.fromkeys(["a.py", "b.py", "data/x.sql", "data/y.sql", "data/z.txt", ".hid/h.sql"], ""))

    assert names(tmp_path, ("data/*.sql",), ("b.py", "**/y.sql")) == ["a.py", "data/x.sql"]
    assert names(tmp_path, ("**/*.sql",)) == ["a.py", "b.py", "data/x.sql", "data/y.sql"]
    assert names(tmp_path, (".hid/*.sql",), ("*.py",)) == [".hid/h.sql"]
    assert names(tmp_path, ("**/.hid/*.sql",), ("*.py",)) == [".hid/h.sql"]
    assert names(tmp_path, ("data",), ("*.py",)) == ["data/x.sql", "data/y.sql", "data/z.txt"]


def test_node_modules_count_only_if_they_are_named(tmp_path: Path) -> None:
    write_all(tmp_path, dict.fromkeys(["package.json", "a.js", "node_modules/x/i.js", "node_modules/y/i.js"], ""))

    assert names(tmp_path, ("**/*.js",)) == ["a.js"]
    assert names(tmp_path, ("node_modules/x/*.js",)) == ["a.js", "node_modules/x/i.js"]


def test_an_excluded_folder_is_not_looked_into(tmp_path: Path) -> None:
    write_all(tmp_path, dict.fromkeys(["a.py", "huge/b.py", "huge/deep/c.py"], ""))

    sources = find(tmp_path, exclude=("huge",))

    assert list(sources.files) == ["a.py"]
    assert sources.folders == {str(tmp_path)}


def test_a_pattern_that_leads_out_is_told(tmp_path: Path) -> None:
    root = tmp_path / "root"
    write_all(tmp_path, {"secret.py": "", "root/a.py": ""})

    sources = find(root, include=("../*.py",))

    assert list(sources.files) == ["a.py"]
    assert '"../*.py"' in sources.problems[0]


def in_workspace(
    workspace: Path,
    root: Path,
    include: tuple[str, ...] = (),
    exclude: tuple[str, ...] = (),
    watch: tuple[str, ...] = (),
) -> Sources:
    return find_sources(package(root, include, exclude).replace(workspace=str(workspace), watch=watch))


def test_include_may_name_any_path_in_the_workspace_folder(tmp_path: Path) -> None:
    write_all(
        tmp_path, dict.fromkeys(["far.sql", "ws/q.sql", "ws/shared/a.sql", "ws/shared/a.txt", "ws/server/a.py"], "")
    )
    root = tmp_path / "ws/server"

    inside = in_workspace(tmp_path / "ws", root, include=("../shared/*.sql", "../q.sql", "**/*.txt"))
    outside = in_workspace(tmp_path / "ws", root, include=("../../*.sql", "/etc/*", "a/../../x"))

    assert sorted(inside.files) == ["../q.sql", "../shared/a.sql", "a.py"]
    assert inside.files["../q.sql"] == str(tmp_path / "ws/q.sql")
    assert inside.problems == ()
    assert sorted(outside.files) == ["a.py"]
    assert [problem.partition('" ')[2] for problem in outside.problems] == [
        f"leads out of the workspace folder {tmp_path / 'ws'}; it is left out.",
        "leads out of the package, and patterns begin at its root; it is left out.",
        "leads out of the package, and patterns begin at its root; it is left out.",
    ]


def test_a_root_that_is_a_link_is_included_from_where_it_leads(tmp_path: Path) -> None:
    write_all(tmp_path, dict.fromkeys(["ws/server/a.py", "ws/shared/a.sql", "links/shared/b.sql"], ""))
    (tmp_path / "links/server").symlink_to(tmp_path / "ws/server")

    sources = in_workspace(tmp_path / "ws", tmp_path / "links/server", include=("../shared/*.sql",))

    assert sorted(sources.files) == ["../shared/a.sql", "a.py"]


def test_watch_names_exactly_the_files_that_count(tmp_path: Path) -> None:
    write_all(tmp_path, dict.fromkeys(["ws/server/a.py", "ws/server/app.conf", "ws/.env", "ws/server/x.conf"], ""))
    patterns = ("*.conf", "../.env", "../../*")

    sources = in_workspace(tmp_path / "ws", tmp_path / "ws/server", watch=patterns, exclude=("x.*",))

    assert sorted(sources.files) == ["../.env", "app.conf"]
    assert sources.problems[0].startswith('hotReload.watch: "../../*" leads out of the workspace folder')


def test_exclude_counts_in_used_packages_too(tmp_path: Path) -> None:
    (tmp_path / ".git").mkdir()
    write_all(tmp_path, {"s/go.mod": "replace x => ../lib\n", "lib/go.mod": "module x\n"})
    write_all(tmp_path, dict.fromkeys(["s/a.go", "lib/b.go", "lib/gen/c.go", "lib/d_x.go", "s/d_x.go"], ""))

    assert names(tmp_path / "s", exclude=("../lib/gen", "**/*_x.go", "**/go.mod")) == ["../lib/b.go", "a.go"]


# Links, bounds, faults.


def test_links_are_followed_once_and_circles_end(tmp_path: Path) -> None:
    root = tmp_path / "root"
    write_all(tmp_path, {"root/z/a.py": "", "shared/s.py": "", "one.py": ""})
    (root / "again").symlink_to("z")  # earlier or later by name: the folder's own path counts
    (root / "zz").symlink_to("z")
    (root / "z/up").symlink_to("..")
    (root / "z/self").symlink_to("self")
    (root / "lib").symlink_to(tmp_path / "shared")
    (root / "one.py").symlink_to(tmp_path / "one.py")
    (root / "dangling.py").symlink_to("missing.py")

    sources = find(root)

    assert sorted(sources.files) == ["lib/s.py", "one.py", "z/a.py"]
    assert str(root / "dangling.py") in sources.deciding
    assert sources.problems == ()


@pytest.mark.parametrize(
    ("pattern", "expected"),
    [
        ("**/*.sql", ["own/b.sql", "shared/a.sql"]),
        ("out/**", []),
        ("*.sql", []),
        ("one.sql", ["one.sql"]),
    ],
    ids=["a link that is met", "a link to a folder", "links to files", "the link itself"],
)
@pytest.mark.parametrize("setting", ["watch", "include"])
def test_patterns_follow_links_only_inside_the_workspace_and_its_repository(
    tmp_path: Path, setting: str, pattern: str, expected: list[str]
) -> None:
    write_all(tmp_path, dict.fromkeys(["ws/shared/a.sql", "elsewhere/x.sql", "ws/server/own/b.sql"], ""))
    write(tmp_path / "ws/server/package.json", "{}")
    server = tmp_path / "ws/server"
    (server / "shared").symlink_to("../shared")
    (server / "out").symlink_to(tmp_path / "elsewhere")
    (server / "one.sql").symlink_to(tmp_path / "elsewhere/x.sql")
    (server / "everything").symlink_to("/")

    sources = in_workspace(tmp_path / "ws", server, **{setting: (pattern,)})

    assert sorted(sources.files) == expected
    out = [problem for problem in sources.problems if "is a link out of the workspace" in problem]
    assert len(out) == (pattern != "one.sql"), "the first one is told"


def test_a_link_to_a_folder_around_the_package_adds_nothing(tmp_path: Path) -> None:
    write_all(tmp_path, {"beside/b.py": "", "root/a.py": ""})
    (tmp_path / "root/everything").symlink_to("/")
    (tmp_path / "root/up").symlink_to("..")

    assert names(tmp_path / "root") == ["a.py"]


def test_a_folder_that_cannot_be_read_is_told_and_the_rest_counts() -> None:
    with as_ordinary_user() as root:
        write_all(root, {"a.py": "", "closed/b.py": ""})
        (root / "closed").chmod(0)

        sources = find(root)

        assert list(sources.files) == ["a.py"]
        assert str(root / "closed") in sources.problems[0]


@pytest.mark.parametrize("depth", [1, 10])
def test_too_many_files_or_folders_are_told_and_the_others_are_always_the_same(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch, depth: int
) -> None:
    monkeypatch.setattr(repository, "MAX_CHARACTERS", 30 * len(str(tmp_path)))
    for folder in range(20):
        write(tmp_path / f"p{folder:02}" / "/".join("d" * depth) / "a.py", "")

    sources = find(tmp_path)

    assert 0 < len(sources.files) < 20
    assert "there are too many files and folders; the rest is not watched" in sources.problems[-1]
    assert "hotReload.exclude" in sources.problems[-1]
    assert find(tmp_path) == sources


def test_a_look_that_takes_too_long_is_told_and_finds_no_part_of_the_code(tmp_path: Path) -> None:
    write_all(tmp_path, {f"p{folder}/a.py": "" for folder in range(20)})
    ticks = iter(range(1000))

    sources = find_sources(package(tmp_path), budget=ReadBudget(10, lambda: next(ticks)))

    assert sources.files == {}
    assert "it took more than 10 s; its code is not watched" in sources.problems[-1]
    assert len(find(tmp_path).files) == 20, "the next one has a budget of its own"


def test_twenty_thousand_files_are_listed_at_once(tmp_path: Path) -> None:
    for folder in range(200):
        (tmp_path / f"p{folder}").mkdir()
        for name in range(100):
            os.close(os.open(tmp_path / f"p{folder}/m{name}.py", os.O_CREAT))
    start = time.monotonic()

    sources = find_sources(package(tmp_path))

    assert len(sources.files) == 20_000
    assert time.monotonic() - start < 2  # 30 ms, on a machine that does nothing else


# Hostile repositories.

MANY = 90_000  # takes up to minutes where nothing limits it
CPU_SECONDS = 5.0  # each takes 0.1 s to 1 s
SITE = ".venv/lib/python3/site-packages"


def _lines(line: str, many: int = MANY) -> str:
    return "".join(line.format(number) for number in range(many))


HOSTILE: dict[str, tuple[dict[str, str], str]] = {
    "uses of go.work": (
        {"go.mod": "module m\n", "go.work": _lines("use ./{}\n", 40_000)},
        "go.work names more than 1,000",
    ),
    "replaced modules": (
        {"go.mod": "module m\n" + _lines("replace a => ./{}\n", 40_000)},
        "go.mod names more than 1,000",
    ),
    "a large go.work": ({"go.mod": "module m\n", "go.work": _lines("use ./{}\n", 2 * MANY)}, "go.work: it has "),
    "embedded files": ({"go.mod": "module m\n", "a.go": _lines("//go:embed {}/*.txt\n")}, "go:embed has more than 500"),
    "dependencies of npm": (
        {"package.json": json.dumps({"dependencies": dict.fromkeys(map(str, range(MANY)), "*")}), "node_modules/a": ""},
        "package.json names more than 1,000",
    ),
    "lines of a .pth file": (
        {"a.py": "", ".venv/pyvenv.cfg": "", f"{SITE}/x.pth": _lines("/a/b/c/d/e/f/g/{}\n")},
        "x.pth names more than 1,000",
    ),
    "editable requirements": ({"requirements.txt": _lines("-e ./{}\n")}, "requirements.txt names more than 1,000"),
    "dependencies of poetry": (
        {"pyproject.toml": "[tool.poetry.dependencies]\n" + _lines("a{0} = {{path = '{0}'}}\n", 20_000)},
        "pyproject.toml names more than 1,000",
    ),
    "sources of uv": (
        {
            "pyproject.toml": "[project]\nname = 'a'\ndependencies = ["
            + _lines("'a{}',", 20_000)
            + "]\n[tool.uv.sources]\n"
            + _lines("a{0} = {{path = '{0}'}}\n", 20_000)
        },
        "pyproject.toml names more than 1,000",
    ),
    "patterns of members": (
        {
            "pyproject.toml": "[tool.uv.workspace]\nmembers = [" + _lines("'*/{}*',") + "]\n",
            **{f"a/{number}/b": "" for number in range(500)},
        },
        "pyproject.toml has more than 50 patterns of members",
    ),
    "members": (
        {"pyproject.toml": "[tool.uv.workspace]\nmembers = ['*/*']\n", **{f"a/{n}/b": "" for n in range(1001)}},
        "pyproject.toml names more than 1,000",
    ),
}


def _deep_folders(root: Path) -> Path:
    """A package with many dependencies in the last of many folders, each with a node_modules."""
    folder = str(root)
    for _ in range(200):  # what removes the folders of tests recurses
        folder += "/a_long_name"
        os.mkdir(folder)
        os.mkdir(f"{folder}/node_modules")
    package_json(Path(folder), "x", *map(str, range(1000)))
    return Path(folder)


def _shared_lock(root: Path) -> Path:
    """Packages that use each other, below one large yarn.lock."""
    line = '  resolution: "a{}@workspace:b"\n'
    (root / "yarn.lock").write_text("".join(line.format(number) for number in range(300_000)))
    for number in range(100):
        link(root / f"node_modules/p{number}", root / f"p{number}")
        package_json(root / f"p{number}", f"p{number}", f"p{number + 1}", "missing", main="dist/i.js")
    return root / "p0"


def _repeated_module(root: Path) -> Path:
    """A go.work that names one large module in a thousand spellings."""
    write_all(root, {"m/go.mod": "module q\n" + "a b\n" * 260_000, "go.mod": "module x\nrequire y v1.0.0\n"})
    write(root / "go.work", "".join(f"use ./m{'/.' * number}\n" for number in range(1000)))
    return root


def _shared_pyproject(root: Path) -> Path:
    """Members of a uv workspace, whose manifest is large."""
    names = [f"a{number}" for number in range(100)]
    sources = "".join(f"{name} = {{workspace = true}}\n" for name in names)
    large = "".join(f"k{number} = 1\n" for number in range(50_000))
    write(root / PYPROJECT, f"[tool.x]\n{large}[tool.uv.workspace]\nmembers = ['a*']\n[tool.uv.sources]\n{sources}")
    for number, name in enumerate(names):
        write(root / name / PYPROJECT, f"[project]\nname = '{name}'\ndependencies = ['a{number + 1}']\n")
    return root / "a0"


DEEP_FOLDERS = pytest.param(
    _deep_folders, marks=pytest.mark.skipif(WINDOWS, reason="Wine resolves no path of more than 260 characters")
)


@pytest.mark.parametrize("make", [DEEP_FOLDERS, _shared_lock, _repeated_module, _shared_pyproject])
def test_what_a_hostile_repository_multiplies_is_looked_at_once_or_not_at_all(
    tmp_path: Path, make: Callable[[Path], Path]
) -> None:
    (tmp_path / ".git").mkdir()
    root = make(tmp_path)
    begun = time.process_time()

    sources = find_sources(WatchedPackage(Role.SERVER, str(root), workspace=str(tmp_path)))

    assert time.process_time() - begun < CPU_SECONDS
    assert sum(map(len, sources.deciding)) < 2 * repository.MAX_CHARACTERS


@pytest.mark.parametrize(("files", "problem"), HOSTILE.values(), ids=HOSTILE)
def test_a_hostile_repository_takes_little_time_and_is_told_what_is_not_looked_at(
    tmp_path: Path, files: dict[str, str], problem: str
) -> None:
    (tmp_path / ".git").mkdir()
    write_all(tmp_path, files)
    begun = time.process_time()

    sources = find(tmp_path)

    assert time.process_time() - begun < CPU_SECONDS
    assert [each for each in sources.problems if problem in each], sources.problems


def test_many_patterns_take_little_time_and_those_after_the_limit_are_told(tmp_path: Path) -> None:
    write_all(tmp_path, {"package.json": "{}", **{f"s/{number}.js": "" for number in range(1000)}})
    patterns = tuple(f"**/x{number}*/*.t" for number in range(MANY))
    begun = time.process_time()

    sources = find_sources(WatchedPackage(Role.SERVER, str(tmp_path), patterns, patterns))

    assert time.process_time() - begun < CPU_SECONDS
    told = [
        f"hotReload.{name} has more than 500 patterns; those after them are left out."
        for name in ("exclude", "include")
    ]
    assert list(sources.problems) == told


@pytest.mark.parametrize(
    ("meant", "watched"), [("", "a.cs"), ("b.cs", "b.cs"), ("gone.cs", "a.cs")], ids=["none", "one", "a missing one"]
)
def test_of_several_programs_in_one_folder_the_one_that_the_command_names_is_watched(
    tmp_path: Path, meant: str, watched: str
) -> None:
    write_all(tmp_path, {"a.cs": "#:property A=1\n", "b.cs": "#:property A=1\n"})

    sources = find_sources(package(tmp_path).replace(project=meant))

    assert [name for name in sources.files if name.endswith(".cs")] == [watched]
    told = [problem for problem in sources.problems if "has several programs: a.cs, b.cs." in problem]
    assert len(told) == (meant != watched), "which one is watched is told where no command says it"
    assert all(f"Only the code of {watched} is watched" in problem for problem in told)
