"""OAuth 2.1 as MCP defines it, done by the official SDK's client: signing in, and renewing tokens.

Only `login` and the process that renews tokens import this module: the SDK is the extra `login`. Authlib knows OAuth's
grants, but not MCP's discovery of the authorization server and its choice of scope and resource.

Whatever a server's metadata says, requests go to https only; to this machine and to private addresses only for a server
that is there itself, and never to a program of another user of this machine. Answers are bounded. Run as a program, it
renews the tokens of the server that standard input names.
"""

from __future__ import annotations

import asyncio
import json
import logging
import os
import sys
import time
from contextlib import aclosing
from ipaddress import ip_address
from secrets import compare_digest
from typing import TYPE_CHECKING, Any
from urllib.parse import parse_qs, urlsplit

import httpx2
from mcp.client.auth import AuthorizationCodeResult, OAuthClientProvider, OAuthFlowError, OAuthRegistrationError
from mcp.client.auth.utils import extract_field_from_www_auth, is_valid_client_metadata_url
from mcp.shared.auth import (
    OAuthClientInformationFull,
    OAuthClientMetadata,
    OAuthMetadata,
    OAuthToken,
    ProtectedResourceMetadata,
)
from pydantic import AnyUrl, ValidationError

from ... import __version__
from ...protocol.http.client import named_proxy, split_url
from ...protocol.http.guard import misdirected
from ...protocol.http.messages import Request, Response
from ...protocol.http.network_settings import tls_context
from ...protocol.http.server import HttpServer, open_sockets
from ...protocol.versions import NEWEST_HANDSHAKE
from ...system.locks import FileLock
from ...system.tcp_peers import is_another_users_server
from ...system.text import one_line
from .access_tokens import (
    RECORD_BYTES,
    SignIn,
    Unsaved,
    header_token,
    lock_path,
    read_sign_in,
    record_path,
    server_key,
    with_secrets,
    write_sign_in,
)
from .keyring_secrets import KeyringProblem

if TYPE_CHECKING:
    from collections.abc import AsyncGenerator, Awaitable, Callable

    Flow = AsyncGenerator[httpx2.Request, httpx2.Response]

BROWSER_SECONDS = 300.0  # to sign in on a page, with a password manager and a second factor
ANSWER_SECONDS = 15.0  # for each answer of a server
LOCK_SECONDS = 20.0  # another process renews the same tokens with one request
ANSWER_BYTES = 1024 * 1024  # metadata and tokens have a few kilobytes
SHOWN_CHARACTERS = 300  # of an error of the SDK, which may quote a whole page
FINAL_ERRORS = ("invalid_grant", "invalid_client", "unauthorized_client")  # of RFC 6749, 5.2; others may pass
LONGEST_SECONDS = 10 * 365 * 86400  # of a token; some servers name absurd numbers for "no end"
SESSION = "mcp-session-id"
INITIALIZE = {
    "protocolVersion": NEWEST_HANDSHAKE,
    "capabilities": {},
    "clientInfo": {"name": "uno-devserver", "version": __version__},
}
ENDLESS_TOKEN = "The authorization server names a lifetime of the token that is too long to be counted."  # noqa: S105
RUN_AGAIN = "Check the URL, the account, and that the server runs; then run it again."
USE_HEADER = "Give the credentials that it wants with --header of 'mcp start', or mcpServer.headers in the config."
NO_SIGN_IN = "Use the server without a sign-in. If it is another one that you mean, check the URL."
CALLBACK = "/callback"
LOOPBACK = "127.0.0.1"
LOCAL_NAMES = (LOOPBACK, "::1", "localhost")
PAGE = (
    "<!doctype html><meta charset=utf-8><title>uno-devserver</title><body style='font:1.1em sans-serif;margin:3em'>"
    "<p>{}</p><p>You can close this page. The terminal shows the result.</p>"
)

logging.getLogger("mcp").addHandler(logging.NullHandler())  # its tracebacks would reach the terminal
logging.getLogger("mcp").propagate = False


class SignInProblem(Exception):
    """The sign-in failed. The text is a sentence; `final` if a renewal would fail again."""

    def __init__(self, message: str, *, final: bool = False, step: str = RUN_AGAIN) -> None:
        super().__init__(message)
        self.final = final
        self.step = step


class Client:
    """How this program names itself to the authorization server: by the user's client id, or by a new registration."""

    def __init__(self, client_id: str | None, secret: str | None, issuer: str | None = None) -> None:
        self.id = client_id
        self.metadata_url = client_id if is_valid_client_metadata_url(client_id) else None
        self.given: OAuthClientInformationFull | None = None
        if client_id is not None and self.metadata_url is None:
            self.given = OAuthClientInformationFull(client_id=client_id, client_secret=secret, issuer=issuer)


class _Memory:
    """What the SDK stores during a flow. Implements its `TokenStorage`."""

    def __init__(self, client: OAuthClientInformationFull | None, tokens: OAuthToken | None = None) -> None:
        self.client = client
        self.tokens = tokens

    async def get_tokens(self) -> OAuthToken | None:
        return self.tokens

    async def set_tokens(self, tokens: OAuthToken) -> None:
        if header_token(tokens.access_token) is None:
            raise SignInProblem("The authorization server issued a token that an HTTP header cannot carry.")
        if tokens.expires_in is not None:
            tokens.expires_in = max(0, min(tokens.expires_in, LONGEST_SECONDS))
        self.tokens = tokens

    async def get_client_info(self) -> OAuthClientInformationFull | None:
        return self.client

    async def set_client_info(self, client_info: OAuthClientInformationFull) -> None:
        self.client = client_info


class Redirect:
    """Waits on a loopback port for the browser to bring the authorization code, and takes one answer."""

    def __init__(self, port: int = 0) -> None:
        """OSError if the port cannot be used."""
        self._server = HttpServer(
            self._handle, open_sockets(port, LOOPBACK), guard=lambda headers, _path, _own: misdirected(headers)
        )
        self.uri = f"http://{LOOPBACK}:{self._server.port}{CALLBACK}"
        self._state = ""
        self._answer: asyncio.Future[AuthorizationCodeResult] = asyncio.get_running_loop().create_future()

    async def __aenter__(self) -> Redirect:
        await self._server.start()
        return self

    async def __aexit__(self, *_: object) -> None:
        await self._server.stop()

    async def answer(self, state: str, seconds: float) -> AuthorizationCodeResult:
        """The answer that carries `state`. SignInProblem if the user refused, or if none came in time."""
        self._state = state
        try:
            async with asyncio.timeout(seconds):
                return await self._answer
        except TimeoutError:
            raise SignInProblem(f"The browser did not come back within {seconds:g} s.") from None

    async def _handle(self, request: Request) -> Response:
        values = {name: given[0] for name, given in parse_qs(request.query).items()}
        state = values.get("state", "")
        expected = request.method == "GET" and request.path == CALLBACK and not self._answer.done()
        if not expected or not self._state or not compare_digest(state.encode(), self._state.encode()):
            return _page(404, "This page belongs to no sign-in that is under way.")
        if "code" not in values:
            why = one_line(values.get("error_description") or values.get("error", "no reason given"))[:SHOWN_CHARACTERS]
            self._answer.set_exception(SignInProblem(f"The authorization server refused: {why}."))
            return _page(200, "The authorization server refused.")
        self._answer.set_result(AuthorizationCodeResult(code=values["code"], state=state, iss=values.get("iss")))
        return _page(200, "The browser's part of the sign-in is done.")


def _page(status: int, text: str) -> Response:
    headers = (("Content-Type", "text/html; charset=utf-8"), ("Cache-Control", "no-store"))
    return Response(
        status,
        PAGE.format(text).encode(),
        (*headers, ("Content-Security-Policy", "default-src 'none'; style-src 'unsafe-inline'")),
    )


async def sign_in(
    url: str,
    client: Client,
    scope: str | None,
    redirect: Redirect,
    show: Callable[[str], Awaitable[None]],
    seconds: float = BROWSER_SECONDS,
) -> SignIn:
    """Sign in to the server at `url`; `show` opens the page of the authorization server. Raises SignInProblem."""
    memory = _Memory(client.given)
    pages: list[str] = []

    async def open_page(page: str) -> None:
        page = _with_own_query(page, provider)
        _check_address(page, url)
        _choose_authentication(provider, client)
        pages.append(page)
        await show(page)

    async def answer() -> AuthorizationCodeResult:
        return await redirect.answer(parse_qs(urlsplit(pages[-1]).query)["state"][-1], seconds)

    provider = OAuthClientProvider(
        server_key(url),
        OAuthClientMetadata(redirect_uris=[AnyUrl(redirect.uri)], client_name="uno-devserver"),
        memory,
        open_page,
        answer,
        client.metadata_url,
    )
    async with _http_client(url) as http:
        first, greeted = await _greet(http, url)
        async with aclosing(provider.async_auth_flow(first)) as flow:
            await anext(flow)  # the greeting, which is answered
            try:
                response = await _follow(http, url, flow, first, await flow.asend(_challenge(greeted, scope)))
            except OAuthFlowError as error:
                raise _problem(url, greeted, provider, error) from error
            except OverflowError as error:
                raise SignInProblem(ENDLESS_TOKEN) from error
        tokens, registration = memory.tokens, provider.context.client_info
        assert tokens is not None, "the flow ends with tokens or with an error"
        assert registration is not None, "the flow ends with tokens or with an error"
        _check_accepted(response, url, provider)
        await _leave(http, url, response, tokens)
    return _record(url, provider, registration, tokens, registered=registration.client_id != client.id)


def _http_client(url: str) -> httpx2.AsyncClient:
    """A client with the proxies and certificates of the environment; servers of this machine are never proxied."""
    direct: dict[str, None] = {f"all://{name}": None for name in (LOOPBACK, "[::1]", "localhost")}
    try:
        named_proxy(split_url(url)[0])  # its errors say more than those of httpx2, and quote no password
        return httpx2.AsyncClient(timeout=ANSWER_SECONDS, verify=tls_context(os.environ), mounts=direct)
    except (OSError, ImportError, ValueError, httpx2.InvalidURL) as error:  # e.g. a SOCKS proxy
        quotes = isinstance(error, httpx2.InvalidURL)
        why = "a variable that names a proxy is not a URL" if quotes else one_line(str(error)).rstrip(".")
        raise SignInProblem(f"The network settings of the environment cannot be used: {why}.") from error


async def _greet(http: httpx2.AsyncClient, url: str) -> tuple[httpx2.Request, httpx2.Response]:
    """The first request that the server wants to be authorized, and its answer; some let everyone initialize."""
    request = _request(http, url, "initialize", INITIALIZE)
    response = await _send(http, url, request, whole=False)
    if response.status_code != 401:
        session = response.headers.get(SESSION)
        listing = _request(http, url, "tools/list", {}, {} if session is None else {SESSION: session})
        listed = await _send(http, url, listing, whole=False)
        if listed.status_code == 401:
            return listing, listed
    return request, response


def _request(
    http: httpx2.AsyncClient, url: str, method: str, params: dict[str, Any], more: dict[str, str] | None = None
) -> httpx2.Request:
    message = {"jsonrpc": "2.0", "id": 1, "method": method, "params": params}
    headers = {"Accept": "application/json, text/event-stream", "MCP-Protocol-Version": NEWEST_HANDSHAKE}
    return http.build_request("POST", url, json=message, headers={**headers, **(more or {})})


def _challenge(response: httpx2.Response, scope: str | None) -> httpx2.Response:
    """A 401 that asks for `scope`, if given: also of a server that wants a sign-in for some requests only."""
    if response.status_code == 401 and scope is None:
        return response
    metadata = extract_field_from_www_auth(response, "resource_metadata")
    parts = [*([f'resource_metadata="{metadata}"'] if metadata else []), *([f'scope="{scope}"'] if scope else [])]
    headers = {"WWW-Authenticate": f"Bearer {', '.join(parts)}"} if parts else {}
    return httpx2.Response(401, headers=headers, request=response.request)


def _choose_authentication(provider: OAuthClientProvider, client: Client) -> None:
    """How a client that the user registered shows its secret: as the authorization server says, in RFC 8414's order."""
    given, metadata = client.given, provider.context.oauth_metadata
    if given is None or given.client_secret is None or provider.context.client_info is not given:
        return
    known = (metadata.token_endpoint_auth_methods_supported if metadata else None) or ["client_secret_basic"]
    basic = "client_secret_basic" in known or "client_secret_post" not in known
    given.token_endpoint_auth_method = "client_secret_basic" if basic else "client_secret_post"


async def _follow(
    http: httpx2.AsyncClient, url: str, flow: Flow, first: httpx2.Request, request: httpx2.Request
) -> httpx2.Response:
    """Send what the flow asks for until it ends; the last answer."""
    while True:
        response = await _send(http, url, request, whole=request is not first)
        try:
            request = await flow.asend(response)
        except StopAsyncIteration:
            return response


async def _send(
    http: httpx2.AsyncClient, server: str, request: httpx2.Request, *, whole: bool = True
) -> httpx2.Response:
    """Send a request that serves the sign-in to `server`.

    Without `whole`, the body of the answer, which may be a stream without an end, is not read.
    """
    _check_address(str(request.url), server)
    where = f"{request.url.scheme}://{request.url.netloc.decode()}"

    async def check_owner(event: str, info: dict[str, Any]) -> None:
        connected = event == "connection.connect_tcp.complete"
        if connected and is_another_users_server(info["return_value"].get_extra_info("socket")):
            raise SignInProblem(f"A program of another user has the port of {where}; nothing was sent to it.")

    if request.url.host in LOCAL_NAMES:  # others are encrypted, or reached through a proxy, which may be another user's
        request.extensions = {**request.extensions, "trace": check_owner}
    try:
        async with asyncio.timeout(ANSWER_SECONDS):
            response = await http.send(request, stream=True, follow_redirects=False)
            try:
                content = b""
                async for chunk in response.aiter_bytes():
                    content += chunk
                    if not whole:
                        break
                    if len(content) > ANSWER_BYTES:
                        raise SignInProblem(f"The answer of {where} is longer than {ANSWER_BYTES} bytes.")
            finally:
                await response.aclose()
    except TimeoutError:
        raise SignInProblem(f"{where} did not answer within {ANSWER_SECONDS:g} s.") from None
    except (httpx2.LocalProtocolError, httpx2.InvalidURL) as error:  # their texts may quote a header or a password
        raise SignInProblem(f"{where} cannot be asked: a URL or header is not valid.") from error
    except httpx2.HTTPError as error:
        raise SignInProblem(f"{where} cannot be reached: {one_line(str(error)) or type(error).__name__}.") from error
    headers = [(name, value) for name, value in response.headers.multi_items() if not name.startswith("content-")]
    copy = httpx2.Response(response.status_code, headers=headers, content=content if whole else b"", request=request)
    copy.next_request = response.next_request
    return copy


def _check_address(url: str, server: str) -> None:
    """Refuse a URL that the sign-in to `server` must not ask or open; a server elsewhere may not choose one here."""
    parts = urlsplit(url)
    place = f"{parts.scheme}://{parts.netloc.rpartition('@')[2]}"
    if parts.scheme != "https" and not (parts.scheme == "http" and parts.hostname in LOCAL_NAMES):
        raise SignInProblem(f"{place} would be asked without encryption, which is done on this machine only.")
    if _is_private(parts.hostname or "") and not _is_private(urlsplit(server).hostname or ""):
        raise SignInProblem(f"The server names {place} for the sign-in, which is on this machine or a private network.")


def _is_private(host: str) -> bool:
    """Whether the host is named as this machine, or by an address that is not of the internet."""
    host = host.strip("[]").rstrip(".").lower()
    if host == "localhost" or host.endswith(".localhost"):
        return True
    try:
        address = ip_address(host.partition("%")[0])
    except ValueError:
        return False
    return not (getattr(address, "ipv4_mapped", None) or address).is_global


def _with_own_query(page: str, provider: OAuthClientProvider) -> str:
    """The address of the page: the SDK appends a query also to an endpoint that has one, or a fragment."""
    metadata = provider.context.oauth_metadata
    endpoint = str(metadata.authorization_endpoint) if metadata else ""
    kept = endpoint.partition("#")[0]
    if kept == endpoint and "?" not in kept:
        return page
    return f"{kept}{'&' if '?' in kept else '?'}{page.removeprefix(f'{endpoint}?')}"


def _problem(url: str, greeted: httpx2.Response, provider: OAuthClientProvider, error: OAuthFlowError) -> SignInProblem:
    context, status = provider.context, greeted.status_code
    if context.oauth_metadata is None and context.protected_resource_metadata is None:
        if status == 401 and isinstance(error, OAuthRegistrationError):
            return SignInProblem(f"The server at {url} offers no sign-in (OAuth).", step=USE_HEADER)
        message = f"The server at {url} answered HTTP {status} without a sign-in, and names no authorization server."
        if status != 401:
            return SignInProblem(message, step=NO_SIGN_IN if greeted.is_success else RUN_AGAIN)
    return SignInProblem(f"The sign-in failed: {one_line(str(error))[:SHOWN_CHARACTERS].rstrip('.')}.")


def _check_accepted(response: httpx2.Response, url: str, provider: OAuthClientProvider) -> None:
    if response.status_code == 401:
        issuer = _issuer(provider)
        raise SignInProblem(f"The server at {url} refuses the token that {issuer} has just issued for it.")
    if response.status_code == 403:
        wanted = extract_field_from_www_auth(response, "scope")
        more = f"; it wants the scope '{one_line(wanted)}'" if wanted else ""
        raise SignInProblem(f"The server at {url} does not allow this account or scope (HTTP 403){more}.")


async def _leave(http: httpx2.AsyncClient, url: str, response: httpx2.Response, tokens: OAuthToken) -> None:
    """End the session that the greeting may have opened."""
    session = response.headers.get(SESSION) or response.request.headers.get(SESSION)
    if session is not None:
        headers = {SESSION: session, "Authorization": f"Bearer {tokens.access_token}"}
        try:
            await _send(http, url, http.build_request("DELETE", url, headers=headers), whole=False)
        except SignInProblem:
            pass  # the server forgets it by itself


def _record(
    url: str,
    provider: OAuthClientProvider,
    client: OAuthClientInformationFull,
    tokens: OAuthToken,
    *,
    registered: bool,
) -> SignIn:
    metadata, resource = provider.context.oauth_metadata, provider.context.protected_resource_metadata
    record = SignIn(
        url=server_key(url),
        issuer=_issuer(provider),
        client=_plain(client),
        registered=registered,
        tokens=_plain(tokens),
        expires_at=_expiry(tokens),
        authorization_server=_plain(metadata) if metadata else None,
        resource=_plain(resource) if resource else None,
    )
    return _storable(record)


def _storable(record: SignIn) -> SignIn:
    if len(json.dumps(record.__dict__)) > RECORD_BYTES:
        limit = f"{RECORD_BYTES // 1024} KiB, which is the most that is stored"
        raise SignInProblem(f"The tokens and metadata of {record.issuer} are larger than {limit}.")
    return record


def _expiry(tokens: OAuthToken) -> float | None:
    return None if tokens.expires_in is None else time.time() + tokens.expires_in


def _issuer(provider: OAuthClientProvider) -> str:
    context = provider.context
    return (
        str(context.oauth_metadata.issuer) if context.oauth_metadata else context.auth_server_url or context.server_url
    )


def _plain(model: Any) -> dict[str, Any]:
    plain: dict[str, Any] = model.model_dump(mode="json", exclude_none=True)
    return plain


# --- renewal


def renew_stored(url: str, used: str | None, unsaved: Unsaved | None = None) -> tuple[str | None, SignIn | None]:
    """Renew the stored tokens, unless others than `used` are stored. One process at a time.

    `unsaved` are tokens that an earlier renewal could not store; they are stored instead. Returns why it failed, and
    the record that could not be stored, whose refresh token is the only one that is still valid.
    """
    lock = FileLock(lock_path(url))
    if not lock.acquire(LOCK_SECONDS, lambda _: None):
        return "another process is renewing it.", None
    kept = None
    try:
        record = read_sign_in(url)
        record = None if record is None else with_secrets(record)
        if record is not None and unsaved is not None and record.access_token == unsaved.replaces:
            kept = unsaved.record
            write_sign_in(kept)
            return None, None
        if record is None or not record.renewable or record.access_token != used:
            return None, None  # the user has signed out, or another process was faster
        write_sign_in(record)  # a refresh token is used once: nothing is sent unless its successor can be stored
        try:
            kept = asyncio.run(_renewed(record))
        except SignInProblem as problem:
            if problem.final:
                rest = {name: value for name, value in record.tokens.items() if name != "refresh_token"}
                write_sign_in(record.replace(tokens=rest))
            return str(problem), None
        write_sign_in(kept)
    except KeyringProblem as problem:
        return str(problem), kept
    except OSError as error:
        return f"{error.filename or record_path(url)} cannot be used: {error.strerror or error}.", kept
    finally:
        lock.release()
    return None, None


async def _renewed(record: SignIn) -> SignIn:
    """The record with new tokens. The refresh token goes to the authorization server that issued it, and only there."""
    try:
        memory = _Memory(
            OAuthClientInformationFull.model_validate(record.client), OAuthToken.model_validate(record.tokens)
        )
        provider = OAuthClientProvider(record.url, OAuthClientMetadata(redirect_uris=[AnyUrl(record.url)]), memory)
        context = provider.context
        if record.authorization_server is not None:
            context.oauth_metadata = OAuthMetadata.model_validate(record.authorization_server)
        if record.resource is not None:
            context.protected_resource_metadata = ProtectedResourceMetadata.model_validate(record.resource)
    except ValidationError as error:
        raise SignInProblem("Its stored registration is damaged. Sign in again.", final=True) from error
    context.auth_server_url = record.issuer
    context.token_expiry_time = 1.0  # long ago: the flow begins with a refresh
    before, status, code = memory.tokens, 0, None
    async with _http_client(record.url) as http:
        first = _request(http, record.url, "initialize", INITIALIZE)
        async with aclosing(provider.async_auth_flow(first)) as flow:  # left before that is sent
            request = await anext(flow)
            while request is not first:
                response = await _send(http, record.url, request)
                status, code = response.status_code, _oauth_error(response)
                try:
                    request = await flow.asend(response)
                except OverflowError as overflow:
                    raise SignInProblem(ENDLESS_TOKEN) from overflow
    tokens = memory.tokens
    if tokens is None or tokens is before:
        if code in FINAL_ERRORS:
            message = f"{record.issuer} refuses to renew it ({code}). Run: uno-devserver login {record.url}"
            raise SignInProblem(message, final=True)
        raise SignInProblem(f"{record.issuer} answered HTTP {status} without a token.")
    return _storable(record.replace(tokens=_plain(tokens), expires_at=_expiry(tokens)))


def _oauth_error(response: httpx2.Response) -> str | None:
    """The code of an error that the token endpoint itself has sent: other programs on the way answer 4xx as well."""
    try:
        body = json.loads(response.content) if 400 <= response.status_code < 500 else None
    except ValueError:
        return None
    error = body.get("error") if isinstance(body, dict) else None
    return error if isinstance(error, str) else None


def main() -> int:
    asked = json.load(sys.stdin)
    unsaved = asked["unsaved"] and Unsaved(SignIn(**asked["unsaved"]), asked["replaces"])
    try:
        problem, kept = renew_stored(asked["url"], asked["used"], unsaved)
    except OSError as error:  # of the lock
        problem, kept = f"{error.filename or 'a file'} cannot be used: {error.strerror or error}.", None
    sys.stdout.write(json.dumps({"problem": problem, "unsaved": kept and kept.__dict__}))
    return 0


if __name__ == "__main__":
    sys.exit(main())
