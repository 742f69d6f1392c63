"""`mcp doctor`: starts the registered servers as the client would, and shows whether they work."""

from __future__ import annotations

from ...setup.client_detection import detected
from ...setup.doctor.examination import examine, has_entries
from ...setup.profiles import HTTP
from ...system.text import one_line
from ..interrupts import end_as_by_ctrl_c
from ..progress import say
from ..result import Result
from ..terminal import Style, folded, styled, terminal_width, with_short_paths
from .arguments import PROTOCOL, mcp_arguments

TYPE_CHECKING = False
if TYPE_CHECKING:
    from collections.abc import Iterator

    from ...setup.doctor.examination import Examination
    from ...setup.profiles import Profile
    from ..parse import Invocation
    from .arguments import McpArguments

NOTHING = "No AI client found here has an entry for {}."
INSTALL = "Register one with 'uno-devserver mcp install <client>'."


def run(invocation: Invocation) -> Result:
    request = mcp_arguments(invocation, others=True)
    profiles = (request.client,) if request.client is not None else _registered(request)
    end_as_by_ctrl_c()  # a signal must not leave started servers behind
    found = []
    for profile in profiles:
        say(f"Starting what {profile.name} would start")
        here, force = request.here_of(profile), invocation.on("force")
        found.append((profile, examine(profile, request.servers, request.variant, here, force=force)))
    data = {
        "version": PROTOCOL,
        "ide": request.client.id if request.client is not None else None,
        "entries": [_data(one) for _, examinations in found for one in examinations],
    }
    if not found:
        names = " or ".join(server.name for server in request.servers)
        return Result({**data, "nextSteps": [INSTALL]}, f"{NOTHING.format(names)}\n{INSTALL}", 1)
    works = all(one.ok for _, examinations in found for one in examinations)
    lines = [line for profile, examinations in found for line in _lines(profile, examinations)]
    return Result(data, "\n".join(lines), 0 if works else 1)


def _registered(request: McpArguments) -> tuple[Profile, ...]:
    known = (one for one in request.definitions.profiles if detected(one, request.here))
    return tuple(profile for profile in known if has_entries(profile, request.servers))


def _data(one: Examination) -> dict[str, object]:
    return {
        "ide": one.ide,
        "server": one.server,
        "key": one.key,
        "path": one.path,
        "transport": one.transport,
        "command": one.command,
        "cwd": one.cwd,
        "ok": one.ok,
        "health": one.health,
        "milliseconds": dict(one.milliseconds),
        "tools": one.tools,
        "limitSeconds": one.limit_seconds,
        "problem": one.problem or None,
        "nextStep": one.next_step or None,
    }


def _lines(profile: Profile, examinations: tuple[Examination, ...]) -> Iterator[str]:
    yield styled(one_line(f"{profile.name} ({profile.id})"), Style.HEADING)
    for one in examinations:
        name, style = one_line(one.key or one.server or "file"), _style(one)
        first, *others = folded(one_line(f"{name}: {_verdict(one)}"), "  ", "    ")
        yield f"  {name}: {styled(first[len(name) + 4 :], style)}"
        yield from (styled(line, style) for line in others)
        if one.command is not None:
            does, would = ("reaches", "would reach") if one.transport == HTTP else ("starts", "would start")
            yield from _detail(f"{would if one.refused else does} {one.command}")
        if one.cwd is not None:
            yield from _detail(f"in {one.cwd}")
        if one.path is not None:
            yield from _detail(f"as {one.path} says")
        for sentence in (one.problem, one.next_step):
            if sentence:
                yield from folded(with_short_paths(one_line(sentence)), "    ", "    ")


def _detail(text: str) -> Iterator[str]:
    """The detail, folded on a terminal; one line in a pipe, where programs search by line."""
    line = with_short_paths(one_line(text))
    return iter([f"    {line}"]) if terminal_width() is None else folded(line, "    ", "      ")


def _style(one: Examination) -> Style:
    if one.refused or one.path is None or one.in_part:
        return Style.WARN
    return Style.GOOD if one.ok else Style.BAD


def _verdict(one: Examination) -> str:
    if one.path is None:
        return "not registered"
    if one.refused:
        return "not tried"
    if one.health is not None and (one.tools is None or not one.ok):
        answers = f"answers in {sum(one.milliseconds.values())} ms"
        if one.ok:
            return f"{answers}, and waits for a workspace to be named"
        if one.tools is None:
            return f"{answers}, but has no server"
        no_tools = one.tools == 0 and one.health == "Degraded"  # the server runs, and has loaded none of its add-ins
        return f"{answers}, but {'its server has no tools' if no_tools else 'its server cannot be used'}"
    if not one.ok and one.tools is None:
        return "does not work"
    times = ", ".join(f"{name} {spent} ms" for name, spent in one.milliseconds.items())
    waits = f"; it waits {one.limit_seconds:g} s" if one.limit_seconds is not None else ""
    tools = "1 tool" if one.tools == 1 else f"{one.tools} tools"
    how = "works in part" if one.in_part else "works" if one.ok else "is too slow"
    return f"{how}, {tools} ({times}{waits})"
