"""Changes of real files: those that decide what a workspace is are told, once things are quiet, and no others."""

from __future__ import annotations

import os
import queue
import shutil
import subprocess
import sys
import threading
import time
from collections.abc import Callable, Iterator
from pathlib import Path

import pytest

from support.files import write
from uno_devserver.proxy.workspace import watcher as module
from uno_devserver.proxy.workspace.watcher import Watcher, WatcherLimits, WatchScope, changed_files
from uno_devserver.system.files import read_head
from uno_devserver.system.folder_notifier import ADDED, DELETED, MODIFIED, folder_notifier
from uno_devserver.workspace.resolver import resolve

GLOBAL_JSON = '{"msbuild-sdks": {"Uno.Sdk": "6.5.31"}}'
PATIENCE = 60.0
# Quick, and with so long an interval between looks that only a notification can be what woke it.
NOTIFIED = WatcherLimits(quiet_seconds=0.05, scan_seconds=600)
LOOKING = WatcherLimits(quiet_seconds=0.05, scan_seconds=0.05, scan_share=1.0)


class Observation:
    """A watcher at work, and what it has told."""

    def __init__(self, folder: Path, timing: WatcherLimits, *also: Path) -> None:
        self.folder = folder
        self.reports: list[frozenset[str]] = []
        self.count = 0  # of the reports that it took to tell what was waited for
        self._told = threading.Condition()
        self.watcher = Watcher(self._take, timing)
        self.watcher.observe(resolve(str(folder)), time.time(), tuple(map(str, also)))
        self.sync()

    def _take(self, paths: frozenset[str]) -> None:
        with self._told:
            self.reports.append(paths)
            self._told.notify_all()

    def told(self, *paths: Path) -> set[str]:
        """Wait until these have been told, and give everything that was told since the last time, by its name."""
        wanted = {str(path) for path in paths}
        with self._told:
            assert self._told.wait_for(lambda: wanted <= self._all(), PATIENCE), f"{wanted} of {self.reports}"
            told, self.count = self._all(), len(self.reports)
            self.reports.clear()
        return {Path(os.path.relpath(path, self.folder)).as_posix() for path in told}

    def sync(self) -> None:
        """Until the watcher has seen what was there before, and is awake for what comes."""
        marker = write(self.folder / "marker.sln", "")
        self.told(marker)
        marker.unlink()
        self.told(marker)

    def _all(self) -> set[str]:
        return {path for report in self.reports for path in report}


@pytest.fixture
def root(tmp_path: Path) -> Path:
    """A repository, so that nothing above it is watched."""
    (tmp_path / "ws" / ".git").mkdir(parents=True)
    return tmp_path / "ws"


@pytest.fixture(params=[sys.platform, "other"] if sys.platform == "linux" else [sys.platform])
def observed(root: Path, request: pytest.FixtureRequest, monkeypatch: pytest.MonkeyPatch) -> Iterator[Observation]:
    """With the notifier of this system, and on Linux also with that of the others."""
    monkeypatch.setattr(module, "folder_notifier", lambda: folder_notifier(request.param))
    write(root / "global.json", GLOBAL_JSON)
    write(root / "src" / "App" / "App.csproj", "<Project />")
    write(root / "src" / "App" / "App.sln", "")
    observation = Observation(root, NOTIFIED)
    yield observation
    observation.watcher.stop()


def _save_atomically(path: Path) -> None:
    """As editors do."""
    temporary = write(path.with_name(".global.json.swp"), "{ }")
    path.rename(path.with_name("global.json~"))
    temporary.rename(path)


SOLUTION, ASSETS, ADDIN = "new/deeper/New.slnx", "src/App/obj/project.assets.json", ".devtools/addins/greeter.py"
# What is done, one after the other, and what is told of it.
CHANGES: dict[str, tuple[Callable[[Path], object], set[str]]] = {
    "a solution in a new folder": (lambda at: write(at / SOLUTION, "<Solution />"), {SOLUTION}),
    "a change inside that folder": (lambda at: write(at / SOLUTION, "<Solution></Solution>"), {SOLUTION}),
    "an edited global.json": (lambda at: write(at / "global.json", "{}"), {"global.json"}),
    "an editor's atomic save": (lambda at: _save_atomically(at / "global.json"), {"global.json"}),
    "a restore into a new folder": (lambda at: write(at / ASSETS, "{}"), {ASSETS}),
    "another restore": (lambda at: write(at / ASSETS, '{"version": 3}'), {ASSETS}),
    "a renamed solution": (
        lambda at: (at / "src/App/App.sln").rename(at / "src/App/Renamed.sln"),
        {"src/App/App.sln", "src/App/Renamed.sln"},
    ),
    "a folder that goes": (lambda at: shutil.rmtree(at / "new"), {SOLUTION}),
    "add-ins that appear": (lambda at: write(at / ADDIN, ""), {".devtools/addins", ADDIN}),
    "a config that appears": (
        lambda at: write(at / ".devtools/host.config.jsonc", "{}"),
        {".devtools/host.config.jsonc"},
    ),
}


def test_changes_of_files_that_decide_are_told(observed: Observation) -> None:
    earlier: set[str] = set()  # on a busy machine, a file may be told once more when it is written, after it was made
    for name, (change, expected) in CHANGES.items():
        change(observed.folder)

        told = observed.told(*(observed.folder / path for path in expected))
        assert told - earlier | expected == expected, name
        earlier |= expected


def test_unrelated_files_cause_nothing(observed: Observation) -> None:
    write(observed.folder / "src" / "App" / "Main.cs", "class Main;")
    write(observed.folder / "src" / "App" / "bin" / "Debug" / "global.json", "{}")
    write(observed.folder / "src" / "App" / "obj" / "Debug" / "App.dll", "")
    write(observed.folder / "node_modules" / "x" / "App.sln", "")
    write(observed.folder / "a" / "b" / "c" / "too" / "deep" / "App.sln", "")
    write(observed.folder / "README.md", "")

    last = write(observed.folder / "Last.sln", "")

    assert observed.told(last) == {"Last.sln"}


def test_many_changes_at_once_are_told_together(observed: Observation) -> None:
    solutions = [write(observed.folder / f"S{number}.sln", "") for number in range(200)]

    observed.told(*solutions)

    assert observed.count < 20  # one, unless the machine is so busy that there are pauses in between


def test_what_changed_after_the_workspace_was_looked_at_is_told(root: Path) -> None:
    """There is a moment between resolving a workspace and watching it."""
    workspace, looked_at = resolve(str(root)), time.time()
    solution = write(root / "App.sln", "")
    told: queue.SimpleQueue[frozenset[str]] = queue.SimpleQueue()

    watcher = Watcher(told.put, NOTIFIED)
    watcher.observe(workspace, looked_at)

    assert told.get(timeout=PATIENCE) == {str(solution)}
    watcher.stop()


def test_a_file_that_is_saved_while_it_is_read_is_told(root: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    solution = write(root / "App.sln", "before")
    workspace, looked_at = resolve(str(root)), time.time() + 0.1
    while time.time() < looked_at:  # what was there before is older than the clock of the file system can tell
        time.sleep(0.01)
    told: queue.SimpleQueue[frozenset[str]] = queue.SimpleQueue()

    def save_and_read(path: str, limit: int) -> bytes:
        monkeypatch.setattr(module, "read_head", read_head)
        time.sleep(0.1)
        solution.write_text("after", "utf-8")
        return read_head(path, limit)

    monkeypatch.setattr(module, "read_head", save_and_read)
    watcher = Watcher(told.put, NOTIFIED)
    watcher.observe(workspace, looked_at)

    assert told.get(timeout=PATIENCE) == {str(solution)}
    watcher.stop()


def test_another_workspace_can_be_observed_instead(observed: Observation, tmp_path: Path) -> None:
    other = tmp_path / "other"
    (other / ".git").mkdir(parents=True)

    observed.watcher.observe(resolve(str(other)), time.time())
    observed.folder, former = other, observed.folder
    observed.sync()
    write(former / "App.sln", "")
    solution = write(other / "App.sln", "")

    assert observed.told(solution) == {"App.sln"}


def test_a_file_outside_the_workspace_can_be_observed_with_it(root: Path, tmp_path: Path) -> None:
    kept = tmp_path / "state" / "trust" / "ws.json"
    observation = Observation(root, NOTIFIED, kept)

    write(kept, "{}")

    assert observation.told(kept) == {"../state/trust/ws.json"}
    observation.watcher.stop()


# --- without notifications -------------------------------------------------------------------------------------------


@pytest.fixture
def no_notifier(monkeypatch: pytest.MonkeyPatch) -> None:
    """As on a system that has no watches left."""

    def refuse() -> object:
        raise OSError(28, "no watches are left")

    monkeypatch.setattr(module, "folder_notifier", refuse)


@pytest.mark.usefixtures("no_notifier")
def test_without_watches_it_looks_at_intervals_and_says_so_once(root: Path, capsys: pytest.CaptureFixture[str]) -> None:
    observation = Observation(root, LOOKING)

    solution = write(root / "new" / "App.sln", "")

    assert observation.told(solution) == {"new/App.sln"}
    observation.watcher.stop()
    said = capsys.readouterr().err
    assert said.count("Changes of the workspace are looked for every 0.05 s: ") == 1
    assert "no watches are left" in said


def test_a_notifier_that_fails_is_given_up_for_looking_at_intervals(
    root: Path, monkeypatch: pytest.MonkeyPatch, capsys: pytest.CaptureFixture[str]
) -> None:
    class Broken:
        def watch(self, _: object) -> None: ...

        def wait(self, _: object) -> object:
            raise RuntimeError("the queue has overflowed")

        def wake(self) -> None: ...

        def close(self) -> None: ...

    monkeypatch.setattr(module, "folder_notifier", Broken)
    observation = Observation(root, LOOKING)

    assert observation.told(write(root / "App.sln", "")) == {"App.sln"}
    observation.watcher.stop()
    assert capsys.readouterr().err.count("the queue has overflowed") == 1


# --- the end ---------------------------------------------------------------------------------------------------------


def test_it_stops_within_a_tenth_of_a_second(observed: Observation) -> None:
    thread = observed.watcher._thread
    assert thread

    began = time.monotonic()
    observed.watcher.stop()
    took = time.monotonic() - began

    thread.join(PATIENCE)
    assert (took < 1.0, thread.is_alive()) == (True, False)  # with some room for a machine that is busy


def test_after_its_end_it_tells_nothing_and_observes_nothing(observed: Observation) -> None:
    observed.watcher.stop()
    observed.watcher.stop()

    write(observed.folder / "Late.sln", "")
    observed.watcher.observe(resolve(str(observed.folder)), 0)

    assert observed.reports == []
    assert not [thread for thread in threading.enumerate() if thread is observed.watcher._thread]


def test_it_can_be_stopped_by_the_one_whom_it_tells(root: Path) -> None:
    stopped = threading.Event()

    def stop(_: frozenset[str]) -> None:
        watcher.stop()
        stopped.set()

    watcher = Watcher(stop, NOTIFIED)
    watcher.observe(resolve(str(root)), time.time())
    write(root / "App.sln", "")

    assert stopped.wait(PATIENCE)


def test_a_process_that_ends_without_stopping_it_ends_well(root: Path) -> None:
    program = f"""
import time
from uno_devserver.proxy.workspace.watcher import Watcher
from uno_devserver.workspace.resolver import resolve
watcher = Watcher(print)
watcher.observe(resolve({str(root)!r}), time.time())
"""
    done = subprocess.run([sys.executable, "-c", program], capture_output=True, text=True, timeout=PATIENCE)

    assert (done.returncode, done.stderr) == (0, "")


# --- what is looked at


def _look(folder: Path, *also: Path) -> WatchScope:
    return WatchScope(resolve(str(folder)), tuple(map(str, also)))


def _relative(paths: object, root: Path) -> set[str]:
    assert isinstance(paths, (tuple, dict))
    return {Path(os.path.relpath(path, root)).as_posix() for path in paths}


ADDINS, RESTORED = ".devtools/addins", "project.assets.json"


@pytest.mark.parametrize(
    ("made", "start", "folders", "files"),
    [
        (["a/b/c/d/"], ".", {".", "a", "a/b", "a/b/c"}, set()),
        (
            ["node_modules/x/y/", "bin/Debug/", ".vs/", ".idea/", "packages/p/", ".codex-home/"],
            *(".", {"."}, set()),
        ),
        (
            [f"src/App/obj/{RESTORED}", "src/App/obj/Debug/net10.0/"],
            *(".", {".", "src", "src/App", "src/App/obj"}, {f"src/App/obj/{RESTORED}"}),
        ),
        (
            [f"artifacts/obj/App/{RESTORED}"],
            *(".", {".", "artifacts", "artifacts/obj", "artifacts/obj/App"}, {f"artifacts/obj/App/{RESTORED}"}),
        ),
        (
            [".devtools/host.config.jsonc", f"{ADDINS}/greeter.py", f"{ADDINS}/_private.py", "src/"],
            *("src", {".", "src", ".devtools", ADDINS}),
            {".devtools/host.config.jsonc", ADDINS, f"{ADDINS}/greeter.py", f"{ADDINS}/_private.py"},
        ),
        ([], "gone/deeper", {"."}, set()),
    ],
    ids=[
        *("as deep as solutions are searched", "not folders of tools and output", "not the output of a build"),
        *("the artifacts layout", "config and add-ins, here and above", "the nearest folder that exists"),
    ],
)
def test_the_folders_and_files_that_decide_are_watched_and_no_others(
    root: Path, made: list[str], start: str, folders: set[str], files: set[str]
) -> None:
    for name in made:
        (root / name).mkdir(parents=True) if name.endswith("/") else write(root / name, "{}")

    scope = _look(root / start)

    assert (_relative(scope.folders, root), _relative(scope.files, root)) == (folders, files)


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


def test_the_way_up_is_watched_to_the_repository_or_the_global_json_and_looked_at_beyond(
    root: Path, tmp_path: Path
) -> None:
    write(tmp_path / "global.json", "{}")
    (root / "src" / "App").mkdir(parents=True)
    write(tmp_path / "other" / "global.json", GLOBAL_JSON)
    write(tmp_path / "other" / "src" / "App.slnx", "<Solution />")

    scope = _look(root / "src" / "App")

    assert _relative(scope.folders, root) == {".", "src", "src/App"}
    assert str(tmp_path / "global.json") in scope.files
    assert _relative(_look(tmp_path / "other" / "src").folders, tmp_path) == {"other", "other/src"}


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


def test_the_numbers_of_watches_and_of_scanned_folders_are_bounded_and_the_nearest_come_first(root: Path) -> None:
    for number in range(10):
        write(root / f"f{number}" / "deep" / "App.sln", "")

    watched = WatchScope(resolve(str(root)), limits=WatcherLimits(watched_folders=8))
    scanned = WatchScope(resolve(str(root)), limits=WatcherLimits(scanned_folders=15))

    assert _relative(watched.folders, root) == {".", "f0", "f1", "f2", "f3", "f4", "f5", "f6"}
    assert (len(watched.files), watched.complete) == (10, False), "all are scanned, though not all are watched"
    assert (len(scanned.files), scanned.complete) == (4, False)


def test_links_are_followed_and_those_in_a_circle_come_to_an_end(root: Path, tmp_path: Path) -> None:
    write(tmp_path / "elsewhere" / "App.sln", "")
    (root / "link").symlink_to(tmp_path / "elsewhere")
    assert _relative(_look(root).files, root) == {"link/App.sln"}
    (root / "a").mkdir()
    (root / "a" / "up").symlink_to(root)
    (root / "self").symlink_to(root / "self")

    scope = _look(root)

    assert scope.complete
    assert len(scope.folders) < 20


# --- which events are worth a look -----------------------------------------------------------------------------------


@pytest.mark.parametrize("kind", [ADDED, MODIFIED, DELETED])
@pytest.mark.parametrize(
    "name", ["App.sln", "App.SLNX", "global.json", "project.assets.json", ".devtools/host.config.jsonc"]
)
def test_files_that_decide_are_worth_a_look(root: Path, kind: int, name: str) -> None:
    assert _look(root).concerns(kind, str(root / name))


@pytest.mark.parametrize("kind", [ADDED, MODIFIED, DELETED])
@pytest.mark.parametrize("name", ["Main.cs", "solution.txt", ".App.sln.swp", "obj/App.dll"])
def test_other_files_are_not(root: Path, kind: int, name: str) -> None:
    write(root / name, "")

    assert not _look(root).concerns(kind, str(root / name))


def test_a_project_is_worth_a_look_when_it_comes_or_goes_and_not_when_it_is_edited(root: Path) -> None:
    scope = _look(root)

    assert [scope.concerns(kind, str(root / "App.csproj")) for kind in (ADDED, MODIFIED, DELETED)] == [
        True,
        False,
        True,
    ]


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
    scope = _look(root)
    (root / name).mkdir(parents=True)

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
