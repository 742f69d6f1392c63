"""Matches apps that an IDE launched with the apps that connect.

A launch is identified by the app's module id, its platform and whether it is debugged; the oldest of equal launches is
matched first. An app may connect before its launch is announced. Launches and connections are kept for a limited time.
"""

from __future__ import annotations

import asyncio
import re
import time
from collections import deque
from collections.abc import Callable, Mapping

from ..system.dotnet_formats import to_time
from ..system.log import log
from ..system.values import Value
from .remote_control.frames import Members

DEFAULT_TIMEOUT_SECONDS = 60.0  # a debug build on an emulator needs most of this
TIMEOUT_VARIABLE = "UNO_DEVSERVER_APPLAUNCH_TIMEOUT"  # in seconds
LAUNCH_RETENTION_SECONDS = 30 * 60.0  # an app that connects later belongs to another launch
CONNECTION_RETENTION_SECONDS = 60 * 60.0  # a launch that is announced later belongs to another connection
MAX_KEPT = 100  # the most launches, and the most connections; users launch a few apps per hour

MAX_NAME = 200  # characters that are kept of a platform, IDE or plugin; real names have some 20

UNSPECIFIED = "Unspecified"
UNKNOWN = "Unknown"

_GUID = re.compile(r"(?i)([0-9a-f]{8})(-?)([0-9a-f]{4})\2([0-9a-f]{4})\2([0-9a-f]{4})\2([0-9a-f]{12})")


class LaunchKey(Value):
    mvid: str  # the module id, in the form that `guid` returns
    platform: str
    is_debug: bool

    @classmethod
    def of(cls, mvid: str, platform: str | None, is_debug: bool) -> LaunchKey:
        return cls(mvid, UNSPECIFIED if platform is None else platform[:MAX_NAME], is_debug)

    @classmethod
    def from_message(cls, message: Members) -> LaunchKey | None:
        """The key in a message of an app or an IDE; None without a valid Mvid."""
        mvid = guid(message.text("Mvid") or "")
        platform, is_debug = message.text("Platform"), message.flag("IsDebug")
        return None if mvid is None else cls.of(mvid, platform, is_debug)


class AppLaunch:
    def __init__(self, key: LaunchKey, ide: str, plugin: str, now: float) -> None:
        self.key = key
        self.ide = ide
        self.plugin = plugin
        self.announced_at = now
        self.announced_at_wall = time.time_ns()
        self.connected_after: float | None = None  # in seconds; negative if the app connected before the announcement
        self.timed_out = False
        self.alarm: asyncio.TimerHandle | None = None

    @property
    def state(self) -> str:
        if self.connected_after is not None:
            return "Connected"
        return "TimedOut" if self.timed_out else "Waiting"


class LaunchMonitor:
    """Used on the event loop only."""

    def __init__(
        self, timeout_seconds: float = DEFAULT_TIMEOUT_SECONDS, clock: Callable[[], float] = time.monotonic
    ) -> None:
        self._timeout_seconds = timeout_seconds
        self._clock = clock
        self._launches: deque[AppLaunch] = deque(maxlen=MAX_KEPT)  # the oldest first
        self._connections: dict[LaunchKey, float] = {}  # when apps without a known launch connected

    def register(self, key: LaunchKey, ide: str | None, plugin: str | None) -> None:
        """Note that an app was launched."""
        self._forget_old()
        launch = AppLaunch(key, (ide or UNKNOWN)[:MAX_NAME], (plugin or UNKNOWN)[:MAX_NAME], self._clock())
        if len(self._launches) == MAX_KEPT:
            _cancel_alarm(self._launches[0])
        self._launches.append(launch)
        log.debug(f"An app was launched by {launch.ide}: {_shown(key)}")
        connected_at = self._connections.pop(key, None)
        if connected_at is not None:
            self._match(launch, connected_at)
        else:
            launch.alarm = asyncio.get_running_loop().call_later(self._timeout_seconds, self._give_up, launch)

    def connected(self, key: LaunchKey) -> bool:
        """Note that an app connected; return whether its launch is known."""
        self._forget_old()
        for launch in self._launches:
            if launch.key == key and launch.connected_after is None:
                self._match(launch, self._clock())
                return True
        log.debug(f"An app connected whose launch was not announced: {_shown(key)}")
        self._connections.pop(key, None)  # the newest connection replaces an older one, and moves to the end
        if len(self._connections) == MAX_KEPT:
            del self._connections[next(iter(self._connections))]
        self._connections[key] = self._clock()
        return False

    def snapshot(self) -> list[dict[str, object]]:
        """The launches of the last half hour, the newest first."""
        self._forget_old()
        return [_description(launch) for launch in reversed(self._launches)]

    def close(self) -> None:
        for launch in self._launches:
            _cancel_alarm(launch)

    def _match(self, launch: AppLaunch, at: float) -> None:
        _cancel_alarm(launch)
        launch.connected_after = at - launch.announced_at
        log.debug(f"The app of {launch.ide} connected after {launch.connected_after:.1f} s: {_shown(launch.key)}")

    def _give_up(self, launch: AppLaunch) -> None:
        launch.timed_out = True
        log.warn(
            f"An app was launched by {launch.ide} {self._timeout_seconds:g} s ago and has not connected: "
            f"{_shown(launch.key)}. Check that it was built in Debug with this Host's port, and is not firewalled."
        )

    def _forget_old(self) -> None:
        now = self._clock()
        while self._launches and self._launches[0].announced_at < now - LAUNCH_RETENTION_SECONDS:
            _cancel_alarm(self._launches.popleft())
        for key, connected_at in tuple(self._connections.items()):
            if connected_at < now - CONNECTION_RETENTION_SECONDS:
                del self._connections[key]


def guid(text: str) -> str | None:
    """A GUID in lower case with dashes, from any of .NET's usual forms; None if it is not one."""
    if text[:1] + text[-1:] in ("{}", "()"):
        text = text[1:-1]
    match = _GUID.fullmatch(text)
    return "-".join(match.group(1, 3, 4, 5, 6)).lower() if match else None


def register_message(message: Members, launches: LaunchMonitor) -> bool:
    """Register the launch in an AppLaunchRegisterIdeMessage or AppLaunchMessage; False if the message has none."""
    key = LaunchKey.from_message(message)
    ide, plugin = message.text("Ide"), message.text("Plugin")
    if key is None or ide is None or plugin is None:
        return False
    launches.register(key, ide, plugin)
    return True


def timeout_from(environ: Mapping[str, str]) -> float:
    """The time limit in seconds for an app to connect; an invalid value of the variable is logged and ignored."""
    given = environ.get(TIMEOUT_VARIABLE, "").strip()
    if not given:
        return DEFAULT_TIMEOUT_SECONDS
    try:
        seconds = float(given)
    except ValueError:
        seconds = 0.0
    if not 0 < seconds <= LAUNCH_RETENTION_SECONDS:
        wanted = f"a number of seconds up to {LAUNCH_RETENTION_SECONDS:g}"
        log.warn(f"{TIMEOUT_VARIABLE} is '{given}', which is not {wanted}; {DEFAULT_TIMEOUT_SECONDS:g} is used.")
        return DEFAULT_TIMEOUT_SECONDS
    return seconds


def _cancel_alarm(launch: AppLaunch) -> None:
    if launch.alarm is not None:
        launch.alarm.cancel()


def _shown(key: LaunchKey) -> str:
    return f"{key.mvid} on {key.platform}{', with a debugger' if key.is_debug else ''}"


def _description(launch: AppLaunch) -> dict[str, object]:
    after = launch.connected_after
    return {
        "mvid": launch.key.mvid,
        "platform": launch.key.platform,
        "isDebug": launch.key.is_debug,
        "ide": launch.ide,
        "plugin": launch.plugin,
        "launchedAt": to_time(launch.announced_at_wall),
        "state": launch.state,
        "connectedAfterSeconds": None if after is None else round(after, 3),
    }
