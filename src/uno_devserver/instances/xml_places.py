"""Where the elements of an XML text stand, so that a few characters of it can be changed and all others stay."""

from __future__ import annotations

import re

from ..msbuild.xml import parse

# The text has been checked before: what begins with '<' and is none of the first three is a tag. Blanks are XML's: a
# non-breaking space, which Python counts too, is part of a name for the check.
_MARKUP = re.compile(
    r"<!--.*?-->|<!\[CDATA\[.*?\]\]>|<\?.*?\?>"
    r"|<(?P<slash>/?)(?P<name>[^\s/>]+)(?P<rest>(?:[^\"'>]++|\"[^\"]*+\"|'[^']*+')*+)>",
    re.DOTALL | re.ASCII,
)
_DECLARATION = re.compile(r"""xmlns(?::([^\s=]+))?\s*=\s*(?:"([^"]*)"|'([^']*)')""", re.ASCII)


class Place:
    """An element: its names, the places of its tags, its child elements."""

    def __init__(self, written: str, spaces: dict[str, str], start: int, inner_start: int, short: bool) -> None:
        prefix, _, local = written.rpartition(":")
        self.prefix = prefix
        self.name = local
        self.namespace = spaces.get(prefix, "")
        self.spaces = spaces
        self.start = start
        self.inner_start = inner_start  # behind the start tag
        self.inner_end = inner_start  # before the end tag
        self.end = inner_start
        self.short = short  # <x/>
        self.children: list[Place] = []

    def named(self, name: str) -> list[Place]:
        """The children of that name in this element's namespace."""
        return [one for one in self.children if (one.namespace, one.name) == (self.namespace, name)]


def root_place(text: str) -> Place:
    """The root element of a text without a DOCTYPE; raises XmlProblem where it is not well-formed."""
    parse(text.encode("utf-8"))
    document = Place("", {}, 0, 0, short=False)
    open_places = [document]
    for markup in _MARKUP.finditer(text):
        name, rest = markup["name"], markup["rest"]
        if name is None:
            continue
        if markup["slash"]:
            closed = open_places.pop()
            closed.inner_end, closed.end = markup.start(), markup.end()
            continue
        parent = open_places[-1]
        spaces = _spaces(rest, parent.spaces) if "xmlns" in rest else parent.spaces
        place = Place(name, spaces, markup.start(), markup.end(), short=rest.endswith("/"))
        parent.children.append(place)
        if not place.short:
            open_places.append(place)
    return document.children[0]


def without_texts(text: str) -> str:
    """Of an element's content the comments and instructions alone."""
    return "".join(markup.group() for markup in _MARKUP.finditer(text) if markup.group().startswith(("<!--", "<?")))


def _spaces(attributes: str, inherited: dict[str, str]) -> dict[str, str]:
    found = {prefix or "": double or single for prefix, double, single in _DECLARATION.findall(attributes)}
    return {**inherited, **found}
