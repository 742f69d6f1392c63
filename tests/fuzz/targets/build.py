"""What MSBuild would say: XML, conditions, expressions, items."""

from __future__ import annotations

import json
import re
from unittest.mock import patch
from xml.sax.saxutils import escape, unescape

from support.golden import GOLDEN
from uno_devserver.discovery.import_filter import ImportFilter
from uno_devserver.msbuild import conditions, expressions, globs  # noqa: F401  # to be instrumented
from uno_devserver.msbuild.conditions import BUILT_IN, CUSTOM_METADATA, ITEMS, Condition
from uno_devserver.msbuild.evaluation import Evaluator, Item
from uno_devserver.msbuild.frameworks import is_compatible, parse_framework
from uno_devserver.msbuild.functions import calls, dotnet_functions, expansion, msbuild_functions, string_methods  # noqa: F401
from uno_devserver.msbuild.problems import EvaluationProblem
from uno_devserver.msbuild.xml import Element, XmlProblem, parse_xml

from ..documents import BUILT, RAW
from ..pieces import Pieces
from ..scratch import folder, put
from ..target import Target, told

# A tenth of what a real evaluation may cost, or less: an input then ends in time, although every branch is counted.
BOUNDS = {"MAX_STEPS": 100_000, "MAX_ENTRIES": 2_000, "MAX_TOTAL_TEXT": 4 * 1024 * 1024, "MAX_TEXT": 256 * 1024}

ITEM = "UnoRemoteControlAddIns"


# --- XML --------------------------------------------------------------------------------------------------------------


def check_xml(data: bytes) -> None:
    """A tree whose lines are right, which reads the same when it is written again; or a problem with a place."""
    try:
        root = parse_xml(data)
    except XmlProblem as problem:
        told(problem, "line", "column")
        return
    again = parse_xml(_written(root).encode("utf-8", "surrogatepass"))
    assert _shape(root) == _shape(again)
    path = put("any.targets", data)
    relevance = ImportFilter(ITEM)
    relevance.choose([path])


def _written(root: Element) -> str:
    """Elements and attributes; texts are not the question here."""
    pieces: list[str] = []
    waiting: list[Element | str] = [root]
    while waiting:
        part = waiting.pop()
        if isinstance(part, str):
            pieces.append(part)
            continue
        attributes = "".join(f' {name}="{_attribute(value)}"' for name, value in part.attributes.items())
        pieces.append(f"<{part.name}{attributes}>")
        waiting += [f"</{part.name}>", *reversed(part.elements)]
    return "".join(pieces)


def _attribute(value: str) -> str:
    return escape(value, {'"': "&quot;", "\n": "&#10;", "\r": "&#13;", "\t": "&#9;"})


def _shape(root: Element) -> list[tuple[str, list[tuple[str, str]]]]:
    found, waiting = [], [root]
    while waiting:
        element = waiting.pop()
        assert element.line >= 1
        found.append((element.name, [(name, _blanks(value)) for name, value in element.attributes.items()]))
        waiting += element.elements
    return found


def _blanks(value: str) -> str:
    return " ".join(value.split())


XML_WORDS = (
    "<", ">", "/>", "</", "<!--", "-->", "<![CDATA[", "]]>", "<?xml version='1.0'?>", "<!DOCTYPE", "[", "&amp;",
    "&#x41;", "&#0;", "xmlns:a='b'", "a:", "xml:space='preserve'", "Project", "ItemGroup", "Include=", "'", '"',
    "\ufeff", "\u00a0",
)  # fmt: skip


def target_files() -> list[bytes]:
    cases = json.loads((GOLDEN / "msbuild" / "cases.json").read_text("utf-8"))
    texts = {text: None for case in cases for text in case["files"].values() if isinstance(text, str)}
    return [text.encode() for text in list(texts)[::7] if len(text) < 1500]


# --- conditions -------------------------------------------------------------------------------------------------------

UNKNOWN = "$(Nope)"
VALUES = ("", "true", "false", "1", "x", "2.0")
CONDITION_WORDS = (
    " ", "'", "''", "(", ")", "!", " and ", " or ", " == ", " != ", " < ", " > ", " <= ", " >= ", "true", "false",
    "on", "no", "1", "0x1F", "-1.5", "'1.2.3'", "'a'", "'x'", UNKNOWN, f"'{UNKNOWN}'", "Exists(", "HasTrailingSlash(",
    ",", "$(", "@(X)", "%(K)", "'there'", "AND", "Or", "'true'", "!'on'", "'$(Nope)x'", ";", "$(A)", "\t", "é",
)  # fmt: skip


class _Words:
    """Words that are worth themselves, and a property that is unknown, unless it is given a value."""

    def __init__(self, value: str | None = None) -> None:
        self._value = value

    def text(self, raw: str) -> str | None:
        if UNKNOWN not in raw:
            return raw
        return None if self._value is None else raw.replace(UNKNOWN, self._value)

    def paths(self, raw: str) -> list[str] | None:
        known = self.text(raw)
        return None if known is None else [path for path in known.split(";") if path]

    def exists(self, path: str) -> bool:
        return path.startswith("there")


def check_condition(data: bytes) -> None:
    """True, false, unknown or a problem with a code; and what is not unknown is so whatever the unknown may be."""
    text = Pieces(data[1:]).joined(CONDITION_WORDS) if data[:1] == BUILT else data[1:].decode("utf-8", "replace")
    try:
        condition = Condition(text, ITEMS | CUSTOM_METADATA | BUILT_IN)
        worth = condition.evaluate(_Words())
    except EvaluationProblem as problem:
        told(problem, problem.code or "a code")
        return
    assert worth in (True, False, None)
    if worth is None:
        assert UNKNOWN in text
        return
    for value in VALUES:
        try:
            assert condition.evaluate(_Words(value)) is worth, f"{text!r} is {worth}, but not with {value!r}"
        except EvaluationProblem:
            pass  # MSBuild gives up on that value


def condition_seeds() -> list[bytes]:
    cases = json.loads((GOLDEN / "msbuild" / "cases.json").read_text("utf-8"))
    texts = [text for case in cases for text in case["files"].values() if isinstance(text, str)]
    found = [unescape(written) for text in texts for written in re.findall(r'Condition="([^"]*)"', text)]
    return [RAW + text.encode() for text in dict.fromkeys(found)] + [BUILT + bytes([24, 8, 17, 6, 14])]


# --- whole files ------------------------------------------------------------------------------------------------------

EXPRESSION_WORDS = (
    "a", "b;c", ";", "$(A)", "$(B)", "$(Nope)", "$(", ")", "..\\x\\*.dll", "**/*", "@(X)", "@(Y->'%(K)')",
    "@(X, ',')", "@(X->Count())", "@(X->Distinct())", "@(X->WithMetadataValue('K', 'a'))", "%(K)", "%(Identity)",
    "%(X.K)", "%2a%00%3b", "$(A.Replace('a', 'b'))", "$(A.Substring(1))", "$(A.Substring(0, 99))", "$(A.Length)",
    "$(A.Split(';'))", "$(A.Trim())", "$(A.PadLeft(99))", "$(A[0])", "$(A.IndexOf('a'))", "$(A.Contains($(B)))",
    "$(A.ToUpper().StartsWith('A'))", "$([MSBuild]::Add(1, $(A)))", "$([MSBuild]::Divide(1, 0))",
    "$([MSBuild]::VersionGreaterThan('$(A)', '1.0'))", "$([MSBuild]::IsOSPlatform('Linux'))",
    "$([MSBuild]::GetTargetFrameworkIdentifier('$(B)'))", "$([MSBuild]::EnsureTrailingSlash('$(A)'))",
    "$([MSBuild]::MakeRelative('$(A)', '$(B)'))", "$([MSBuild]::Escape('$(A)'))",
    "$([MSBuild]::GetPathOfFileAbove('$(A)'))", "$([MSBuild]::NormalizePath('$(A)', '..'))",
    "$([MSBuild]::ValueOrDefault('$(A)', 'x'))", "$([System.IO.Path]::GetFullPath('$(B)'))",
    "$([System.IO.Path]::Combine('$(A)', '/b'))", "$([System.IO.Path]::GetFileName('$(A)'))",
    "$([System.String]::Join(';', $(A)))", "$([System.Version]::Parse('$(B)'))", "$([System.DateTime]::Now)",
    "$([System.IO.File]::Exists('$(A)'))", "$([System.Environment]::GetEnvironmentVariable('A'))", "$(A.", "$([",
    "''", "'", "-1", "99999999999", "1.2.3", "net10.0-ios", "$(MSBuildThisFileDirectory)", "$(MSBuildProjectName)",
    "%", "%(", "é", "\u2028", "$(Registry:HKLM\\A)", "1" * 400,
)  # fmt: skip
NAMES = ("A", "B", "a", "C_1")
TYPES = ("X", "Y", ITEM)


def check_targets(data: bytes) -> None:
    """Items and properties, or a problem with a code; the same each time; what is certain is so in MSBuild, too."""
    text = _project(Pieces(data[1:])).encode() if data[:1] == BUILT else data[1:]
    with patch.multiple(expressions, **BOUNDS):  # type: ignore[call-overload]
        _check_project(put("build/any.targets", text))


def _check_project(path: str) -> None:
    project = str(folder() / "build" / "App.csproj")
    try:
        evaluation = Evaluator(project).evaluate([path])
    except EvaluationProblem as problem:
        told(problem, problem.code or "a code")
        return
    items = [evaluation.items(name) for name in TYPES]
    for name in NAMES:
        evaluation.property(name)
    again = Evaluator(project).evaluate([path])
    assert [again.items(name) for name in TYPES] == items
    for item in (item for found in items for item in found):
        _check_item(item)


def _check_item(item: Item) -> None:
    assert item.identity
    assert item.defined_in
    assert isinstance(item.full_path, str)


def _project(pieces: Pieces) -> str:
    groups = [_group(pieces) for _ in range(1 + pieces.number(4))]
    return f"<Project>{''.join(groups)}</Project>"


def _group(pieces: Pieces) -> str:
    kind = pieces.number(6)
    condition = _attributes(pieces, ("Condition",)) if pieces.number(4) == 0 else ""
    if kind == 0:
        return f'<Import Project="{_value(pieces)}"{condition} />'
    if kind < 3:
        inside = "".join(_property(pieces) for _ in range(pieces.number(4)))
        return f"<PropertyGroup{condition}>{inside}</PropertyGroup>"
    name = "ItemDefinitionGroup" if kind == 3 else "ItemGroup"
    inside = "".join(_item(pieces, name == "ItemGroup") for _ in range(pieces.number(5)))
    return f"<{name}{condition}>{inside}</{name}>"


def _property(pieces: Pieces) -> str:
    name = pieces.choice(NAMES)
    condition = _attributes(pieces, ("Condition",)) if pieces.number(3) == 0 else ""
    return f"<{name}{condition}>{_value(pieces)}</{name}>"


def _item(pieces: Pieces, whole: bool) -> str:
    name = pieces.choice(TYPES)
    operation = pieces.choice(("Include", "Include", "Remove", "Update")) if whole else ""
    more = pieces.choice(
        ((), ("Exclude",), ("KeepDuplicates",), ("KeepMetadata",), ("Condition",), ("MatchOnMetadata",))
    )
    more = () if operation != "Include" and more in (("Exclude",), ("KeepDuplicates",)) else more
    attributes = _attributes(pieces, (*((operation,) if operation else ()), *(more if whole else ())))
    return f"<{name}{attributes}><K>{_value(pieces)}</K></{name}>"


def _attributes(pieces: Pieces, names: tuple[str, ...]) -> str:
    return "".join(
        f' {name}="{_condition(pieces) if name in ("Condition", "KeepDuplicates") else _value(pieces)}"'
        for name in names
    )


def _condition(pieces: Pieces) -> str:
    one, other = _value(pieces), _value(pieces)
    form = pieces.choice(
        ("'{}' == '{}'", "'{}' != '{}'", "Exists('{}')", "{}", "'{}' > '{}'", "!({})", "'{}' == '' or '{}' == 'a'")
    )
    return form.format(one, other)


def _value(pieces: Pieces) -> str:
    words = [pieces.choice(EXPRESSION_WORDS) for _ in range(1 + pieces.number(3))]
    return escape("".join(words), {'"': "&quot;"})


def check_framework(data: bytes) -> None:
    """A framework that fits itself, or none."""
    one, _, other = data.decode("utf-8", "replace").partition(" ")
    target, candidate = parse_framework(one), parse_framework(other)
    if target is not None:
        assert is_compatible(target, target) is not False
    if target is not None and candidate is not None:
        is_compatible(target, candidate)


TARGETS = (
    Target("xml", "a tree that reads the same again, or a problem with its place", check_xml, target_files, XML_WORDS),
    Target(
        "conditions",
        "true, false or unknown; what is known stays so for every value of the unknown",
        check_condition,
        condition_seeds,
        CONDITION_WORDS,
        400,
    ),
    Target(
        "targets",
        "items in bounded time, the same each time, or a problem with its code",
        check_targets,
        lambda: (
            [RAW + text for text in target_files()]
            + [BUILT + bytes(range(start, start + 80)) for start in range(0, 170, 10)]
        ),
        (*EXPRESSION_WORDS[:-1], *XML_WORDS[:13]),
        1000,
    ),
    Target(
        "frameworks",
        "fits itself, or is none",
        check_framework,
        lambda: [b"net10.0-ios26.0 netstandard2.0", b"net472 net48", b"netcoreapp3.1 net5.0"],
        ("net", "netstandard", "netcoreapp", ".", "-", "9"),
        200,
    ),
)
