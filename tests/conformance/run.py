"""Run the public MCP conformance suite: `python tests/conformance/run.py`.

Against the bundled Host, and against `/mcp` of the proxy's inspector (and of `--http`) with that Host behind it, or
with a server made with the Python SDK, over pipes and over HTTP, every server scenario must pass, warnings included:
all of the release for the handshake era, and what the modern era (2026-07-28) requires of a server. A server made with
the TypeScript SDK offers less; but whatever passes there directly must pass through the proxy.
"""

from __future__ import annotations

import sys
from concurrent.futures import ThreadPoolExecutor
from pathlib import Path

if __name__ == "__main__":
    sys.path.insert(0, str(Path(__file__).parents[1]))

from conformance.servers import (
    everything,
    host,
    http_face_of_host,
    inspector_of_host,
    proxies_of_sdk_server,
    proxy,
)
from conformance.suite import Check, Suite

MODERN = "2026-07-28"

# Scenarios of the modern release that the revision does not require: extensions, and headers that it calls pending.
NOT_REQUIRED = ("tasks-", "http-custom-header-")


def main() -> int:
    failed = False
    for name, server in (
        ("the Host", host),
        ("the proxy of the Host", http_face_of_host),
        ("the inspector of a proxy of the Host", inspector_of_host),
    ):
        with server() as url:
            checks = check_handshake(url) + check_modern(url)
        failed |= _told(name, checks, [check for check in checks if is_problem(check)])
    for modern in (False, True):
        by_url, by_command = check_sdk_server(modern)
        for name, checks in (("a URL", by_url), ("a command", by_command)):
            failed |= _told(f"the proxy of {name}", checks, [check for check in checks if is_problem(check)])
    with everything() as (url, command):
        directly = check_handshake(url)
        for name, arguments in (("a URL", ["--upstream-url", url]), ("a command", ["--", *command])):
            with proxy(*arguments) as proxied:
                checks = check_handshake(proxied)
            failed |= _told(f"the proxy of {name}", checks, worse(directly, checks))
    return 1 if failed else 0


def _told(name: str, checks: list[Check], problems: list[Check]) -> bool:
    for check in problems:
        print(f"{name}: {check.status} {check.scenario}: {check.text}")
    passed = sum(check.status == "SUCCESS" for check in checks)
    scenarios = len({check.scenario for check in checks})
    print(f"{name}: {scenarios} scenarios, {passed} checks passed, {len(problems)} problems")
    return bool(problems)


def check_handshake(url: str) -> list[Check]:
    suite = Suite("@modelcontextprotocol/conformance")
    checks = suite.check_server(url, "--suite", "all")
    left_out = suite.scenarios() - {check.scenario for check in checks}
    return checks + [Check(scenario, "FAILURE", "was not run") for scenario in sorted(left_out)]


def check_modern(url: str) -> list[Check]:
    checks = Suite("conformance-modern").check_server(url, "--requirements", MODERN)
    return [check for check in checks if not check.scenario.startswith(NOT_REQUIRED)]


def check_sdk_server(modern: bool) -> tuple[list[Check], list[Check]]:
    """Through a proxy of its URL, and through one of its command, at the same time."""
    with proxies_of_sdk_server(modern) as urls, ThreadPoolExecutor() as pool:
        by_url, by_command = pool.map(check_modern if modern else check_handshake, urls)
    return by_url, by_command


def is_problem(check: Check) -> bool:
    return check.status not in ("SUCCESS", "INFO", "SKIPPED")


def passed(checks: list[Check]) -> set[str]:
    """The scenarios without a problem."""
    return {check.scenario for check in checks} - {check.scenario for check in checks if is_problem(check)}


def worse(directly: list[Check], through: list[Check]) -> list[Check]:
    """What is wrong through the proxy in scenarios that pass directly."""
    well = passed(directly)
    return [check for check in through if is_problem(check) and check.scenario in well]


if __name__ == "__main__":
    sys.exit(main())
