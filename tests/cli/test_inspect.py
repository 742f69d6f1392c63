"""`inspect`: the page of a proxy that runs, or of one that runs as long as the command; nothing is left of it."""

from __future__ import annotations

import json
import os
import signal
import sys
from collections.abc import Iterator
from pathlib import Path
from typing import Any

import pytest

from support.bundled import ask
from support.dotnet import write_program
from support.files import write
from support.inspectors import InspectorClient, exchange, inspector_of, last_port_taken
from support.machine import DATA_HOME, WINDOWS, Machine
from support.odd_servers import odd_server
from support.ports import lasting_port
from support.proxies import PATIENCE, Proxies
from support.servers import Processes
from support.signals import SIGHUP
from support.waiting import wait_for
from support.workspace import WorkspaceBuilder
from uno_devserver.cli.inspect import wait_for_starts
from uno_devserver.proxy.health.status_file import status_of
from uno_devserver.system.ports import is_free
from uno_devserver.system.processes import process_started

KILLED = signal.SIGTERM if WINDOWS else -signal.SIGKILL  # the exit code of a process that was
BROKEN = "import sys; print('no database', file=sys.stderr); print('v20', file=sys.stderr); sys.exit(3)"
ADDIN = """\
from uno_devserver.host.addins import AddIn


def register(addin: AddIn) -> None:
    @addin.tool
    def greet(name: str) -> str:
        return f"Hello, {name}!"
"""


@pytest.fixture
def proxies(machine: Machine) -> Iterator[Proxies]:
    """The proxies of a workspace with an add-in that was not agreed to."""
    write(machine.workspace / ".devtools" / "addins" / "greeting.py", ADDIN)
    with Proxies(machine) as proxies:
        yield proxies


@pytest.fixture
def trusted(proxies: Proxies) -> Proxies:
    proxies.machine.environment["UNO_DEVSERVER_TRUST"] = "1"
    return proxies


class Inspecting:
    """The running command."""

    def __init__(self, machine: Machine, *options: str) -> None:
        self.process = machine.spawn("inspect", "--trust", *options)

    def url(self) -> str:
        assert self.process.stdout
        return self.process.stdout.readline().strip()

    def end(self, number: int = signal.SIGINT) -> tuple[int, str]:
        """Its exit code, and what it wrote beside the URL."""
        if WINDOWS:  # where nothing can be asked to end
            self.process.kill()
            return 0, self.ended()[1]
        self.process.send_signal(number)
        return self.ended()

    def ended(self) -> tuple[int, str]:
        _, errors = self.process.communicate(timeout=PATIENCE)
        assert "Traceback" not in errors
        return self.process.returncode, errors


# --- a proxy that runs ------------------------------------------------------------------------------------------------


def test_the_page_of_a_running_proxy_is_printed(trusted: Proxies) -> None:
    client = trusted.connected("--inspector", "0")
    page, host = inspector_of(client), client.health()["hostProcessId"]

    first, second = (trusted.machine.run("inspect") for _ in range(2))

    assert (first.exit_code, second.exit_code, second.stderr) == (0, 0, "")
    assert first.stdout != second.stdout, "each opens the page once"
    for printed in (first.stdout, second.stdout):
        assert opened(printed, page).ask("GET", "/health").status == 200
    expected = {client.process.pid, client.pid, host}  # on Windows, the first is the launcher of the second
    wait_for(lambda: set(trusted.processes()) == expected)


def test_with_trust_it_is_the_users_agreement_for_a_running_proxy_too(proxies: Proxies) -> None:
    client = proxies.start("--inspector", "0")
    client.initialize()
    page = inspector_of(client)
    client.wait_health(lambda report: "WorkspaceNotTrusted" in json.dumps(report["issues"]), "the missing agreement")

    result = proxies.machine.run("inspect", "--trust")

    assert opened(result.stdout, page)
    assert "may run from now on: " in result.stderr
    client.wait_connected()
    assert page.call("greet", name="page") == "Hello, page!"


def test_programs_get_it_as_json(trusted: Proxies) -> None:
    client = trusted.connected("--inspector", "0")
    page = inspector_of(client)

    told = trusted.machine.run("inspect", "--json").json

    assert opened(told.pop("url"), page)
    assert told == {
        "port": page.port,
        "processId": client.pid,
        "started": False,
        "directory": str(trusted.machine.workspace),
        "token": page.token,
    }


def test_a_proxy_that_has_none_is_asked_to_open_it(trusted: Proxies) -> None:
    client = trusted.connected()
    client.wait_health(lambda report: report["proxy"]["controlChannel"], "one that can be asked")

    told = trusted.machine.run("inspect", "--json", "--port", "0").json

    assert (told["processId"], told["started"]) == (client.pid, False)
    page = inspector_of(client)
    assert (page.port, page.token) == (told["port"], told["token"])
    assert opened(told["url"], page).call("greet", name="page") == "Hello, page!"


def test_it_is_opened_on_the_port_of_the_config_unless_another_is_named(trusted: Proxies) -> None:
    port = lasting_port()
    write(trusted.machine.workspace / ".devtools/host.config.jsonc", json.dumps({"inspector": {"port": port}}))
    client = trusted.connected()
    client.wait_health(lambda report: report["proxy"]["controlChannel"], "one that can be asked")

    told = trusted.machine.run("inspect", "--json").json

    assert (told["processId"], told["port"]) == (client.pid, port)


def test_the_page_of_a_proxy_with_a_client_is_wanted_more_than_one_that_is_open(trusted: Proxies) -> None:
    typed = Inspecting(trusted.machine, "--no-open", "--", *odd_server())
    typed.url()
    client = trusted.connected()

    result = trusted.machine.run("inspect", "--json")
    status, _ = typed.end()

    assert result.json["processId"] == client.pid
    assert f"process {client.pid}. Others run here, too: process " in result.stderr
    assert status == 0


def test_a_page_that_a_config_opens_is_waited_for(trusted: Proxies) -> None:
    """It opens after the first start, and a proxy without hot reload cannot be asked to open one."""
    config = {"inspector": {"enabled": True, "port": 0}, "hotReload": {"enabled": False}}
    write(trusted.machine.workspace / ".devtools" / "host.config.jsonc", json.dumps(config))
    for _ in range(3):
        client = trusted.start()
        client.initialize()

        told = trusted.machine.run("inspect", "--json", "--no-open").json

        assert (told["processId"], told["started"]) == (client.pid, False)
        client.close_stdin()
        assert client.exit_code() == 0


def test_a_proxy_that_just_starts_in_a_folder_above_is_found(machine: Machine) -> None:
    """It takes the one solution below for its workspace, and says so when it is connected."""
    machine.environment["UNO_DEVSERVER_TRUST"] = "1"
    below = WorkspaceBuilder(machine, "below").global_json({"Uno.Sdk": "6.5.31"})
    below.project("App/App.csproj", restored=False).solution("App.slnx").file(".devtools/addins/greeting.py", ADDIN)
    with Proxies(machine) as proxies:
        client = proxies.start("--inspector", "0")
        client.initialize()

        told = machine.run("inspect", "--json", "--no-open", cwd=below.root).json

        assert (told["processId"], told["directory"]) == (client.pid, str(below.root))


def test_a_proxy_that_ends_in_its_first_start_is_not_waited_for(
    machine: Machine, processes: Processes, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setenv(DATA_HOME, str(machine.data))
    process, folder = processes.start(), str(machine.workspace)
    status = {"processId": process.pid, "directory": folder, "state": "Initializing", "opensInspector": True}

    process.kill()

    assert wait_for_starts([status]) == []


def test_from_a_folder_inside_the_workspace_it_is_the_same(trusted: Proxies) -> None:
    page = inspector_of(trusted.connected("--inspector", "0"))
    folder = trusted.machine.workspace / "src"
    folder.mkdir()

    assert opened(trusted.machine.run("inspect", cwd=folder).stdout, page)


# --- the browser ------------------------------------------------------------------------------------------------------


@pytest.fixture
def browser(machine: Machine) -> Path:
    """The user's: it writes down what it is to show."""
    shown = machine.root / "shown"
    script = f"#!{sys.executable}\nimport sys\nopen({str(shown)!r}, 'a').write(sys.argv[1] + '\\n')\n"
    write_program(machine.root / "browser", script)
    program = machine.root / ("browser.exe" if WINDOWS else "browser")
    machine.environment |= {"BROWSER": str(program), "DISPLAY": ":0"}
    return shown


def test_the_browser_shows_it_unless_that_is_not_wanted(trusted: Proxies, browser: Path) -> None:
    page = inspector_of(trusted.connected("--inspector", "0"))

    for options in (["--no-open"], ["--json"], []):
        assert trusted.machine.run("inspect", *options).exit_code == 0

    assert opened(_shown(browser), page)


def test_what_the_arguments_of_the_browser_show_is_worth_nothing_once_the_page_is_open(
    trusted: Proxies, browser: Path
) -> None:
    page = inspector_of(trusted.connected("--inspector", "0"))
    printed = trusted.machine.run("inspect").stdout.strip()
    shown = _shown(browser).strip()
    assert page.token not in shown
    assert shown != printed, "the one on the terminal can still be used"
    assert opened(shown, page)

    code = shown.rpartition("?code=")[2]

    assert exchange(shown).status == 401
    for headers in ({}, {"Authorization": f"Bearer {code}"}):
        for path in ("/health", f"/health?token={code}", f"/health?code={code}", f"/mcp/{code}"):
            assert ask(page.port, "GET", path, headers=headers).status == 401
    assert opened(printed, page)


def test_a_browser_that_cannot_be_started_is_no_failure(trusted: Proxies) -> None:
    page = inspector_of(trusted.connected("--inspector", "0"))
    trusted.machine.environment |= {"BROWSER": "/there/is/none", "DISPLAY": ":0"}

    result = trusted.machine.run("inspect")

    assert result.exit_code == 0
    assert opened(result.stdout, page)


# --- a proxy of its own -----------------------------------------------------------------------------------------------


@pytest.mark.parametrize("number", [signal.SIGINT, signal.SIGTERM, SIGHUP])
def test_where_no_proxy_runs_one_runs_until_the_command_is_ended(proxies: Proxies, number: int) -> None:
    inspecting = Inspecting(proxies.machine, "--no-open", "--port", "0")
    page = InspectorClient.opened(inspecting.url())
    _until_connected(page)
    assert page.call("greet", name="page") == "Hello, page!"
    assert opened(proxies.machine.run("inspect").stdout, page), "it is found as any other"

    code, errors = inspecting.end(number)

    assert code == 0
    assert "until this command ends (Ctrl+C)" in errors
    assert "may run from now on: " in errors
    assert "greeting.py" in errors
    wait_for(lambda: proxies.processes() == [])
    assert is_free(page.port)


def test_its_json_is_one_document_and_it_keeps_running(proxies: Proxies) -> None:
    inspecting = Inspecting(proxies.machine, "--json", "--port", "0")
    assert inspecting.process.stdout
    document = "".join(iter(inspecting.process.stdout.readline, "}\n")) + "}"

    told = json.loads(document)

    assert (told["started"], told["directory"]) == (True, str(proxies.machine.workspace))
    assert inspecting.process.poll() is None
    assert told["processId"] in proxies.processes()
    assert inspecting.end()[0] == 0


def test_a_typed_server_gets_a_proxy_with_hot_reload_by_its_package_and_no_config_is_needed(machine: Machine) -> None:
    write(machine.workspace / "pyproject.toml", '[project]\nname = "mine"\n')
    arguments = list(odd_server()[2:])
    run = f"import runpy, sys\nsys.argv = {arguments!r}\nrunpy.run_path(sys.argv[0], run_name='__main__')\n"
    write(machine.workspace / "mine.py", run)
    with Proxies(machine) as proxies:
        process = machine.spawn("inspect", "--no-open", "--json", "--port", "0", "--", sys.executable, "mine.py")
        assert process.stdout
        told = json.loads("".join(iter(process.stdout.readline, "}\n")) + "}")

        status = wait_for(lambda: _reload_status(machine, told["processId"]), "hot reload")

        assert (told["started"], told["directory"]) == (True, str(machine.workspace))
        (package,) = status["packages"]
        assert package["root"] == str(machine.workspace)
        if WINDOWS:
            process.kill()
        else:
            process.send_signal(signal.SIGINT)
        _, errors = process.communicate(timeout=PATIENCE)
        assert (WINDOWS or process.returncode == 0, "Traceback" in errors) == (True, False)
        wait_for(lambda: proxies.processes() == [])


def _reload_status(machine: Machine, pid: int) -> Any:
    return (status_of(str(machine.state), pid) or {}).get("hotReload")


def test_nothing_is_left_when_the_command_is_killed(proxies: Proxies) -> None:
    inspecting = Inspecting(proxies.machine, "--no-open", "--port", "0")
    page = InspectorClient.opened(inspecting.url())
    _until_connected(page)

    inspecting.process.kill()
    inspecting.ended()

    wait_for(lambda: proxies.processes() == [])


@pytest.mark.parametrize("apart", ["", "/usr/bin/nohup", "/usr/bin/setsid"])
def test_it_goes_on_when_the_shell_that_started_it_has_ended(proxies: Proxies, apart: str) -> None:
    machine, told = proxies.machine, proxies.machine.root / "told"
    write(told, "")
    begin = f'{apart} "$@" > {told} 2>&1 & until /usr/bin/grep -q http: {told}; do /usr/bin/sleep 0.05; done'

    machine.run("inspect", "--trust", "--no-open", "--port", "0", prefix=["/bin/bash", "-c", begin, "bash"])

    page = InspectorClient.opened(next(line for line in told.read_text().splitlines() if line.startswith("http:")))
    _until_connected(page)
    (proxy,) = machine.run("list", "--json").json["proxies"]
    assert page.call("greet", name="page") == "Hello, page!"
    os.kill(_parent(proxy["processId"]), signal.SIGTERM)
    wait_for(lambda: proxies.processes() == [])
    assert "error:" not in told.read_text()


def _parent(pid: int) -> int:
    return int(Path(f"/proc/{pid}/stat").read_text().rpartition(")")[2].split()[1])


def test_nothing_is_left_when_it_is_interrupted_before_there_is_a_page(proxies: Proxies) -> None:
    inspecting = Inspecting(proxies.machine, "--no-open", "--port", "0")
    wait_for(lambda: len(proxies.processes()) > 1)

    code, _ = inspecting.end()

    assert code in (0, 130), "130, unless the page was faster"
    wait_for(lambda: proxies.processes() == [])


def test_a_proxy_that_ends_is_a_failure_that_shows_its_last_lines(proxies: Proxies) -> None:
    inspecting = Inspecting(proxies.machine, "--no-open", "--port", "0")
    page = InspectorClient.opened(inspecting.url())
    _until_connected(page)
    (proxy,) = proxies.machine.run("list", "--json").json["proxies"]

    os.kill(proxy["processId"], signal.SIGKILL)
    code, errors = inspecting.ended()

    assert code == 1
    assert f"error: The proxy has ended. Its exit code is {int(KILLED)}; it printed last:" in errors
    assert "  | " in errors
    assert "next: Run 'uno-devserver inspect' again." in errors


def test_a_missing_port_is_reported_at_once(proxies: Proxies) -> None:
    with last_port_taken() as port:
        result = proxies.machine.run("inspect", "--no-open", "--port", str(port))

    assert result.exit_code == 1
    assert "The inspector page is not served" in result.stderr
    assert "next: Choose another port with --port; 0 takes any." in result.stderr
    wait_for(lambda: proxies.processes() == [])


def test_a_proxy_that_ends_before_it_has_a_page_is_reported_as_ended(proxies: Proxies) -> None:
    inspecting = Inspecting(proxies.machine, "--no-open", "--port", "0")

    proxy = wait_for(lambda: next((pid for pid in proxies.processes() if pid != inspecting.process.pid), None))
    os.kill(proxy, signal.SIGKILL)
    code, errors = inspecting.ended()

    assert code == 1
    assert f"error: The proxy has ended. Its exit code is {int(KILLED)};" in errors
    assert "--port" not in errors


@pytest.mark.parametrize(
    ("config", "reason", "next_step"),
    [
        (
            {"mcpServer": {"command": sys.executable, "args": ["-c", BROKEN]}},
            "does not start: it ended with exit code 3. Its last lines:\n      no database\n      v20\n",
            "next: Fix it; the next tool call makes the proxy start it again. What it printed is in ",
        ),
        ({"mcpServer": {"command": "no-such-program"}}, "'no-such-program' is not in the folders", "next: Install it,"),
        (None, "There is no .sln or .slnx file in ", "next: Create a project ('dotnet new unoapp' makes one), or name"),
    ],
)
def test_a_server_that_does_not_start_is_reported_with_the_next_step(
    machine: Machine, config: object, reason: str, next_step: str
) -> None:
    if config is not None:
        write(machine.workspace / ".devtools/host.config.jsonc", json.dumps(config))
    with Proxies(machine):
        inspecting = Inspecting(machine, "--no-open", "--port", "0")
        assert inspecting.process.stderr

        heard = ""
        while "next: " not in heard:
            line = inspecting.process.stderr.readline()
            assert line, heard
            heard += line

        assert reason in heard
        assert next_step in heard
        assert inspecting.end()[0] == 0


def test_another_proxy_is_started_beside_one_that_cannot_be_asked(trusted: Proxies) -> None:
    write(trusted.machine.workspace / ".devtools" / "host.config.jsonc", '{"hotReload": {"enabled": false}}')
    client = trusted.connected()

    inspecting = Inspecting(trusted.machine, "--no-open", "--port", "0")
    page = InspectorClient.opened(inspecting.url())
    _until_connected(page)

    health: Any = page.ask("GET", "/health").json
    assert health["hostProcessId"] == client.health()["hostProcessId"], "both have the same Host"
    code, errors = inspecting.end()
    assert code == 0
    assert f"The proxy {client.pid} has no page" in errors
    assert client.call("greet", name="you") == "Hello, you!"


def test_no_proxy_is_started_if_it_would_have_no_server(machine: Machine) -> None:
    with Proxies(machine) as proxies:
        client = proxies.connected("--", *odd_server())

        result = machine.run("inspect", "--json")

    assert (result.json["error"]["code"], result.exit_code) == ("InspectorNotServed", 1)
    assert f"The proxy {client.pid} has no page" in result.json["error"]["message"]
    assert "--inspector" in result.json["error"]["nextStep"]


# --- what is wrong ----------------------------------------------------------------------------------------------------


@pytest.mark.parametrize(
    ("options", "code", "exit_code"),
    [
        (["--port", "70000"], "BadValue", 2),
        (["--port", "page"], "BadValue", 2),
        (["--port"], "MissingValue", 2),
        (["page"], "UnexpectedArgument", 2),
        (["--solution-dir", "/there/is/none"], "WorkspaceNotResolved", 1),
    ],
)
def test_a_wrong_call_is_refused(machine: Machine, options: list[str], code: str, exit_code: int) -> None:
    result = machine.run("inspect", "--json", *options)

    assert (result.json["error"]["code"], result.exit_code) == (code, exit_code)


@pytest.mark.parametrize("url", ["https://example.com/", "http://localhost:many/", "http://localhost:1/", 6274, None])
def test_a_file_cannot_misdirect_the_browser(
    proxies: Proxies, processes: Processes, browser: Path, url: object
) -> None:
    machine, pid = proxies.machine, processes.start().pid
    status = {"processId": pid, "directory": str(machine.workspace), "inspector": url}
    status |= {"inspectorToken": "t" * 32, "created": process_started(pid)}
    write(machine.state / "proxies" / f"{pid}.json", json.dumps(status))
    inspecting = Inspecting(machine, "--port", "0")

    page = InspectorClient.opened(inspecting.url())

    assert opened(_shown(browser), page)
    inspecting.end()


def opened(printed: str, page: InspectorClient) -> InspectorClient:
    """Open the URL that was printed as a browser does; it must be that of this page."""
    found = InspectorClient.opened(printed.strip())
    assert found.port == page.port
    return found


def _shown(browser: Path) -> str:
    """What the browser was told to show: whole lines, for it writes them in a process of its own."""
    return str(wait_for(lambda: browser.exists() and browser.read_text()))


def _until_connected(page: InspectorClient) -> None:
    wait_for(lambda: page.ask("GET", "/health").json["connectionState"] == "Connected")
