"""Ends the proxy when its client has ended, even if the input stays open.

A killed client closes its end of our input, unless another process has inherited it. The parent process may be a
wrapper (uvx, npx, a shell), which can outlive the client or be killed itself. So the client is looked for above the
wrappers, and the proxy ends with it or with one of them. Our own commands that run a proxy name themselves as client.
"""

from __future__ import annotations

import os
import select
import time

from ...system.ancestry import ancestors, wait_for_end

TYPE_CHECKING = False
if TYPE_CHECKING:
    from collections.abc import Callable, Sequence

    from ...system.ancestry import Ancestor
    from .input import ClientInput

# The variable with the process id of our own command that runs the proxy for its page, and sends it no messages.
CLIENT = "UNO_DEVSERVER_CLIENT"

NOTICE_SECONDS = 0.15  # the main thread notices the end of its input at once, unless it processes a long line

# Programs that always run another program.
RUNNERS = frozenset(
    {"uv", "uvx", "pipx", "npx", "npm", "pnpm", "pnpx", "yarn", "bunx", "dnx", "env", "nohup", "setsid", "timeout"}
)
# Our own launchers on Windows, which run as long as we do.
RUNNERS |= {"uno-devserver", "uno.devserver", "uno_devserver", "py"}
# Programs that run one of those, or an AI client.
INTERPRETERS = frozenset({"node", "bun", "python", "dotnet"})
# The scripts that make an interpreter a runner.
RUNNER_SCRIPTS = RUNNERS | {"npx-cli", "npm-cli", "pnpm-cli", "tool"}
# Programs that are a wrapper if they are given a program or script; else they are a terminal.
SHELLS = frozenset({"sh", "bash", "dash", "zsh", "ksh", "ash", "fish", "busybox", "cmd", "powershell", "pwsh"})
_ENDINGS = (".exe", ".cmd", ".bat", ".js", ".cjs", ".mjs", ".py", ".dll")


def sends_nothing() -> bool:
    """Whether the client is a command of ours, which started this process and sends no messages."""
    return os.environ.get(CLIENT) == str(os.getppid())


def watch_client(parent: int, end: Callable[[str], None]) -> None:
    """Block until the client or a wrapper has ended, then call `end`. `parent` is the process that started us."""
    chain = client_chain(ancestors(), os.environ.get(CLIENT, ""))
    if os.getppid() != parent:  # it has ended, and the system has given us another parent
        end(f"the process {parent}, which started us, has ended")
    elif chain:
        ended = wait_for_end(chain)
        end(f"the process {ended.pid} ({ended.name}), which we belong to, has ended")


def watch_ends(source: int, sink: int, reads: Callable[[], int], end: Callable[[str], None]) -> None:
    """Call `end` when the client has closed our output; or our input, and the main thread does not read on.

    `reads` returns the number of its reads so far.
    """
    closed = select.poll()
    closed.register(source, 0)  # `poll` reports in any case that they are closed
    closed.register(sink, 0)
    if source not in dict(closed.poll()):
        end("the client does not read any more")
    _end_unread(reads, end)


def watch_input(source: ClientInput, end: Callable[[str], None]) -> None:
    """The same without `poll`, of an input that a thread reads: that one sees its end, though the main thread hangs."""
    if source.wait_closed():
        _end_unread(lambda: source.reads, end)


def _end_unread(reads: Callable[[], int], end: Callable[[str], None]) -> None:
    """Call `end` as soon as the main thread reads no more; something may be left to be read."""
    before = -1
    while before != (before := reads()):
        time.sleep(NOTICE_SECONDS)
    end("the client closed our input")


def client_chain(above: Sequence[Ancestor], client: str = "") -> tuple[Ancestor, ...]:
    """Return the wrappers right above us and the client above them; `client` is its process id, if known."""
    chain: list[Ancestor] = []
    for ancestor in above:
        chain.append(ancestor)
        if str(ancestor.pid) == client or not is_wrapper(ancestor):
            break
    return tuple(chain)


def is_wrapper(ancestor: Ancestor) -> bool:
    name = _program(ancestor.name)
    words = ancestor.arguments[1:]
    if name in RUNNERS:
        return True
    if name in SHELLS:
        return any(not word.startswith("-") for word in words)
    if name in INTERPRETERS:
        script = next((word for word in words if not word.startswith("-")), "")
        return _program(script) in RUNNER_SCRIPTS
    return False


def _program(path: str) -> str:
    """Return the name of a program without folder, version and extension: `/usr/bin/python3.11` is python."""
    # npm replaces its process name by its whole command line.
    name = path.replace("\\", "/").rpartition("/")[2].partition(" ")[0].lower()
    for ending in _ENDINGS:
        name = name.removesuffix(ending)
    return name.rstrip("0123456789.") or name
