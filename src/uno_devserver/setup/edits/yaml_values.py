"""What nodes of a YAML text mean, as plain values by the rules of YAML 1.2, which the clients' readers follow.

No tag makes anything but text, numbers, truth, nothing, lists and dictionaries, and aliases make no more than a bound.
"""

from __future__ import annotations

import re

from .document import EditProblem
from .yaml_nodes import ALIAS, MAPPING, SCALAR, SEQUENCE, Node

MAX_REFERRED = 10_000  # nodes read through aliases: the entries of a real configuration have dozens

_TAGS = "tag:yaml.org,2002:"
_NULLS = ("", "~", "null", "Null", "NULL")
_TRUTHS = {"true": True, "True": True, "TRUE": True, "false": False, "False": False, "FALSE": False}
_INTEGER = re.compile(r"[-+]?[0-9]{1,4000}|0o[0-7]+|0x[0-9a-fA-F]+")  # Python refuses decimal ones that are longer
_FLOAT = re.compile(
    r"[-+]?(?:\.[0-9]+|[0-9]+(?:\.[0-9]*)?)(?:[eE][-+]?[0-9]+)?|[-+]?\.(?:inf|Inf|INF)|\.(?:nan|NaN|NAN)"
)


class Meanings:
    """Values of nodes of one text; all together follow aliases up to the bound."""

    def __init__(self) -> None:
        self._referred = 0

    def of(self, node: Node, referred: bool = False) -> object:
        if referred:
            self._referred += 1
            if self._referred > MAX_REFERRED:
                raise EditProblem("refers to too much through aliases")
        if node.kind == ALIAS:
            return self.of(referent(node), True)
        if node.kind == SCALAR:
            return _scalar(node)
        if node.tag not in (None, "!", f"{_TAGS}map", f"{_TAGS}seq"):
            return None  # sets, ordered maps and what a program made up
        if node.kind == SEQUENCE:
            return [self.of(item, referred) for item in node.items]
        merged: dict[str, object] = {}
        own: dict[str, object] = {}
        for key, value in node.pairs:
            if is_merge(key):
                merged = {**self._merged(value, referred), **merged}
            else:
                own[name_of(key)] = self.of(value, referred)
        return {**merged, **own}

    def _merged(self, node: Node, referred: bool) -> dict[str, object]:
        """What `<<` brings: the settings of a mapping, or of several, of which the first counts."""
        value = self.of(node, referred)
        several = value if isinstance(value, list) else [value]
        settings: dict[str, object] = {}
        for one in several:
            settings = {**(one if isinstance(one, dict) else {}), **settings}
        return settings


def name_of(node: Node) -> str:
    """What a key, or a name, says: its text, also where that is a number; "" for what cannot be a name."""
    found = referent(node)
    return found.value if found.kind == SCALAR else ""


def referent(node: Node) -> Node:
    while node.kind == ALIAS:
        if node.target is None:
            raise EditProblem(f"refers to itself through the alias *{node.value}")
        node = node.target
    return node


def is_merge(key: Node) -> bool:
    return key.kind == SCALAR and key.is_bare and not key.style and key.value == "<<"


def is_null(node: Node) -> bool:
    return node.kind == SCALAR and _scalar(node) is None


def equal(one: object, other: object) -> bool:
    """The same value; truth is no number."""
    if isinstance(one, list) and isinstance(other, list):
        return len(one) == len(other) and all(map(equal, one, other))
    if isinstance(one, dict) and isinstance(other, dict):
        return one.keys() == other.keys() and all(equal(one[key], other[key]) for key in one)
    return isinstance(one, bool) == isinstance(other, bool) and one == other


def kind_of(node: Node) -> str:
    """For a sentence."""
    if node.kind == SCALAR:
        value = _scalar(node)
        return "null" if value is None else "a text" if isinstance(value, str) else "a number or truth value"
    return {MAPPING: "a mapping", SEQUENCE: "a list"}[node.kind]


def _scalar(node: Node) -> object:
    if node.tag in ("!", f"{_TAGS}str") or (node.tag is None and node.style):
        return node.value
    if node.tag is None or node.tag in [f"{_TAGS}{name}" for name in ("null", "bool", "int", "float")]:
        return _resolved(node.value)
    return None


def _resolved(text: str) -> object:
    if text in _NULLS:
        return None
    if text in _TRUTHS:
        return _TRUTHS[text]
    if _INTEGER.fullmatch(text):
        return int(text, 0) if text.startswith(("0o", "0x")) else int(text)
    if _FLOAT.fullmatch(text):
        return float(text.lower().replace(".inf", "inf").replace(".nan", "nan"))
    return text
