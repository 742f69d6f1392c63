"""A web page gains nothing, unless a program of this user serves it on a port of this machine."""

from __future__ import annotations

import socket
from collections.abc import Iterator, Sequence
from contextlib import ExitStack, contextmanager
from pathlib import Path

import pytest
from playwright.sync_api import Browser, Page, expect

from support.assemblies import MVID
from support.bundled import ask
from support.files import snapshot, write
from support.inspectors import HELLO
from support.ports import lasting_port

from .test_inspector_token import WORKER_PAGE, WORKER_SITE
from .victim import CALL, CALL_HEADERS, NOBODY, Victim, frame, needs_two_users, program, tool_call

pytestmark = needs_two_users
ATTACK = Path(__file__).with_name("local_page.js").read_text("utf-8")
# Serves an empty page on each address; `lo` in front of one binds it to that device.
SITE = r"""
def serve(listener):
    while True:
        peer = listener.accept()[0]
        threading.Thread(target=answer, args=(peer,)).start()

def answer(peer):
    if peer.recv(65536):
        peer.sendall(b"HTTP/1.1 200 OK\r\nContent-Type: text/html\r\nContent-Length: 15\r\n\r\n<!doctype html>")
    peer.close()

device, address = "lo" in sys.argv[1], sys.argv[1].removeprefix("lo ")
listener = socket.socket(socket.AF_INET6 if ":" in address else socket.AF_INET)
listener.setsockopt(socket.SOL_SOCKET, socket.SO_REUSEADDR, 1)
if device:
    listener.setsockopt(socket.SOL_SOCKET, socket.SO_BINDTODEVICE, b"lo\0")
listener.bind((address, int(sys.argv[2])))
listener.listen()
print("ready", flush=True)
serve(listener)
"""
# Answers for its origin from then on, with an empty page.
WORKER = r"""
self.addEventListener("install", () => self.skipWaiting());
self.addEventListener("activate", (event) => event.waitUntil(self.clients.claim()));
self.addEventListener("fetch", (event) => {
  const page = new Response("<!doctype html><title>trap</title>", { headers: { "Content-Type": "text/html" } });
  if (event.request.mode === "navigate") event.respondWith(page);
});
"""
REDIRECT = r"""
listener = socket.create_server((b"127.0.0.1", 0))
print(listener.getsockname()[1], flush=True)
while True:
    with listener.accept()[0] as peer:
        if peer.recv(65536):
            peer.sendall(f"HTTP/1.1 302 Found\r\nLocation: {sys.argv[1]}\r\nContent-Length: 0\r\n\r\n".encode())
"""
Listeners = list[tuple[int | None, str]]  # the user, None for this one, and the address
# Who listens on which addresses of one port, and hosts of origins with that port.
OWN: dict[str, tuple[Listeners, list[str]]] = {
    "IPv4": ([(None, "127.0.0.1")], ["127.0.0.1", "localhost"]),
    "all of IPv4": ([(None, "0.0.0.0")], ["127.0.0.1", "localhost"]),
    "IPv6": ([(None, "::1")], ["[::1]", "localhost"]),
    "both families": ([(None, "::")], ["127.0.0.1", "[::1]", "localhost"]),
    "both addresses": ([(None, "127.0.0.1"), (None, "::1")], ["127.0.0.1", "[::1]", "localhost"]),
}
OTHERS: dict[str, tuple[Listeners, list[str]]] = {
    "IPv4": ([(NOBODY, "127.0.0.1")], ["127.0.0.1", "localhost", "LOCALHOST", "x.localhost"]),
    "all of IPv4": ([(NOBODY, "0.0.0.0")], ["127.0.0.1", "127.1.2.3", "localhost"]),
    "IPv6": ([(NOBODY, "::1")], ["[::1]", "[0:0:0:0:0:0:0:1]", "localhost"]),
    "both families": ([(NOBODY, "::")], ["127.0.0.1", "[::1]", "localhost"]),
    "bound to lo": ([(NOBODY, "lo 127.0.0.1"), (NOBODY, "lo ::1")], ["127.0.0.1", "[::1]", "localhost"]),
    "IPv6, beside this user's IPv4": ([(None, "127.0.0.1"), (NOBODY, "::1")], ["[::1]", "localhost"]),
    "IPv4, beside this user's IPv6": ([(None, "::1"), (NOBODY, "127.0.0.1")], ["127.0.0.1", "localhost"]),
    "127.0.0.2, beside this user's": ([(None, "127.0.0.1"), (NOBODY, "127.0.0.2")], ["127.0.0.2"]),
    "nobody": ([], ["127.0.0.1", "[::1]", "localhost"]),
}
# Pages in a browser: who serves them, under which host, and whether the server ends before the page begins.
OTHERS_PAGES: dict[str, tuple[Listeners, str, bool]] = {
    "others-v4": ([(NOBODY, "127.0.0.1")], "localhost", False),
    "others-v6": ([(None, "127.0.0.1"), (NOBODY, "::1")], "localhost", False),
    "gone": ([(NOBODY, "127.0.0.1")], "127.0.0.1", True),
}
# Not a name of a loopback address; browsers reach this machine by the first three, and say nothing of their page there.
FOREIGN_HOSTS = ["0.0.0.0", "[::]", "[::ffff:127.0.0.1]", "[::ffff:7f00:1]", "[::127.0.0.1]", "[0:0:0:0:0:0:0:0]"]
FOREIGN_HOSTS += ["0", "127.1", "0x7f.0.0.1", "0177.0.0.1", "2130706433", "128.0.0.1", "10.0.0.1", "192.168.0.1"]
FOREIGN_HOSTS += ["[::2]", "[fe80::1]", "[::1%lo]", "::1", "[::ffff:0:127.0.0.1]", "[64:ff9b::7f00:1]", "localhost@x"]
FOREIGN_HOSTS += ["169.254.169.254", "1.2.3.4", "255.255.255.255", "127.0.0.1.example.com", "localhost.example.com"]
LOOPBACK_HOSTS = ["localhost", "LocalHost", "127.0.0.1", "127.0.0.2", "127.255.255.254", "[::1]", "[0:0:0:0:0:0:0:1]"]
PROTECTED = [".git", ".devtools", ".vs", ".vscode", ".idea"]


# --- names of this machine


def test_only_names_of_loopback_addresses_are_served(victim: Victim) -> None:
    pages = {}
    for host in ["", *FOREIGN_HOSTS, *(f"{host}:{victim.host}" for host in FOREIGN_HOSTS)]:
        for where, port in (("Host", victim.host), ("--http", victim.http)):
            victim.ask(port, tool_call(f"named {host} {where}", {"Host": host}))
        pages[host] = ask(victim.inspector, "GET", "/assets/app.js", headers={"Host": host})

    assert victim.gains("tool named ") == set()
    assert {host for host, reply in pages.items() if reply.status == 200} == set()


@pytest.mark.parametrize("host", LOOPBACK_HOSTS)
def test_every_name_of_a_loopback_address_is_served(victim: Victim, host: str) -> None:
    for port in (victim.host, victim.http):
        for name in (host, f"{host}:{port}"):
            assert victim.ask(port, tool_call("the user", {"Host": name})).status == 200


@pytest.mark.parametrize("host", FOREIGN_HOSTS[:3])
def test_in_a_browser_a_link_of_a_web_site_reaches_nothing_by_another_name(
    victim: Victim, browser: Browser, host: str
) -> None:
    who = f"site {FOREIGN_HOSTS.index(host)}"
    with _opened(browser) as page:
        page.route("http://site.example/", lambda route: route.fulfill(body="<!doctype html>"))
        page.goto("http://site.example/")
        url = f"http://{host}:{victim.host}/applaunch/{MVID}?platform={who}"
        with page.expect_navigation():
            page.evaluate("url => void (location = url)", url)

    assert victim.gains(f"launch {who}") == set()


# --- edits


@pytest.mark.parametrize("folder", PROTECTED)
def test_no_edit_changes_a_file_from_which_tools_run_code(victim: Victim, folder: str) -> None:
    root = victim.workspace
    for above in ("", "nested/deep/"):
        write(root / f"{above}{folder}" / "kept.txt", "kept")
    (root / f"to-{folder}").symlink_to(folder)
    (root / f"to-file-of-{folder}").symlink_to(f"{folder}/kept.txt")
    (root / f"to-missing-{folder}").symlink_to(f"nested/deep/{folder}/missing.txt")
    names = [
        folder,
        folder.upper(),
        folder.title(),
        f"nested/deep/{folder}",
        f"nested/new/{folder}",
        f"./x/../{folder}",
    ]
    names += [f"to-{folder}", f"{root}/{folder}", f"x/{folder.swapcase()}", f"{folder}/{folder}", f"src//{folder}/"]
    created = [f"{name}/new.txt" for name in names] + [f"{name}/hooks/new" for name in names]
    created += [f"to-missing-{folder}", f"as-file/{folder}", f"as-file/{folder.upper()}"]
    existing = [f"{above}{folder}/kept.txt" for above in ("", "nested/deep/", f"{root}/")]
    existing += [f"to-{folder}/kept.txt", f"to-file-of-{folder}"]
    before = snapshot(root)

    for path in created:
        victim.edit({"FilePath": path, "NewText": "new", "IsCreateDeleteAllowed": True})
    for path in existing:
        victim.edit({"FilePath": path, "OldText": "kept", "NewText": "changed"})
        victim.edit({"FilePath": path, "NewText": "replaced"})
        victim.edit({"FilePath": path, "IsCreateDeleteAllowed": True})
        victim.edit({"FilePath": "ordinary.txt", "NewText": "x"}, {"FilePath": path, "IsCreateDeleteAllowed": True})

    after = snapshot(root)
    assert {path for path in before.keys() | after.keys() if before.get(path) != after.get(path)} == set()


@pytest.mark.parametrize(
    "path",
    ["src/Page.xaml", "git/x", "x.git/y", "src/a.vs/b.cs"],
)
def test_an_app_edits_the_other_files_of_its_workspace(victim: Victim, path: str) -> None:
    create = {"FilePath": path, "NewText": "new", "IsCreateDeleteAllowed": True}

    assert victim.edit(create) == [200]
    assert victim.edit({"FilePath": str(victim.workspace / path), "OldText": "new", "NewText": "newer"}) == [200]
    assert (victim.workspace / path).read_text() == "newer"


# --- pages of this machine


@pytest.mark.parametrize("name", OWN)
def test_a_page_that_a_program_of_this_user_serves_may_call_tools(victim: Victim, name: str) -> None:
    listeners, hosts = OWN[name]
    with _sites(listeners) as port:
        assert _served_to(victim, hosts, port) == {f"{each} {port}" for each in hosts for port in ("Host", "--http")}


@pytest.mark.parametrize("name", OTHERS)
def test_a_page_of_a_port_that_is_not_this_users_alone_calls_no_tool(victim: Victim, name: str) -> None:
    listeners, hosts = OTHERS[name]
    with _sites(listeners) as port:
        assert _served_to(victim, hosts, port) == set()


def test_a_port_from_which_a_program_of_this_user_only_connects_is_no_page_of_it(victim: Victim) -> None:
    with socket.create_connection(("127.0.0.1", victim.host)) as client, socket.socket() as silent:
        silent.bind(("127.0.0.1", 0))
        served = [_served_to(victim, ["127.0.0.1", "localhost"], end.getsockname()[1]) for end in (client, silent)]

    assert served == [set(), set()]


@pytest.mark.parametrize("who", OTHERS_PAGES)
def test_in_a_browser_a_page_of_another_user_gains_nothing(victim: Victim, browser: Browser, who: str) -> None:
    listeners, host, ends = OTHERS_PAGES[who]
    with ExitStack() as sites:
        page = sites.enter_context(_opened(browser))
        with ExitStack() as site:
            port = site.enter_context(_sites(listeners))
            page.goto(f"http://{host}:{port}/")
            if not ends:
                sites.enter_context(site.pop_all())
        _attack(page, victim, who)
        with page.expect_popup() as popup:  # a link: browsers name no origin
            page.evaluate(
                "url => void open(url)", f"http://localhost:{victim.host}/applaunch/{MVID}?platform={who}-link"
            )
        popup.value.wait_for_load_state()

        assert victim.gains(who) == set()


@pytest.mark.parametrize("where", ["host", "http"])
def test_in_a_browser_what_another_user_left_at_the_port_gains_nothing(browser: Browser, where: str) -> None:
    with Victim() as victim, _opened(browser) as page:
        port = victim.host if where == "host" else victim.http
        victim.end_proxy()
        with program(WORKER_SITE, str(port), WORKER, WORKER_PAGE, user=NOBODY) as site:
            assert site.stdout
            assert site.stdout.readline() == "listening\n"
            page.goto(f"http://localhost:{port}/")
            expect(page).to_have_title("ready")
        victim.start(http=victim.http)
        assert port in (victim.host, victim.http)

        page.goto(f"http://localhost:{port}/")

        expect(page).to_have_title("trap")
        _attack(page, victim, "left", host=port, http=port)
        assert victim.gains("left") == set()


def test_in_a_browser_a_redirect_of_an_address_that_was_typed_launches_nothing(
    victim: Victim, browser: Browser
) -> None:
    target = f"http://localhost:{victim.host}/applaunch/{MVID}?platform=redirected"
    with _opened(browser) as page, program(REDIRECT, target, user=NOBODY) as site:
        assert site.stdout
        page.goto(f"http://localhost:{site.stdout.readline().strip()}/")
        health = page.goto(f"http://localhost:{victim.host}/health")

    assert victim.gains("launch redirected") == set()
    assert health
    assert health.ok, "a user may look at it in a tab"


def test_in_a_browser_a_page_of_this_user_reaches_every_endpoint(victim: Victim, browser: Browser) -> None:
    who = "own"
    with _sites([(None, "::")]) as port, _opened(browser, f"http://localhost:{port}/") as page:
        _attack(page, victim, who)
        gained = victim.gains(who)

    tools = {f"tool {who} {era} {where}" for era in ("modern", "handshake") for where in ("host", "http")}
    assert gained >= {*tools, f"file {who}.xaml", f"launch {who}-fetch", f"pipe {who}-pipe"}


@contextmanager
def _sites(listeners: Listeners) -> Iterator[int]:
    """A port on which these users serve a page."""
    port = lasting_port()
    with ExitStack() as sites:
        for user, address in listeners:
            site = sites.enter_context(program(SITE, address, str(port), user=user))
            assert site.stdout
            assert site.stdout.readline() == "ready\n"
        yield port


def _served_to(victim: Victim, hosts: Sequence[str], port: int) -> set[str]:
    """Origins of that port which called a tool, and where."""
    who = f"of {port}: "
    for host in hosts:
        for where, target in (("Host", victim.host), ("--http", victim.http)):
            victim.ask(target, tool_call(f"{who}{host} {where}", {"Origin": f"http://{host}:{port}"}))
    return {gain.partition(who)[2] for gain in victim.gains(who)}


@contextmanager
def _opened(browser: Browser, url: str = "about:blank") -> Iterator[Page]:
    context = browser.new_context()
    try:
        page = context.new_page()
        page.goto(url)
        yield page
    finally:
        context.close()


def _attack(page: Page, victim: Victim, who: str, **ports: int) -> None:
    edit = {"RequestId": "1", "FilePath": f"{who}.xaml", "NewText": "new", "IsCreateDeleteAllowed": True}
    options = {"call": CALL, "headers": CALL_HEADERS, "hello": HELLO, "frame": list(frame("UpdateFile", edit))}
    page.evaluate(ATTACK, {"who": who, "host": victim.host, "http": victim.http, "mvid": MVID, **options, **ports})
