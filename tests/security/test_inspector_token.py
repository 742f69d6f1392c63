"""What opens the inspector reaches the user's browser and nobody else: no process list, model, log, or next proxy."""

from __future__ import annotations

import json
import re
import stat
import sys
from collections.abc import Iterable, Iterator
from typing import Any

import pytest
from playwright.sync_api import Browser, Request, expect
from playwright.sync_api import TimeoutError as StillBusy

from browser.screen import Screen
from browser.watching import Visit
from support.bundled import ask
from support.waiting import wait_for

from .victim import CALL, CALL_HEADERS, NOBODY, Victim, needs_two_users, program

pytestmark = needs_two_users
QUIET_MS = 3_000  # for a page that is refused to have asked for all that it wants
SECRET = re.compile(r"[A-Za-z0-9_-]{20,}")
REFUSED = (401, 403, 404)
BROWSERS = (
    "xdg-open",
    "x-www-browser",
    "www-browser",
    "sensible-browser",
    "gio",
    "firefox",
    "chromium",
    "google-chrome",
)
# Keeps its arguments, and those of all processes of this machine's user: what `ps` shows to everybody.
FAKE_BROWSER = """#!{python} -IS
import json, os, sys
seen = []
for pid in filter(str.isdigit, os.listdir("/proc")):
    try:
        if {mark!r} in open(f"/proc/{{pid}}/environ", "rb").read():
            seen.append(open(f"/proc/{{pid}}/cmdline").read().split("\\0")[:-1])
    except OSError:
        pass
with open({path!r} + ".new", "w") as file:
    json.dump({{"opened": sys.argv[1:], "seen": seen}}, file)
os.rename({path!r} + ".new", {path!r})
"""
# Takes the port of a proxy that has ended, and tells each request that it gets.
STRANGER = r"""
def serve(listener):
    while True:
        peer = listener.accept()[0]
        said = peer.recv(65536)
        if said:
            print(said.decode("latin-1").replace("\r\n", " "), flush=True)
        peer.close()

for family, address in ((socket.AF_INET, "127.0.0.1"), (socket.AF_INET6, "::1")):
    listener = socket.socket(family)
    listener.setsockopt(socket.SOL_SOCKET, socket.SO_REUSEADDR, 1)
    listener.bind((address, int(sys.argv[1])))
    listener.listen()
    threading.Thread(target=serve, args=(listener,)).start()
"""
# Serves the port while no proxy has it, and leaves something in the browsers that come: it answers for the origin from
# then on, exchanges each code that it sees, and calls a tool with the key.
WORKER = r"""
self.addEventListener("install", () => self.skipWaiting());
self.addEventListener("activate", (event) => event.waitUntil(self.clients.claim()));
self.addEventListener("fetch", (event) => event.respondWith(answer(event.request)));
async function answer(request) {
  const code = new URL(request.url).searchParams.get("code");
  if (!code) return fetch(request);
  const exchanged = await fetch("/key", { method: "POST", body: code });
  const key = exchanged.ok ? (await exchanged.json()).key : "";
  const headers = { ...HEADERS, Authorization: `Bearer ${key}` };
  const called = await fetch("/mcp", { method: "POST", headers, body: CALL });
  return new Response(`the worker got ${exchanged.status} and ${called.status}`);
}
"""
WORKER_PAGE = """<script>
navigator.serviceWorker.register("/worker.js").then(() => navigator.serviceWorker.ready)
  .then(() => (document.title = "ready"));
</script>"""
WORKER_SITE = r"""
def serve(listener):
    while True:
        threading.Thread(target=answer, args=listener.accept()[:1]).start()  # browsers connect before they ask

def answer(peer):
    with peer:
        asked = peer.recv(65536).decode("latin-1").split(" ")
        kind, body = ("text/javascript", sys.argv[2]) if asked[1:2] == ["/worker.js"] else ("text/html", sys.argv[3])
        head = f"HTTP/1.1 200 OK\r\nContent-Type: {kind}\r\nCache-Control: max-age=31536000, immutable\r\n"
        peer.sendall(f"{head}Content-Length: {len(body)}\r\nConnection: close\r\n\r\n{body}".encode())

for family, address in ((socket.AF_INET, "127.0.0.1"), (socket.AF_INET6, "::1")):
    listener = socket.socket(family)
    listener.setsockopt(socket.SOL_SOCKET, socket.SO_REUSEADDR, 1)
    listener.bind((address, int(sys.argv[1])))
    listener.listen()
    threading.Thread(target=serve, args=(listener,)).start()
print("listening", flush=True)
threading.Event().wait()  # Python 3.12 starts no threads after the end of the main one
"""
# Tries each of the words that the page has sent.
INTRUDER = r"""
for word in sys.argv[2:]:
    peer = socket.socket()
    peer.connect(("127.0.0.1", int(sys.argv[1])))
    peer.sendall(f"GET /health HTTP/1.1\r\nHost: localhost\r\nAuthorization: Bearer {word}\r\n\r\n".encode())
    print(peer.recv(64).decode("latin-1").splitlines()[0], flush=True)
"""


@pytest.fixture
def own() -> Iterator[Victim]:
    with Victim() as victim:
        yield victim


def test_inspect_opens_a_page_that_calls_tools_and_survives_a_new_proxy(own: Victim, browser: Browser) -> None:
    opened, _ = _inspect(own)
    with Visit(browser) as visit:
        visit.expected += ["console: ", "request to "]
        screen = Screen(visit.open(opened[-1]), visit)
        screen.wait_connected()

        own.end_proxy()
        expect(screen.connection).not_to_have_text("Live")
        own.start(own.inspector)
        screen.wait_connected()
        screen.call("note", who="the page")

        wait_for(lambda: own.gains("the page"), "the call of the page")


def test_what_the_process_list_shows_of_inspect_opens_nothing(victim: Victim, browser: Browser) -> None:
    opened, seen = _inspect(victim)
    assert any("uno-devserver" in " ".join(each) or "uno_devserver" in " ".join(each) for each in seen)
    with Visit(browser) as visit:
        visit.expected += ["console: ", "request to "]
        Screen(visit.open(opened[-1]), visit).wait_connected()  # what is good for one use is used up

        arguments = {each for argv in [opened, *seen] for each in argv}
        assert _secrets(victim, arguments) == set()
        assert {each for each in arguments if each.startswith("http") and _shows_it(browser, each)} == set()
    with program("open(sys.argv[1].removeprefix('file://')); print('read')", opened[-1], user=NOBODY) as other:
        assert other.stdout
        assert other.stdout.read() == ""


def test_nothing_that_a_model_can_ask_for_has_the_token(victim: Victim) -> None:
    agent = victim.agent
    answers: dict[str, Any] = {"notifications": agent.notifications}
    for tool in agent.tools():
        arguments = {"who": "the model"} if tool == "note" else {}
        answers[tool] = agent.request("tools/call", {"name": tool, "arguments": arguments})
    for resource in agent.result("resources/list")["resources"]:
        answers[resource["uri"]] = agent.request("resources/read", {"uri": resource["uri"]})
    for method in ("tools/list", "resources/list", "resources/templates/list", "prompts/list", "ping"):
        answers[method] = agent.request(method, {})
    for name, port in (("Host", victim.host), ("--http", victim.http)):
        answers[f"/health of {name}"] = ask(port, "GET", "/health").json

    assert len(answers) > 8
    assert {where for where, answer in answers.items() if _secrets(victim, [json.dumps(answer)])} == set()


def test_no_command_that_shows_what_runs_prints_the_token(victim: Victim) -> None:
    commands = [*("health", "list", "disco"), *("health --json", "list --json", "disco --json", "mcp status --json")]
    printed = {each: victim.machine.run(*each.split()) for each in commands}

    assert {each for each, done in printed.items() if _secrets(victim, [done.stdout, done.stderr])} == set()


def test_no_log_keeps_the_token(victim: Victim) -> None:
    logs = [victim.log, *(victim.machine.state / "logs").iterdir()]
    texts = {path.name: path.read_text("utf-8", "replace") for path in logs} | {"stderr": victim.agent.stderr}

    assert len(texts) > 2
    assert {name for name, text in texts.items() if _secrets(victim, [text])} == set()


def test_the_files_of_a_proxy_from_which_inspect_learns_are_the_users_alone(victim: Victim) -> None:
    for name in ("proxies", "inspector"):
        folder = victim.machine.state / name
        for path in [folder, *folder.iterdir()] if folder.exists() else []:
            assert stat.S_IMODE(path.stat().st_mode) == (0o700 if path.is_dir() else 0o600), path
    assert (victim.machine.state / "proxies" / f"{victim.agent.process.pid}.json").exists()


def test_another_user_who_takes_the_port_of_a_proxy_learns_nothing_that_lets_him_into_the_next_one(
    own: Victim, browser: Browser
) -> None:
    sent: list[str] = []

    def note(request: Request) -> None:
        sent.extend([request.url, request.post_data or "", *request.all_headers().values()])

    opened, _ = _inspect(own)
    with Visit(browser) as visit:
        visit.expected += ["console: ", "request to "]
        screen = Screen(visit.open(opened[-1]), visit)
        screen.wait_connected()
        screen.page.on("request", note)
        own.end_proxy()
        with program(STRANGER, str(own.inspector), user=NOBODY) as stranger:
            assert stranger.stdout
            sent.append(stranger.stdout.readline())
        own.start(own.inspector)

        assert sent[-1].startswith(("GET", "POST")), "the page tries to connect again"
        words = sorted({word for text in sent for word in SECRET.findall(text)})
        with program(INTRUDER, str(own.inspector), *words, user=NOBODY) as intruder:
            assert intruder.stdout
            answers = intruder.stdout.read().splitlines()

    assert len(answers) == len(words) > 0
    assert {answer.split()[1] for answer in answers} == {"403"}


def test_another_user_who_had_the_port_before_the_proxy_is_not_in_the_browser_of_the_page(
    own: Victim, browser: Browser
) -> None:
    own.end_proxy()
    with Visit(browser) as visit:
        visit.expected += ["console: ", "request to "]
        call = json.dumps(CALL).replace("%", "the worker")
        worker = f"const HEADERS = {json.dumps(CALL_HEADERS)}, CALL = {json.dumps(call)};{WORKER}"
        with program(WORKER_SITE, str(own.inspector), worker, WORKER_PAGE, user=NOBODY) as stranger:
            assert stranger.stdout
            assert stranger.stdout.readline() == "listening\n"
            expect(visit.open(f"http://localhost:{own.inspector}/")).to_have_title("ready")
        own.start(own.inspector)

        screen = Screen(visit.open(_inspect(own)[0][-1]), visit)
        screen.wait_connected()
        screen.call("note", who="the page")

        wait_for(lambda: own.gains("the page"), "the call of the page")
        code = _inspect(own)[0][-1].rpartition("=")[2]
        trapped = visit.open(f"http://localhost:{own.inspector}/?code={code}")
        expect(trapped.locator("body")).to_have_text("the worker got 401 and 401")
        assert own.gains("the worker") == set()


def _inspect(victim: Victim) -> tuple[list[str], list[list[str]]]:
    """The arguments of the browser that `inspect` starts, and those of all processes at that moment."""
    path = victim.machine.root / "browser.json"
    path.unlink(missing_ok=True)
    mark = f"XDG_DATA_HOME={victim.machine.data}".encode()
    for name in BROWSERS:
        fake = victim.machine.tools / name
        fake.write_text(FAKE_BROWSER.format(python=sys.executable, mark=mark, path=str(path)))
        fake.chmod(0o755)
    done = victim.machine.run("inspect", env={"DISPLAY": ":0", "BROWSER": str(victim.machine.tools / BROWSERS[0])})
    assert done.exit_code == 0, done.stderr
    recorded = json.loads(wait_for(lambda: path.exists() and path.read_text(), "the start of a browser"))
    return recorded["opened"], recorded["seen"]


def _secrets(victim: Victim, texts: Iterable[str]) -> set[str]:
    """The words that open the inspector, in any of the ways in which it takes a token."""
    words = {word for text in texts for word in SECRET.findall(text)}
    return {word for word in words if _opens(victim.inspector, word)}


def _opens(port: int, word: str) -> bool:
    statuses = (
        ask(port, "GET", "/health", headers={"Authorization": f"Bearer {word}"}).status,
        ask(port, "GET", f"/health?token={word}").status,
        ask(port, "GET", f"/mcp/{word}").status,
    )
    return any(status not in REFUSED for status in statuses)


def _shows_it(browser: Browser, url: str) -> bool:
    """Whether a page at this address is told anything about the proxy."""
    told: list[str] = []
    with Visit(browser) as visit:
        visit.expected += ["console: ", "request to "]
        page = visit.open("about:blank")
        page.on("response", lambda response: told.append(response.url) if response.ok else None)
        try:
            page.goto(url, wait_until="networkidle", timeout=QUIET_MS)
        except StillBusy:
            pass
    return any(each.partition("?")[0].endswith(("/events", "/mcp", "/health", "/key")) for each in told)
