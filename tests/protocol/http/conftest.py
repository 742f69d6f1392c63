"""Servers that are stopped after the test, which also checks that they leave nothing behind."""

from __future__ import annotations

from collections.abc import Iterator
from contextlib import ExitStack
from typing import Any

import pytest

from uno_devserver.protocol.http.messages import Handler

from .serving import Running, Serve, echo, running


@pytest.fixture
def serve() -> Iterator[Serve]:
    with ExitStack() as servers:

        def start(handler: Handler = echo, **options: Any) -> Running:
            return servers.enter_context(running(handler, **options))

        yield start
