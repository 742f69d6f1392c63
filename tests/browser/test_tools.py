"""Tools, resources and prompts, used by hand."""

from __future__ import annotations

import json
import re

from playwright.sync_api import expect

from browser.conftest import Opener
from browser.gallery import MARKUP
from browser.inspected import Inspected
from browser.screen import expect_outcome, labelled


def test_a_tool_is_called_once_with_what_was_filled_in_and_its_answer_is_shown(
    inspected: Inspected, opened: Opener
) -> None:
    screen = opened(inspected)
    before = len(inspected.calls())

    result = screen.call("greet", name="Ada")

    expect_outcome(result, "ok")
    expect(result).to_contain_text("Hello, Ada!")
    expect(result).to_contain_text("ms")
    assert [call["arguments"] for call in screen.sent("tools/call")] == [{"name": "Ada"}]
    assert [call["tool"] for call in inspected.calls()[before:]] == ["greet"]


def test_the_tools_of_the_server_come_before_those_of_the_proxy(inspected: Inspected, opened: Opener) -> None:
    screen = opened(inspected)
    screen.choose("greet")

    headings = screen.page.get_by_role("heading", level=3)
    links = screen.page.locator("ul.choices a")

    expect(headings.filter(has_text="Of ")).to_have_text(["Of the server", "Of uno-devserver"])
    names = links.locator(".choice-name").all_inner_texts()
    assert names.index("greet") < names.index("uno_health")


def test_a_form_remembers_what_it_was_sent_with(inspected: Inspected, opened: Opener) -> None:
    screen = opened(inspected)
    expect_outcome(screen.call("greet", name="Ada"), "ok")

    screen.page.reload()

    expect(labelled(screen.choose("greet"), "name")).to_have_value("Ada")


def test_each_kind_of_field_is_sent_as_its_type(inspected: Inspected, opened: Opener) -> None:
    screen = opened(inspected)
    form = screen.choose("greet")

    labelled(form, "name").fill("Ada")
    labelled(form, "times").fill("2")
    labelled(form, "tone").select_option(label="cool")
    labelled(form, "loud").check()
    labelled(form, "nickname").fill("Countess")
    screen.send(form)

    expect_outcome(screen.result, "ok")
    expect(screen.result).to_contain_text("HELLO, COUNTESS! HELLO, COUNTESS!")
    [call] = screen.sent("tools/call")
    assert call["arguments"] == {"name": "Ada", "times": 2, "tone": "cool", "loud": True, "nickname": "Countess"}


def test_a_list_is_filled_item_by_item_and_what_has_no_control_as_json(inspected: Inspected, opened: Opener) -> None:
    screen = opened(inspected)
    form = screen.choose("hang")

    for number, title in enumerate(("Sea", "Sky"), 1):
        form.get_by_role("button", name=re.compile("^Add")).click()
        labelled(form, f"titles {number}").fill(title)
    labelled(form, "labels").fill('{"Sky": [1, null]}')
    screen.send(form)

    expect_outcome(screen.result, "ok")
    [call] = screen.sent("tools/call")
    assert call["arguments"] == {"titles": ["Sea", "Sky"], "labels": {"Sky": [1, None]}}


def test_the_arguments_can_be_written_as_json(inspected: Inspected, opened: Opener) -> None:
    screen = opened(inspected)
    form = screen.choose("greet")
    labelled(form, "name").fill("Ada")

    form.get_by_role("button", name="Edit as JSON").click()
    text = labelled(form, "Arguments as JSON")
    assert json.loads(text.input_value())["name"] == "Ada"
    text.fill('{"name": "Grace", "nickname": null}')
    screen.send(form)

    expect_outcome(screen.result, "ok")
    assert [call["arguments"] for call in screen.sent("tools/call")] == [{"name": "Grace", "nickname": None}]


def test_a_missing_field_is_told_and_nothing_is_sent(inspected: Inspected, opened: Opener) -> None:
    screen = opened(inspected)
    form = screen.choose("size_of")
    field = labelled(form, "lines")

    screen.send(form)

    expect(field).to_be_focused()
    expect(field).to_have_attribute("aria-invalid", "true")

    # What is sent later is all that ever was.
    field.fill("Ada")
    screen.send(form)
    expect_outcome(screen.result, "ok")
    assert [call["arguments"] for call in screen.sent("tools/call")] == [{"lines": "Ada"}]


def test_json_that_is_none_is_told_and_nothing_is_sent(inspected: Inspected, opened: Opener) -> None:
    screen = opened(inspected)
    form = screen.choose("hang")
    field = labelled(form, "labels")
    field.fill('{"Sky": ')

    screen.send(form)

    expect(field).to_be_focused()
    expect(field).to_have_attribute("aria-invalid", "true")
    field.fill("{}")
    screen.send(form)
    expect_outcome(screen.result, "ok")
    assert [call["arguments"] for call in screen.sent("tools/call")] == [{"titles": [], "labels": {}}]


def test_structured_content_is_shown(inspected: Inspected, opened: Opener) -> None:
    screen = opened(inspected)

    result = screen.call("size_of", lines="abc")

    expect_outcome(result, "ok")
    expect(result).to_contain_text('"width": 3')
    expect(result).to_contain_text('"height": 1')


def test_a_picture_is_shown(inspected: Inspected, opened: Opener) -> None:
    screen = opened(inspected)

    result = screen.call("picture")

    expect_outcome(result, "ok")
    expect(result).to_contain_text("A red pixel:")
    picture = result.locator("img")
    expect(picture).to_be_visible()
    assert picture.evaluate("image => image.decode().then(() => image.naturalWidth)") == 1
    assert picture.get_attribute("alt")


def test_an_error_of_a_tool_is_shown_as_one(inspected: Inspected, opened: Opener) -> None:
    screen = opened(inspected)

    result = screen.call("fail", why="no brush")

    expect_outcome(result, "error")
    expect(result).to_contain_text("It cannot be painted: no brush.")


def test_what_a_server_says_stays_text(inspected: Inspected, opened: Opener) -> None:
    screen = opened(inspected)

    result = screen.call("markup")

    expect_outcome(result, "ok")
    expect(result).to_contain_text(MARKUP)
    screen.go("Calls")
    screen.row("markup").first.get_by_role("button").first.click()
    expect(screen.page.get_by_text(MARKUP).first).to_be_visible()
    assert screen.page.evaluate("window.owned") is None


def test_a_running_call_tells_its_progress_and_can_be_cancelled(inspected: Inspected, opened: Opener) -> None:
    screen = opened(inspected)
    form = screen.choose("hold")
    labelled(form, "until").fill(str(inspected.gate()))

    screen.send(form)
    expect(screen.view("Tools")).to_contain_text("waiting for the file")
    screen.page.get_by_role("button", name="Cancel", exact=True).click()

    expect(screen.page.get_by_role("button", name="Cancel", exact=True)).to_be_hidden()
    expect_outcome(screen.result, "cancelled")
    screen.go("Calls")
    expect(screen.row("hold").first).to_have_attribute("data-state", "cancelled")


def test_a_resource_is_read(inspected: Inspected, opened: Opener) -> None:
    screen = opened(inspected)
    resources = screen.go("Resources")

    resources.get_by_text("catalogue").first.click()

    expect(resources).to_contain_text(f"one red pixel {MARKUP}")
    assert screen.page.evaluate("window.owned") is None


def test_a_template_is_filled_and_read(inspected: Inspected, opened: Opener) -> None:
    screen = opened(inspected)
    resources = screen.go("Resources")

    resources.get_by_text("room").first.click()
    form = resources.get_by_role("form").last
    labelled(form, "number").fill("7")
    form.get_by_role("button", name="Read").click()

    expect(resources).to_contain_text("room 7 is empty")


def test_a_prompt_is_filled_and_its_messages_are_shown(inspected: Inspected, opened: Opener) -> None:
    screen = opened(inspected)
    prompts = screen.go("Prompts")

    prompts.get_by_text("describe").first.click()
    form = prompts.get_by_role("form").last
    labelled(form, "subject").fill("a pixel")
    form.get_by_role("button", name="Get messages").click()

    expect(prompts).to_contain_text("Describe a pixel in one sentence.")
