"""Whatever a configuration file looks like: what `install` puts in, `uninstall` takes out to the byte.

Hundreds of generated files go through the whole command line, in this process because starting one takes longer than
the work.
"""

from __future__ import annotations

import io
import json
import os
import shutil
import sys
import tempfile
from collections.abc import Callable, Iterator
from pathlib import Path
from typing import Any, NamedTuple

import pytest
import yaml
from hypothesis import HealthCheck, given, settings
from hypothesis import strategies as st

from support.json_texts import json_texts
from support.machine import DATA_HOME, WINDOWS
from support.registration import foreign_bytes_are_in_place
from support.toml_texts import toml_texts
from support.yaml_texts import yaml_texts
from uno_devserver.cli.main import main
from uno_devserver.system.jsonc import parse as parse_jsonc
from uno_devserver.system.jsonc import without_comments
from uno_devserver.system.toml import parse as parse_toml

OURS = ("UnoApp", "UnoDocs")
GOOSE = "home/AppData/Roaming/Block/goose/config/config.yaml" if WINDOWS else "home/.config/goose/config.yaml"
MODE = 0o666 if WINDOWS else 0o640  # there a file is read-only or it is not


class Kind(NamedTuple):
    """A client whose file has this format."""

    client: str
    path: str
    root: str
    texts: st.SearchStrategy[str]
    meaning: Callable[[str], Any]


def _jsonc(text: str) -> Any:
    return parse_jsonc(text) if without_comments(text).strip() else None


def _yaml(text: str) -> Any:
    return yaml.safe_load(text)


def _json_texts(root: str) -> st.SearchStrategy[str]:
    blank = st.sampled_from(["", "\n", " \r\n", "// nothing yet\n", "/* nothing */"])
    return blank | json_texts((root,)).map(lambda made: made.text)


def _yaml_texts(*, as_list: bool) -> st.SearchStrategy[str]:
    fitting = yaml_texts().filter(lambda made: (made.name_key is not None) == as_list)
    # Such an address under a name like "uno" would be an old entry of ours.
    return fitting.map(lambda made: made.text).filter(lambda text: "localhost" not in text)


KINDS = [
    Kind("cursor", ".cursor/mcp.json", "mcpServers", _json_texts("mcpServers"), _jsonc),
    Kind("vscode", ".vscode/mcp.json", "servers", _json_texts("servers"), _jsonc),
    Kind("amp", ".amp/settings.json", "amp.mcpServers", _json_texts("amp.mcpServers"), _jsonc),
    Kind("opencode", "opencode.json", "mcp", _json_texts("mcp"), _jsonc),
    Kind("codex", ".codex/config.toml", "mcp_servers", toml_texts(newer=True), parse_toml),
    Kind("goose", GOOSE, "extensions", _yaml_texts(as_list=False), _yaml),
    Kind("continue", "home/.continue/config.yaml", "mcpServers", _yaml_texts(as_list=True), _yaml),
]
kinds = pytest.mark.parametrize("kind", KINDS, ids=lambda kind: kind.client)
# One for each format; the others differ in the names of their keys.
formats = pytest.mark.parametrize(
    "kind", [kind for kind in KINDS if kind.client not in ("vscode", "amp", "opencode")], ids=lambda kind: kind.client
)
_unhurried = [HealthCheck.function_scoped_fixture, HealthCheck.too_slow]
many = settings(max_examples=15, suppress_health_check=_unhurried)
some = settings(max_examples=10, suppress_health_check=_unhurried)


class Scratch:
    """A home folder and a workspace, emptied for each example."""

    def __init__(self, root: Path) -> None:
        self.root = root

    def file(self, kind: Kind, content: bytes) -> Path:
        for name in ("home", "ws", "data"):
            shutil.rmtree(self.root / name, ignore_errors=True)
            (self.root / name).mkdir()
        path = self.root / kind.path if kind.path.startswith("home/") else self.root / "ws" / kind.path
        path.parent.mkdir(parents=True, exist_ok=True)
        path.write_bytes(content)
        return path

    def mcp(self, command: str, kind: Kind, *options: str) -> list[str]:
        """Run it, and give what was done."""
        out, printed = sys.stdout, io.BytesIO()
        sys.stdout = io.TextIOWrapper(printed, encoding="utf-8")
        try:
            main(["mcp", command, kind.client, "--json", "--workspace", str(self.root / "ws"), *options])
            sys.stdout.flush()
            said = json.loads(printed.getvalue())
        finally:
            sys.stdout = out
        return [operation["action"] for operation in said["operations"]]


@pytest.fixture
def scratch(monkeypatch: pytest.MonkeyPatch) -> Iterator[Scratch]:
    with tempfile.TemporaryDirectory(prefix="u") as folder:
        root = Path(folder)
        (root / "ws").mkdir()
        homes = {"HOME": "home", "USERPROFILE": "home", "APPDATA": "home/AppData/Roaming"}
        for name, value in {**homes, DATA_HOME: "data", "PATH": "none"}.items():
            monkeypatch.setenv(name, str(root / value))
        for name in ("XDG_CONFIG_HOME", "CODEX_HOME"):
            monkeypatch.delenv(name, raising=False)
        monkeypatch.setattr(os, "fsync", lambda handle: None)  # no machine is switched off while this runs
        yield Scratch(root)


@kinds
@many
@given(data=st.data())
def test_install_twice_is_install_once_and_uninstall_takes_it_out_to_the_byte(
    kind: Kind, scratch: Scratch, data: st.DataObject
) -> None:
    text = data.draw(kind.texts)
    bom = data.draw(st.sampled_from(["", "", "", "\ufeff"]))
    content = (bom + text).encode("utf-8")
    options = data.draw(st.sampled_from([[], ["--no-backup"]]))
    path = scratch.file(kind, content)
    path.chmod(MODE)

    installed = scratch.mcp("install", kind, *options)
    between, written = path.read_bytes(), path.stat()
    again = scratch.mcp("install", kind, *options)
    not_written = path.stat()
    uninstalled = scratch.mcp("uninstall", kind, *options)

    assert installed == ["created", "created"]
    assert foreign_bytes_are_in_place(content, between)
    _means_the_same_but_for_ours(kind, text, between.decode("utf-8-sig"))
    assert again == ["skipped", "skipped"]
    assert (not_written.st_mtime_ns, not_written.st_ino) == (written.st_mtime_ns, written.st_ino)
    assert uninstalled == ["removed", "removed"]
    assert path.read_bytes() == content
    assert path.stat().st_mode & 0o777 == MODE
    assert [one.name for one in path.parent.iterdir() if ".tmp" in one.name] == []


@formats
@some
@given(data=st.data())
def test_restore_gives_back_the_original_after_any_changes_of_ours(
    kind: Kind, scratch: Scratch, data: st.DataObject
) -> None:
    content = data.draw(kind.texts).encode("utf-8")
    path = scratch.file(kind, content)
    scratch.mcp("install", kind)
    for _ in range(data.draw(st.integers(0, 2))):
        server = data.draw(st.sampled_from(OURS))
        scratch.mcp(data.draw(st.sampled_from(["install", "uninstall"])), kind, "--servers", server)
    if path.read_bytes() == content:
        return  # there is nothing to restore, and that is told

    restored = scratch.mcp("restore", kind)

    assert restored == ["restored"]
    assert path.read_bytes() == content


@formats
@some
@given(data=st.data())
def test_without_what_install_remembers_uninstall_still_leaves_all_that_is_not_ours(
    kind: Kind, scratch: Scratch, data: st.DataObject
) -> None:
    text = data.draw(kind.texts)
    path = scratch.file(kind, text.encode("utf-8"))
    scratch.mcp("install", kind)
    shutil.rmtree(scratch.root / "data")

    uninstalled = scratch.mcp("uninstall", kind)

    assert uninstalled == ["removed", "removed"]
    after = path.read_text("utf-8")
    assert _without_empty(kind, kind.meaning(after)) == _without_empty(kind, kind.meaning(text))
    for mark in ("# why", "// why", "/* why"):
        assert after.count(mark) == text.count(mark), "comments stay"


@formats
@some
@given(data=st.data())
def test_what_somebody_changes_in_between_is_kept(kind: Kind, scratch: Scratch, data: st.DataObject) -> None:
    before, after = data.draw(kind.texts), data.draw(kind.texts)
    path = scratch.file(kind, before.encode("utf-8"))
    scratch.mcp("install", kind)
    path.write_bytes(after.encode("utf-8"))

    again = scratch.mcp("install", kind)
    uninstalled = scratch.mcp("uninstall", kind)

    assert (again, uninstalled) == (["created", "created"], ["removed", "removed"])
    assert path.read_bytes() == after.encode("utf-8")


def _means_the_same_but_for_ours(kind: Kind, before: str, after: str) -> None:
    was, now = kind.meaning(before), kind.meaning(after)
    servers = now[kind.root]
    if isinstance(servers, list):
        left: Any = [one for one in servers if not isinstance(one, dict) or one.get("name") not in OURS]
    else:
        left = {name: entry for name, entry in servers.items() if name not in OURS}
    assert len(servers) == len(left) + len(OURS)
    assert _without_empty(kind, {**now, kind.root: left}) == _without_empty(kind, was)


def _without_empty(kind: Kind, content: Any) -> str:
    """The content, with an empty root key as good as none; as text, because NaN is not equal to itself."""
    content = dict(content or {})
    if not content.get(kind.root):
        content.pop(kind.root, None)
    return repr(content)
