"""Reads `devserver-addin.json`, the manifest in which a package declares its add-ins; it overrides .targets files."""

from __future__ import annotations

import os

from ..issues import Issue, warning
from ..system.files import FileProblem, read_bytes
from ..system.jsonc import JsonProblem, parse
from ..system.values import Value
from .nuget_version import at_least

MANIFEST_NAME = "devserver-addin.json"
SUPPORTED_VERSION = 1
MAX_BYTES = 1024 * 1024


class Manifest(Value):
    """`entry_points` is None if there is no applicable manifest; then the .targets files are used."""

    entry_points: tuple[str, ...] | None
    issues: tuple[Issue, ...] = ()
    without_effect: tuple[Issue, ...] = ()  # of interest to the author of the package alone


def read_manifest(package_folder: str, package: str, host_version: str | None) -> Manifest:
    """The entry points in a package's manifest, as absolute paths inside the package; the files may be missing."""
    path = os.path.join(package_folder, MANIFEST_NAME)
    try:
        document = parse(read_bytes(path, MAX_BYTES))
    except FileNotFoundError:
        return Manifest(None)
    except (FileProblem, JsonProblem) as problem:
        return _invalid(path, str(problem))
    if not isinstance(document, dict):
        return _invalid(path, "it must hold a JSON object")
    fields = _ignoring_case(document)
    version = fields.get("version", 0)
    if isinstance(version, bool) or not isinstance(version, int):
        return _invalid(path, "'version' must be a whole number")
    if version > SUPPORTED_VERSION:
        message = f"{path} has version {version}; this uno-devserver understands {SUPPORTED_VERSION}."
        return Manifest(None, (warning("AddInManifestUnsupported", message),))
    entries = fields.get("addins", [])
    if not isinstance(entries, list):
        return _invalid(path, "'addins' must be a list")
    return _entry_points(path, package_folder, package, host_version, entries)


def _entry_points(
    path: str, package_folder: str, package: str, host_version: str | None, entries: list[object]
) -> Manifest:
    accepted: list[str] = []
    issues: list[Issue] = []
    without_effect: list[Issue] = []
    for number, entry in enumerate(entries):
        fields = _ignoring_case(entry) if isinstance(entry, dict) else {}
        entry_point, minimum = fields.get("entrypoint"), fields.get("minhostversion")
        if not isinstance(entry_point, str) or not entry_point.strip():
            issues.append(warning("AddInManifestInvalid", f"{path}: addins[{number}] has no 'entryPoint'."))
            continue
        target = _inside(package_folder, entry_point)
        if target is None:
            message = f"{path}: '{entry_point}' leads out of the package {package}; it was refused."
            issues.append(warning("AddInEntryPointRefused", message))
            continue
        if minimum is not None and not _is_version(minimum):
            message = f"{path}: minHostVersion '{minimum}' is not a version such as 6.5.0, so it has no effect."
            without_effect.append(warning("AddInManifestInvalid", message))
        reached = _reaches(host_version, minimum)
        if reached is False:
            message = f"{path}: '{entry_point}' needs Host {minimum}, the workspace has {host_version}."
            issues.append(warning("AddInHostTooOld", message))
            continue
        if reached is None:
            message = f"{path}: '{entry_point}' needs Host {minimum}, and the version of the workspace's is unknown."
            issues.append(warning("AddInHostVersionUnknown", message))
        accepted.append(target)
    return Manifest(tuple(accepted), tuple(issues), tuple(without_effect))


def _is_version(minimum: object) -> bool:
    return isinstance(minimum, str) and at_least(minimum, minimum) is not None


def _reaches(host_version: str | None, minimum: object) -> bool | None:
    """Whether the Host reaches the minimum, also if that is invalid; None if the Host's version is unknown."""
    return at_least(host_version or "", str(minimum)) if _is_version(minimum) else True


def _inside(folder: str, relative: str) -> str | None:
    """The path inside `folder`; None if it, or a symlink in it, leads out of the folder."""
    native = relative.replace("\\", "/")
    if native.startswith("/") or (len(native) > 1 and native[1] == ":") or "\0" in native:
        return None
    root = os.path.normpath(folder)
    target = os.path.normpath(os.path.join(root, *native.split("/")))
    try:
        real = os.path.realpath(target)
    except ValueError:  # half of a surrogate pair, which no file name can contain
        return None
    if real != target and not real.startswith(os.path.realpath(root) + os.sep):
        return None
    return target if target.startswith(root + os.sep) else None


def _ignoring_case(document: dict[object, object]) -> dict[str, object]:
    return {str(key).lower(): value for key, value in document.items()}


def _invalid(path: str, reason: str) -> Manifest:
    """The result for an invalid manifest: no entry points, because the .targets files could name the wrong file."""
    return Manifest((), (warning("AddInManifestInvalid", f"{path} cannot be used: {reason}."),))
