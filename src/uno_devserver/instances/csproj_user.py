"""Write the port of the server into `<project>.csproj.user`, where a running app reads it.

In an existing file only the value is changed, or a property group is added in the style of the file. The encoding, line
ends, comments, mode and everything else stay. A file that already has the value, or that cannot be changed safely, is
not written. One bad file does not prevent the others from being written.

A solution may name projects anywhere, and a repository may have links. Only files inside the workspace are read or
written, by their real paths.
"""

from __future__ import annotations

import os
import re
from enum import Enum

from ..issues import listed
from ..msbuild.problems import shortened
from ..msbuild.xml import XmlProblem, inner_text, parse_xml
from ..system.command_lines import quoted_line
from ..system.files import ChangedMeanwhile, FileProblem, encoding_of, read_bytes, rewrite, sweep, write_atomic
from ..system.safe_paths import PathEscape, path_inside
from ..system.values import Value
from ..workspace.paths import path_key, same_place
from ..workspace.solutions import read_solution, uses_uno
from .registry import full_solution

TYPE_CHECKING = False
if TYPE_CHECKING:
    from collections.abc import Callable, Iterable, Sequence
    from typing import TypeVar

    from .registry import RegisteredServer

    T = TypeVar("T")

MAX_BYTES = 4 * 1024 * 1024  # real files have a few hundred bytes
# Until a file is safely on the disk takes milliseconds, of which those of several files can pass together.
MANY_PROJECTS, THREADS = 8, 16
ATTEMPTS = 3  # an IDE may write the file at the same moment

_BLANK = " \t\r\n"
_GROUP, _PORT, _IDE = "PropertyGroup", "UnoRemoteControlPort", "UnoPlatformIDE"
_CONDITION = re.compile(r"\sCondition\s*=")
_NEW = """\
<?xml version="1.0" encoding="utf-8"?>
<Project ToolsVersion="Current" xmlns="http://schemas.microsoft.com/developer/msbuild/2003">
  <PropertyGroup>
    <UnoPlatformIDE>cli</UnoPlatformIDE>
    <UnoRemoteControlPort>{value}</UnoRemoteControlPort>
  </PropertyGroup>
</Project>"""


class PortFileAction(Enum):
    CREATED = "created"
    UPDATED = "updated"
    UNCHANGED = "unchanged"


class WrittenPortFile(Value):
    path: str
    action: PortFileAction


class PortFiles(Value):
    files: tuple[WrittenPortFile, ...]
    warnings: tuple[str, ...]  # sentences, each with the name of a file


class NotUnderstood(Exception):
    """The file cannot be changed safely; the message is the reason."""


def write_port(solution: str, port: int, folder: str) -> PortFiles:
    """Write the port for every C# project of the solution (.sln, .slnx or .slnf) inside `folder`."""
    listing = read_solution(solution)
    found = _write_beside(listing.projects, solution, port, folder)
    return found.replace(warnings=(listing.issue.message, *found.warnings)) if listing.issue else found


def _write_beside(projects: Sequence[str], solution: str, port: int, folder: str) -> PortFiles:
    def write(project: str) -> WrittenPortFile | str | None:
        """What became of the file beside a project: a sentence if it was left as it is, None if it is outside."""
        path = project + ".user"
        try:
            real = path_inside(folder, path)
            return WrittenPortFile(path, _written(path, real, f"{port}#", os.stat(project)))
        except PathEscape:
            return None
        except (NotUnderstood, XmlProblem, FileProblem, OSError) as problem:
            return f"{path} was left as it is, so its app does not learn port {port}: {_reason(problem)}."

    # A solution may list projects that were not checked out.
    present = [path for path in projects if path.lower().endswith(".csproj") and os.path.isfile(path)]
    written = _at_once(write, present)
    outside = [f"{path}.user" for path, found in zip(present, written, strict=True) if found is None]
    warnings = [found for found in written if isinstance(found, str)]
    warnings += [_not_written(solution, outside, port, folder)] if outside else []
    return PortFiles(tuple(found for found in written if isinstance(found, WrittenPortFile)), tuple(warnings))


def _at_once(step: Callable[[str], T], projects: Sequence[str]) -> list[T]:
    """The results of a step for each project, in threads where there are many: a disk takes several files at once."""
    if len(projects) < MANY_PROJECTS:
        return list(map(step, projects))
    from concurrent.futures import ThreadPoolExecutor

    with ThreadPoolExecutor(THREADS) as pool:
        return list(pool.map(step, projects))


def projects_without(port: int, solution: str) -> list[str]:
    """The C# projects of the solution that use Uno, and whose `.csproj.user` does not have this port."""
    return [
        project
        for project in read_solution(solution).projects
        if uses_uno(project) and not _has_port(project + ".user", f"{port}#")
    ]


def knowing(server: RegisteredServer, projects: Iterable[str]) -> list[str]:
    """Those of these projects that the server's solution has, too, and whose apps know its port."""
    solution = full_solution(server)
    if solution is None:
        return []
    theirs = {path_key(project) for project in read_solution(solution).projects}
    shared = (project for project in projects if path_key(project) in theirs)
    return [project for project in shared if uses_uno(project) and _has_port(f"{project}.user", f"{server.port}#")]


def taken_over(solution: str, port: int, servers: Iterable[RegisteredServer]) -> list[str]:
    """Sentences: which apps know another running Host until this port is written for the projects of `solution`."""
    sentences = []
    for server in servers:
        other = full_solution(server)
        if server.port == port or other is None or same_place(other, solution):
            continue
        taken = knowing(server, read_solution(solution).projects)
        if taken:
            back = quoted_line(["uno-devserver", "start", "--solution", other])
            was, now = f"the Host of {other} (process {server.process_id}, port {server.port})", f"port {port}"
            sentences.append(
                f"A project has the port of one Host: the apps of {listed(taken)} had that of {was}, and get "
                f"{now} now. To give it back to that Host, run {back}."
            )
    return sentences


def _has_port(path: str, value: str) -> bool:
    try:
        data = read_bytes(path, MAX_BYTES)
        return merged(data, value) == data
    except (NotUnderstood, XmlProblem, FileProblem, OSError):
        return False


class SolutionPorts:
    """Keeps the port of a running server in the projects of its solution, also in those that are added later."""

    def __init__(self, solution: str, port: int, folder: str) -> None:
        self._solution, self._port, self._folder = solution, port, folder
        self._content = b""  # of the solution file when its projects were last read
        self._projects: tuple[str, ...] = ()
        self._written: list[str] = []  # the projects that existed when the port was last written
        self._told: set[str] = set()

    def update(self) -> list[str]:
        """Write the port if a project or its file has come or gone; return the warnings that were not given before."""
        try:
            content = read_bytes(self._solution, MAX_BYTES)
        except (OSError, FileProblem):  # an editor is replacing it
            return []
        if content != self._content:
            self._content, self._projects = content, read_solution(self._solution).projects
        present = [path for path in self._projects if path.lower().endswith(".csproj") and os.path.isfile(path)]
        if present != self._written:
            warnings = write_port(self._solution, self._port, self._folder).warnings
        else:  # only those without a file: some may be outside of the workspace, or fail, and that each time
            missing = [path for path in present if not os.path.lexists(path + ".user")]
            warnings = _write_beside(missing, self._solution, self._port, self._folder).warnings
        self._written = present
        new = [text for text in warnings if text not in self._told]
        self._told.update(new)
        return new


def _not_written(solution: str, paths: list[str], port: int, folder: str) -> str:
    return (
        f"{solution} names projects outside of the workspace {folder}, or by links that lead out of it. Nothing is "
        f"written there, so their apps do not learn port {port}: {listed(paths)}. To let them, set "
        f"UnoRemoteControlPort to {port}# in these files yourself."
    )


def _reason(problem: Exception) -> str:
    if isinstance(problem, FileProblem):
        return problem.reason
    return (isinstance(problem, OSError) and problem.strerror) or str(problem)


def _written(path: str, real: str, value: str, project: os.stat_result) -> PortFileAction:
    sweep(*os.path.split(real))  # a writer that was killed may have left its temporary file beside the project
    for _ in range(ATTEMPTS - 1):
        try:
            return _write(path, real, value, project)
        except (ChangedMeanwhile, FileExistsError):
            pass  # another program has written the file, so it is read again
    return _write(path, real, value, project)


def _write(path: str, real: str, value: str, project: os.stat_result) -> PortFileAction:
    """Write the file; raises ChangedMeanwhile or FileExistsError if another program writes it at the same moment."""
    try:
        old = read_bytes(real, MAX_BYTES)
    except FileNotFoundError:
        if os.path.islink(path):
            raise FileProblem(path, f"it is a link to {os.readlink(path)}, which does not exist") from None
        write_atomic(real, _created(value), mode=0o666, new=True)
        if os.name != "nt" and os.geteuid() == 0:  # even with sudo the file must belong to the owner of the project
            os.chown(real, project.st_uid, project.st_gid, follow_symlinks=False)
        return PortFileAction.CREATED
    new = merged(old, value)
    if new == old:
        return PortFileAction.UNCHANGED
    rewrite(real, new, was=old)
    return PortFileAction.UPDATED


def _created(value: str) -> bytes:
    return b"\xef\xbb\xbf" + _NEW.format(value=value).encode("ascii")


def merged(data: bytes, value: str) -> bytes:
    """The file's bytes with the property set to `value`; raises XmlProblem or NotUnderstood."""
    if data == _created(value):  # as most files are, and stay
        return data
    bom, encoding = encoding_of(data)
    try:
        text = data[len(bom) :].decode(encoding)
    except UnicodeDecodeError as error:
        if bom:
            raise NotUnderstood(f"it is not the {encoding} text that its beginning promises") from error
        # The text has a legacy encoding. Its markup is ASCII, and latin-1 keeps all other bytes as they are.
        encoding = "latin-1"
        text = data.decode(encoding)
    return bom + _merged(text, value).encode(encoding)


def _merged(text: str, value: str) -> str:
    if "<!DOCTYPE" in text:
        raise NotUnderstood("it has a DOCTYPE")
    root = root_span(text)
    if root.name != "Project":
        raise NotUnderstood(f"its root element is {shortened(root.name)}, not Project")
    properties = [(group, one) for group in root.named(_GROUP) for one in group.named(_PORT)]
    always = any(not _conditional(text, group) and not _conditional(text, place) for group, place in properties)
    # MSBuild uses the last property whose condition is true, so all get the value, and one must be unconditional.
    for _, place in reversed(properties):
        text = _with_value(text, place, value)
    return text if always else _with_group(text, root_span(text), value)


def _conditional(text: str, place: ElementSpan) -> bool:
    return _CONDITION.search(text, place.start, place.inner_start) is not None


def _with_value(text: str, place: ElementSpan, value: str) -> str:
    if place.short:
        start_tag = text[place.start : place.inner_start].removesuffix("/>").rstrip()
        name = start_tag[1:].split()[0]
        return f"{text[: place.start]}{start_tag}>{value}</{name}>{text[place.inner_start :]}"
    content = text[place.inner_start : place.inner_end]
    if not place.children and inner_text(parse_xml(f"<x>{content}</x>".encode())) == value:
        return text
    return text[: place.inner_start] + value + without_texts(content) + text[place.inner_end :]


def _with_group(text: str, root: ElementSpan, value: str) -> str:
    """Add a group at the end of the root, where it overrides the groups before it."""
    style = _Style(text, root)
    prefix = f"{root.prefix}:" if root.prefix else ""
    lines = [
        f"{style.child}<{prefix}{_GROUP}>",
        f"{style.grandchild}<{prefix}{_IDE}>cli</{prefix}{_IDE}>",
        f"{style.grandchild}<{prefix}{_PORT}>{value}</{prefix}{_PORT}>",
        f"{style.child}</{prefix}{_GROUP}>",
    ]
    group = "".join(style.newline + line for line in lines)
    if root.short:
        start_tag = text[root.start : root.inner_start].removesuffix("/>").rstrip()
        end_tag = f"{style.newline}{style.root}</{prefix}{root.name}>"
        return text[: root.start] + start_tag + ">" + group + end_tag + text[root.inner_start :]
    content = text[: root.inner_end].rstrip(_BLANK)
    gap = text[len(content) : root.inner_end]
    if "\n" not in gap and "\r" not in gap:
        gap = style.newline + style.root
    return content + group + gap + text[root.inner_end :]


class _Style:
    """The layout of the file: its line ends, and the indentation of each depth."""

    def __init__(self, text: str, root: ElementSpan) -> None:
        newline = re.search(r"\r\n|\n|\r", text)
        self.newline = newline.group() if newline else ""
        self.root = _before(text, root) or ""
        children = root.children
        child = next((found for one in children if (found := _before(text, one)) is not None), None)
        self.child = child if child is not None else self.root + "  "
        grandchildren = [inner for one in children for inner in one.children]
        grandchild = next((found for one in grandchildren if (found := _before(text, one)) is not None), None)
        step = self.child.removeprefix(self.root) or "  "
        self.grandchild = grandchild if grandchild is not None else self.child + step
        if not self.newline:  # the whole file is one line
            self.root = self.child = self.grandchild = ""


def _before(text: str, place: ElementSpan) -> str | None:
    """The indentation of an element; None if other text is before it on its line."""
    start = place.start
    while start > 0 and text[start - 1] in " \t":
        start -= 1
    return text[start : place.start] if start == 0 or text[start - 1] in "\r\n" else None


# In a well-formed text, anything that begins with '<' and is none of the first three is a tag. re.ASCII limits \s to
# ASCII, because in XML a non-breaking space would be part of a name.
_MARKUP = re.compile(
    r"<!--.*?-->|<!\[CDATA\[.*?\]\]>|<\?.*?\?>"
    r"|<(?P<slash>/?)(?P<name>[^\s/>]+)(?P<rest>(?:[^\"'>]++|\"[^\"]*+\"|'[^']*+')*+)>",
    re.DOTALL | re.ASCII,
)
_DECLARATION = re.compile(r"""xmlns(?::([^\s=]+))?\s*=\s*(?:"([^"]*)"|'([^']*)')""", re.ASCII)


class ElementSpan:
    """An element: its name, the offsets of its tags, its child elements."""

    def __init__(self, written: str, spaces: dict[str, str], start: int, inner_start: int, short: bool) -> None:
        prefix, _, local = written.rpartition(":")
        self.prefix = prefix
        self.name = local
        self.namespace = spaces.get(prefix, "")
        self.spaces = spaces
        self.start = start
        self.inner_start = inner_start  # after the start tag
        self.inner_end = inner_start  # before the end tag
        self.end = inner_start
        self.short = short  # <x/>
        self.children: list[ElementSpan] = []

    def named(self, name: str) -> list[ElementSpan]:
        """The children of that name in this element's namespace."""
        return [one for one in self.children if (one.namespace, one.name) == (self.namespace, name)]


def root_span(text: str) -> ElementSpan:
    """The root element of a text without a DOCTYPE; raises XmlProblem if it is not well-formed."""
    parse_xml(text.encode("utf-8"))
    document = ElementSpan("", {}, 0, 0, short=False)
    open_places = [document]
    for markup in _MARKUP.finditer(text):
        name, rest = markup["name"], markup["rest"]
        if name is None:
            continue
        if markup["slash"]:
            closed = open_places.pop()
            closed.inner_end, closed.end = markup.start(), markup.end()
            continue
        parent = open_places[-1]
        spaces = _spaces(rest, parent.spaces) if "xmlns" in rest else parent.spaces
        place = ElementSpan(name, spaces, markup.start(), markup.end(), short=rest.endswith("/"))
        parent.children.append(place)
        if not place.short:
            open_places.append(place)
    return document.children[0]


def without_texts(text: str) -> str:
    """Only the comments and processing instructions in an element's content."""
    return "".join(markup.group() for markup in _MARKUP.finditer(text) if markup.group().startswith(("<!--", "<?")))


def _spaces(attributes: str, inherited: dict[str, str]) -> dict[str, str]:
    found = {prefix or "": double or single for prefix, double, single in _DECLARATION.findall(attributes)}
    return {**inherited, **found}
