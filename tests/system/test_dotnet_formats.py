"""JSON and times as .NET writes them: compared with what it wrote."""

from __future__ import annotations

import json
import time
from typing import Any

import pytest

from support.golden import GOLDEN
from uno_devserver.system.dotnet_formats import from_time, to_json, to_time

RECORDED: list[dict[str, Any]] = json.loads((GOLDEN / "bytes" / "json" / "serializers.json").read_text("utf-8"))
READERS: list[dict[str, str]] = json.loads((GOLDEN / "bytes" / "json" / "readers.json").read_text("utf-8"))
MOMENT = 1741529106  # 2025-03-09T14:05:06Z


def recorded(value: str) -> str:
    return str(next(case["stj"] for case in RECORDED if case["value"] == value))


@pytest.mark.parametrize(
    ("value", "text"),
    [
        ("string ASCII letters", "abc XYZ 09"),
        ("string + < > & ' \" \\ / `", "+<>&'\"\\/`"),
        ("string control characters", "\b\t\n\f\r\0\x01\x1f\x7f\x80\u2028\u2029"),
        ("string non-ASCII BMP", "Příliš ж 中 € \xa0"),
        ("string emoji (surrogate pair)", "🚀"),
        ("string lone surrogate", "x\ud83dy"),
        ("string empty", ""),
        ("string with path C:\\a\\b", "C:\\a\\b"),
        ("string BOM U+FEFF and noncharacter U+FFFE", "\ufeff\ufffe"),
        ("int -1", -1),
        ("true", True),
        ("null", None),
    ],
)
def test_a_value_is_escaped_as_recorded(value: str, text: object) -> None:
    assert to_json(text) == recorded(value)


@pytest.mark.parametrize(
    "written", [case["stj_indented"] for case in RECORDED if case["stj_indented"].startswith(("{", "["))]
)
def test_objects_and_lists_are_laid_out_as_recorded(written: str) -> None:
    assert to_json(json.loads(written)) == written


@pytest.mark.parametrize(
    ("value", "nanoseconds"),
    [
        ("DateTime UTC, zero fraction", 0),
        ("DateTime UTC, 7 digits (.1234567)", 123_456_700),
        ("DateTime UTC, .1200000 (trailing zeros)", 120_000_000),
        ("DateTime UTC, 1 tick", 100),
    ],
)
def test_a_moment_is_written_as_recorded(value: str, nanoseconds: int) -> None:
    assert to_json(to_time(MOMENT * 10**9 + nanoseconds)) == recorded(value)


def test_a_moment_is_cut_to_ticks_as_in_net() -> None:
    assert to_time(MOMENT * 10**9 + 123_456_799).endswith(".1234567Z")


@pytest.mark.parametrize(
    ("text", "seconds"),
    [
        ("2025-03-09T14:05:06Z", MOMENT),
        ("2025-03-09T14:05:06.1Z", MOMENT + 0.1),
        ("2025-03-09T14:05:06.12345678Z", MOMENT + 0.123456),
        ("2025-03-09T14:05:06+02:00", MOMENT - 7200),
        ("2025-03-09T14:05:06", MOMENT),
        ("2025-03-09T14:05Z", MOMENT - 6),
    ],
)
def test_what_net_reads_as_a_time_is_read(text: str, seconds: float) -> None:
    assert any(case["json"] == json.dumps(text) and not case["stj"].startswith("!") for case in READERS), "recorded"
    assert from_time(text) == pytest.approx(seconds, abs=1e-5)


@pytest.mark.parametrize("text", ["", "09.03.2025", "soon", "0001-01-01T00:00:00", "9999-99-99T00:00:00Z", "1" * 5000])
def test_what_is_no_time_gives_none(text: str) -> None:
    assert from_time(text) is None


def test_now_comes_back_from_its_text() -> None:
    now = time.time_ns()

    assert from_time(to_time(now)) == pytest.approx(now / 10**9, abs=1e-5)
