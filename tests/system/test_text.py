"""Text from files is shown without doing anything to the terminal."""

from __future__ import annotations

import pytest

from uno_devserver.system.text import has_credentials, shown_url, visible


@pytest.mark.parametrize(
    ("text", "shown"),
    [
        ("plain text, é, 日本", "plain text, é, 日本"),
        ("two\nlines", "two\nlines"),
        ("\x1b[31mred\x07\t", r"\x1b[31mred\x07\x09"),
        ("\x9b31m\u202e", r"\x9b31m\u202e"),
        ("caf\udce9", r"caf\udce9"),
    ],
)
def test_control_characters_are_shown_by_their_number(text: str, shown: str) -> None:
    assert visible(text) == shown


def test_odd_bytes_of_file_names_can_be_kept_for_a_pipe() -> None:
    assert visible("caf\udce9\x1b", keep_odd_bytes=True) == "caf\udce9" + r"\x1b"


@pytest.mark.parametrize(
    "url",
    [
        "http://localhost:5000/mcp",
        "https://host",
        "https://host/",
        "https://host:8443/sse",
        "http://[::1]:81/mcp",
        "localhost:5000/mcp",
        "no url",
        "",
    ],
)
def test_where_a_url_leads_is_shown(url: str) -> None:
    assert shown_url(url) == url


@pytest.mark.parametrize(
    ("url", "shown"),
    [
        ("https://host/mcp?key=secret", "https://host/mcp"),
        ("https://host?key=secret", "https://host"),
        ("https://host/mcp#secret", "https://host/mcp"),
        ("https://host/mcp/secret", "https://host/…"),
        ("https://host/secret/mcp?key=secret", "https://host/…"),
        ("https://host/secret/@scope/mcp", "https://host/…"),
        ("https://host//secret", "https://host/…"),
        ("https://host/mcp;secret", "https://host/…"),
        (" https://host/mcp ", "https://host/mcp"),
        ("https://user:secret@host", "https://host"),
        ("https://secret@host:1/mcp", "https://host:1/mcp"),
        ("https://user:se@secret@[::1]/mcp", "https://[::1]/mcp"),
        ("https://secret:pass/word@host/mcp", "https://…/…"),
        ("https://secret:12/34@host/mcp", "https://…/…"),
        ("https://secret:pass?word@host/mcp", "https://…"),
        ("https://host:secret/mcp", "https://…/mcp"),
        ("host/secret", "host/…"),
        ("user:secret@host/mcp", "host/mcp"),
        ("/secret", "/…"),
        ("//host/secret", "/…"),
        ("ftp://host/?key=https://secret", "ftp://host/"),
        ("http://host/\nsecret", "http://host/…"),
    ],
)
def test_whatever_may_be_a_key_is_not(url: str, shown: str) -> None:
    assert shown_url(url) == shown


@pytest.mark.parametrize("url", ["https://user:password@host/mcp", "http://token@host", " http://:@[::1]:1/ "])
def test_credentials_stand_before_the_host(url: str) -> None:
    assert has_credentials(url)


@pytest.mark.parametrize("url", ["https://host/@scope/mcp", "https://host/mcp?mail=a@b", "https://host#a@b", ""])
def test_an_at_sign_behind_the_host_is_none(url: str) -> None:
    assert not has_credentials(url)
