"""What a config can say about its server: the build, limits, variables and a URL; and a command without a config."""

from __future__ import annotations

import json
import sys
from typing import Any

import pytest

from support.files import write
from support.hosts import is_running
from support.http_server import http_server
from support.machine import WINDOWS, Machine
from support.odd_servers import odd_server
from support.proxies import Proxies, ProxyClient
from support.reloading import BuiltServer, PythonServer, hot, renew, state_of, text_of
from uno_devserver.system.ports import free_port

CONFIG = ".devtools/host.config.jsonc"


def configure(machine: Machine, strategy: str = "restart", **server: Any) -> None:
    write(machine.workspace / CONFIG, json.dumps({"mcpServer": server, "hotReload": {"strategy": strategy}}))


class HttpServer:
    """A server at a URL, that the config has started."""

    def __init__(self, machine: Machine, **settings: Any) -> None:
        self.port = free_port()
        self.source = machine.workspace / "talker.py"
        self.url = f"http://localhost:{self.port}/mcp"
        self.say("one")
        configure(machine, command=sys.executable, args=["-IS", "talker.py"], **{"url": self.url, **settings})

    def say(self, answer: str) -> None:
        write(self.source, http_server(self.port, answer))


def upstream_of(client: ProxyClient) -> dict[str, Any]:
    found: dict[str, Any] = client.health()["proxy"]["upstream"]
    return found


# --- url --------------------------------------------------------------------------------------------------------------


def test_a_server_that_listens_at_a_url_is_started_reloaded_and_ended_with_the_proxy(
    proxies: Proxies, machine: Machine
) -> None:
    server = HttpServer(machine)
    client = hot(proxies)

    assert (client.call("answer"), upstream_of(client)["endpoint"]) == ("one", server.url)
    process = upstream_of(client)["processId"]
    server.say("two")
    renew(client, "two")

    assert not is_running(process)
    process = upstream_of(client)["processId"]
    client.close_stdin()
    assert client.ends()
    assert not is_running(process)


def test_calls_wait_for_the_restart_of_a_server_at_a_url_where_the_strategy_is_swap(
    proxies: Proxies, machine: Machine
) -> None:
    server = HttpServer(machine, strategy="swap")
    client = hot(proxies)

    server.say("two")

    assert client.call("answer") == "two"


def test_a_server_at_a_url_that_crashes_is_started_again(proxies: Proxies, machine: Machine) -> None:
    HttpServer(machine)
    client = hot(proxies)

    assert client.call_result("die")["isError"]

    client.wait_connected(generation=2)
    assert client.call("answer") == "one"


def test_a_server_that_does_not_listen_in_time_is_told_with_its_url(proxies: Proxies, machine: Machine) -> None:
    milliseconds = 5000 if WINDOWS else 300  # enough to print a line
    server = HttpServer(machine, startupTimeout=milliseconds)
    write(server.source, "import threading\nprint('I listen nowhere', flush=True)\nthreading.Event().wait()\n")
    client = proxies.start()
    client.initialize()

    report = client.wait_state("Degraded")

    said = json.dumps(report["issues"])
    assert f"it did not answer at {server.url} within {milliseconds / 1000:g} s" in said
    assert "I listen nowhere" in said


def test_a_server_that_ends_before_it_listens_is_told_with_its_last_lines(proxies: Proxies, machine: Machine) -> None:
    server = HttpServer(machine)
    write(server.source, "raise SystemExit('I cannot begin')")
    client = proxies.start()
    client.initialize()

    said = json.dumps(client.wait_state("Degraded")["issues"])

    assert "it ended with exit code 1" in said
    assert "I cannot begin" in said


def test_a_url_without_an_endpoint_for_mcp_is_told_as_such(proxies: Proxies, machine: Machine) -> None:
    server = HttpServer(machine)
    url = server.url.replace("/mcp", "/other")
    configure(machine, command=sys.executable, args=["-IS", "talker.py"], url=url, startupTimeout=2000)
    client = proxies.start()
    client.initialize()

    report = client.wait_state("Degraded")

    said = json.dumps(report["issues"])
    assert "cannot be used over MCP" in said
    assert f"http://localhost:{server.port}" in said
    assert "HTTP 404" in said


def test_a_server_whose_port_is_taken_is_not_mistaken_for_who_took_it(proxies: Proxies, machine: Machine) -> None:
    server = HttpServer(machine)
    first = hot(proxies)
    second = proxies.start()
    second.initialize()

    report = second.wait_state("Degraded")

    assert f"Something else listens at {server.url} already" in json.dumps(report["issues"])
    assert first.call("answer") == "one"


# --- variables --------------------------------------------------------------------------------------------------------


def test_the_variables_of_a_file_are_read_at_each_start_and_an_edit_of_it_is_one_of_the_code(
    proxies: Proxies, machine: Machine
) -> None:
    HttpServer(machine, envFile="../.env", env={"BOTH": "config"})
    variables = write(machine.workspace / ".env", "# mine\nexport MINE='first one' # of two\nBOTH=file\n")
    client = hot(proxies)

    assert (client.call("variable", name="MINE"), client.call("variable", name="BOTH")) == ("first one", "config")
    write(variables, "MINE=second\n")
    assert state_of(client.call_result("variable", name="MINE")) == "restarting"
    client.call("mcpStatus")

    assert client.call("variable", name="MINE") == "second"


def test_a_mistake_in_the_file_of_variables_is_told_by_its_line_and_without_its_text(
    proxies: Proxies, machine: Machine
) -> None:
    HttpServer(machine, envFile="../.env")
    variables = write(machine.workspace / ".env", "A=1\nghp_secret_without_a_name\n")
    client = proxies.start()
    client.initialize()

    said = json.dumps(client.wait_state("Degraded"))

    assert f"{json.dumps(str(variables))[1:-1]}:2: it must be NAME=value" in said
    assert "ghp_secret" not in said


# --- limits -----------------------------------------------------------------------------------------------------------


def test_a_call_that_is_silent_for_longer_than_the_config_allows_is_cancelled(
    proxies: Proxies, machine: Machine
) -> None:
    program, *arguments = odd_server()
    configure(machine, command=program, args=arguments, silenceTimeout=300)
    client = proxies.connected()

    told = client.call_result("hold", until=str(machine.root / "never"))

    assert told["isError"]
    assert "0.3 s" in text_of(told)


def test_a_server_has_as_long_for_its_start_as_the_config_says(proxies: Proxies, machine: Machine) -> None:
    program, *arguments = odd_server(never_reads=True)
    configure(machine, command=program, args=arguments, startupTimeout=200)
    client = proxies.start()
    client.initialize()

    assert "it did not answer within 0.2 s" in json.dumps(client.wait_state("Degraded")["issues"])


# --- build ------------------------------------------------------------------------------------------------------------


def test_the_build_of_the_config_is_run_instead_of_the_packages(proxies: Proxies, machine: Machine) -> None:
    server = BuiltServer(machine)
    build = f"'{sys.executable}' -IS tools/compiler.py"
    server.write_config(mcpServer={**server.command, "build": build})
    client = hot(proxies)

    server.say("two")
    renew(client, "two")

    assert (server.journal.builds, server.journal.count("manager")) == (1, 0)


def test_a_server_with_build_false_is_restarted_and_never_built(proxies: Proxies, machine: Machine) -> None:
    server = BuiltServer(machine)
    server.write_config(mcpServer={**server.command, "build": False})
    client = hot(proxies)

    server.say("two")
    renew(client, "one")  # what runs is what was built before

    assert server.journal.builds == 0


# --- without a config -------------------------------------------------------------------------------------------------


def typed_server(machine: Machine) -> PythonServer:
    """A package without a config, in a workspace that nobody has agreed to."""
    machine.environment.pop("UNO_DEVSERVER_TRUST")
    server = PythonServer(machine)
    (machine.workspace / CONFIG).unlink()
    return server


def test_a_typed_command_is_reloaded_by_its_package_without_a_config_and_an_agreement(
    proxies: Proxies, machine: Machine
) -> None:
    server = typed_server(machine)
    client = hot(proxies, "--watch", "--", sys.executable, "-IS", "server/src/talker/main.py")

    assert client.call("answer") == "one"
    server.say("two")
    renew(client, "two")

    (package,) = client.health()["proxy"]["hotReload"]["packages"]
    assert (package["root"], package["kind"]) == (str(server.root), "Python")


@pytest.mark.parametrize("has_config", [False, True])
def test_a_typed_command_has_the_name_of_its_package_in_answers_health_and_the_log(
    proxies: Proxies, machine: Machine, has_config: bool
) -> None:
    server = PythonServer(machine) if has_config else typed_server(machine)
    write(server.root / "pyproject.toml", '[project]\nname = "weather"\nversion = "1"\n')
    options = () if has_config else ("--watch",)
    client = hot(proxies, *options, "--", sys.executable, "-IS", "server/src/talker/main.py")

    restarted = text_of(client.answer(client.begin("tools/call", {"name": "mcpRestart", "arguments": {}}))["result"])

    assert restarted.startswith("The server 'weather' is ready.")
    assert client.health()["proxy"]["upstream"]["name"] == "weather"
    assert "The server 'weather' is restarted." in client.stderr
    assert "'talker'" not in client.stderr.partition("is restarted")[2]


def test_the_build_script_of_a_typed_command_is_run(proxies: Proxies, machine: Machine) -> None:
    machine.environment.pop("UNO_DEVSERVER_TRUST")
    server = BuiltServer(machine)
    (machine.workspace / CONFIG).unlink()
    client = hot(proxies, "--watch", "--", *server.argv, cwd=server.root)

    server.say("two")
    renew(client, "two")

    assert server.journal.builds == 1


def test_a_typed_command_without_watch_is_not_reloaded_and_health_names_the_option(
    proxies: Proxies, machine: Machine
) -> None:
    server = typed_server(machine)
    client = proxies.connected("--", *server.argv, cwd=server.root)

    server.say("two")

    assert client.call("answer") == "one"
    assert "--watch" in json.dumps(client.health()["proxy"])


@pytest.mark.parametrize("options", [("--watch",), ("--watch", "--upstream-url", "http://localhost:1/mcp")])
def test_watch_without_a_command_is_a_mistake(machine: Machine, options: tuple[str, ...]) -> None:
    result = machine.run("mcp", "start", *options)

    assert (result.exit_code, result.stdout) == (2, "")
    assert "--watch needs a command" in result.stderr


def test_a_config_that_was_agreed_to_counts_for_a_typed_command_with_watch(proxies: Proxies, machine: Machine) -> None:
    server = PythonServer(machine, hotReload={"strategy": "swap"})
    client = hot(proxies, "--watch", "--", *server.argv, cwd=server.root)

    server.say("two")

    assert client.call("answer") == "two"
