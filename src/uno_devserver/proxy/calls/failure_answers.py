"""The answers to requests that the upstream did not answer: what happened to the request, and what to do next.

The sentences are for models: they say whether the request may have had an effect, and never contain a traceback.
"""

from __future__ import annotations

from math import ceil
from typing import TYPE_CHECKING, Any

from ...issues import access_step
from ...protocol.client.connection import ASK_FOR_LESS, TOO_LONG, AccessDenied
from ...protocol.jsonrpc import RpcError, shown
from ..health.upstream_issues import TRY_AGAIN
from ..options import HOST
from ..own_tools import HEALTH, INITIALIZE, MAIN
from ..state import ConnectionState

if TYPE_CHECKING:
    from ...protocol.client.connection import UnusableServer
    from ...protocol.service import Result
    from ..state import ProxyFacts, ProxyState
    from ..upstream.base import Ending
    from .forwarder import ForwardedRequest
    from .upstream_link import Link


# Error codes that MCP leaves to implementations; protocol/jsonrpc.py has the others.
UNAVAILABLE = -32012
OUTCOME_UNKNOWN = -32013
TIMED_OUT = -32014
ANSWER_TOO_LONG = -32016

META_KEY = "uno-devserver/unavailable"  # in the result of a call that was not run because there is no upstream
QUOTED_ISSUES = 3  # a model reads the first few; uno_health shows all of them
FOR_THE_USER = frozenset({"WorkspaceNotTrusted", "ConfigInvalid"})  # a start fails with these until a person acts

_NOT_RUN = "This request has not been run."
_SERVER = "The dev server"  # until `of_server` names it
_BROKEN = f"{_SERVER} does not work."


class UnansweredRequest(Exception):
    """The upstream did not answer the request. `remedy` says what to do; `data` is for programs."""

    def __init__(self, code: int, message: str, remedy: str, **data: Any) -> None:
        super().__init__(message)
        self.code = code
        self.message = message
        self.remedy = remedy
        self.data = data

    @property
    def may_have_run(self) -> bool:
        return self.code in (OUTCOME_UNKNOWN, TIMED_OUT, ANSWER_TOO_LONG)

    @property
    def has_reasons(self) -> bool:
        """Whether it quotes from the health report why there is no upstream."""
        return bool(self.data.get("issues"))

    def of_server(self, facts: ProxyFacts, *, several: bool = False) -> UnansweredRequest:
        """The same, with the name of the server, unless that is a Host; `several`: whether there are other servers."""
        named = facts.upstream_name
        if several:
            self.data["server"] = facts.options.server or MAIN
        elif named == HOST:
            return self
        for said, now in ((f"{_BROKEN} {named}", named), (_SERVER, named), (f"t{_SERVER[1:]}", f"t{named[1:]}")):
            self.message, self.remedy = self.message.replace(said, now), self.remedy.replace(said, now)
        self.remedy = facts.with_setting(self.remedy)
        return self

    def answer(self, method: str) -> Result:
        """Return an error result for a tool call, which the model reads; for other requests, raise RpcError."""
        text = f"{self.message} {self.remedy}"
        if method == "tools/call":
            told = {key: self.data[key] for key in ("connectionState", "server") if key in self.data}
            return {**failed(text), **({"_meta": {META_KEY: told}} if "connectionState" in told else {})}
        raise RpcError(self.code, text, {"remedy": self.remedy, **self.data}) from None


def failed(text: str) -> Result:
    """A tool result that is an error."""
    return {"content": [{"type": "text", "text": text}], "isError": True}


def unavailable(link: Link, state: ProxyState) -> UnansweredRequest:
    """Make the answer to a request while there is no upstream."""
    connection = link.state
    data: dict[str, Any] = {"connectionState": connection.value}
    if connection is ConnectionState.DEGRADED:
        return _degraded(state, data, link.retry_due_in())
    reasons, steps = known_issues(state)
    message = "The dev server is starting, and is not ready yet."
    remedy = _paragraph(*(steps or ["Try again in a few seconds;"]), f"{HEALTH} shows the progress.")
    if connection is ConnectionState.SHUTDOWN:
        message, reasons, remedy = "uno-devserver is ending.", [], "Start it again to continue."
    elif link.fallback:
        message, reasons = "uno-devserver does not know yet which workspace to serve.", []
        remedy = f"Call {INITIALIZE} with the absolute path of its folder as workspaceDirectory, then try again."
    elif connection is ConnectionState.RECONNECTING or link.generation:
        message = "The dev server has gone, and is not back yet."
    return UnansweredRequest(UNAVAILABLE, _paragraph(message, *reasons, _NOT_RUN), remedy, **data)


def _degraded(state: ProxyState, data: dict[str, Any], pause: float) -> UnansweredRequest:
    issues = [issue for issue in _issues(state) if issue.get("message")]
    reasons, steps = _quoted(issues)
    message = _paragraph(_BROKEN, *(reasons or ["It could not be started."]), _NOT_RUN)
    stays = any(issue.get("severity") == "Fatal" and issue.get("code") in FOR_THE_USER for issue in issues)
    at_once = ", or after a change of its code," if state.snapshot().hot_reload is not None else ""
    when = f" in {ceil(pause)} s or later{at_once}" if pause > 0 else ""
    does = "connect to it" if state.facts.is_remote else "start it"
    attempt = f"Each call{when} makes a new attempt to {does}; {HEALTH} shows the outcome."
    attempt = f"{HEALTH} has the details." if stays else attempt
    steps = [step.replace(TRY_AGAIN, "Fix it.") for step in steps]  # the attempt says the rest
    return UnansweredRequest(UNAVAILABLE, message, _paragraph(*steps, attempt), **data, issues=issues)


def not_served(state: ProxyState) -> UnansweredRequest:
    """Make the answer to a request where there is no server: none is wanted, or the user has not agreed to any."""
    reasons, steps = known_issues(state)
    data = {"connectionState": ConnectionState.DEGRADED.value}
    return UnansweredRequest(UNAVAILABLE, _paragraph("No server runs.", *reasons, _NOT_RUN), " ".join(steps), **data)


def unreachable(seconds: float) -> UnansweredRequest:
    message = f"The dev server could not be reached for {seconds:g} s. {_NOT_RUN}"
    return UnansweredRequest(UNAVAILABLE, message, f"Call {HEALTH}, which says what is wrong, and try again.")


def refused(refusal: UnusableServer) -> UnansweredRequest:
    if isinstance(refusal, AccessDenied):
        step = access_step(refusal.denial.status, refusal.denial.url, fixed=refusal.denial.fixed)
        remedy = f"{step} {HEALTH} has the details."
        return UnansweredRequest(UNAVAILABLE, f"{refusal} {_NOT_RUN}", remedy)
    message = f"The dev server does not accept a connection: {str(refusal).rstrip('.')}. {_NOT_RUN}"
    return UnansweredRequest(UNAVAILABLE, message, f"Call {HEALTH}, which says what is wrong.")


def ended(request: ForwardedRequest, times: int, how: Ending | None = None) -> UnansweredRequest:
    """Make the answer to a request during which the upstream ended (`how`); it was tried `times` times."""
    what = _named(request)
    reason, printed = (f": {how.reason}" if how else ""), how.printed if how else ""
    quoted = [f"Its last lines:\n{printed}"] if printed else []
    message = _paragraph(
        f"The dev server was lost while it ran {what}{reason}.",
        *quoted,
        "The outcome is unknown: it may have been run in full or in part. It has not been run again.",
    )
    remedy = f"Look at what it may have changed before you repeat it; {HEALTH} says whether the dev server is back."
    if times > 1:
        lost = f"The dev server was lost each of the {times} times that it ran {what}, without an answer"
        message = _paragraph(f"{lost}{reason}.", *quoted, "It has not been run again.")
        remedy = f"Probably {what} makes the dev server end. Change its arguments, or fix the server; "
        remedy += f"{HEALTH} has the details."
    return UnansweredRequest(OUTCOME_UNKNOWN, message, remedy)


def silent(request: ForwardedRequest, seconds: float) -> UnansweredRequest:
    message = (
        f"Nothing has been heard from {_named(request)} for {seconds:g} s, so it has been cancelled. "
        "The outcome is unknown: the dev server may be busy, or it hangs."
    )
    return UnansweredRequest(
        TIMED_OUT, message, f"Call {HEALTH}, then look at what it may have changed before you repeat it."
    )


def too_long(request: ForwardedRequest) -> UnansweredRequest:
    message = f"The dev server has run {_named(request)} and has answered, but the answer {TOO_LONG}."
    return UnansweredRequest(ANSWER_TOO_LONG, message, ASK_FOR_LESS)


def _named(request: ForwardedRequest) -> str:
    name = request.params.get("name") if request.method == "tools/call" else None
    return f"'{shown(name if isinstance(name, str) else request.method)}'"


def known_issues(state: ProxyState, code: str | None = None) -> tuple[list[str], list[str]]:
    """Return the messages and remedies of the first issues in the health report; with `code`, only of that code."""
    return _quoted([issue for issue in _issues(state) if code is None or issue.get("code") == code])


def _quoted(issues: list[dict[str, Any]]) -> tuple[list[str], list[str]]:
    quoted = issues[:QUOTED_ISSUES]
    messages = [str(issue["message"]) for issue in quoted if issue.get("message")]
    return messages, list(dict.fromkeys(str(issue["remediation"]) for issue in quoted if issue.get("remediation")))


def _issues(state: ProxyState) -> list[dict[str, Any]]:
    """Return the issues of the health report; the fatal ones come first, because they are the cause."""
    issues = state.report().get("issues")
    found = [issue for issue in issues if isinstance(issue, dict)] if isinstance(issues, list) else []
    return sorted(found, key=lambda issue: issue.get("severity") != "Fatal")


def _paragraph(*sentences: str) -> str:
    """Join the sentences to paragraphs; a sentence with several lines ends its paragraph."""
    return "".join(sentence + ("\n\n" if "\n" in sentence else " ") for sentence in sentences).strip()
