"""Who is served: programs and pages of this user; not web sites, not names that were bent to point here."""

from __future__ import annotations

import os
import socket
import subprocess
import sys
from collections.abc import Collection, Sequence

import pytest

from uno_devserver.protocol.http import guard
from uno_devserver.protocol.http.guard import guard_for, own_names
from uno_devserver.protocol.http.headers import joined_headers

LOCAL_HOSTS = [
    "localhost",
    "localhost:5000",
    "LocalHost:5000",
    "localhost.",
    "localhost.:80",
    "app.localhost",
    "a.b.localhost:1",
    "127.0.0.1",
    "127.0.0.1:65535",
    "[::1]",
    "[::1]:5000",
    "[0:0:0:0:0:0:0:1]:5000",
    "127.255.0.9:5000",
    "localhost:",
]

# Accepted only if the user opened the server to others.
ADDRESSES = [
    "10.0.2.2:5000",  # the machine, as an Android emulator sees it
    "192.168.1.5:5000",
    "[fe80::1]:5000",
]

# Browsers reach loopback by these too, and send neither Origin nor Sec-Fetch-Site there.
ODD_ADDRESSES = [
    "0.0.0.0",
    "0.0.0.0:5000",
    "[::]:5000",
    "[0:0:0:0:0:0:0:0]",
    "[::ffff:127.0.0.1]:5000",
    "[::ffff:7f00:1]:5000",
    "[::ffff:0.0.0.0]:5000",
    "[::ffff:192.168.1.5]:5000",
]

FOREIGN_HOSTS = [
    "evil.example",
    "evil.example:5000",
    "localhost.evil.example",
    "notlocalhost",
    "127.0.0.1.evil.example",
    "127.1",  # browsers write it out before they send it
    "0x7f.0.0.1",
    "2130706433",
    "127.0.0.1:80:80",
    "localhost:80@evil.example",
    "user@localhost",
    "localhost/evil",
    "localhost evil.example",
    "localhost,evil.example",
    "::1",
    "[::1",
    "[evil]",
    "[127.0.0.1]",
    "localhost:port",
    ":5000",
    "",
    ".",
    ".localhost.evil",
    "workstation",
    "workstation.local:5000",
]


LOCAL = ("127.0.0.1", 5000)
ELSEWHERE = ("127.0.0.1", 0)  # no page has that port


def refusal(
    headers: dict[str, str],
    path: str = "/",
    own: tuple[str, int] = ELSEWHERE,
    *,
    bind: str | None = None,
    own_names: Collection[str] = (),
) -> str | None:
    """The answer of the guard if every page that asks is one of this user."""
    return guard.refusal(
        headers, path, own, bind=bind, own_names=own_names, serves_pages=lambda _addresses, _port: True
    )


@pytest.mark.parametrize("bind", [None, "0.0.0.0"])
@pytest.mark.parametrize("host", LOCAL_HOSTS)
def test_this_machine_may_be_called_by_a_local_name_or_a_loopback_address(host: str, bind: str | None) -> None:
    assert refusal({"host": host}, bind=bind) is None


@pytest.mark.parametrize("host", ADDRESSES)
def test_other_addresses_count_only_when_the_user_opened_the_server(host: str) -> None:
    reason = refusal({"host": host})

    assert refusal({"host": host}, bind="0.0.0.0") is None
    assert reason is not None
    assert repr(host) in reason
    assert "use localhost, 127.0.0.1 or [::1]" in reason


@pytest.mark.parametrize("bind", [None, "0.0.0.0", "::", "192.168.1.5"])
@pytest.mark.parametrize("host", ODD_ADDRESSES)
def test_addresses_that_mean_loopback_without_being_it_count_never(host: str, bind: str | None) -> None:
    assert repr(host) in str(refusal({"host": host}, bind=bind, own_names=own_names("workstation", bind)))


@pytest.mark.parametrize("host", FOREIGN_HOSTS)
def test_it_may_not_be_called_by_any_other_name(host: str) -> None:
    reason = refusal({"host": host})

    assert reason is not None
    assert repr(host) in reason


def test_a_request_has_to_say_whom_it_is_for() -> None:
    assert refusal({}) == "the Host header is missing"


@pytest.mark.parametrize(
    "origin",
    [
        "http://localhost",
        "http://localhost:3000",
        "https://localhost:7001",
        "http://app.localhost:5000",
        "http://127.0.0.1:5000",
        "http://127.8.9.10",
        "https://[::1]:5000",
    ],
)
def test_pages_of_this_machine_may_ask(origin: str) -> None:
    assert refusal({"host": "localhost:5000", "origin": origin}) is None


@pytest.mark.parametrize(
    "origin",
    [
        "null",
        "",
        "https://evil.example",
        "http://localhost.evil.example",
        "http://evil.example:5000",
        "http://192.168.1.5:5000",
        "http://127.evil.example",
        "http://127.0.0.1.evil.example",
        "http://localhost@evil.example",
        "http://localhost:5000/path",
        "http://localhost:5000, http://evil.example",
        "http://localhost http://evil.example",
        "file://",
        "file://localhost",
        "chrome-extension://abcdef",
        "ws://localhost:5000",
        "localhost:5000",
        "//localhost",
        "http://",
        "http:localhost",
    ],
)
@pytest.mark.parametrize("bind", [None, "0.0.0.0"])
def test_pages_of_other_sites_may_not(origin: str, bind: str | None) -> None:
    reason = refusal({"host": "localhost:5000", "origin": origin}, bind=bind, own_names={"localhost", "workstation"})

    assert reason is not None
    assert repr(origin) in reason


@pytest.mark.parametrize(
    "sites", [["cross-site"], ["none", "cross-site"], ["cross-site", "none"], ["Cross-Site"], [""]]
)
@pytest.mark.parametrize("bind", [None, "0.0.0.0"])
def test_what_another_site_embeds_or_links_to_is_refused_although_a_browser_names_no_origin(
    bind: str | None, sites: list[str]
) -> None:
    sent = joined_headers([(b"Host", b"localhost:5000"), *((b"Sec-Fetch-Site", site.encode()) for site in sites)])

    reason = refusal(sent, bind=bind)

    assert reason is not None
    assert reason.startswith("requests of other web sites are not served")


def test_what_a_user_types_is_not() -> None:
    assert refusal({"host": "localhost:5000", "sec-fetch-site": "none"}) is None


@pytest.mark.parametrize(
    ("path", "served"), [("/health", True), ("/Health/", True), ("/mcp", False), ("/", False), ("/applaunch/x", False)]
)
@pytest.mark.parametrize("site", [{"sec-fetch-site": "none"}, {"origin": "http://localhost:3000"}])
def test_in_a_tab_only_the_health_is_shown(path: str, served: bool, site: dict[str, str]) -> None:
    headers = {"host": "localhost:5000", "sec-fetch-mode": "navigate", **site}

    assert (refusal(headers, path) is None) is served


def test_what_a_page_of_another_port_embeds_is_refused_because_who_serves_it_is_not_known() -> None:
    assert refusal({"host": "localhost:5000", "sec-fetch-site": "same-site"}) is not None


def test_a_page_at_another_name_of_this_machine_says_so_by_its_origin() -> None:
    named = {"host": "localhost:5000", "origin": "http://127.0.0.1:3000", "sec-fetch-site": "cross-site"}

    assert refusal(named) is None


def test_the_machines_names_count_only_when_the_user_opened_the_server() -> None:
    names = own_names("Workstation.Example.org", "0.0.0.0")

    for host in ("workstation", "WORKSTATION.example.org:5000", "workstation.local:5000"):
        assert refusal({"host": host}, bind="0.0.0.0", own_names=names) is None
        assert refusal({"host": host}, bind=None, own_names=names) is not None
    assert refusal({"host": "evil.example"}, bind="0.0.0.0", own_names=names) is not None


def test_the_name_that_the_user_gave_counts() -> None:
    names = own_names("workstation", "devbox.example")

    assert refusal({"host": "devbox.example:5000"}, bind="devbox.example", own_names=names) is None


def test_an_opened_server_serves_pages_of_the_name_that_it_is_called_by() -> None:
    names = own_names("workstation", "0.0.0.0")

    def asked(host: str, origin: str, bind: str | None = "0.0.0.0") -> str | None:
        return refusal({"host": host, "origin": origin}, "/mcp", ("192.168.1.5", 5000), bind=bind, own_names=names)

    assert asked("192.168.1.5:5000", "http://192.168.1.5:3000") is None
    assert asked("workstation:5000", "http://WORKSTATION:3000") is None
    assert asked("192.168.1.5:5000", "http://192.168.1.6:3000") is not None
    assert asked("192.168.1.5:5000", "http://192.168.1.5:3000", bind=None) is not None
    assert asked("evil.example", "http://evil.example") is not None


@pytest.mark.parametrize(
    "browsers",
    [
        {"origin": "http://localhost:5000", "sec-fetch-site": "same-origin"},
        {"origin": "http://app.localhost:5000", "sec-fetch-site": "same-site"},
        {"origin": "http://127.0.0.1:5000", "sec-fetch-site": "cross-site"},
        {"origin": "http://localhost:5000", "upgrade": "websocket"},
        {"origin": "http://192.168.1.5:5000", "host": "192.168.1.5:5000"},  # without Sec-Fetch-Site: it is not loopback
        {"sec-fetch-site": "same-origin"},
    ],
)
def test_a_page_of_the_servers_own_port_is_not_its_own(browsers: dict[str, str]) -> None:
    assert refusal({"host": "localhost:5000", **browsers}, "/mcp", LOCAL, bind="0.0.0.0") is not None


def test_a_program_may_name_the_servers_own_origin() -> None:
    assert refusal({"host": "localhost:5000", "origin": "http://localhost:5000"}, "/mcp", LOCAL) is None


@pytest.mark.parametrize(
    ("origin", "asked"),
    [
        ("http://localhost:3000", (["127.0.0.1", "::1"], 3000)),  # both: a browser may take either
        ("http://app.localhost:3000", (["127.0.0.1", "::1"], 3000)),
        ("http://LOCALHOST.", (["127.0.0.1", "::1"], 80)),
        ("https://localhost", (["127.0.0.1", "::1"], 443)),
        ("http://127.8.9.10:3000", (["127.8.9.10"], 3000)),
        ("https://[::1]", (["::1"], 443)),
        ("http://192.168.1.5:3000", (["192.168.1.77"], 3000)),  # what the client calls so is what it reached here
    ],
)
def test_of_a_page_of_this_machine_is_asked_who_serves_it(origin: str, asked: tuple[list[str], int]) -> None:
    questions: list[tuple[list[str], int]] = []

    def serves_pages(addresses: Sequence[str], port: int) -> bool:
        questions.append((list(addresses), port))
        return False

    sent = {"host": "192.168.1.5:5000", "origin": origin}
    reason = guard.refusal(sent, "/mcp", ("192.168.1.77", 5000), bind="0.0.0.0", serves_pages=serves_pages)

    assert questions == [asked]
    assert f"{origin!r} are not served: pages may ask only if a program of this user" in str(reason)


@pytest.mark.parametrize("origin", ["http://localhost:0", "http://localhost:65536", "http://localhost:99999"])
def test_a_port_that_does_not_exist_serves_no_pages(origin: str) -> None:
    assert refusal({"host": "localhost", "origin": origin}) is not None


@pytest.mark.parametrize("headers", [{}, {"sec-fetch-site": "none"}, {"origin": "https://evil.example"}])
def test_of_programs_and_other_sites_nothing_is_asked(headers: dict[str, str]) -> None:
    def serves_pages(_addresses: Sequence[str], _port: int) -> bool:
        raise AssertionError("the kernel was asked")

    guard.refusal({"host": "localhost:5000", **headers}, "/", ELSEWHERE, serves_pages=serves_pages)


SERVES = "import os, socket, sys; os.setuid(65534); s = socket.create_server(('127.0.0.1', 0)); "
SERVES += "print(s.getsockname()[1], flush=True); sys.stdin.read()"


@pytest.mark.skipif(sys.platform != "linux" or os.geteuid() != 0, reason="needs two users, and who may be both")
@pytest.mark.parametrize("bind", [None, "0.0.0.0"])
@pytest.mark.parametrize("name", ["localhost", "app.localhost", "127.0.0.1"])
def test_a_page_of_another_user_of_this_machine_may_not_ask(bind: str | None, name: str) -> None:
    with subprocess.Popen([sys.executable, "-ISc", SERVES], stdin=subprocess.PIPE, stdout=subprocess.PIPE) as other:
        assert other.stdout
        port = int(other.stdout.readline())
        reason = guard_for(bind)({"host": f"{name}:5000", "origin": f"http://{name}:{port}"}, "/mcp", LOCAL)
        other.communicate()

    assert reason is not None
    assert repr(f"http://{name}:{port}") in reason


@pytest.mark.parametrize("bind", [None, "0.0.0.0"])
def test_a_page_of_this_user_may(bind: str | None) -> None:
    with socket.create_server(("127.0.0.1", 0)) as page:
        port = page.getsockname()[1]

        for name in ("localhost", "app.localhost", "127.0.0.1"):
            sent = {"host": f"{name}:5000", "origin": f"http://{name}:{port}"}
            assert guard_for(bind)(sent, "/mcp", LOCAL) is None


@pytest.mark.skipif(sys.platform != "linux", reason="only Linux is asked")
def test_nor_may_a_page_that_nobody_serves_any_more() -> None:
    with socket.socket() as silent:
        silent.bind(("127.0.0.1", 0))
        origin = f"http://localhost:{silent.getsockname()[1]}"

        assert guard_for(None)({"host": "localhost:5000", "origin": origin}, "/mcp", LOCAL) is not None


@pytest.mark.parametrize("machine", ["", ".", "localhost"])
def test_a_machine_without_a_proper_name_opens_nothing(machine: str) -> None:
    names = own_names(machine, "0.0.0.0")

    assert "" not in names
    assert refusal({"host": "."}, bind="0.0.0.0", own_names=names) is not None


def test_the_guard_of_an_open_server_knows_this_machine() -> None:
    name = socket.gethostname()

    assert guard_for("0.0.0.0")({"host": f"{name}:5000"}, "/mcp", ("192.168.1.5", 5000)) is None
    assert guard_for(None)({"host": "localhost"}, "/mcp", LOCAL) is None
    assert guard_for(None)({"host": "evil.example"}, "/mcp", LOCAL) is not None
