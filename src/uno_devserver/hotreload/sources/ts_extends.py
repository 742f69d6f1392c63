"""Where is the configuration that another one extends? Beside it, or in a package, by the rules of Node."""

from __future__ import annotations

from .ts_packages import export_targets, split_name
from .ts_paths import absolute, folder_of, is_relative, name_of, rooted

TYPE_CHECKING = False
if TYPE_CHECKING:
    from .ts_disk import Disk

_CONDITIONS = ("require", "types", "node")


def locate(name: str, folder: str, disk: Disk) -> str | None:
    """The file that `extends: name` means in a configuration in `folder`."""
    if rooted(name) or name.startswith(("./", "../")):
        return _file(absolute(name, folder), disk)
    if not name:
        return None
    if is_relative(name):
        return _file(f"{absolute(name, folder)}/tsconfig", disk)
    here = folder
    while True:
        if name_of(here) != "node_modules" and disk.has(modules := f"{here.rstrip('/')}/node_modules", folder=True):
            found = _in_package(name, modules, disk)
            if found is not None:
                return disk.real(found)
        above = folder_of(here)
        if above == here:
            return None
        here = above


def _in_package(name: str, modules: str, disk: Disk) -> str | None:
    package_name, inside = split_name(name)
    package_folder = f"{modules}/{package_name}"
    package = disk.package(package_folder) or {}
    if package.get("exports"):
        targets = export_targets(package["exports"], inside, _CONDITIONS) or ()
        paths = (absolute(target, package_folder) for target in targets)
        return next((path for path in paths if disk.has(path, folder=False)), None)
    candidate = absolute(name, modules)
    field = None if inside else package.get("tsconfig")
    named = absolute(field, package_folder) if isinstance(field, str) else None
    return (
        _file(candidate, disk)
        or (named and (_file(named, disk) or _file(f"{named}/tsconfig", disk)))
        or _file(f"{candidate}/tsconfig", disk)
    )


def _file(path: str, disk: Disk) -> str | None:
    """The path, or with `.json` behind it."""
    if path.endswith(".json") and disk.has(path, folder=False):
        return path
    return found if disk.has(found := f"{path}.json", folder=False) else None
