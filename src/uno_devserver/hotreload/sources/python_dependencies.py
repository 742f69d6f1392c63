"""The projects of the same repository that a Python project uses.

They are path dependencies (uv, poetry, `name @ file:`, requirements files) and members of the same uv workspace. Where
no lockfile says that the declared dependencies are complete, each editable install in the project's environment counts
too. A project of which the environment has a copy is reported: edits there change nothing until it is installed again.
"""

from __future__ import annotations

import glob
import json
import os
import re
from fnmatch import fnmatchcase
from functools import partial

from ...system.files import FileProblem
from ...workspace.repository import limited
from .python import ENVIRONMENT_MARK, MANIFEST, MAX_MANIFEST_BYTES

TYPE_CHECKING = False
if TYPE_CHECKING:
    from collections.abc import Iterator
    from typing import Any

    from ...workspace.repository import ReadBudget, Repository
    from .source_tree import SourceTree

ENVIRONMENTS = (".venv", "venv", "env")
LOCKFILES = ("uv.lock", "poetry.lock", "pdm.lock")
MAX_REQUIREMENTS = 20  # files that requirements files name with -r
MAX_MEMBER_PATTERNS = 50  # of a uv workspace; each may read all its folders
_NAME = re.compile(r"\s*([A-Za-z0-9][A-Za-z0-9._-]*)")
_FILE_URL = re.compile(r"@\s*(?:file:|\{root:uri\})?(\S*)")
_REQUIREMENT = re.compile(r"^\s*(?:-e|--editable)[\s=]\s*(\S+)", re.MULTILINE)
_MORE_REQUIREMENTS = re.compile(r"^\s*(?:-r|--requirement)[\s=]\s*(\S+)", re.MULTILINE)


def used_projects(folder: str, repository: Repository, tree: SourceTree) -> list[str]:
    """The folders of the projects that the project in `folder` uses; `tree` gets the paths that decide about them."""
    document = _read(folder, tree.budget, tree.deciding)
    declared = _Declared(document, folder)
    manifest = os.path.join(folder, MANIFEST)
    places = [*limited(declared.places, manifest, tree.problems), *_requirements(folder, tree)]
    places += limited(_uv_sources(declared.names, folder, repository, tree), manifest, tree.problems)
    environment = _environment(folder, repository, tree)
    if environment is not None:
        is_complete = any(
            os.path.isfile(os.path.join(above, name)) for above in repository.upwards(folder) for name in LOCKFILES
        )
        places += _installed(environment, repository, tree, declared.names if is_complete else None)
    return repository.packages(folder, places)


class _Declared:
    """The dependencies in a pyproject.toml."""

    def __init__(self, document: dict[str, Any], folder: str) -> None:
        self.names: set[str] = set()
        self.places: list[str] = []
        project, tool = _table(document, "project"), _table(document, "tool")
        lists = [project.get("dependencies"), *_table(project, "optional-dependencies").values()]
        lists += [*_table(document, "dependency-groups").values(), _table(tool, "uv").get("dev-dependencies")]
        for requirement in (each for some in lists if isinstance(some, list) for each in some):
            begins = _NAME.match(requirement) if isinstance(requirement, str) else None
            if begins is None:
                continue
            self.names.add(normal_name(begins[1]))
            url = _FILE_URL.search(requirement)
            if url is not None and "://" not in url[1].removeprefix("//"):
                self.places.append(_path_of(url[1], folder))
        poetry = _table(tool, "poetry")
        groups = [_table(group, "dependencies") for group in _table(poetry, "group").values()]
        for table in (_table(poetry, "dependencies"), _table(poetry, "dev-dependencies"), *groups):
            for name, value in table.items():
                self.names.add(normal_name(name))
                self.places += _paths(value)


def _path_of(url: str, folder: str) -> str:
    """The path in the rest of a file URL; `folder` is that of the project."""
    from urllib.parse import unquote

    path = unquote(url.partition("#")[0]).replace("${PROJECT_ROOT}", folder)
    path = path.removeprefix("//") if path.startswith("//") else path
    return path.removeprefix("/") if re.match(r"/(?:[A-Za-z]:|\.)", path) else path


def _paths(value: object) -> list[str]:
    """The paths in the source of a dependency, which may be a list of sources with conditions."""
    values = value if isinstance(value, list) else [value]
    return [each["path"] for each in values if isinstance(each, dict) and isinstance(each.get("path"), str)]


def _requirements(folder: str, tree: SourceTree) -> Iterator[str]:
    """The editable paths in requirements files."""
    waiting = sorted(glob.glob(os.path.join(glob.escape(folder), "requirements*.txt")))
    tree.deciding.add(os.path.join(folder, "requirements.txt"))
    seen: set[str] = set()
    while waiting and len(seen) < MAX_REQUIREMENTS:
        path = os.path.normpath(waiting.pop())
        if path in seen or "\0" in path:
            continue
        seen.add(path)
        tree.deciding.add(path)
        try:
            text = tree.budget.read(path, MAX_MANIFEST_BYTES).decode("utf-8", "replace")
        except (FileNotFoundError, FileProblem):
            continue
        beside = os.path.dirname(path)
        for found in limited(_REQUIREMENT.finditer(text), path, tree.problems):
            yield os.path.join(folder, _path_of(found[1].removeprefix("file:").partition("[")[0], folder))
        waiting += [os.path.join(beside, each) for each in _MORE_REQUIREMENTS.findall(text)[:MAX_REQUIREMENTS]]


def _uv_sources(names: set[str], folder: str, repository: Repository, tree: SourceTree) -> Iterator[str]:
    """The folders that `tool.uv.sources` gives for these names, in the project or in the root of its workspace."""
    for above in repository.upwards(folder):
        tree.deciding.add(os.path.join(above, MANIFEST))
        uv = tree.budget.once(os.path.join(above, MANIFEST), partial(_uv_table, above, tree.budget))
        workspace = uv.get("workspace")
        for name, value in _table(uv, "sources").items():
            if normal_name(name) not in names or (above != folder and not isinstance(workspace, dict)):
                continue
            yield from (os.path.join(above, path) for path in _paths(value))
        if isinstance(workspace, dict):
            members = tree.budget.once(above, partial(_members, workspace, above, tree))
            yield from (place for name, place in members.items() if name in names)
            return


def _uv_table(folder: str, budget: ReadBudget) -> dict[str, Any]:
    return _table(_table(_read(folder, budget, set()), "tool"), "uv")


def _members(workspace: dict[str, Any], root: str, tree: SourceTree) -> dict[str, str]:
    """The members of a uv workspace, by name."""
    path = os.path.join(root, MANIFEST)
    patterns, without = (list(dict.fromkeys(_texts(workspace.get(key)))) for key in ("members", "exclude"))
    if len(patterns) > MAX_MEMBER_PATTERNS or len(without) > MAX_MEMBER_PATTERNS:
        tree.problems.append(
            f"{path} has more than {MAX_MEMBER_PATTERNS} patterns of members; the others are left out."
        )
    excluded = {place for pattern in without[:MAX_MEMBER_PATTERNS] for place in _matching(root, pattern, tree.budget)}
    named = (place for pattern in patterns[:MAX_MEMBER_PATTERNS] for place in _matching(root, pattern, tree.budget))
    places = dict.fromkeys(named)
    found: dict[str, str] = {}
    for place in limited((place for place in places if place not in excluded), path, tree.problems):
        name = _table(_read(place, tree.budget, set()), "project").get("name")
        if isinstance(name, str):
            found[normal_name(name)] = place
    return found


def _matching(root: str, pattern: str, budget: ReadBudget) -> list[str]:
    """The paths that match; `**` is one level here, because any number of them could be the whole disk."""
    parts = [part for part in pattern.split("/") if part not in ("", ".")]
    if os.path.isabs(pattern) or ".." in parts:
        return []
    places = [root]
    for part in parts:
        found = (
            os.path.join(place, name)
            for place in places
            for name in (budget.names(place) if glob.has_magic(part) else (part,))
            if name == part or (fnmatchcase(name, part) and (name[0] != "." or part[0] == "."))
        )
        places = [place for place in found if os.path.exists(place)]
    return sorted(places)


def _environment(folder: str, repository: Repository, tree: SourceTree) -> str | None:
    """The virtual environment that the package runs in, otherwise the nearest one."""
    if repository.environment:
        return repository.environment
    for above in repository.upwards(folder):
        for name in ENVIRONMENTS:
            environment = os.path.join(above, name)
            if os.path.isfile(os.path.join(environment, ENVIRONMENT_MARK)):
                return environment
        tree.deciding.add(os.path.join(above, ENVIRONMENTS[0]))
    return None


def _installed(environment: str, repository: Repository, tree: SourceTree, names: set[str] | None) -> Iterator[str]:
    """The projects whose editable installs an environment has: those with these names, or all."""
    escaped = glob.escape(environment)
    for pattern in ("lib/python*/site-packages", "Lib/site-packages"):
        for packages in glob.glob(os.path.join(escaped, *pattern.split("/"))):
            tree.folders.add(packages)
            for entry in tree.budget.names(packages):
                path = os.path.join(packages, entry)
                if entry.endswith(".dist-info"):
                    if names is None or normal_name(entry.partition("-")[0]) in names:
                        yield from _editable(path, repository, tree)
                elif entry.endswith(".pth") and names is None:
                    yield from limited(_named_by_pth(path, repository), path, tree.problems)


def _editable(info: str, repository: Repository, tree: SourceTree) -> Iterator[str]:
    """The folder that `direct_url.json` names for an editable install (PEP 610)."""
    try:
        document = json.loads(tree.budget.read(os.path.join(info, "direct_url.json"), MAX_MANIFEST_BYTES))
    except (FileNotFoundError, FileProblem, ValueError, RecursionError):
        return
    url = document.get("url") if isinstance(document, dict) else None
    details = document.get("dir_info") if isinstance(document, dict) else None
    if not isinstance(url, str) or not url.startswith("file://") or not isinstance(details, dict):
        return
    folder = _path_of(url.removeprefix("file:"), "")
    if details.get("editable") is True:
        yield folder
    elif repository.packages("", [folder]):
        name = os.path.basename(info).partition("-")[0]
        tree.problems.append(
            f"{name} is installed as a copy of {folder}, so an edit there has no effect. Install it as editable "
            "('pip install -e', or 'editable = true' in tool.uv.sources)."
        )


def _named_by_pth(path: str, repository: Repository) -> Iterator[str]:
    """The folders that a `.pth` file adds to the path of modules; for one inside a project, the project."""
    try:
        lines = repository.budget.read(path, MAX_MANIFEST_BYTES).decode("utf-8", "replace").splitlines()
    except (FileNotFoundError, FileProblem):
        return
    for line in lines:
        if not os.path.isabs(line) or "\0" in line:  # a comment or an import
            continue
        real = os.path.realpath(line)
        projects = (above for above in repository.upwards(real) if os.path.isfile(os.path.join(above, MANIFEST)))
        yield next(projects, real)


def normal_name(name: str) -> str:
    """The name of a distribution, as PEP 503 compares it."""
    return re.sub(r"[-_.]+", "-", name).lower()


def _read(folder: str, budget: ReadBudget, deciding: set[str]) -> dict[str, Any]:
    """The content of `pyproject.toml`; empty if it cannot be used, which `find_python` reports."""
    from ...system.toml import parse  # imported late, because tomllib takes 9 ms

    path = os.path.join(folder, MANIFEST)
    deciding.add(path)
    try:
        return parse(budget.read(path, MAX_MANIFEST_BYTES).decode("utf-8"))
    except (FileNotFoundError, FileProblem, ValueError, RecursionError):
        return {}


def _table(table: object, name: str) -> dict[str, Any]:
    value = table.get(name) if isinstance(table, dict) else None
    return value if isinstance(value, dict) else {}


def _texts(value: object) -> list[str]:
    return [each for each in value if isinstance(each, str) and "\0" not in each] if isinstance(value, list) else []
