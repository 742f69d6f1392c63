from __future__ import annotations

import base64

import pytest
from hypothesis import given
from hypothesis import strategies as st

from uno_devserver.protocol.peer_info import ServerInfo
from uno_devserver.protocol.versions import (
    HANDSHAKE_VERSIONS,
    can_poll,
    decoded_header,
    has_envelope,
    modern_result,
    negotiated,
    wants_log,
)


@pytest.mark.parametrize("version", HANDSHAKE_VERSIONS)
def test_a_known_version_is_agreed_on(version: str) -> None:
    assert negotiated(version) == version


@pytest.mark.parametrize("version", [None, 5, [], "2026-07-28", "zzz"])
def test_any_other_becomes_the_newest(version: object) -> None:
    assert negotiated(version) == "2025-11-25"


def test_polling_came_with_the_last_handshake_version() -> None:
    assert [version for version in HANDSHAKE_VERSIONS if can_poll(version)] == ["2025-11-25"]


@pytest.mark.parametrize(
    ("params", "expected"),
    [
        ({}, False),
        ({"_meta": None}, False),
        ({"_meta": {"progressToken": 1}}, False),
        ({"_meta": {"io.modelcontextprotocol/protocolVersion": None}}, True),
    ],
)
def test_only_the_reserved_key_makes_a_request_modern(params: dict[str, object], expected: bool) -> None:
    assert has_envelope(params) is expected


@given(st.text())
def test_a_wrapped_header_says_what_was_wrapped(text: str) -> None:
    raw = text.encode("utf-8", "ignore")

    assert decoded_header(f"=?base64?{base64.b64encode(raw).decode()}?=") == raw.decode()


@given(st.text().filter(lambda text: not text.startswith("=?base64?")))
def test_any_other_header_says_what_it_says(text: str) -> None:
    assert decoded_header(text) == text


@pytest.mark.parametrize("value", ["=?base64?", "=?base64?=", "=?BASE64?eA==?="])
def test_half_a_wrapping_is_no_wrapping(value: str) -> None:
    assert decoded_header(value) == value


@pytest.mark.parametrize("wrapped", ["x", "eA", "eA=", "eA==\n", "eB==", "e A==", "ü", "_w==", "/w=="])
def test_a_broken_wrapping_says_nothing(wrapped: str) -> None:
    assert decoded_header(f"=?base64?{wrapped}?=") is None


@pytest.mark.parametrize(
    ("level", "params", "heard"),
    [
        ("info", {"level": "info"}, True),
        ("info", {"level": "debug"}, False),
        ("info", {"level": "emergency"}, True),
        ("debug", {"level": "loud"}, False),
        ("debug", {}, False),
        ("debug", None, False),
        (None, {"level": "emergency"}, False),
    ],
)
def test_log_messages_are_for_those_who_want_them(
    level: str | None, params: dict[str, str] | None, heard: bool
) -> None:
    assert wants_log(level, "notifications/message", params) is heard
    assert wants_log(level, "notifications/progress", params) is True


def test_a_modern_result_does_not_change_what_the_service_holds() -> None:
    held = {"tools": [], "_meta": {"mine": 1}}

    modern_result("tools/list", held, ServerInfo("s", "1"))

    assert held == {"tools": [], "_meta": {"mine": 1}}


def test_another_kind_of_result_keeps_its_type() -> None:
    result = modern_result("tools/list", {"resultType": "task", "_meta": None}, ServerInfo("s", "1"))

    assert result == {
        "resultType": "task",
        "_meta": {"io.modelcontextprotocol/serverInfo": {"name": "s", "version": "1"}},
    }
