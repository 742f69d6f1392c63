"""What the proxy tells, as the page says it to the user: the views are shown what a test makes up."""

from __future__ import annotations

from typing import Any

import pytest
from playwright.sync_api import Locator, Page, expect

from browser.stage import evaluate
from uno_devserver.issues import REMEDIES, Issue, fatal, warning
from uno_devserver.proxy.health.upstream_issues import with_proxy_step

TRACE = 'Traceback (most recent call last):\n  File "a.py", line 1\nSyntaxError: invalid syntax'


def test_hot_reload_that_another_proxy_does_is_said_to_be_its(page: Page) -> None:
    adopted = {"hotReload": {"owner": False}}

    expect(_card(_show(page, "overview", **adopted), "Hot reload")).to_contain_text(
        "By the proxy that started the Host"
    )
    expect(_show(page, "reloads", **adopted)).to_contain_text("By the proxy that started the Host")


def test_add_ins_that_the_user_has_not_agreed_to_are_not_called_absent(page: Page) -> None:
    addins = _card(_show(page, "overview", trusted=False), "Add-ins")

    expect(addins).to_contain_text("you have not agreed")
    expect(addins.get_by_role("button", name="Copy uno-devserver trust")).to_be_visible()
    expect(addins).not_to_contain_text("none")


@pytest.mark.parametrize(
    ("build", "said", "unsaid"),
    [(None, "Not loaded", "none needed"), ("npm run build", "Build failed", "Not loaded")],
)
def test_only_what_was_built_is_called_a_failed_build(page: Page, build: str | None, said: str, unsaid: str) -> None:
    failure = {"at": "2026-02-03T04:05:06Z", "role": "Host", "changed": ["/ws/a.py"], "ok": False, "problem": "no"}
    figures = {"state": "idle", "strategy": "swap", "checks": 1, "builds": 0, "restarts": 0, "failing": [{}]}
    history = [{**failure, "build": build, "buildSeconds": 0.1}]

    reloads = _show(page, "reloads", hotReload={**figures, "history": history})

    expect(reloads).to_contain_text(said)
    expect(reloads).not_to_contain_text(unsaid)


def test_issues_with_the_same_next_step_are_told_together(page: Page) -> None:
    step = REMEDIES["WorkspaceNotTrusted"]
    one, other = (
        fatal("WorkspaceNotTrusted", "All of it is code."),
        fatal("HostNotStarted", "It was not started.", step),
    )

    issues = _issues(page, warning("ConfigInvalid", "Odd."), other, one)

    expect(issues).to_have_count(2)
    for text in ("All of it is code.", "It was not started.", "WorkspaceNotTrusted", "HostNotStarted"):
        expect(issues.first).to_contain_text(text)
    expect(issues.first.get_by_role("button", name="Copy uno-devserver trust")).to_have_count(1)


def test_no_next_step_speaks_of_the_user_as_of_somebody_else(page: Page) -> None:
    issues = _issues(page, *(with_proxy_step(fatal(code, f"{code}.")) for code in REMEDIES))

    said = " ".join(issues.all_inner_texts())
    assert "If you trust its code, run" in said
    assert "the user" not in said


def test_a_tool_that_a_next_step_names_is_a_link_to_its_form(page: Page) -> None:
    link = _issues(page, with_proxy_step(fatal("WorkspaceAmbiguous", "Two."))).get_by_role("link")

    expect(link).to_have_attribute("href", "#tools/uno_app_select_solution")


def test_what_a_program_printed_keeps_its_lines(page: Page) -> None:
    quoted = fatal("HostCrashed", f"It ended. Its last lines:\n{TRACE}"), warning("ReloadFailed", f"At 4:   {TRACE}")
    issues = _issues(page, *quoted)

    assert issues.locator("pre").all_inner_texts() == [TRACE, f"  {TRACE}"]
    assert "monospace" in issues.locator("pre").first.evaluate("it => getComputedStyle(it).fontFamily")


def test_a_call_tells_when_it_was_and_what_was_asked_before_it_is_opened(page: Page) -> None:
    call = {"id": 1, "method": "tools/call", "name": "greet", "client": "agent", "state": "done", "why": ""}
    times = {"at": 1770091506.5, "queuedMs": 0.1, "runningMs": 2.0, "totalMs": 2.1}
    asked = '{"name":"Ada","words":"' + "x" * 1000

    calls = _view(page, "calls", {"calls": [{**call, **times, "arguments": asked, "outcome": "Hello"}]})

    row = calls.locator("[data-call]")
    expect(row).to_contain_text('{"name":"Ada"')
    expect(row.locator("time")).to_contain_text(page.evaluate("new Date(1770091506500).toTimeString().slice(0, 8)"))
    assert len(row.inner_text()) < 400


def test_details_are_left_out_of_the_log_until_they_are_chosen_and_then_again_shown(page: Page) -> None:
    lines = [
        {"n": n, "at": n, "level": level, "source": "proxy", "text": f"{level} line"}
        for n, level in enumerate(("Debug", "Information", "Warning"), 1)
    ]
    try:
        texts = _view(page, "log", {"log": lines}).locator(".line-text")
        expect(texts).to_have_text(["Information line", "Warning line"])

        page.get_by_label("Level").select_option("Debug")
        expect(texts).to_have_count(3)
        page.evaluate("stage.replaceChildren()")

        expect(_view(page, "log", {"log": lines}).locator(".line-text")).to_have_count(3)
    finally:
        page.evaluate("sessionStorage.clear()")


def test_a_line_that_is_told_late_stands_where_it_belongs(page: Page) -> None:
    line = {"level": "Information", "source": "server"}
    log = _view(page, "log", {"log": [{**line, "n": n, "at": n * 9.5, "text": f"at {n}"} for n in (1, 2, 3)]})

    page.evaluate(
        "lines => { store.receive('log', lines); view.update(store.state, 'log', [lines]) }",
        [{**line, "n": 4, "at": 100, "text": "now"}, {**line, "n": 5, "at": 19, "text": "late"}],
    )

    expect(log.locator(".line-text")).to_have_text(["at 1", "at 2", "late", "at 3", "now"])


def _issues(page: Page, *issues: Issue) -> Locator:
    """The entries of the list of issues."""
    names = ("code", "message", "remediation")
    told = [{**{name: getattr(each, name) for name in names}, "severity": each.severity.value} for each in issues]
    return _card(_view(page, "overview", _snapshot(issues=told)), "Issues").locator(".issue")


def _card(view: Locator, title: str) -> Locator:
    return view.get_by_role("region", name=title, exact=True)


def _show(page: Page, view: str, **proxy: Any) -> Locator:
    """A view of a proxy of which this is known."""
    return _view(page, view, _snapshot(**proxy))


def _snapshot(issues: list[dict[str, Any]] | None = None, **proxy: Any) -> dict[str, Any]:
    quiet = {"state": "Connected", "clients": [], "toolCount": 1, "timeline": {}, "restarts": 0, "reloads": 0}
    unknown = dict.fromkeys(("upstream", "lastExit", "hotReload", "hotReloadOff", "trusted", "catalogueAgeSeconds"))
    health = {"status": "Healthy", "issues": issues or [], "addIns": [], "proxy": {**quiet, **unknown, **proxy}}
    return {"health": health}


def _view(page: Page, name: str, snapshot: dict[str, Any]) -> Locator:
    evaluate(
        page,
        """const {create} = await import(`/assets/views/${name}.js`);
        const {Store} = await import("/assets/store.js");
        window.stage = stage;
        window.store = new Store();
        store.receive("snapshot", {version: "1", directory: "/ws", now: Date.now() / 1000, ...snapshot});
        window.view = create({store, key: "", announce() {}});
        stage.replaceChildren(view.element);
        view.update(store.state, "snapshot", []);""",
        {"name": name, "snapshot": snapshot},
    )
    return page.locator("main > section")
