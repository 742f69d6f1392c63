"""`inspect`: the page that shows what the workspace's proxy does, in the browser.

The page of a proxy that runs, which is asked to open one if need be; else of a proxy that runs as long as this command.
"""

from __future__ import annotations

import os
import re
import sys
import time

from ..issues import UserError
from ..proxy.health.status_file import running_proxies, status_of
from ..proxy.reload.watched_code import NOT_YET
from ..system.folders import folders
from ..system.log import INFORMATION, level_named, log
from ..system.values import Value
from ..workspace.config import read_config
from ..workspace.paths import is_inside, same_place
from ..workspace.resolver import resolve
from .parse import MAX_PORT, absolute
from .proxies import serves_workspace
from .result import Result

TYPE_CHECKING = False
if TYPE_CHECKING:
    from collections.abc import Mapping

    from ..proxy.health.status_file import Status
    from ..workspace.resolver import Workspace
    from .interrupts import Interrupts
    from .parse import Invocation
    from .proxy_child import ProxyChild

SETTLE_SECONDS = 0.1  # a client may be launching a proxy at this moment, which can be found some 30 ms later
START_SECONDS = 10.0  # a proxy that takes longer for its first start is not waited for
POLL_SECONDS = 0.02
STARTING = frozenset({"Initializing", "Discovering", "Launching", "Connecting", "Connected", "Reconnecting"})
ASK_SECONDS = 5.0  # a proxy opens its page in some 50 ms
# All pages are on this machine; what files say may be anything.
_ADDRESS = re.compile(r"http://localhost:(\d{1,5})/\S*")


class Page(Value):
    url: str
    process_id: int
    directory: str


def run(invocation: Invocation) -> Result:
    workspace = _workspace(invocation)
    port = _port(invocation, workspace)
    _agree(workspace)
    proxies = _proxies(workspace)
    if not proxies:
        time.sleep(SETTLE_SECONDS)
        proxies = _proxies(workspace)
    page = _open_page(proxies) or _asked_for(proxies, port)
    if page is not None:
        _show(page, invocation)
        return _result(page, started=False)
    return _start(invocation, workspace, port, proxies)


def _workspace(invocation: Invocation) -> Workspace:
    named = invocation.value("solution-dir")
    directory = absolute(named or ".")
    workspace = resolve(directory, explicit=named is not None)
    if not os.path.isdir(directory):
        issue = workspace.issues[0]
        raise UserError(issue.code, issue.message, issue.remediation)
    return workspace


def _port(invocation: Invocation, workspace: Workspace) -> int | None:
    """None: the usual one."""
    port = invocation.number("port", 0, MAX_PORT)
    if port is None and workspace.config is not None:
        return read_config(workspace.config).inspector.port
    return port


def _agree(workspace: Workspace) -> None:
    """Who wants to see it wants it to run; a proxy that runs already goes on by itself."""
    from .trust import MAY_RUN, REVOKE, agree_to

    agreed = agree_to(workspace.working_directory, "inspect")
    if agreed:
        log.info(f"{MAY_RUN}: {', '.join(agreed)}. {REVOKE}")


# Of a proxy that runs.


def _proxies(workspace: Workspace) -> list[Status]:
    """Those of the workspace, when their first start is over; first the ones of its own folder.

    One that just starts in a folder above may be one of them: it has not said yet which workspace it serves.
    """
    found = [
        _started(status)
        for status in running_proxies(folders().state)
        if serves_workspace(status, workspace) or (_is_starting(status) and _is_above(status, workspace))
    ]
    return sorted(
        (status for status in found if serves_workspace(status, workspace)),
        key=lambda status: not _is_at(status, workspace),
    )


def _is_above(status: Status, workspace: Workspace) -> bool:
    return is_inside(workspace.working_directory, str(status.get("directory")))


def _is_at(status: Status, workspace: Workspace) -> bool:
    return same_place(str(status.get("directory")), workspace.working_directory)


def _started(status: Status) -> Status:
    """The status of a proxy when its first start is over, which decides whether it can be asked; bounded in time."""
    pid, deadline = status["processId"], time.monotonic() + START_SECONDS
    assert isinstance(pid, int)  # else it would be no status of a running proxy
    while _is_starting(status) and time.monotonic() < deadline:
        time.sleep(POLL_SECONDS)
        status = status_of(folders().state, pid) or {**status, "state": None}  # it has ended
    return status


def _is_starting(status: Status) -> bool:
    """Whether its start may still open a page or a control channel."""
    decided = [status.get(name) for name in ("inspector", "controlChannel", "hotReload", "hotReloadOff", "fallback")]
    starts = status.get("state") in STARTING and not any(each and each != NOT_YET for each in decided)
    return starts or status.get("opensInspector") is True


def _open_page(proxies: list[Status]) -> Page | None:
    return next((page for status in proxies if (page := _page(status, status.get("inspector")))), None)


def _asked_for(proxies: list[Status], port: int | None) -> Page | None:
    """The first of them that can be asked opens one."""
    for status in proxies:
        channel = status.get("controlChannel")
        if isinstance(channel, str):
            from ..hotreload.control.client import NoReply, ask
            from ..hotreload.control.messages import OPEN_INSPECTOR

            try:
                answer = ask(channel, OPEN_INSPECTOR, {} if port is None else {"port": port}, ASK_SECONDS)
            except NoReply as problem:  # it has just ended, or is of an older version
                log.warn(f"The proxy {status.get('processId')} opens no page. {problem}")
                continue
            if page := _page(status, answer.get("url")):
                return page
    return None


def _page(status: Status, url: object) -> Page | None:
    if not isinstance(url, str) or not _ADDRESS.fullmatch(url):
        return None
    pid = status["processId"]
    assert isinstance(pid, int)  # else it would be no status of a running proxy
    return Page(url, pid, str(status.get("directory")))


# Of one that we run ourselves.


def _start(invocation: Invocation, workspace: Workspace, port: int | None, proxies: list[Status]) -> Result:
    from .interrupts import Interrupts
    from .proxy_child import NO_PAGE, ProxyChild

    for status in proxies:
        why = (
            f"The proxy {status.get('processId')} has no page: it was started without --inspector, and cannot be asked."
        )
        if not workspace.resolved:  # another proxy would have nothing to show
            raise UserError(NO_PAGE, why, "Start it with --inspector, in your client or by hand.")
        log.info(f"{why} Another is started beside it.")
    directory = workspace.requested_directory
    interrupts = Interrupts()
    interrupts.hold()
    try:
        proxy = ProxyChild(directory, (*_log_level(invocation), "--inspector", *([] if port is None else [str(port)])))
    except OSError as error:
        message = f"No proxy can be started: {error.strerror}."
        raise UserError("ProxyNotStarted", message, "Run 'uno-devserver mcp start' to see why.") from error
    url = proxy.url(lambda: interrupts.received is not None)
    if url is None:
        no_place, ended, code = proxy.has_no_place(), proxy.has_ended(), proxy.end()
        if interrupts.received is not None:
            raise KeyboardInterrupt
        raise _ended(proxy, code) if ended else _no_page(proxy, code, no_place=no_place)
    page = Page(url, proxy.pid, workspace.working_directory)
    _show(page, invocation)
    log.info("The page is served until this command ends (Ctrl+C).")
    return _result(page, started=True).replace(afterwards=lambda: _stay_with(proxy, interrupts, workspace))


def _log_level(invocation: Invocation) -> tuple[str, ...]:
    """Whoever wants to see more sees more of the proxy; less would hide where its page is."""
    name = invocation.value("log-level")
    level = None if name is None else level_named(name)
    return ("--log-level", str(name)) if level is not None and level < INFORMATION else ()


def _stay_with(proxy: ProxyChild, interrupts: Interrupts, workspace: Workspace) -> int:
    steps = {issue.code: issue.remediation for issue in workspace.issues}
    runs = proxy.stay(lambda: interrupts.received is not None, steps)
    code = proxy.end()
    if not runs:
        raise _ended(proxy, code)
    return 0


def _no_page(proxy: ProxyChild, code: int, *, no_place: bool) -> UserError:
    from .proxy_child import NO_PAGE, OPEN_SECONDS

    in_time = "" if no_place else f" within {OPEN_SECONDS:g} s"
    next_step = "Choose another port with --port; 0 takes any." if no_place else "Run 'uno-devserver inspect' again."
    return UserError(NO_PAGE, f"The proxy opened no page{in_time}. {_said(proxy, code)}", next_step)


def _ended(proxy: ProxyChild, code: int) -> UserError:
    return UserError("ProxyEnded", f"The proxy has ended. {_said(proxy, code)}", "Run 'uno-devserver inspect' again.")


def _said(proxy: ProxyChild, code: int) -> str:
    lines = "\n".join(f"  | {line}" for line in proxy.last_lines)
    return f"Its exit code is {code}; it said last:\n{lines}" if lines else f"Its exit code is {code}; it said nothing."


# What is shown.


def _show(page: Page, invocation: Invocation) -> None:
    if not invocation.on("no-open") and not invocation.on("json"):
        open_in_browser(page.url, os.environ)


def _result(page: Page, *, started: bool) -> Result:
    address = _ADDRESS.fullmatch(page.url)
    data = {
        "url": page.url,
        "port": int(address[1]) if address else None,
        "processId": page.process_id,
        "started": started,
        "directory": page.directory,
    }
    return Result(data, page.url)


def has_screen(platform: str, environ: Mapping[str, str]) -> bool:
    """Without one a browser of the terminal would be started, or an error would be shown."""
    if platform in ("win32", "darwin"):
        return True
    return bool(environ.get("DISPLAY") or environ.get("WAYLAND_DISPLAY"))


def open_in_browser(url: str, environ: Mapping[str, str]) -> bool:
    """Have the user's browser open it; whether that was tried."""
    if not has_screen(sys.platform, environ):
        return False
    import subprocess

    try:
        # Apart, because some browsers do not return until they are closed, and some write to their terminal.
        subprocess.Popen(
            [sys.executable, "-P", "-m", "webbrowser", url],
            env=dict(environ),
            stdin=subprocess.DEVNULL,
            stdout=subprocess.DEVNULL,
            stderr=subprocess.DEVNULL,
            start_new_session=True,
            creationflags=getattr(subprocess, "CREATE_NO_WINDOW", 0),
        )
    except OSError as error:
        log.debug(f"no browser can be started: {error}")
        return False
    return True
