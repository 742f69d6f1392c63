"""Finds NuGet's package folders, and packages in them.

Folders are searched in NuGet's order: `NUGET_PACKAGES`, `globalPackagesFolder` of the nearest nuget.config, the folder
of the user (in `DOTNET_CLI_HOME`, then at home), the folder of the machine. Nothing is downloaded or written.
"""

from __future__ import annotations

import os

from ..issues import Issue, warning
from ..msbuild.xml import XmlProblem, parse_xml
from ..system.files import FileProblem, read_bytes
from ..workspace.paths import is_below, upwards
from .nuget_version import folder_spellings

TYPE_CHECKING = False
if TYPE_CHECKING:
    from collections.abc import Iterable, Iterator, Mapping

    from ..system.folders import Folders

CONFIG_NAMES = ("nuget.config", "NuGet.config", "NuGet.Config")  # the three spellings that NuGet looks for
MAX_CONFIG_BYTES = 4 * 1024 * 1024


class PackageFolders:
    """The package folders of a workspace, in search order."""

    def __init__(self, locations: Iterable[str], issues: Iterable[Issue] = ()) -> None:
        self.locations = tuple(_distinct(locations))
        self.issues = tuple(issues)
        self._listings: dict[str, dict[str, str]] = {}

    def find(self, name: str, version: str) -> str | None:
        """The folder of a package, in the first location that has the version in one of its spellings."""
        if not _is_id(name):  # a hostile name must not lead out of the package folders
            return None
        for spelling in folder_spellings(version):
            for location in self.locations:
                path = os.path.join(location, name.lower(), spelling)
                if os.path.isdir(path):
                    return path
        return self._find_by_listing(name, version)

    def owner(self, path: str) -> tuple[str, str, str] | None:
        """Id, version and folder of the package that contains a file; None if the file is in no package folder."""
        for location in self.locations:
            if is_below(path, location):  # restore may have spelt it in other letters than we were told
                parts = path[len(location) + 1 :].replace(os.altsep or os.sep, os.sep).split(os.sep, 2)
                if len(parts) == 3:
                    return parts[0], parts[1], f"{location}{os.sep}{parts[0]}{os.sep}{parts[1]}"
        return None

    def with_locations(self, locations: Iterable[str]) -> PackageFolders:
        return PackageFolders((*self.locations, *locations), self.issues)

    def _find_by_listing(self, name: str, version: str) -> str | None:
        """Finds a folder whose name differs in case: NuGet writes lower case, but other tools may not."""
        for location in self.locations:
            actual = self._listing(location).get(name.lower())
            if actual is None or actual == name.lower():
                continue
            for spelling in folder_spellings(version):
                path = os.path.join(location, actual, spelling)
                if os.path.isdir(path):
                    return path
        return None

    def _listing(self, location: str) -> dict[str, str]:
        if location not in self._listings:
            try:
                self._listings[location] = {entry.lower(): entry for entry in os.listdir(location)}
            except OSError:
                self._listings[location] = {}
        return self._listings[location]


def package_folders(directory: str, environ: Mapping[str, str], folders: Folders) -> PackageFolders:
    """The package folders that NuGet uses in a workspace directory."""
    locations: list[str] = []
    issues: list[Issue] = []
    from_environment = environ.get("NUGET_PACKAGES", "")
    if from_environment.strip():  # a blank value would mean the current folder
        locations.append(os.path.abspath(os.path.join(directory, from_environment)))
    configured = _configured_folder(directory, environ, folders, issues)
    if configured:
        locations.append(configured)
    locations += [os.path.join(home, ".nuget", "packages") for home in _homes(environ, folders)]
    locations.append(os.path.join(folders.common_application_data, "NuGet", "packages"))
    return PackageFolders(locations, issues)


def users_folders(environ: Mapping[str, str], folders: Folders) -> tuple[str, ...]:
    """The user's own package folders, independent of the workspace; they contain what the user restored."""
    return package_folders(folders.home, environ, folders).locations


def _is_id(name: str) -> bool:
    """Whether this can be a package id: letters, digits and underlines, with single dots and dashes between them."""
    return all(part.replace("_", "a").isalnum() for part in name.replace("-", ".").split("."))


def _homes(environ: Mapping[str, str], folders: Folders) -> tuple[str, ...]:
    """The folders that are the user's home for the .NET CLI: that of DOTNET_CLI_HOME first."""
    instead = environ.get("DOTNET_CLI_HOME", "").strip()
    return (instead, folders.home) if os.path.isabs(instead) else (folders.home,)


def _configured_folder(directory: str, environ: Mapping[str, str], folders: Folders, issues: list[Issue]) -> str | None:
    for path in _config_files(directory, environ, folders):
        try:
            value = _global_packages_folder(read_bytes(path, MAX_CONFIG_BYTES))
        except FileNotFoundError:
            continue
        except (FileProblem, XmlProblem) as problem:
            issues.append(warning("NuGetConfigInvalid", f"{path} cannot be read: {problem}."))
            continue
        if value:
            import re  # few users have such a file

            expanded = re.sub(r"%([^%]+)%", lambda match: environ.get(match[1], match[0]), value)
            return os.path.normpath(os.path.join(os.path.dirname(path), expanded.replace("\\", os.sep)))
    return None


def _config_files(directory: str, environ: Mapping[str, str], folders: Folders) -> Iterator[str]:
    """The nuget.config files: nearest first, then the user's."""
    for folder in upwards(directory):
        yield from _existing_configs(folder)
    yield from _existing_configs(os.path.join(folders.application_data, "NuGet"))
    for home in _homes(environ, folders):
        yield from _existing_configs(os.path.join(home, ".nuget", "NuGet"))


def _existing_configs(directory: str) -> Iterator[str]:
    for name in CONFIG_NAMES:
        path = os.path.join(directory, name)
        if os.path.exists(path):
            yield path
            return


def _global_packages_folder(data: bytes) -> str | None:
    root = parse_xml(data)
    if root.name != "configuration":
        return None
    for section in root.elements:
        if section.name != "config":
            continue
        for entry in section.elements:
            if entry.name == "add" and entry.attributes.get("key", "").lower() == "globalpackagesfolder":
                return entry.attributes.get("value", "").strip() or None
    return None


def _distinct(locations: Iterable[str]) -> Iterator[str]:
    """The absolute folders, normalised and without duplicates."""
    seen: set[str] = set()
    for location in locations:
        # A restore that was made in WSL names folders without a drive, which since Python 3.13 are relative on Windows.
        if not os.path.isabs(location) and not location.startswith("/"):
            continue
        normal = os.path.normpath(location)
        if os.path.normcase(normal) not in seen:
            seen.add(os.path.normcase(normal))
            yield normal
