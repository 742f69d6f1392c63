"""The network settings of the environment, with a real proxy and a private authority on loopback."""

from __future__ import annotations

import ssl
from base64 import b64encode
from pathlib import Path

import pytest

from support.certificates import private_certificates
from support.http_proxy import LoopbackProxy
from support.raw_servers import RawServer, Visitor
from uno_devserver.protocol.http.client import HttpClient, named_proxy, split_url
from uno_devserver.protocol.http.client_connection import HttpFailure
from uno_devserver.protocol.http.network_settings import proxy_for

SERVER = "https://server.test:8443/mcp"
VARIABLES = ("http_proxy", "https_proxy", "all_proxy", "no_proxy")


@pytest.fixture(autouse=True)
def no_variables(monkeypatch: pytest.MonkeyPatch) -> None:
    for name in VARIABLES:
        monkeypatch.delenv(name, raising=False)
        monkeypatch.delenv(name.upper(), raising=False)


def chosen(url: str, **environ: str) -> str | None:
    proxy = proxy_for(split_url(url)[0], environ)
    return proxy.shown if proxy else None


# --- which proxy


@pytest.mark.parametrize(
    ("environ", "shown"),
    [
        ({"https_proxy": "http://a:1"}, "http://a:1"),
        ({"HTTPS_PROXY": "http://a:1"}, "http://a:1"),
        ({"HTTPS_PROXY": "http://a:1", "https_proxy": "http://b:2"}, "http://b:2"),
        ({"ALL_PROXY": "http://a:1"}, "http://a:1"),
        ({"ALL_PROXY": "http://a:1", "HTTPS_PROXY": "b:2/"}, "http://b:2"),
        ({"HTTPS_PROXY": "http://user:pa%40ss@a"}, "http://a:80"),
        ({"HTTPS_PROXY": "http://[::1]:3128"}, "http://[::1]:3128"),
        ({"HTTP_PROXY": "http://a:1"}, None),
        ({"HTTPS_PROXY": " "}, None),
        ({}, None),
    ],
)
def test_the_proxy_of_the_scheme_is_used_or_that_for_all(environ: dict[str, str], shown: str | None) -> None:
    assert chosen(SERVER, **environ) == shown


@pytest.mark.parametrize(
    ("exceptions", "url", "direct"),
    [
        ("server.test", SERVER, True),
        ("other.test, SERVER.test", SERVER, True),
        (".test", SERVER, True),
        ("*.test", SERVER, True),
        ("test:8443", SERVER, True),
        ("test:443", SERVER, False),
        ("ver.test", SERVER, False),
        ("*", SERVER, True),
        (",", SERVER, False),
        ("10.0.0.0/8", "https://10.1.2.3/mcp", True),
        ("10.0.0.0/8", "https://11.1.2.3/mcp", False),
        ("fd00::/8", "https://[fd00::1]/mcp", True),
        ("10.0.0.0/8", SERVER, False),
        ("not/a/network", "https://10.1.2.3/mcp", False),
    ],
)
def test_no_proxy_names_hosts_domains_ports_and_networks(exceptions: str, url: str, direct: bool) -> None:
    assert (chosen(url, HTTPS_PROXY="http://a:1", NO_PROXY=exceptions) is None) is direct


@pytest.mark.parametrize(
    "proxy", ["socks5://user:secret@a:1", "https://a:1", "http://a:0", "http://a:70000", "http://"]
)
def test_a_proxy_that_cannot_be_used_is_named_with_its_variable_and_without_its_password(proxy: str) -> None:
    with pytest.raises(ValueError, match=r"The proxy '.*' of HTTPS_PROXY cannot be used: .* an HTTP proxy") as problem:
        chosen(SERVER, HTTPS_PROXY=proxy)

    assert "secret" not in str(problem.value)


@pytest.mark.parametrize("host", ["localhost", "127.0.0.1", "127.1.2.3", "[::1]"])
def test_servers_of_this_machine_are_reached_without_a_proxy(host: str, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setenv("ALL_PROXY", "http://a:1")

    assert named_proxy(split_url(f"http://{host}:5000/mcp")[0]) is None
    assert named_proxy(split_url("http://server.test/mcp")[0]) is not None


# --- the way through it


async def echo(visitor: Visitor) -> None:
    while True:
        asked = await visitor.asked()
        visitor.answer(f"{asked.method} {asked.target} {asked.headers['host']} ".encode() + asked.body)


async def said(client: HttpClient, body: bytes) -> bytes:
    return await (await client.request("POST", "/mcp", b"", body)).read()


def basic(credentials: str) -> str:
    return f"Basic {b64encode(credentials.encode()).decode()}"


async def test_requests_without_tls_are_sent_to_the_proxy(monkeypatch: pytest.MonkeyPatch) -> None:
    async with RawServer(echo) as server:
        with LoopbackProxy({"server.test": server.port}, basic("me:pa@ss")) as proxy:
            monkeypatch.setenv("http_proxy", f"http://me:pa%40ss@{proxy.address}")
            client = HttpClient(split_url("http://server.test/")[0])

            assert await said(client, b"1") == b"POST /mcp server.test 1"
            client.close()

    assert proxy.asked == ["POST http://server.test/mcp HTTP/1.1"]


@pytest.mark.parametrize("variable", ["SSL_CERT_FILE", "NODE_EXTRA_CA_CERTS", "REQUESTS_CA_BUNDLE"])
async def test_a_secure_server_is_reached_through_a_tunnel_and_its_private_authority_is_named(
    variable: str, tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    certificates = private_certificates(tmp_path, "server.test")
    tls = ssl.SSLContext(ssl.PROTOCOL_TLS_SERVER)
    tls.load_cert_chain(certificates.server)
    async with RawServer(echo, tls=tls) as server:
        with LoopbackProxy({"server.test": server.port}, basic("me:secret")) as proxy:
            monkeypatch.setenv("HTTPS_PROXY", f"me:secret@{proxy.address}")
            client = HttpClient(split_url(SERVER)[0])
            with pytest.raises(HttpFailure, match=r"has a certificate that is not trusted .*SSL_CERT_FILE"):
                await said(client, b"0")
            client.close()

            monkeypatch.setenv(variable, str(certificates.authority))
            client = HttpClient(split_url(SERVER)[0])
            for number in (b"1", b"2"):
                assert await said(client, number) == b"POST /mcp server.test:8443 " + number
            client.close()

    assert proxy.asked == ["CONNECT server.test:8443 HTTP/1.1"] * 2, "the tunnel is kept"


@pytest.mark.parametrize("variable", ["SSL_CERT_FILE", "SSL_CERT_DIR", "NODE_EXTRA_CA_CERTS", "REQUESTS_CA_BUNDLE"])
async def test_certificates_that_do_not_exist_are_named(
    variable: str, tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setenv(variable, str(tmp_path / "gone.pem"))

    with pytest.raises(HttpFailure, match=f"{variable} names .*gone.pem, which does not exist"):
        await HttpClient(split_url("https://localhost:1/")[0]).request("GET", "/")


async def test_a_file_without_certificates_is_named(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    (tmp_path / "text.pem").write_text("hello")
    monkeypatch.setenv("NODE_EXTRA_CA_CERTS", str(tmp_path / "text.pem"))

    with pytest.raises(HttpFailure, match=r"text\.pem, which NODE_EXTRA_CA_CERTS names, cannot be read"):
        await HttpClient(split_url("https://localhost:1/")[0]).request("GET", "/")


@pytest.mark.parametrize(
    ("given", "why"),
    [("", "asks for credentials"), ("me:wrong@", "does not accept the credentials of its URL")],
)
async def test_a_proxy_that_wants_credentials_is_named(given: str, why: str, monkeypatch: pytest.MonkeyPatch) -> None:
    with LoopbackProxy({}, basic("me:right")) as proxy:
        monkeypatch.setenv("ALL_PROXY", f"http://{given}{proxy.address}")

        with pytest.raises(HttpFailure, match=rf"the proxy http://{proxy.address} {why} \(HTTP 407\)") as failure:
            await HttpClient(split_url(SERVER)[0]).request("GET", "/")

    assert not failure.value.sent
    assert "wrong" not in str(failure.value)


async def test_a_proxy_that_does_not_reach_the_server_or_is_not_there_is_named(monkeypatch: pytest.MonkeyPatch) -> None:
    with LoopbackProxy({}) as proxy:
        monkeypatch.setenv("ALL_PROXY", f"http://{proxy.address}")
        with pytest.raises(HttpFailure, match=rf"the proxy http://{proxy.address} does not connect to it \(HTTP 502\)"):
            await HttpClient(split_url(SERVER)[0]).request("GET", "/")

    with pytest.raises(HttpFailure, match=f"the proxy http://{proxy.address} cannot be reached: .*refused"):
        await HttpClient(split_url(SERVER)[0]).request("GET", "/")
    with pytest.raises(HttpFailure, match=f"cannot be reached through the proxy http://{proxy.address}: .*"):
        await HttpClient(split_url("http://server.test/")[0]).request("GET", "/")
