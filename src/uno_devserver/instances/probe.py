"""Ask a Host over HTTP for its kind, add-ins and tools. A probe is bounded in time; failures are part of the result.

A registry entry proves nothing, because its port may belong to another program by now. The bundled Host reports
everything at `/health`, including its process id. A .NET Host has no such page, so the probe acts as an MCP client:
initialize, tools, health.
"""

from __future__ import annotations

import json
import time

from ..system.ports import LOOPBACK
from ..system.processes import command_line, listens_on
from ..system.values import Value
from ..workspace.paths import same_place
from .host_kind import HostKind
from .local_http import REFUSED, HttpAnswer, NoHttpAnswer, http_request

TYPE_CHECKING = False
if TYPE_CHECKING:
    from collections.abc import Iterable, Mapping

    from .child_process import Child
    from .registry import RegisteredServer

ADDRESSES = ("localhost", *LOOPBACK)  # some machines have only IPv4 or IPv6, or an unusual hosts file
PROBE_SECONDS = 3.0  # the limit for all requests together; a Host answers them in about 50 ms
KIND_SECONDS = 1.0  # the limit for the request that finds out the kind; a bundled Host answers in milliseconds
LOADING_SECONDS = 3.0  # most add-ins load in a fraction of it; slower ones are reported as loading
LOADING_STEP_SECONDS = 0.05  # not shorter, because each request makes the Host ask its add-ins
ADDINS_WAIT_SECONDS = 1.0  # loading takes about 50 ms; an add-in that imports a large library is left to `health`
ADDINS_STEP_SECONDS = 0.004  # not shorter, because a request delays the loading Host by a millisecond
FIRST_ANSWER_SECONDS = 1.0  # the limit per address, so that a silent one leaves time for the others
PROTOCOL_VERSION = "2025-06-18"  # every Host that speaks MCP over HTTP supports it
MAX_PAGES = 20  # the limit for the list of tools, in case a server always names a next page
QUOTED_CHARACTERS = 300  # how much of a server's message is quoted
HEALTH_TOOL = "uno_health"
DOTNET_SERVER = "Uno Server"  # the name that a .NET Host has in MCP


class HostAddIn(Value):
    """An add-in as the Host reports it."""

    name: str
    version: str | None
    path: str | None
    loaded: bool
    error: str | None  # why it is not loaded, or which part of it does not work

    @property
    def is_to_come(self) -> bool:
        return not self.loaded and self.error is None

    @property
    def failure(self) -> str:
        """A sentence that says what is wrong with the add-in."""
        name = f"{self.name} {self.version or ''}".strip()
        reason = self.error or "the Host does not say why"
        where = f" ({self.path})" if self.path and self.path not in reason else ""
        how = "works only in part" if self.loaded else "was not loaded"
        return f"The add-in {name}{where} {how}: {reason}".rstrip(".") + "."


class Probe(Value):
    """The facts about a running Host. A Host with `mcp`, and without `problem` and `error`, can be used."""

    answers: bool = False  # whether the Host itself answers over HTTP
    mcp: bool = False  # whether it has the /mcp endpoint
    problem: str = ""  # the end of a sentence whose subject is the port
    error: str = ""  # a sentence: how a request at /mcp failed
    kind: HostKind | None = None
    status: str | None = None  # the status that the Host gives itself
    version: str | None = None
    add_ins: tuple[HostAddIn, ...] = ()
    loading: bool = False  # whether some add-ins are neither loaded nor failed
    busy: tuple[str, ...] = ()  # sentences: which add-ins have no free thread, and which calls occupy them
    discovery_error: str | None = None  # why the Host could not find its add-ins
    tool_count: int = 0
    ide_channel_connected: bool | None = None
    bind: str | None = None  # the address at which the network reaches it; None if only this machine does

    @property
    def connected(self) -> bool:
        return self.mcp and not self.problem and not self.error

    def lacks(self, paths: Iterable[str]) -> list[str]:
        """Those of these add-ins that the Host was not told to load."""
        return [path for path in paths if not any(same_place(path, addin.path) for addin in self.add_ins)]


def probe_loaded(server: RegisteredServer) -> Probe:
    """The probe of a server after its add-ins were loaded, or after LOADING_SECONDS."""
    deadline = time.monotonic() + LOADING_SECONDS
    found = probe(server)
    while found.loading and (left := deadline - time.monotonic()) > 0:
        time.sleep(min(LOADING_STEP_SECONDS, left))
        later = probe(server, deadline - time.monotonic())
        if not later.answers and time.monotonic() >= deadline:
            break  # it had no time to answer
        found = later
    return found


def wait_until_loaded(child: Child, process_id: int, port: int) -> Probe | None:
    """The report of a Host that was just launched, when its add-ins are loaded or after a second; None without one."""
    deadline = time.monotonic() + ADDINS_WAIT_SECONDS
    told = None
    while child.exit_code() is None and time.monotonic() < deadline:
        told = host_report(process_id, port, deadline) or told
        if told and not told.loading:
            break
        time.sleep(ADDINS_STEP_SECONDS)
    return told


def host_report(process_id: int, port: int, deadline: float) -> Probe | None:
    """The report of the bundled Host with that process id; None if there is no such report at the port."""
    for address in LOOPBACK:
        try:
            told = _health_page(http_request(address, port, "GET", "/health", deadline=deadline))
        except NoHttpAnswer:
            continue
        if told is not None and told["processId"] == process_id:
            return _probe_of(told)
    return None


def kind_of(process_id: int, port: int) -> HostKind:
    """The kind of a running Host; .NET if it is not recognised."""
    by_command_line = HostKind.of_command_line(command_line(process_id))
    if by_command_line is not None:
        return by_command_line
    bundled = host_report(process_id, port, time.monotonic() + KIND_SECONDS) is not None
    return HostKind.BUNDLED if bundled else HostKind.DOTNET


def probe(server: RegisteredServer, seconds: float = PROBE_SECONDS) -> Probe:
    """Probe the loopback addresses until the Host can be used at one; else the most informative result."""
    deadline = time.monotonic() + seconds
    best = Probe(problem=REFUSED)
    for address in ADDRESSES:
        try:
            found = _ask_at(address, server, deadline)
        except NoHttpAnswer as problem:
            found = Probe(problem=str(problem))
        if found.connected:
            return found
        if _information(found) > _information(best):
            best = found
    return best


def _information(found: Probe) -> tuple[bool, bool]:
    """A sort key: the Host's own answer, then silence or another program's answer, are better than a refusal."""
    return found.answers, found.problem != REFUSED


def _ask_at(address: str, server: RegisteredServer, deadline: float) -> Probe:
    patience = min(deadline, time.monotonic() + FIRST_ANSWER_SECONDS)
    told = _health_page(http_request(address, server.port, "GET", "/health", deadline=patience))
    if told is not None and told["processId"] != server.process_id:
        return Probe(problem=f"is answered by process {told['processId']}, not by the registered {server.process_id}")
    if told is None and not listens_on(server.process_id, server.port):
        return Probe(problem=f"is answered by another process than the registered {server.process_id}")
    # The beginning of the answer is enough, because it may be a stream that never ends.
    mcp = http_request(address, server.port, "GET", "/mcp", deadline=deadline, enough=lambda _: True).status != 404
    if told is not None:
        return _probe_of(told).replace(answers=True, mcp=mcp, kind=HostKind.BUNDLED)
    return _Conversation(address, server.port, deadline).run() if mcp else Probe(answers=True)


def _health_page(answer: HttpAnswer) -> dict[str, object] | None:
    """The report of a bundled Host; None if the page is another server's."""
    report = _object(answer.body) if answer.status == 200 else None
    return report if report and isinstance(report.get("processId"), int) and "addIns" in report else None


def _probe_of(report: Mapping[str, object]) -> Probe:
    """The probe from a health report; both kinds of Hosts use the same names."""
    add_ins, tools, channel = report.get("addIns"), report.get("toolCount"), report.get("ideChannelConnected")
    counted = tools if isinstance(tools, int) else 0
    problems = report.get("problems")
    return Probe(
        status=_text(report.get("status")),
        version=_text(report.get("hostVersion")),
        add_ins=tuple(_add_in(entry) for entry in _objects(add_ins)),
        loading=report.get("loading") is True,
        busy=tuple(filter(None, map(_text, problems))) if isinstance(problems, list) else (),
        discovery_error=_text(report.get("discoveryError")),
        tool_count=max(0, counted - 1),  # without the health tool, which is not a tool of the workspace
        ide_channel_connected=channel if isinstance(channel, bool) else None,
        bind=_text(report.get("bind")),
    )


def _add_in(entry: Mapping[str, object]) -> HostAddIn:
    path = _text(entry.get("assemblyPath"))
    return HostAddIn(
        _text(entry.get("name")) or path or "an add-in without a name",
        _text(entry.get("version")),
        path,
        entry.get("loaded") is True,
        (_text(entry.get("error")) or "").strip() or None,
    )


class _McpFailed(Exception):
    """A request was answered with an error; the message is a sentence."""


class _Conversation:
    """A short session at /mcp, which is closed at the end so that the Host does not keep it."""

    def __init__(self, address: str, port: int, deadline: float) -> None:
        self._place = (address, port)
        self._deadline = deadline
        self._headers = {"Content-Type": "application/json", "Accept": "application/json, text/event-stream"}
        self._last_id = 0

    def run(self) -> Probe:
        known = Probe(answers=True, mcp=True)
        try:
            name, version = self._introduce()
            known = known.replace(kind=HostKind.DOTNET if name == DOTNET_SERVER else None, version=version)
            tools = self._tools()
            known = known.replace(tool_count=sum(name != HEALTH_TOOL for name in tools))
            told = _probe_of(self._health() if HEALTH_TOOL in tools else {})
            return told.replace(
                answers=True,
                mcp=True,
                kind=known.kind,
                version=told.version or version,
                tool_count=known.tool_count,
            )
        except _McpFailed as failure:
            return known.replace(error=str(failure))
        except NoHttpAnswer as problem:
            return known.replace(problem=str(problem))
        finally:
            self._close()

    def _introduce(self) -> tuple[str | None, str | None]:
        """Begin the session; the name and version of the server."""
        client = {"name": "uno-devserver health", "version": "1"}
        hello = {"protocolVersion": PROTOCOL_VERSION, "capabilities": {}, "clientInfo": client}
        result = self._request("initialize", hello)
        spoken = _text(result.get("protocolVersion"))
        self._headers |= {"MCP-Protocol-Version": spoken} if spoken else {}
        server = result.get("serverInfo")
        self._post({"jsonrpc": "2.0", "method": "notifications/initialized"})
        return (_text(server.get("name")), _text(server.get("version"))) if isinstance(server, dict) else (None, None)

    def _tools(self) -> list[str]:
        names: list[str] = []
        page: dict[str, object] = {}
        for _ in range(MAX_PAGES):
            result = self._request("tools/list", page)
            tools, cursor = result.get("tools"), result.get("nextCursor")
            names += [str(tool.get("name")) for tool in _objects(tools)]
            if not isinstance(cursor, str):
                break
            page = {"cursor": cursor}
        return names

    def _health(self) -> Mapping[str, object]:
        """The report that the health tool returns as text; empty if the text is something else."""
        content = self._request("tools/call", {"name": HEALTH_TOOL, "arguments": {}}).get("content")
        texts = [text for part in _objects(content) if (text := _text(part.get("text")))]
        return next((report for text in texts if (report := _object(text))), {})

    def _request(self, method: str, params: Mapping[str, object]) -> Mapping[str, object]:
        self._last_id += 1
        answer = self._post({"jsonrpc": "2.0", "id": self._last_id, "method": method, "params": params})
        message = _message(answer.body, self._last_id)
        result = message.get("result") if message else None
        if isinstance(result, dict):
            session = answer.headers.get("mcp-session-id")
            self._headers |= {"Mcp-Session-Id": session} if session else {}
            return result
        error = message.get("error") if message else None
        said = error.get("message") if isinstance(error, dict) else None
        reason = f": {said[:QUOTED_CHARACTERS]}" if isinstance(said, str) else ""
        raise _McpFailed(f"'{method}' at /mcp was answered with HTTP status {answer.status}{reason}")

    def _post(self, message: Mapping[str, object]) -> HttpAnswer:
        def has_answer(body: bytes) -> bool:
            return _message(body, message.get("id")) is not None

        body = json.dumps(message).encode()
        return http_request(
            *self._place, "POST", "/mcp", deadline=self._deadline, headers=self._headers, body=body, enough=has_answer
        )

    def _close(self) -> None:
        if "Mcp-Session-Id" in self._headers:
            try:
                http_request(*self._place, "DELETE", "/mcp", deadline=self._deadline, headers=self._headers)
            except NoHttpAnswer:
                pass  # the Host removes idle sessions by itself


def _message(body: bytes, number: object) -> dict[str, object] | None:
    """The answer to request `number` in a JSON object or a stream of events; None if there is none."""
    events = body.replace(b"\r\n", b"\n").split(b"\n\n")
    data = (b"\n".join(line[5:] for line in event.split(b"\n") if line.startswith(b"data:")) for event in events)
    for text in (body, *data):
        message = _object(text) or {}
        # An error of the transport belongs to no request; the .NET Host gives it an empty id.
        if message.get("id") in (number, "", None) and ("result" in message or "error" in message):
            return message
    return None


def _object(text: str | bytes) -> dict[str, object] | None:
    try:
        value = json.loads(text)
    except (ValueError, RecursionError):
        return None
    return value if isinstance(value, dict) else None


def _objects(value: object) -> list[dict[str, object]]:
    return [entry for entry in value if isinstance(entry, dict)] if isinstance(value, list) else []


def _text(value: object) -> str | None:
    return value if isinstance(value, str) and value else None
