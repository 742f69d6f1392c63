"""The kept answer of dotnet: for which question, for how long, and what becomes of a broken file."""

from __future__ import annotations

import json
from collections.abc import Callable
from datetime import UTC, datetime, timedelta
from pathlib import Path
from typing import Any

import pytest

from support.files import write
from uno_devserver.discovery import dotnet
from uno_devserver.discovery.dotnet import DotNetQuestion

GLOBAL_JSON = b'{"sdk": {"version": "10.0.100", "rollForward": "latestFeature", "allowPrerelease": true,}}'
QUESTION = DotNetQuestion("/opt/dotnet/dotnet", "/src/app/global.json", GLOBAL_JSON)


@pytest.fixture
def path(tmp_path: Path) -> Path:
    return tmp_path / "state" / "dotnet-version-cache.json"


def keep(path: Path, question: DotNetQuestion = QUESTION) -> None:
    dotnet.write_cached_version(str(path), question, "10.0.101", "net10.0")


def read(path: Path, question: DotNetQuestion = QUESTION) -> str | None:
    return dotnet.read_cached_version(str(path), question)


def change(path: Path, edit: Callable[[dict[str, Any]], object]) -> None:
    entry = json.loads(path.read_bytes())
    edit(entry)
    path.write_text(json.dumps(entry), "utf-8")


def ago(**span: float) -> str:
    return (datetime.now(UTC) - timedelta(**span)).isoformat()


def test_a_kept_answer_is_read_again(path: Path) -> None:
    assert read(path) is None

    keep(path)

    assert read(path) == "10.0.101"


def test_the_file_has_the_fields_of_the_net_tool_and_one_of_ours(path: Path) -> None:
    before = datetime.now(UTC)

    keep(path)

    entry = json.loads(path.read_bytes())
    assert list(entry) == ["version", "rawVersion", "tfm", "sdkVersionKey", "timestamp", "question"]
    assert entry["version"] == 1
    assert entry["rawVersion"] == "10.0.101"
    assert entry["tfm"] == "net10.0"
    assert entry["sdkVersionKey"] == "10.0.100|latestFeature|True"
    assert entry["timestamp"].endswith("Z")
    assert before <= datetime.fromisoformat(entry["timestamp"]) <= datetime.now(UTC)
    assert path.read_text("utf-8").startswith('{\n  "version": 1,\n')


@pytest.mark.parametrize(
    ("global_json", "key"),
    [
        (b'{"sdk": {"version": "9.0.100"}}', "9.0.100||"),
        (b'{"sdk": {"version": "9.0.100", "allowPrerelease": false}}', "9.0.100||False"),
        (b'{"sdk": {"rollForward": "major"}}', ""),
        (b'{"sdk": []}', ""),
        (b"[]", ""),
        (b"{", ""),
        (b"", ""),
        (None, ""),
    ],
)
def test_the_key_of_the_net_tool_is_empty_without_a_version(path: Path, global_json: bytes | None, key: str) -> None:
    keep(path, QUESTION.replace(global_json=global_json))

    assert json.loads(path.read_bytes())["sdkVersionKey"] == key


@pytest.mark.parametrize(
    "other",
    [
        QUESTION.replace(executable="/usr/bin/dotnet"),
        QUESTION.replace(place="/src/other/global.json"),
        QUESTION.replace(global_json=GLOBAL_JSON + b"\n"),
        QUESTION.replace(global_json=b""),
        QUESTION.replace(global_json=None),
    ],
)
def test_an_answer_counts_for_its_own_question_only(path: Path, other: DotNetQuestion) -> None:
    keep(path)

    assert read(path, other) is None


def test_no_file_and_an_empty_one_are_different_questions(path: Path) -> None:
    keep(path, QUESTION.replace(global_json=None))

    assert read(path, QUESTION.replace(global_json=b"")) is None


def test_names_that_are_no_utf_8_can_be_asked_about(path: Path) -> None:
    question = QUESTION.replace(executable="/opt/\udcff/dotnet")

    keep(path, question)

    assert read(path, question) == "10.0.101"


@pytest.mark.parametrize(
    ("timestamp", "expected"),
    [
        (lambda: ago(hours=23, minutes=50), "10.0.101"),  # before the test, and not before all tests
        (ago(hours=24), None),
        (ago(days=-1), None),  # the clock was set back: nobody knows how old it is
        ("2026-02-24T10:02:07.1234567", None),
        ("yesterday", None),
        ("", None),
        (None, None),
        (5, None),
    ],
    ids=["nearly a day", "a day", "the future", "no zone", "words", "empty", "null", "a number"],
)
def test_the_age_is_told_by_the_time_inside(path: Path, timestamp: object, expected: str | None) -> None:
    keep(path)

    change(path, lambda entry: entry.update(timestamp=timestamp() if callable(timestamp) else timestamp))

    assert read(path) == expected


def test_the_seven_digits_of_net_are_understood(path: Path) -> None:
    keep(path)

    change(path, lambda entry: entry.update(timestamp=ago(hours=1)[:19] + ".1234567Z"))

    assert read(path) == "10.0.101"


@pytest.mark.parametrize(
    "edit",
    [
        lambda entry: entry.update(version=2),
        lambda entry: entry.pop("version"),
        lambda entry: entry.pop("rawVersion"),
        lambda entry: entry.update(rawVersion=""),
        lambda entry: entry.update(rawVersion=10),
        lambda entry: entry.pop("tfm"),
        lambda entry: entry.pop("question"),
        lambda entry: entry.pop("timestamp"),
    ],
)
def test_an_entry_that_is_not_complete_does_not_count(path: Path, edit: Callable[[dict[str, Any]], object]) -> None:
    keep(path)

    change(path, edit)

    assert read(path) is None


@pytest.mark.parametrize("content", [b"", b"{", b"[]", b"null", b"\xff\xfe\x00", b"[" * 60_000, b" " * 1_000_000])
def test_a_broken_file_is_as_good_as_none(path: Path, content: bytes) -> None:
    write(path, content)

    assert read(path) is None

    keep(path)
    assert read(path) == "10.0.101"


def test_a_folder_in_its_place_is_no_problem(path: Path) -> None:
    path.mkdir(parents=True)

    keep(path)

    assert read(path) is None
    assert list(path.parent.iterdir()) == [path]
