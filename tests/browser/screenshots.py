"""Pictures of the inspector page, in a workspace in which something has happened.

make screenshots                # the two of the README, in docs/images
make screenshots INTO=folder    # each view, light and dark, on a desktop and on a phone, after a crash as well
"""

from __future__ import annotations

import sys
import tempfile
from collections.abc import Mapping
from pathlib import Path

from playwright.sync_api import Browser, expect

sys.path.insert(0, str(Path(__file__).parents[1]))

from browser.chromium import launched
from browser.inspected import Inspected
from browser.screen import VIEWS, Screen, expect_outcome, labelled
from browser.watching import Visit
from support.reloading import wait_ready

IMAGES = Path(__file__).parents[2] / "docs" / "images"
DOCUMENTED = (("Overview", "light", "inspector-overview.png"), ("Tools", "dark", "inspector-tools-dark.png"))
TALL = {"width": 1280, "height": 960}  # a form and its result
SIZES = {"desktop": {"width": 1280, "height": 800}, "phone": {"width": 360, "height": 740}}
THEMES = ("light", "dark")


def main(folder: Path | None) -> None:
    with (
        tempfile.TemporaryDirectory(prefix="u") as root,
        Inspected(Path(root)) as inspected,
        launched() as browser,
        Visit(browser, inspected.address) as visit,
    ):
        Screen(visit.open(inspected.new_url()), visit).wait_connected()  # calls are only recorded while somebody looks
        _let_things_happen(inspected)
        if folder is None:
            for view, theme, name in DOCUMENTED:
                _take(browser, inspected, theme, TALL, {view: IMAGES / name})
        else:
            _crash(inspected)
            for theme in THEMES:
                for size, viewport in SIZES.items():
                    paths = {view: folder / f"{view.lower()}-{theme}-{size}.png" for view in VIEWS}
                    _take(browser, inspected, theme, viewport, paths)


def _let_things_happen(inspected: Inspected) -> None:
    agent = inspected.agent
    agent.call("greet", name="Ada")
    agent.call("size_of", lines="one\ntwo")
    agent.call_result("fail")
    agent.call("complain", words="The varnish is still wet.")
    inspected.add_tool("frame_picture")
    agent.call_result("greet", name="Grace")
    wait_ready(agent)
    agent.call("frame_picture")
    agent.begin("tools/call", {"name": "hold", "arguments": {"until": "paint-is-dry"}})


def _crash(inspected: Inspected) -> None:
    inspected.kill_host()
    inspected.agent.wait_connected(generation=3)
    inspected.agent.call("picture")


def _take(
    browser: Browser, inspected: Inspected, theme: str, viewport: dict[str, int], paths: Mapping[str, Path]
) -> None:
    with Visit(browser, inspected.address, color_scheme=theme, viewport=viewport) as visit:
        screen = Screen(visit.open(inspected.new_url()), visit)
        screen.wait_connected()
        for view, path in paths.items():
            _fill(screen, view)
            path.parent.mkdir(parents=True, exist_ok=True)
            screen.page.screenshot(path=path, animations="disabled")
            print(path)


def _fill(screen: Screen, view: str) -> None:
    section = screen.go(view)
    if view == "Tools":
        form = screen.choose("greet")
        labelled(form, "name").fill("Ada")
        labelled(form, "times").fill("2")
        screen.send(form)
        expect_outcome(screen.result, "ok")
    elif view == "Calls":
        screen.row("size_of").last.get_by_role("button").first.click()
    elif view == "Resources":
        section.get_by_text("catalogue").first.click()
        expect(section).to_contain_text("one red pixel")
    elif view == "Prompts":
        section.get_by_text("describe").first.click()


if __name__ == "__main__":
    main(Path(sys.argv[1]) if len(sys.argv) > 1 else None)
