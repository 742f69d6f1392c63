"""Whether the user has agreed that code of a workspace may run.

No file of a workspace can agree for the user. Automation agrees by an environment variable, people by a command. The
agreement is stored outside the workspace. It covers the real path of the workspace, the content of its config, and the
kinds of its code: each add-in, each package that is built or started, the build of its projects. Another path, a
changed config or a new kind of code needs a new agreement; edited code does not, because people edit it all day.

The user cannot agree to code of another user than themselves or root, and an agreement does not cover such code: where
others may create folders, they could put their code at a path that was agreed to and then removed. The owners of the
workspace's folder, config, add-ins and package files are checked, and of the files above it that a build reads, unless
this process runs as root.
"""

from __future__ import annotations

import os

from ..issues import Issue, fatal, warning
from ..system.files import FOREIGN, FileProblem, is_foreign, names_in, read_bytes, remove_file
from ..system.folders import folders, relative_path
from ..system.jsonc import JsonProblem, parse
from ..system.log import utc_now
from ..system.state_files import name_for, read_state, sha256, write_state
from ..system.values import Value
from .addins import workspace_addins
from .config import MAX_BYTES, PROJECTS, read_config
from .devtools_folder import ADDINS_FOLDER, CONFIG
from .global_json import find_global_json
from .npm_packages import PACKAGE_JSON, packages_to_build
from .paths import upwards
from .repository import BudgetSpent, ReadBudget

TYPE_CHECKING = False
if TYPE_CHECKING:
    from collections.abc import Iterable, Iterator, Mapping

    from .config import Config

TRUST_VARIABLE = "UNO_DEVSERVER_TRUST"
AGREE = "'uno-devserver trust' in the workspace"  # the command by which the user agrees
NOT_AGREED = "the user has not agreed to it"
STAYS = "; what runs stays"  # is added to the reason of a refusal where a server goes on as it is
CONFIG_CHANGED = "its config was changed since the user agreed to it"
BUILD = "the build of its projects"  # the code that MSBuild runs: project files, and packages inside the workspace
# The files that describe a package, and the scripts in the first of them that build it.
_PACKAGES = ("package.json", "pyproject.toml", "go.mod")
_SCRIPTS = ("build", "compile")
AGREEMENT_BYTES = 1024 * 1024  # a thousand add-ins take 50 KB


class ForeignCode(FileProblem):
    """Code of a workspace belongs to another user."""

    def __init__(self, path: str, owner: int) -> None:
        super().__init__(path, f"{FOREIGN} (id {owner})")
        self.owner = owner


class TrustQuestion(Value):
    """The code to which the user can agree."""

    directory: str  # the real path of the workspace
    addins: tuple[str, ...] = ()  # paths
    config: str | None = None
    digest: str = ""  # the digest of the config; empty if there is no config
    kinds: tuple[str, ...] = ()  # one for each add-in, package and build; noun phrases


class Agreement(Value):
    """A stored agreement, and whether it is still valid for its workspace."""

    directory: str
    command: str  # the command by which the user agreed
    time: str  # when the user agreed, in ISO 8601 format
    outdated: str  # the end of a sentence: why the agreement is not valid any more; empty if it is valid
    kinds: tuple[str, ...] = ()  # of the code that was agreed to, besides the config


def is_trusted(environ: Mapping[str, str], directory: str) -> bool:
    """Whether all code that the workspace in this directory has now may run."""
    return trusts_all(environ) or is_agreed(folders(environ).state, directory)


def was_trusted(environ: Mapping[str, str], directory: str) -> bool:
    """Whether there is an agreement, even an outdated one: code that is already running may go on."""
    if trusts_all(environ):
        return True
    try:
        check_owners(_own_paths(os.path.realpath(directory)))
    except ForeignCode:
        return False
    return _is_for(_stored(folders(environ).state, directory), directory)


def is_agreed(state: str, directory: str) -> bool:
    """Whether the user has agreed to all code that this workspace has now."""
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
    """The message to clients whose server goes on as it is, because the workspace is not trusted any more."""
    return f"New code is not loaded: {why}. What runs stays until the user runs {AGREE}."


def trust_question(directory: str) -> TrustQuestion:
    """The code of a workspace, for the user to see.

    Raises FileProblem if the config cannot be read, and ForeignCode if a part of the code belongs to another user.
    """
    directory = os.path.realpath(directory)
    addins = tuple(workspace_addins(directory))
    check_owners(_own_paths(directory, addins))
    kinds = [_addin_kind(path) for path in addins]
    if find_global_json(directory) is not None:
        check_owners(_build_files(directory))
        kinds.append(BUILD)
    config = os.path.join(directory, CONFIG)
    try:
        content = read_bytes(config, MAX_BYTES)
    except FileNotFoundError:
        return TrustQuestion(directory, addins, None, "", tuple(kinds))
    kinds += dict.fromkeys(_package_kinds(directory, read_config(config), ReadBudget()))
    return TrustQuestion(directory, addins, config, sha256(content), tuple(kinds))


def _addin_kind(path: str) -> str:
    """The add-in by its name, whether it is a file or a folder, and the place to which links lead."""
    target = os.path.realpath(path)
    link = "" if target == path else f", a link to {target}"
    return f"the add-in {'folder ' if os.path.isdir(path) else ''}{os.path.basename(path)}{link}"


def agree(state: str, asked: TrustQuestion, command: str) -> None:
    """Store that the user has agreed by this command; raises OSError."""

    write_state(
        agreement_path(state, asked.directory),
        {
            "workspace": asked.directory,
            "config": asked.digest,
            "kinds": list(asked.kinds),
            "agreedBy": command,
            "agreedAt": utc_now(),
        },
    )


def revoke(state: str, directory: str) -> bool:
    """Remove the agreement; returns whether there was one, and raises OSError if it cannot be removed."""
    if not _is_for(_stored(state, directory), directory):
        return False
    try:
        remove_file(agreement_path(state, directory))
    except FileNotFoundError:
        return False
    return True


def agreements(state: str) -> list[Agreement]:
    """All stored agreements, sorted by the path of the workspace."""
    folder = os.path.join(state, "trust")
    found = (
        _agreement(state, read_state(os.path.join(folder, name), AGREEMENT_BYTES))
        for name in names_in(folder)
        if name.endswith(".json")
    )
    return sorted((one for one in found if one is not None), key=lambda one: one.directory)


def agreement_path(state: str, directory: str) -> str:
    """The file of the agreement. Paths that differ only in case share it, so it also contains the path."""
    return os.path.join(state, "trust", f"{name_for(directory)}.json")


def _own_paths(directory: str, addins: tuple[str, ...] = ()) -> Iterator[str]:
    """The paths whose owners decide on the config and the add-ins of a workspace."""
    config, folder = os.path.join(directory, CONFIG), os.path.join(directory, ADDINS_FOLDER)
    yield from (directory, os.path.dirname(config), config, folder)
    for path in addins:
        yield path
        if not path.endswith(".py"):
            yield os.path.join(path, "__init__.py")


def _build_files(directory: str) -> Iterator[str]:
    """The files in a folder and above it from which MSBuild and the SDK take what they run."""
    from .dotnet_project import EACH, NEAREST  # imported late: only workspaces with .NET need it

    missing = list(NEAREST)
    for folder in upwards(directory):
        yield from (os.path.join(folder, name) for name in EACH)
        for name in [name for name in missing if os.path.isfile(os.path.join(folder, name))]:
            missing.remove(name)
            yield os.path.join(folder, name)


def check_owners(paths: Iterable[str]) -> None:
    """Raise ForeignCode for the first of these paths that belongs to another user, or is a link to such a file."""
    # Root runs what ordinary users own as a matter of course: by sudo, and in containers, where the owner of a mounted
    # workspace is a user of the machine outside.
    if os.name == "nt" or os.geteuid() == 0:
        return
    for path in paths:
        try:
            status = os.lstat(path)
            if (status.st_mode & 0o170000) == 0o120000 and not is_foreign(status):
                status = os.stat(path)
        except OSError:  # it is missing or cannot be reached, so nothing of it can run
            continue
        if is_foreign(status):
            raise ForeignCode(path, status.st_uid)


def _package_kinds(directory: str, config: Config, budget: ReadBudget) -> Iterator[str]:
    """The packages that the config lets this program build or start, their builds, and the variables of the servers."""
    for entry in config.servers:
        if entry.enabled and not entry.connects_only:
            yield from _package_kinds(directory, entry, budget)
    if config.server is not None and config.server.env_file is not None:
        check_owners((config.server.env_file,))
        yield f"the variables of {relative_path(config.server.env_file, directory)}"
    for named in dict.fromkeys((config.server_folder or directory, config.extension_path)):
        if named is None:
            continue
        root = os.path.realpath(named)
        if root != named:
            yield f"the folder {relative_path(named, directory)}, a link to {root}"
        names = names_in(root)
        programs = _programs(root, names)
        for name in names:
            if name in _PACKAGES or name.lower().endswith(PROJECTS) or name in programs:
                path = os.path.join(root, name)
                check_owners((named, root, path))
                if name.lower().endswith(PROJECTS) or name in programs:
                    check_owners(_build_files(root))
                shown = relative_path(path, directory)
                yield f"the package of {shown}"
                yield from (f"the script {script!r} of {shown}" for script in _build_scripts(path))
            if name == PACKAGE_JSON:
                yield from (
                    f"the script 'build' of {relative_path(os.path.join(used, name), directory)}"
                    for used in _packages_to_build(root, directory, budget)
                )


def _packages_to_build(root: str, directory: str, budget: ReadBudget) -> list[str]:
    try:
        return packages_to_build(root, directory, budget)
    except BudgetSpent as spent:
        path = os.path.join(root, PACKAGE_JSON)
        raise FileProblem(path, f"the packages that it uses cannot all be found, because {spent}") from None


def _programs(root: str, names: list[str]) -> list[str]:
    """The file-based .NET programs in a folder, which has no project then."""
    if not any(name.lower().endswith(".cs") for name in names):
        return []
    from .dotnet_project import projects_in

    return projects_in(root, names)


def _build_scripts(path: str) -> tuple[str, ...]:
    """The scripts of a package.json that hot reload may run; all of them if it cannot be read."""
    if os.path.basename(path) != _PACKAGES[0]:
        return ()
    try:
        document = parse(read_bytes(path, MAX_BYTES))
    except FileNotFoundError:
        return ()
    except (FileProblem, JsonProblem):
        return _SCRIPTS
    scripts = document.get("scripts") if isinstance(document, dict) else None
    return tuple(name for name in _SCRIPTS if isinstance(scripts, dict) and isinstance(scripts.get(name), str))


def trusts_all(environ: Mapping[str, str]) -> bool:
    """Whether the environment agrees for every workspace."""
    return environ.get(TRUST_VARIABLE, "").strip() == "1"


def _stored(state: str, directory: str) -> Mapping[str, object]:
    return read_state(agreement_path(state, directory), AGREEMENT_BYTES)


def _is_for(answer: Mapping[str, object], directory: str) -> bool:
    return answer.get("workspace") == os.path.realpath(directory)


def _refusal(state: str, directory: str) -> str:
    """The end of a sentence: why there is no valid agreement; empty if there is one."""
    answer = _stored(state, directory)
    if not _is_for(answer, directory):
        return NOT_AGREED
    try:
        asked = trust_question(directory)
    except ForeignCode as problem:
        return f"{problem.path} belongs to another user (id {problem.owner})"
    except FileProblem as problem:
        return f"{problem.path} cannot be used ({problem.reason})"
    if answer.get("config") != asked.digest:
        return CONFIG_CHANGED
    new = [kind for kind in asked.kinds if kind not in _kinds(answer)]
    return f"{new[0]} has been added since the user agreed to it" if new else ""


def _agreement(state: str, answer: Mapping[str, object]) -> Agreement | None:
    directory = answer.get("workspace")
    if not isinstance(directory, str):
        return None
    outdated = _refusal(state, directory) if os.path.isdir(directory) else "the workspace does not exist any more"
    return Agreement(directory, str(answer.get("agreedBy")), str(answer.get("agreedAt")), outdated, _kinds(answer))


def _kinds(answer: Mapping[str, object]) -> tuple[str, ...]:
    kinds = answer.get("kinds")
    return tuple(kind for kind in kinds if isinstance(kind, str)) if isinstance(kinds, list) else ()
