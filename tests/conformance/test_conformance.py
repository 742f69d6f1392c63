"""The bundled Host passes the public MCP conformance suite."""

from __future__ import annotations

from collections.abc import Callable

import pytest

from .run import check_handshake, check_modern, is_problem, running_host
from .suite import Check

# As the releases list them; the modern one without what is not required of a server.
HANDSHAKE_SCENARIOS = 32
MODERN_SCENARIOS = 39


@pytest.mark.timeout(600)  # the first run installs the suite
@pytest.mark.parametrize(
    ("check", "scenarios"), [(check_handshake, HANDSHAKE_SCENARIOS), (check_modern, MODERN_SCENARIOS)]
)
def test_every_server_scenario_passes(check: Callable[[str], list[Check]], scenarios: int) -> None:
    with running_host() as url:
        checks = check(url)

    assert [one for one in checks if is_problem(one)] == []
    assert len({one.scenario for one in checks}) == scenarios
