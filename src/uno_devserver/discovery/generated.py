"""`<project>.nuget.g.props` and `.g.targets`, read line by line.

NuGet generates these files in one fixed form: two kinds of conditions, one import or property per line. Reading them as
that form takes a tenth of the time of an evaluation, which would be most of the time of a whole discovery. A file with
any other line, or with characters that need decoding, is not read here: the evaluator decides.
"""

from __future__ import annotations

import os

TYPE_CHECKING = False
if TYPE_CHECKING:
    from collections.abc import Iterable

# Plain text instead of patterns: compiling those would take longer than reading the files.
_IMPORT = '<Import Project="'
_IF_EXISTS = '" Condition="Exists(\''
_GROUPS = ('<ImportGroup Condition=" ', '<PropertyGroup Condition=" ', '<ItemGroup Condition=" ')
_ALWAYS = "'$(ExcludeRestorePackageImports)' != 'true' \">"
_FOR_FRAMEWORK = "'$(TargetFramework)' == '"
_FRAME = ("<?xml ", "<Project ", "</Project>", "</PropertyGroup>", "</ImportGroup>", "</ItemGroup>", "<SourceRoot ")
_END = "</Project>"
_WANTED = ("NuGet", "Pkg")
_ROOT = "$(NuGetPackageRoot)"


# Framework, name and value of a property, or of an import, which has no name. The framework is None where the line
# counts for all, and empty where it counts for the outer build only.
Line = tuple[str | None, str, str]


def read_generated(texts: Iterable[str]) -> list[Line] | None:
    """The lines of g.props and g.targets that say something; None if they are not in NuGet's form."""
    lines: list[Line] = []
    framework: str | None = None
    for text in texts:
        inside = False  # a group: outside of one, no condition is known
        if "&" in text or "%" in text or not text.rstrip().endswith((_END, "/>")):
            return None
        for raw in text.splitlines():
            line = raw.strip()
            if line.startswith(_IMPORT):
                path, _, rest = line[len(_IMPORT) :].partition(_IF_EXISTS)
                if rest != path + "')\" />" or "$(" in path.removeprefix(_ROOT) or not inside:
                    return None
                lines.append((framework, "", path))
            elif line.startswith(_GROUPS):
                condition = line.partition('=" ')[2].removesuffix(_ALWAYS)
                framework = condition.removeprefix(_FOR_FRAMEWORK).removesuffix("' AND ") if condition else None
                inside = True
                if condition and (condition != f"{_FOR_FRAMEWORK}{framework}' AND " or "'" in (framework or "")):
                    return None
            elif line.startswith(_FRAME):
                if line.count("<") > 1:  # somebody joined the lines
                    return None
                inside = inside and not line.startswith("</")
            elif line:
                name = line[1 : line.find(" ")]
                start, end = f"<{name} Condition=\" '$({name})' == '' \">", f"</{name}>"
                value = line[len(start) : -len(end)]
                if not line.startswith(start) or not line.endswith(end) or not inside:
                    return None
                if "$(" in value and name.startswith(_WANTED):
                    return None  # on Windows the root is written with $(UserProfile)
                lines.append((framework, name, value))
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
    # A root ends with a slash or not, and the imports take that into account.
    root = properties.get("NuGetPackageRoot", "")
    return (
        [_normal(value.replace(_ROOT, root)) for value in imports],
        {name: value for name, value in properties.items() if name.startswith(_WANTED)},
    )


def _normal(path: str) -> str:
    """What NuGet writes is normal as a rule, and looking is cheaper than normalising."""
    return os.path.normpath(path) if "//" in path or "/." in path or "\\" in path else path
