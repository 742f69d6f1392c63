"""The proxy passes the scenarios for clients of the public MCP conformance suite, in both eras."""

from __future__ import annotations

import shlex
import sys
from pathlib import Path

import pytest

from .run import MODERN, is_problem
from .suite import Suite

DRIVER = shlex.join([sys.executable, str(Path(__file__).with_name("client_driver.py"))])
HANDSHAKE, OLDEST = "2025-11-25", "2025-03-26"
SCENARIOS: dict[str, tuple[str, ...]] = {
    "initialize": (HANDSHAKE,),
    "tools_call": (HANDSHAKE, MODERN),
    "elicitation-sep1034-client-defaults": (HANDSHAKE,),
    "sse-retry": (HANDSHAKE,),
    "json-schema-2020-12-preservation": (HANDSHAKE, MODERN),
    "request-metadata": (MODERN,),
    "sep-2322-client-request-state": (MODERN,),
    "http-standard-headers": (MODERN,),
    "http-custom-headers": (MODERN,),
    "http-invalid-tool-headers": (MODERN,),
    "json-schema-ref-no-deref": (MODERN,),
}
SIGN_INS = (
    "metadata-default metadata-var1 metadata-var2 metadata-var3 metadata-issuer-mismatch basic-cimd pre-registration "
    "scope-from-www-authenticate scope-from-scopes-supported scope-omitted-when-undefined scope-step-up "
    "scope-retry-limit token-endpoint-auth-basic token-endpoint-auth-post token-endpoint-auth-none resource-mismatch "
    "offline-access-scope offline-access-not-supported authorization-server-migration iss-supported "
    "iss-not-advertised iss-supported-missing iss-wrong-issuer iss-unexpected iss-normalized"
)
SCENARIOS |= {f"auth/{name}": (MODERN,) for name in SIGN_INS.split()}
SCENARIOS |= {f"auth/2025-03-26-oauth-{name}": (OLDEST,) for name in ("metadata-backcompat", "endpoint-fallback")}
# Extensions: other ways to sign in, and skills, which clients implement themselves.
EXTENSIONS = ("auth/client-credentials-", "auth/enterprise-", "auth/dpop", "auth/wif-", "sep-2640-")

pytestmark = pytest.mark.timeout(600)  # the first run installs the suite


@pytest.fixture(scope="module")
def suite() -> Suite:
    return Suite("conformance-modern")


def test_every_scenario_for_clients_is_known(suite: Suite) -> None:
    listed = {name for name in suite.scenarios("client") if not name.startswith(EXTENSIONS)}

    assert listed == set(SCENARIOS)


@pytest.mark.parametrize(
    ("scenario", "version"), [(name, version) for name, versions in SCENARIOS.items() for version in versions]
)
def test_the_proxy_passes_as_a_client(suite: Suite, scenario: str, version: str) -> None:
    checks = suite.check_client(DRIVER, scenario, "--spec-version", version)

    assert [check for check in checks if is_problem(check)] == []
    assert [check for check in checks if check.status == "SUCCESS"]
