"""What the engine knows: issues by their source, the workspace from the first moment, and a file for others."""

from __future__ import annotations

import json
import time
from pathlib import Path

from support.bundled import wait_for
from uno_devserver.discovery.discover import unexplored
from uno_devserver.issues import warning
from uno_devserver.proxy.options import Options
from uno_devserver.proxy.state import ConnectionState, ProxyState, Timeline
from uno_devserver.workspace.resolver import resolve

LATE = warning("RestoreStale", "It is late.")
ODD = warning("ConfigInvalid", "It is odd.")


def state(folder: Path) -> ProxyState:
    return ProxyState(Options(str(folder)), Timeline(), str(folder / "state"))


def test_each_part_replaces_what_it_said_before_and_nothing_else(tmp_path: Path) -> None:
    known = state(tmp_path)

    known.blame("start", (LATE,))
    known.blame("workspace", (ODD, LATE))
    assert known.facts.issues == (LATE, ODD)
    known.blame("start", ())

    assert known.facts.issues == (ODD, LATE)


def test_the_report_knows_the_workspace_before_anything_was_looked_for_in_it(tmp_path: Path) -> None:
    known = state(tmp_path)
    (tmp_path / ".devtools" / "addins").mkdir(parents=True)
    workspace = resolve(str(tmp_path))
    known.workspace = lambda: workspace

    assert known.report()["effectiveWorkspaceDirectory"] == str(tmp_path)
    known.learn(discovery=unexplored(workspace).replace(duration_ms=7))
    assert known.report()["discoveryDurationMs"] == 7

    elsewhere = resolve(str(tmp_path.parent))
    known.workspace = lambda: elsewhere

    report = known.report()
    assert report["effectiveWorkspaceDirectory"] is None
    assert report["discoveryDurationMs"] == 0, "that was about another workspace"


def test_the_report_tells_how_far_the_start_has_come(tmp_path: Path) -> None:
    timeline = Timeline()
    known = ProxyState(Options(str(tmp_path)), timeline, str(tmp_path / "state"))
    timeline.mark("engine")

    proxy = known.report()["proxy"]

    assert isinstance(proxy, dict)
    assert list(proxy["timeline"]) == ["engine"]


def test_the_file_for_others_is_written_when_a_start_has_come_to_its_end(tmp_path: Path) -> None:
    known = state(tmp_path)
    folder = tmp_path / "state" / "proxies"
    for state in (ConnectionState.DISCOVERING, ConnectionState.LAUNCHING, ConnectionState.CONNECTING):
        known.learn(state=state)
    assert not folder.exists()

    known.learn(state=ConnectionState.CONNECTED)

    [file] = wait_for(lambda: list(folder.glob("*.json")) or None)
    assert json.loads(file.read_text("utf-8"))["state"] == "Connected"
    known.close()
    assert list(folder.glob("*.json")) == []


def test_a_first_start_that_takes_long_is_told_to_others_before_its_end(tmp_path: Path) -> None:
    known = state(tmp_path)
    known.learn(state=ConnectionState.LAUNCHING)

    known.linger()

    [file] = wait_for(lambda: list((tmp_path / "state" / "proxies").glob("*.json")) or None)
    assert json.loads(file.read_text("utf-8"))["state"] == "Launching"
    known.close()


def test_one_that_has_written_nothing_has_nothing_to_remove(tmp_path: Path) -> None:
    state(tmp_path).close()


def test_how_hot_reload_stands_is_asked_for_at_the_moment_of_the_report(tmp_path: Path) -> None:
    known = state(tmp_path)
    files = 1
    known.hot_reload = lambda: {"files": files}

    def told() -> object:
        proxy = known.report()["proxy"]
        assert isinstance(proxy, dict)
        return proxy["hotReload"]

    def in_the_midst() -> dict[str, object]:
        raise RuntimeError("dictionary changed size during iteration")

    assert told() == {"files": 1}
    files = 2
    assert told() == {"files": 2}
    known.hot_reload = in_the_midst
    assert told() == {"files": 2}, "what was told before"


# --- the timeline


def test_stages_are_counted_from_the_beginning_of_the_process() -> None:
    worked = time.process_time()
    timeline = Timeline()

    assert timeline.mark("begun") >= int(worked * 1000)


def test_a_stage_keeps_the_moment_when_it_was_first_reached() -> None:
    timeline = Timeline()
    first = timeline.mark("connected")
    until = time.monotonic() + 0.005
    while time.monotonic() < until:
        pass

    later = timeline.mark("lists read")

    assert timeline.mark("connected") == first
    assert timeline.stages() == (("connected", first), ("lists read", later))
    assert later > first
