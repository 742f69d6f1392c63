"""Servers that are stopped after the test, which also checks that they leave nothing behind."""

from __future__ import annotations

import socket
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


@pytest.fixture
def page() -> Iterator[str]:
    """The origin of a page that a program of this user serves."""
    with socket.create_server(("127.0.0.1", 0)) as listener:
        yield f"http://localhost:{listener.getsockname()[1]}"
