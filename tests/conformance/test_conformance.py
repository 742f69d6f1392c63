"""The bundled Host and the proxy before it pass the public MCP conformance suite; others lose nothing by the proxy."""

from __future__ import annotations

from collections.abc import Callable
from contextlib import AbstractContextManager

import pytest

from .run import check_handshake, check_modern, check_sdk_server, is_problem, passed, worse
from .servers import everything, host, http_face_of_host, inspector_of_host, proxy
from .suite import Check

# As the releases list them; the modern one without what is not required of a server.
HANDSHAKE_SCENARIOS = 32
MODERN_SCENARIOS = 39

pytestmark = pytest.mark.timeout(600)  # the first run installs the suite


@pytest.mark.parametrize(
    ("server", "check", "scenarios"),
    [
        (host, check_handshake, HANDSHAKE_SCENARIOS),
        (host, check_modern, MODERN_SCENARIOS),
        (inspector_of_host, check_handshake, HANDSHAKE_SCENARIOS),
        (inspector_of_host, check_modern, MODERN_SCENARIOS),
        (http_face_of_host, check_handshake, HANDSHAKE_SCENARIOS),  # the same endpoint; `make conformance` runs both
    ],
)
def test_every_server_scenario_passes(
    server: Callable[[], AbstractContextManager[str]], check: Callable[[str], list[Check]], scenarios: int
) -> None:
    with server() as url:
        checks = check(url)

    assert [one for one in checks if is_problem(one)] == []
    assert len({one.scenario for one in checks}) == scenarios


@pytest.mark.parametrize(("modern", "scenarios"), [(False, HANDSHAKE_SCENARIOS), (True, MODERN_SCENARIOS)])
def test_every_scenario_passes_through_the_proxy_of_a_server_made_with_the_python_sdk(
    modern: bool, scenarios: int
) -> None:
    for checks in check_sdk_server(modern):
        assert [one for one in checks if is_problem(one)] == []
        assert len({one.scenario for one in checks}) == scenarios


def test_what_passes_with_a_foreign_server_passes_through_the_proxy() -> None:
    with everything() as (url, command):
        directly = check_handshake(url)
        with proxy("--upstream-url", url) as proxied:
            by_url = check_handshake(proxied)
        with proxy("--", *command) as proxied:
            by_command = check_handshake(proxied)

    assert len(passed(directly)) >= 10  # else this says nothing
    assert worse(directly, by_url) == []
    assert worse(directly, by_command) == []
