"""Has the user agreed that code of this workspace may run?

Nothing that lies in a workspace can agree for the user. Automation does so by the environment, people by a command;
their answer is kept outside the workspace, for its real path and the content of its config. Another path or a changed
config is another question; an edited add-in is not, because people edit them all day.
"""

from __future__ import annotations

import json
import os

from ..issues import Issue, fatal, warning
from ..system.files import FileProblem, read_bytes, write_atomic
from ..system.folders import folders
from ..system.jsonc import JsonProblem, parse
from ..system.state_files import name_for, sha256
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
    """What there is to agree to."""

    directory: str  # the real path
    addins: tuple[str, ...]
    config: str | None
    digest: str  # of the config's content; empty where there is none

    @property
    def empty(self) -> bool:
        """Whether nothing here would run; something may come later."""
        return not self.addins and self.config is None


class Agreement(Value):
    """A kept answer, and what has become of its workspace since."""

    directory: str
    command: str  # by which the user agreed
    time: str  # ISO 8601
    outdated: str  # why it does not count any more: the end of a sentence; empty where it does


def is_trusted(environ: Mapping[str, str], directory: str) -> bool:
    """Whether code of the workspace in this directory may run, now."""
    return environ.get(TRUST_VARIABLE, "").strip() == "1" or is_agreed(folders(environ).state, directory)


def was_trusted(environ: Mapping[str, str], directory: str) -> bool:
    """Whether the user has agreed to this workspace, whatever its config says by now: what counted then may go on."""
    if environ.get(TRUST_VARIABLE, "").strip() == "1":
        return True
    return _answer(folders(environ).state, directory).get("workspace") == os.path.realpath(directory)


def trust_question(directory: str) -> TrustQuestion:
    """FileProblem where the config cannot be read: nobody can agree to what nobody sees."""
    directory = os.path.realpath(directory)
    addins = tuple(workspace_addins(directory))
    config = os.path.join(directory, CONFIG)
    try:
        content = read_bytes(config, MAX_BYTES)
    except FileNotFoundError:
        return TrustQuestion(directory, addins, None, "")
    return TrustQuestion(directory, addins, config, sha256(content))


def is_agreed(state: str, directory: str) -> bool:
    """Whether the user's kept answer is yes, to what is there now."""
    kept, asked = _kept(state, directory)
    return asked is not None and kept == (asked.directory, asked.digest)


def refusal(state: str, directory: str) -> str:
    """Why code of a workspace does not run that is not trusted: the end of a sentence."""
    kept, asked = _kept(state, directory)
    if asked is not None and kept[0] == asked.directory and kept[1] != asked.digest:
        return CONFIG_CHANGED
    return NOT_AGREED


def not_run(what: str, why: str = NOT_AGREED, *, nothing_else: bool = False, remediation: str = "") -> Issue:
    """The issue for code of a workspace that is not trusted: `what` is not run. Fatal if there is nothing else to run.

    `why`: as from `refusal`. `remediation`: where a better one than the usual is known.
    """
    issue = fatal if nothing_else else warning
    return issue("WorkspaceNotTrusted", f"{what} is not run: {why}.", remediation)


def not_reloaded(why: str) -> str:
    """The message to clients whose server goes on with its old code, because its workspace is not trusted any more."""
    return f"New code is not loaded: {why}. What runs stays until the user agrees by {AGREE}."


def agreements(state: str) -> list[Agreement]:
    """All that the user has agreed to, by the path of the workspace."""
    folder = os.path.join(state, "trust")
    try:
        names = os.listdir(folder)
    except OSError:
        return []
    found = (_agreement(state, os.path.join(folder, name)) for name in names if name.endswith(".json"))
    return sorted((one for one in found if one is not None), key=lambda one: one.directory)


def _agreement(state: str, path: str) -> Agreement | None:
    try:
        kept = parse(read_bytes(path, MAX_BYTES))
    except (FileNotFoundError, FileProblem, JsonProblem):
        return None
    if not isinstance(kept, dict) or not isinstance(directory := kept.get("workspace"), str):
        return None
    if not os.path.isdir(directory):
        outdated = "it does not exist any more"
    else:
        outdated = "" if is_agreed(state, directory) else refusal(state, directory)
    return Agreement(directory, str(kept.get("agreedBy")), str(kept.get("agreedAt")), outdated)


def _kept(state: str, directory: str) -> tuple[tuple[object, object], TrustQuestion | None]:
    """The workspace and the config that the user has agreed to, and what would be asked now."""
    kept = _answer(state, directory)
    try:
        return (kept.get("workspace"), kept.get("config")), trust_question(directory)
    except FileProblem:
        return (None, None), None


def _answer(state: str, directory: str) -> Mapping[str, object]:
    """As it was kept; empty where there is none."""
    try:
        kept = parse(read_bytes(agreement_path(state, directory), MAX_BYTES))
    except (FileNotFoundError, FileProblem, JsonProblem):
        return {}
    return kept if isinstance(kept, dict) else {}


def agree(state: str, asked: TrustQuestion, command: str) -> None:
    """Keep the user's yes, which they gave by this command; OSError."""
    import time

    now = time.strftime("%Y-%m-%dT%H:%M:%SZ", time.gmtime())
    kept = {"workspace": asked.directory, "config": asked.digest, "agreedBy": command, "agreedAt": now}
    write_atomic(agreement_path(state, asked.directory), json.dumps(kept, indent=2).encode("ascii"))


def revoke(state: str, directory: str) -> bool:
    """Forget the user's yes; whether there was one. OSError."""
    try:
        os.remove(agreement_path(state, directory))
    except FileNotFoundError:
        return False
    return True


def agreement_path(state: str, directory: str) -> str:
    """Paths may share this name; the one that is meant is in the file."""
    return os.path.join(state, "trust", f"{name_for(directory)}.json")
