"""What the proxy knows: issues by their source, the workspace from the first moment, and a file for others."""

from __future__ import annotations

import json
import time
from collections.abc import Mapping
from pathlib import Path

import pytest

from support.waiting import wait_for
from uno_devserver.discovery.discover import empty_discovery
from uno_devserver.instances.host_kind import HostKind
from uno_devserver.issues import fatal, warning
from uno_devserver.proxy.health.status_file import StatusFile
from uno_devserver.proxy.lists.catalogue import Catalogue
from uno_devserver.proxy.lists.merge import Offered
from uno_devserver.proxy.options import ProxyOptions
from uno_devserver.proxy.state import PASSING, ConnectionState, ProxyState, Timeline, UpstreamFacts
from uno_devserver.proxy.upstream.base import Ending
from uno_devserver.workspace.resolver import resolve

LATE = warning("RestoreStale", "It is late.")
ODD = warning("ConfigInvalid", "It is odd.")
SERVER = UpstreamFacts(HostKind.BUNDLED, 42, "http://localhost:5651/mcp", owned=True)


@pytest.fixture
def known(tmp_path: Path) -> ProxyState:
    return ProxyState(ProxyOptions(str(tmp_path)))


def proxy_in(report: Mapping[str, object]) -> dict[str, object]:
    proxy = report["proxy"]
    assert isinstance(proxy, dict)
    return proxy


# --- what is learned


def test_each_part_replaces_what_it_said_before_and_nothing_else(known: ProxyState) -> None:
    known.blame("start", (LATE,))
    known.blame("workspace", (ODD, LATE))
    assert known.facts.issues == (LATE, ODD)

    known.blame("start", ())

    assert known.facts.issues == (ODD, LATE)


@pytest.mark.parametrize("first", ["start", "workspace"])
def test_a_problem_that_is_fatal_for_one_part_is_told_once_whoever_comes_first(known: ProxyState, first: str) -> None:
    told = {"start": fatal(ODD.code, ODD.message, "Do this."), "workspace": ODD}
    other = "workspace" if first == "start" else "start"

    known.blame(first, (told[first],))
    known.blame(other, (told[other],))

    assert known.facts.issues == (told["start"],)


def test_the_state_and_the_generation_that_calls_look_at_follow_the_facts(known: ProxyState) -> None:
    known.learn(state=ConnectionState.CONNECTED, generation=3)

    assert (known.connection, known.generation) == (ConnectionState.CONNECTED, 3)


def test_a_reader_sees_one_consistent_value_whatever_is_learned_meanwhile(known: ProxyState) -> None:
    seen = known.facts

    known.learn(restarts=1)

    assert (seen.restarts, known.facts.restarts) == (0, 1)


def test_those_who_subscribe_are_told_of_each_change_until_they_unsubscribe(known: ProxyState) -> None:
    heard: list[int] = []

    def listener() -> None:
        heard.append(known.facts.restarts)
        if known.facts.restarts == 2:
            known.unsubscribe(listener)  # in the midst of being told

    known.subscribe(listener)
    for number in range(1, 4):
        known.learn(restarts=number)
    known.unsubscribe(listener)

    assert heard == [1, 2]


@pytest.mark.parametrize("server", [SERVER, None], ids=["of a known server", "before its server is known"])
def test_a_stray_line_is_kept_with_the_facts_about_its_server(known: ProxyState, server: UpstreamFacts | None) -> None:
    known.learn(upstream=server)

    known.report_stray_line("hello")

    assert known.facts.upstream == (server or UpstreamFacts()).replace(stray_line="hello")


def test_a_process_that_is_gone_has_neither_number_nor_port_and_a_url_stays(known: ProxyState) -> None:
    known.learn(upstream=SERVER)
    known.forget_process()
    assert known.facts.upstream == SERVER.replace(process_id=None, endpoint=None)

    at_url = UpstreamFacts(HostKind.COMMAND, None, "http://localhost:1/mcp")
    known.learn(upstream=at_url)
    known.forget_process()

    assert known.facts.upstream == at_url


def test_what_was_wrong_with_an_upstream_is_forgotten_with_it_and_other_problems_stay(known: ProxyState) -> None:
    known.blame("start", (LATE,))
    known.blame("config", (ODD,))
    known.learn(upstream=SERVER, last_end=Ending("it ended", 1), trusted=False, connect_error="No.", named="It")

    known.forget_upstream()

    facts = known.facts
    assert (facts.upstream, facts.last_end, facts.trusted, facts.connect_error) == (None, None, None, "")
    assert facts.issues == (ODD,)
    assert facts.named == "It", "the same command is started again"


def test_another_workspace_has_a_server_of_another_name(known: ProxyState, tmp_path: Path) -> None:
    known.workspace = resolve(str(tmp_path))
    known.learn(named="The server 'one'")

    known.forget_upstream()

    assert known.facts.named is None


# --- the report


def test_the_report_knows_the_workspace_before_anything_was_looked_for_in_it(known: ProxyState, tmp_path: Path) -> None:
    (tmp_path / ".devtools" / "addins").mkdir(parents=True)
    known.workspace = workspace = resolve(str(tmp_path))

    assert known.report()["effectiveWorkspaceDirectory"] == str(tmp_path)
    known.learn(discovery=empty_discovery(workspace).replace(duration_ms=7))
    assert known.report()["discoveryDurationMs"] == 7
    known.workspace = resolve(str(tmp_path.parent))

    report = known.report()
    assert report["effectiveWorkspaceDirectory"] is None
    assert report["discoveryDurationMs"] == 0, "that was about another workspace"


def test_the_report_tells_how_far_the_start_has_come(known: ProxyState) -> None:
    known.timeline.mark("engine")

    timeline = proxy_in(known.report())["timeline"]

    assert isinstance(timeline, dict)
    assert list(timeline) == ["engine"]


def test_the_report_tells_the_age_of_the_catalogue_until_the_lists_are_read(tmp_path: Path) -> None:
    kept = Catalogue(Offered(), {}, {}, None, time.time() - 100, sdk_version="6.5.31")
    known = ProxyState(ProxyOptions(str(tmp_path)), catalogue=kept)

    age = proxy_in(known.report())["catalogueAgeSeconds"]

    assert isinstance(age, float)
    assert 99 < age < 110
    assert known.facts.catalogue_sdk == "6.5.31"


def test_how_hot_reload_stands_is_asked_for_at_the_moment_of_the_report(known: ProxyState) -> None:
    class Reloader:
        files = 1
        broken = False

        def status(self) -> Mapping[str, object]:
            if self.broken:
                raise RuntimeError("dictionary changed size during iteration")
            return {"files": self.files}

    reloader = Reloader()
    known.follow_reloader(reloader)

    assert proxy_in(known.report())["hotReload"] == {"files": 1}
    reloader.files = 2
    assert proxy_in(known.report())["hotReload"] == {"files": 2}
    reloader.broken = True
    assert proxy_in(known.report())["hotReload"] == {"files": 2}, "what was told before"


# --- the file for others


@pytest.fixture
def filed(tmp_path: Path) -> ProxyState:
    return ProxyState(ProxyOptions(str(tmp_path)), status_file=StatusFile(str(tmp_path / "state")))


def test_the_file_for_others_is_written_when_a_start_has_come_to_its_end(filed: ProxyState, tmp_path: Path) -> None:
    folder = tmp_path / "state" / "proxies"
    for passing in PASSING:
        filed.learn(state=passing)
    assert not folder.exists()

    filed.learn(state=ConnectionState.CONNECTED)

    [file] = wait_for(lambda: list(folder.glob("*.json")))
    assert json.loads(file.read_text("utf-8"))["state"] == "Connected"
    filed.close()
    assert list(folder.glob("*.json")) == []


def test_a_first_start_that_takes_long_is_told_to_others_before_its_end(filed: ProxyState, tmp_path: Path) -> None:
    filed.learn(state=ConnectionState.LAUNCHING)

    filed.first_start_takes_long()

    [file] = wait_for(lambda: list((tmp_path / "state" / "proxies").glob("*.json")))
    assert json.loads(file.read_text("utf-8"))["state"] == "Launching"
    filed.close()


def test_a_proxy_without_a_file_has_nothing_to_remove(known: ProxyState) -> None:
    known.learn(state=ConnectionState.CONNECTED)

    known.close()


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
