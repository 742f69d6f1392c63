"""What undoes our changes of a file: held by bytes of any kind, and by what others do in between."""

from __future__ import annotations

import subprocess
import sys
from itertools import pairwise
from pathlib import Path

import pytest
from hypothesis import given
from hypothesis import strategies as st

from support.files import write
from uno_devserver.setup.change_records import (
    ChangeRecord,
    Original,
    continued_record,
    forget_record,
    keep_record,
    record_of,
)
from uno_devserver.system.files import TEMPORARY
from uno_devserver.system.state_files import name_for

CONTENT = st.none() | st.binary(max_size=40) | st.text(alphabet="ab\n", max_size=12).map(str.encode)


@given(st.lists(CONTENT, min_size=2, max_size=5))
def test_however_often_we_change_a_file_the_record_leads_back_to_the_original(contents: list[bytes | None]) -> None:
    record: ChangeRecord | None = None
    for before, after in pairwise(contents):
        record, _ = continued_record(record, "/x/mcp.json", before, after, ())

    assert record is not None
    assert record.original(contents[-1]) == Original(contents[0])
    assert record.original(contents[-2]) == Original(contents[0]), "a killed run has not written the last one"


def test_a_record_survives_the_disk(tmp_path: Path) -> None:
    state, path = str(tmp_path / "state"), str(tmp_path / "mcp.json")
    record, _ = continued_record(None, path, b"\xff\x00 {} \n", b'\xff\x00 {"a": 1} \n', (str(tmp_path / "made"),))

    keep_record(state, record)

    assert record_of(state, path) == record


def test_what_a_killed_run_left_of_a_record_goes_with_the_next_record(tmp_path: Path) -> None:
    state, path = str(tmp_path / "state"), str(tmp_path / "mcp.json")
    record, _ = continued_record(None, path, b"{}", b'{"a": 1}', ())
    keep_record(state, record)
    (kept,) = (one for one in (tmp_path / "state").rglob("*.json"))
    with subprocess.Popen([sys.executable, "-c", ""]) as ended:
        ended.wait()
    write(kept.with_name(f"{kept.name}.{ended.pid}-0{TEMPORARY}"), "half")

    keep_record(state, record)

    assert list(kept.parent.iterdir()) == [kept]


def test_what_others_write_is_no_state_that_we_know() -> None:
    record, _ = continued_record(None, "/x/mcp.json", b"{}", b'{"a": 1}', ())

    assert record.original(b'{"a": 1} ') is None
    assert record.original(None) is None


def test_after_a_change_by_others_a_new_record_begins_with_what_they_wrote() -> None:
    earlier, _ = continued_record(None, "/x/mcp.json", None, b"{}", ("/x",))

    record, original = continued_record(earlier, "/x/mcp.json", b"theirs", b"theirs and ours", ())

    assert original == Original(b"theirs")
    assert record.existed
    assert record.folders == (), "they use the folder now"


def test_a_record_holds_the_region_and_not_the_file() -> None:
    secret = b"token" * 1000
    record, _ = continued_record(None, "/x/mcp.json", secret + b"{}" + secret, secret + b"{1}" + secret, ())

    assert sum(len(state.was) for state in record.states) < 10


def test_paths_that_differ_in_the_case_of_letters_have_records_of_their_own(tmp_path: Path) -> None:
    state = str(tmp_path / "state")
    paths = [str(write(tmp_path / folder / "mcp.json", "{}")) for folder in ("a", "A")]
    for number, path in enumerate(paths):
        keep_record(state, continued_record(None, path, b"%d" % number, b"x", ())[0])

    found = [record_of(state, path) for path in paths]

    assert [one and one.path for one in found] == paths
    assert [one and one.original(b"x") for one in found] == [Original(b"0"), Original(b"1")]
    assert found[0] is not None
    forget_record(state, found[0])
    assert [record_of(state, path) for path in paths] == [None, found[1]]


def test_a_link_and_its_target_are_one_file(tmp_path: Path) -> None:
    state, target, link = str(tmp_path / "state"), write(tmp_path / "real.json", "{}"), tmp_path / "link.json"
    link.symlink_to(target)

    keep_record(state, continued_record(None, str(link), b"{}", b"x", ())[0])

    assert record_of(state, str(target)) is not None


@pytest.mark.parametrize("content", [b"", b"[]", b"{}", b'{"path": 5, "states": 7}', b"\xff"])
def test_a_record_that_is_none_is_as_good_as_none(tmp_path: Path, content: bytes) -> None:
    state, path = str(tmp_path / "state"), str(tmp_path / "mcp.json")
    keep_record(state, continued_record(None, path, b"{}", b"x", ())[0])
    (kept,) = (tmp_path / "state" / "registration").iterdir()

    kept.write_bytes(content)

    assert record_of(state, path) is None


def test_what_is_forgotten_leaves_nothing(tmp_path: Path) -> None:
    state, path = str(tmp_path / "state"), str(tmp_path / "mcp.json")
    record, _ = continued_record(None, path, b"{}", b"x", ())
    record = record.replace(backup=str(write(tmp_path / "state" / "registration" / "backup", "{}")))
    keep_record(state, record)

    forget_record(state, record)

    assert list((tmp_path / "state" / "registration").iterdir()) == []


@pytest.mark.parametrize(
    ("was", "wrong"), [('"at": 1', '"at": 1e999'), ('"at": 1', '"at": -1'), ('"was": ""', '"was": 7')]
)
def test_a_record_with_a_place_that_no_file_has_is_none(tmp_path: Path, was: str, wrong: str) -> None:
    state, path = str(tmp_path / "state"), str(tmp_path / "mcp.json")
    keep_record(state, continued_record(None, path, b"{}", b"{ }", ())[0])
    (kept,) = (tmp_path / "state").rglob("*.json")
    assert was in kept.read_text()

    kept.write_text(kept.read_text().replace(was, wrong))

    assert record_of(state, path) is None


def test_a_file_whose_path_has_the_same_checksum_gets_nothing_of_another(tmp_path: Path) -> None:
    """CRC-32, the key of earlier versions, can be made equal by the name of a folder in a repository."""
    state, user, repository = str(tmp_path / "state"), str(tmp_path / "mcp.json"), str(tmp_path / "other" / "mcp.json")
    record, _ = continued_record(None, user, b"secret", b"x", ())
    keep_record(state, record)
    (kept,) = (tmp_path / "state").rglob("*.json")
    kept.rename(kept.with_name(f"{name_for(repository)}.json"))

    assert record_of(state, repository) is None
    forget_record(state, continued_record(None, repository, b"{}", b"x", ())[0])
    assert list((tmp_path / "state").rglob("*.json")), "the record of another file stays"


def test_a_record_of_an_earlier_version_is_found_and_replaced(tmp_path: Path) -> None:
    state, path = str(tmp_path / "state"), str(tmp_path / "mcp.json")
    record, _ = continued_record(None, path, b"{}", b"x", ())
    keep_record(state, record)
    (kept,) = (tmp_path / "state").rglob("*.json")
    kept.rename(kept.with_name(f"{name_for(path)}.json"))

    found = record_of(state, path)
    assert found == record
    forget_record(state, found)

    assert record_of(state, path) is None
    assert not list((tmp_path / "state").rglob("*.json"))
