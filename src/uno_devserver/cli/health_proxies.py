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
    yield f"  Tools: {status.get('toolCount')}, {_origin(status)}"
    if status.get("httpEndpoint"):
        yield f"  HTTP: {status['httpEndpoint']}"
    if status.get("controlChannel"):
        yield f"  Control Channel: {status['controlChannel']}"
    if "hotReload" in status:  # a proxy of an older version says nothing of it
        yield f"  Hot Reload: {_hot_reload(_object(status['hotReload']))}"
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


def _hot_reload(told: Mapping[str, object]) -> str:
    if not told:
        return "off"
    if told.get("owner") is False:
        return "on, by the proxy that started the Host"
    packages = told.get("packages")
    counts = [_object(package).get("files") for package in packages] if isinstance(packages, list) else []
    files = sum(count for count in counts if isinstance(count, int))
    last = _object(told.get("lastRestart"))
    failed = " (failed)" if last.get("ok") is False else ""
    watched = f"{files} file{'' if files == 1 else 's'} watched"
    return ", ".join(("on", str(told.get("strategy")), watched, f"last reload {last.get('at') or 'never'}{failed}"))


def _origin(status: Status) -> str:
    if status.get("listsFresh"):
        return "as the upstream has them"
    age = status.get("catalogueAgeSeconds")
    return "from no catalogue" if age is None else f"from a catalogue that is {age} s old"


def _object(value: object) -> Mapping[str, object]:
    return value if isinstance(value, dict) else {}
