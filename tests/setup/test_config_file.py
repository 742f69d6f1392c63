"""A client's file is understood, or there is a sentence that names it; nothing else happens."""

from __future__ import annotations

import os
from pathlib import Path

import pytest

from support.files import write
from uno_devserver.setup.config_file import LINK_STEP, decode_text, encode_text, read_place, way_out
from uno_devserver.setup.edits.document import EditProblem
from uno_devserver.setup.profiles import Format

from .made import SERVERS, place

ENTRY = '{"mcpServers": {"UnoApp": {"command": "uvx"}}}'


def test_a_file_that_is_not_there_is_no_problem(tmp_path: Path) -> None:

    for name in ("none.json", "no-folder/none.json"):
        reading = read_place(place(tmp_path / name), SERVERS)

        assert (reading.content, reading.document, reading.problem, reading.matches) == (None, None, "", ())


def test_a_link_that_leads_nowhere_is_one(tmp_path: Path) -> None:
    link = tmp_path / "link"
    link.symlink_to(tmp_path / "nowhere")

    reading = read_place(place(link), SERVERS)

    assert reading.content is None
    assert reading.problem == f"Could not read config file '{link}': it is a link to a file that does not exist"


@pytest.mark.parametrize("encoding", ["utf-8", "utf-8-sig", "utf-16"])
def test_the_encoding_follows_from_the_byte_order_mark(encoding: str, tmp_path: Path) -> None:
    file = tmp_path / "mcp.json"
    file.write_bytes(ENTRY.encode(encoding))

    reading = read_place(place(file), SERVERS)

    assert [match.server.name for match in reading.matches] == ["UnoApp"]
    assert encode_text(*decode_text(file.read_bytes())) == file.read_bytes()


@pytest.mark.parametrize("content", ["", " \n\t", "// only a comment\n", "{}", '{"other": 1}'])
def test_a_file_without_servers_holds_none(content: str, tmp_path: Path) -> None:
    file = tmp_path / "mcp.json"
    file.write_text(content)

    reading = read_place(place(file), SERVERS)

    assert reading.document is not None
    assert (reading.content, reading.problem, reading.matches) == (content.encode(), "", ())


@pytest.mark.parametrize(
    ("content", "form", "problem"),
    [
        (b'{"mcpServers": {', Format.JSONC, "Invalid JSON in config file '{path}': "),
        (b"[mcp_servers", Format.TOML, "Invalid TOML in config file '{path}': "),
        (b"a: [", Format.YAML, "Invalid YAML in config file '{path}': "),
        (b"[]", Format.JSON, "Config file '{path}' does not contain a JSON object at root level"),
        (b"null", Format.JSONC, "Config file '{path}' does not contain a JSON object at root level"),
        (
            b'{"mcpServers": []}',
            Format.JSONC,
            "Config file '{path}': \"mcpServers\" is an array, not an object (line 1, ",
        ),
        (
            b'{"a": ["NaN", NaN]}',
            Format.JSONC,
            "Invalid JSON in config file '{path}': NaN is no JSON (line 1, column 15",
        ),
        (b"mcpServers = 1", Format.TOML, "Config file '{path}': 'mcpServers' is "),
        (b"mcpServers: 1", Format.YAML, "Config file '{path}': 'mcpServers' is "),
        (b"\xff\xfe\x00", Format.JSONC, "Could not read config file '{path}': it is not UTF-16-LE text"),
        (b'{"a": "\xe4"}', Format.JSONC, "Could not read config file '{path}': it is not UTF-8 text: byte 7 "),
    ],
)
def test_what_is_wrong_with_a_file_is_told_with_its_path(
    content: bytes, form: Format, problem: str, tmp_path: Path
) -> None:
    file = tmp_path / "mcp.json"
    file.write_bytes(content)

    reading = read_place(place(file, format=form), SERVERS)

    assert reading.problem.startswith(problem.format(path=file)), reading.problem
    assert (reading.content, reading.document, reading.matches) == (content, None, ())


def test_what_is_no_file_is_told_and_not_waited_for(tmp_path: Path) -> None:
    os.mkfifo(tmp_path / "pipe")
    (tmp_path / "folder").mkdir()
    (tmp_path / "loop").symlink_to(tmp_path / "loop")
    (tmp_path / "file").touch()

    for name in ("pipe", "folder", "loop", "file/mcp.json"):
        reading = read_place(place(tmp_path / name), SERVERS)

        assert reading.problem.startswith(f"Could not read config file '{tmp_path / name}': "), reading.problem
        assert reading.content is None


def test_text_that_an_encoding_does_not_have_is_refused() -> None:
    with pytest.raises(EditProblem, match="UTF-8"):
        encode_text("\udc80", b"", "utf-8")


def test_a_link_that_leads_out_of_the_workspace_is_named_with_its_target(tmp_path: Path) -> None:
    workspace, outside = tmp_path / "ws", tmp_path / "outside"
    write(outside / "deep" / "mcp.json", '{"mcpServers": {}}')
    (workspace / "a").mkdir(parents=True)
    (workspace / "a" / "link").symlink_to(outside)
    (workspace / "in").symlink_to("a")
    paths = [workspace / "a" / "link" / "deep" / "mcp.json", workspace / "in" / "link" / "new.json"]

    for path, link in zip(paths, (workspace / "a" / "link", workspace / "in" / "link"), strict=True):
        reading = read_place(place(path, within=str(workspace)), SERVERS)

        said = f"'{link}' is a link to '{outside}', outside of the workspace '{workspace}'"
        assert reading.problem == f"Could not read config file '{path}': {said}"
        assert (reading.content, reading.next_step) == (None, LINK_STEP)
        assert read_place(place(path), SERVERS).problem == "", "a user's own file may be anywhere"
    assert way_out(str(workspace / "in" / "mcp.json"), str(workspace)) == ""
