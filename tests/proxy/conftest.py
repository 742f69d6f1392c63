"""A server that needs a sign-in, for the tests of stored tokens and of the proxies that use them."""

from __future__ import annotations

from collections.abc import Iterator

import pytest

from support.sign_ins import AuthorizationServer


@pytest.fixture(scope="module")
def authorization() -> Iterator[AuthorizationServer]:
    with AuthorizationServer() as server:
        yield server


@pytest.fixture(scope="module")
def url(authorization: AuthorizationServer) -> str:
    return authorization.protected_server()
