"""The diff of a dry run: our own entries can be read in it, and nothing of anybody else's."""

from __future__ import annotations

import json
import shutil
import subprocess
import time
from pathlib import Path
from typing import Any

import pytest
from hypothesis import HealthCheck, given, settings
from hypothesis import strategies as st

from support.files import write
from uno_devserver.setup.change_diff import ShownText, change_diff, unified_diff
from uno_devserver.setup.plan.changes import Action, FileChange, Operation
from uno_devserver.setup.profiles import Dialect, Format, Place, Scope, Use

from .made import SERVERS

LINES = st.lists(st.sampled_from(["a: {\n", "{\n", "}\n", "],\n"]), max_size=30).map("".join)
ROOTS = {Format.JSON: "mcpServers", Format.TOML: "mcp_servers", Format.YAML: "servers"}


def shown(before: str | None, after: str | None, form: Format = Format.JSON, **dialect: Any) -> list[str]:
    """The lines of the diff that were removed and added."""
    place = Place("/x", Scope.WORKSPACE, Use.WRITE, form, (ROOTS[form],), Dialect(**dialect))
    old, new = (None if text is None else text.encode() for text in (before, after))
    operation = Operation(None, "cursor", Action.UPDATED, "/x", "")
    diff = change_diff(FileChange("/x", Scope.WORKSPACE, old, new, (operation,), None, (place,), SERVERS))
    return [line for line in diff.splitlines()[2:] if line.startswith(("-", "+"))]


def diff_of(path: str, before: str | None, after: str | None, *names: str) -> str:
    return unified_diff(path, *(None if text is None else ShownText(text, (), names) for text in (before, after)))


DOCS = '"UnoDocs":{"url":"https://mcp.platform.uno/v1"}'
OTHER = (
    '"SECRET":{"command":"SECRET","args":["--x","SECRET"],"env":{"A":"SECRET"},"headers":{"B":"SECRET"},'
    '"url":"https://x/SECRET","deep":[{"c":["SECRET"]}]}'
)
APP = '"UnoApp":{"command":"uvx","args":["uno-devserver","--mcp-app"]}'


def test_of_one_line_with_several_servers_only_ours_are_shown() -> None:
    before, after = f'{{"mcpServers":{{{DOCS},{OTHER},{APP}}}}}\n', f'{{"mcpServers":{{{OTHER}}}}}\n'

    assert shown(before, after) == [f'-{{"mcpServers":{{{DOCS},…]}}]}},{APP}}}}}', '+{"mcpServers":{…]}]}}}']


def test_of_a_changed_entry_the_unchanged_command_can_be_read() -> None:
    before = f'{{"mcpServers":{{{OTHER},{APP}}}}}'

    removed, added = shown(before, before.replace('"uno-devserver"', '"uno-devserver@1.2.3"'))

    assert removed == f'-{{"mcpServers":{{…]}}]}},{APP}}}}}'
    assert added.endswith('"UnoApp":{"command":"uvx","args":["uno-devserver@1.2.3","--mcp-app"]}}}')


@pytest.mark.parametrize(
    ("form", "other", "ours"),
    [
        (
            Format.JSON,
            '{ "theme": "SECRET", "mcpServers": {\n%s\n"SECRET": { "a": "SECRET" } // SECRET\n} }',
            f"{APP},",
        ),
        (
            Format.TOML,
            '# SECRET\n[mcp_servers.SECRET]\nkey = """\nSECRET =\n"""\n\n%s\n# SECRET\n[SECRET]\n',
            '[mcp_servers.UnoApp]\ncommand = "uvx"',
        ),
        (
            Format.TOML,
            'mcp_servers = { SECRET = { a = "SECRET" }, %s b = "SECRET" }\n',
            'UnoApp = { command = "uvx" },',
        ),
        (
            Format.YAML,
            "servers:\n  SECRET: |\n    SECRET:\n%s\n  # SECRET\n  b: SECRET\n",
            "  UnoApp:\n    command: uvx",
        ),
        (Format.YAML, "servers: { SECRET: { a: SECRET }, %s b: SECRET }\n", "UnoApp: { command: uvx },"),
    ],
)
def test_in_every_format_nothing_of_others_is_shown(form: Format, other: str, ours: str) -> None:
    lines = shown(other % ours, other % "", form)
    everything = shown(other % ours, "{}" if form is not Format.TOML else "", form)

    assert "SECRET" not in "".join(lines + everything)
    text = "".join(lines)
    assert "UnoApp" in text
    assert "uvx" in text


def test_an_item_of_a_list_is_ours_by_its_name() -> None:
    before = "servers:\n  - name: SECRET\n    command: SECRET\n  - name: UnoApp\n    command: uvx\n"

    lines = shown(before, "servers: []\n", Format.YAML, name_key="name")

    assert lines == ["-servers:", "-  …", "-    …", "-  … name: UnoApp", "-    command: uvx", "+servers: []"]


@pytest.mark.parametrize(
    "entry",
    [
        {"command": "x", "args": ["--mcp-app", "--token", "hunter2"]},
        {"command": "x", "args": ["--mcp-app", "--pw=hunter2"]},
        {"command": "x", "env": {"API_KEY": "hunter2", "B": "b"}},
        {"command": "x", "headers": {"Authorization": "Bearer hunter2"}},
        {"command": "x", "secrets": ["hunter2"]},
        {"command": "x", "env": {"API_KEY": 'hunter2"x', "DB_PASSWORD": "hunter2"}},
    ],
)
@pytest.mark.parametrize("indent", [None, 2])
def test_secrets_of_our_own_entries_are_hidden(entry: dict[str, Any], indent: int | None) -> None:
    text = "".join(shown(json.dumps({"mcpServers": {"UnoApp": entry}}, indent=indent), "{}"))

    assert "hunter2" not in text
    assert '"command": "x"' in text


def test_an_entry_whose_secret_is_written_with_escapes_is_not_shown() -> None:
    before = '{"mcpServers": {"UnoApp": {"env": {"API_KEY": "\\u0068unter2"}}}}'

    assert shown(before, "{}") == ['-{"mcpServers": {…}}}}', "+{}"]


def test_a_file_that_cannot_be_read_is_hidden() -> None:
    assert shown('{"mcpServers": SECRET', None) == ['-{"mcpServers": …']


def test_a_changed_line_stands_between_three_of_its_neighbours_in_which_nothing_is_hidden() -> None:
    lines = ["[\n"] * 20
    lines[11] = '"secret": "x"\n'
    before, after = "".join(lines), "".join([*lines[:9], "{\n", *lines[10:]])

    assert diff_of("/ws/mcp.json", before, after).splitlines() == [
        "--- a/ws/mcp.json",
        "+++ b/ws/mcp.json",
        "@@ -7,5 +7,5 @@",
        " [",
        " [",
        " [",
        "-[",
        "+{",
        " [",
    ]


def test_a_new_file_comes_from_nowhere_and_a_removed_one_goes_there() -> None:
    assert diff_of("/x", None, "{}\n").splitlines()[:2] == ["--- /dev/null", "+++ b/x"]
    assert diff_of("/x", "{}\n", None).splitlines()[:2] == ["--- a/x", "+++ /dev/null"]


def test_a_missing_line_end_is_told() -> None:
    assert diff_of("/x", "{}", "{}\n").splitlines()[-3:] == ["-{}", "\\ No newline at end of file", "+{}"]


@pytest.mark.skipif(shutil.which("patch") is None, reason="patch is not installed")
@settings(max_examples=30, deadline=None, suppress_health_check=[HealthCheck.function_scoped_fixture])
@given(LINES, LINES)
def test_patch_gets_from_the_old_content_to_the_new(tmp_path: Path, before: str, after: str) -> None:
    path = write(tmp_path / "file", before)
    diff = diff_of(str(path), before, after, "a")

    if diff:
        subprocess.run(["patch", "-s", str(path)], input=diff.encode(), check=True)

    assert (path.read_text() if path.exists() else "") == after


@pytest.mark.parametrize("line", ['  "key": [1, 2, 3],\n}\n', '"key": [1, 2, 3], '])
def test_five_megabytes_take_no_longer_than_a_person_waits(line: str) -> None:
    before = line * 250_000
    after = before[: len(before) // 2] + "new\n" + before[len(before) // 2 :]
    begin = time.process_time()

    diff = diff_of("/x", before, after)

    assert "+" in diff
    assert time.process_time() - begin < 10, "half a second, on a machine that has nothing else to do"
