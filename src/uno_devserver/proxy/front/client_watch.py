"""Noticing that the client is gone where the end of the input does not tell.

A client that is killed cannot close anything. Its end of our input is closed with it, unless some other process has
inherited it; and the process that started us may be a wrapper (uvx, npx, a shell), which stays behind, or is killed
itself. So we look past the wrappers for the client, and end when it ends, or one of them. A command of ours that runs a
proxy tells it who the client is: itself, whoever started it.
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

CLIENT = "UNO_DEVSERVER_CLIENT"  # the variable with the process id of the client, where that is known

NOTICE_SECONDS = 0.05  # the main thread sees the end of its input at once
READ_REST_SECONDS = 2.0  # for what a client has written before it closed it

# Programs that run what they are told to, whatever they are told.
RUNNERS = frozenset(
    {"uv", "uvx", "pipx", "npx", "npm", "pnpm", "pnpx", "yarn", "bunx", "dnx", "env", "nohup", "setsid", "timeout"}
)
# Our own launchers on Windows, which stay for as long as we do.
RUNNERS |= {"uno-devserver", "uno.devserver", "uno_devserver", "py"}
# Programs that run one of those, or an AI client.
INTERPRETERS = frozenset({"node", "bun", "python", "dotnet"})
# How an interpreter is told to be a runner.
RUNNER_SCRIPTS = RUNNERS | {"npx-cli", "npm-cli", "pnpm-cli", "tool"}
# Programs that run what they are told to; without being told, they are somebody's terminal.
SHELLS = frozenset({"sh", "bash", "dash", "zsh", "ksh", "ash", "fish", "busybox", "cmd", "powershell", "pwsh"})
_ENDINGS = (".exe", ".cmd", ".bat", ".js", ".cjs", ".mjs", ".py", ".dll")


def watch_client(parent: int, end: Callable[[str], None]) -> None:
    """Blocks until the client has ended, or a wrapper around us, and then calls `end`; `parent` is who started us."""
    chain = client_chain(ancestors(), os.environ.get(CLIENT, ""))
    if os.getppid() != parent:  # it has ended before we could look, and the system has given us another one
        end(f"the process {parent}, which started us, has ended")
    elif chain:
        ended = wait_for_end(chain)
        end(f"the process {ended.pid} ({ended.name}), which we belong to, has ended")


def watch_input(source: int, end: Callable[[str], None]) -> None:
    """Blocks until the input is closed and the main thread, which reads it, has not noticed: it hangs."""
    if not hasattr(select, "poll"):  # Windows: a thread of its own reads there
        return
    closed = select.poll()
    closed.register(source, 0)  # its end is reported in any case
    closed.poll()
    unread = select.poll()
    unread.register(source, select.POLLIN)
    deadline = time.monotonic() + READ_REST_SECONDS
    while time.monotonic() < deadline and dict(unread.poll(0)).get(source, 0) & select.POLLIN:
        time.sleep(NOTICE_SECONDS)  # there is something left to be read
    time.sleep(NOTICE_SECONDS)
    end("the client closed our input")


def client_chain(above: Sequence[Ancestor], client: str = "") -> tuple[Ancestor, ...]:
    """The wrappers right above us, and the client above them; `client` is its process id, if it has told that."""
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
    """What a program is called, whatever its folder, its version and the system: `/usr/bin/python3.11` is python."""
    # npm puts its whole command line where its name was.
    name = path.replace("\\", "/").rpartition("/")[2].partition(" ")[0].lower()
    for ending in _ENDINGS:
        name = name.removesuffix(ending)
    return name.rstrip("0123456789.") or name
