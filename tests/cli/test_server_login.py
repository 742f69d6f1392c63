"""`login <url>`, `login --list` and `logout`, with a real authorization server and real MCP servers behind it."""

from __future__ import annotations

import json
import os
import stat
import subprocess
import sys
import time
from collections.abc import Iterator
from pathlib import Path
from urllib.parse import parse_qs, urlencode, urlsplit

import httpx2
import pytest

from support.certificates import private_certificates
from support.http_proxy import LoopbackProxy
from support.machine import DATA_HOME, RUN_SECONDS, Machine
from support.ports import lasting_port
from support.sign_ins import TOKEN, AuthorizationServer, Login, Site, browse, login, served, stored
from uno_devserver.proxy.upstream.access_tokens import SignIn, write_sign_in

CLIENT_ID, CLIENT_SECRET = "registered-by-hand", "secret-of-the-client"


@pytest.fixture(scope="module")
def authorization() -> Iterator[AuthorizationServer]:
    by_hand = {
        "client_id": CLIENT_ID,
        "client_secret": CLIENT_SECRET,
        "redirect_uris": ["http://127.0.0.1/callback"],
        "application_type": "native",
        "grant_types": ["authorization_code", "refresh_token"],
        "token_endpoint_auth_method": "client_secret_post",
    }
    with AuthorizationServer(clients=[by_hand]) as server:
        yield server


@pytest.fixture(scope="module")
def url(authorization: AuthorizationServer) -> str:
    return authorization.protected_server()


def test_a_sign_in_is_kept_for_this_user_alone_and_its_tokens_are_not_printed(machine: Machine, url: str) -> None:
    running = Login(machine, url)
    page = browse(running.page())

    result = running.result()
    record = stored(result)

    assert "You can close this page" in page.text
    assert result["url"] == url
    assert result["renewable"] is True
    assert stat.S_IMODE(os.stat(result["file"]).st_mode) == 0o600
    assert stat.S_IMODE(os.stat(os.path.dirname(result["file"])).st_mode) == 0o700
    for secret in (record["tokens"]["access_token"], record["tokens"]["refresh_token"]):
        assert secret not in json.dumps(result) + running.stderr


def test_the_list_names_the_servers_until_the_user_signs_out(machine: Machine, url: str) -> None:
    login(machine, url)

    before = machine.run("login", "--list", "--json").json["signIns"]
    out = machine.run("logout", url)
    again = machine.run("logout", url)

    assert [(one["url"], one["valid"]) for one in before] == [(url, True)]
    assert out.exit_code == again.exit_code == 0
    assert out.stdout.startswith(f"You are signed out of {url}.")
    assert again.stdout.startswith(f"You were not signed in to {url}.")
    assert machine.run("login", "--list", "--json").json["signIns"] == []


def test_the_list_is_readable_and_tells_how_long_a_sign_in_is_valid(machine: Machine, url: str) -> None:
    login(machine, url)

    text = machine.run("login", "--list").stdout

    assert text.startswith("You are signed in to 1 server.")
    assert "and renewed by itself" in text


def test_the_list_says_of_an_expired_token_when_it_is_renewed(
    machine: Machine, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setenv(DATA_HOME, str(machine.data))
    tokens = {"access_token": "a", "refresh_token": "b"}
    for name, kept in (("renewable", tokens), ("other", {"access_token": "a"})):
        url, client = f"https://{name}.example/mcp", {"client_id": "me"}
        write_sign_in(SignIn(url, "https://login.example", client, True, kept, time.time() - 60, None, None))

    other, renewable = machine.run("login", "--list").stdout.splitlines()[-2:]

    assert renewable.endswith("; expired; renewed at its next use")
    assert other.endswith("; expired: run 'uno-devserver login https://other.example/mcp'")


def test_an_answer_with_another_state_does_not_end_the_sign_in(machine: Machine, url: str) -> None:
    running = Login(machine, url)
    page = running.page()
    callback = parse_qs(urlsplit(page).query)["redirect_uri"][0]

    forged = [
        httpx2.get(f"{callback}?{urlencode({'code': 'stolen', 'state': state})}").status_code
        for state in ("", "another", "\u20ac")
    ]
    elsewhere = httpx2.get(callback.replace("/callback", "/"))
    rebound = httpx2.get(callback, headers={"Host": "attacker.example"})
    browse(page)

    assert forged == [404, 404, 404]
    assert elsewhere.status_code == 404
    assert rebound.status_code == 403
    assert running.result()["valid"] is True


def test_a_user_who_refuses_is_told_so_and_nothing_is_kept(machine: Machine, url: str) -> None:
    running = Login(machine, url)
    with httpx2.Client(follow_redirects=True) as browser:
        interaction = browser.get(running.page())
        page = browser.get(f"{interaction.url}/abort")

    error = running.result()["error"]

    assert "You can close this page" in page.text
    assert error["code"] == "SignInFailed"
    assert "refused" in error["message"]
    assert machine.run("login", "--list", "--json").json["signIns"] == []


def test_a_token_that_the_server_refuses_is_not_kept(machine: Machine, authorization: AuthorizationServer) -> None:
    other_audience = authorization.protected_server(audience="https://elsewhere.example/mcp")

    error = login(machine, other_audience)["error"]

    assert "refuses the token" in error["message"]
    assert machine.run("login", "--list", "--json").json["signIns"] == []


def test_a_client_registered_by_hand_is_used_again_without_naming_it(machine: Machine, url: str) -> None:
    machine.environment["UNO_DEVSERVER_CLIENT_SECRET"] = CLIENT_SECRET
    first = login(machine, url, "--client-id", CLIENT_ID)
    del machine.environment["UNO_DEVSERVER_CLIENT_SECRET"]

    second = login(machine, url)

    assert first["clientId"] == second["clientId"] == CLIENT_ID
    assert stored(first)["tokens"] is not None
    assert CLIENT_SECRET not in json.dumps([first, second])


def test_a_wrong_client_secret_is_named_as_what_it_is(machine: Machine, url: str) -> None:
    machine.environment["UNO_DEVSERVER_CLIENT_SECRET"] = "another"

    error = login(machine, url, "--client-id", CLIENT_ID)["error"]

    assert "invalid_client" in error["message"]


def test_the_browser_returns_to_the_port_that_the_user_chose(machine: Machine, url: str) -> None:
    port = lasting_port()
    running = Login(machine, url, "--port", str(port))
    page = running.page()
    browse(page)

    assert f"127.0.0.1%3A{port}%2Fcallback" in page
    assert running.result()["valid"] is True


def test_a_port_that_another_program_has_is_named(machine: Machine, url: str) -> None:
    taken = str(urlsplit(url).port)

    error = machine.run("login", "--json", "--port", taken, url).json["error"]

    assert error["message"] == (
        f"The browser has no port to return to: port {taken} on 127.0.0.1 is taken by another program."
    )


def test_a_wider_scope_is_asked_for_in_addition_to_the_granted_one(machine: Machine, url: str) -> None:
    narrow = login(machine, url)

    wide = login(machine, url, "--scope", "mcp:more")

    assert narrow["scope"] == "mcp:tools"
    assert wide["scope"].split() == ["mcp:tools", "mcp:more"]


def test_a_server_that_wants_another_scope_is_named_with_it(
    machine: Machine, authorization: AuthorizationServer
) -> None:
    both = authorization.protected_server(scopes="mcp:tools mcp:more")

    error = login(machine, both, "--scope", "mcp:tools")["error"]

    assert "HTTP 403" in error["message"]


def test_without_the_extra_the_error_says_what_to_install(machine: Machine) -> None:
    code = "import sys; sys.modules['mcp'] = None; from uno_devserver.__main__ import main; sys.exit(main())"
    ran = subprocess.run(
        [sys.executable, "-c", code, "login", "https://mcp.example.com/mcp"],
        env=machine.variables(),
        capture_output=True,
        text=True,
        timeout=RUN_SECONDS,
        check=False,
    )

    assert ran.returncode == 1
    assert "next: Run: pip install '<folder of the clone>[login]'" in ran.stderr


@pytest.mark.parametrize(
    "arguments",
    [
        ["https://a.example/mcp", "https://b.example/mcp"],
        ["https://a.example/mcp", "--unknown"],
        ["--no-open"],
        ["--scope", "mcp:tools"],
        ["mcp.example.com"],
        ["localhost:5000/mcp"],
        ["ftp://a.example/mcp"],
        ["https://user:password@a.example/mcp"],
        ["https://a.example:99999/mcp"],
        ["https://a.example/mcp", "--scope", 'a" b'],
    ],
    ids=" ".join,
)
def test_a_wrong_call_is_refused_before_anything_is_asked(machine: Machine, arguments: list[str]) -> None:
    result = machine.run("login", *arguments)

    assert result.exit_code == 2
    assert "password" not in result.stdout + result.stderr.replace("user name or password", "")


def test_a_server_on_the_network_is_not_asked_without_encryption(machine: Machine) -> None:
    result = machine.run("login", "http://mcp.example.com/mcp")

    assert result.exit_code == 1
    assert "http://mcp.example.com would be asked without encryption" in result.stderr


@pytest.fixture
def site() -> Iterator[Site]:
    with served() as found:
        yield found


@pytest.fixture
def far(machine: Machine, tmp_path: Path) -> Iterator[Site]:
    """A server of another machine, as this one sees it."""
    certificates = private_certificates(tmp_path, "weather.test")
    with served(certificates.server) as site:
        port = int(site.address.rpartition(":")[2])
        with LoopbackProxy({"weather.test": port}) as proxy:
            machine.environment |= {
                "HTTPS_PROXY": proxy.address,
                "NODE_EXTRA_CA_CERTS": str(certificates.authority),
            }
            site.address = "https://weather.test"
            site.names_authorization()
            yield site


def test_a_server_that_needs_no_sign_in_is_named_as_such(machine: Machine, site: Site) -> None:
    site.answers["/mcp"] = (200, {}, {"jsonrpc": "2.0", "id": 1, "result": {}})

    error = machine.run("login", "--json", f"{site.address}/mcp").json["error"]

    assert "without a sign-in, and names no authorization server" in error["message"]
    assert error["nextStep"].startswith("Use the server without a sign-in.")


def test_a_server_that_wants_credentials_but_offers_no_sign_in_is_named_with_the_option_for_them(
    machine: Machine, site: Site
) -> None:
    site.answers["/mcp"] = (401, {}, {})

    error = machine.run("login", "--json", f"{site.address}/mcp").json["error"]

    assert "offers no sign-in (OAuth)" in error["message"]
    assert "--header" in error["nextStep"]


ENDPOINTS = pytest.mark.parametrize("endpoint", ["authorization_endpoint", "token_endpoint", "registration_endpoint"])


def answer_for(page: str, **values: str) -> None:
    """Come back from a page that no test serves, as a browser would."""
    asked = parse_qs(urlsplit(page).query)
    httpx2.get(f"{asked['redirect_uri'][0]}?{urlencode({**values, 'state': asked['state'][0]})}").raise_for_status()


@ENDPOINTS
def test_an_endpoint_on_the_network_is_neither_asked_nor_opened_without_encryption(
    machine: Machine, site: Site, endpoint: str
) -> None:
    site.names_authorization(**{endpoint: "http://attacker.example/x"})
    running = Login(machine, f"{site.address}/mcp")
    if endpoint == "token_endpoint":  # the only one that is asked after the browser
        answer_for(running.page(), code="one")

    error = running.result()["error"]

    assert "http://attacker.example would be asked without encryption" in error["message"]
    assert "attacker" not in running.stderr


@ENDPOINTS
@pytest.mark.parametrize("address", ["javascript:alert(1)", "file:///etc/passwd"])
def test_metadata_with_addresses_of_other_kinds_do_not_count(
    machine: Machine, site: Site, endpoint: str, address: str
) -> None:
    """Without metadata, the endpoints are those of the server itself (MCP 2025-03-26)."""
    site.names_authorization(**{endpoint: address})
    running = Login(machine, f"{site.address}/mcp")
    page = running.page()
    answer_for(page, error="access_denied")

    assert page.startswith(f"{site.address}/authorize?")
    assert "access_denied" in running.result()["error"]["message"]


def test_metadata_of_another_resource_are_refused(machine: Machine, site: Site) -> None:
    site.names_authorization()
    other = {"resource": "https://bank.example/mcp", "authorization_servers": [site.address]}
    site.answers["/.well-known/oauth-protected-resource/mcp"] = (200, {}, other)

    error = machine.run("login", "--json", f"{site.address}/mcp").json["error"]

    assert "https://bank.example/mcp does not match" in error["message"]
    assert not any("/register" in one for one in site.asked)


def test_an_answer_without_an_end_is_given_up(machine: Machine, site: Site) -> None:
    site.names_authorization()
    site.answers["/.well-known/oauth-protected-resource/mcp"] = (200, {}, b" " * 3_000_000)

    error = machine.run("login", "--json", f"{site.address}/mcp").json["error"]

    assert "is longer than" in error["message"]


def test_a_server_that_cannot_be_reached_is_named(machine: Machine, site: Site) -> None:
    with served() as gone:
        address = gone.address

    error = machine.run("login", "--json", f"{address}/mcp").json["error"]

    assert f"{address} cannot be reached" in error["message"]


def test_the_proxy_and_the_certificates_of_the_environment_count(machine: Machine, far: Site) -> None:
    """No other way leads to the server."""
    far.answers = {"/mcp": (200, {}, {})}
    authority = machine.environment.pop("NODE_EXTRA_CA_CERTS")

    distrusted = machine.run("login", "--json", f"{far.address}/mcp").json["error"]
    machine.environment["NODE_EXTRA_CA_CERTS"] = authority
    trusted = machine.run("login", "--json", f"{far.address}/mcp").json["error"]

    assert "CERTIFICATE_VERIFY_FAILED" in distrusted["message"]
    assert "names no authorization server" in trusted["message"]


def test_a_server_of_this_machine_is_not_asked_through_a_proxy(machine: Machine, site: Site) -> None:
    site.answers["/mcp"] = (200, {}, {})
    with LoopbackProxy({}) as proxy:
        machine.environment |= {"HTTP_PROXY": proxy.address, "ALL_PROXY": proxy.address}
        error = machine.run("login", "--json", f"{site.address}/mcp").json["error"]

    assert "names no authorization server" in error["message"]
    assert proxy.asked == []


def test_a_proxy_of_another_kind_is_named_as_the_problem(machine: Machine, site: Site) -> None:
    machine.environment["ALL_PROXY"] = "socks5://127.0.0.1:9"

    error = machine.run("login", "--json", f"{site.address}/mcp").json["error"]

    assert "The network settings of the environment cannot be used" in error["message"]


@pytest.mark.parametrize("variable", ["HTTPS_PROXY", "ALL_PROXY"])
@pytest.mark.parametrize("proxy", ["http://me:pa/ss@127.0.0.1:9", "http://me:pass@h:99999"])
def test_a_proxy_that_cannot_be_used_is_named_without_its_password(machine: Machine, variable: str, proxy: str) -> None:
    machine.environment[variable] = proxy

    error = machine.run("login", "--json", "https://weather.test/mcp").json["error"]

    assert "The network settings of the environment cannot be used" in error["message"]
    assert "pa" not in error["message"].replace("password", "").replace("named", "").replace("path", "")


# --- metadata and tokens of a hostile or broken server


@pytest.mark.parametrize("host", ["http://127.0.0.1", "http://localhost", "https://localhost", "https://10.0.0.1"])
@pytest.mark.parametrize(
    "member", ["authorization_endpoint", "token_endpoint", "registration_endpoint", "resource_metadata"]
)
def test_a_server_elsewhere_may_not_have_services_of_this_machine_asked(
    machine: Machine, far: Site, site: Site, host: str, member: str
) -> None:
    place = f"{host}:{site.address.rpartition(':')[2]}"
    if member == "resource_metadata":
        far.answers["/mcp"] = (401, {"WWW-Authenticate": f'Bearer resource_metadata="{place}/x"'}, {})
    else:
        far.names_authorization(**{member: f"{place}/x"})
    running = Login(machine, f"{far.address}/mcp")
    if member == "token_endpoint":  # the only one that is asked after the browser
        answer_for(running.page(), code="one")

    error = running.result()["error"]

    assert f"The server names {place} for the sign-in" in error["message"]
    assert place not in running.stderr
    assert site.asked == []


def signed_in(machine: Machine, site: Site, **token: object) -> Login:
    """A login at a server that issues this token."""
    site.names_authorization()
    site.answers["/token"] = (200, {}, {"access_token": TOKEN, "token_type": "Bearer", **token})
    running = Login(machine, f"{site.address}/mcp")
    answer_for(running.page(), code="one")
    return running


@pytest.mark.parametrize("token", ["SECRET\n", "SECRET TOO", "SECR\u00c9T"])
def test_a_token_that_no_header_can_carry_is_refused_and_not_shown(machine: Machine, site: Site, token: str) -> None:
    running = signed_in(machine, site, access_token=token)

    error = running.result()["error"]

    assert "a token that an HTTP header cannot carry" in error["message"]
    assert "SECR" not in json.dumps(error) + running.stderr


def test_a_token_that_is_too_large_to_be_stored_is_refused(machine: Machine, site: Site) -> None:
    error = signed_in(machine, site, refresh_token="x" * 300_000).result()["error"]

    assert "larger than 256 KiB" in error["message"]


@pytest.mark.parametrize("seconds", [-5, 10**15, 10**30])
def test_an_absurd_lifetime_is_bounded(machine: Machine, site: Site, seconds: int) -> None:
    result = signed_in(machine, site, expires_in=seconds).result()

    listed = machine.run("login", "--list")

    assert abs(result["expiresAt"] - time.time()) < 11 * 365 * 86400
    assert listed.exit_code == 0


def test_a_lifetime_beyond_all_numbers_is_refused(machine: Machine, site: Site) -> None:
    error = signed_in(machine, site, expires_in=10**400).result()["error"]

    assert "too long to be counted" in error["message"]


@pytest.mark.parametrize("suffix", ["?tenant=one", "?state=theirs", "#part", "?tenant=one#part"])
def test_the_page_keeps_the_query_of_its_endpoint(machine: Machine, site: Site, suffix: str) -> None:
    site.names_authorization(authorization_endpoint=f"{site.address}/authorize{suffix}")
    running = Login(machine, f"{site.address}/mcp")
    page = running.page()
    query = parse_qs(urlsplit(page).query)
    own = {"state": query["state"][-1], "error": "access_denied"}
    httpx2.get(f"{query['redirect_uri'][0]}?{urlencode(own)}").raise_for_status()

    assert page.startswith(f"{site.address}/authorize{suffix.partition('#')[0]}")
    assert "#" not in page
    assert query["response_type"] == ["code"]
    assert "access_denied" in running.result()["error"]["message"]
