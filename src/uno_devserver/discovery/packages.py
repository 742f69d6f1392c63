"""The packages of a workspace, each in its restored version, or else in the version that the SDK lists."""

from __future__ import annotations

import os

from ..issues import Issue, fatal, warning
from ..system.files import FileProblem, read_bytes
from ..system.jsonc import JsonProblem, parse
from ..system.values import Value

TYPE_CHECKING = False
if TYPE_CHECKING:
    from collections.abc import Callable, Iterable, Mapping, Sequence

    from .restore import Restored


class WorkspacePackage(Value):
    name: str
    version: str
    restored: bool
    listed_version: str = ""  # the SDK's version for other target frameworks, if that differs

    def overridden(self) -> Issue | None:
        if not self.listed_version:
            return None
        message = (
            f"{self.name} counts in version {self.version}; for other target frameworks it is {self.listed_version}."
        )
        return warning("PackageVersionOverridden", message)


def merge_packages(
    sdk_packages: Iterable[SdkPackage],
    restored: Iterable[Restored],
    frameworks: Sequence[str],
    default_framework: Callable[[], str | None],
) -> Mapping[str, WorkspacePackage]:
    """Packages by name in lower case: first those of the SDK, in its order, then those that only restore knows.

    `default_framework` is called only if a version depends on it, because it may start a process.
    """
    versions: dict[str, str] = {}
    for one in restored:
        for name, version in one.listed:
            versions.setdefault(name.lower(), version)
    merged: dict[str, WorkspacePackage] = {}
    for package in sdk_packages:
        key, version = package.name.lower(), package.version
        if package.overrides and key not in versions:
            version = package.version_for(frameworks or [name for name in (default_framework(),) if name])
        listed = package.version if version != package.version else ""
        merged[key] = WorkspacePackage(package.name, versions.get(key, version), key in versions, listed)
    for one in restored:
        for known in one.packages:
            key = known.name.lower()
            if key not in merged:
                merged[key] = WorkspacePackage(known.name, known.version, True, "")
    return merged


MAX_PACKAGES_JSON_BYTES = 16 * 1024 * 1024


class SdkPackage(Value):
    """A package that the SDK lists; `overrides` maps target frameworks such as net10.0 to other versions."""

    name: str
    version: str
    overrides: Mapping[str, str]

    def version_for(self, frameworks: Iterable[str]) -> str:
        """The override for the first framework that has one, with or without its platform suffix; else the version."""
        for framework in frameworks:
            for spelling in (framework, framework.partition("-")[0]):
                if spelling in self.overrides:
                    return self.overrides[spelling]
        return self.version


class SdkPackages(Value):
    path: str | None = None  # the path of packages.json; None if it does not exist
    packages: tuple[SdkPackage, ...] = ()
    issue: Issue | None = None

    @property
    def readable(self) -> bool:
        return self.path is not None and self.issue is None


def read_sdk_packages(sdk_folder: str) -> SdkPackages:
    path = os.path.join(sdk_folder, "targets", "netstandard2.0", "packages.json")
    try:
        document = parse(read_bytes(path, MAX_PACKAGES_JSON_BYTES))
    except FileNotFoundError:
        return SdkPackages(issue=fatal("PackagesJsonNotFound", f"packages.json not found at {path}."))
    except (FileProblem, JsonProblem) as problem:
        return SdkPackages(path, (), fatal("PackagesJsonInvalid", f"{path} cannot be read: {problem}."))
    return SdkPackages(path, tuple(_packages(document)))


def _packages(document: object) -> Iterable[SdkPackage]:
    """The packages of all groups; the first group that names a package determines its version."""
    seen: set[str] = set()
    for group in document if isinstance(document, list) else ():
        if not isinstance(group, dict):
            continue
        version, names, overrides = group.get("version"), group.get("packages"), group.get("versionOverride")
        if not isinstance(version, str) or not isinstance(names, list):
            continue
        for name in names:
            if isinstance(name, str) and name.strip() and name.lower() not in seen:
                seen.add(name.lower())
                yield SdkPackage(name, version.strip(), _texts(overrides))


def _texts(overrides: object) -> dict[str, str]:
    if not isinstance(overrides, dict):
        return {}
    return {key: value for key, value in overrides.items() if isinstance(value, str) and value.strip()}
