"""The faults that are injected into a world; most schedule a repair."""

from __future__ import annotations

import os
import random
import shutil
import signal
import socket
import time
from collections.abc import Callable, Sequence
from pathlib import Path
from typing import TypeVar

from chaos.clients import Client
from chaos.page import PageWatch
from chaos.plan import Fault
from chaos.upstreams.authorization import REFUSE
from chaos.world import World
from chaos.worlds import ConfiguredWorld, FarWorld, SeveralWorld, SharedWorld, SignedInWorld

T = TypeVar("T")

FAR_PAST, FAR_FUTURE = 86400.0, 4102444800.0  # 1970 and 2100


def inject(world: World, fault: Fault) -> None:
    FAULTS[fault.kind](world, fault)


# --- processes


def kill_server(world: World, fault: Fault) -> None:
    pid = chosen(world.servers(), fault)
    if isinstance(world, FarWorld) and pid == world.far.pid:
        world.kill_far()
        world.later(fault.pick, world.restart_far)
    elif pid is not None:
        world.signal(pid, signal.SIGKILL)


def stop_server(world: World, fault: Fault) -> None:
    pid = chosen(world.servers(), fault)
    if pid is not None:
        stop(world, pid, fault, goes_on=isinstance(world, FarWorld) and pid in world.others())


def stop(world: World, pid: int, fault: Fault, *, goes_on: bool = False) -> None:
    world.signal(pid, signal.SIGSTOP)
    after = signal.SIGCONT if goes_on or fault.manner == "goes on" else signal.SIGKILL
    world.later(fault.seconds, lambda: world.signal(pid, after))


def kill_standby(world: World, fault: Fault) -> None:
    """The second server goes; or the one that it stands by for goes at the same moment."""
    for standby, serving in standbys(world, fault):
        world.signal(standby, signal.SIGKILL)
        if fault.manner == "and the server":
            world.signal(serving, signal.SIGKILL)


def stop_standby(world: World, fault: Fault) -> None:
    for standby, _ in standbys(world, fault):
        stop(world, standby, fault)


def standbys(world: World, fault: Fault) -> list[tuple[int, int]]:
    """A standby and its server, behind a client that has reported both, if they still run."""
    servers = a_client(world, fault).health.get("servers", ())
    pairs = [(each["upstream"]["standby"], each["upstream"]["processId"]) for each in servers if each.get("upstream")]
    running = set(world.servers())
    return [pair for pair in pairs if running.issuperset(pair)]


def order_server(world: World, fault: Fault) -> None:
    world.order(fault.manner)


def kill_owner(world: World, fault: Fault) -> None:
    """The proxy that has started the Host goes, and its client with it; those who adopted the Host stay."""
    hosts = {parent(pid): pid for pid in world.servers()}
    owners = [client for client in world.clients if client.process.proxy in hosts]
    client = chosen(owners, fault)
    if client is None:
        return
    host = hosts[client.process.proxy or 0]
    if fault.manner == "and its Host":
        world.signal(host, signal.SIGKILL)
    client.proxy_dies()
    world.replace(client)


def take_port(world: World, fault: Fault) -> None:
    """The Host dies, and another program takes its port before the next one starts."""
    assert isinstance(world, SharedWorld)
    ports = world.ports()
    pid = chosen(sorted(ports), fault)
    if pid is None:
        return
    world.signal(pid, signal.SIGKILL)
    other = socket.socket()
    other.setsockopt(socket.SOL_SOCKET, socket.SO_REUSEADDR, 1)
    deadline = time.monotonic() + 1.0
    while time.monotonic() < deadline:
        try:
            other.bind(("127.0.0.1", ports[pid]))
            other.listen(1)
            break
        except OSError:
            time.sleep(0.005)  # the old one still has it, or the next one already
    world.later(fault.seconds, other.close)


# --- clients


def kill_client(world: World, fault: Fault) -> None:
    client = a_client(world, fault)
    client.dies(pipes_stay=fault.manner == "its ends stay open")
    world.replace(client)


def kill_proxy(world: World, fault: Fault) -> None:
    client = a_client(world, fault)
    client.proxy_dies()
    world.replace(client)


def stop_proxy(world: World, fault: Fault) -> None:
    """Its client waits, and so does every proxy that asks it about its Host."""
    proxy = a_client(world, fault).process.proxy
    if proxy is not None:
        world.signal(proxy, signal.SIGSTOP)
        world.later(fault.seconds, lambda: world.signal(proxy, signal.SIGCONT))


def read_slowly(world: World, fault: Fault) -> None:
    a_client(world, fault).read_slowly(fault.seconds)


def talk_nonsense(world: World, fault: Fault) -> None:
    a_client(world, fault).talk_nonsense(fault.pick)


def take_back(world: World, fault: Fault) -> None:
    a_client(world, fault).take_back()


def watch_page(world: World, fault: Fault) -> None:
    client = a_client(world, fault)
    page = world.page(client)
    if page is not None:
        PageWatch(page, client, fault.manner, fault.seconds).start()


# --- code


def edit(world: World, fault: Fault) -> None:
    world.edit(f"{fault.pick:.9f}")


def touch(world: World, fault: Fault) -> None:
    os.utime(world.source)


def edit_there_and_back(world: World, fault: Fault) -> None:
    before = world.source.read_bytes()
    world.edit(f"{fault.pick:.9f}")
    world.source.write_bytes(before)


def break_build(world: World, fault: Fault) -> None:
    world.break_source()
    world.later(fault.seconds, lambda: world.edit(f"mended {fault.pick:.9f}"))


def break_start(world: World, fault: Fault) -> None:
    """It can be built, but the new one does not start."""
    world.break_start()
    world.later(fault.seconds, lambda: world.edit(f"mended {fault.pick:.9f}"))


def edit_sibling(world: World, fault: Fault) -> None:
    assert isinstance(world, ConfiguredWorld)
    world.server.say_in_sibling(f"{fault.pick:.9f}")


def break_sibling(world: World, fault: Fault) -> None:
    assert isinstance(world, ConfiguredWorld)
    server = world.server
    server.say_in_sibling("broken", "build fails")
    world.later(fault.seconds, lambda: server.say_in_sibling(f"mended {fault.pick:.9f}"))


# --- files


def spoil_config(world: World, fault: Fault) -> None:
    """The user's own file, which only the user repairs."""
    if world.config_content is None and not world.config.exists():
        world.config.write_bytes(b"{}")
    spoil(world.config, fault)
    world.later(fault.seconds, lambda: restore_config(world))


def leave_server_out(world: World, fault: Fault) -> None:
    assert isinstance(world, SeveralWorld)
    world.leave_out("spare" if fault.pick < 0.5 else "far")
    world.later(fault.seconds, lambda: restore_config(world))


def restore_config(world: World) -> None:
    remove(world.config)
    if world.config_content is not None:
        world.config.write_bytes(world.config_content)


def spoil_state(world: World, fault: Fault) -> None:
    spoil_one(world, world.state_files(), fault)


def spoil_catalogue(world: World, fault: Fault) -> None:
    spoil_one(world, [path for path in world.state_files() if path.parent.name == "catalogue"], fault)


def spoil_registry(world: World, fault: Fault) -> None:
    assert isinstance(world, SharedWorld)
    spoil_one(world, world.registry, fault)


def move_clock(world: World, fault: Fault) -> None:
    moment = FAR_PAST if fault.manner == "the past" else FAR_FUTURE
    for path in world.state_files():
        try:
            os.utime(path, (moment, moment))
        except OSError:
            pass  # it was quicker


def fill_disk(world: World, fault: Fault) -> None:
    world.disk.fill(world.processes())
    world.later(fault.seconds, lambda: world.disk.empty(world.processes()))


def spoil_one(world: World, paths: Sequence[Path], fault: Fault) -> None:
    path = chosen(paths, fault)
    if path is None:
        return
    spoil(path, fault)
    if fault.manner == "a folder":
        world.later(fault.seconds, lambda: remove(path) if path.is_dir() else None)


def spoil(path: Path, fault: Fault) -> None:
    """Damage a file in the manner of the fault, unless it was removed meanwhile."""
    try:
        content = path.read_bytes()
        if fault.manner in ("deleted", "a folder", "a link to itself"):
            remove(path)
            if fault.manner == "a folder":
                path.mkdir()
            elif fault.manner == "a link to itself":
                path.symlink_to(path)
        else:
            path.write_bytes(_spoiled(content, fault))
    except OSError:
        pass


def _spoiled(content: bytes, fault: Fault) -> bytes:
    if fault.manner == "cut in half":
        return content[: len(content) // 2]
    if fault.manner == "random bytes":
        return random.Random(fault.pick).randbytes(len(content) or 1)
    return b"" if fault.manner == "empty" else b"[[1, null], 2]"


# --- the way to a server at a URL


def delay_way(world: World, fault: Fault) -> None:
    assert isinstance(world, FarWorld)
    world.relay.slow_until = time.monotonic() + fault.seconds


def cut_way(world: World, fault: Fault) -> None:
    assert isinstance(world, FarWorld)
    world.relay.cut()
    world.later(fault.seconds, world.relay.restore)


def garble_way(world: World, fault: Fault) -> None:
    assert isinstance(world, FarWorld)
    world.relay.garble = fault.manner


# --- the sign-in to a server at a URL


def expire_tokens(world: World, fault: Fault) -> None:
    assert isinstance(world, SignedInWorld)
    world.ask_authorization("expire")


def end_sign_in(world: World, fault: Fault) -> None:
    assert isinstance(world, SignedInWorld)
    world.ask_authorization("revoke")


def stop_sign_in_server(world: World, fault: Fault) -> None:
    assert isinstance(world, SignedInWorld)
    if fault.manner == "goes on":
        stop(world, world.authorization.pid, fault)
    elif fault.manner == "refuses":
        refuse = world.chaos / REFUSE
        refuse.touch()
        world.later(fault.seconds, lambda: refuse.unlink(missing_ok=True))
    else:
        world.authorization.kill()
        world.authorization.wait()
        world.later(fault.seconds, world.restart_authorization)


FAULTS: dict[str, Callable[[World, Fault], None]] = {
    "kill the server": kill_server,
    "stop the server": stop_server,
    "order the server": order_server,
    "kill the owner": kill_owner,
    "take the port": take_port,
    "kill the client": kill_client,
    "kill the proxy": kill_proxy,
    "stop the proxy": stop_proxy,
    "client reads slowly": read_slowly,
    "client talks nonsense": talk_nonsense,
    "client takes a call back": take_back,
    "edit the source": edit,
    "touch the source": touch,
    "edit there and back": edit_there_and_back,
    "break the build": break_build,
    "break the start": break_start,
    "spoil the config": spoil_config,
    "spoil a state file": spoil_state,
    "spoil the catalogue": spoil_catalogue,
    "spoil the registry": spoil_registry,
    "move the clock of the caches": move_clock,
    "fill the disk": fill_disk,
    "watch the page": watch_page,
    "edit a sibling": edit_sibling,
    "break a sibling": break_sibling,
    "kill the standby": kill_standby,
    "stop the standby": stop_standby,
    "leave a server out": leave_server_out,
    "expire the tokens": expire_tokens,
    "end the sign-in": end_sign_in,
    "stop the sign-in server": stop_sign_in_server,
    "delay the way": delay_way,
    "cut the way": cut_way,
    "garble the way": garble_way,
}


def chosen(among: Sequence[T], fault: Fault) -> T | None:
    return among[int(fault.pick * len(among))] if among else None


def a_client(world: World, fault: Fault) -> Client:
    return world.clients[int(fault.pick * len(world.clients))]


def parent(pid: int) -> int:
    try:
        return int(Path(f"/proc/{pid}/stat").read_text("ascii", "replace").rpartition(")")[2].split()[1])
    except OSError:
        return 0


def remove(path: Path) -> None:
    if path.is_dir() and not path.is_symlink():
        shutil.rmtree(path, ignore_errors=True)
    else:
        path.unlink(missing_ok=True)
