"""Hot reload, one test for each thing that it promises; on real processes, with a server whose code is edited.

Of the inspector it is held here that its page stays connected while a server is restarted; that its port is free for
the next proxy, which a page finds there, stands in `test_inspector.py`, and `tests/browser` holds what the page does.
"""

from __future__ import annotations

import ast
import json
import os
import re
import signal
import threading
import time
from pathlib import Path
from typing import Any

import pytest

from support.bundled import BOTH, Reply, ask
from support.files import write
from support.git import git
from support.inspectors import inspector_of
from support.proxies import ERAS, Proxies
from support.reloading import (
    MANAGERS,
    BuiltServer,
    EditedServer,
    Extension,
    PythonServer,
    changed_proxy,
    hot,
    renew,
    state_of,
    text_of,
    wait_ready,
    was_run,
)
from support.waiting import wait_for
from uno_devserver.system.ports import free_port

SOURCES = Path(__file__).parents[3] / "src" / "uno_devserver"
SIDE_BY_SIDE: dict[str, Any] = {"pipeline": {"concurrency": 16}}
KINDS = pytest.mark.parametrize("kind", [BuiltServer, PythonServer])
BRIEF = 250  # characters: what every cancelled call adds to what an agent has to read


# --- what is a change -------------------------------------------------------------------------------------------------


@KINDS
def test_git_add_checkout_stash_and_diff_rebuild_nothing(proxies: Proxies, kind: type[EditedServer]) -> None:
    server = kind(proxies.machine)
    workspace = server.machine.workspace
    write(workspace / ".gitignore", "build/\n__pycache__/\n")
    git(workspace, "init", "--quiet", "--initial-branch=main")
    git(workspace, "add", "--all")
    git(workspace, "commit", "--quiet", "--message=one")
    git(workspace, "branch", "other")
    client = hot(proxies)
    assert client.call("answer") == "one"

    def still(what: str) -> None:
        assert client.call("answer") == "one", what
        assert (server.journal.builds, server.journal.starts) == (0, 1), what

    for command in ("status", "diff", "add --all", "checkout --force .", "checkout --quiet other", "checkout main"):
        git(workspace, *command.split())
        still(f"git {command}")
    server.say("two")
    git(workspace, "diff")
    git(workspace, "add", "--all")
    git(workspace, "stash")
    still("git stash")
    git(workspace, "stash", "pop")
    git(workspace, "checkout", "--force", "HEAD", "--", ".")
    still("an edit that was taken back")
    git(workspace, "checkout", "--quiet", "other")
    server.say("three")
    git(workspace, "commit", "--all", "--quiet", "--message=three")
    git(workspace, "checkout", "--quiet", "main")
    still("a branch with other code, and back")
    git(workspace, "checkout", "--quiet", "other")
    renew(client, "three")


@KINDS
def test_only_changed_content_rebuilds(proxies: Proxies, kind: type[EditedServer]) -> None:
    server = kind(proxies.machine)
    client = hot(proxies)
    source = server.source

    def touched() -> None:
        source.touch()

    def protected() -> None:
        source.chmod(0o600)

    def written_again() -> None:
        source.write_bytes(source.read_bytes())

    def replaced() -> None:
        server.say("one")

    def moved_away_and_back() -> None:
        source.rename(source.with_suffix(".away"))
        source.with_suffix(".away").rename(source)

    def beside_it() -> None:
        write(server.root / "README.md", "# what it does\n")
        write(server.root / "build" / "notes.txt", "nothing that is source")

    for happens in (touched, protected, written_again, replaced, moved_away_and_back, beside_it):
        happens()
        assert client.call("answer") == "one", happens.__name__
        assert (server.journal.builds, server.journal.starts) == (0, 1), happens.__name__
    server.say("onf")

    renew(client, "onf")
    assert server.journal.starts == 2
    assert server.journal.builds == (1 if kind is BuiltServer else 0)


def test_the_server_hashes_nothing_and_knows_nothing_of_it(proxies: Proxies) -> None:
    """Any server is reloaded as it is; and in the proxy only the authority looks at sources."""
    server = PythonServer(proxies.machine)
    client = hot(proxies)
    server.say("two")

    renew(client, "two")

    detection = {"fingerprint", "sources", "source_watch", "build_command", "build_run", "digest_store", "hashlib"}
    modules = [*(SOURCES / "proxy" / "calls").rglob("*.py"), *(SOURCES / "host").rglob("*.py")]
    asking = {
        path.relative_to(SOURCES).as_posix(): found
        for path in modules
        if (found := detection & {word for name in _imported(path) for word in name.split(".") if "hotreload" in name})
    }
    assert not asking, "where calls queue and where they are served nobody looks at sources"
    assert any("hotreload.authority" in name for name in _imported(SOURCES / "proxy" / "calls" / "call_queue.py"))


def _imported(path: Path) -> set[str]:
    """The full names of all modules, and of what is taken from them, that a module imports."""
    names = set()
    for node in ast.walk(ast.parse(path.read_text("utf-8"))):
        if isinstance(node, ast.Import):
            names |= {alias.name for alias in node.names}
        elif isinstance(node, ast.ImportFrom):
            names |= {f"{node.module or ''}.{alias.name}" for alias in node.names}
    return names


def test_nowhere_in_the_code_a_time_of_modification_decides() -> None:
    def lines_with(pattern: str, folder: Path) -> list[str]:
        # On Windows, the watcher of the workspace asks whether a file was saved since the last look.
        files = {path: path.read_text("utf-8") for path in sorted(folder.rglob("*.py")) if path.name != "watcher.py"}
        assert files
        words = re.compile(pattern, re.IGNORECASE)
        return [
            f"{path.name}: {line}" for path, text in files.items() for line in text.splitlines() if words.search(line)
        ]

    assert not lines_with(r"(?<!g)mtime|scan_?newest", SOURCES)
    assert not lines_with(r"st_[a-z]time", SOURCES / "hotreload")


def test_the_sources_are_those_of_the_tsconfig(proxies: Proxies) -> None:
    server = BuiltServer(proxies.machine)
    write(server.root / "src" / "answer.test.ts", "// tests\n")
    write(server.root / "scripts" / "release.ts", "// released\n")
    client = hot(proxies)

    for name in ("src/answer.test.ts", "scripts/release.ts", "tools/compiler.py"):
        path = server.root / name
        path.write_text(path.read_text("utf-8") + "\n", "utf-8")
        assert client.call("answer") == "one", name
    assert server.journal.builds == 0, "none of them is included"

    write(server.root / "src" / "deep" / "new.ts", "export {};\n")
    renew(client, "one")
    assert server.journal.builds == 1, "a new file that is included"

    write(server.root / "tsconfig.json", '{"include": ["src/**/*.ts", "scripts/**/*"], /* more */ "exclude": [],}')
    client.call_result("answer")
    wait_ready(client)
    builds = server.journal.builds
    write(server.root / "scripts" / "release.ts", "// released again\n")
    renew(client, "one")
    assert server.journal.builds == builds + 1, "the config says that it belongs to the sources now"


def test_more_files_count_where_the_config_says_so_and_fewer(proxies: Proxies) -> None:
    """`hotReload.include` and `exclude`, from the server's root."""
    server = PythonServer(proxies.machine, hotReload={"include": ["data/*.txt"], "exclude": ["**/generated.py"]})
    client = hot(proxies)

    write(server.source.with_name("generated.py"), "x = 1\n")
    write(server.root / "data" / "words.md", "no")
    assert client.call("answer") == "one"
    assert server.journal.starts == 1
    write(server.root / "data" / "words.txt", "yes")

    renew(client, "one")
    assert server.journal.starts == 2


# --- builds -----------------------------------------------------------------------------------------------------------


def test_builds_are_the_scripts_of_the_package(proxies: Proxies) -> None:
    server = BuiltServer(proxies.machine)
    extension = Extension(server)
    client = hot(proxies)
    server.say("two")
    extension.say("second")

    renew(client, "two")

    ran = [(event["name"], event["words"]) for event in server.journal.events("manager")]
    assert ran == [("npm", ["run", "compile"]), ("npm", ["run", "build"])]


@pytest.mark.parametrize("manager", MANAGERS)
def test_the_lock_file_tells_the_package_manager(proxies: Proxies, manager: str) -> None:
    server = BuiltServer(proxies.machine, manager=manager)
    client = hot(proxies)
    server.say("two")

    renew(client, "two")

    assert [(event["name"], event["words"]) for event in server.journal.events("manager")] == [
        (manager, ["run", "build"])
    ]


def test_a_failed_build_is_told_with_its_whole_output_and_the_old_server_goes_on(proxies: Proxies) -> None:
    server = BuiltServer(proxies.machine)
    client = hot(proxies)
    server.say("two", "build floods", "build fails")

    failed = client.call_result("answer")

    told = text_of(failed)
    assert (failed["isError"], state_of(failed), was_run(failed)) == (True, "buildFailed", False)
    assert "src/answer.ts(0,1): error TS2322" in told
    assert "src/answer.ts(19999,1): error TS2322" in told
    assert "something on stderr, too" in told
    assert "the last line" in told
    assert server.journal.count("call") == 0

    again = client.call_result("answer")
    assert not again.get("isError")
    assert again["content"][0]["text"] == "one"
    assert (state_of(again), was_run(again)) == ("buildFailed", True)
    assert (server.journal.builds, server.journal.starts) == (1, 1), "nothing has changed, and nothing restarts"

    server.say("three")
    renew(client, "three")


# --- one restart for one change ---------------------------------------------------------------------------------------


@ERAS
def test_clients_of_both_eras_get_the_new_code(proxies: Proxies, modern: bool) -> None:
    server = BuiltServer(proxies.machine)
    assert "hotReload" not in server.config, "it is on without a word about it"
    client = hot(proxies, modern=modern)

    for answer in ("two", "three"):
        server.say(answer)
        renew(client, answer)

    assert (server.journal.builds, server.journal.starts) == (2, 3)


@KINDS
@pytest.mark.parametrize("config", [{}, SIDE_BY_SIDE], ids=["in a row", "side by side"])
def test_parallel_calls_during_a_hot_reload_make_one_restart(
    proxies: Proxies, kind: type[EditedServer], config: dict[str, Any]
) -> None:
    server = kind(proxies.machine, **config)
    client = hot(proxies)
    server.say("onf")

    calls = [client.begin("tools/call", {"name": "answer", "arguments": {"mark": n}}) for n in range(8)]
    results = [client.answer(call)["result"] for call in calls]
    wait_ready(client)

    told = [result for result in results if state_of(result) == "restarting"]
    served = [result for result in results if not result.get("isError")]
    assert told
    assert len(told) + len(served) == len(calls)
    assert {text_of(result) for result in served} <= {"onf"}
    assert client.call("answer") == "onf"
    assert server.journal.starts == 2
    assert server.journal.builds == (1 if kind is BuiltServer else 0)


def test_a_failed_build_is_repeated_once_when_an_agent_asks_and_not_by_calls(proxies: Proxies) -> None:
    server = BuiltServer(proxies.machine)
    client = hot(proxies)
    server.say("two", "build fails")
    client.call_result("answer")
    assert server.journal.builds == 1

    for batch in range(2, 5):
        server.gate("hold").unlink(missing_ok=True)
        until = str(server.gate("hold"))
        held = client.begin("tools/call", {"name": "hold", "arguments": {"until": until}})
        others = [client.begin("tools/call", {"name": "answer"}) for _ in range(3)]
        server.journal.wait("call", 4 * (batch - 2) + 1)
        server.open("hold")
        for call in (held, *others):
            assert client.answer(call)["result"]["content"][0]["text"] == "one"
        assert server.journal.builds == batch - 1
        assert state_of(client.call_result("mcpStatus")) == "ready"
        assert server.journal.builds == batch


def test_a_changed_server_is_built_then_drained_then_stopped_then_started(proxies: Proxies) -> None:
    server = BuiltServer(proxies.machine, **SIDE_BY_SIDE)
    client = hot(proxies)
    held = client.begin("tools/call", {"name": "hold", "arguments": {"until": str(server.gate("hold"))}})
    server.journal.wait("call")
    server.say("two")

    told = client.call_result("answer")

    assert state_of(told) == "restarting"
    assert server.journal.count("build ends") == 1, "it was built before anybody was told"
    assert server.journal.starts == 1, "and what runs may end first"
    server.open("hold")
    finished = client.answer(held)["result"]
    assert text_of(finished) == "one"
    wait_ready(client)
    assert client.call("answer") == "two"
    story = [event for event in server.journal.story if not event.startswith("manager")]
    assert story == [
        "start one",
        "call one",
        "build begins two",
        "build ends two",
        "held one",
        "start two",
        "call two",
    ]
    assert server.journal.events("start")[-1]["beside"] == [], "the old one had ended before"


def test_a_changed_extension_is_compiled_and_its_client_restarted_and_the_call_completes(proxies: Proxies) -> None:
    server = PythonServer(proxies.machine)
    extension = Extension(server)
    client = hot(proxies)
    server.journal.wait("client start")
    extension.say("second")

    result = client.call_result("answer")

    assert not result.get("isError")
    assert result["content"][0]["text"] == "one"
    assert (state_of(result), was_run(result)) == ("extensionReloaded", True)
    assert len(result["content"]) == 2, "the note is an item of its own"
    clients = server.journal.events("client start")
    assert [event["answer"] for event in clients] == ["first", "second"]
    assert Path(clients[0]["cwd"]) == server.machine.workspace / "window"
    assert [event.split(" ")[0] for event in server.journal.story][-4:] == ["compile", "compile", "client", "call"]
    assert server.journal.starts == 1
    again = client.call_result("answer")
    assert (state_of(again), len(again["content"])) == (None, 1), "it is told once"


def test_an_extension_that_does_not_compile_is_told_and_the_call_completes(proxies: Proxies) -> None:
    server = PythonServer(proxies.machine)
    extension = Extension(server)
    client = hot(proxies)
    server.journal.wait("client start")
    extension.say("second", "build fails")

    result = client.call_result("answer")

    assert state_of(result) == "extensionBuildFailed"
    assert "the last line" in text_of(result)
    assert server.journal.count("client start") == 1
    extension.say("third")
    assert state_of(client.call_result("answer")) == "extensionReloaded"
    assert [event["answer"] for event in server.journal.events("client start")] == ["first", "third"]


def test_where_both_changed_the_extension_comes_first(proxies: Proxies) -> None:
    server = BuiltServer(proxies.machine)
    extension = Extension(server)
    client = hot(proxies)
    server.journal.wait("client start")
    server.say("two")
    extension.say("second")

    renew(client, "two")

    names = ("compile ends", "client start", "build begins", "build ends", "start")
    story = [f"{event['event']} {event['answer']}" for event in server.journal.events(*names)]
    assert story[-5:] == [
        "compile ends second",
        "client start second",
        "build begins two",
        "build ends two",
        "start two",
    ]


# --- what the agent is told -------------------------------------------------------------------------------------------


def test_cancelled_queued_calls_get_a_brief_clear_message(proxies: Proxies) -> None:
    server = BuiltServer(proxies.machine)
    client = hot(proxies)
    server.say("two", "build waits")
    first = client.begin("tools/call", {"name": "answer"})
    server.journal.wait("build begins")
    queued = [client.begin("tools/call", {"name": "answer"}) for _ in range(5)]
    client.result("ping")
    server.open("build")

    results = [client.answer(call)["result"] for call in (first, *queued)]

    for result in results:
        assert (result["isError"], state_of(result), was_run(result)) == (True, "restarting", False)
    for result in results[1:]:
        assert len(text_of(result)) < BRIEF
        assert "restart" in text_of(result)
        assert "mcpStatus" in text_of(result)
    assert server.journal.count("call") == 0, "none of them was run"
    wait_ready(client)
    assert client.call("answer") == "two"


def test_the_server_is_called_as_the_config_calls_it(proxies: Proxies) -> None:
    server = PythonServer(proxies.machine, hotReload={"mcpServerName": "vscode-devtools"})
    client = hot(proxies)
    server.say("two")

    assert "vscode-devtools" in text_of(client.call_result("answer"))
    assert "vscode-devtools" in text_of(wait_ready(client))


def test_what_happens_is_told_to_those_who_listen(proxies: Proxies) -> None:
    server = BuiltServer(proxies.machine)
    client = hot(proxies)
    client.result("logging/setLevel", {"level": "info"})
    server.say("two")
    renew(client, "two")
    server.say("three", "build fails")
    client.call_result("answer")

    client.hear("notifications/message", matching=lambda params: "src/answer.ts" in str(params["data"]))
    client.hear("notifications/message", matching=lambda params: "npm run build" in str(params["data"]))
    client.hear("notifications/message", matching=lambda params: params["level"] == "warning")


def test_a_pause_between_stop_and_start_is_made_where_it_is_wanted(proxies: Proxies) -> None:
    server = PythonServer(proxies.machine, hotReload={"restartDelay": 400})
    client = hot(proxies)
    server.say("two")
    told = time.monotonic()

    renew(client, "two")

    assert server.journal.events("start")[-1]["at"] - told >= 0.4


def test_mcp_status_waits_for_the_server_and_health_is_told_during_a_restart(proxies: Proxies) -> None:
    server = PythonServer(proxies.machine)
    client = hot(proxies)
    server.say("two", "waits")
    assert state_of(client.call_result("answer")) == "restarting"
    server.journal.wait("start", 2)

    status = client.begin("tools/call", {"name": "mcpStatus", "arguments": {}})
    meanwhile, report = client.call_result("answer"), client.health()

    assert (state_of(meanwhile), was_run(meanwhile)) == ("restarting", False)
    assert report["proxy"]["hotReload"]["state"] == "restarting"
    assert report["proxy"]["restarts"] == 0, "it has not crashed"
    assert not client.has_answer(status)
    server.open("start")
    assert not client.answer(status)["result"].get("isError")
    assert client.call("answer") == "two"
    client.wait_health(lambda report: report["proxy"]["hotReload"]["state"] == "idle", "one of an idle hot reload")


def test_mcp_status_gives_up_when_it_was_told_to(proxies: Proxies) -> None:
    server = PythonServer(proxies.machine, hotReload={"mcpStatusTimeout": 200})
    client = hot(proxies)
    server.say("two", "waits")
    client.call_result("answer")
    server.journal.wait("start", 2)

    status = client.call_result("mcpStatus")

    assert status["isError"]
    assert "mcpStatus" in text_of(status) or "uno_health" in text_of(status), "what to do next"
    server.open("start")
    wait_for(lambda: not client.call_result("mcpStatus").get("isError"), "a server that is ready")


def test_the_restart_message_tells_to_use_mcp_status_and_that_what_to_do_next(proxies: Proxies) -> None:
    server = PythonServer(proxies.machine)
    client = hot(proxies)
    assert "mcpStatus" in client.tools()
    server.say("two")

    told = client.call_result("answer")
    ready = text_of(wait_ready(client))

    assert (told["isError"], state_of(told), was_run(told)) == (True, "restarting", False)
    assert "mcpStatus" in text_of(told)
    assert "empty input" in text_of(told)
    assert re.search(r"\b(not|until)\b", text_of(told), re.IGNORECASE), "and to call nothing else before"
    assert re.search(r"\bnot\b[^.]*`?mcpStatus`?[^.]*again", ready, re.IGNORECASE)
    assert "uno_health" in ready, "where to look if something is wrong"
    assert text_of(wait_ready(client)), "and it may be called at any time"


# --- existing setups --------------------------------------------------------------------------------------------------


def test_a_typed_command_without_a_config_has_nothing_of_hot_reload_until_it_starts_again_with_one(
    proxies: Proxies,
) -> None:
    server = PythonServer(proxies.machine)
    config = server.machine.workspace / ".devtools" / "host.config.jsonc"
    config.unlink(missing_ok=True)
    client = proxies.connected("--", server.argv[0], "-IS", str(server.source), env={"PYTHONPROFILEIMPORTTIME": "1"})
    os.kill(client.health()["hostProcessId"], signal.SIGKILL)
    client.wait_connected(2)

    missing = f"no {Path('.devtools', 'host.config.jsonc')}"
    wait_for(lambda: missing in (client.health()["proxy"]["hotReloadOff"] or ""), "told why")
    assert "uno_devserver.proxy.engine" in client.stderr
    assert "uno_devserver.proxy.reload.reloader" not in client.stderr

    write(config, "{}")
    os.kill(client.health()["hostProcessId"], signal.SIGKILL)
    client.wait_connected(3)
    server.say("two")

    renew(client, "two")


@pytest.mark.parametrize("late", [False, True])
def test_a_typed_command_whose_config_has_only_settings_is_reloaded_once_the_user_agrees(
    proxies: Proxies, late: bool
) -> None:
    server = PythonServer(proxies.machine)
    write(server.machine.workspace / ".devtools" / "host.config.jsonc", '{"hotReload": {"strategy": "swap"}}')
    del server.machine.environment["UNO_DEVSERVER_TRUST"]
    typed = ("--", server.argv[0], "-IS", str(server.source))

    if late:
        client = proxies.connected(*typed)
        client.wait_health(lambda report: "not trusted" in (report["proxy"]["hotReloadOff"] or ""), "not trusted")
    server.machine.run("trust")
    if not late:
        client = proxies.connected(*typed)
    client.wait_health(lambda report: report["proxy"]["hotReload"], "one that tells of hot reload")
    server.say("two")

    assert client.call("answer") == "two"


def test_mcp_status_knows_at_once_what_the_user_agrees_to(proxies: Proxies) -> None:
    server = PythonServer(proxies.machine)
    write(server.machine.workspace / ".devtools" / "host.config.jsonc", '{"hotReload": {"strategy": "swap"}}')
    del server.machine.environment["UNO_DEVSERVER_TRUST"]
    client = proxies.connected("--", server.argv[0], "-IS", str(server.source))
    client.wait_health(lambda report: "not trusted" in (report["proxy"]["hotReloadOff"] or ""), "not trusted")
    before = text_of(client.call_result("mcpStatus"))

    server.machine.run("trust")

    assert "Hot reload is off, because the workspace is not trusted" in before
    assert "Hot reload is off" not in text_of(client.call_result("mcpStatus"))


@pytest.mark.parametrize("how", ["edited", "revoked"])
def test_a_typed_command_is_not_reloaded_while_the_agreement_to_its_config_does_not_count(
    proxies: Proxies, how: str
) -> None:
    server = PythonServer(proxies.machine)
    del server.machine.environment["UNO_DEVSERVER_TRUST"]
    server.machine.run("trust")
    client = hot(proxies, "--", server.argv[0], "-IS", str(server.source))
    if how == "edited":
        server.write_config(hotReload={"strategy": "swap"})
    else:
        server.machine.run("trust", "--revoke")

    report = client.wait_health(lambda report: report["proxy"]["trusted"] is False, "aware that nobody agrees")
    server.say("two")
    old = client.call_result("answer")
    assert (old["content"][0]["text"], state_of(old)) == ("one", "notAgreed")
    assert "WorkspaceNotTrusted" in [issue["code"] for issue in report["issues"]]
    [said] = [message["data"] for message in client.heard("notifications/message") if message["level"] == "warning"]
    assert said.startswith("New code is not loaded: ")

    server.machine.run("trust")
    client.wait_health(lambda report: report["proxy"]["hotReload"], "one that tells of hot reload")
    client.wait_health(lambda report: report["proxy"]["trusted"], "aware of the agreement")
    assert "WorkspaceNotTrusted" not in client.issue_codes()
    told = client.call_result("answer")
    if how == "revoked":
        assert state_of(told) == "restarting"
        wait_ready(client)
    assert client.call("answer") == "two"


def test_a_config_of_before_changes_nothing_else(proxies: Proxies, tmp_path: Path) -> None:
    """`proxy.waitCalls` was all there was; its workspace has a Host."""
    server = PythonServer(proxies.machine)
    write(server.machine.workspace / ".devtools" / "host.config.jsonc", '{"proxy": {"waitCalls": true}}')

    client = proxies.connected("--", server.argv[0], "-IS", str(server.source))

    assert client.call("answer") == "one"
    assert not [code for code in client.issue_codes() if code == "ConfigInvalid"]


def test_the_add_ins_of_a_workspace_without_a_config_are_its_sources(proxies: Proxies) -> None:
    addin = proxies.machine.workspace / ".devtools" / "addins" / "talker.py"
    code = (
        'def register(addin):\n    @addin.tool\n    def answer() -> str:\n        """Say it."""\n        return "{}"\n'
    )
    write(addin, code.format("one"))
    client = hot(proxies)
    assert client.call("answer") == "one"
    host = client.health()["hostProcessId"]
    addin.touch()
    assert client.call("answer") == "one"
    assert client.health()["hostProcessId"] == host
    write(addin, code.format("two"))

    renew(client, "two")

    assert client.health()["hostProcessId"] != host


def test_an_add_in_that_is_edited_right_after_the_first_call_is_newer_than_what_runs(proxies: Proxies) -> None:
    addin = proxies.machine.workspace / ".devtools" / "addins" / "talker.py"
    code = (
        'def register(addin):\n    @addin.tool\n    def answer() -> str:\n        """Say it."""\n        return "{}"\n'
    )
    for number in range(3):
        write(addin, code.format(f"old {number}"))
        client = proxies.start("--wait-calls")
        client.initialize()

        first = client.call("answer")
        write(addin, code.format(f"new {number}"))
        second = client.call("answer")

        assert (first, second) == (f"old {number}", f"new {number}")
        client.close_stdin()
        client.exit_code()


# --- one pipeline -----------------------------------------------------------------------------------------------------


def test_calls_of_all_transports_wait_in_one_line(proxies: Proxies) -> None:
    server = PythonServer(proxies.machine, pipeline={"concurrency": 1})
    port = free_port()
    client = hot(proxies, "--http", str(port))
    held = client.begin("tools/call", {"name": "hold", "arguments": {"until": str(server.gate("hold")), "mark": "1"}})
    server.journal.wait("call")
    replies: list[Reply] = []
    calling = threading.Thread(target=lambda: replies.append(post(port, "tools/call", _answer_params("2"))))
    calling.start()
    assert ask(port, "GET", "/health").status == 200
    last = client.begin("tools/call", {"name": "answer", "arguments": {"mark": "3"}})
    client.result("ping")

    assert [event["mark"] for event in server.journal.events("call")] == ["1"], (
        "the others wait, wherever they came from"
    )
    server.open("hold")
    client.answer(held)
    client.answer(last)
    calling.join(20)

    assert replies[0].json["result"]["content"][0]["text"] == "one"
    noted = [(event["event"], event["mark"]) for event in server.journal.events("call", "held")]
    assert noted[:2] == [("call", "1"), ("held", "1")]
    assert sorted(noted[2:]) == [("call", "2"), ("call", "3")]  # which of them came first, the system has decided


def test_a_timeout_counts_neither_the_queue_nor_the_check(proxies: Proxies) -> None:
    """Each call may be silent for two seconds here; in the line, and while something is built, it spends more."""
    server = BuiltServer(proxies.machine)
    prefix = changed_proxy("proxy.calls.upstream_link", "CallLimits", silence_seconds=2.0)
    client = hot(proxies, prefix=prefix)
    gates = [str(server.gate(name)) for name in ("a", "b", "c")]
    holds = [client.begin("tools/call", {"name": "hold", "arguments": {"until": gate}}) for gate in gates]
    queued = client.begin("tools/call", {"name": "answer"})
    for number, gate in enumerate(gates):
        started = server.journal.wait("call", 1 + number)["at"]
        wait_for(lambda started=started: time.monotonic() - started > 0.7, "a moment")  # type: ignore[misc]
        Path(gate).touch()

    for call in (*holds, queued):
        assert text_of(client.answer(call)["result"]) == "one"
    silent = client.call_result("hold", until=str(server.gate("never")))
    assert silent["isError"], "the limit itself holds, from the moment that a call is run"

    server.say("two", "build waits", "build fails")
    checking = client.begin("tools/call", {"name": "answer"})
    begun = server.journal.wait("build begins")["at"]
    wait_for(lambda: time.monotonic() - begun > 2.2, "more than two seconds")
    assert not client.has_answer(checking)
    server.open("build")
    assert state_of(client.answer(checking)["result"]) == "buildFailed"


def test_the_face_over_http_and_its_sessions_stay_across_a_hot_reload(proxies: Proxies) -> None:
    server = PythonServer(proxies.machine)
    port = free_port()
    client = hot(proxies, "--http", str(port))
    hello = {"protocolVersion": "2025-11-25", "capabilities": {}, "clientInfo": {"name": "page", "version": "1"}}
    session = post(port, "initialize", hello).headers["mcp-session-id"]
    post(port, "notifications/initialized", {}, session, number=None)
    server.say("two")

    told = post(port, "tools/call", {"name": "answer"}, session).json["result"]
    ready = post(port, "tools/call", {"name": "mcpStatus", "arguments": {}}, session).json["result"]
    answer = post(port, "tools/call", {"name": "answer"}, session)

    assert state_of(told) == "restarting"
    assert not ready.get("isError")
    assert answer.status == 200
    assert text_of(answer.json["result"]) == "two"
    assert ask(port, "GET", "/health").status == 200
    assert client.call("answer") == "two"
    assert server.journal.starts == 2, "one reload for all"


def test_the_inspector_and_its_sessions_stay_across_a_hot_reload(proxies: Proxies) -> None:
    server = PythonServer(proxies.machine)
    client = hot(proxies, "--inspector", "0")
    page = inspector_of(client)
    session = page.open_session()
    server.say("two")

    with page.listen("/events") as events:
        events.wait("event: snapshot")
        told = page.post("tools/call", {"name": "answer"}, session).json["result"]
        page.call("mcpStatus", session)
        events.wait('"state": "restarting"')

        assert state_of(told) == "restarting"
        assert page.call("answer", session) == page.call("answer") == client.call("answer") == "two"
        assert page.ask("GET", "/health").status == 200
    assert inspector_of(client).port == page.port


def post(port: int, method: str, params: dict[str, Any], session: str = "", number: int | None = 1) -> Reply:
    message = {"jsonrpc": "2.0", "method": method, "params": params} | ({} if number is None else {"id": number})
    headers = {"Content-Type": "application/json", "Accept": BOTH}
    if session:
        headers["Mcp-Session-Id"] = session
    elif method != "initialize":
        headers |= {"MCP-Protocol-Version": "2026-07-28", "Mcp-Method": method, "Mcp-Name": params.get("name", "")}
    return ask(port, "POST", "/mcp", json.dumps(message).encode(), headers)


def _answer_params(mark: str) -> dict[str, Any]:
    meta = {
        "io.modelcontextprotocol/protocolVersion": "2026-07-28",
        "io.modelcontextprotocol/clientInfo": {"name": "page", "version": "1"},
        "io.modelcontextprotocol/clientCapabilities": {},
    }
    return {"name": "answer", "arguments": {"mark": mark}, "_meta": meta}
