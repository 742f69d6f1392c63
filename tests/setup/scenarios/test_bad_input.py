"""Files, folders and moments that make an installer lose data: each gets a clear answer, and nothing else changes."""

from __future__ import annotations

import json
import os
import sys
from collections.abc import Callable
from pathlib import Path
from typing import Any

import pytest

from support.files import write
from support.machine import WINDOWS, Machine
from support.privileges import AS_A_USER, needs_a_user, with_mount
from support.registration import (
    BY_PATH,
    DOCS,
    UVX,
    Clients,
    actions,
    foreign_bytes_are_in_place,
    of_client,
    operations,
)
from uno_devserver.setup.config_file import MAX_BYTES_OF_LINES
from uno_devserver.system.locks import FileLock

FILE = ".cursor/mcp.json"
SERVERS = {"UnoApp": UVX, "UnoDocs": DOCS}
OTHER = {"other": {"command": "x"}}
WAIT_SECONDS = 20
ROWS = ",\n".join(f'    "chat {number}": {{"said": ["{"y" * 80}", {number}]}}' for number in range(45_000))
HISTORY = '{\n  "history": {\n' + ROWS + '\n  },\n  "mcpServers": {"other": {"command": "x"}}\n}\n'
assert len(HISTORY) > 5_000_000


# --- texts that are unusual, and fine ---


NEW = {"UnoApp": "created", "UnoDocs": "created"}
FAILED = {"UnoApp": "error", "UnoDocs": "error"}
UTF_16 = '\ufeff{\r\n  "mcpServers": {"é": {}}\r\n}'


@pytest.mark.parametrize("text", ["", " ", "\n\n", "\t\r\n", "\ufeff"])
def test_an_empty_file_gets_the_servers(clients: Clients, text: str) -> None:
    clients.write(FILE, text)

    result = clients.install("cursor", "--release")

    assert actions(result) == NEW
    after = clients.bytes(FILE).decode("utf-8")
    assert json.loads(after.removeprefix("\ufeff")) == {"mcpServers": SERVERS}
    assert after.startswith("\ufeff") == text.startswith("\ufeff")
    _comes_back(clients, text.encode())


@pytest.mark.parametrize(
    "text",
    [
        "// nothing yet\n",
        "/* nothing */",
        "/* a */ // b\n/* c */\n",
        '\ufeff{"mcpServers": {}}',  # a byte order mark
        '{\r\n\t"mcpServers": {\r\n\t\t"other": {"command": "x"}\r\n\t}\r\n}\r\n',  # Windows' line ends, tabs
        '{"mcpServers":{"other":{"command":"x"}}}',  # one line
        '{\n    "mcpServers": {}\n}',  # no line end
        '{\n  // mine\n  "mcpServers": {\n    /* a */ "other": {"command": "x"}, // b\n  },\n}\n',
        '{"a": "/* no comment */", "b": "// neither", "c": "\\"{", "mcpServers": {"x": {"command": "/*"}}}',
        '{"mcpServers": {"a \\"quoted\\" name": {"command": "x"}, "\\u00e9": {}, "\\ud83d\\ude00": {}}}',
        '{"mcpS\\u0065rvers": {"other": {}}}',  # the root key itself, written otherwise
        '{"x": {"mcpServers": {"y": {}}}}',  # only one of that name elsewhere
        '{"/*": 1, "//": {"*/": [/* [ */ 1, 2, // ]\n 3]}}',
        '{"a": [[[[{"mcpServers": []}]]]], "mcpServers": {  }  }',
        '{"mcpServers": {"other": {"command": "x"},},}',  # trailing commas
        '{"é": "ü", "mcpServers": {"日本": {"command": "<&>"}}}',
        UTF_16.encode("utf-16-le"),
        UTF_16.encode("utf-16-be"),
        pytest.param(HISTORY, id="5 MB"),  # some clients keep their conversations in the same file
    ],
)
def test_only_the_entries_own_bytes_change(clients: Clients, text: str | bytes) -> None:
    content = text.encode() if isinstance(text, str) else text
    clients.write(FILE, content)

    result = clients.install("cursor", "--release")

    assert actions(result) == NEW
    assert foreign_bytes_are_in_place(content, clients.bytes(FILE))
    assert of_client(clients.status("--release"), "UnoApp", "cursor")["status"] == "registered"
    _comes_back(clients, content)


# --- entries that belong to somebody else, or in part ---


def test_an_entry_that_proxies_somebody_elses_server_stays_theirs(clients: Clients) -> None:
    theirs = {
        "one": {"command": "uno-devserver", "args": ["mcp", "start", "--", "npx", "one"]},
        "two": {"command": "uvx", "args": ["uno-devserver", "--mcp-app", "--upstream-url", "http://x/mcp"]},
        "juno": {"url": "http://localhost:5000/mcp"},
    }
    clients.write(FILE, {"mcpServers": theirs})

    installed = clients.install("cursor", "--servers", "UnoApp")
    clients.uninstall("cursor", "--servers", "UnoApp")

    assert actions(installed) == {"UnoApp": "created"}
    assert clients.read(FILE) == {"mcpServers": theirs}


def test_the_users_own_arguments_and_version_of_the_dotnet_tool_stay_in_the_users_file(clients: Clients) -> None:
    mine = {"command": "dnx", "args": ["-y", "uno.devserver", "--mcp-app", "-l", "Debug"]}
    users = clients.machine.home / ".cursor" / "mcp.json"
    write(users, json.dumps({"mcpServers": {"UnoApp": mine}}))

    plain = clients.install("cursor", "--servers", "UnoApp", "--scope", "user")
    unchanged = json.loads(users.read_text())
    pinned = clients.install("cursor", "--servers", "UnoApp", "--scope", "user", "--version", "6.0.0")

    assert (actions(plain), actions(pinned)) == ({"UnoApp": "skipped"}, {"UnoApp": "updated"})
    assert unchanged == {"mcpServers": {"UnoApp": mine}}
    args = ["-y", "--version", "6.0.0", "uno.devserver", "--mcp-app", "-l", "Debug"]
    assert json.loads(users.read_text()) == {"mcpServers": {"UnoApp": {"command": "dnx", "args": args}}}


def test_a_repository_gives_no_consent_by_a_clients_file(clients: Clients) -> None:
    clients.write(FILE, {"mcpServers": {"UnoApp": {**BY_PATH, "env": {"UNO_DEVSERVER_TRUST": "1"}, "envFile": ".env"}}})

    status = of_client(clients.status(), "UnoApp", "cursor")
    installed = clients.install("cursor", "--runner", "path", "--servers", "UnoApp")

    assert status["status"] == "outdated"
    assert any("sets UNO_DEVSERVER_TRUST" in warning for warning in status["warnings"])
    assert actions(installed) == {"UnoApp": "updated"}
    assert clients.read(FILE) == {"mcpServers": {"UnoApp": BY_PATH}}


# --- texts that nobody can edit ---


def _folder(path: Path) -> None:
    path.mkdir()


def _fifo(path: Path) -> None:
    os.mkfifo(path)


def _dangling(path: Path) -> None:
    path.symlink_to(path.parent / "gone.json")


def _loop(path: Path) -> None:
    path.symlink_to(path)


def _file_for_folder(path: Path) -> None:
    path.parent.rmdir()
    path.parent.write_text("in the way")


@pytest.mark.parametrize(
    ("content", "reason"),
    [
        (b"{", "line 1"),
        (b"{ broken", "line 1"),
        (b'{"mcpServers": {}} trailing', "line 1"),
        (b'{\n  "mcpServers": {\n    "a": 1,,\n  }\n}', "line "),
        (b'{"a": "open', "line 1"),
        (b"/* open", ""),
        (b'{"a": "\xff\xfe"}', "UTF-8"),
        (b"[]", "object"),
        (b"null", "object"),
        (b'"text"', "object"),
        (b"3", "object"),
        (b'{"mcpServers": []}', "mcpServers"),
        (b'{"mcpServers": "x"}', "mcpServers"),
        (b'{"mcpServers": 5}', "mcpServers"),
        (b"[" * 100_000, ""),
        (b'{"a":' * 500_000 + b"1" + b"}" * 500_000, ""),  # Python 3.14 reads 50,000
        *((make, "") for make in (_folder, *(() if WINDOWS else (_fifo, _dangling, _loop, _file_for_folder)))),
    ],
)
def test_what_cannot_be_understood_is_named_and_left_alone(
    clients: Clients, content: bytes | Callable[[Path], None], reason: str
) -> None:
    path = clients.at(FILE)
    path.parent.mkdir()
    path.write_bytes(content) if isinstance(content, bytes) else content(path)
    before = clients.tree()

    installed = clients.install("cursor")
    status = of_client(clients.status("cursor"), "UnoApp", "cursor")
    uninstalled = clients.uninstall("cursor")

    assert installed.exit_code == uninstalled.exit_code == 1
    assert actions(installed) == FAILED
    for operation in operations(installed):
        assert operation["path"] == str(path)
        assert reason in operation["reason"]
    assert set(actions(uninstalled).values()) == {"error"}
    assert status["status"] == "missing"
    assert any(str(path) in warning for warning in status["warnings"])
    assert clients.tree() == before


@pytest.mark.parametrize(
    "entry",
    [
        {"command": 5},
        {"command": ["a", 5], "args": "x"},
        {"command": None, "args": None, "url": None},
        {"args": {"a": 1}, "env": []},
        {"url": ["http://localhost:5/mcp"]},
    ],
)
def test_values_of_the_wrong_kind_in_an_entry_are_replaced_like_others(clients: Clients, entry: Any) -> None:
    clients.write(FILE, {"mcpServers": {"UnoApp": entry, "other": entry}})

    status = of_client(clients.status("--release"), "UnoApp", "cursor")
    result = clients.install("cursor", "--release", "--servers", "UnoApp")

    assert status["status"] == "outdated"
    assert actions(result) == {"UnoApp": "updated"}
    written = clients.read(FILE)["mcpServers"]
    assert (written["UnoApp"]["command"], written["UnoApp"]["args"]) == (UVX["command"], UVX["args"])
    assert "url" not in written["UnoApp"]
    assert written["other"] == entry


def test_an_entry_that_is_null_is_told_and_replaced(clients: Clients) -> None:
    clients.write(FILE, '{"mcpServers": {"UnoApp": null}}')

    status = of_client(clients.status("--release"), "UnoApp", "cursor")
    result = clients.install("cursor", "--release", "--servers", "UnoApp")

    said = "is null or another value without settings"
    assert status["warnings"] == [f"The entry 'UnoApp' in '{clients.at(FILE)}' {said}"]
    (operation,) = operations(result)
    assert operation["reason"] == "Updated UnoApp stdio server"
    assert f"The entry 'UnoApp' {said}. It was replaced." in operation["note"]
    assert clients.read(FILE) == {"mcpServers": {"UnoApp": UVX}}


@pytest.mark.parametrize("command", [BY_PATH, {"command": "mine", "args": ["uno-devserver", "--mcp-app", "-x"]}])
def test_an_address_beside_our_command_is_told_and_removed_and_the_command_stays(
    clients: Clients, command: dict[str, Any]
) -> None:
    file = "~/.cursor/mcp.json"
    path = clients.write(
        file, {"mcpServers": {"UnoApp": {**command, "url": "http://localhost:5/mcp", "env": {"A": "b"}}}}
    )

    status = of_client(clients.status(), "UnoApp", "cursor")
    result = clients.install("cursor", "--scope", "user", "--servers", "UnoApp")

    said = "has an address beside its command, which clients may use instead"
    assert status["status"] == "outdated"
    assert f"The entry 'UnoApp' in '{path}' {said}" in status["warnings"]
    assert f"The entry 'UnoApp' {said}. The address was removed." in operations(result)[0]["note"]
    assert clients.read(file) == {"mcpServers": {"UnoApp": {**command, "env": {"A": "b"}}}}


def test_a_yaml_key_that_is_there_twice_is_told(clients: Clients) -> None:
    clients.write("~/.config/goose/config.yaml", "extensions:\n  a: {cmd: x}\n  a: {cmd: y}\n")

    status = of_client(clients.status("goose"), "UnoApp", "goose")
    result = clients.install("goose")

    assert any("has a second key 'a' in line 3, which" in warning for warning in status["warnings"])
    assert all("does not accept a second key 'a' (line 3)" in one["note"] for one in operations(result) if one["path"])


# --- links and modes ---


def test_the_target_of_a_link_is_written_and_the_link_stays(clients: Clients) -> None:
    target = clients.write("~/dotfiles/cursor.json", {"mcpServers": OTHER})
    target.chmod(0o640)
    link = clients.at("~/.cursor/mcp.json")
    link.parent.mkdir()
    link.symlink_to("../dotfiles/cursor.json")
    before = clients.tree()

    clients.install("cursor", "--scope", "user", "--release")

    assert os.readlink(link) == "../dotfiles/cursor.json"
    assert clients.read("~/dotfiles/cursor.json") == {"mcpServers": {**OTHER, **SERVERS}}
    assert target.stat().st_mode & 0o777 == 0o640
    clients.uninstall("cursor")
    assert clients.tree() == before


def test_new_files_are_for_all_in_a_workspace_and_for_the_user_alone_at_home(clients: Clients) -> None:
    clients.install("cursor")
    clients.install("kiro", "--scope", "user")

    umask = os.umask(0)
    os.umask(umask)
    assert clients.at(FILE).stat().st_mode & 0o777 == 0o644 & ~umask
    assert clients.at("~/.kiro/settings/mcp.json").stat().st_mode & 0o777 == 0o600


# --- disks and rights ---


def test_a_write_protected_file_is_refused_and_others_go_on(clients: Clients) -> None:
    clients.write(FILE, {"mcpServers": {"UnoApp": UVX}}).chmod(0o444)
    clients.write("~/.cursor/mcp.json", {"mcpServers": {"UnoApp": UVX}})

    result = clients.uninstall("cursor", "--servers", "UnoApp")

    assert [(one["action"], one["reason"]) for one in operations(result)] == [
        ("error", "File is read-only"),
        ("removed", "Removed from user config"),
    ]
    assert result.exit_code == 0
    assert clients.read(FILE) == {"mcpServers": {"UnoApp": UVX}}


@needs_a_user
@pytest.mark.parametrize("dry_run", [(), ("--dry-run",)])
@pytest.mark.parametrize("content", [None, "{}"])
def test_a_folder_that_may_not_be_written_is_named(
    clients: Clients, content: str | None, dry_run: tuple[str, ...]
) -> None:
    if content is not None:
        clients.write(FILE, content)
    folder = clients.at(FILE).parent
    folder.mkdir(exist_ok=True)
    folder.chmod(0o555)
    before = clients.tree()

    result = clients.machine.run("mcp", "install", "cursor", "--json", *dry_run, prefix=AS_A_USER)

    after = clients.tree()
    folder.chmod(0o755)
    assert actions(result) == FAILED
    assert f"'{folder}' is a folder that may not be changed" in operations(result)[0]["reason"]
    assert result.json["nextSteps"] == [f"Make '{folder}' writable, and run this again."]
    assert after == before


@needs_a_user
def test_a_file_that_may_not_be_read_is_named(clients: Clients) -> None:
    path = clients.write(FILE, "{}")
    path.chmod(0)

    result = clients.machine.run("mcp", "install", "cursor", "--json", prefix=AS_A_USER)
    status = clients.machine.run("mcp", "status", "cursor", "--json", prefix=AS_A_USER)

    assert actions(result) == FAILED
    step = f"Let this user read '{path}', and run this again."
    assert result.json["nextSteps"] == [step]
    assert step in status.json["nextSteps"]
    assert any(
        f"Could not read config file '{path}'" in warning
        for warning in of_client(status, "UnoApp", "cursor")["warnings"]
    )
    path.chmod(0o600)
    assert path.read_text() == "{}"


@pytest.mark.parametrize("dry_run", [(), ("--dry-run",)])
@pytest.mark.parametrize("command", ["install", "uninstall"])
def test_a_file_that_is_mounted_by_itself_has_a_next_step(
    clients: Clients, command: str, dry_run: tuple[str, ...]
) -> None:
    clients.write("~/of the container.json", {"mcpServers": {**OTHER, "UnoApp": {}}})
    path = clients.write(FILE, "")
    prefix = with_mount(str(clients.at("~/of the container.json")), str(path))
    before = clients.tree()

    result = clients.machine.run("mcp", command, "cursor", "--json", *dry_run, prefix=prefix)

    assert "error" in {one["action"] for one in operations(result)}
    assert "It is mounted as a single file, which cannot be replaced" in operations(result)[0]["reason"]
    step = f"Mount the folder '{path.parent}' instead of the file, or run this outside."
    assert result.json["nextSteps"] == [step]
    assert clients.tree() == before


@pytest.mark.parametrize("dry_run", [(), ("--dry-run",)])
def test_a_folder_that_is_mounted_read_only_is_named(clients: Clients, dry_run: tuple[str, ...]) -> None:
    folder = clients.write(FILE, "{}").parent

    prefix = with_mount(str(folder), str(folder), "-o", "ro")
    result = clients.machine.run("mcp", "install", "cursor", "--json", *dry_run, prefix=prefix)

    assert actions(result) == FAILED
    assert operations(result)[0]["reason"] == "File is read-only"


@pytest.mark.parametrize("dry_run", [(), ("--dry-run",)])
def test_other_hard_links_are_told_of(clients: Clients, dry_run: tuple[str, ...]) -> None:
    path = clients.write(FILE, "{}")
    os.link(path, clients.home / "dotfile.json")

    result = clients.install("cursor", *dry_run)

    note = f"'{path}' is a hard link: files of the same content elsewhere (1) do not change with it."
    assert all(note in one["note"] for one in operations(result))
    assert (clients.home / "dotfile.json").read_text() == "{}"


@pytest.mark.parametrize("dry_run", [(), ("--dry-run",)])
def test_the_read_only_target_of_a_link_is_named(clients: Clients, dry_run: tuple[str, ...]) -> None:
    target = clients.write("~/dotfiles/cursor.json", "{}")
    target.chmod(0o444)
    link = clients.at("~/.cursor/mcp.json")
    link.parent.mkdir()
    link.symlink_to(target)

    result = clients.install("cursor", "--scope", "user", *dry_run)

    assert actions(result) == FAILED
    assert result.json["nextSteps"] == [f"Make '{target}' writable, and run this again."]


@pytest.mark.parametrize(
    ("client", "file", "text"),
    [
        ("codex", ".codex/config.toml", "[mcp_servers.s{}]\ncommand = 'x'\nargs = ['a']\n"),
        ("goose", "~/.config/goose/config.yaml", "s{}:\n  cmd: x\n  args: [a]\n"),
    ],
)
def test_a_long_file_of_lines_is_changed_up_to_a_size_and_refused_at_once_above_it(
    clients: Clients, client: str, file: str, text: str
) -> None:
    lines = "".join(text.format(number) for number in range(100_000))
    small = lines[: lines.rindex("\n", 0, MAX_BYTES_OF_LINES // 8) + 1].rpartition(text[:3])[0]
    path = clients.write(file, lines)

    refused = clients.install(client)
    path.write_text(small)
    changed = clients.install(client)

    assert set(actions(refused).values()) == {"error"}
    assert operations(refused)[0]["reason"].endswith(f"bytes; the limit is {MAX_BYTES_OF_LINES:,}")
    assert f"Make '{path}' smaller, or change it by hand." in refused.json["nextSteps"]
    assert set(actions(changed).values()) == {"created"}


def test_a_valid_file_that_cannot_be_changed_is_not_called_broken(clients: Clients) -> None:
    path = clients.write("~/.continue/config.yaml", "base: &servers\n- name: a\n  command: b\nmcpServers: *servers\n")

    result = clients.install("continue")

    assert actions(result) == FAILED
    assert result.json["nextSteps"] == [
        f"Change '{path}' by hand, or write that part of it in a simpler way, and run this again."
    ]


@pytest.mark.parametrize("options", [[], ["--no-backup"]])
@pytest.mark.parametrize("room", [0, 2_000])
def test_a_full_disk_costs_nothing_but_the_change(clients: Clients, options: list[str], room: int) -> None:
    clients.write(FILE, {"mcpServers": OTHER, "large": ["x" * 100] * 100})
    before = clients.tree()

    result = clients.machine.run("mcp", "install", "cursor", "--json", *options, prefix=_with_room_for(room))

    assert actions(result) == FAILED
    assert result.exit_code == 1
    assert clients.tree() == before, "not even a temporary file"
    assert set(actions(clients.install("cursor")).values()) == {"created"}


def _with_room_for(size: int) -> list[str]:
    """A program that runs another one, which can write no file larger than this."""
    limit = f"resource.setrlimit(resource.RLIMIT_FSIZE, ({size}, {size}))"
    return [sys.executable, "-c", f"import os, resource, sys; {limit}; os.execv(sys.argv[1], sys.argv[1:])"]


# --- workspaces ---


def test_a_workspace_that_is_a_file_does_not_exist_as_one(clients: Clients) -> None:
    path = clients.write("file", "x")

    result = clients.text("install", "cursor", "--workspace", str(path))

    assert result.exit_code == 2
    assert str(path) in result.stderr


@pytest.mark.parametrize("root", ["/", "//", "/.", "/tmp/.."])
def test_the_root_of_a_file_system_is_no_workspace(clients: Clients, root: str) -> None:
    result = clients.text("install", "cursor", "--workspace", root)

    assert result.exit_code == 2
    assert "root" in result.stderr


def test_the_home_folder_can_be_the_workspace(clients: Clients) -> None:
    before = clients.tree()

    installed = clients.install("cursor", "--workspace", str(clients.home))
    status = of_client(clients.status("--workspace", str(clients.home)), "UnoApp", "cursor")
    clients.uninstall("cursor", "--workspace", str(clients.home))

    assert actions(installed) == NEW
    assert len(status["locations"]) == 1, "one file is one place"
    assert clients.tree() == before


def test_in_the_home_folder_the_users_scope_is_the_same_file(clients: Clients) -> None:
    at_home = ("--workspace", str(clients.home))

    installed = clients.install("cursor", "--scope", "user", *at_home)
    default = clients.install("cursor", *at_home)
    removed = clients.uninstall("cursor", "--scope", "user", *at_home)

    assert actions(installed) == NEW
    assert actions(default) == {"UnoApp": "skipped", "UnoDocs": "skipped"}
    assert actions(removed) == {"UnoApp": "removed", "UnoDocs": "removed"}
    assert "other workspaces" in removed.json["operations"][0]["note"]


def test_a_workspace_may_have_any_name(clients: Clients) -> None:
    folder = clients.machine.root / "a b 'c' \"d\" é {home} $HOME %PATH%"
    folder.mkdir()

    result = clients.mcp("install", "cursor", "--workspace", str(folder))

    assert actions(result) == NEW
    assert json.loads((folder / ".cursor" / "mcp.json").read_bytes())["mcpServers"].keys() == SERVERS.keys()


# --- moments ---


def test_installs_at_the_same_time_lose_nothing(clients: Clients) -> None:
    clients.write(FILE, {"mcpServers": OTHER})
    wanted = ["UnoApp", "UnoDocs", "UnoApp", "UnoDocs"]

    running = [
        clients.machine.spawn("mcp", "install", "cursor", "--release", "--servers", server, "--json")
        for server in wanted
    ]
    said = [process.communicate(timeout=WAIT_SECONDS)[0] for process in running]

    assert [process.returncode for process in running] == [0] * len(wanted)
    done = [json.loads(text)["operations"][0] for text in said]
    assert sorted((one["server"], one["action"]) for one in done) == [
        ("UnoApp", "created"),
        ("UnoApp", "skipped"),
        ("UnoDocs", "created"),
        ("UnoDocs", "skipped"),
    ]
    assert clients.read(FILE) == {"mcpServers": {**OTHER, **SERVERS}}
    clients.uninstall("cursor")
    assert clients.read(FILE) == {"mcpServers": OTHER}


def test_dry_runs_and_status_do_not_wait(clients: Clients) -> None:
    lock = _held_lock(clients.machine)
    before = clients.tree()

    dry = clients.install("cursor", "--dry-run")
    clients.status()

    lock.release()
    assert actions(dry) == NEW
    assert clients.tree() == before


def _held_lock(machine: Machine) -> FileLock:
    lock = FileLock(str(machine.state / "registration.lock"))
    assert lock.acquire(WAIT_SECONDS, lambda _: None)
    return lock


# --- helpers ---


def _comes_back(clients: Clients, content: bytes) -> None:
    result = clients.uninstall("cursor")
    assert set(actions(result).values()) == {"removed"}
    assert clients.bytes(FILE) == content


@pytest.mark.parametrize("depth", [330, 900, 5_000, 100_000])
def test_a_file_of_any_depth_stops_no_other(clients: Clients, depth: int) -> None:
    deep = '{"mcpServers": {"x": {"q": ' + '{"a": ' * depth + "1" + "}" * (depth + 3)
    clients.write(".cursor/mcp.json", deep)
    clients.write(".vscode/mcp.json", "{}")

    for command in ("install", "uninstall"):
        done = clients.mcp(command, "--all")

        by_client = {one["ide"]: one["action"] for one in operations(done)}
        assert by_client["vscode"] == {"install": "created", "uninstall": "removed"}[command]
        assert by_client["cursor"] in ("created", "removed", "not_found", "error")

    assert clients.bytes(".cursor/mcp.json") == deep.encode()


@pytest.mark.parametrize(
    ("target", "reason"),
    [
        ("sub/dir", "is a link to a folder that does not exist"),
        (".cursor", "it cannot be looked up: Too many levels of symbolic links"),
    ],
)
@pytest.mark.parametrize("options", [(), ("--dry-run",)])
def test_a_link_in_place_of_the_folder_that_leads_nowhere_is_told_before_and_after(
    clients: Clients, target: str, reason: str, options: tuple[str, ...]
) -> None:
    clients.at(".cursor").symlink_to(target)

    told = clients.install("cursor", *options)

    assert all(one["action"] == "error" and one["reason"].endswith(reason) for one in operations(told))
    assert told.json["nextSteps"]
