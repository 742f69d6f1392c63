"""What a proxy says of itself, for people. Its status comes from a file, which may say anything."""

from __future__ import annotations

TYPE_CHECKING = False
if TYPE_CHECKING:
    from collections.abc import Iterator, Mapping

    from ..proxy.health.status_file import Status

SHOWN_LINES = 5  # of what a server printed last; --json has them all


def proxy_lines(status: Status) -> Iterator[str]:
    restarts = status.get("restarts")
    again = f", {restarts} restart{'' if restarts == 1 else 's'}" if restarts else ""
    yield f"- PID: {status.get('processId')} ({status.get('state')}{again})"
    clients = status.get("clients")
    if isinstance(clients, list) and clients:
        yield f"  Client: {', '.join(map(str, clients))}"
    upstream = _object(status.get("upstream"))
    if upstream:
        yield f"  Upstream: {_upstream(upstream)}"
    if "toolCount" in status:  # one that has just started does not know it yet
        yield f"  Tools: {status['toolCount']}, {_origin(status)}"
    if status.get("httpEndpoint"):
        yield f"  HTTP: {status['httpEndpoint']}"
    if status.get("inspector"):
        yield f"  Inspector: {status['inspector']}"
    if status.get("controlChannel"):
        yield f"  Control Channel: {status['controlChannel']}"
    if "hotReload" in status:  # a proxy of an older version says nothing of it
        yield from _hot_reload(_object(status["hotReload"]), status.get("hotReloadOff"))
    timeline = _object(status.get("timeline"))
    if timeline:
        yield "  Timeline: " + ", ".join(f"{name} {reached} ms" for name, reached in timeline.items())
    ending = _object(status.get("lastExit"))
    if ending:
        yield f"  Last Exit: {ending.get('reason')}"
        lines = ending.get("lastLines")
        yield from (f"    {line}" for line in (lines if isinstance(lines, list) else [])[-SHOWN_LINES:])


def _upstream(upstream: Mapping[str, object]) -> str:
    pid, endpoint = upstream.get("processId"), upstream.get("endpoint")
    parts = [str(upstream.get("kind") or "<unknown>")]
    parts += [f"process {pid}"] if pid else []
    parts += [str(endpoint)] if endpoint else []
    return ", ".join((*parts, "started by it" if upstream.get("owned") else "found by it"))


def _hot_reload(told: Mapping[str, object], off: object) -> Iterator[str]:
    if not told:
        yield f"  Hot Reload: off{f', because {off}' if off else ''}"
        return
    if told.get("owner") is False:
        yield "  Hot Reload: on, by the proxy that started the Host"
        return
    yield f"  Hot Reload: on, {told.get('strategy')}, {_watched(told.get('packages'))}"
    build, restart, client = (_object(told.get(name)) for name in ("lastBuild", "lastRestart", "client"))
    if build:
        printed = f"; see {build['logFile']}" if build.get("logFile") else ""
        yield f"  Last Build: {build.get('named')}, {_outcome(build)}{printed}"
    yield f"  Last Reload: {_outcome(restart) if restart else 'none since the proxy started'}"
    if client:
        yield f"  Client Process: {_client(client)}"


def _watched(packages: object) -> str:
    counts = [_object(package).get("files") for package in packages] if isinstance(packages, list) else []
    known = [count for count in counts if isinstance(count, int)]
    if not known:
        return "files counted at the first call"
    return f"{sum(known)} file{'' if sum(known) == 1 else 's'} watched"


def _outcome(what: Mapping[str, object]) -> str:
    """A problem of what went well: not all of the new code works."""
    why = what.get("problem")
    became = "failed" if what.get("ok") is False else "in part" if why else "well"
    return f"{what.get('at')}, {became}{f': {why}' if why else ''}"


def _client(client: Mapping[str, object]) -> str:
    pid = f" (process {client['processId']})" if client.get("processId") else ""
    state = "does not run" if not client.get("running") else f"{'ready' if client.get('ready') else 'not ready'}{pid}"
    problem = client.get("problem")
    return f"{state}; see {client.get('logFile')}" if problem else state


def _origin(status: Status) -> str:
    if status.get("listsFresh"):
        return "as the upstream has them"
    age = status.get("catalogueAgeSeconds")
    return "from no catalogue" if age is None else f"from a catalogue that is {age} s old"


def _object(value: object) -> Mapping[str, object]:
    return value if isinstance(value, dict) else {}
