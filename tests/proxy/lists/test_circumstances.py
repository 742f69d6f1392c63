"""Which of our tools the first list has, before anything but the folder itself was looked at."""

from __future__ import annotations

import json
from pathlib import Path

import pytest

from support.files import write
from uno_devserver.proxy.lists.catalogue import Catalogue, circumstances
from uno_devserver.proxy.lists.merge import Offered, merged
from uno_devserver.proxy.options import Options
from uno_devserver.proxy.own_tools import INITIALIZE, SELECT_SOLUTION, STATUS, Circumstances
from uno_devserver.workspace.trust import VARIABLE

NO_WORKSPACE = Circumstances(by_workspace=True, selects_solution=True, fallback=True)
SOLUTIONS = Circumstances(by_workspace=True, selects_solution=True)
OWN_CODE = Circumstances(by_workspace=True, selects_solution=True, hot_reload=True)
NAMED_SERVER = Circumstances(by_workspace=False, selects_solution=False)


def listed(folder: Path) -> set[str]:
    lists, _ = merged(Offered(), circumstances(Options(str(folder)), None))
    return {tool["name"] for tool in json.loads(lists.tools)}


@pytest.fixture
def root(tmp_path: Path) -> Path:
    (tmp_path / "ws").mkdir()
    return tmp_path / "ws"


@pytest.fixture
def trusting(monkeypatch: pytest.MonkeyPatch) -> None:
    """The user agrees to run the code of every workspace."""
    monkeypatch.setenv(VARIABLE, "1")


@pytest.mark.parametrize(
    ("lies_there", "expected"),
    [
        ([], NO_WORKSPACE),
        (["README.md", "package.json"], NO_WORKSPACE),
        (["App.sln"], SOLUTIONS),
        (["APP.SLNX"], SOLUTIONS),
        (["global.json"], SOLUTIONS),
        (["../global.json"], SOLUTIONS),
        (["../App.sln"], NO_WORKSPACE),  # a solution above belongs to another workspace
        (["src/App.sln"], NO_WORKSPACE),  # one below is found later; a glance does not search
        ([".devtools/host.config.jsonc"], OWN_CODE),
        ([".devtools/addins/one.py"], OWN_CODE),
        (["../.devtools/addins/one.py"], OWN_CODE),
        (["App.sln", "../.devtools/host.config.jsonc"], OWN_CODE),
        ([".devtools/other.json"], NO_WORKSPACE),
    ],
    ids=lambda value: " ".join(value) or "nothing" if isinstance(value, list) else "",
)
@pytest.mark.usefixtures("trusting")
def test_a_glance_at_the_folder_tells_what_the_workspace_seems_to_be(
    root: Path, lies_there: list[str], expected: Circumstances
) -> None:
    for name in lies_there:
        write((root / name).resolve(), "{}")

    assert circumstances(Options(str(root)), None) == expected


def test_code_that_the_user_has_not_agreed_to_run_is_not_reloaded(root: Path) -> None:
    write(root / ".devtools" / "addins" / "one.py", "")

    assert circumstances(Options(str(root)), None) == SOLUTIONS


@pytest.mark.parametrize(
    ("config", "expected"),
    [
        ('{"mcpServer": {"command": "serve"}}', OWN_CODE.replace(selects_solution=False)),
        ('{"hotReload": {"enabled": false}}', SOLUTIONS),
        ("{ it is just being written", OWN_CODE),
    ],
)
@pytest.mark.usefixtures("trusting")
def test_what_the_config_says_counts(root: Path, config: str, expected: Circumstances) -> None:
    write(root / ".devtools" / "host.config.jsonc", config)

    assert circumstances(Options(str(root)), None) == expected


def test_the_first_list_has_the_tool_that_names_a_workspace_where_there_seems_to_be_none(root: Path) -> None:
    tools = listed(root)

    assert {INITIALIZE, SELECT_SOLUTION} <= tools
    assert STATUS not in tools


@pytest.mark.usefixtures("trusting")
def test_the_first_list_has_the_status_of_hot_reload_where_code_is_reloaded(root: Path) -> None:
    write(root / ".devtools" / "addins" / "one.py", "")

    tools = listed(root)

    assert {STATUS, SELECT_SOLUTION} <= tools
    assert INITIALIZE not in tools


def test_a_folder_that_cannot_be_read_is_taken_for_no_workspace(tmp_path: Path) -> None:
    assert circumstances(Options(str(tmp_path / "nowhere")), None) == NO_WORKSPACE


def test_where_the_workspace_is_to_be_named_the_folder_is_not_looked_at(root: Path) -> None:
    write(root / ".devtools" / "addins" / "one.py", "")

    assert circumstances(Options(str(root), force_fallback=True), None) == NO_WORKSPACE


def test_a_server_that_the_user_named_depends_on_no_workspace(root: Path) -> None:
    write(root / ".devtools" / "addins" / "one.py", "")

    assert circumstances(Options(str(root), command=("serve",)), None) == NAMED_SERVER
    assert circumstances(Options(str(root), url="http://localhost:1/mcp"), None) == NAMED_SERVER


@pytest.mark.parametrize("selects", [True, False])
@pytest.mark.parametrize("reloads", [True, False])
def test_what_was_known_the_last_time_counts_more_than_a_glance(root: Path, selects: bool, reloads: bool) -> None:
    kept = Catalogue(Offered(), {}, {}, None, 1.0, selects_solution=selects, hot_reload=reloads)

    now = circumstances(Options(str(root)), kept)

    assert now == Circumstances(by_workspace=True, selects_solution=selects, hot_reload=reloads)
