"""What a server may say that no good one says, or not so much of it: the page shows it, and stays what it is.

The modules of the page are called in a browser, under the page's policy, with what a test makes up.
"""

from __future__ import annotations

import json
from typing import Any

import pytest
from playwright.sync_api import Page, expect

from browser.stage import evaluate

SVG = "<svg xmlns='http://www.w3.org/2000/svg'><script>top.owned = 1</script></svg>"


def test_contents_of_any_kind_are_shown_and_none_is_run_or_followed(page: Page) -> None:
    kinds = ("constructor", "__proto__", "toString", "hasOwnProperty", "unheard-of")
    hostile = (
        [{"type": kind, "said": f"by {kind}"} for kind in kinds]
        + [{"type": "resource_link", "uri": uri, "name": "link"} for uri in ("javascript:owned=1", "x:/a#b%c d")]
        + [{"type": "image", "data": "x", "mimeType": mime} for mime in ("text/html", "image/png,<script>", None)]
        + [{"type": "resource", "resource": {"uri": "x:/../<b>.exe", "blob": "AAAA", "mimeType": "text/html"}}]
        + [None, 5, {"type": "text", "text": 7}]
    )

    evaluate(
        page,
        """const {renderToolResult} = await import("/assets/results.js");
        hostile.push({type: "image", data: btoa(svg), mimeType: "image/svg+xml"});
        stage.append(...renderToolResult({content: hostile}));
        await stage.querySelector("img").decode().catch(() => null);""",
        {"hostile": hostile, "svg": SVG},
    )

    for kind in kinds:
        expect(page.locator("main")).to_contain_text(f"by {kind}")
    links = page.locator("a").evaluate_all("links => links.map(link => link.href.split(':')[0])")
    assert set(links) == {"http", "data"}
    assert page.locator("a[href*='x%3A%2Fa%23b%25c%20d']").count() == 1
    assert page.evaluate("window.owned") is None


def test_a_result_of_very_many_parts_or_very_much_text_is_shown_in_part_until_all_is_wanted(page: Page) -> None:
    evaluate(
        page,
        """const {renderToolResult} = await import("/assets/results.js");
        const content = Array.from({length: 1000}, (_, index) => ({type: "text", text: `part ${index}.`}));
        content[0].text = "x".repeat(20_000_000);
        stage.append(...renderToolResult({content}));""",
    )

    assert page.locator("pre").count() == 100
    assert page.evaluate("document.body.textContent.length") < 100_000
    page.get_by_role("button", name="Show all (1,000 parts)").click()
    expect(page.locator("pre")).to_have_count(1000)
    expect(page.locator("pre").last).to_have_text("part 999.")


def test_a_schema_of_thousands_of_members_becomes_a_form(page: Page) -> None:
    evaluate(
        page,
        """const {createForm} = await import("/assets/forms.js");
        const {describe} = await import("/assets/schema.js");
        const names = Array.from({length: 3000}, (_, index) => `member ${index}`);
        const properties = Object.fromEntries(names.map((name) => [name, {type: "string"}]));
        stage.append(createForm(describe({type: "object", properties, required: names})).element);""",
    )

    assert page.locator("label").count() >= 3000


def test_a_default_that_its_control_cannot_show_is_seen_before_it_is_sent(page: Page) -> None:
    value = evaluate(
        page,
        """const {createForm} = await import("/assets/forms.js");
        const {describe} = await import("/assets/schema.js");
        const day = {type: "string", format: "date", default: "tomorrow"};
        const form = createForm(describe({type: "object", properties: {day}, required: ["day"]}));
        stage.append(form.element);
        return form.read();""",
    )

    assert value == {"day": "tomorrow"}
    expect(page.get_by_label("day")).to_have_value("tomorrow")


def test_a_number_that_is_half_typed_is_told_and_not_left_out(page: Page) -> None:
    _calling(page, "run: async (values) => values", {"times": {"type": "integer"}})
    times = page.get_by_label("times")
    times.press_sequentially("1e")

    page.get_by_role("button", name="Call").click()
    expect(times).to_have_attribute("aria-invalid", "true")
    times.press_sequentially("1")
    page.get_by_role("button", name="Call").click()

    expect(page.get_by_role("region", name="Result")).to_contain_text('{"times":10}')


@pytest.mark.parametrize(
    ("progress", "shown"),
    [
        ('{progress: 0.000002, message: "npm run build runs"}', "npm run build runs"),
        ('{progress: 1, total: 4, message: "reading"}', "1 of 4 · reading"),
        ("{progress: 7}", "7"),
    ],
)
def test_progress_without_a_total_is_shown_by_its_words(page: Page, progress: str, shown: str) -> None:
    _calling(page, f"run: (_, {{onProgress}}) => {{ onProgress({progress}); return new Promise(() => 0); }}", {})

    page.get_by_role("button", name="Call").click()

    expect(page.locator(".progress-text")).to_have_text(shown)


def test_progress_that_is_no_number_does_not_end_a_call(page: Page) -> None:
    _calling(
        page,
        """run: async (_, {onProgress}) => {
            for (const progress of ["half", NaN, undefined, 1e999])
                for (const total of ["all", 5, 1e999]) onProgress({progress, total, message: "going on"});
            return {};
        }""",
        {},
    )

    page.get_by_role("button", name="Call").click()

    expect(page.get_by_role("region", name="Result")).to_have_attribute("data-outcome", "ok")


def test_a_question_is_answered_by_a_form_and_its_address_is_only_followed_if_it_is_one_of_the_web(page: Page) -> None:
    _calling(
        page,
        """run: async (_, {onQuestions}) => {
            const asked = (params) => ({method: "elicitation/create", params});
            const schema = {type: "object", properties: {name: {type: "string"}}, required: ["name"]};
            const questions = JSON.parse('{"first": 0, "__proto__": 0}');
            for (const name of Object.keys(questions)) Object.defineProperty(questions, name, {value:
                asked(name === "first" ? {mode: "url", message: "Look there", url: "javascript:owned=1"}
                                       : {message: "Who?", requestedSchema: schema})});
            return await onQuestions(questions);
        }""",
        {},
    )
    page.get_by_role("button", name="Call").click()
    question = page.get_by_role("form", name="Question")

    expect(question).to_contain_text("javascript:owned=1")
    assert question.locator("a").count() == 0
    question.get_by_role("button", name="Done").click()
    question.get_by_label("name").fill("Ada")
    question.get_by_role("button", name="Send answer").click()

    answers = '{"first":{"action":"accept"},"__proto__":{"action":"accept","content":{"name":"Ada"}}}'
    expect(page.get_by_role("region", name="Result")).to_contain_text(answers)
    expect(page.get_by_role("button", name="Call")).to_be_focused()


def test_a_schema_that_changes_while_somebody_types_takes_neither_the_words_nor_the_focus(page: Page) -> None:
    _calling(page, "run: async (values) => values", {"one": {"type": "object"}, "two": {"type": "string"}})
    one = page.get_by_label("one")
    one.fill('{"half": ')

    changed = {"zero": {"type": "integer"}, "one": {"type": "object"}, "two": {"type": "string", "maxLength": 9}}
    evaluate(
        page,
        """const {describe} = await import("/assets/schema.js");
        window.calling.change(describe({type: "object", properties}));""",
        {"properties": changed},
    )

    expect(page.get_by_label("zero")).to_be_visible()
    expect(one).to_have_value('{"half": ')
    expect(one).to_be_focused()
    page.keyboard.type("1}")
    page.get_by_role("button", name="Call").click()
    expect(page.get_by_role("region", name="Result")).to_contain_text('{"one":{"half":1}}')


def test_a_list_that_changes_keeps_the_focus_and_one_that_is_empty_shows_what_was_linked_to(page: Page) -> None:
    evaluate(
        page,
        """const {createChooser} = await import("/assets/chooser.js");
        const entry = (key) => ({key, name: key, search: key, shape: key});
        const heading = (text) => Object.assign(document.createElement("h3"), {textContent: text});
        const detail = ({key}) => ({element: heading(`about ${key}`)});
        window.names = ["a/b #%?", "second"];
        window.chooser = createChooser({title: "Things", noun: "thing", route: "things", hint: "", detail,
            context: {announce() {}}, load: async () => window.names.map(entry), stranger: entry});
        stage.append(window.chooser.element);
        window.chooser.update({ready: true, connection: "connected", listsRevision: 1});""",
    )
    first = page.get_by_role("link", name="a/b #%?")
    first.focus()
    assert first.get_attribute("href") == "#things/a%2Fb%20%23%25%3F"

    change = (
        "names => (window.names = names, chooser.update({ready: true, connection: 'connected', listsRevision: %d}))"
    )
    page.evaluate(change % 2, ["a/b #%?", "third"])
    expect(page.get_by_role("link", name="third")).to_be_visible()
    expect(first).to_be_focused()

    page.evaluate(change % 3, [])
    expect(page.locator("main")).to_contain_text("No things")
    page.evaluate("window.chooser.show(['gone'])")
    expect(page.get_by_role("heading", name="about gone")).to_be_visible()


def test_the_address_of_another_inspector_is_only_followed_on_this_machine(page: Page) -> None:
    """The page asks its proxy for it, which has it from a file of another process."""
    name = "http://0123456789abcdef0123.localhost"
    addresses = [f"{name}:6275/?code=c", f"{name}:80@evil.example/", "javascript:owned=1", None]
    proxies = [{"inspector": "http://localhost:1/", "processId": number} for number in range(4)]
    proxies.append({"inspector": None, "processId": 4})

    evaluate(
        page,
        """const {create} = await import("/assets/views/servers.js");
        window.asked = [];
        const note = (...what) => stage.append(Object.assign(document.createElement("pre"), {
          textContent: JSON.stringify(what)}));
        window.open = note;
        window.fetch = async (path, {body, headers}) => {
          window.asked.push([path, body, headers.Authorization]);
          return Response.json({url: addresses[Number(body)]});
        };
        const view = create({key: "secret", announce: note});
        view.update({servers: [], proxies}, "snapshot");
        stage.append(view.element);""",
        {"proxies": proxies, "addresses": addresses},
    )
    buttons = page.get_by_role("button", name="Open the inspector of process")
    for number in range(buttons.count()):
        buttons.nth(number).click()
    expect(page.locator("pre")).to_have_count(4)

    told = {tuple(json.loads(text)) for text in page.locator("pre").all_inner_texts()}
    refused = {(f"The inspector of process {number} cannot be opened.",) for number in (1, 2, 3)}
    assert told == {(addresses[0], "_blank", "noopener,noreferrer"), *refused}
    assert page.evaluate("window.asked[0]") == ["/other-page", "0", "Bearer secret"]
    expect(page.locator("tbody tr").last).to_contain_text("not open")


def _calling(page: Page, run: str, properties: dict[str, Any]) -> None:
    """A form for a schema of these properties, whose call is `run` and whose result is shown as JSON."""
    evaluate(
        page,
        f"""const {{createCalling}} = await import("/assets/call-panel.js");
        const {{describe}} = await import("/assets/schema.js");
        window.calling = createCalling({{field: describe({{type: "object", properties}}), label: "Call it",
            verb: "Call", render: (said) => ({{outcome: "ok", nodes: JSON.stringify(said)}}), {run}}});
        stage.append(window.calling.element);""",
        {"properties": properties},
    )
