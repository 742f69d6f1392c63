"""The Host as a whole: what it is made of, the order in which that begins, and the order in which it ends.

It is in the registry before it answers and out of it when it is gone; add-ins load beside everything else; whatever
ends it, it is gone within the bounds of `lifetime`.
"""

from __future__ import annotations

import asyncio
import os
import socket
import sys
import time
from collections.abc import Callable, Mapping
from typing import TYPE_CHECKING, Any

from .. import __version__
from ..instances.registry import (
    has_sidecar,
    new_entry,
    prune,
    register,
    unregister,
    update_channel,
    write_sidecar,
)
from ..issues import UserError
from ..protocol.http.guard import guard_for
from ..protocol.http.server import HttpServer, ListenProblem, open_sockets
from ..protocol.peer_info import ServerInfo
from ..protocol.server.streamable_http import StreamableHttp
from ..system.files import FileProblem
from ..system.folders import folders
from ..system.log import log
from ..system.nonblocking_output import nonblocking_output
from ..system.ports import PortTaken
from ..system.run import stop_all
from .addins.invocation import invoke_apart
from .addins.loader import chosen_addins
from .addins.manager import AddInManager
from .app_launches import LaunchMonitor, register_message, timeout_from
from .banner import banner, say
from .flags import HostFlags
from .health import health_report
from .ide.channel import ChannelProblem, IdeChannel
from .ide.message_types import environment_status
from .lifetime import Lifetime, force_exit_after
from .mcp_service import HostService
from .remote_control.endpoint import RemoteControl
from .remote_control.frames import Members
from .routes import Routes

if TYPE_CHECKING:
    from .addins.handlers import IdeHandler


SERVER_NAME = "Uno Server"  # as the .NET Host calls itself
INSTRUCTIONS = "Tools of the workspace's dev server. Call uno_health when something does not work."

# Pages of apps that run as WebAssembly are isolated; they could not load our answers otherwise.
ISOLATION = (("Cross-Origin-Embedder-Policy", "require-corp"), ("Cross-Origin-Opener-Policy", "same-origin"))

REGISTRY_SECONDS = 2.0  # a small file takes milliseconds, unless it lies on a network that is gone


def serve(configuration: HostFlags) -> int:
    """Be the Host until something ends it; returns the exit code."""
    if configuration.port is None:
        raise UserError("MissingValue", "A Host needs --httpPort.", "Write --httpPort <port>; 0 picks a free one.")
    workspace = configuration.workspace or _current_folder()
    try:
        sockets = open_sockets(configuration.port, configuration.bind)
    except PortTaken as taken:
        message = f"Port {configuration.port} is taken by another program."
        raise UserError("PortTaken", message, "Choose another --httpPort; 0 picks a free one.") from taken
    except ListenProblem as problem:
        raise UserError("CannotListen", f"{problem}.", "Choose another --httpPort or --bind.") from problem
    with nonblocking_output():
        return asyncio.run(_Host.run(configuration, sockets, workspace))


def _current_folder() -> str:
    try:
        return os.getcwd()
    except OSError as error:
        message = "The current folder does not exist any more."
        raise UserError("NoCurrentFolder", message, "Change into a folder that exists, or use --workingDir.") from error


class _Host:
    def __init__(self, configuration: HostFlags, sockets: list[socket.socket], workspace: str) -> None:
        self._configuration = configuration
        self._workspace = workspace
        self._registry = folders().registry
        self._started = time.monotonic()
        self.lifetime = Lifetime()
        self._addins = AddInManager(
            workspace=workspace, solution=configuration.solution, settings=configuration.settings
        )
        self._launches = LaunchMonitor(timeout_from(os.environ))
        messages = IdeMessages(self._launches, self._addins)
        self._ide = IdeChannel(on_message=messages.handle, status=self._environment_status)
        messages.ide = self._ide
        info = ServerInfo(SERVER_NAME, __version__, "uno-devserver Host", INSTRUCTIONS)
        self._mcp = StreamableHttp(HostService(self._addins, info, self._health))
        self._remote_control = RemoteControl(
            version=__version__,
            launches=self._launches,
            workspace=configuration.workspace,
            processors=lambda: self._addins.processors,
            ide=self._ide,
        )
        self._addins.send_to_ide = messages.send
        self._addins.announce = self._announce
        routes = Routes(self._mcp, self._remote_control, self._launches, self._ide, self._rebound, self._checked_health)
        self._http = HttpServer(
            routes.handle,
            sockets,
            guard=guard_for(configuration.bind),
            extra_headers=ISOLATION,
            any_user=configuration.bind is not None,
        )
        self._loading: asyncio.Task[None] | None = None

    @classmethod
    async def run(cls, configuration: HostFlags, sockets: list[socket.socket], workspace: str) -> int:
        host = cls(configuration, sockets, workspace)
        host.lifetime.heed_signals()
        forced_exit = 1
        try:
            await host._open()
            reason = await host.lifetime.ended()
            log.info(f"The Host ends because {reason.text}.")
            forced_exit = reason.forced_exit
        finally:
            force_exit_after(host.lifetime.policy.shutdown_seconds, forced_exit)
            await host._close()
        return 0

    async def _open(self) -> None:
        configuration = self._configuration
        try:
            await self._ide.bind(configuration.ide_channel)
        except ChannelProblem as problem:
            next_step = "Choose another --ideChannel, or leave it out."
            raise UserError("IdeChannelRefused", str(problem), next_step) from problem
        if configuration.parent:
            self.lifetime.follow_parent(configuration.parent)
        elif configuration.ide_channel:  # one that takes over later did not start us, so it does not end us
            self.lifetime.follow_ide(self._ide.wait_disconnected_for)
        await self._at_registry(self._sign_in)
        await self._http.start()
        self._introduce()
        self._loading = asyncio.create_task(self._load_addins())

    async def _close(self) -> None:
        """Out of the registry first: nobody should come any more."""
        await self._at_registry(self._sign_out)
        stop_all()  # MSBuild may be at work
        await self._mcp.close()
        await self._http.stop()
        await self._ide.close()
        self._launches.close()
        if self._loading is not None:
            self._loading.cancel()
        await self._addins.stop()

    async def _at_registry(self, work: Callable[[], None]) -> None:
        """In a thread, and not for ever: signals are heard and clients served also when the disk does not answer."""
        try:
            await asyncio.wait_for(invoke_apart(work), REGISTRY_SECONDS)
        except TimeoutError:
            log.warn(f"The registry {self._registry} did not answer within {REGISTRY_SECONDS:g} s.")

    def _sign_in(self) -> None:
        self._say_whose()  # first: whoever finds the entry knows whose it is
        configuration = self._configuration
        entry = new_entry(
            self._http.port,
            parent=configuration.parent,
            solution=configuration.solution,
            ide_channel=self._ide.channel_id,
        )
        try:
            say(f"DevServer registered: {register(self._registry, entry)}")
        except FileProblem as problem:
            log.warn(f"Failed to register DevServer: {problem}. Other programs will not find it.")

    def _say_whose(self) -> None:
        """Of a Host that was started by hand, without a solution, nothing else tells which folder it serves."""
        launched = self._configuration.parent or has_sidecar(self._registry, os.getpid())
        if self._configuration.solution is not None or launched:
            return
        channel = self._ide.channel_id
        try:
            write_sidecar(self._registry, os.getpid(), ide_channel=channel, workspace=self._workspace, new=True)
        except FileExistsError:
            pass  # its launcher, which knows more, was faster
        except FileProblem as problem:
            log.debug(f"The registry does not show the folder of this Host: {problem}.")

    def _sign_out(self) -> None:
        try:
            unregister(self._registry, os.getpid())
            prune(self._registry)
        except FileProblem as problem:
            log.warn(f"Failed to unregister DevServer: {problem}.")

    def _introduce(self) -> None:
        facts = (
            ("Version", __version__),
            ("Runtime", f"Python {sys.version.split()[0]}"),
            ("Solution", self._configuration.solution or "none"),
            ("HTTP Port", str(self._http.port)),
            ("IDE Channel", self._ide.state),
        )
        say(banner(facts))
        say(f"Now listening on: http://{self._configuration.bind or 'localhost'}:{self._http.port}")

    async def _load_addins(self) -> None:
        paths, problem = await chosen_addins(self._configuration, os.environ)
        self._addins.load(paths, problem)
        await self._addins.start()
        if self._ide.connected:
            self._ide.send("DevelopmentEnvironmentStatusIdeMessage", self._environment_status())

    def _environment_status(self) -> dict[str, Any]:
        status = self._addins.status
        failed = "; ".join(f"{addin.name}: {addin.error}" for addin in status.addins if addin.error)
        return environment_status(discovery_error=status.discovery_error, load_error=failed or None)

    def _announce(self, method: str, params: Any) -> None:
        if method == "notifications/resources/updated":
            self._mcp.resource_updated(params["uri"])
        else:
            self._mcp.broadcast(method, params)

    def _rebound(self, channel_id: str) -> None:
        try:
            update_channel(self._registry, os.getpid(), channel_id)
        except FileProblem as problem:
            log.warn(f"The registry does not show the IDE channel {channel_id}: {problem}.")

    async def _checked_health(self) -> dict[str, Any]:
        await self._addins.check()
        return self._health()

    def _health(self) -> dict[str, Any]:
        more = {
            "processId": os.getpid(),
            "port": self._http.port,
            "solutionPath": self._configuration.solution,
            "workspaceDirectory": self._workspace,
            "uptimeSeconds": round(time.monotonic() - self._started, 1),
            "toolCount": 1 + self._addins.tool_count,
            "sessions": self._mcp.session_count,
            "apps": self._remote_control.connection_count,
            "launches": self._launches.snapshot(),
        }
        return health_report(self._addins.status, version=__version__, ide_connected=self._ide.connected, more=more)


APP_LAUNCH = "AppLaunchRegisterIdeMessage"
HANDLER_SECONDS = 5.0  # a handler that takes longer goes on beside the next message


class IdeMessages:
    ide: IdeChannel  # given after both are made: each needs the other

    def __init__(self, launches: LaunchMonitor, addins: AddInManager) -> None:
        self._launches = launches
        self._addins = addins
        self._work: set[asyncio.Future[None]] = set()  # held here, or it could be collected before it has run

    async def handle(self, type_name: str, body: dict[str, Any]) -> None:
        if type_name == APP_LAUNCH and not register_message(Members(body), self._launches):
            log.warn(f"The IDE announced an app without saying which: {APP_LAUNCH} needs Mvid, Ide and Plugin.")
        for handler in self._addins.ide_handlers:
            if handler.type_name == type_name:
                await self._hand_over(body, handler)

    def send(self, type_name: str, body: Mapping[str, Any]) -> bool:
        """Whether somebody was there to hear it."""
        self.ide.send(type_name, body)
        return self.ide.connected

    async def _hand_over(self, body: dict[str, Any], handler: IdeHandler) -> None:
        work = asyncio.ensure_future(handler.handler(body, self.ide))
        self._work.add(work)
        work.add_done_callback(self._work.discard)
        _, unfinished = await asyncio.wait([work], timeout=HANDLER_SECONDS)
        if unfinished:
            log.warn(f"[{handler.addin}] {handler.type_name} of the IDE is in work for {HANDLER_SECONDS:g} s and more.")
