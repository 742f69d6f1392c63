"""`inspect`: the page that shows what the workspace's proxy does, in the browser.

The page of a proxy that runs, which is asked to open one if need be; else of a proxy that runs as long as this command.
"""

from __future__ import annotations

import os
import re
import time

from ..instances.membership import is_inside, same_place
from ..issues import UserError
from ..proxy.health.status_file import running_proxies, status_of
from ..proxy.reload.subject import NOT_YET
from ..system.folders import folders
from ..system.log import INFORMATION, level_named, log
from ..system.values import Value
from ..workspace.config import read_config
from ..workspace.resolver import resolve
from .parse import MAX_PORT, absolute
from .results import Result
from .workspace_proxies import belongs

TYPE_CHECKING = False
if TYPE_CHECKING:
    from ..proxy.health.status_file import Status
    from ..workspace.resolver import Workspace
    from .attended_proxy import AttendedProxy
    from .interrupts import Interrupts
    from .parse import Invocation

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
    from .agreeing import MAY_RUN, REVOKE, agree_to

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
        if belongs(status, workspace) or (_is_starting(status) and _is_above(status, workspace))
    ]
    return sorted(
        (status for status in found if belongs(status, workspace)), key=lambda status: not _is_at(status, workspace)
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
            from ..hotreload.question import NoReply, ask
            from ..hotreload.wire import OPEN_INSPECTOR

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
    from .attended_proxy import AttendedProxy
    from .interrupts import Interrupts

    for status in proxies:
        beside = "it was started without --inspector, and cannot be asked. Another is started beside it"
        log.info(f"The proxy {status.get('processId')} of this workspace has no page: {beside}.")
    directory = workspace.requested_directory
    interrupts = Interrupts()
    interrupts.hold()
    try:
        proxy = AttendedProxy(
            directory, (*_log_level(invocation), "--inspector", *([] if port is None else [str(port)]))
        )
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


def _stay_with(proxy: AttendedProxy, interrupts: Interrupts, workspace: Workspace) -> int:
    steps = {issue.code: issue.remediation for issue in workspace.issues}
    runs = proxy.stay(lambda: interrupts.received is not None, steps)
    code = proxy.end()
    if not runs:
        raise _ended(proxy, code)
    return 0


def _no_page(proxy: AttendedProxy, code: int, *, no_place: bool) -> UserError:
    from .attended_proxy import NO_PAGE, OPEN_SECONDS

    in_time = "" if no_place else f" within {OPEN_SECONDS:g} s"
    next_step = "Choose another port with --port; 0 takes any." if no_place else "Run 'uno-devserver inspect' again."
    return UserError(NO_PAGE, f"The proxy opened no page{in_time}. {_said(proxy, code)}", next_step)


def _ended(proxy: AttendedProxy, code: int) -> UserError:
    return UserError("ProxyEnded", f"The proxy has ended. {_said(proxy, code)}", "Run 'uno-devserver inspect' again.")


def _said(proxy: AttendedProxy, code: int) -> str:
    lines = "\n".join(f"  | {line}" for line in proxy.last_lines)
    return f"Its exit code is {code}; it said last:\n{lines}" if lines else f"Its exit code is {code}; it said nothing."


# What is shown.


def _show(page: Page, invocation: Invocation) -> None:
    if not invocation.on("no-open") and not invocation.on("json"):
        from ..system.browser import show

        show(page.url, os.environ)


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
