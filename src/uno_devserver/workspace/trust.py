"""Whether the user has agreed that code of a workspace may run.

No file of a workspace can agree for the user. Automation agrees by an environment variable, people by a command. The
agreement is stored outside the workspace, for its real path and the content of its config. Another path or a changed
config needs a new agreement; an edited add-in does not, because people edit add-ins all day.
"""

from __future__ import annotations

import os

from ..issues import Issue, fatal, warning
from ..system.files import FileProblem, read_bytes
from ..system.folders import folders
from ..system.state_files import name_for, read_state, sha256, write_state
from ..system.values import Value
from .addins import workspace_addins
from .config import MAX_BYTES
from .config_file import CONFIG

TYPE_CHECKING = False
if TYPE_CHECKING:
    from collections.abc import Mapping

TRUST_VARIABLE = "UNO_DEVSERVER_TRUST"
AGREE = "'uno-devserver trust' in the workspace"  # the command by which the user agrees
NOT_AGREED = "the user has not agreed to it"
CONFIG_CHANGED = "its config was changed since the user agreed to it"


class TrustQuestion(Value):
    """The code to which the user can agree."""

    directory: str  # the real path of the workspace
    addins: tuple[str, ...]
    config: str | None
    digest: str  # the digest of the config; empty if there is no config

    @property
    def empty(self) -> bool:
        """Whether there is no code yet."""
        return not self.addins and self.config is None


class Agreement(Value):
    """A stored agreement, and whether it is still valid for its workspace."""

    directory: str
    command: str  # the command by which the user agreed
    time: str  # the time of the agreement, as in ISO 8601
    outdated: str  # the end of a sentence: why the agreement is not valid any more; empty if it is valid


def is_trusted(environ: Mapping[str, str], directory: str) -> bool:
    """Whether code of the workspace in this directory may run, with its present config."""
    return _trusts_all(environ) or is_agreed(folders(environ).state, directory)


def was_trusted(environ: Mapping[str, str], directory: str) -> bool:
    """Whether the user has agreed to this workspace with any config, so that code that already runs may go on."""
    return _trusts_all(environ) or _names(read_state(agreement_path(folders(environ).state, directory)), directory)


def is_agreed(state: str, directory: str) -> bool:
    """Whether the user has agreed to this workspace with its present config."""
    return _refusal(state, directory) == ""


def refusal(state: str, directory: str) -> str:
    """The end of a sentence: why code of a workspace that is not trusted does not run."""
    return _refusal(state, directory) or NOT_AGREED


def not_run(what: str, why: str = NOT_AGREED, *, nothing_else: bool = False, remediation: str = "") -> Issue:
    """The issue that `what`, code of an untrusted workspace, is not run; fatal if there is nothing else to run.

    `why` is a result of `refusal`; `remediation` replaces the usual one.
    """
    issue = fatal if nothing_else else warning
    return issue("WorkspaceNotTrusted", f"{what} is not run: {why}.", remediation)


def not_reloaded(why: str) -> str:
    """The message to clients whose server keeps its old code, because the workspace is not trusted any more."""
    return f"New code is not loaded: {why}. What runs stays until the user agrees by {AGREE}."


def trust_question(directory: str) -> TrustQuestion:
    """The code of a workspace; raises FileProblem if the config cannot be read, so that the user could not see it."""
    directory = os.path.realpath(directory)
    addins = tuple(workspace_addins(directory))
    config = os.path.join(directory, CONFIG)
    try:
        content = read_bytes(config, MAX_BYTES)
    except FileNotFoundError:
        return TrustQuestion(directory, addins, None, "")
    return TrustQuestion(directory, addins, config, sha256(content))


def agree(state: str, asked: TrustQuestion, command: str) -> None:
    """Store that the user has agreed by this command; raises OSError."""
    import time

    now = time.strftime("%Y-%m-%dT%H:%M:%SZ", time.gmtime())
    answer = {"workspace": asked.directory, "config": asked.digest, "agreedBy": command, "agreedAt": now}
    write_state(agreement_path(state, asked.directory), answer)


def revoke(state: str, directory: str) -> bool:
    """Remove the agreement; returns whether there was one, and raises OSError if it cannot be removed."""
    try:
        os.remove(agreement_path(state, directory))
    except FileNotFoundError:
        return False
    return True


def agreements(state: str) -> list[Agreement]:
    """All stored agreements, sorted by the path of the workspace."""
    folder = os.path.join(state, "trust")
    try:
        names = os.listdir(folder)
    except OSError:
        return []
    found = (_agreement(state, read_state(os.path.join(folder, name))) for name in names if name.endswith(".json"))
    return sorted((one for one in found if one is not None), key=lambda one: one.directory)


def agreement_path(state: str, directory: str) -> str:
    """The file for the agreement. Several directories may share its path, so it contains the directory's path."""
    return os.path.join(state, "trust", f"{name_for(directory)}.json")


def _trusts_all(environ: Mapping[str, str]) -> bool:
    return environ.get(TRUST_VARIABLE, "").strip() == "1"


def _names(answer: Mapping[str, object], directory: str) -> bool:
    return answer.get("workspace") == os.path.realpath(directory)


def _refusal(state: str, directory: str) -> str:
    """The end of a sentence: why there is no valid agreement; empty if there is one."""
    answer = read_state(agreement_path(state, directory))
    try:
        asked = trust_question(directory)
    except FileProblem:
        return NOT_AGREED
    if not _names(answer, directory):
        return NOT_AGREED
    return "" if answer.get("config") == asked.digest else CONFIG_CHANGED


def _agreement(state: str, answer: Mapping[str, object]) -> Agreement | None:
    directory = answer.get("workspace")
    if not isinstance(directory, str):
        return None
    outdated = _refusal(state, directory) if os.path.isdir(directory) else "it does not exist any more"
    return Agreement(directory, str(answer.get("agreedBy")), str(answer.get("agreedAt")), outdated)
