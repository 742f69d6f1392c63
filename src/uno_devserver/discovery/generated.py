"""`<project>.nuget.g.props` and `.g.targets`, read line by line.

NuGet generates these files in one fixed form: two kinds of conditions, one import or property per line. Reading them as
that form takes a tenth of the time of an evaluation, which would be most of the time of a whole discovery. A file with
any other line, or with characters that need decoding, is not read here: the evaluator decides.
"""

from __future__ import annotations

import os
import re

TYPE_CHECKING = False
if TYPE_CHECKING:
    from collections.abc import Iterable

_GROUP = re.compile(
    r"<(?:Import|Property|Item)Group Condition=\" "
    r"(?:'\$\(TargetFramework\)' == '([^']*)' AND )?'\$\(ExcludeRestorePackageImports\)' != 'true' \">"
)
_PROPERTY = re.compile(r"<(\w+) Condition=\" '\$\(\1\)' == '' \">([^<]*)</\1>")
_IMPORT = re.compile(r"<Import Project=\"([^\"]*)\" Condition=\"Exists\('\1'\)\" />")
_FRAME = ("<?xml ", "<Project ", "</Project>", "</PropertyGroup>", "</ImportGroup>", "</ItemGroup>", "<SourceRoot ")
_ROOT = "$(NuGetPackageRoot)"


# Framework, name and value of a property, or of an import, which has no name. The framework is None where the line
# counts for all, and empty where it counts for the outer build only.
Line = tuple[str | None, str, str]


def read_generated(texts: Iterable[str]) -> list[Line] | None:
    """The lines of g.props and g.targets that say something; None if they are not in NuGet's form."""
    lines: list[Line] = []
    framework: str | None = None
    for text in texts:
        if "&" in text or "%" in text:
            return None
        for raw in text.splitlines():
            line = raw.strip()
            if found := _IMPORT.fullmatch(line):
                lines.append((framework, "", found[1]))
            elif found := _PROPERTY.fullmatch(line):
                lines.append((framework, found[1], found[2]))
            elif found := _GROUP.fullmatch(line):
                framework = found[1]
            elif line and not line.startswith(_FRAME):
                return None
    return lines


def select(lines: Iterable[Line], framework: str | None) -> tuple[list[str], dict[str, str]]:
    """The imports, in order and as full paths, and the properties that count for a framework (None: any)."""
    properties: dict[str, str] = {}
    imports: list[str] = []
    for condition, name, value in lines:
        if condition is not None and condition != framework and (framework is not None or not condition):
            continue
        if name:
            properties.setdefault(name, value)
        else:
            imports.append(value)
    root = properties.get("NuGetPackageRoot", "")
    return (
        [os.path.normpath(value.replace(_ROOT, root)) for value in imports],
        {name: value for name, value in properties.items() if name.startswith(("NuGet", "Pkg"))},
    )
