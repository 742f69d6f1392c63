"""The status file of each running proxy, `<state>/proxies/<pid>.json`, from which the command line learns of proxies.

It is written before the proxy's first answer, and later by a thread, so that nothing waits for the disk. A proxy works
without it, too. A file is valid while the process that wrote it runs; others are removed when they are read. It also
has the token of the inspector page, for this user alone: no status that is read here has it. Cheap to import: the first
answer waits for it.
"""

from __future__ import annotations

import json
import os
import re
import time

from ...system.files import TEMPORARY, FileProblem, remove_file
from ...system.log import log
from ...system.state_files import read_own, write_own

TYPE_CHECKING = False
if TYPE_CHECKING:
    from threading import Thread

    from ..options import ProxyOptions
    from ..state import ProxyFacts

FOLDER = "proxies"
MAX_BYTES = 1024 * 1024  # of a file: most have 2 KB, and 200 KB with 20 reloads of many files and long tool names
MAX_FILES = 1000  # files that are read, so that a full folder does not delay a command
QUIET_SECONDS = 0.05  # a pause before a write: a crash and its restart change about ten facts within 20 ms
REMOVE_SECONDS = 0.1  # the disk takes a millisecond, or hangs; the proxy must end within 300 ms
# Compiled when files are read, so that a proxy, which only writes its file, does not pay for it.
# A process that ended while it wrote has left a temporary file.
_FILE = r"([0-9]+)\.json(\.\1-[0-9]+" + TEMPORARY.replace(".", r"\.") + ")?"
_PROGRAM = r"uno[-_.]devserver"  # in a command line: both names of the command, and that of the package

_TOKEN = "inspectorToken"  # noqa: S105
_PAGE = r"http://localhost:([0-9]{1,5})/ ([A-Za-z0-9_-]{32})"  # the file may contain anything

STARTING = "{} has not been started yet; the proxy is about to."
STARTING_STEP = "Wait a moment, then try again."

Status = dict[str, object]


class StatusFile:
    """The file of this process. The first update starts a thread that writes it."""

    def __init__(self, state: str) -> None:
        self._path = os.path.join(state, FOLDER, f"{os.getpid()}.json")
        self._facts: ProxyFacts | None = None  # the newest facts
        self._writer: Thread | None = None
        self._removed = False

    def write_first(self, options: ProxyOptions) -> None:
        """Write that the proxy starts."""
        issue = {"code": "HostNotStarted", "severity": "Fatal", "remediation": STARTING_STEP}
        issue["message"] = STARTING.format(options.upstream_name)
        status = {
            "processId": os.getpid(),
            "state": "Initializing",
            "status": "Unhealthy",
            "issues": [issue],
            "directory": options.directory,
            "opensInspector": True,
        }
        self._write(json.dumps(status))
        if self._removed:  # a signal has ended the process meanwhile
            _remove(self._path)

    def update(self, facts: ProxyFacts) -> None:
        """Let the thread write these facts; returns at once."""
        if self._removed:
            return
        self._facts = facts
        if self._writer is None:
            from threading import Event, Thread  # takes 4 ms, which must not delay the first answer

            self._changed, self._removing = Event(), Event()
            writer = Thread(target=self._write_changes, name="status file", daemon=True)
            writer.start()
            self._writer = writer  # only after its start, because `remove` in another thread may join it
        self._changed.set()

    def remove(self) -> None:
        """Remove the file when the process ends; later updates are ignored."""
        self._removed = True
        if self._writer is None:
            _remove(self._path)
            return
        self._removing.set()
        self._changed.set()
        self._writer.join(REMOVE_SECONDS)

    def _write_changes(self) -> None:
        from ...system.processes import process_started

        written, created = "", process_started(os.getpid())
        while self._changed.wait() and not (self._removing.wait(QUIET_SECONDS) or self._removed):
            self._changed.clear()
            assert self._facts is not None
            content = json.dumps(_status(self._facts, created))
            if content != written and self._write(content):
                written = content
        _remove(self._path)

    def _write(self, content: str) -> bool:
        try:
            write_own(self._path, content.encode(), durable=False)
        except OSError as error:  # a read-only home, a full disk
            log.debug(f"the proxy's status is not written: {error}")
            return False
        return True


def _status(facts: ProxyFacts, created: float | None) -> Status:
    from .report import report  # not needed by the command line, which only reads files

    workspace, health = facts.workspace, report(facts)
    del health["proxy"]["catalogueAgeSeconds"]  # it would be wrong a second later
    return {
        **health["proxy"],
        "status": health["status"],
        "issues": health["issues"],
        **({"servers": health["servers"]} if "servers" in health else {}),
        "created": created,
        "directory": workspace.working_directory if workspace else facts.options.directory,
        "solution": workspace.solution if workspace else None,
        "catalogueWritten": facts.catalogue_written,
        "opensInspector": facts.inspector_undecided,
        _TOKEN: facts.inspector_token,
    }


def running_proxies(state: str) -> tuple[Status, ...]:
    """The statuses of this user's running proxies, in the order of their process ids. Never raises."""
    from ...system.processes import process_started

    found = []
    for pid, path in _files(state):
        if path.endswith(".json"):
            found.append(_read(path, pid))
        elif process_started(pid) is None:
            _remove(path)
    return tuple(status for status in found if status)


def status_of(state: str, pid: int) -> Status | None:
    """The status of that proxy; None if it has not written one yet, or does not run. Never raises."""
    return _read(os.path.join(state, FOLDER, f"{pid}.json"), pid)


def inspector_page(state: str, pid: int) -> tuple[int, str] | None:
    """The port and the token of that proxy's page; None if it has no page, or does not run. Never raises."""
    status = _current(os.path.join(state, FOLDER, f"{pid}.json"), pid) or {}
    page = re.fullmatch(_PAGE, f"{status.get('inspector')} {status.get(_TOKEN)}")
    return (int(page[1]), page[2]) if page else None


def remove_stale(state: str) -> list[str]:
    """Remove the files of proxies that do not run any more; return their paths. Never raises."""
    return [path for pid, path in _files(state) if _current(path, pid) is None and _remove(path)]


def _files(state: str) -> list[tuple[int, str]]:
    folder = os.path.join(state, FOLDER)
    try:
        found = [name for name in map(re.compile(_FILE).fullmatch, os.listdir(folder)) if name]
    except OSError:
        return []
    return sorted((int(name[1]), os.path.join(folder, name[0])) for name in found[:MAX_FILES])


def _read(path: str, pid: int) -> Status | None:
    status = _current(path, pid)
    if status is None:
        _remove(path)
        return None
    if status.get("processId") != pid:
        return None  # not a status yet, but the process runs and will write one
    status.pop("created", None)
    status.pop(_TOKEN, None)
    written = _seconds(status.pop("catalogueWritten", None))
    age = None if written is None else max(0.0, round(time.time() - written, 1))
    return {**status, "catalogueAgeSeconds": age}


def _current(path: str, pid: int) -> Status | None:
    """The content of the file ({} if unreadable) while its process runs; None if the file is stale."""
    while True:  # the check takes milliseconds, during which another process may get the id and replace the file
        identity, status = _identity(path), _content(path)
        if _is_of(pid, status.get("created")):
            return status
        if _identity(path) == identity:
            return None


def _identity(path: str) -> tuple[int, int] | None:
    """Device and inode, which differ for a file that has replaced another; None if there is no file."""
    try:
        status = os.stat(path)
    except OSError:
        return None
    return status.st_dev, status.st_ino


def _content(path: str) -> Status:
    from ...system.jsonc import JsonProblem, parse  # not needed by a proxy, which only writes its file

    try:
        status = parse(read_own(path, MAX_BYTES))
    except (FileNotFoundError, FileProblem, JsonProblem):
        return {}
    return status if isinstance(status, dict) else {}


def _is_of(pid: int, created: object) -> bool:
    """Whether the process with this id is the one that was created at that time.

    When a machine wakes up, its clock jumps, and all processes seem to have been created at another time. Therefore a
    process with the command line of a proxy is accepted, too: another proxy with this id would have replaced the file.
    """
    from ...system.processes import START_SLACK_SECONDS, command_line, process_started

    now, then = process_started(pid), _seconds(created)
    if now is None:
        return False
    is_same = then is not None and abs(then - now) <= START_SLACK_SECONDS
    return is_same or any(re.search(_PROGRAM, word) for word in command_line(pid))


def _seconds(value: object) -> float | None:
    try:
        return float(value) if isinstance(value, int | float) else None
    except OverflowError:  # a file may contain a number of any length
        return None


def _remove(path: str) -> bool:
    try:
        remove_file(path)
    except OSError:  # it is gone, or may not be removed
        return False
    return True
