"""Expands item lists in text: @(Type), @(Type, '+'), @(Type->'%(Filename)'), @(Type->Distinct()), and chains."""

from __future__ import annotations

import os
import re

from .expressions import GUESS, MAX_TEXT, UNKNOWN, escape, guessed, is_known, split_list, too_long, unescape
from .functions.calls import FunctionCall, FunctionFailed, NoSuchFunction, NotImplementedHere, to_text
from .functions.string_methods import METHODS
from .metadata import ItemEntry, built_in, is_built_in, replace_references
from .paths import full_path, ignoring_case, to_slashes
from .problems import UNSUPPORTED, EvaluationProblem, quoted

TYPE_CHECKING = False
if TYPE_CHECKING:
    from collections.abc import Callable
    from typing import Protocol

    from .expressions import EvaluationScope

    class Lists(Protocol):
        """The items so far; `entries` returns None if the items of a type are unknown."""

        scope: EvaluationScope

        def entries(self, name: str) -> list[ItemEntry] | None: ...
        def value(self, entry: ItemEntry, name: str) -> str: ...


# A dash belongs to a name unless it starts an arrow.
_NAME = r"[A-Za-z_](?:[0-9A-Za-z_]|-(?!>))*"
_HEAD = re.compile(rf"@\(\s*({_NAME})\s*").match
_ARROW = re.compile(rf"->\s*(?:'([^']*)'|({_NAME})\s*\()\s*").match
_ARGUMENT = re.compile(r"\s*(?:'([^']*)'|`([^`]*)`|\"([^\"]*)\"|([^'`\",()]*))\s*([,)]?)\s*").match
_TAIL = re.compile(r"(?:,\s*'([^']*)'\s*)?\)").match

# A value made from items: its escaped text, and its item, if it comes from one item.
Selected = tuple[str, ItemEntry | None]


class ItemTransform:
    """A transform after an arrow: a template, or a function with its arguments."""

    __slots__ = ("arguments", "function", "template")

    def __init__(self, template: str | None, function: str, arguments: list[str]) -> None:
        self.template = template
        self.function = function
        self.arguments = arguments


class ItemExpression:
    __slots__ = ("end", "name", "separator", "start", "steps")

    def __init__(self, name: str, start: int) -> None:
        self.name = name
        self.start = start
        self.end = start
        self.steps: list[ItemTransform] = []
        self.separator: str | None = None


def find_expressions(text: str) -> list[ItemExpression]:
    """The well-formed item lists in a text; everything else is literal."""
    found = []
    position = text.find("@(")
    while position >= 0:
        expression = _parse(text, position)
        if expression:
            found.append(expression)
        position = text.find("@(", expression.end if expression else position + 2)
    return found


def split_outside_lists(text: str) -> list[str]:
    """The parts of a;b;c; semicolons inside an item list do not separate."""
    parts = []
    start = position = 0
    ends = [(expression.start, expression.end) for expression in find_expressions(text)]
    for list_start, list_end in [*ends, (len(text), len(text))]:
        while (cut := text.find(";", position, list_start)) >= 0:
            parts.append(text[start:cut])
            start = position = cut + 1
        position = list_end
    parts.append(text[start:])
    return [part for part in map(str.strip, parts) if part]


def expand_lists(text: str, lists: Lists) -> str:
    """Replaces each item list in the text by its values."""
    done = []
    position = 0
    for expression in find_expressions(text):
        done.append(text[position : expression.start])
        selected = select(expression, lists)
        if selected is None:
            done.append(UNKNOWN)
        else:
            separator = ";" if expression.separator is None else expression.separator
            done.append(join(selected, separator))
        position = expression.end
    done.append(text[position:])
    return lists.scope.checked("".join(done))


def join(selected: list[Selected], separator: str) -> str:
    """Joins the values; the result is a guess if one of the items is uncertain."""
    if sum(len(value) + len(separator) for value, _ in selected) > MAX_TEXT:
        raise too_long(selected[0][0])
    joined = separator.join(value for value, _ in selected)
    return guessed(joined) if any(entry and not entry.certain for _, entry in selected) else joined


def select(expression: ItemExpression, lists: Lists) -> list[Selected] | None:
    """The values of an item list; None if they are unknown. Raises EvaluationProblem."""
    entries = lists.entries(expression.name)
    if entries is None:
        return None
    lists.scope.count_steps(len(entries) * (1 + len(expression.steps)))
    selected: list[Selected] = [(entry.identity, entry) for entry in entries]
    for step in expression.steps:
        if step.template is not None:
            selected = [(_transformed(step.template, entry, lists), entry) for _, entry in selected]
            selected = [pair for pair in selected if pair[0]]
            continue
        changed = _apply(step, selected, lists)
        if changed is None:
            return None
        selected = changed
    return selected


def _parse(text: str, start: int) -> ItemExpression | None:
    head = _HEAD(text, start)
    if not head:
        return None
    expression = ItemExpression(head.group(1), start)
    position = head.end()
    while arrow := _ARROW(text, position):
        template, function = arrow.groups()
        position = arrow.end()
        arguments: list[str] = []
        if function:
            position = _parse_arguments(text, position, arguments)
            if position < 0:
                return None
        expression.steps.append(ItemTransform(template, function or "", arguments))
    tail = _TAIL(text, position)
    if not tail:
        return None
    expression.separator = tail.group(1)
    expression.end = tail.end()
    return expression


def _parse_arguments(text: str, position: int, arguments: list[str]) -> int:
    """Collects the arguments; returns the position after the closing parenthesis and blanks, or -1."""
    while True:
        argument = _ARGUMENT(text, position)
        if not argument:
            return -1
        *quoted_or_bare, end = argument.groups()
        arguments.append(next(group for group in (*quoted_or_bare, "") if group is not None).strip())
        position = argument.end()
        if end == ")":
            if arguments == [""]:
                arguments.clear()
            return position
        if end != ",":
            return -1


def _transformed(template: str, entry: ItemEntry | None, lists: Lists) -> str:
    def value(type_name: str | None, name: str) -> str:
        if type_name:
            raise EvaluationProblem("MSB4043", f"%({type_name}.{name}) names the item type again; write %({name})")
        return lists.value(entry, name) if entry else ""

    return lists.scope.checked(replace_references(template, value))


def _apply(step: ItemTransform, selected: list[Selected], lists: Lists) -> list[Selected] | None:
    name = step.function.lower()
    if name in _LIST_FUNCTIONS:
        return _LIST_FUNCTIONS[name](step, selected, lists)
    if is_built_in(name):
        return [(built_in(entry, name, lists.scope), entry) for _, entry in selected if entry]
    if name in METHODS:
        return [(_called(step, value, lists), entry) for value, entry in selected]
    if name in _OTHER_FUNCTIONS:
        if lists.scope.three_valued:
            return None
        raise EvaluationProblem(UNSUPPORTED, f"the item function {step.function} is not supported")
    raise EvaluationProblem("MSB4200", f"there is no item function {step.function}")


def _called(step: ItemTransform, value: str, lists: Lists) -> str:
    if UNKNOWN in value:
        return UNKNOWN
    call = FunctionCall(unescape(value.replace(GUESS, "")), lists.scope)
    try:
        result = METHODS[step.function.lower()](call, [unescape(argument) for argument in step.arguments])
    except NotImplementedHere:
        return UNKNOWN
    except (FunctionFailed, NoSuchFunction) as failure:
        raise EvaluationProblem("MSB4198", f"{step.function} cannot be called on {quoted(value)}: {failure}") from None
    return escape(to_text(result))


def _by_metadata(step: ItemTransform, entry: ItemEntry | None, lists: Lists) -> str:
    if len(step.arguments) < 1:
        raise EvaluationProblem("MSB4199", f"{step.function} needs the name of a metadata")
    return unescape(lists.value(entry, step.arguments[0])) if entry else ""


def _equals_argument(step: ItemTransform, value: str) -> bool:
    if len(step.arguments) != 2:
        raise EvaluationProblem("MSB4199", f"{step.function} needs the name and the value of a metadata")
    return ignoring_case(value) == ignoring_case(unescape(step.arguments[1]))


def _with_value(keep: bool) -> Callable[[ItemTransform, list[Selected], Lists], list[Selected]]:
    def function(step: ItemTransform, selected: list[Selected], lists: Lists) -> list[Selected]:
        kept: list[Selected] = []
        for text, entry in selected:
            value = _by_metadata(step, entry, lists)
            if not is_known(value):
                kept.append((GUESS + text, entry))
            elif _equals_argument(step, value) is keep:
                kept.append((text, entry))
        return kept

    return function


def _distinct(ignore_case: bool) -> Callable[[ItemTransform, list[Selected], Lists], list[Selected]]:
    def function(_: ItemTransform, selected: list[Selected], __: Lists) -> list[Selected]:
        seen: dict[str, Selected] = {}
        for pair in selected:
            seen.setdefault(ignoring_case(pair[0]) if ignore_case else pair[0], pair)
        return list(seen.values())

    return function


def _metadata_values(step: ItemTransform, selected: list[Selected], lists: Lists) -> list[Selected]:
    found: list[Selected] = []
    for _, entry in selected:
        if entry and step.arguments:
            found.extend((part, entry) for part in split_list(lists.value(entry, step.arguments[0])))
    return found


def _existing(_: ItemTransform, selected: list[Selected], lists: Lists) -> list[Selected]:
    folder = lists.scope.folder
    return [pair for pair in selected if os.path.exists(full_path(to_slashes(unescape(pair[0])), folder))]


def _folder_names(_: ItemTransform, selected: list[Selected], lists: Lists) -> list[Selected]:
    folder = lists.scope.folder
    return [
        (escape(os.path.dirname(full_path(to_slashes(unescape(value)), folder))), entry) for value, entry in selected
    ]


def _any_has(step: ItemTransform, selected: list[Selected], lists: Lists) -> list[Selected]:
    found = any(_equals_argument(step, _by_metadata(step, entry, lists)) for _, entry in selected)
    return [("true" if found else "false", None)]


# By name in lower case.
_LIST_FUNCTIONS: dict[str, Callable[[ItemTransform, list[Selected], Lists], list[Selected]]] = {
    "anyhavemetadatavalue": _any_has,
    "clearmetadata": lambda _, selected, __: [(value, None) for value, _ in selected],
    "count": lambda _, selected, __: [(str(len(selected)), None)],
    "directoryname": _folder_names,
    "distinct": _distinct(ignore_case=True),
    "distinctwithcase": _distinct(ignore_case=False),
    "exists": _existing,
    "hasmetadata": lambda step, selected, lists: [pair for pair in selected if _by_metadata(step, pair[1], lists)],
    "metadata": _metadata_values,
    "reverse": lambda _, selected, __: selected[::-1],
    "withmetadatavalue": _with_value(keep=True),
    "withoutmetadatavalue": _with_value(keep=False),
}
_OTHER_FUNCTIONS = frozenset(("combine", "getpathsofalldirectoriesabove"))
