"""`inspect`: opens the inspector page of the workspace's proxy in the browser.

A running proxy is asked to open its page if it has not. If no proxy opens a page, or the user has typed the command of
a server, this command starts a proxy, which runs as long as the command.
"""

from __future__ import annotations

import os
import sys
import time

from ..inspector.access import page_url
from ..issues import UserError
from ..proxy.health.status_file import inspector_page, running_proxies, status_of
from ..proxy.reload.watched_code import NOT_YET
from ..system.folders import folders
from ..system.log import INFORMATION, level_named, log
from ..system.values import Value
from ..workspace.config import read_config
from ..workspace.paths import is_inside, same_place
from .parse import MAX_PORT, workspace_of
from .proxies import client_names, proxy_named, serves_workspace
from .result import Result
from .trust import MAY_RUN, NO_QUESTION, REVOKE, consent_to

TYPE_CHECKING = False
if TYPE_CHECKING:
    from collections.abc import Iterator, Mapping

    from ..proxy.health.status_file import Status
    from ..workspace.resolver import Workspace
    from .interrupts import Interrupts
    from .parse import Invocation
    from .proxy_child import ProxyChild
    from .trust import Consent

SETTLE_SECONDS = 0.1  # a client may just have launched a proxy, whose status file is written about 30 ms later
START_SECONDS = 10.0  # limit of waiting for the first starts of proxies
POLL_SECONDS = 0.02
STARTING = frozenset({"Initializing", "Discovering", "Launching", "Connecting", "Connected", "Reconnecting"})
ASK_SECONDS = 5.0  # a proxy opens its page in about 50 ms
_AGAIN = "Run 'uno-devserver inspect' again."


class Page(Value):
    port: int
    token: str
    process_id: int
    directory: str

    def new_url(self) -> str | None:
        """A URL by which a browser opens the page, once; None if the proxy does not answer."""
        return page_url(self.port, self.token)


def run(invocation: Invocation) -> Result:
    workspace = workspace_of(invocation)
    if not os.path.isdir(workspace.requested_directory):
        issue = workspace.issues[0]
        raise UserError(issue.code, issue.message, issue.remediation)
    port = invocation.number("port", 0, MAX_PORT)  # None for the default port
    if port is None and workspace.config is not None:
        port = read_config(workspace.config).inspector.port
    # Typing a command agrees to it, and not to the config of the workspace.
    is_asked = not invocation.child or invocation.on("trust")
    consent = consent_to(workspace.working_directory, invocation) if is_asked else NO_QUESTION
    if invocation.child:
        return _start(invocation, workspace, port, [], consent)
    proxies = _proxies(workspace)
    if not proxies:
        time.sleep(SETTLE_SECONDS)
        proxies = _proxies(workspace)
    for page in _open_pages(proxies, port):
        if result := _show(page, invocation, started=False):
            consent.keep("inspect")  # the running proxy notices it
            _tell(consent)
            others = [proxy_named(status) for status in proxies if _process_id(status) != page.process_id]
            if others:
                shown = next(proxy_named(status) for status in proxies if _process_id(status) == page.process_id)
                log.info(f"This is the page of the proxy {shown}. Others run here, too: {'; '.join(others)}.")
            return result
    if not proxies and not workspace.resolved:
        from .config import is_undeclared_package, no_config  # few calls need it

        if is_undeclared_package(workspace):
            raise no_config(workspace)
    return _start(invocation, workspace, port, proxies, consent)


def _tell(consent: Consent) -> None:
    if consent.untold:
        log.info(f"{MAY_RUN}: {', '.join(consent.untold)}. {REVOKE}")
    if consent.refused:
        log.warn(consent.refused)


# The page of a running proxy.


def _proxies(workspace: Workspace) -> list[Status]:
    """The workspace's proxies after their first start, in the order in which their pages are wanted.

    Those that serve the workspace's own folder come first, then those that have a client, whose calls their pages show.
    A proxy that was just started in a parent folder may serve the workspace, too: its status does not name one yet.
    """
    home = workspace.working_directory
    found = [
        status
        for status in running_proxies(folders().state)
        if serves_workspace(status, workspace)
        or (_is_starting(status) and is_inside(home, str(status.get("directory"))))
    ]
    served = [status for status in wait_for_starts(found) if serves_workspace(status, workspace)]

    def order(status: Status) -> tuple[bool, ...]:
        return not same_place(str(status.get("directory")), home), not client_names(status), _page(status) is None

    return sorted(served, key=order)


def wait_for_starts(found: list[Status]) -> list[Status]:
    """The proxies after their first starts, or when START_SECONDS have passed; those that have ended are left out."""
    deadline = time.monotonic() + START_SECONDS
    while any(map(_is_starting, found)) and time.monotonic() < deadline:
        time.sleep(POLL_SECONDS)
        now = (status_of(folders().state, _process_id(each)) if _is_starting(each) else each for each in found)
        found = [status for status in now if status is not None]
    return found


def _is_starting(status: Status) -> bool:
    """Whether the proxy may still open a page or a control channel in its first start."""
    decided = [status.get(name) for name in ("inspector", "controlChannel", "hotReload", "hotReloadOff", "fallback")]
    starts = status.get("state") in STARTING and not any(each and each != NOT_YET for each in decided)
    return starts or status.get("opensInspector") is True


def _process_id(status: Status) -> int:
    pid = status["processId"]
    assert isinstance(pid, int), "the status of a running proxy"
    return pid


def _open_pages(proxies: list[Status], port: int | None) -> Iterator[Page]:
    """Yield the pages of the proxies, in their order; those that have none are asked to open it."""
    for status in proxies:
        channel = status.get("controlChannel")
        if (open_already := _page(status)) is not None:
            yield open_already
        elif isinstance(channel, str):
            from ..hotreload.authority import AuthorityProblem
            from ..hotreload.control.messages import OPEN_INSPECTOR
            from ..hotreload.control.remote_authority import ask

            try:
                ask(channel, OPEN_INSPECTOR, {} if port is None else {"port": port}, ASK_SECONDS)
            except AuthorityProblem as problem:  # the proxy has just ended, or has an older version
                log.warn(f"The proxy {status.get('processId')} opens no page. {problem}")
                continue
            deadline = time.monotonic() + ASK_SECONDS
            while (page := _page(status)) is None and time.monotonic() < deadline:
                time.sleep(POLL_SECONDS)  # the page is in the status file a moment later
            if page is not None:
                yield page


def _page(status: Status) -> Page | None:
    pid = _process_id(status)
    found = inspector_page(folders().state, pid)
    return Page(*found, pid, str(status.get("directory"))) if found else None


# The page of a proxy that is started here.


def _start(
    invocation: Invocation, workspace: Workspace, port: int | None, proxies: list[Status], consent: Consent
) -> Result:
    from .interrupts import Interrupts
    from .proxy_child import NO_PAGE, ProxyChild

    for status in proxies:
        pid = status.get("processId")
        why = f"The proxy {pid} has no page: it was started without --inspector, and cannot be asked to open one."
        if not workspace.resolved:  # another proxy would have no server
            raise UserError(NO_PAGE, why, "Start it with --inspector, in your client or by hand.")
        log.info(f"{why} Starting another one beside it.")
    interrupts = Interrupts()
    interrupts.hold()
    server = ("--watch", "--", *invocation.child) if invocation.child else ()
    options = (*_log_level(invocation), "--inspector", *([] if port is None else [str(port)]), *server)
    consent.keep("inspect")  # before the start, at which the proxy looks for it
    try:
        proxy = ProxyChild(workspace.requested_directory, options)
    except OSError as error:
        consent.withdraw()
        message = f"No proxy can be started: {error.strerror}."
        raise UserError("ProxyNotStarted", message, "Run 'uno-devserver mcp start' to see why.") from error
    opened = proxy.status_with_page(lambda: interrupts.received is not None)
    page = _page({**opened, "directory": workspace.working_directory}) if opened else None
    result = _show(page, invocation, started=True) if page else None
    if result is None:
        consent.withdraw()
        no_port, ended, code = proxy.found_no_port(), proxy.has_ended(), proxy.end()
        if interrupts.received is not None:
            raise KeyboardInterrupt
        raise _ended(proxy, code) if ended else _no_page(proxy, code, no_port=no_port)
    _tell(consent)
    log.info("The page is served until this command ends (Ctrl+C).")
    issues = () if invocation.child else workspace.issues
    steps = {issue.code: issue.remediation for issue in issues}
    return result.replace(afterwards=lambda: _stay_with(proxy, interrupts, steps))


def _log_level(invocation: Invocation) -> tuple[str, ...]:
    """The --log-level option for the proxy, if it is below Information: a higher one would hide its last lines."""
    name = invocation.value("log-level")
    level = None if name is None else level_named(name)
    return ("--log-level", str(name)) if level is not None and level < INFORMATION else ()


def _stay_with(proxy: ProxyChild, interrupts: Interrupts, steps: Mapping[str, str]) -> int:
    runs = proxy.stay(lambda: interrupts.received is not None, steps)
    code = proxy.end()
    if not runs:
        raise _ended(proxy, code)
    return 0


def _no_page(proxy: ProxyChild, code: int, *, no_port: bool) -> UserError:
    from .proxy_child import NO_PAGE, OPEN_SECONDS

    in_time = "" if no_port else f" within {OPEN_SECONDS:g} s"
    next_step = "Choose another port with --port; 0 takes any." if no_port else _AGAIN
    return UserError(NO_PAGE, f"The proxy opened no page{in_time}. {_last_output(proxy, code)}", next_step)


def _ended(proxy: ProxyChild, code: int) -> UserError:
    return UserError("ProxyEnded", f"The proxy has ended. {_last_output(proxy, code)}", _AGAIN)


def _last_output(proxy: ProxyChild, code: int) -> str:
    if not proxy.last_lines:
        return f"Its exit code is {code}; it printed nothing."
    return "\n".join((f"Its exit code is {code}; it printed last:", *(f"  | {line}" for line in proxy.last_lines)))


# The output.


def _show(page: Page, invocation: Invocation, *, started: bool) -> Result | None:
    """Open the browser, if that is wanted; None if the proxy does not answer, because it has just ended."""
    url = page.new_url()
    if url is None:
        return None
    if not invocation.on("no-open") and not invocation.on("json"):
        # The browser gets another URL than the terminal: each works once.
        open_in_browser(page.new_url() or url, os.environ)
    data = {
        "url": url,
        "port": page.port,
        "processId": page.process_id,
        "started": started,
        "directory": page.directory,
        "token": page.token,
    }
    return Result(data, url)


def open_in_browser(url: str, environ: Mapping[str, str]) -> bool:
    """Open the page in the user's browser; returns whether a browser was started."""
    if not can_show_pages(sys.platform, environ):
        return False
    import subprocess

    try:
        # In a process of its own: some browsers do not return until they are closed, and some write to the terminal.
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


def can_show_pages(platform: str, environ: Mapping[str, str]) -> bool:
    """Whether there is a display, or a program that shows pages elsewhere, as editors set it in remote containers.

    Without either `webbrowser` would start a browser in the terminal.
    """
    means = ("DISPLAY", "WAYLAND_DISPLAY", "BROWSER")
    return platform in ("win32", "darwin") or any(environ.get(name) for name in means)
