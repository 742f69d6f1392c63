"""Several servers behind one proxy: one list, one place for each call, and each lives by itself."""

from __future__ import annotations

import json
import statistics
import sys
import time
from collections.abc import Iterator
from contextlib import suppress
from pathlib import Path
from typing import Any

import psutil
import pytest

from support.files import write
from support.guarded_server import TOKEN, GuardedServer
from support.hosts import is_running
from support.http_server import http_server
from support.machine import Machine
from support.odd_servers import odd_server
from support.proxies import ERAS, Message, Proxies, ProxyClient
from support.reloading import PythonServer, state_of, text_of
from support.waiting import wait_for
from uno_devserver.proxy.lists.catalogue import identity_in, load
from uno_devserver.system.command_lines import quoted_line
from uno_devserver.system.ports import free_port

from .conftest import Workbench

CONFIG = ".devtools/host.config.jsonc"
CALLS = 20  # of each server that has no fault
GREETER = "def register(addin):\n    addin.tool(name='greet')(lambda: {!r})\n"


@pytest.fixture
def asked(machine: Machine) -> Iterator[Proxies]:
    """The proxies of a user who is asked."""
    with Proxies(machine) as proxies:
        yield proxies


@pytest.fixture
def guarded(tmp_path: Path) -> Iterator[GuardedServer]:
    server = GuardedServer(tmp_path)
    yield server
    server.stop()


def entry(name: str = "odd", **settings: Any) -> dict[str, Any]:
    program, *arguments = odd_server(name=name)
    return {"command": program, "args": arguments, **settings}


def save(machine: Machine, **config: Any) -> Path:
    return write(machine.workspace / CONFIG, json.dumps(config))


def states(report: Message) -> dict[str, str]:
    return {server["name"]: server["state"] for server in report.get("servers", [])}


def wait_served(client: ProxyClient, *names: str) -> Message:
    wanted = dict.fromkeys(names, "Connected")
    return client.wait_health(lambda report: states(report) == wanted, f"serving {', '.join(names) or 'none'}")


def serving(proxies: Proxies, *names: str, modern: bool = False, options: tuple[str, ...] = ()) -> ProxyClient:
    client = proxies.start(*options)
    client.initialize(modern=modern)
    wait_served(client, *names)
    return client


def process_of(report: Message, name: str) -> int:
    (pid,) = [server["upstream"]["processId"] for server in report["servers"] if server["name"] == name]
    return int(pid)


def saved_servers(machine: Machine) -> list[str]:
    """Those whose tools the catalogue has; a catalogue may be saved before all of them are connected."""
    kept, _problem = load(str(machine.state), identity_in(str(machine.workspace)))
    return [server.name for server in kept.servers if server.offered.tools] if kept else []


def messages(report: Message) -> str:
    return "\n".join(issue["message"] for issue in report["issues"])


@ERAS
def test_the_servers_of_the_config_are_one_list_and_each_call_reaches_its_own(
    proxies: Proxies, machine: Machine, modern: bool
) -> None:
    save(machine, servers={"one": entry(), "two": entry()})

    client = serving(proxies, "one", "two", modern=modern)

    assert {"facts", "two_facts"} <= set(client.tools())
    assert (client.call("echo", text="a"), client.call("two_echo", text="b")) == ("a", "b")
    pids = [json.loads(client.call(tool))["pid"] for tool in ("facts", "two_facts")]
    report = client.health()
    assert pids == [process_of(report, "one"), process_of(report, "two")]
    assert [issue["code"] for issue in report["issues"]] == ["UpstreamError"], "both have the same resources"
    assert "odd://note" in messages(report)
    first, second = (server["renamedTools"] for server in report["servers"])
    assert (first, second["two_echo"]) == ({}, "echo")
    told = json.loads(client.result("tools/call", {"name": "uno_health", "arguments": {}})["content"][0]["text"])
    assert len(told["servers"][1]["renamedTools"]) == 5, "in brief"
    assert "Tools of the server 'two' have its name as a prefix: 'echo' is 'two_echo'" in client.stderr


def test_a_host_keeps_its_names_and_the_servers_of_the_config_come_after_it(
    proxies: Proxies, machine: Machine, bench: Workbench
) -> None:
    save(machine, servers={"odd": entry()})

    client = proxies.connected()
    wait_served(client, "odd")

    tools = client.tools()
    assert tools.index("echo") < tools.index("write_note") < tools.index("odd_echo") < tools.index("facts")
    assert (client.call("count"), client.call("odd_count"), client.call("odd_count")) == ("1", "1", "2")
    assert client.result("resources/read", {"uri": "bench://page/3"})["contents"][0]["text"] == "page 3"
    assert client.result("resources/read", {"uri": "odd://note"})["contents"][0]["uri"] == "odd://note"
    assert "Hello, you" in json.dumps(client.result("prompts/get", {"name": "greet", "arguments": {"who": "you"}}))
    assert client.result("prompts/get", {"name": "odd_greet", "arguments": {"who": "you"}})["messages"]
    ref = {"type": "ref/prompt", "name": "odd_greet"}
    assert client.result("completion/complete", {"ref": ref, "argument": {"name": "who", "value": ""}})["completion"]


def test_one_that_crashes_is_healed_alone(proxies: Proxies, machine: Machine) -> None:
    save(machine, servers={"one": entry(), "two": entry()})
    client = serving(proxies, "one", "two")
    before = client.health()

    client.call_result("two_die", code=3)
    after = client.wait_health(
        lambda report: states(report) == states(before) and process_of(report, "two") != process_of(before, "two"),
        "healed",
    )

    assert process_of(after, "one") == process_of(before, "one")
    assert [server["restarts"] for server in after["servers"]] == [0, 1]
    assert (client.call("count"), client.call("two_count")) == ("1", "1")
    assert "two: The server 'two' has gone: it ended with exit code 3" in client.stderr


def test_new_code_of_one_restarts_it_alone_and_what_is_told_names_it(proxies: Proxies, machine: Machine) -> None:
    talker = PythonServer(machine)
    save(machine, servers={"odd": entry(), "talker": {"root": "../server", **talker.command}})
    client = serving(proxies, "odd", "talker")
    client.wait_health(lambda report: report["servers"][1]["hotReload"], "watched")
    before = client.health()

    talker.say("two")
    told = client.call_result("answer")

    assert state_of(told) == "restarting"
    assert "the server 'talker'" in text_of(told)
    ready = client.call_result("mcpStatus")
    assert not ready["isError"], ready
    assert "The server 'talker' is ready" in text_of(ready)
    assert client.call("answer") == "two"
    after = client.health()
    assert [server["reloads"] for server in after["servers"]] == [0, 1]
    assert process_of(after, "odd") == process_of(before, "odd")
    assert "says by no root or cwd" in after["servers"][0]["hotReloadOff"]


@pytest.mark.parametrize("options", [(), ("--wait-calls",)], ids=["told", "waits"])
def test_a_tool_that_an_edit_has_added_is_called_at_once(
    proxies: Proxies, machine: Machine, options: tuple[str, ...]
) -> None:
    talker = PythonServer(machine)
    save(machine, servers={"odd": entry(), "talker": {"root": "../server", **talker.command}})
    client = serving(proxies, "odd", "talker", options=options)
    client.wait_health(lambda report: report["servers"][1]["hotReload"], "watched")

    talker.say("two", "tool:hurl_item")
    call = client.begin("tools/call", {"name": "hurl_item", "arguments": {}})
    if options:
        assert text_of(client.answer(call)["result"]).startswith("two")
    else:  # the wait is short: a busy machine may not have started it by then
        client.answer(call)
        client.call_result("mcpStatus")
        assert text_of(client.call_result("hurl_item")).startswith("two")
    unknown = client.error("tools/call", {"name": "nothing", "arguments": {}})["message"]

    assert "Unknown tool: 'nothing'. No server lists it. mcpStatus waits for new code" in unknown
    assert [server["reloads"] for server in client.health()["servers"]] == [0, 1]


def test_the_page_of_a_proxy_with_further_servers_alone_is_opened_by_inspect(
    proxies: Proxies, machine: Machine
) -> None:
    talker = PythonServer(machine)
    save(machine, servers={"odd": entry(), "talker": {"root": "../server", **talker.command}})
    client = serving(proxies, "odd", "talker")
    client.wait_health(lambda report: report["proxy"]["controlChannel"], "one that can be asked")

    told = machine.run("inspect", "--json", "--port", "0").json

    assert (told["processId"], told["started"]) == (client.pid, False)


def test_mcp_restart_restarts_the_server_that_it_names(proxies: Proxies, machine: Machine) -> None:
    talker = PythonServer(machine)
    save(machine, servers={"odd": entry(), "talker": {"root": "../server", **talker.command}})
    client = serving(proxies, "odd", "talker")
    client.wait_health(lambda report: report["servers"][1]["hotReload"], "watched")
    before = client.health()

    unnamed, unknown = client.call_result("mcpRestart"), client.call_result("mcpRestart", server="three")
    named = client.call_result("mcpRestart", server="talker")

    assert all(
        "server must be the name of one of the servers: 'odd', 'talker'." in text_of(each)
        for each in (unnamed, unknown)
    )
    assert not named["isError"], named
    after = client.health()
    assert process_of(after, "odd") == process_of(before, "odd")
    assert process_of(after, "talker") != process_of(before, "talker")


def test_a_saved_config_adds_changes_and_removes_servers_while_the_others_go_on(
    proxies: Proxies, machine: Machine
) -> None:
    save(machine, servers={"one": entry(), "two": entry()})
    client = serving(proxies, "one", "two")
    first = client.health()

    save(machine, servers={"one": entry(), "two": entry(), "three": entry()})
    second = wait_served(client, "one", "two", "three")
    client.wait(lambda: "three_echo" in client.tools(), "the tools of the third")
    assert client.heard("notifications/tools/list_changed")
    assert client.call("three_echo", text="x") == "x"

    save(machine, servers={"one": entry(), "three": entry(env={"CHANGED": "1"})})
    third = client.wait_health(
        lambda report: (
            states(report) == {"one": "Connected", "three": "Connected"}
            and process_of(report, "three") != process_of(second, "three")
        ),
        "the second gone, the third started again",
    )

    assert process_of(third, "one") == process_of(first, "one")
    assert not [tool for tool in client.tools() if tool.startswith("two_")]
    client.wait(lambda: not is_running(process_of(first, "two")), "the end of the second")
    assert client.call("three_echo", text="x") == "x"


def test_servers_run_only_with_the_users_agreement_and_come_with_it(asked: Proxies, machine: Machine) -> None:
    save(machine, servers={"one": entry(), "two": entry(enabled=False)})
    client = asked.start()
    client.initialize()

    refused = client.wait_health(lambda report: "one" in messages(report), "the refusal")
    assert states(refused) == {}
    assert [issue["code"] for issue in refused["issues"]] == ["WorkspaceNotTrusted"]
    told = text_of(client.call_result("echo", text="x"))
    assert all("uno-devserver trust" in text and "(one) is not run" in text for text in (told, client.stderr))
    shown = machine.run("trust")
    assert (shown.exit_code, "odd_servers.py" in shown.stdout) == (0, True)
    before = wait_served(client, "one")

    save(machine, servers={"one": entry(), "evil": entry()})
    after = client.wait_health(lambda report: "config was changed" in messages(report), "the second refusal")

    assert states(after) == {"one": "Connected"}
    assert process_of(after, "one") == process_of(before, "one")
    assert client.call("echo", text="x") == "x"


def test_tools_that_a_filter_keeps_out_are_neither_listed_nor_called(proxies: Proxies, machine: Machine) -> None:
    program, *arguments = odd_server()
    save(
        machine,
        mcpServer={"command": program, "args": arguments},
        tools={"include": ["echo", "c*"], "exclude": ["count"]},
        servers={"two": entry(tools={"exclude": ["d*", "facts"]})},
    )

    client = proxies.connected()
    wait_served(client, "two")

    tools = client.tools()
    assert {"echo", "close", "two_echo", "hold", "count"} <= set(tools)
    assert not {"two_count", "two_die", "die", "deaf", "facts", "two_facts"} & set(tools)
    assert client.call("count") == "1", "of the second: the first offers none of that name"
    for name in ("facts", "die", "deaf"):
        error = client.error("tools/call", {"name": name, "arguments": {}})
        assert f"Unknown tool: '{name}'. The workspace's config leaves it out" in error["message"]
    assert "Unknown tool: 'nothing'" in client.error("tools/call", {"name": "nothing", "arguments": {}})["message"]
    assert client.call("echo", text="x") == "x"


def test_the_next_start_lists_everything_at_once_also_with_prefixes(proxies: Proxies, machine: Machine) -> None:
    save(machine, servers={"one": entry(prefix=True), "two": entry(prefix=True)})
    client = serving(proxies, "one", "two")
    assert {"one_echo", "two_echo"} <= set(client.tools())
    assert "echo" not in client.tools()
    assert client.call("one_echo", text="x") == "x"
    listed = client.tools()
    wait_for(lambda: saved_servers(machine) == ["one", "two"], "a catalogue with both")
    client.close_stdin()
    assert client.ends()

    again = proxies.start()
    again.initialize()

    assert again.tools() == listed, "known from the catalogue"


def test_questions_levels_and_subscriptions_work_for_each(proxies: Proxies, machine: Machine) -> None:
    save(machine, servers={"one": entry(), "two": entry()})
    client = proxies.start()
    client.replies["roots/list"] = lambda _: {"roots": []}
    client.initialize(capabilities={"roots": {}})
    wait_served(client, "one", "two")

    assert json.loads(client.call("two_ask", method="roots/list", params={})) == {"result": {"roots": []}}
    client.result("resources/subscribe", {"uri": "odd://note"})
    client.call("touch", uri="odd://note")
    client.hear("notifications/resources/updated")
    client.result("logging/setLevel", {"level": "debug"})
    client.call("two_say", method="notifications/message", params={"level": "debug", "data": "from two"})
    client.hear("notifications/message", matching=lambda said: said.get("data") == "from two")


def test_a_server_that_does_not_start_degrades_the_whole_and_its_calls_say_whose_they_are(
    proxies: Proxies, machine: Machine
) -> None:
    save(machine, servers={"one": entry(), "bad": {"command": "there-is-no-such-program"}})
    client = proxies.start()
    client.initialize()

    report = client.wait_health(
        lambda report: states(report) == {"one": "Connected", "bad": "Degraded"}, "one of them connected"
    )

    assert report["status"] == "Degraded"
    found = [issue for issue in report["issues"] if issue.get("server") == "bad"]
    assert found
    assert all("The server 'bad'" in issue["message"] for issue in found)
    assert any("servers.bad.command" in issue["remediation"] for issue in found)
    assert report["servers"][1]["status"] == "Unhealthy"
    assert client.call("echo", text="x") == "x"
    assert (
        len(json.dumps(client.result("tools/call", {"name": "uno_health", "arguments": {}})["structuredContent"]))
        < 2000
    )


def test_typed_servers_are_served_without_a_config_and_a_host(proxies: Proxies, machine: Machine) -> None:
    words = quoted_line(odd_server())
    serving_http = proxies.start("--http", "0", "--", *odd_server(name="far"))
    serving_http.initialize()
    url = serving_http.wait_health(lambda report: report["proxy"]["httpEndpoint"], "at a URL")["proxy"]["httpEndpoint"]

    client = serving(proxies, "one", "far", options=("--server", f"one={words}", "--server", f"far={url}"))

    assert (client.call("echo", text="a"), client.call("far_echo", text="b")) == ("a", "b")
    report = client.health()
    assert report["connectionState"] == "Connected"
    assert [server["upstream"]["endpoint"] for server in report["servers"]] == [None, url]


def test_a_typed_name_serves_only_that_entry_of_the_config(
    proxies: Proxies, machine: Machine, bench: Workbench
) -> None:
    save(machine, servers={"one": entry(), "two": entry()})

    client = serving(proxies, "two", options=("--server", "two"))

    assert client.call("echo", text="x") == "x"
    assert "write_note" not in client.tools(), "which the Host of the workspace would have"
    assert client.health()["proxy"]["upstream"] is None


@pytest.mark.parametrize(
    ("options", "problem"),
    [
        (("--server", "a b=node"), "the name before '='"),
        (("--server", "a=node 'x"), "no closing quotation"),
        (("--server", "a=node | tee"), "no shell is involved"),
        (("--server", "a="), "there is no command"),
        (("--server", "a=node", "--server", "a=node"), "there is another server 'a'"),
        (("--server", "a", "--", "node"), "does not count beside another server"),
        (("--server", "a=node", "--header", "A: b"), "only a server at a URL is sent headers"),
        (("--server", "a=http://x/", "--server", "b=http://y/", "--header", "A: b"), "which of several URLs"),
    ],
)
def test_a_wrong_value_of_server_is_refused_with_the_reason(
    machine: Machine, options: tuple[str, ...], problem: str
) -> None:
    refused = machine.run("mcp", "start", *options)

    assert (refused.exit_code, problem in refused.stderr) == (2, True), refused.stderr


class Three:
    """A proxy with a Host, a server on pipes and one at a URL, each with a tool of its own that says `one`."""

    ANSWERS = ("greet", "answer", "http_answer")

    def __init__(self, proxies: Proxies, machine: Machine) -> None:
        self.pipes = PythonServer(machine)
        self.http, port = machine.workspace / "http" / "talker.py", free_port()
        write(self.http, http_server(port, "one"))
        self.addin = machine.workspace / ".devtools" / "addins" / "greeter.py"
        write(self.addin, GREETER.format("one"))
        at_url = {"args": ["-IS", "talker.py"], "root": "../http", "url": f"http://localhost:{port}/mcp"}
        servers = {
            "pipes": {"root": "../server", **self.pipes.command},
            "http": {"command": sys.executable, **at_url},
        }
        save(machine, servers=servers)
        self.client = proxies.connected("--wait-calls")
        wait_served(self.client, "pipes", "http")
        self.client.wait_health(
            lambda report: all(each["hotReload"] for each in (report["proxy"], *report["servers"])), "all watched"
        )

    def process(self, which: int) -> int:
        report = self.client.health()
        upstream = report["proxy"]["upstream"] if which == 0 else report["servers"][which - 1]["upstream"]
        return int(upstream["processId"])

    def edit(self, which: int) -> None:
        if which == 0:
            write(self.addin, GREETER.format("two"))
        elif which == 1:
            self.pipes.say("two")
        else:
            write(self.http, self.http.read_text("utf-8").replace("'one'", "'two'"))

    def until(self, which: int, answer: str) -> None:
        """Call as an agent does, until the newest code has answered."""
        result: Message = {}

        def answered() -> bool:
            result.update(self.client.call_result(self.ANSWERS[which]))
            if result.get("isError"):
                self.client.call_result("mcpStatus")
            return text_of(result) == answer

        self.client.wait(answered, f"{self.ANSWERS[which]} says {answer}")

    def seconds(self, tools: list[str], rounds: int) -> float:
        """The median of these calls, one after the other; each must be answered well."""
        taken = []
        for _ in range(rounds):
            for tool in tools:
                began = time.perf_counter()
                assert self.client.call(tool) == "one"
                taken.append(time.perf_counter() - began)
        return statistics.median(taken)


@pytest.mark.parametrize("which", range(3), ids=Three.ANSWERS)
@pytest.mark.parametrize("fault", ["kill", "edit", "hang"])
def test_a_fault_of_one_delays_no_call_of_the_others(
    proxies: Proxies, machine: Machine, fault: str, which: int
) -> None:
    three = Three(proxies, machine)
    tool = Three.ANSWERS[which]
    others = [other for other in Three.ANSWERS if other != tool]
    undisturbed, process = three.seconds(others, CALLS), three.process(which)

    if fault == "edit":
        three.edit(which)
    else:
        broken = psutil.Process(process)
        broken.kill() if fault == "kill" else broken.suspend()
    pending = three.client.begin("tools/call", {"name": tool, "arguments": {}})
    disturbed = three.seconds(others, CALLS)

    if fault == "hang":
        with suppress(psutil.NoSuchProcess):  # one that cannot be reached for seconds is started again
            psutil.Process(process).resume()
    three.client.answer(pending)
    three.until(which, "two" if fault == "edit" else "one")
    # A call that waited for the fault would take a hundred times as long; the machine may be busy at other moments than
    # before. `benchmarks/servers.py` measures how little it is.
    assert disturbed < 0.1 + 5 * undisturbed, f"{disturbed:.4f} s, without a fault {undisturbed:.4f} s"


def test_an_edited_file_of_variables_starts_its_server_again_and_no_other(proxies: Proxies, machine: Machine) -> None:
    variables = write(machine.workspace / "weather.env", "WEATHER=sunny\n")
    port = free_port()
    write(machine.workspace / "talker.py", http_server(port, "one"))
    at_url = {"args": ["-IS", "talker.py"], "url": f"http://localhost:{port}/mcp", "envFile": "../weather.env"}
    save(machine, servers={"odd": entry(), "weather": {"command": sys.executable, **at_url}})
    client = serving(proxies, "odd", "weather")
    before = client.health()
    assert client.call("variable", name="WEATHER") == "sunny"

    write(variables, "WEATHER=rainy\n")
    after = client.wait_health(
        lambda report: (
            states(report) == states(before) and process_of(report, "weather") != process_of(before, "weather")
        ),
        "started again",
    )

    assert client.call("variable", name="WEATHER") == "rainy"
    assert process_of(after, "odd") == process_of(before, "odd")


def test_health_on_the_command_line_has_a_line_for_each(proxies: Proxies, machine: Machine) -> None:
    save(machine, servers={"one": entry(), "bad": {"command": "there-is-no-such-program"}})
    client = proxies.start()
    client.initialize()
    client.wait_health(lambda report: states(report) == {"one": "Connected", "bad": "Degraded"}, "one connected")

    def told() -> str:
        return machine.run("health").stdout

    client.wait(lambda: "Server one: Connected, tools: " in told(), "the status file")
    assert "Server bad: Degraded" in told()
    assert "Status: Degraded" in told()
    (status,) = machine.run("health", "--json").json["proxies"]
    assert [server["status"] for server in status["servers"]] == ["Healthy", "Unhealthy"]


def test_a_name_that_the_config_does_not_have_is_refused_at_once(machine: Machine) -> None:
    save(machine, servers={"one": entry(), "two": entry(enabled=False)})

    refused = machine.run("mcp", "start", "--server", "three")

    assert (refused.exit_code, "There is no server 'three'" in refused.stderr) == (2, True), refused.stderr
    assert "It has: one, two." in refused.stderr


def test_an_early_call_waits_for_the_server_that_will_offer_its_tool(proxies: Proxies, machine: Machine) -> None:
    gate = machine.root / "gate"
    slow = quoted_line(odd_server(until=gate))
    client = proxies.start("--wait-calls", "--server", f"slow={slow}", "--server", f"fast={quoted_line(odd_server())}")
    client.initialize()

    early = [client.begin("tools/call", {"name": name, "arguments": {"text": "x"}}) for name in ("echo", "fast_echo")]
    client.wait_health(lambda report: states(report).get("fast") == "Connected", "the second connected")
    assert not any(client.has_answer(each) for each in early)
    assert "echo" not in client.tools(), "it will be the first one's"
    gate.touch()

    assert [text_of(client.answer(each)["result"]) for each in early] == ["x", "x"]
    report = wait_served(client, "slow", "fast")
    assert json.loads(client.call("facts"))["pid"] == process_of(report, "slow")
    assert "Unknown tool: 'no'" in client.error("tools/call", {"name": "no", "arguments": {}})["message"]


def test_an_early_call_is_told_to_come_again_where_calls_do_not_wait(proxies: Proxies, machine: Machine) -> None:
    client = proxies.start("--server", f"slow={quoted_line(odd_server(until=machine.root / 'gate'))}")
    client.initialize()

    told = client.call_result("echo", text="x")

    assert told["isError"]
    assert "The server 'slow' is starting, and is not ready yet." in text_of(told)


def test_a_listed_tool_is_called_early_also_where_another_server_does_not_work(
    proxies: Proxies, machine: Machine
) -> None:
    gate = machine.root / "gate"
    gate.touch()
    line = quoted_line(odd_server(until=gate))
    nothing = f"http://127.0.0.1:{free_port()}/mcp"
    options = ("--wait-calls", "--server", f"far={nothing}", "--server", f"odd={line}")
    client = proxies.start(*options)
    client.initialize()
    client.wait_health(lambda report: states(report).get("odd") == "Connected", "the second connected")
    client.wait_health(lambda report: report["proxy"]["catalogueAgeSeconds"] is not None, "with a catalogue on disk")
    client.close_stdin()
    assert client.ends()
    gate.unlink()

    again = proxies.start(*options)
    again.initialize()
    assert "echo" in again.tools()
    early = again.begin("tools/call", {"name": "echo", "arguments": {"text": "x"}})
    again.wait_health(lambda report: states(report).get("far") == "Degraded", "the first given up")
    gate.touch()

    assert text_of(again.answer(early)["result"]) == "x"


def test_a_name_stays_with_its_server_when_servers_go_and_come(proxies: Proxies, machine: Machine) -> None:
    save(machine, servers={"one": entry(), "two": entry()})
    client = serving(proxies, "one", "two")

    save(machine, servers={"one": entry(enabled=False), "two": entry()})
    report = wait_served(client, "two")
    assert "Unknown tool: 'facts'" in client.error("tools/call", {"name": "facts", "arguments": {}})["message"]
    assert json.loads(client.call("two_facts"))["pid"] == process_of(report, "two")
    save(machine, servers={"new": entry(), "two": entry(), "one": entry()})
    report = wait_served(client, "new", "two", "one")

    pids = [json.loads(client.call(tool))["pid"] for tool in ("new_facts", "two_facts", "facts")]
    assert pids == [process_of(report, name) for name in ("new", "two", "one")]


def test_calls_under_way_end_before_a_changed_or_removed_server_does(proxies: Proxies, machine: Machine) -> None:
    gate = machine.root / "gate"
    save(machine, servers={"one": entry(), "two": entry()})
    client = serving(proxies, "one", "two")
    before = client.health()
    held = [
        client.begin("tools/call", {"name": tool, "arguments": {"until": str(gate)}}) for tool in ("hold", "two_hold")
    ]
    client.call("echo", text="after the calls were sent")
    client.call("two_echo", text="after the calls were sent")

    save(machine, servers={"one": entry(env={"CHANGED": "1"})})
    client.wait(lambda: not [tool for tool in client.tools() if tool.startswith("two_")], "the second gone")
    gate.touch()

    assert [client.answer(each)["result"].get("isError", False) for each in held] == [False, False]
    after = client.wait_health(
        lambda report: (
            states(report) == {"one": "Connected"} and process_of(report, "one") != process_of(before, "one")
        ),
        "the first started again",
    )
    assert after["servers"][0]["restarts"] == 0, "it was no crash"
    client.wait(lambda: not is_running(process_of(before, "two")), "the end of the second")


def test_a_call_of_a_server_that_is_gone_says_which_one_it_is(proxies: Proxies, machine: Machine) -> None:
    variables = write(machine.workspace / "two.env", "A=1\n")
    save(machine, servers={"one": entry(), "two": entry(envFile="../two.env")})
    client = serving(proxies, "one", "two")

    write(variables, "this is no variable\n")
    client.wait_health(lambda report: states(report) == {"one": "Connected", "two": "Degraded"}, "the second gone")
    told = client.call_result("two_echo", text="x")

    assert told["isError"]
    assert text_of(told).startswith("The server 'two' does not work. servers.two.envFile")
    assert told["_meta"]["uno-devserver/unavailable"] == {"connectionState": "Degraded", "server": "two"}
    assert client.call("echo", text="x") == "x"


def test_a_typed_server_is_reloaded_by_its_package_where_that_is_asked_for(proxies: Proxies, machine: Machine) -> None:
    talker = PythonServer(machine)
    (machine.workspace / CONFIG).unlink()
    line = quoted_line([sys.executable, "-IS", str(talker.source)])
    options = ("--watch", "--wait-calls", "--server", f"talker={line}", "--server", f"odd={quoted_line(odd_server())}")
    client = serving(proxies, "talker", "odd", options=options)
    client.wait_health(lambda report: report["servers"][0]["hotReload"], "watched")

    talker.say("two")

    assert client.call("answer") == "two"
    assert [server["reloads"] for server in client.health()["servers"]] == [1, 0]


def test_a_header_is_sent_to_the_one_typed_server_at_a_url(proxies: Proxies, guarded: GuardedServer) -> None:
    typed = ("--server", f"odd={quoted_line(odd_server())}", "--server", f"far={guarded.url}")

    client = serving(proxies, "odd", "far", options=(*typed, "--header", f"Authorization: Bearer {TOKEN}"))

    assert client.call("steps") == "done"


def test_what_is_told_of_a_server_without_access_names_it_and_its_settings(
    proxies: Proxies, machine: Machine, guarded: GuardedServer
) -> None:
    talker = PythonServer(machine)
    save(machine, servers={"talker": {"root": "../server", **talker.command}, "far": {"url": guarded.url}})
    client = proxies.start()
    client.initialize()
    client.wait_health(lambda report: states(report) == {"talker": "Connected", "far": "Degraded"}, "one connected")
    client.wait(lambda: "mcpStatus" in client.tools(), "hot reload")

    (told,) = [issue for issue in client.health()["issues"] if issue.get("server") == "far"]
    status = client.call_result("mcpStatus")

    assert "servers.far.headers" in told["remediation"]
    assert not status["isError"], "one of them is ready"
    assert "The server 'talker' is ready." in text_of(status)
    assert "The server 'far' is not connected." in text_of(status)
    assert not [words for words in ("builds", "The MCP server", "Since you listed") if words in text_of(status)]
    shown = machine.run("health").stdout
    assert "Connection: Connected" in shown
    assert f"at {guarded.url}" in shown


def test_a_typed_command_that_does_not_exist_is_one_issue_that_says_where_it_was_typed(proxies: Proxies) -> None:
    client = proxies.start("--server", "bad=there-is-no-such-program")
    client.initialize()

    report = client.wait_health(lambda report: states(report) == {"bad": "Degraded"}, "given up")

    assert [issue["code"] for issue in report["issues"]] == ["HostBinaryNotFound"]
    assert report["issues"][0]["remediation"].endswith("by its full path in --server bad=….")
