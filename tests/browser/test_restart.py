"""Restarts of the server as the page meets them and asks for them: it waits, and speaks to people."""

from __future__ import annotations

import re

import pytest
from playwright.sync_api import Locator, Page, expect

from browser.conftest import Opener
from browser.inspected import Inspected
from browser.screen import Screen, expect_outcome, labelled
from browser.stage import evaluate

FOR_AGENTS = re.compile("mcpStatus|mcpRestart|uno_health|empty input|no other tool")


def test_a_call_after_an_edit_waits_for_the_restart_and_is_run_once(own: Inspected, opened: Opener) -> None:
    screen = opened(own, "tools")

    own.add_tool("brand_new")
    result = screen.call("greet", name="Ada")

    expect_outcome(result, "ok")
    expect(result).to_contain_text("Hello, Ada!")
    expect(result).to_contain_text("The server has started again; then the call was run.")
    expect(result).not_to_contain_text(FOR_AGENTS)
    assert [call["name"] for call in screen.sent("tools/call")] == ["greet", "mcpStatus", "greet"]
    assert [call["tool"] for call in own.calls()] == ["greet"]


def test_a_call_that_waits_for_a_restart_says_so_and_can_be_cancelled(own: Inspected, opened: Opener) -> None:
    screen, gate = opened(own, "tools"), own.gate()
    running = own.agent.begin("tools/call", {"name": "hold", "arguments": {"until": str(gate)}})
    own.wait_call("hold")
    own.add_tool("brand_new")

    form = screen.choose("greet")
    labelled(form, "name").fill("Ada")
    screen.send(form)
    expect(screen.result).to_contain_text("The server restarts with its new code.")
    expect(form).to_contain_text("it waits for a call that still runs")
    form.get_by_role("button", name="Cancel", exact=True).click()

    expect_outcome(screen.result, "cancelled")
    gate.touch()
    own.agent.answer(running)
    expect_outcome(screen.call("greet", name="Grace"), "ok")
    assert [call["tool"] for call in own.calls()] == ["hold", "greet"]


def test_code_that_cannot_be_loaded_is_told_in_words_for_people(own: Inspected, opened: Opener) -> None:
    screen = opened(own, "tools")

    _break(own)
    result = screen.call("greet", name="Ada")

    expect_outcome(result, "error")
    expect(result).to_contain_text("SyntaxError")
    expect(result).to_contain_text("The call was not run. Fix the error and save: the next call builds again.")
    expect(result).not_to_contain_text(FOR_AGENTS)
    assert own.calls() == []


def test_the_button_restarts_the_server_and_says_so(own: Inspected, opened: Opener) -> None:
    screen = opened(own)
    before = own.agent.health()["proxy"]["upstream"]["processId"]

    outcome = _restart(screen)

    expect(outcome).to_contain_text(re.compile(r"The server has restarted \(.*s\)\."))
    expect(screen.page.get_by_role("button", name="Stop waiting")).to_be_hidden()
    assert own.agent.health()["proxy"]["upstream"]["processId"] != before
    expect(screen.go("Reloads")).to_contain_text("No file had changed: the restart was asked for.")


def test_the_button_tells_that_new_code_does_not_run(own: Inspected, opened: Opener) -> None:
    screen = opened(own)

    _break(own)
    outcome = _restart(screen)

    expect(outcome).to_contain_text("The old code still answers, because the new code does not build.")
    expect(outcome.get_by_role("link", name="The Overview says more")).to_be_visible()


def test_nobody_has_to_wait_for_a_restart_that_was_asked_for(own: Inspected, opened: Opener) -> None:
    screen, gate = opened(own), own.gate()
    running = own.agent.begin("tools/call", {"name": "hold", "arguments": {"until": str(gate)}})
    own.wait_call("hold")

    outcome = _restart(screen)
    expect(outcome).to_contain_text("it waits for a call that still runs")
    screen.page.get_by_role("button", name="Stop waiting").click()

    expect(outcome).to_contain_text("The restart goes on")
    gate.touch()
    own.agent.answer(running)
    own.agent.wait_connected(generation=2)


def test_a_server_that_does_not_start_is_told_with_what_it_printed(page: Page) -> None:
    text = "Acme does not run. It ended.\n\nIt printed last:\n\n````\n```boom```\n````\n\nFix it. Then call mcpStatus."
    told = _not_run(page, text, "failed")

    expect(told).to_contain_text("Acme does not run. It ended.")
    expect(told.locator("pre")).to_have_text("```boom```")
    expect(told).to_contain_text("The call was not run. Fix it and save: the next call starts the server again.")
    expect(told).not_to_contain_text(FOR_AGENTS)


def test_a_restart_that_takes_too_long_is_told(page: Page) -> None:
    told = _not_run(page, "Acme is not ready after 60 s. Call mcpStatus again to keep waiting.", "restarting")

    expect(told).to_have_text(re.compile("The server has not restarted yet.*Make it again when the Overview says"))
    expect(told).not_to_contain_text(FOR_AGENTS)


@pytest.mark.parametrize(
    "instructions",
    [" This request has not been run. Fix it; uno_health says more.", "\n\nFix it. Then call mcpStatus."],
)
def test_all_that_a_server_printed_before_it_ended_is_told(page: Page, instructions: str) -> None:
    told = _not_run(
        page, f"Acme does not start. Its last lines:\nat x.js:2\n\nError: no database{instructions}", "failed"
    )

    expect(told.locator("p").first).to_have_text("Acme does not start. Its last lines:")
    expect(told.locator("pre")).to_have_text("at x.js:2\n\nError: no database")
    expect(told).not_to_contain_text(FOR_AGENTS)


def test_a_call_without_a_server_that_the_user_has_not_agreed_to_says_how_to_agree(page: Page) -> None:
    text = "The dev server does not work. It ended. This request has not been run. uno_health shows the outcome."
    told = _not_run(page, text, "notAgreed")

    expect(told).to_contain_text("The dev server does not work. It ended.")
    expect(told).to_contain_text("The call was not run. Run 'uno-devserver trust' in the workspace")
    expect(told).not_to_contain_text(FOR_AGENTS)


@pytest.mark.parametrize(
    ("also", "told"),
    [
        ([], "The server is ready (5.0 ms)."),
        (["reloaded"], "The server has restarted (5.0 ms)."),
        (["reloaded", "buildFailed"], "The old code still answers, because the new code does not build."),
        (["swapFailed"], "The old code still answers, because the new code does not start."),
        (["notAgreed"], "The server runs the code and settings that you agreed to last. Run 'uno-devserver trust'"),
        (["unchecked"], "The server is ready, but whether its code has changed could not be checked."),
        (
            ["reloaded", "extensionBuildFailed"],
            "The server is ready, but the new code of the extension does not build.",
        ),
    ],
)
def test_the_outcome_of_the_button_is_told_for_each_state(page: Page, also: list[str], told: str) -> None:
    meta = {"uno-devserver/hotReload": {"state": "ready", "run": True, "also": also}}
    evaluate(
        page,
        """const {renderRestarted} = await import("/assets/restart.js");
        stage.replaceChildren(...[renderRestarted(result, 5)].flat(Infinity).filter(Boolean));""",
        {"result": {"content": [{"type": "text", "text": "Call mcpStatus."}], "_meta": meta}},
    )

    expect(page.locator("#stage")).to_contain_text(told)
    expect(page.locator("#stage")).not_to_contain_text(FOR_AGENTS)


@pytest.mark.parametrize(
    "remedy",
    [
        "Fix it; the next tool call makes the proxy start it again. What it printed is in /x.log.",
        "Fix what is wrong with the code; the next tool call tries again.",
    ],
)
def test_an_issue_of_a_server_that_failed_names_the_button_which_is_there(page: Page, remedy: str) -> None:
    evaluate(
        page,
        """const {nextStep} = await import("/assets/remedy.js");
        const {createRestart} = await import("/assets/restart.js");
        const restart = createRestart({key: "x"});
        restart.update({health: {proxy: {state: "Degraded", hotReload: null}}});
        stage.replaceChildren(restart.element, ...nextStep(result));""",
        {"result": remedy},
    )

    stage = page.locator("#stage")
    expect(stage).to_contain_text(remedy.partition(";")[0] + ", then press “Restart server” above.")
    expect(stage.get_by_role("button", name="Restart server", exact=True)).to_be_visible()


def _break(inspected: Inspected) -> None:
    inspected.addin.write_text(inspected.addin.read_text("utf-8") + "\nprint(a b)\n", "utf-8")


def _restart(screen: Screen) -> Locator:
    """Press the button; where its outcome is told."""
    overview = screen.go("Overview")
    overview.get_by_role("button", name="Restart server", exact=True).click()
    return overview.get_by_role("status", name="Restart", exact=True)


def _not_run(page: Page, text: str, *states: str) -> Locator:
    state, *also = states
    meta = {"uno-devserver/hotReload": {"state": state, "run": False, "also": also}}
    evaluate(
        page,
        """const {renderNotRun} = await import("/assets/restart.js");
        stage.replaceChildren(...renderNotRun(result).flat(Infinity).filter(Boolean));""",
        {"result": {"content": [{"type": "text", "text": text}], "isError": True, "_meta": meta}},
    )
    return page.locator("#stage")
