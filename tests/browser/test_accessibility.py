"""For everybody: by keyboard, with a screen reader, on a small screen, in the dark."""

from __future__ import annotations

from collections.abc import Iterator
from pathlib import Path
from typing import Any

import pytest
from playwright.sync_api import Locator, expect

from browser.conftest import Opener
from browser.inspected import Inspected
from browser.screen import VIEWS, Screen, expect_outcome, labelled
from support.npm import installed
from support.reloading import state_of, wait_ready

DESKTOP, PHONE = {"width": 1280, "height": 800}, {"width": 360, "height": 740}
SERIOUS = ("serious", "critical")
TABS = 80  # more than there are stops on any view
FINGER_PIXELS = 40
# All that can be pressed and is no link within a sentence.
SMALL = """least => [...document.querySelectorAll("button, select, input, summary, nav a, .choices a, a.back")]
  .map(each => each.type === "checkbox" ? each.closest("label") : each)
  .filter(each => each.checkVisibility() && each.getBoundingClientRect().height < least)
  .map(each => `${each.outerHTML.slice(0, 120)} ${each.getBoundingClientRect().height}`)"""
LONG = "a-word-without-an-end" * 30


@pytest.fixture(scope="module")
def busy(tmp_path_factory: pytest.TempPathFactory) -> Iterator[Inspected]:
    """One that has something to show on every view."""
    with Inspected(tmp_path_factory.mktemp("busy")) as busy:
        busy.add_tool("brand_new")
        assert state_of(busy.agent.call_result("greet", name="you")) == "restarting"
        wait_ready(busy.agent)
        yield busy


# In the dark nothing but the colours is another, and those are the same on a phone.
@pytest.mark.parametrize(
    ("theme", "sizes", "rules"),
    [("light", (DESKTOP, PHONE), {}), ("dark", (DESKTOP,), {"runOnly": ["color-contrast"]})],
)
def test_axe_finds_nothing_serious(
    busy: Inspected, opened: Opener, theme: str, sizes: tuple[dict[str, int], ...], rules: dict[str, list[str]]
) -> None:
    # A button that is just fading from one colour to the other has neither; it is judged by those.
    screen = opened(busy, color_scheme=theme, reduced_motion="reduce")
    _make_calls(busy)
    screen.page.evaluate((installed(Path(__file__).parent / "axe") / "node_modules/axe-core/axe.min.js").read_text())

    found = [
        f"{view}, {size['width']} px: {problem}"
        for size in sizes
        for view in VIEWS
        for problem in _problems(_filled(screen, view, size), rules)
    ]

    assert not found, "\n".join(found)


def test_on_a_phone_nothing_scrolls_sideways_and_a_finger_hits_what_it_is_to_hit(
    busy: Inspected, opened: Opener
) -> None:
    screen = opened(busy, viewport=PHONE, has_touch=True)
    _make_calls(busy)

    for view in VIEWS:
        _filled(screen, view, PHONE)

        width = screen.page.evaluate("document.scrollingElement.scrollWidth")
        assert width <= PHONE["width"], f"{view} is {width} px wide"
        small = screen.page.evaluate(SMALL, FINGER_PIXELS)
        assert not small, f"{view}: {small}"


def test_a_tool_is_reached_and_called_by_keyboard_alone(inspected: Inspected, opened: Opener) -> None:
    screen = opened(inspected)
    page = screen.page

    _tab_to(screen, page.get_by_role("navigation", name="Views").get_by_role("link", name="Tools"))
    page.keyboard.press("Enter")
    tools = screen.view("Tools")
    _tab_to(screen, tools.locator("a, button").filter(has_text="greet").first)
    page.keyboard.press("Enter")
    form = tools.get_by_role("form", name="Call greet")
    _tab_to(screen, labelled(form, "name"))
    page.keyboard.type("Ada")
    _tab_to(screen, form.get_by_role("button", name="Call", exact=True))
    page.keyboard.press("Enter")

    expect_outcome(screen.result, "ok")
    expect(screen.result).to_contain_text("Hello, Ada!")


def test_the_first_stop_skips_to_the_content(inspected: Inspected, opened: Opener) -> None:
    screen = opened(inspected, "log")

    screen.page.keyboard.press("Tab")
    skip = screen.page.locator(":focus")
    expect(skip).to_contain_text("Skip")
    screen.page.keyboard.press("Enter")

    assert screen.page.evaluate("document.activeElement.closest('main') !== null")
    expect(screen.view("Log")).to_be_visible()


def test_the_view_that_is_shown_is_marked(inspected: Inspected, opened: Opener) -> None:
    screen = opened(inspected)

    for view in VIEWS:
        screen.go(view)

        current = screen.page.get_by_role("navigation", name="Views").locator('[aria-current="page"]')
        expect(current).to_have_count(1)
        expect(current).to_contain_text(view)
        assert screen.page.locator("h2:visible").all_inner_texts() == [view]


def test_the_theme_is_that_of_the_system_until_another_is_chosen_which_stays(
    inspected: Inspected, opened: Opener
) -> None:
    screen = opened(inspected, color_scheme="light")
    light = _text_colour(screen)

    screen.page.emulate_media(color_scheme="dark")
    dark = _text_colour(screen)
    assert dark != light

    screen.page.get_by_role("button", name="Theme").click()
    assert _text_colour(screen) == light
    screen.page.reload()
    screen.wait_connected()
    assert _text_colour(screen) == light


def _make_calls(busy: Inspected) -> None:
    busy.agent.call("greet", name=LONG)
    busy.agent.call("complain", words=LONG)
    busy.agent.call_result("fail")


def _filled(screen: Screen, view: str, size: dict[str, int]) -> Screen:
    """A view with something in it."""
    screen.page.set_viewport_size({"width": size["width"], "height": size["height"]})
    section = screen.go(view)
    if view == "Tools":
        expect_outcome(screen.call("greet", name=LONG), "ok")
    elif view == "Calls":
        expect(screen.row("fail").first).to_be_visible()
        screen.row("greet").first.get_by_role("button").first.click()
    elif view == "Resources":
        section.get_by_text("catalogue").first.click()
        expect(section).to_contain_text("one red pixel")
    elif view == "Prompts":
        section.get_by_text("describe").first.click()
    elif view == "Log":
        expect(screen.page.get_by_role("log")).to_contain_text(LONG)
    elif view == "Reloads":
        expect(section).to_contain_text("brand_new")
    return screen


def _problems(screen: Screen, rules: dict[str, list[str]]) -> list[str]:
    found: list[dict[str, Any]] = screen.page.evaluate(
        "rules => axe.run({resultTypes: ['violations'], ...rules}).then(found => found.violations)", rules
    )
    return [
        f"{rule['id']} ({rule['impact']}): {node['html'][:200]} {node['failureSummary']}"
        for rule in found
        if rule["impact"] in SERIOUS
        for node in rule["nodes"]
    ]


def _tab_to(screen: Screen, wanted: Locator) -> None:
    """Press Tab until it has the focus, and see that one can see it."""
    expect(wanted).to_be_visible()
    for _ in range(TABS):
        screen.page.keyboard.press("Tab")
        if wanted.evaluate("element => element === document.activeElement"):
            style = wanted.evaluate("e => { const s = getComputedStyle(e); return [s.outlineStyle, s.boxShadow]; }")
            assert style != ["none", "none"], "nothing shows that it has the focus"
            return
    raise AssertionError(f"{TABS} times Tab do not lead to {wanted}")


def _text_colour(screen: Screen) -> str:
    colour: str = screen.page.get_by_role("heading", level=1).evaluate("heading => getComputedStyle(heading).color")
    return colour
