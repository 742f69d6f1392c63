"""What happens behind the page while somebody looks at it: calls, edits, crashes, restarts."""

from __future__ import annotations

import json
import re
import shutil
import sys

from playwright.sync_api import Browser, expect

from browser.conftest import Opener
from browser.inspected import Inspected
from browser.screen import Screen, expect_outcome
from browser.watching import LOST, NAME, REFUSED, Visit
from support import odd_servers
from support.files import write
from support.inspectors import exchange
from support.reloading import state_of, wait_ready

TIME = re.compile(r"\d\s*m?s(?![a-z])")


def test_a_call_of_an_agent_is_seen_while_it_runs_and_when_it_is_done(inspected: Inspected, opened: Opener) -> None:
    screen, gate = opened(inspected, "calls"), inspected.gate()

    request = inspected.agent.begin("tools/call", {"name": "hold", "arguments": {"until": str(gate)}})
    row = screen.row("hold").filter(has_text="test-client").first
    expect(row).to_have_attribute("data-state", "running")
    gate.touch()
    inspected.agent.answer(request)

    expect(row).to_have_attribute("data-state", "done")
    expect(row).to_contain_text(TIME)
    states = screen.seen(f"call {row.get_attribute('data-call')}")
    assert states[-2:] == ["running", "done"], states
    row.get_by_role("button").first.click()
    expect(screen.view("Calls")).to_contain_text(str(gate))
    expect(screen.view("Calls")).to_contain_text("held")


def test_a_call_that_fails_is_seen_as_failed(inspected: Inspected, opened: Opener) -> None:
    screen = opened(inspected, "calls")

    assert inspected.agent.call_result("fail", why="no canvas")["isError"]

    expect(screen.row("fail").first).to_have_attribute("data-state", "failed")


def test_state_health_timeline_and_add_ins_are_on_the_overview(inspected: Inspected, opened: Opener) -> None:
    screen = opened(inspected)
    overview = screen.go("Overview")

    expect(screen.field("state")).to_have_text("Connected")
    expect(screen.field("status")).to_have_text("Healthy")
    reached = overview.get_by_role("row", name="Server ready").get_by_role("cell")
    expect(reached.nth(1)).to_have_text(TIME)
    expect(reached.nth(1)).not_to_have_text("0.0 ms")  # the time since the step before
    expect(overview).to_contain_text("gallery")
    expect(screen.page.get_by_role("heading", level=1)).to_contain_text(inspected.machine.workspace.name)


def test_paths_are_said_as_people_say_them(inspected: Inspected, opened: Opener) -> None:
    screen = opened(inspected)

    shown = screen.go("Overview").get_by_text("~/paint-shop/.devtools/addins/gallery.py")
    expect(shown).to_have_attribute("title", str(inspected.addin))
    expect(screen.page.get_by_text("~/paint-shop", exact=True).first).to_be_visible()
    expect(screen.go("Servers").get_by_text("~/paint-shop").first).to_be_visible()


def test_an_edit_is_loaded_and_shown_although_nobody_calls(own: Inspected, opened: Opener) -> None:
    screen = opened(own, "tools")
    expect(screen.view("Tools")).to_contain_text("greet")

    own.add_tool("brand_new")

    expect(screen.view("Tools")).to_contain_text("brand_new")
    expect(screen.go("Reloads")).to_contain_text("brand_new")


def test_an_edit_is_seen_as_a_reload_and_its_new_tool_is_there(own: Inspected, opened: Opener) -> None:
    screen = opened(own, "tools")
    screen.page.evaluate("window.same_page = true")

    own.add_tool("brand_new")
    assert state_of(own.agent.call_result("greet", name="you")) == "restarting"
    wait_ready(own.agent)

    result = screen.call("brand_new")
    expect_outcome(result, "ok")
    expect(result).to_contain_text("brand_new was here")
    reloads = screen.go("Reloads")
    expect(reloads).to_contain_text("gallery.py")
    expect(reloads).to_contain_text("brand_new")
    expect(reloads).to_contain_text(TIME)
    screen.go("Calls")
    expect(screen.row("greet").first).to_have_attribute("data-state", "restarting")
    assert screen.page.evaluate("window.same_page")


def test_code_that_cannot_be_loaded_is_seen_as_a_reload_that_failed(own: Inspected, opened: Opener) -> None:
    screen = opened(own, "reloads")

    own.addin.write_text(own.addin.read_text("utf-8") + "\nprint(a b)\n", "utf-8")
    own.agent.call_result("greet", name="you")

    expect(screen.view("Reloads")).to_contain_text("SyntaxError")
    expect(screen.go("Log")).to_contain_text("The new code of the server cannot be used; the old code goes on running.")
    screen.go("Overview")
    expect(screen.view("Overview")).to_contain_text("ReloadFailed")


def test_a_crash_and_its_healing_are_seen(own: Inspected, opened: Opener) -> None:
    screen = opened(own)
    expect(screen.field("state")).to_have_text("Connected")

    own.kill_host()
    own.agent.wait_connected(generation=2)

    expect(screen.view("Overview")).to_contain_text(re.compile(r"Exit code\s*-9"))
    expect(screen.field("state")).to_have_text("Connected")
    assert "Reconnecting…" not in screen.seen("connection")  # the proxy was there all the time
    expect_outcome(screen.call("greet", name="Ada"), "ok")


def test_the_page_finds_the_next_proxy_of_its_workspace_by_itself(own: Inspected, opened: Opener) -> None:
    screen, port, token = opened(own), own.port, own.token
    unused = own.new_url()
    screen.visit.expected += [LOST]
    screen.page.evaluate("window.same_page = true")

    own.end_proxy()
    expect(screen.connection).to_contain_text("Reconnecting…")
    own.start(port)

    screen.wait_connected()
    assert own.token != token
    assert exchange(unused).status == 401, "the code of the proxy that has gone"
    expect_outcome(screen.call("greet", name="Ada"), "ok")
    assert screen.page.evaluate("window.same_page")


def test_a_page_whose_key_is_unknown_to_the_next_proxy_says_what_to_do(own: Inspected, opened: Opener) -> None:
    screen, port = opened(own), own.port
    screen.visit.expected += [LOST, REFUSED]

    own.end_proxy()
    shutil.rmtree(own.machine.state / "inspector")
    own.start(port)

    expect(screen.connection).to_contain_text("Not allowed")
    expect(screen.page.get_by_text("uno-devserver inspect")).to_be_visible()
    screen.page.reload()
    expect(screen.page.get_by_role("heading", name="Not allowed")).to_be_visible()
    expect(screen.page.locator("body")).to_contain_text("uno-devserver inspect")


def test_the_page_of_another_proxy_is_opened_from_the_list_of_servers(own: Inspected, browser: Browser) -> None:
    """Its address alone would not open it."""
    address, first = own.address, own.agent.process.pid
    own.start()
    with Visit(browser, address, own.address) as visit:
        page = visit.open(own.new_url())
        screen = Screen(page, visit)
        screen.wait_connected()

        with page.context.expect_page() as popup:
            screen.go("Servers").get_by_role("button", name=f"Open the inspector of process {first}").click()

        Screen(popup.value, visit).wait_connected()
        assert NAME.sub("//", popup.value.url) == f"{address}/"


def test_the_log_is_filtered_by_level_and_by_words(inspected: Inspected, opened: Opener) -> None:
    screen, words = opened(inspected, "log"), "the varnish is still wet"
    log = screen.page.get_by_role("log")
    expect(log).to_be_visible()
    inspected.agent.call("complain", words=words)
    expect(log).to_contain_text(words)

    _choose_level(screen, "Error")
    expect(log).not_to_contain_text(words)
    _choose_level(screen, "Warning")
    expect(log).to_contain_text(words)

    search = screen.page.get_by_label("Search")
    search.fill("no line has this")
    expect(log).not_to_contain_text(words)
    search.fill("VARNISH is")
    expect(log).to_contain_text(words)


def test_each_line_of_the_log_is_there_once_also_after_a_crash(own: Inspected, opened: Opener) -> None:
    screen = opened(own, "log")
    log = screen.page.get_by_role("log")
    expect(log).to_contain_text("is loaded")

    own.kill_host()
    own.agent.wait_connected(generation=2)
    own.agent.call("complain", words="after the crash")

    expect(log).to_contain_text("after the crash")
    expect(log.get_by_text("DevServer registered: ")).to_have_count(2)
    expect(log.get_by_text("after the crash")).to_have_count(1)


def _choose_level(screen: Screen, level: str) -> None:
    select = screen.page.get_by_label("Level")
    labels = select.locator("option").all_inner_texts()
    select.select_option(label=next(label for label in labels if level in label))


def test_servers_of_the_config_come_and_crash_on_the_page_and_one_of_them_is_restarted(
    own: Inspected, opened: Opener
) -> None:
    screen = opened(own, "overview")
    card = screen.page.get_by_role("region", name="Further servers")
    expect(card).to_be_hidden()
    root = own.machine.workspace / "weather"
    write(root / "pyproject.toml", '[project]\nname = "weather"\nversion = "1"\n')
    write(root / "server.py", f"import runpy\nrunpy.run_path({odd_servers.__file__!r}, run_name='__main__')\n")
    weather = {"command": sys.executable, "args": ["-IS", "server.py"], "root": "../weather"}

    write(own.machine.workspace / ".devtools" / "host.config.jsonc", json.dumps({"servers": {"weather": weather}}))

    row = card.get_by_role("row", name=re.compile("^weather "))
    expect(row).to_contain_text("Connected")
    own.agent.call_result("die", code=3)
    expect(row.get_by_role("cell").nth(2)).to_have_text("1")
    which = screen.page.get_by_label("Server to restart")
    expect(which.get_by_role("option")).to_have_text(["main", "weather"])
    which.select_option("weather")
    screen.page.get_by_role("button", name="Restart server").click()
    expect(screen.page.get_by_role("status", name="Restart")).to_contain_text("The server has restarted")
    expect(row.get_by_role("cell").nth(3)).to_have_text("1")
