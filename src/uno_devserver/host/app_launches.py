"""Apps that an IDE launched, and whether they came: each launch is matched with the connection of its app.

A launch is known by the app's module id, platform and debugger; of several that look the same, the oldest comes
first. An app may also connect before its launch is told. Memory is bounded in number and time.
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

DEFAULT_TIMEOUT_SECONDS = 60.0  # a debug build on an emulator takes most of that
TIMEOUT_VARIABLE = "UNO_DEVSERVER_APPLAUNCH_TIMEOUT"  # in seconds
LAUNCH_RETENTION_SECONDS = 30 * 60.0  # an app that comes later was launched by somebody else
CONNECTION_RETENTION_SECONDS = 60 * 60.0  # an IDE that tells a launch this much later means another one
MAX_KEPT = 100  # launches and connections each; people launch a few apps in an hour

UNSPECIFIED = "Unspecified"
UNKNOWN = "Unknown"

_GUID = re.compile(r"(?i)([0-9a-f]{8})(-?)([0-9a-f]{4})\2([0-9a-f]{4})\2([0-9a-f]{4})\2([0-9a-f]{12})")


class LaunchKey(Value):
    mvid: str
    platform: str
    is_debug: bool


class AppLaunch:
    """One launch, and what became of it."""

    def __init__(self, key: LaunchKey, ide: str, plugin: str, now: float) -> None:
        self.key = key
        self.ide = ide
        self.plugin = plugin
        self.told_at = now
        self.told_at_wall = time.time_ns()
        self.connected_after: float | None = None  # seconds; less than nothing where the app came first
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
        self._connections: dict[LaunchKey, float] = {}  # apps that came without a launch, and when

    def register(self, mvid: str, platform: str | None, is_debug: bool, ide: str | None, plugin: str | None) -> None:
        """An app was launched; `mvid` as `guid` gives it."""
        self._forget_old()
        key = LaunchKey(mvid, _platform(platform), is_debug)
        launch = AppLaunch(key, ide or UNKNOWN, plugin or UNKNOWN, self._clock())
        if len(self._launches) == MAX_KEPT:
            _end(self._launches[0])
        self._launches.append(launch)
        log.debug(f"An app was launched by {launch.ide}: {_shown(key)}")
        came_at = self._connections.pop(key, None)
        if came_at is not None:
            self._match(launch, came_at)
        else:
            launch.alarm = asyncio.get_running_loop().call_later(self._timeout_seconds, self._give_up, launch)

    def connected(self, mvid: str, platform: str | None, is_debug: bool) -> bool:
        """An app connected; whether its launch is known."""
        self._forget_old()
        key = LaunchKey(mvid, _platform(platform), is_debug)
        for launch in self._launches:
            if launch.key == key and launch.connected_after is None:
                self._match(launch, self._clock())
                return True
        log.debug(f"An app connected that nobody has told to have launched: {_shown(key)}")
        self._connections.pop(key, None)  # the newest of its kind counts, and goes to the end
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
            _end(launch)

    def _match(self, launch: AppLaunch, at: float) -> None:
        _end(launch)
        launch.connected_after = at - launch.told_at
        log.debug(f"The app of {launch.ide} connected after {launch.connected_after:.1f} s: {_shown(launch.key)}")

    def _give_up(self, launch: AppLaunch) -> None:
        launch.timed_out = True
        log.warn(
            f"An app was launched by {launch.ide} {self._timeout_seconds:g} s ago and has not connected: "
            f"{_shown(launch.key)}. Check that it was built in Debug with this Host's port, and is not firewalled."
        )

    def _forget_old(self) -> None:
        now = self._clock()
        while self._launches and self._launches[0].told_at < now - LAUNCH_RETENTION_SECONDS:
            _end(self._launches.popleft())
        for key, came_at in tuple(self._connections.items()):
            if came_at < now - CONNECTION_RETENTION_SECONDS:
                del self._connections[key]


def guid(text: str) -> str | None:
    """A GUID in lower case with dashes, from any of .NET's usual forms; None when it is none."""
    if text[:1] + text[-1:] in ("{}", "()"):
        text = text[1:-1]
    match = _GUID.fullmatch(text)
    return "-".join(match.group(1, 3, 4, 5, 6)).lower() if match else None


def register_message(message: Members, launches: LaunchMonitor) -> bool:
    """A launch as an app or the IDE tells it (AppLaunchRegisterIdeMessage); False when it is none."""
    mvid = guid(message.text("Mvid") or "")
    platform, debug = message.text("Platform"), message.flag("IsDebug")
    ide, plugin = message.text("Ide"), message.text("Plugin")
    if mvid is None or ide is None or plugin is None:
        return False
    launches.register(mvid, platform, debug, ide, plugin)
    return True


def timeout_from(environ: Mapping[str, str]) -> float:
    """How long an app may take to connect, in seconds."""
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


def _platform(platform: str | None) -> str:
    return UNSPECIFIED if platform is None else platform


def _end(launch: AppLaunch) -> None:
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
        "launchedAt": to_time(launch.told_at_wall),
        "state": launch.state,
        "connectedAfterSeconds": None if after is None else round(after, 3),
    }
