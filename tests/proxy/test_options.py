"""What a proxy is told, and what of it others may see."""

from __future__ import annotations

import pytest

from uno_devserver.proxy.options import shown_url


@pytest.mark.parametrize(
    ("url", "shown"),
    [
        ("http://localhost:5000/mcp", "http://localhost:5000/mcp"),
        ("https://host/mcp?key=secret", "https://host/mcp"),
        ("https://user:secret@host/@scope/mcp", "https://host/@scope/mcp"),
        ("https://user:secret@host", "https://host"),
        ("no url", "no url"),
    ],
)
def test_secrets_of_a_url_are_not_shown(url: str, shown: str) -> None:
    assert shown_url(url) == shown
