"""The whole Host: its parts, and the order in which they start and end.

The Host is in the registry before it answers, and leaves the registry before it closes anything. Add-ins load while
everything else is already running. Whatever ends the Host, it exits within the limits of `lifetime`.
"""

from __future__ import annotations

import asyncio
import os
import socket
import sys
import threading
import time
from collections.abc import Callable
from typing import TYPE_CHECKING, Any

from .. import __version__
from ..instances.registry import (
    PORTS_BELOW,
    has_sidecar,
    new_entry,
    prune,
    read_members,
    register,
    sidecar_name,
    text_member,
    unregister,
    update_channel,
    write_sidecar,
)
from ..issues import UserError
from ..protocol.http.guard import guard_for
from ..protocol.http.server import HttpServer, ListenProblem, are_open, open_sockets
from ..protocol.peer_info import ServerInfo
from ..protocol.server.streamable_http import StreamableHttp
from ..system.event_loop import Tasks, run_in_thread
from ..system.files import FileProblem
from ..system.folders import folders
from ..system.log import log
from ..system.nonblocking_output import nonblocking_output
from ..system.ports import PortTaken
from ..system.run import stop_all
from .addins.loader import chosen_addins
from .addins.manager import AddInManager
from .app_launches import LaunchMonitor, register_message, timeout_from
from .assemblies import assembly_reads
from .banner import banner, say
from .flags import HostFlags
from .health import health_report
from .ide.channel import ChannelProblem, IdeChannel
from .ide.json_rpc import parse_type
from .ide.message_types import APP_LAUNCH, STATUS, environment_status
from .lifetime import Lifetime, force_exit_after
from .mcp_service import HostService
from .remote_control.endpoint import RemoteControl
from .remote_control.frames import Members
from .routes import Routes

if TYPE_CHECKING:
    from .addins.handlers import IdeHandler


SERVER_NAME = "Uno Server"  # the name of the .NET Host
INSTRUCTIONS = "Tools of the workspace's dev server. Call uno_health when something does not work."

# Pages of WebAssembly apps are isolated from other origins, and cannot load our answers without these headers.
ISOLATION = (("Cross-Origin-Embedder-Policy", "require-corp"), ("Cross-Origin-Opener-Policy", "same-origin"))

PORTS_SECONDS = 2.0  # between two looks at the solution: whoever adds a project takes longer to build and start it
REGISTRY_SECONDS = 2.0  # writing a small file takes milliseconds, unless a network drive is lost
HANDLER_SECONDS = 5.0  # a slower handler of an add-in continues while the IDE's next message is handled


def serve(flags: HostFlags) -> int:
    """Run the Host until something ends it; return the exit code."""
    if flags.port is None:
        raise UserError("MissingValue", "A Host needs --httpPort.", "Write --httpPort <port>; 0 picks a free one.")
    workspace = flags.workspace or _current_folder()
    try:
        sockets = open_sockets(flags.port, flags.bind)
    except PortTaken as taken:
        message = f"Port {flags.port} is taken by another program."
        raise UserError("PortTaken", message, "Choose another --httpPort; 0 picks a free one.") from taken
    except ListenProblem as problem:
        raise UserError("CannotListen", f"{problem}.", "Choose another --httpPort or --bind.") from problem
    with nonblocking_output():
        return asyncio.run(_Host.run(flags, sockets, workspace))


def _current_folder() -> str:
    try:
        return os.getcwd()
    except OSError as error:
        message = "The current folder does not exist any more."
        raise UserError("NoCurrentFolder", message, "Change into a folder that exists, or use --workingDir.") from error


class _Host:
    def __init__(self, flags: HostFlags, sockets: list[socket.socket], workspace: str) -> None:
        self._flags = flags
        self._workspace = workspace
        self._registry = folders().registry
        self._registry_lock = threading.Lock()  # one write at a time, and none after the Host has unregistered
        self._unregistered = False
        self._started = time.monotonic()
        self._lifetime = Lifetime()
        self._launches = LaunchMonitor(timeout_from(os.environ))
        self._ide = IdeChannel(on_message=self._handle_ide_message, status=self._environment_status)
        self._ide_handlers = Tasks()
        self._addins = AddInManager(
            workspace=workspace,
            solution=flags.solution,
            settings=flags.settings,
            announce=self._announce,
            send_to_ide=self._ide.send,
        )
        info = ServerInfo(SERVER_NAME, __version__, "uno-devserver Host", INSTRUCTIONS)
        self._mcp = StreamableHttp(HostService(self._addins, info, self._health))
        reads = assembly_reads()
        self._remote_control = RemoteControl(
            version=__version__,
            launches=self._launches,
            assembly_reads=reads,
            workspace=flags.workspace,
            processors=lambda: self._addins.processors,
            ide=self._ide,
        )
        routes = Routes(
            self._mcp,
            self._remote_control,
            self._launches,
            self._ide,
            self._record_channel,
            self._checked_health,
            reads,
        )
        self._open_to_network = opened = are_open(sockets)
        self._http = HttpServer(
            routes.handle,
            sockets,
            guard=guard_for(flags.bind if opened else None),
            extra_headers=ISOLATION,
            any_user=opened,
        )
        self._loading: asyncio.Task[None] | None = None
        self._ports: asyncio.Task[None] | None = None

    @classmethod
    async def run(cls, flags: HostFlags, sockets: list[socket.socket], workspace: str) -> int:
        host = cls(flags, sockets, workspace)
        host._lifetime.handle_signals()
        forced_exit = 1
        try:
            await host._open()
            reason = await host._lifetime.ended()
            log.info(f"The Host ends because {reason.text}.")
            forced_exit = reason.forced_exit
        finally:
            force_exit_after(host._lifetime.limits.shutdown_seconds, forced_exit)
            await host._close()
        return 0

    async def _open(self) -> None:
        flags = self._flags
        try:
            await self._ide.bind(flags.ide_channel)
        except ChannelProblem as problem:
            next_step = "Choose another --ideChannel, or leave it out."
            raise UserError("IdeChannelRefused", str(problem), next_step) from problem
        if flags.parent:
            self._lifetime.follow_parent(flags.parent)
        elif flags.ide_channel:  # an IDE that binds a channel later did not start this Host, so it does not end it
            self._lifetime.follow_ide(self._ide.wait_disconnected_for)
        await self._at_registry(self._register)
        await self._http.start()
        self._introduce()
        self._loading = asyncio.create_task(self._load_addins())
        if flags.solution is not None:
            self._ports = asyncio.create_task(self._keep_ports(flags.solution))

    async def _close(self) -> None:
        await self._at_registry(self._unregister)  # first, so that no new client finds the Host
        stop_all()  # MSBuild may be running
        await self._mcp.close()
        await self._http.stop()
        await self._ide.close()
        self._launches.close()
        for task in (self._loading, self._ports):
            if task is not None:
                task.cancel()
        await self._addins.stop()

    async def _at_registry(self, work: Callable[[], None]) -> None:
        """Run `work` in a thread and wait for a limited time; a hanging disk delays neither clients nor signals."""
        try:
            await asyncio.wait_for(run_in_thread(work), REGISTRY_SECONDS)
        except TimeoutError:
            log.warn(f"The registry {self._registry} did not answer within {REGISTRY_SECONDS:g} s.")

    def _register(self) -> None:
        self._write_sidecar()  # first: a program that finds the entry also finds the workspace
        entry = new_entry(
            self._http.port,
            parent=self._flags.parent,
            solution=self._flags.solution,
            ide_channel=self._ide.channel_id,
        )
        try:
            say(f"DevServer registered: {register(self._registry, entry)}")
        except FileProblem as problem:
            log.warn(f"Failed to register DevServer: {problem}. Other programs will not find it.")

    def _write_sidecar(self) -> None:
        """Record the workspace of a Host that was started by hand without a solution, whose entry does not name it."""
        launched = self._flags.parent or has_sidecar(self._registry, os.getpid())
        if self._flags.solution is not None or launched:
            return
        channel = self._ide.channel_id
        try:
            write_sidecar(self._registry, os.getpid(), ide_channel=channel, workspace=self._workspace, new=True)
        except FileExistsError:
            pass  # the launcher has written it meanwhile, and knows more
        except FileProblem as problem:
            log.debug(f"The registry does not show the folder of this Host: {problem}.")

    def _unregister(self) -> None:
        with self._registry_lock:
            self._unregistered = True
            try:
                unregister(self._registry, os.getpid())
                prune(self._registry)
            except FileProblem as problem:
                log.warn(f"Failed to unregister DevServer: {problem}.")

    async def _record_channel(self) -> None:
        await self._at_registry(self._write_channel)

    def _write_channel(self) -> None:
        with self._registry_lock:
            if self._unregistered:
                return
            channel_id = self._ide.channel_id  # of several that were bound at once, the last one
            try:
                update_channel(self._registry, os.getpid(), channel_id)
            except FileProblem as problem:  # the IDE can connect all the same
                log.warn(f"The registry does not show the IDE channel {channel_id}: {problem}.")

    def _introduce(self) -> None:
        facts = (
            ("Version", __version__),
            ("Runtime", f"Python {sys.version.split()[0]}"),
            ("Solution", self._flags.solution or "none"),
            ("HTTP Port", str(self._http.port)),
            ("IDE Channel", self._ide.state),
        )
        say(banner(facts))
        say(f"Now listening on: http://{self._flags.bind or 'localhost'}:{self._http.port}")

    async def _load_addins(self) -> None:
        paths, problem = await chosen_addins(self._flags, os.environ)
        self._addins.load(paths, problem)
        await self._addins.start()
        if self._ide.connected:
            self._ide.send(STATUS, self._environment_status())

    async def _keep_ports(self, solution: str) -> None:
        """Write the port into projects that are added to the solution, if the launcher of this Host has done so."""
        from ..instances.csproj_user import SolutionPorts

        ports: SolutionPorts | None = None
        while True:
            await asyncio.sleep(PORTS_SECONDS)
            if ports is None:
                launched = read_members(os.path.join(self._registry, sidecar_name(os.getpid()))) or {}
                folder = text_member(launched.get(PORTS_BELOW))
                if folder is None:
                    continue
                ports = SolutionPorts(solution, self._http.port, folder)
            for warning in await run_in_thread(ports.update):
                log.warn(warning)

    def _environment_status(self) -> dict[str, Any]:
        status = self._addins.status
        failed = "; ".join(f"{addin.name}: {addin.error}" for addin in status.addins if addin.error)
        return environment_status(discovery_error=status.discovery_error, load_error=failed or None)

    async def _handle_ide_message(self, type_name: str, body: dict[str, Any]) -> None:
        if type_name == APP_LAUNCH and not register_message(Members(body), self._launches):
            log.warn(f"The IDE announced an app without saying which: {APP_LAUNCH} needs Mvid, Ide and Plugin.")
        for handler in self._addins.ide_handlers:
            # A message has only its class name; an add-in may have registered the full name of the type.
            if parse_type(handler.type_name)[0] == type_name:
                await self._run_ide_handler(handler, body)

    async def _run_ide_handler(self, handler: IdeHandler, body: dict[str, Any]) -> None:
        _, unfinished = await asyncio.wait(
            [self._ide_handlers.start(handler.handler(body, self._ide))], timeout=HANDLER_SECONDS
        )
        if unfinished:
            limit = f"{HANDLER_SECONDS:g} s"
            log.warn(f"[{handler.addin}] the handler of {handler.type_name} has been running for more than {limit}.")

    def _announce(self, method: str, params: Any) -> None:
        if method == "notifications/resources/updated":
            self._mcp.resource_updated(params["uri"])
        else:
            self._mcp.broadcast(method, params)

    async def _checked_health(self) -> dict[str, Any]:
        await self._addins.check()
        return self._health()

    def _health(self) -> dict[str, Any]:
        more = {
            "processId": os.getpid(),
            "port": self._http.port,
            "bind": self._flags.bind if self._open_to_network else None,
            "solutionPath": self._flags.solution,
            "workspaceDirectory": self._workspace,
            "uptimeSeconds": round(time.monotonic() - self._started, 1),
            "toolCount": 1 + self._addins.tool_count,
            "sessions": self._mcp.session_count,
            "apps": self._remote_control.connection_count,
            "launches": self._launches.snapshot(),
        }
        return health_report(self._addins.status, version=__version__, ide_connected=self._ide.connected, more=more)
