"""`addin check`: shows which .NET add-ins discovery finds in a package, and why not others, before it is published.

Nothing of the package runs. A .nupkg is laid out in a temporary folder, with the content of those files only that
discovery reads. A package may come from anybody, so everything that it can have done here is bounded.
"""

from __future__ import annotations

import os
import tempfile
import time

from ..discovery.entry_points import ADDIN_ITEM, EntryPoint, build_files, declared_addins
from ..discovery.manifest import MANIFEST_NAME, read_manifest
from ..issues import REMEDIES, Issue, UserError, warning
from ..msbuild.problems import shortened
from ..msbuild.project_files import ProjectFileCache
from ..msbuild.xml import XmlProblem, parse_xml
from ..system.files import FileProblem, open_regular, read_bytes, read_head
from .result import Bullets, Report, Result, Row, Section
from .terminal import Style

TYPE_CHECKING = False
if TYPE_CHECKING:
    from collections.abc import Iterator, Sequence
    from typing import BinaryIO
    from zipfile import ZipFile, ZipInfo

    from .parse import Invocation

MAX_PLACES = 30_000  # files and folders; the largest public packages have some ten thousand
MAX_LEVELS = 100  # of folders; real packages have ten, and removing them takes an open file for each
MAX_TEXT_BYTES = 16 * 1024 * 1024  # of all files that are read; .targets files have less than 1 MB
# Read at once, as ZipFile does with the list of all files, whatever its length; that of a large package has 3 MB.
MAX_READ_BYTES = 8 * 1024 * 1024
SECONDS = 20.0  # for the evaluation of all build files, which takes milliseconds for each
READ = (".props", ".targets", ".nuspec", MANIFEST_NAME)  # the endings of files whose content matters
NEWEST_HOST = "999999999"  # a Host version that reaches every minimum
HARMLESS = ("AddInConditionUnknown", "AddInTargetsDeprecated")  # issues with which an add-in is found all the same
STEPS = {  # for authors; other codes keep the next step that users get
    "AddInEntryPointUnknown": (
        f"Add {MANIFEST_NAME} at the root of the package, or an {ADDIN_ITEM} item in "
        "buildTransitive/<package id>.targets."
    ),
    "AddInEntryPointRefused": "Name a file inside the package, by a path relative to its root.",
    "AddInBinaryNotFound": "Pack the file, or correct its path; letter case counts.",
    "AddInBinaryCorrupted": "Pack the assembly itself.",
    "AddInManifestInvalid": f"Correct {MANIFEST_NAME}; docs/dotnet-addins.md lists its fields.",
    "AddInManifestUnsupported": 'Write "version": 1, which every Host understands.',
    "AddInTargetsInvalid": "Correct the file: MSBuild fails on every project that imports it.",
    "AddInTargetsDeprecated": "Move the file from build/ to buildTransitive/.",
    "AddInConditionUnknown": "Nothing to do if a project or its SDK sets these properties.",
}


def run(invocation: Invocation) -> Result:
    if not invocation.arguments:
        next_step = "Write: uno-devserver addin check <nupkg or folder>."
        raise UserError("MissingValue", "The package to check is missing.", next_step, exit_code=2)
    path = os.path.abspath(invocation.arguments[0])
    if os.path.isdir(path):
        return _result(path, _Check(path, os.path.basename(path)))
    with tempfile.TemporaryDirectory(prefix="uno-devserver-") as folder:
        _lay_out(path, folder)
        if not _nuspecs(folder):
            message = f"{path} has no .nuspec at its root, and NuGet takes no package without one."
            raise UserError("PackageUnreadable", message, "Make it with 'dotnet pack', which writes the .nuspec.")
        return _result(path, _Check(folder, os.path.splitext(os.path.basename(path))[0]))


def _lay_out(path: str, folder: str) -> None:
    """Writes the files of a .nupkg into a folder: those that are read with their content, of others the beginning."""
    import zlib
    from zipfile import BadZipFile, ZipFile

    try:
        with open_regular(path) as file, ZipFile(_Bounded(file)) as package:
            _write_files(package, folder)
    except FileProblem as problem:
        raise _unreadable(path, problem.reason) from problem
    except OSError as error:
        raise _unreadable(path, error.strerror or str(error)) from error
    except (BadZipFile, EOFError, NotImplementedError, RuntimeError, ValueError, zlib.error) as error:
        raise _unreadable(path, shortened(str(error)).rstrip(".")) from error


class _Bounded:
    """The file of a package, of which too much cannot be read at once."""

    def __init__(self, file: BinaryIO) -> None:
        self.seek, self.tell, self.seekable = file.seek, file.tell, file.seekable
        self._read = file.read

    def read(self, count: int = -1) -> bytes:
        if count > MAX_READ_BYTES:
            raise ValueError(f"its list of files, or a file that is read, has more than {MAX_READ_BYTES:,} bytes")
        return self._read(count)


def _unreadable(path: str, reason: str) -> UserError:
    next_step = "Name a .nupkg file, or the folder of an unpacked package."
    return UserError("PackageUnreadable", f"{path} cannot be read as a package: {reason}.", next_step)


def _write_files(package: ZipFile, folder: str) -> None:
    targets: dict[str, ZipInfo] = {}
    folders: dict[str, None] = {folder: None}
    for entry in package.infolist():
        target = os.path.normpath(os.path.join(folder, *_unescaped(entry.filename).split("/")))
        if entry.is_dir() or not target.startswith(folder + os.sep):  # no path leads out of the folder
            continue
        names = target[len(folder) + 1 :].split(os.sep)
        if len(names) > MAX_LEVELS:
            raise ValueError(f"it has folders of more than {MAX_LEVELS} levels")
        targets[target] = entry
        folders.update(dict.fromkeys(os.path.join(folder, *names[:level]) for level in range(1, len(names))))
        if len(targets) + len(folders) > MAX_PLACES:
            raise ValueError(f"it has more than {MAX_PLACES:,} files and folders")
    for path in folders:
        os.makedirs(path, exist_ok=True)
    bytes_left = MAX_TEXT_BYTES
    for target, entry in targets.items():
        is_read = target.lower().endswith(READ)
        content = _beginning(package, entry, bytes_left + 1 if is_read else 2)  # 2: is it empty, or an assembly?
        bytes_left -= len(content) if is_read else 0
        if bytes_left < 0:
            raise ValueError(f"its {', '.join(READ)} files have more than {MAX_TEXT_BYTES:,} bytes")
        with open(target, "wb") as file:
            file.write(content)


def _beginning(package: ZipFile, entry: ZipInfo, count: int) -> bytes:
    """The first bytes of an entry; the size that it states may be wrong."""
    from zipfile import ZIP_DEFLATED, ZIP_STORED

    if entry.compress_type not in (ZIP_STORED, ZIP_DEFLATED):  # NuGet has no other; a block of bzip2 fills the memory
        raise ValueError(f"{shortened(entry.filename)} is compressed in a way that NuGet does not read")
    with package.open(entry) as stream:
        return stream.read(count)


def _unescaped(name: str) -> str:
    from urllib.parse import unquote

    return unquote(name).replace("\\", "/")  # NuGet escapes names as in URLs


def _nuspecs(folder: str) -> list[str]:
    return [name for name in sorted(os.listdir(folder)) if name.lower().endswith(".nuspec")]


class _Check:
    """The check of a package folder; its attributes are the results."""

    def __init__(self, folder: str, name: str) -> None:
        self.folder = folder
        self.project = f"{folder}-project"  # the folder of a made-up project, to which relative paths are relative
        self.issues: list[Issue] = []
        self._until = time.monotonic() + SECONDS
        self.name, self.version = self._identity(name)
        declared = self._by_manifest()
        candidates = declared if declared is not None else self._by_build_files()
        self.found = [candidate for candidate in candidates if self._is_good(candidate)]
        if not candidates:
            self.issues += self._in_targets()
        if not candidates and not self.issues:
            message = f"{self.name} declares no add-in."
            self.issues.append(warning("AddInEntryPointUnknown", message))

    def _identity(self, otherwise: str) -> tuple[str, str]:
        texts: dict[str, str] = {}
        try:
            root = parse_xml(read_bytes(os.path.join(self.folder, _nuspecs(self.folder)[0]), MAX_TEXT_BYTES))
            for section in root.elements:
                texts |= {e.name: "".join(map(str, e.children)) for e in section.elements if section.name == "metadata"}
        except (IndexError, OSError, FileProblem, XmlProblem):
            pass  # a folder that is not packed yet; the files named like it are then taken for those of the package
        return texts.get("id", "").strip() or otherwise, texts.get("version", "").strip()

    def _by_manifest(self) -> list[EntryPoint] | None:
        manifest = read_manifest(self.folder, self.name, NEWEST_HOST)
        self.issues += (*manifest.issues, *manifest.without_effect)
        path = os.path.join(self.folder, MANIFEST_NAME)
        if manifest.entry_points is None:
            return None
        if not manifest.entry_points and not manifest.issues:
            self.issues.append(warning("AddInManifestInvalid", f"{path} lists no add-ins."))
        return [EntryPoint(entry, path, "manifest") for entry in manifest.entry_points]

    def _by_build_files(self) -> list[EntryPoint]:
        """The add-ins of the files that NuGet imports: those named like the package, of one folder per framework."""
        groups: dict[str, list[str]] = {}
        others: list[str] = []
        for path in build_files(self.folder):
            stem = os.path.splitext(os.path.basename(path))[0]
            if stem.lower() == self.name.lower():
                groups.setdefault(os.path.dirname(path), []).append(path)
            else:
                others.append(path)
        found: list[EntryPoint] = []
        for folder, files in groups.items():
            is_old = os.path.relpath(folder, self.folder).split(os.sep)[0].lower() == "build"
            if is_old and found:
                continue  # NuGet takes the file of buildTransitive instead
            candidates = self._evaluated(files)
            if is_old and candidates:
                message = f"{files[-1]} reaches only projects that reference the package directly."
                self.issues.append(warning("AddInTargetsDeprecated", message))
            found += candidates
        for path in others if not found else ():
            if self._evaluated([path]):
                message = f"{path} is not imported: NuGet imports only {self.name}.props and {self.name}.targets."
                self.issues.append(warning("AddInEntryPointUnknown", message, "Rename the file."))
        return found

    def _in_targets(self) -> Iterator[Issue]:
        """A warning for each build file whose item is inside a target."""
        for path in build_files(self.folder):
            try:
                root = parse_xml(read_bytes(path, MAX_TEXT_BYTES))
            except (OSError, FileProblem, XmlProblem):
                continue
            groups = [group for target in root.elements if target.name == "Target" for group in target.elements]
            if any(item.name == ADDIN_ITEM for group in groups for item in group.elements):
                message = f"{path} names its add-in inside a <Target>, and none runs when add-ins are looked for."
                yield warning("AddInEntryPointUnknown", message, "Move the item to the top level of the file.")

    def _evaluated(self, files: list[str]) -> list[EntryPoint]:
        if time.monotonic() > self._until:
            message = f"Its build files take more than {SECONDS:g} s; some were not looked at."
            self.issues.append(
                warning("AddInTargetsInvalid", message, "Simplify them; each build evaluates them, too.")
            )
            return []
        undecided: dict[str, tuple[str, ...]] = {}
        found = declared_addins(
            os.path.join(self.project, "App.csproj"),
            sorted(files),  # .props before .targets
            properties={},
            global_properties={},
            environ={},
            load=ProjectFileCache(),
            issues=self.issues,
            undecided=undecided,
        )
        for path, expressions in undecided.items():
            message = (
                f"{path}: only a build can decide {' and '.join(expressions)}; the add-in counts if its file exists."
            )
            self.issues.append(warning("AddInConditionUnknown", message))
        return found

    def _is_good(self, candidate: EntryPoint) -> bool:
        """Whether discovery uses the entry point; an issue says why not."""
        path, declared = candidate.path, candidate.defined_in
        if not path.startswith(self.folder + os.sep):
            by_project = path.startswith(os.path.dirname(self.project) + os.sep)  # a relative one
            named = os.path.join(self.project, os.path.relpath(path, self.project)) if by_project else path
            message = f"{declared} names {named}, which is not inside the package."
            self.issues.append(warning("AddInEntryPointRefused", message, _base_step(candidate)))
            return False
        try:
            start = read_head(path, 2)
        except FileNotFoundError:
            self.issues.append(warning("AddInBinaryNotFound", f"{declared} names {path}, which is not in the package."))
            return False
        except FileProblem as problem:
            message = f"{declared} names {path}, which cannot be read: {problem.reason}."
            self.issues.append(warning("AddInBinaryNotFound", message))
            return False
        if start == b"MZ":
            return True
        what = "which is empty" if not start else "which is not a .NET assembly"
        self.issues.append(warning("AddInBinaryCorrupted", f"{declared} names {path}, {what}."))
        return False


def _base_step(candidate: EntryPoint) -> str:
    if candidate.source == "manifest":
        return ""
    return "Begin the path with $(MSBuildThisFileDirectory): other paths are relative to the project."


def _result(path: str, check: _Check) -> Result:
    def inside(text: str) -> str:
        return text.replace(check.folder + os.sep, "").replace(check.project + os.sep, "<project>" + os.sep)

    issues = [
        issue.replace(message=inside(issue.message), remediation=_step(issue)) for issue in dict.fromkeys(check.issues)
    ]
    addins = [
        {
            "entryPoint": inside(found.path).replace(os.sep, "/"),
            "discoverySource": found.source,
            "declaredIn": inside(found.defined_in).replace(os.sep, "/"),
            "certain": found.certain,
        }
        for found in check.found
    ]
    problems = [issue for issue in issues if issue.code not in HARMLESS]
    remarks = [issue for issue in issues if issue.code in HARMLESS]
    data = {
        "package": check.name,
        "version": check.version or None,
        "path": path,
        "addIns": addins,
        "issues": [issue.to_json() for issue in issues],
    }
    rows = [Row("package", f"{check.name} {check.version}".strip()), Row("path", path)]
    rows += [Row("add-in", f"{each['entryPoint']} (by {each['declaredIn']})", style=Style.GOOD) for each in addins]
    rows += [] if addins else [Row("add-in", "none would be found", style=Style.BAD)]
    sections = (
        Section("", tuple(rows)),
        Bullets("Problems", _sentences(problems), Style.BAD),
        Bullets("Warnings", _sentences(remarks), Style.WARN),
    )
    return Result(data, Report("Add-in check", sections), int(not addins or bool(problems)))


def _sentences(issues: Sequence[Issue]) -> tuple[str, ...]:
    return tuple(f"{issue.message}\n  next: {issue.remediation}" for issue in issues)


def _step(issue: Issue) -> str:
    usual = issue.remediation == REMEDIES[issue.code]
    return STEPS.get(issue.code, issue.remediation) if usual else issue.remediation
