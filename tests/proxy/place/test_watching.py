"""Changes of real files: those that decide what a workspace is are told, once things are quiet, and no others."""

from __future__ import annotations

import os
import queue
import resource
import shutil
import subprocess
import sys
import threading
import time
from collections.abc import Iterator
from pathlib import Path

import pytest

from support.files import write
from uno_devserver.proxy.workspace import watcher as watching
from uno_devserver.proxy.workspace.watcher import Timing, Watcher
from uno_devserver.workspace.resolver import resolve

GLOBAL_JSON = '{"msbuild-sdks": {"Uno.Sdk": "6.5.31"}}'
PATIENCE = 20.0
# Quick, and with so long an interval between looks that only a notification can be what woke it.
NOTIFIED = Timing(quiet_seconds=0.05, look_seconds=600)
LOOKING = Timing(quiet_seconds=0.05, look_seconds=0.05, look_share=1.0)


class Observation:
    """A watcher at work, and what it has told."""

    def __init__(self, folder: Path, timing: Timing, *also: Path) -> None:
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
        return {os.path.relpath(path, self.folder) for path in told}

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
    (tmp_path / "ws" / ".git").mkdir(parents=True)
    return tmp_path / "ws"


@pytest.fixture
def observed(root: Path) -> Iterator[Observation]:
    write(root / "global.json", GLOBAL_JSON)
    write(root / "src" / "App" / "App.csproj", "<Project />")
    write(root / "src" / "App" / "App.sln", "")
    observation = Observation(root, NOTIFIED)
    yield observation
    observation.watcher.stop()


def test_a_solution_in_a_new_folder_is_told(observed: Observation) -> None:
    solution = write(observed.folder / "new" / "deeper" / "New.slnx", "<Solution />")

    assert observed.told(solution) == {"new/deeper/New.slnx"}


def test_a_change_inside_a_folder_that_came_later_is_told(observed: Observation) -> None:
    solution = write(observed.folder / "new" / "New.slnx", "<Solution />")
    observed.told(solution)

    solution.write_text("<Solution></Solution>")

    assert observed.told(solution) == {"new/New.slnx"}


def test_an_edited_global_json_is_told(observed: Observation) -> None:
    path = write(observed.folder / "global.json", "{}")

    assert observed.told(path) == {"global.json"}


def test_an_editors_atomic_save_is_told_as_one_change(observed: Observation) -> None:
    path, temporary = observed.folder / "global.json", observed.folder / ".global.json.swp"
    write(temporary, "{ }")
    path.rename(observed.folder / "global.json~")
    temporary.rename(path)

    assert observed.told(path) == {"global.json"}


def test_a_restore_into_a_new_obj_folder_is_told(observed: Observation) -> None:
    obj = observed.folder / "src" / "App" / "obj"
    assets = write(obj / "project.assets.json", "{}")
    assert observed.told(assets) == {"src/App/obj/project.assets.json"}

    write(obj / "project.assets.json", '{"version": 3}')

    assert observed.told(assets) == {"src/App/obj/project.assets.json"}


def test_a_renamed_solution_is_told_by_both_names(observed: Observation) -> None:
    old, new = (observed.folder / "src" / "App" / name for name in ("App.sln", "Renamed.sln"))

    old.rename(new)

    assert observed.told(old, new) == {"src/App/App.sln", "src/App/Renamed.sln"}


def test_a_folder_that_goes_takes_its_files_along(observed: Observation) -> None:
    solution = observed.folder / "src" / "App" / "App.sln"

    shutil.rmtree(observed.folder / "src")

    assert observed.told(solution) == {"src/App/App.sln"}


def test_a_config_and_addins_that_appear_are_told(observed: Observation) -> None:
    addin = write(observed.folder / ".devtools" / "addins" / "greeter.py", "")
    config = write(observed.folder / ".devtools" / "host.config.jsonc", "{}")

    told = observed.told(addin, config)

    assert told == {".devtools/addins", ".devtools/addins/greeter.py", ".devtools/host.config.jsonc"}


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


def test_a_receiver_that_fails_is_told_of_the_next_change_all_the_same(
    root: Path, capsys: pytest.CaptureFixture[str]
) -> None:
    observation = Observation(root, NOTIFIED)
    take = observation.watcher._changed

    def fail(paths: frozenset[str]) -> None:
        take(paths)
        raise RuntimeError("no")

    observation.watcher._changed = fail
    observation.told(write(root / "A.sln", ""))
    observation.told(write(root / "B.sln", ""))

    observation.watcher.stop()
    assert "A change of the workspace was not taken: RuntimeError: no." in capsys.readouterr().err


# --- without notifications -------------------------------------------------------------------------------------------


@pytest.fixture
def no_notifier(monkeypatch: pytest.MonkeyPatch) -> None:
    """As on a system that has no watches left."""

    def refuse() -> object:
        raise OSError(28, "No space left on device (os error 28)")

    monkeypatch.setattr(watching, "_rust_notify", lambda: lambda *_: refuse())


@pytest.mark.usefixtures("no_notifier")
def test_without_watches_it_looks_at_intervals_and_says_so_once(root: Path, capsys: pytest.CaptureFixture[str]) -> None:
    observation = Observation(root, LOOKING)

    solution = write(root / "new" / "App.sln", "")

    assert observation.told(solution) == {"new/App.sln"}
    observation.watcher.stop()
    said = capsys.readouterr().err
    assert said.count("Changes of the workspace are looked for every 0.05 s: ") == 1
    assert "No space left on device" in said


def test_a_notifier_that_fails_is_given_up_for_looking_at_intervals(
    root: Path, monkeypatch: pytest.MonkeyPatch, capsys: pytest.CaptureFixture[str]
) -> None:
    class Broken:
        def __init__(self, *_: object) -> None: ...

        def watch(self, *_: object) -> object:
            raise RuntimeError("the queue has overflowed")

        def close(self) -> None: ...

    monkeypatch.setattr(watching, "_rust_notify", lambda: Broken)
    observation = Observation(root, LOOKING)

    assert observation.told(write(root / "App.sln", "")) == {"App.sln"}
    observation.watcher.stop()
    assert capsys.readouterr().err.count("the queue has overflowed") == 1


def test_when_the_system_has_no_watches_left_the_real_notifier_says_so(root: Path) -> None:
    """In a process of its own, whose files are all taken."""
    program = f"""
import os, resource, sys
from uno_devserver.proxy.workspace.watcher import _rust_notify
make = _rust_notify()
resource.setrlimit(resource.RLIMIT_NOFILE, (8, 8))
taken = []
try:
    while True:
        taken.append(os.dup(0))
except OSError:
    pass
try:
    make([{str(root)!r}], False, False, 0, False, True)
except Exception as error:
    sys.exit(f"{{type(error).__name__}}: {{error}}")
"""
    done = subprocess.run([sys.executable, "-c", program], capture_output=True, text=True, timeout=PATIENCE)

    assert done.returncode == 1
    assert "Traceback" not in done.stderr
    assert "too many" in done.stderr.lower(), done.stderr
    assert resource.getrlimit(resource.RLIMIT_NOFILE)[0] > 8


# --- the end ---------------------------------------------------------------------------------------------------------


def test_it_stops_within_a_tenth_of_a_second(observed: Observation) -> None:
    thread = observed.watcher._thread
    assert thread

    began = time.monotonic()
    observed.watcher.stop()
    took = time.monotonic() - began

    thread.join(PATIENCE)
    assert (took < 0.3, thread.is_alive()) == (True, False)  # with some room for a machine that is busy


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


def test_anyio_and_the_rest_of_the_package_are_not_imported(root: Path) -> None:
    notifier = "from uno_devserver.proxy.workspace.watcher import _rust_notify"
    program = f"import sys; {notifier}; _rust_notify(); print(*sys.modules)"

    done = subprocess.run([sys.executable, "-c", program], capture_output=True, text=True, timeout=PATIENCE)

    assert done.returncode == 0, done.stderr
    assert not {"anyio", "watchfiles", "logging"} & set(done.stdout.split())
