"""When a saved file has a Host started again, and when it does not."""

from __future__ import annotations

from pathlib import Path
from types import SimpleNamespace
from typing import Any

import pytest

from protocol.conversations import asynchronous, timers, until
from uno_devserver.instances.probe import HostAddIn, Probe
from uno_devserver.proxy.health.report import ProxyFacts, UpstreamFacts
from uno_devserver.proxy.options import Options
from uno_devserver.proxy.state import ConnectionState
from uno_devserver.proxy.workspace import controller as module
from uno_devserver.proxy.workspace.controller import Mending

BROKEN = Probe(add_ins=(HostAddIn("a", None, None, loaded=False, error="it is wrong"),))
WELL = Probe(add_ins=(HostAddIn("a", None, None, loaded=True, error=None),))
LAUNCHED, EDITED = 1, 2  # keys of the add-ins' files


class Upstream:
    sources: int | None = LAUNCHED


class World:
    def __init__(self, monkeypatch: pytest.MonkeyPatch, state: ConnectionState, **facts: Any) -> None:
        monkeypatch.setattr(module, "HostUpstream", Upstream)
        self.restarts = self.looks = self.wishes = self.reloads = 0
        self.watched = False  # whether somebody watches the code
        self.rest = 0.0
        self.upstream = Upstream()
        keeper: Any = SimpleNamespace(
            state=state,
            upstream=self.upstream,
            rest=lambda: self.rest,
            wanted=lambda: self._count("wishes"),
            reload=self._reload,
        )
        owned = UpstreamFacts(owned=facts.pop("owned", True))
        state: Any = SimpleNamespace(facts=ProxyFacts(Options("/ws"), upstream=owned, **facts))
        self.mending = Mending(keeper, state, lambda: self._count("looks"), restart=lambda: self._count("restarts"))

    @property
    def done(self) -> tuple[int, int, int]:
        """Restarts, wishes, and looks to come."""
        return self.restarts, self.wishes, self.looks

    def _reload(self) -> bool:
        self.reloads += self.watched
        return self.watched

    def _count(self, what: str) -> None:
        setattr(self, what, getattr(self, what) + 1)


@pytest.mark.parametrize(
    ("facts", "sources", "restarts"),
    [
        ({"host": BROKEN}, EDITED, 1),
        ({"left_out": ("a",)}, EDITED, 1),
        ({"host": BROKEN}, LAUNCHED, 0),  # touched, or another file
        ({"host": WELL}, EDITED, 0),
        ({}, EDITED, 0),
        ({"host": BROKEN, "owned": False}, EDITED, 0),
    ],
)
@asynchronous
async def test_a_host_that_runs_is_only_started_again_for_an_add_in_that_it_lacks(
    monkeypatch: pytest.MonkeyPatch, facts: dict[str, Any], sources: int, restarts: int
) -> None:
    world = World(monkeypatch, ConnectionState.CONNECTED, **facts)

    world.mending.saved(sources)

    assert world.done == (restarts, 0, 0)


@asynchronous
async def test_where_somebody_watches_the_code_one_save_is_one_restart_of_theirs(
    monkeypatch: pytest.MonkeyPatch,
) -> None:
    world = World(monkeypatch, ConnectionState.CONNECTED, host=BROKEN)
    world.watched = True

    world.mending.saved(EDITED)

    assert world.done == (0, 0, 0)
    assert world.reloads == 1


@pytest.mark.parametrize("sources", [LAUNCHED, EDITED])
@asynchronous
async def test_where_nothing_works_any_file_is_worth_an_attempt(monkeypatch: pytest.MonkeyPatch, sources: int) -> None:
    world = World(monkeypatch, ConnectionState.DEGRADED)

    world.mending.saved(sources)

    assert world.done == (0, 1, 0)


@pytest.mark.parametrize("state", [ConnectionState.CONNECTED, ConnectionState.DEGRADED, ConnectionState.LAUNCHING])
@asynchronous
async def test_what_is_saved_too_early_is_remembered_once(
    monkeypatch: pytest.MonkeyPatch, state: ConnectionState
) -> None:
    world = World(monkeypatch, state, host=BROKEN)
    world.rest = 0.01
    before = timers()

    world.mending.saved(EDITED)
    world.mending.saved(EDITED)

    assert world.done == (0, 0, 0)
    assert timers() == before + 1
    await until(lambda: world.looks == 1)


@asynchronous
async def test_at_the_end_nothing_is_remembered(monkeypatch: pytest.MonkeyPatch) -> None:
    world = World(monkeypatch, ConnectionState.DEGRADED)
    world.rest = 60.0
    before = timers()
    world.mending.saved(EDITED)
    assert timers() == before + 1

    world.mending.close()

    assert timers() == before


@pytest.mark.parametrize(("known", "wishes"), [(LAUNCHED, 1), (0, 0), (None, 0)])
@asynchronous
async def test_what_was_saved_during_a_start_is_noticed_when_it_is_through(
    monkeypatch: pytest.MonkeyPatch, tmp_path: Path, known: int | None, wishes: int
) -> None:
    world = World(monkeypatch, ConnectionState.DEGRADED)
    world.upstream.sources = known  # and the folder, which has no add-ins, has the key 0
    workspace: Any = SimpleNamespace(working_directory=str(tmp_path))

    await world.mending.catch_up(workspace)

    assert world.wishes == wishes
