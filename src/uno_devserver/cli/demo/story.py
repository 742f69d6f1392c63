"""What happens in the demo, step by step. Each step proves what it says, or raises Failed."""

from __future__ import annotations

import difflib
import json
import os

from ...system.files import read_bytes, read_text
from ...system.values import Value
from .failure import expect
from .texts import ADD_IN, CLIENT_CONFIG, COUNTS, COUNTS_AFTER_EDIT, EDIT, TOOL, UNO, UNO_ADD_INS

TYPE_CHECKING = False
if TYPE_CHECKING:
    from collections.abc import Callable
    from typing import Any

    from .agent import Agent, Heard
    from .narrator import Narrator
    from .stage import Stage

PROXY = ("--mcp-app", "--wait-calls")
LIST_CHANGED = "notifications/tools/list_changed"
MAX_LISTS = 10  # a list grows once; more would be a proxy that never settles


class Step(Value):
    name: str  # for programs
    title: str  # for people
    act: Callable[[], None]


class Story:
    def __init__(self, stage: Stage, narrator: Narrator) -> None:
        self._stage = stage
        self._tell = narrator
        self.agent: Agent | None = None  # the one that works at this moment
        self._host = 0  # the process that answered last
        self.steps = (
            Step("discovery", "What does an Uno workspace run?", self._discover),
            Step("tools-before-host", "An AI client starts. It gets tools before there is a server.", self._begin),
            Step("first-call", "Meanwhile the server, the Host, has started. A first call.", self._use),
            Step("second-start", "The client quits and starts again. Now it has all tools at once.", self._again),
            Step("healing", "Somebody kills the Host: kill -9. The session lives.", self._heal),
            Step("hot-reload", "The add-in is edited. The next call runs the new code.", self._edit),
            Step("registration", "An AI client is told of all this, and forgets it again.", self._register),
        )

    def _discover(self) -> None:
        output, milliseconds = self._stage.run("disco", "--addins-only", folder=UNO)
        names = tuple(path.replace("\\", "/").rpartition("/")[2] for path in output.split(";"))
        expect(names == UNO_ADD_INS, f"the add-ins {' and '.join(UNO_ADD_INS)}", f"disco printed {output!r}")
        self._tell.measured("$ uno-devserver disco --addins-only", milliseconds)
        self._tell.proof(f"{' and '.join(names)}, found in the NuGet cache. MSBuild takes 10 to 30 s to say the same.")

    def _begin(self) -> None:
        _, milliseconds = self._stage.run("trust")
        self._tell.measured("$ uno-devserver trust      (its add-in, 18 lines of Python, may run)", milliseconds)
        tools = self._start()
        expect("uno_health" in tools and TOOL not in tools, "the proxy's own tools", f"there were {tools}")
        self._tell.proof(f"{len(tools)} tools of the proxy itself. No Host was running when they came.")

    def _use(self) -> None:
        agent = self._present()
        tools: list[str] = []
        for _ in range(MAX_LISTS):
            changed = agent.hear(LIST_CHANGED)
            tools = agent.tools()
            if TOOL in tools:
                break
        expect(TOOL in tools, f"the Host's tool {TOOL}", f"the tools are {tools}")
        self._tell.measured(f"{len(tools)} tools now, since the start of the client", _since(agent, changed))
        self._call(COUNTS, "the Host's own tool")

    def _again(self) -> None:
        milliseconds = self._present().quit()
        left = self._stage.signed_in()
        expect(not left, "no Host without its client", f"process {list(left)} still ran")
        self._tell.measured("The client quits: proxy and Host are gone", milliseconds)
        tools = self._start()
        expect(TOOL in tools, f"{TOOL} among the tools at once", f"there were {tools}")
        self._tell.proof(
            f"All {len(tools)} tools, from the catalogue. A call waits for the Host that is being started:"
        )
        self._call(COUNTS, "the Host's own tool")

    def _heal(self) -> None:
        agent, killed = self._present(), self._host
        self._stage.kill(killed)
        self._call(COUNTS, "the same answer as before")
        expect(agent.is_running and self._host != killed, "another Host", f"process {self._host} answered")
        self._tell.proof(f"Host {killed} is gone, Host {self._host} answers. Same session, same proxy ({agent.pid}).")

    def _edit(self) -> None:
        path, before = self._stage.path(ADD_IN), self._host
        os.utime(path)
        self._tell.done("$ touch todos.py")
        self._call(COUNTS, "the same answer as before")
        expect(self._host == before, f"Host {before} to go on after a touch", f"process {self._host} answered")
        self._tell.proof("The same Host: content counts, time stamps do not.")
        old, new = EDIT
        text = read_text(path)
        with open(path, "w", encoding="utf-8", newline="\n") as file:
            file.write(text.replace(old, new))
        self._tell.lines([f"- {old}", f"+ {new}"])
        self._call(COUNTS_AFTER_EDIT, "what the edited add-in finds")
        expect(self._host != before, "another Host after the edit", f"process {before} answered again")
        self._tell.proof(f"Host {self._host} has the new code. No restart, no new session for the client.")

    def _register(self) -> None:
        path = self._stage.path(CLIENT_CONFIG)
        original = read_bytes(path)
        _, milliseconds = self._stage.run("mcp", "install", "cursor", "--release")
        difference = _difference(original.decode(), read_text(path))
        kept = not any(line.startswith("-") for line in difference)
        expect('"UnoApp"' in "".join(difference) and kept, "UnoApp added, and nothing else", f"this: {difference}")
        self._tell.measured("$ uno-devserver mcp install cursor --release", milliseconds)
        self._tell.lines(difference)
        _, milliseconds = self._stage.run("mcp", "uninstall", "cursor")
        same = read_bytes(path) == original
        expect(same, f"{os.path.basename(path)} as it was", f"it holds {read_text(path)!r}")
        self._tell.measured("$ uno-devserver mcp uninstall cursor", milliseconds)
        self._tell.proof("The file is what it was, byte for byte: the comments and the other server, too.")

    def _start(self) -> list[str]:
        """Start the proxy as a client does; its first tools, which must have come before any Host was there."""
        self._tell.done(f"$ uno-devserver {' '.join(PROXY)}")
        self.agent = self._stage.agent(*PROXY)
        tools, answer = self.agent.introduce()
        early = [pid for pid, since in self._stage.signed_in().items() if since <= answer.at]
        expect(not early, "tools before any Host was running", f"Host {early} had signed in before they came")
        self._tell.measured("> initialize, tools/list", _since(self.agent, answer))
        return tools

    def _call(self, expected: dict[str, int], what: str) -> None:
        answer, milliseconds = self._present().call(TOOL)
        counts, self._host = _answered(answer)
        expect(counts == expected, f"{what}: {expected}", f"{TOOL} said {counts}")
        self._tell.measured(f"> {TOOL}: {json.dumps(counts)}", milliseconds)

    def _present(self) -> Agent:
        assert self.agent is not None, "no client has started yet"
        return self.agent


def _answered(answer: dict[str, Any]) -> tuple[dict[str, int], int]:
    """What the add-in counted, and the process that it ran in."""
    return answer["counts"], answer["process"]


def _since(agent: Agent, heard: Heard) -> float:
    return (heard.after - agent.launched) * 1000


def _difference(before: str, after: str) -> list[str]:
    """The lines that differ, and one around them."""
    lines = difflib.unified_diff(before.splitlines(), after.splitlines(), n=1, lineterm="")
    return [line for line in lines if not line.startswith(("---", "+++", "@@"))]
