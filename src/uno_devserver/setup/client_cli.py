"""Asks a client's own command which servers it sees, or to register them; imported only on request.

The client is run in the project's folder, without a terminal and within a time limit, so there is always an answer. It
sees a server if the name of the server's entry is a word in the output, or a name in JSON.
"""

from __future__ import annotations

import json
import os
import re

from ..system.programs import find_program
from ..system.run import run, stop_all
from ..system.text import decode_output
from ..system.values import Value
from .config_file import read_place
from .expected_entry import expected
from .plan.changes import Action, Operation
from .profiles import Use
from .server_definition import EntrySpec

TYPE_CHECKING = False
if TYPE_CHECKING:
    from collections.abc import Iterator, Mapping, Sequence

    from .paths import Here
    from .profiles import Profile
    from .server_definition import ServerDefinition, VariantChoice

SECONDS = 30.0  # clients take one to five seconds; some connect to every server first
KEEP_BYTES = 1024 * 1024  # a list of servers has a few hundred bytes
AT_ONCE = 4  # the number of clients that run at the same time, because they are large programs
MAX_LINES = 8  # the number of lines of the output that are reported
MAX_LINE = 200
MAX_DEPTH = 8  # the limit for nested JSON; a list of servers has three levels

_COLOUR = re.compile(r"\x1b\[[0-9;?]*[ -/]*[@-~]|\x1b\][^\x07\x1b]*(?:\x07|\x1b\\)|\x1b[()][0-9A-B]")
# Lines with the reason why a client ignores servers; other lines are reported only if none names a server.
_EXPLAINS = re.compile(r"untrusted|not trusted|malformed|\binvalid\b|not a valid|\[error\]", re.IGNORECASE)
_NAMES = ("name", "id", "key")  # the members that name a server in JSON lists
_STATES = ("status", "state", "enabled", "disabled", "disabled_reason", "connected", "approved", "trusted", "error")


class ClientAnswer(Value):
    client: str
    command: str  # the command as it is typed in a shell
    sees: Mapping[str, bool]  # for each server, whether the client sees it
    said: tuple[str, ...] = ()  # the client's output about the servers
    problem: str = ""  # the reason why there is no answer


def ask_all(profiles: Sequence[Profile], servers: tuple[ServerDefinition, ...]) -> tuple[ClientAnswer, ...]:
    """Ask all clients that can list their servers, several at a time; the answers are in the order of the profiles."""
    asked = [profile for profile in profiles if profile.cli is not None and profile.cli.list]
    if len(asked) < 2:
        return tuple(ask(profile, servers) for profile in asked)
    from concurrent.futures import ThreadPoolExecutor

    with ThreadPoolExecutor(AT_ONCE) as threads:
        try:
            return tuple(threads.map(lambda profile: ask(profile, servers), asked))
        except KeyboardInterrupt:
            stop_all()  # so that the threads end
            raise


def ask(profile: Profile, servers: tuple[ServerDefinition, ...]) -> ClientAnswer:
    """Ask one client; the answer has a problem if the client cannot be asked or fails."""
    if profile.cli is None or not profile.cli.list:
        return ClientAnswer(profile.id, "", {}, problem=f"{profile.name} has no command that lists its servers")
    name = profile.cli.executable
    command = " ".join((name, *profile.cli.list))
    environ = {**os.environ, **profile.cli.environ}
    path = find_program(name, environ)
    if path is None:
        return ClientAnswer(profile.id, command, {}, problem=f"'{name}' is not on PATH")
    line = (path, *profile.cli.list)
    outcome = run(line, cwd=profile.project, environ=environ, seconds=SECONDS, keep_bytes=KEEP_BYTES)
    printed = _plain(outcome.output)
    if outcome.exit_code is None:
        return ClientAnswer(profile.id, command, {}, tuple(_some(printed)), f"'{command}' {outcome.problem}")
    names = _names(profile, servers)
    sees, said = _heard(printed, names)
    if outcome.exit_code != 0 and not any(sees.values()):
        problem = f"'{command}' ended with exit code {outcome.exit_code}"
        return ClientAnswer(profile.id, command, {}, tuple(_some(printed)), problem)
    return ClientAnswer(profile.id, command, sees, said)


def registers(profile: Profile, here: Here) -> bool:
    """Whether the client has no file to edit, but a command on PATH that registers servers."""
    cli = profile.cli
    if profile.places or cli is None or not (cli.add or cli.remove):
        return False
    return find_program(cli.executable, here.environ) is not None


def register(
    profile: Profile, servers: tuple[ServerDefinition, ...], choice: VariantChoice | None, *, dry_run: bool
) -> tuple[Operation, ...]:
    """Have the client's command add the servers, or, without a choice, remove them; one after the other."""
    assert profile.cli is not None
    sees, operations = ask(profile, servers).sees, []
    for server in servers:
        words = profile.cli.remove if choice is None else profile.cli.add.get(server.transport, ())
        if choice is not None and sees.get(server.name):
            outcome = Action.SKIPPED, "Already registered"
        elif choice is None and sees.get(server.name) is False:
            outcome = Action.NOT_FOUND, f"{profile.name} does not list it"
        elif not words:
            outcome = Action.SKIPPED, f"{profile.name} has no command for that"
        elif choice is None:
            outcome = _run(profile, _filled(words, server.name, EntrySpec()), Action.REMOVED, dry_run)
        else:
            outcome = _run(profile, _filled(words, server.name, expected(server, choice)), Action.CREATED, dry_run)
        operations.append(Operation(server.name, profile.id, outcome[0], None, outcome[1]))
    return tuple(operations)


def _run(profile: Profile, words: list[str], done: Action, dry_run: bool) -> tuple[Action, str]:
    assert profile.cli is not None
    environ = {**os.environ, **profile.cli.environ}
    path, command = find_program(profile.cli.executable, environ), " ".join((profile.cli.executable, *words))
    if dry_run:
        return done, f"'{command}' would be run"
    if path is None:
        return Action.ERROR, f"'{profile.cli.executable}' is not on PATH"
    outcome = run((path, *words), cwd=profile.project, environ=environ, seconds=SECONDS, keep_bytes=KEEP_BYTES)
    if outcome.exit_code == 0:
        return done, f"By '{command}'"
    said = _some(_plain(outcome.output))
    why = outcome.problem or f"ended with exit code {outcome.exit_code}"
    return Action.ERROR, f"'{command}' {why}" + (f": {said[-1]}" if said else "")


def _filled(words: tuple[str, ...], name: str, says: EntrySpec) -> list[str]:
    values = {"{name}": name, "{command}": says.command, "{url}": says.url}
    return [one for word in words for one in (says.args if word == "{args...}" else (values.get(word, word),))]


def _names(profile: Profile, servers: tuple[ServerDefinition, ...]) -> dict[str, set[str]]:
    """The names of each server's entries in the files that the client reads, or its own name if there are none."""
    found: dict[str, set[str]] = {server.name: set() for server in servers}
    for place in profile.places:
        if place.use is not Use.LEGACY:
            config = read_place(place, servers)
            for server in servers:
                found[server.name].update(match.entry.name for match in config.entries_of(server))
    return {server: names or {server} for server, names in found.items()}


def _plain(output: bytes) -> str:
    return _COLOUR.sub("", decode_output(output))


def _heard(printed: str, names: Mapping[str, set[str]]) -> tuple[dict[str, bool], tuple[str, ...]]:
    listed = _in_json(printed)
    if listed is None:
        return _in_lines(printed, names)
    found = dict(_named_objects(listed))
    sees = {server: not keys.isdisjoint(found) for server, keys in names.items()}
    ours = [name for keys in names.values() for name in sorted(keys) if name in found]
    return sees, tuple(_shortened(f"{name}: {_state(found[name])}") for name in ours)


def _in_json(printed: str) -> object:
    """The JSON in the output, possibly after warnings; None if there is none."""
    for start in re.finditer(r"^[\[{]", printed, re.MULTILINE):
        try:
            value, _ = json.JSONDecoder().raw_decode(printed, start.start())
        except (ValueError, RecursionError):
            continue
        return value
    return None


def _named_objects(value: object, depth: int = 0) -> Iterator[tuple[str, Mapping[str, object]]]:
    if depth > MAX_DEPTH:
        return
    if isinstance(value, list):
        for one in value:
            if isinstance(one, dict):
                name = next((one[key] for key in _NAMES if isinstance(one.get(key), str)), None)
                if name is not None:
                    yield name, one
    elif isinstance(value, dict):
        for key, one in value.items():
            if isinstance(one, dict):
                yield key, one
            yield from _named_objects(one, depth + 1)


def _state(settings: Mapping[str, object]) -> str:
    """The state of a server in the client's words, e.g. `enabled true`."""
    words = [f"{key} {json.dumps(settings[key])}" for key in _STATES if settings.get(key) is not None]
    return ", ".join(words) or "listed"


def _in_lines(printed: str, names: Mapping[str, set[str]]) -> tuple[dict[str, bool], tuple[str, ...]]:
    patterns = {server: _word(keys) for server, keys in names.items()}
    lines = _lines(printed)
    sees = {server: any(map(pattern.search, lines)) for server, pattern in patterns.items()}
    said = [line for line in lines if _EXPLAINS.search(line) or any(one.search(line) for one in patterns.values())]
    return sees, tuple(_shortened(line) for line in said[:MAX_LINES]) or tuple(_some(printed))


def _word(names: set[str]) -> re.Pattern[str]:
    """A pattern for one of the names that is not part of another name, of a path or of an address."""
    either = "|".join(re.escape(name) for name in sorted(names))
    return re.compile(rf"(?<![\w./\\@-])(?:{either})(?![\w/\\@-])")


def _some(printed: str) -> list[str]:
    return [_shortened(line) for line in _lines(printed)[:MAX_LINES]]


def _lines(printed: str) -> list[str]:
    return [line.strip() for line in printed.splitlines() if line.strip()]


def _shortened(line: str) -> str:
    return line if len(line) <= MAX_LINE else line[: MAX_LINE - 1] + "…"
