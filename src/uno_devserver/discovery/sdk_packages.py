"""The packages that an Uno SDK version brings: its packages.json."""

from __future__ import annotations

import os

from ..issues import Issue, fatal
from ..system.files import FileProblem, read_bytes
from ..system.jsonc import JsonProblem, parse
from ..system.values import Value

TYPE_CHECKING = False
if TYPE_CHECKING:
    from collections.abc import Iterable, Mapping

MAX_BYTES = 16 * 1024 * 1024


class SdkPackage(Value):
    """A package of the SDK. `overrides` holds other versions for some target frameworks ('net10.0')."""

    name: str
    version: str
    overrides: Mapping[str, str]

    def version_for(self, frameworks: Iterable[str]) -> str:
        """The override of the first framework that has one (its platform suffix aside), else the version."""
        for framework in frameworks:
            for spelling in (framework, framework.partition("-")[0]):
                if spelling in self.overrides:
                    return self.overrides[spelling]
        return self.version


class SdkPackages(Value):
    path: str | None  # of packages.json; None when it is not there
    packages: tuple[SdkPackage, ...]
    issue: Issue | None

    @property
    def readable(self) -> bool:
        return self.path is not None and self.issue is None


def read_sdk_packages(sdk_folder: str) -> SdkPackages:
    path = os.path.join(sdk_folder, "targets", "netstandard2.0", "packages.json")
    try:
        document = parse(read_bytes(path, MAX_BYTES))
    except FileNotFoundError:
        return SdkPackages(None, (), fatal("PackagesJsonNotFound", f"{path} does not exist."))
    except (FileProblem, JsonProblem) as problem:
        return SdkPackages(path, (), fatal("PackagesJsonInvalid", f"{path} cannot be read: {problem}."))
    return SdkPackages(path, tuple(_packages(document)), None)


def _packages(document: object) -> Iterable[SdkPackage]:
    """All packages of all groups; the first group that names a package gives its version."""
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
