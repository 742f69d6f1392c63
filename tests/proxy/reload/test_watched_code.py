"""What hot reload is about: nothing, without the user's agreement; else the packages that config and folder name."""

from __future__ import annotations

import json
import os
import time
from pathlib import Path

import pytest

from support.files import write, write_all
from support.machine import DATA_HOME
from uno_devserver.hotreload.digest_store import UNKNOWN
from uno_devserver.hotreload.sources.finder import find_sources
from uno_devserver.hotreload.watched_package import Role
from uno_devserver.proxy.options import ProxyOptions
from uno_devserver.proxy.reload.watched_code import (
    LAUNCH_SECONDS,
    WatchedCode,
    content_at_launch,
    find_watched_code,
    packages_of,
)
from uno_devserver.system.folders import folders
from uno_devserver.workspace import config as config_module
from uno_devserver.workspace.config import Config, Strategy, read_config
from uno_devserver.workspace.resolver import resolve
from uno_devserver.workspace.trust import TRUST_VARIABLE, agree, revoke, trust_question

TYPED = ("node", "a.js")


class World:
    def __init__(self, root: Path) -> None:
        self.root = root / "ws"
        self.environ = {"HOME": str(root), DATA_HOME: str(root / "data")}
        self.config('{"mcpServerRoot": "../server", "extensionPath": "../extension"}')
        write(self.root / "server" / "main.py", "")
        write(self.root / "extension" / "main.py", "")

    def config(self, content: str) -> None:
        write(self.root / ".devtools" / "host.config.jsonc", content)

    def agree(self) -> None:
        agree(folders(self.environ).state, trust_question(str(self.root)), "trust")

    def subject(self, *typed: str, url: str | None = None, watch: bool = False) -> WatchedCode | str:
        options = ProxyOptions(str(self.root), command=typed, url=url, watch=watch)
        return find_watched_code(options, resolve(str(self.root)) if options.uses_host else None, self.environ)

    def roots(self, *typed: str) -> list[tuple[Role, str]]:
        subject = self.subject(*typed)
        assert isinstance(subject, WatchedCode)
        return [(package.role, str(Path(package.root).relative_to(self.root))) for package in subject.packages]


@pytest.fixture
def world(tmp_path: Path) -> World:
    return World(tmp_path)


@pytest.mark.parametrize("typed", [(), TYPED])
def test_nothing_is_watched_or_built_before_the_user_agrees(world: World, typed: tuple[str, ...]) -> None:
    before = world.subject(*typed)
    world.agree()

    assert before == "the workspace is not trusted ('uno-devserver trust')"
    assert world.roots(*typed) == [(Role.SERVER, "server"), (Role.EXTENSION, "extension")]


def test_an_edited_config_needs_a_new_agreement(world: World) -> None:
    world.agree()
    world.config('{"mcpServerRoot": "../server", "client": {"command": "evil"}}')

    assert "not trusted" in str(world.subject())


def test_a_config_that_is_saved_while_it_is_read_does_not_count(world: World, monkeypatch: pytest.MonkeyPatch) -> None:
    world.agree()

    def saved_before(path: str | None, server: str | None = None) -> Config:
        world.config('{"mcpServerRoot": "../server", "client": {"command": "evil"}}')
        return read_config(path, server)

    monkeypatch.setattr(config_module, "read_config", saved_before)

    assert "not trusted" in str(world.subject())


def test_a_config_that_is_being_written_while_it_is_read_changes_nothing(
    world: World, monkeypatch: pytest.MonkeyPatch
) -> None:
    world.agree()
    before = world.subject()
    assert isinstance(before, WatchedCode)

    def saved_behind(path: str | None, server: str | None = None) -> Config:
        config = read_config(path, server)
        world.config('{"mcpServerRoot": "../ser')
        return config

    monkeypatch.setattr(config_module, "read_config", saved_behind)
    now = find_watched_code(ProxyOptions(str(world.root)), resolve(str(world.root)), world.environ, before)

    assert now is before


@pytest.mark.parametrize("config", ['{"mcpServerRoot": "../ser', '{"mcpServerRoot": "../other"}'])
def test_what_counted_before_is_kept_until_the_user_agrees_to_what_has_changed(world: World, config: str) -> None:
    world.agree()
    before = world.subject()
    assert isinstance(before, WatchedCode)
    world.config(config)

    def now() -> WatchedCode | str:
        return find_watched_code(ProxyOptions(str(world.root)), resolve(str(world.root)), world.environ, before)

    assert now() is before
    revoke(folders(world.environ).state, str(world.root))
    assert now() is before, "the authority asks for the agreement before it builds or starts anything"


def test_what_counted_before_does_not_in_another_workspace(tmp_path: Path) -> None:
    here, there = World(tmp_path / "here"), World(tmp_path / "there")
    here.agree()
    there.agree()
    before = here.subject()
    assert isinstance(before, WatchedCode)
    there.config('{"mcpServerRoot": "../ser')

    now = find_watched_code(ProxyOptions(str(there.root)), resolve(str(there.root)), there.environ, before)

    assert isinstance(now, str)


def test_automation_agrees_by_the_environment(world: World) -> None:
    world.environ[TRUST_VARIABLE] = "1"

    assert isinstance(world.subject(), WatchedCode)


def test_it_can_be_switched_off(world: World) -> None:
    world.config('{"mcpServerRoot": "../server", "hotReload": {"enabled": false}}')
    world.agree()

    assert str(world.subject()).startswith("hotReload.enabled is false in ")


def test_a_workspace_without_code_of_its_own_has_nothing_to_watch_whether_it_is_trusted_or_not(world: World) -> None:
    world.config("{}")

    assert world.subject() == "there is no code to watch"


def test_the_code_of_a_url_is_not_known(world: World) -> None:
    world.agree()

    assert isinstance(world.subject(url="http://localhost:1/mcp"), str)


def test_addins_are_the_code_where_no_server_is_named_but_not_that_of_a_typed_command(world: World) -> None:
    write(world.root / ".devtools" / "addins" / "a.py", "")
    world.config("{}")
    world.agree()

    subject = world.subject()

    assert isinstance(subject, WatchedCode)
    assert [package.addins for package in subject.packages] == [True]
    assert world.roots(*TYPED) == [(Role.SERVER, ".")]


@pytest.mark.parametrize("inner", ["extension", "packages/{ext}"])
@pytest.mark.parametrize("around", ["mcpServerRoot", "extensionPath"])
def test_a_package_within_the_other_is_no_part_of_it(world: World, around: str, inner: str) -> None:
    within = "extensionPath" if around == "mcpServerRoot" else "mcpServerRoot"
    world.config(json.dumps({around: "../server", within: f"../server/{inner}"}))
    write(world.root / "server" / inner / "main.py", "")
    world.agree()

    subject = world.subject()

    assert isinstance(subject, WatchedCode)
    assert [sorted(find_sources(package).files) for package in subject.packages] == [["main.py"], ["main.py"]]


@pytest.mark.parametrize("manifest", ["", "pyproject.toml", "package.json", "tsconfig.json", "App.csproj"])
def test_what_lies_beside_the_config_is_no_code_of_a_server_around_it(world: World, manifest: str) -> None:
    world.config('{"mcpServerRoot": ".."}')
    contents = {"package.json": '{"main": "main.js"}', "tsconfig.json": "{}", "App.csproj": "<Project/>"}
    if manifest:
        write(world.root / manifest, contents.get(manifest, ""))
    for name in ("a.py", "a.js", "a.ts", "a.cs"):
        write(world.root / name, "")
        write(world.root / ".devtools" / "addins" / name, "")
    world.agree()

    subject = world.subject()

    assert isinstance(subject, WatchedCode)
    [package] = subject.packages
    files = find_sources(package).files
    assert files
    assert not [path for path in files if path.startswith(".devtools")]


def test_a_typed_command_without_a_config_is_not_watched(world: World) -> None:
    (world.root / ".devtools" / "host.config.jsonc").unlink()
    world.agree()

    assert "says where the code of the command is" in str(world.subject(*TYPED))


def test_watch_is_the_users_word_for_the_package_of_a_typed_command(world: World) -> None:
    write(world.root / "tool" / "package.json", '{"name": "tool"}')
    typed = ("node", "tool/dist/index.js")

    before = world.subject(*typed, watch=True)  # its config was not agreed to
    (world.root / ".devtools" / "host.config.jsonc").unlink()
    without = world.subject(*typed, watch=True)

    assert before == without
    assert isinstance(without, WatchedCode)
    assert [(package.role, package.root) for package in without.packages] == [(Role.SERVER, f"{world.root}/tool")]
    assert without.config == Config()


def test_a_config_that_was_agreed_to_says_what_the_code_of_a_typed_command_is(world: World) -> None:
    world.agree()

    assert world.subject(*TYPED, watch=True) == world.subject(*TYPED)


@pytest.mark.parametrize("servers", [{"servers": {"a": {"root": "../server"}}}, {"mcpServerRoot": "../server"}, {}])
def test_a_config_above_that_names_other_code_does_not_say_what_the_code_of_a_typed_command_is(
    world: World, servers: dict[str, object]
) -> None:
    package = write(world.root / "notes" / "package.json", '{"name": "notes"}').parent
    settings = {"strategy": "swap", "include": ["*.txt"], "mcpServerName": "other"}

    def subject(config: dict[str, object], *, watch: bool) -> WatchedCode | str:
        world.config(json.dumps(config))
        world.agree()
        options = ProxyOptions(str(package), command=("node", "index.js"), watch=watch)
        return find_watched_code(options, None, world.environ)

    alone = subject(servers, watch=True)
    with_settings = subject({**servers, "hotReload": settings}, watch=True)

    assert isinstance(alone, WatchedCode)
    assert isinstance(with_settings, WatchedCode)
    assert [each.root for each in alone.packages] == [str(package)]
    assert with_settings.packages == alone.packages, "the patterns begin at the root of another package"
    assert (with_settings.config.hot_reload.strategy, with_settings.config.hot_reload.server_name) == (
        Strategy.SWAP,
        None,
    )
    if servers:
        assert "says where the code of the command is" in str(subject(servers, watch=False))


def test_a_config_of_several_servers_is_not_about_a_command_that_is_typed_beside_it(world: World) -> None:
    world.config('{"servers": {"a": {"root": "../server"}}}')
    world.agree()

    subject = world.subject(*TYPED, watch=True)

    assert isinstance(subject, WatchedCode)
    assert subject.config == Config()
    assert "says where the code of the command is" in str(world.subject(*TYPED))


def test_what_is_read_at_the_launch_of_a_watched_command_is_the_code_of_its_package(world: World) -> None:
    write(world.root / "pyproject.toml", "")
    code = write(world.root / "tool.py", "1")
    options = ProxyOptions(str(world.root), command=("python", "tool.py"), watch=True)

    first = content_at_launch(options, None, world.environ)
    write(code, "2")

    assert first is not None
    assert content_at_launch(options, None, world.environ) not in (None, first)


def test_a_launch_does_not_wait_until_large_files_were_read(world: World) -> None:
    options = ProxyOptions(str(world.root), command=TYPED)
    for number in range(40):
        path = write(world.root / f"server/m{number}.py", "")
        os.truncate(path, 250 * 1024 * 1024)
    begun = time.process_time()

    content = content_at_launch(options, None, world.environ)

    assert content == UNKNOWN, "the next check starts the server again"
    assert time.process_time() - begun < 2 * LAUNCH_SECONDS


@pytest.mark.parametrize("typed", [("npm", "start"), ("npm", "--prefix", ".", "run", "start")])
def test_the_manifest_whose_script_is_started_is_code(world: World, typed: tuple[str, ...]) -> None:
    write(world.root / "package.json", json.dumps({"name": "s", "scripts": {"start": "node a.js"}}))
    (world.root / ".devtools/host.config.jsonc").unlink()
    write(world.root / "a.js", "")

    subject = world.subject(*typed, watch=True)

    assert isinstance(subject, WatchedCode)
    assert sorted(find_sources(subject.packages[0]).files) == ["a.js", "package.json"]


def test_the_manifest_whose_script_the_config_starts_is_code(world: World) -> None:
    server = {"command": "npm", "args": ["start"]}
    world.config(json.dumps({"mcpServerRoot": "../server", "mcpServer": server}))
    write(world.root / "server/package.json", json.dumps({"name": "s", "scripts": {"start": "node a.js"}}))
    world.agree()

    subject = world.subject()

    assert isinstance(subject, WatchedCode)
    assert "package.json" in find_sources(subject.packages[0]).files


def test_the_build_and_the_variables_of_the_config_belong_to_the_servers_package(world: World) -> None:
    server = {"build": False, "envFile": "../server/.env"}
    world.config(json.dumps({"mcpServerRoot": "../server", "mcpServer": server, "extensionPath": "../extension"}))
    write(world.root / "server" / ".env", "A=1")
    world.agree()

    subject = world.subject()

    assert isinstance(subject, WatchedCode)
    packages = {package.role: package for package in subject.packages}
    assert (packages[Role.SERVER].build, packages[Role.EXTENSION].build) == ((), None)
    assert ".env" in find_sources(packages[Role.SERVER]).files


def test_the_code_that_a_server_is_started_with_is_known_only_where_it_is_watched(world: World) -> None:
    options, workspace = ProxyOptions(str(world.root)), resolve(str(world.root))
    untrusted = content_at_launch(options, workspace, world.environ)
    world.agree()

    first = content_at_launch(options, workspace, world.environ)
    write(world.root / "server" / "main.py", "edited")
    second = content_at_launch(options, workspace, world.environ)

    assert untrusted is None
    assert first is not None
    assert second not in (None, first)


def test_the_code_that_a_typed_command_is_started_with_is_known_before_the_user_agrees(world: World) -> None:
    options = ProxyOptions(str(world.root), command=TYPED)
    before = content_at_launch(options, None, world.environ)
    world.agree()

    assert before is not None
    assert content_at_launch(options, None, world.environ) == before


@pytest.mark.parametrize("command", [("dotnet", "run", "b.cs"), ("dotnet", "run", "--file", "./b.cs", "--", "a.cs")])
def test_of_several_programs_the_command_of_the_config_names_the_one_that_is_meant(
    tmp_path: Path, command: tuple[str, ...]
) -> None:
    write_all(tmp_path, {"a.cs": "#:property A=1\n", "b.cs": "#:property A=1\n"})
    program, *arguments = command
    config = {"mcpServerRoot": "..", "mcpServer": {"command": program, "args": arguments}}
    path = write(tmp_path / ".devtools/host.config.jsonc", json.dumps(config))

    (given,) = packages_of(str(tmp_path), read_config(str(path)))
    (typed,) = packages_of(str(tmp_path), read_config(str(path)), typed=("dotnet", "run", "a.cs"))

    assert (given.project, typed.project) == ("b.cs", "a.cs")
