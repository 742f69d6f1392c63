"""Which folders are watched and which files count: few, whatever the tree looks like."""

from __future__ import annotations

import os
from pathlib import Path

import pytest

from support.files import write
from uno_devserver.proxy.workspace import watcher as watch_scope
from uno_devserver.proxy.workspace.watcher import ADDED, DELETED, MODIFIED, Scope, changed_files, look
from uno_devserver.workspace.resolver import resolve

GLOBAL_JSON = '{"msbuild-sdks": {"Uno.Sdk": "6.5.31"}}'


def _look(folder: Path, *also: Path) -> Scope:
    return look(resolve(str(folder)), tuple(map(str, also)))


def _relative(paths: object, root: Path) -> set[str]:
    assert isinstance(paths, (tuple, dict))
    return {os.path.relpath(path, root) for path in paths}


@pytest.fixture
def root(tmp_path: Path) -> Path:
    """A repository, so that nothing above it is watched."""
    (tmp_path / "ws" / ".git").mkdir(parents=True)
    return tmp_path / "ws"


def test_the_folders_in_which_solutions_are_found_are_watched_and_no_deeper_ones(root: Path) -> None:
    (root / "a" / "b" / "c" / "d").mkdir(parents=True)

    assert _relative(_look(root).folders, root) == {".", "a", "a/b", "a/b/c"}


def test_folders_of_tools_and_output_are_not_watched(root: Path) -> None:
    for name in ("node_modules/x/y", "bin/Debug", ".vs", ".idea", "packages/p", ".codex-home"):
        (root / name).mkdir(parents=True)

    assert _relative(_look(root).folders, root) == {"."}


def test_a_restore_folder_is_watched_but_not_what_a_build_puts_below_it(root: Path) -> None:
    write(root / "src" / "App" / "obj" / "project.assets.json", "{}")
    (root / "src" / "App" / "obj" / "Debug" / "net10.0").mkdir(parents=True)

    scope = _look(root)

    assert _relative(scope.folders, root) == {".", "src", "src/App", "src/App/obj"}
    assert _relative(scope.files, root) == {"src/App/obj/project.assets.json"}


def test_restore_files_of_the_artifacts_layout_count(root: Path) -> None:
    write(root / "artifacts" / "obj" / "App" / "project.assets.json", "{}")

    scope = _look(root)

    assert "artifacts/obj/App" in _relative(scope.folders, root)
    assert _relative(scope.files, root) == {"artifacts/obj/App/project.assets.json"}


def test_projects_of_the_solution_count_wherever_they_lie(root: Path) -> None:
    write(root / "global.json", GLOBAL_JSON)
    deep, beside = "a/b/c/d/e/Deep.csproj", "../beside/Lib.csproj"
    write(root / "App.slnx", f'<Solution><Project Path="{deep}" /><Project Path="{beside}" /></Solution>')
    for project in (deep, beside):
        write(root / project, "<Project />")
        write((root / project).parent / "obj" / "project.assets.json", "{}")

    scope = _look(root)

    assert {"a/b/c/d/e", "a/b/c/d/e/obj", "../beside", "../beside/obj"} <= _relative(scope.folders, root)
    assert {"a/b/c/d/e/obj/project.assets.json", "../beside/obj/project.assets.json"} <= _relative(scope.files, root)


def test_the_way_up_is_watched_to_the_repositorys_root_and_looked_at_beyond(root: Path, tmp_path: Path) -> None:
    write(tmp_path / "global.json", "{}")
    (root / "src" / "App").mkdir(parents=True)

    scope = _look(root / "src" / "App")

    assert _relative(scope.folders, root) == {".", "src", "src/App"}
    assert str(tmp_path / "global.json") in scope.files


def test_the_way_up_is_watched_to_the_global_json_that_counts(tmp_path: Path) -> None:
    write(tmp_path / "ws" / "global.json", GLOBAL_JSON)
    write(tmp_path / "ws" / "src" / "App.slnx", "<Solution />")

    assert _relative(_look(tmp_path / "ws" / "src").folders, tmp_path) == {"ws", "ws/src"}


def test_config_and_addins_count_here_and_above(root: Path) -> None:
    write(root / ".devtools" / "host.config.jsonc", "{}")
    write(root / ".devtools" / "addins" / "greeter.py", "")
    write(root / ".devtools" / "addins" / "_private.py", "")
    (root / "src").mkdir()

    scope = _look(root / "src")

    config, addins = ".devtools/host.config.jsonc", ".devtools/addins"
    assert _relative(scope.files, root) == {config, addins, f"{addins}/greeter.py", f"{addins}/_private.py"}
    assert {".devtools", addins} <= _relative(scope.folders, root)


def test_an_edited_addin_and_what_it_imports_count_like_a_new_one(root: Path) -> None:
    addins = root / ".devtools" / "addins"
    addin = write(addins / "package" / "inner" / "deep.py", "")
    write(addins / "package" / "__init__.py", "")
    before = _look(root)

    addin.write_text("edited")
    edited = _look(root)
    second = write(addins / "second.py", "")
    write(addins / "__pycache__" / "second.cpython-311.py", "")
    added = _look(root)

    assert changed_files(before.files, edited.files) == {str(addin)}
    assert changed_files(edited.files, added.files) == {str(second)}
    assert str(addin.parent) in before.folders


def test_a_solution_that_is_only_touched_has_not_changed_but_a_restore_has_happened_again(root: Path) -> None:
    solution = write(root / "App.sln", "a solution")
    assets = write(root / "obj" / "project.assets.json", "{}")
    before = _look(root)

    for path in (solution, assets):
        os.utime(path, (1, 1))
    touched = _look(root)
    solution.write_text("another one")

    assert changed_files(before.files, touched.files) == {str(assets)}
    assert changed_files(touched.files, _look(root).files) == {str(solution)}


def test_a_file_elsewhere_counts_also_before_its_folder_exists(root: Path, tmp_path: Path) -> None:
    kept = tmp_path / "state" / "trust" / "ws.json"

    before = _look(root, kept)
    write(kept, "{}")
    after = _look(root, kept)

    assert str(tmp_path) in before.folders
    assert str(kept.parent) in after.folders
    assert changed_files(before.files, after.files) == {str(kept)}


def test_a_file_elsewhere_that_comes_is_worth_a_look(root: Path, tmp_path: Path) -> None:
    kept = tmp_path / "state" / "trust" / "ws.json"
    kept.parent.mkdir(parents=True)

    scope = _look(root, kept)

    assert scope.concerns(ADDED, str(kept))
    assert not scope.concerns(ADDED, str(kept.parent / "another.json"))


def test_where_the_folder_has_gone_the_nearest_one_above_is_watched(root: Path) -> None:
    assert _relative(_look(root / "gone" / "deeper").folders, root) == {"."}


def test_the_number_of_watches_is_bounded_and_what_is_near_comes_first(
    root: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setattr(watch_scope, "MAX_WATCHED", 8)
    for number in range(10):
        write(root / f"f{number}" / "deep" / "App.sln", "")

    scope = _look(root)

    assert _relative(scope.folders, root) == {".", "f0", "f1", "f2", "f3", "f4", "f5", "f6"}
    assert not scope.complete
    assert len(scope.files) == 10, "all are looked at, though not all are watched"


def test_the_number_of_folders_that_are_looked_into_is_bounded(root: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(watch_scope, "MAX_SEEN", 5)
    for number in range(10):
        write(root / f"f{number}" / "App.sln", "")

    scope = _look(root)

    assert (len(scope.files), scope.complete) == (4, False)


def test_links_in_a_circle_come_to_an_end(root: Path) -> None:
    (root / "a").mkdir()
    (root / "a" / "up").symlink_to(root)
    (root / "self").symlink_to(root / "self")
    write(root / "App.sln", "")

    scope = _look(root)

    assert scope.complete
    assert len(scope.folders) < 20


def test_a_folder_behind_a_link_counts(root: Path, tmp_path: Path) -> None:
    write(tmp_path / "elsewhere" / "App.sln", "")
    (root / "link").symlink_to(tmp_path / "elsewhere")

    assert _relative(_look(root).files, root) == {"link/App.sln"}


# --- which events are worth a look -----------------------------------------------------------------------------------


@pytest.mark.parametrize("kind", [ADDED, MODIFIED, DELETED])
@pytest.mark.parametrize(
    "name", ["App.sln", "App.SLNX", "global.json", "project.assets.json", ".devtools/host.config.jsonc"]
)
def test_files_that_decide_are_worth_a_look(root: Path, kind: int, name: str) -> None:
    assert _look(root).concerns(kind, str(root / name))


@pytest.mark.parametrize("kind", [ADDED, MODIFIED, DELETED])
@pytest.mark.parametrize("name", ["App.csproj", "Main.cs", "solution.txt", ".App.sln.swp", "obj/App.dll"])
def test_other_files_are_not(root: Path, kind: int, name: str) -> None:
    write(root / name, "")

    assert not _look(root).concerns(kind, str(root / name))


@pytest.mark.parametrize(
    ("name", "expected"),
    [
        ("src", True),
        ("src/obj", True),
        (".devtools", True),
        (".devtools/addins", True),
        ("artifacts/obj/App", True),
        ("bin", False),
        ("node_modules", False),
        ("src/obj/Debug", False),
    ],
)
def test_a_new_folder_is_worth_a_look_where_it_can_hold_something(root: Path, name: str, expected: bool) -> None:
    (root / name).mkdir(parents=True)
    scope = Scope((str(root),), {}, complete=True)

    assert scope.concerns(ADDED, str(root / name)) is expected
    assert not scope.concerns(MODIFIED, str(root / name))


def test_a_watched_folder_that_goes_is_worth_a_look_and_another_is_not(root: Path) -> None:
    (root / "src").mkdir()
    scope = _look(root)

    assert scope.concerns(DELETED, str(root / "src"))
    assert not scope.concerns(DELETED, str(root / "bin"))


def test_an_addin_that_comes_goes_or_is_edited_is_worth_a_look(root: Path) -> None:
    addin = str(write(root / ".devtools" / "addins" / "greeter.py", ""))
    scope = _look(root)

    assert all(scope.concerns(kind, addin) for kind in (ADDED, DELETED, MODIFIED))
    assert scope.concerns(ADDED, str(root / ".devtools" / "addins" / "package" / "new.py"))
    assert not scope.concerns(ADDED, str(root / ".devtools" / "addins" / "package" / "new.txt"))
