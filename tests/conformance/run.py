"""Run the public MCP conformance suite against the bundled Host: `python tests/conformance/run.py`.

Every server scenario must pass, warnings included: all of the release for the handshake era, and what the modern era
(2026-07-28) requires of a server.
"""

from __future__ import annotations

import os
import subprocess
import sys
import tempfile
import threading
from collections.abc import Iterator
from contextlib import contextmanager
from pathlib import Path

if __name__ == "__main__":
    sys.path.insert(0, str(Path(__file__).parents[1]))

from conformance.suite import Check, Suite

ADDIN = Path(__file__).with_name("addin.py")
START_SECONDS = 30
STOP_SECONDS = 15
MODERN = "2026-07-28"

# Scenarios of the modern release that the revision does not require: extensions, and headers that it calls pending.
NOT_REQUIRED = ("tasks-", "http-custom-header-")


def main() -> int:
    with running_host() as url:
        checks = check_handshake(url) + check_modern(url)
    problems = [check for check in checks if is_problem(check)]
    for check in problems:
        print(f"{check.status} {check.scenario}: {check.text}")
    passed = sum(check.status == "SUCCESS" for check in checks)
    print(f"{len({check.scenario for check in checks})} scenarios, {passed} checks passed, {len(problems)} did not")
    return 1 if problems else 0


def check_handshake(url: str) -> list[Check]:
    suite = Suite("@modelcontextprotocol/conformance")
    checks = suite.check_server(url, "--suite", "all")
    left_out = suite.scenarios() - {check.scenario for check in checks}
    return checks + [Check(scenario, "FAILURE", "was not run") for scenario in sorted(left_out)]


def check_modern(url: str) -> list[Check]:
    checks = Suite("conformance-modern").check_server(url, "--requirements", MODERN)
    return [check for check in checks if not check.scenario.startswith(NOT_REQUIRED)]


def is_problem(check: Check) -> bool:
    return check.status not in ("SUCCESS", "INFO", "SKIPPED")


@contextmanager
def running_host() -> Iterator[str]:
    """A Host with the add-in that the scenarios need, in a home of its own; the URL of its endpoint."""
    with tempfile.TemporaryDirectory() as home:
        environment = {**os.environ, "HOME": home, "XDG_DATA_HOME": home, "LOCALAPPDATA": home, "TMPDIR": home}
        command = [sys.executable, "-m", "uno_devserver.host", "--httpPort", "0", "--addins", str(ADDIN)]
        with subprocess.Popen(
            command,
            env=environment,
            cwd=home,
            stdin=subprocess.DEVNULL,
            stdout=subprocess.PIPE,
            text=True,
            start_new_session=True,
        ) as host:
            try:
                yield f"http://127.0.0.1:{_port(host)}/mcp"
            finally:
                host.terminate()
                try:
                    host.wait(STOP_SECONDS)
                except subprocess.TimeoutExpired:
                    host.kill()


def _port(host: subprocess.Popen[str]) -> int:
    """Where it listens; it says so when it does."""
    assert host.stdout is not None
    too_late = threading.Timer(START_SECONDS, host.kill)
    too_late.start()
    try:
        for line in host.stdout:
            if line.startswith("Now listening on: "):
                return int(line.rsplit(":", 1)[1])
    finally:
        too_late.cancel()
    raise RuntimeError(f"The Host ended with {host.wait()} before it listened.")


if __name__ == "__main__":
    sys.exit(main())
