"""The packages of a workspace, each in the version that counts: restored, else as the SDK lists it."""

from __future__ import annotations

from ..issues import Issue, warning
from ..system.values import Value

TYPE_CHECKING = False
if TYPE_CHECKING:
    from collections.abc import Callable, Iterable, Mapping, Sequence

    from .restore import Restored
    from .sdk_packages import SdkPackage


class Package(Value):
    name: str
    version: str
    restored: bool
    listed_version: str = ""  # the version that the SDK lists for other frameworks, where that is another one

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
) -> Mapping[str, Package]:
    """By name in lower case: the SDK's packages in their order, then those that only restore knows.

    `default_framework` is asked only when a version depends on it: it may have to start a process.
    """
    versions: dict[str, str] = {}
    for one in restored:
        for name, version in one.listed:
            versions.setdefault(name.lower(), version)
    merged: dict[str, Package] = {}
    for package in sdk_packages:
        key, version = package.name.lower(), package.version
        if package.overrides and key not in versions:
            version = package.version_for(frameworks or [name for name in (default_framework(),) if name])
        listed = package.version if version != package.version else ""
        merged[key] = Package(package.name, versions.get(key, version), key in versions, listed)
    for one in restored:
        for known in one.packages:
            merged.setdefault(known.name.lower(), Package(known.name, known.version, True))
    return merged
