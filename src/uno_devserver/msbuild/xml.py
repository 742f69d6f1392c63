"""Parses XML as MSBuild does, without normalisation.

It is hand-written because Python's parsers replace line ends and tabs in attributes by spaces and CRLF by LF, and use
the declared encoding. MSBuild does not: only the byte order mark selects the encoding (otherwise UTF-8). A DOCTYPE is
skipped and its entities are rejected; blanks between elements are dropped unless xml:space="preserve" keeps them.
Bad input raises `XmlProblem` and nothing else.
"""

from __future__ import annotations

import re

from ..system.files import decode
from .problems import quoted, shortened

# Real documents have fewer than a hundred levels; the limit keeps a hostile one from filling the memory.
MAX_DEPTH = 1000

_BLANK = " \t\r\n"
# All characters beyond ASCII are accepted in names; XML excludes a few of them, but accepting these is harmless.
# The classes list forbidden characters, because a range up to the last character takes milliseconds to compile.
_NAME = r"[^\s!-9;-@\[-^`{-~][^\s!-,/;-@\[-^`{-~]*+"
# With possessive quantifiers a tag that does not match fails in linear time.
_START_TAG = re.compile(rf"(?a)<({_NAME})((?:\s++{_NAME}\s*+=\s*+(?:\"[^\"<]*+\"|'[^'<]*+'))*+)\s*+(/?)>").match
_ATTRIBUTES = re.compile(rf"(?a)({_NAME})\s*=\s*(?:\"([^\"]*)\"|'([^']*)')").findall
_CONTROL = re.compile(r"[\x00-\x08\x0b\x0c\x0e-\x1f]").search
# Compiled only for documents that need them.
_REFERENCE = rf"(?a)&(?:(#[0-9]+|#x[0-9A-Fa-f]+|{_NAME});)?"
_DECLARATION = r"(?a)<\?xml\s+version\s*=\s*(?:\"([^\"]*)\"|'([^']*)')[^?]*\?>"
_DOCTYPE_PART = r"[\"'\[\]>]|<!--|<\?"
# The ends of those parts of a DOCTYPE in which brackets have no meaning.
_DOCTYPE_ENDS = {'"': '"', "'": "'", "<!--": "-->", "<?": "?>"}
_ENTITIES = {"lt": "<", "gt": ">", "amp": "&", "quot": '"', "apos": "'"}


class XmlProblem(Exception):
    """The text is not well-formed; `line` and `column` count from 1."""

    def __init__(self, reason: str, line: int, column: int) -> None:
        super().__init__(f"{reason} (line {line}, column {column})")
        self.reason = reason
        self.line = line
        self.column = column


class Comment(str):
    """The text of a comment."""

    __slots__ = ()


class CData(str):
    """The text of a CDATA section."""

    __slots__ = ()


class Instruction(str):
    """A processing instruction: its target and its data."""

    __slots__ = ()


class Doctype(str):
    """A DOCTYPE as written; its declarations are ignored."""

    __slots__ = ()


class Element:
    """An element with its children in document order: elements, and texts as `str` or a subclass above.

    `short` is True for <x/> and False for <x></x>.
    """

    __slots__ = ("_offset", "_source", "attributes", "children", "name", "short")

    def __init__(
        self, name: str, attributes: dict[str, str], short: bool = False, offset: int = 0, source: str = ""
    ) -> None:
        self.name = name
        self.attributes = attributes
        self.children: list[Element | str] = []
        self.short = short
        self._offset = offset
        self._source = source

    @property
    def line(self) -> int:
        return self._source.count("\n", 0, self._offset) + 1

    @property
    def elements(self) -> list[Element]:
        return [child for child in self.children if type(child) is Element]

    def __repr__(self) -> str:
        return f"<{self.name} line {self.line}>"


def parse_xml(data: bytes) -> Element:
    """Parses a document and returns its root element; raises XmlProblem."""
    text = decode(data)
    if (place := _forbidden(text)) >= 0:
        raise _problem(text, place, f"the character U+{ord(text[place]):04X} is not allowed in XML")
    document = Element("", {})
    open_elements = [document]
    siblings = document.children
    preserving = "xml:space" in text
    position = _skip_declaration(text)
    while (start := text.find("<", position)) >= 0:
        if start > position:
            _add_text(text, position, start, open_elements, preserving)
        if tag := _START_TAG(text, start):
            name, raw_attributes, slash = tag.groups()
            attributes = _attributes(raw_attributes, text, start) if raw_attributes else {}
            element = Element(name, attributes, bool(slash), start, text)
            if ":" in name or ":" in raw_attributes:
                _check_prefixes(element, open_elements, text, start)
            if len(open_elements) == 1 and document.elements:
                raise _problem(text, start, "there is more than one root element")
            siblings.append(element)
            if not slash:
                open_elements.append(element)
                siblings = element.children
                if len(open_elements) > MAX_DEPTH:
                    raise _problem(text, start, f"elements are nested more than {MAX_DEPTH} deep")
            position = tag.end()
        elif text.startswith("</", start):
            position = text.find(">", start) + 1
            name = text[start + 2 : position - 1].rstrip(_BLANK)
            element = open_elements.pop()
            if not position or name != element.name or element is document:
                raise _problem(
                    text, start, f"</{shortened(element.name)}> is expected instead of {text[start : start + 40]!r}"
                )
            siblings = open_elements[-1].children
        else:
            position = _add_other_markup(text, start, open_elements)
    _add_text(text, position, len(text), open_elements, preserving)
    return _root(document, open_elements, text)


def _root(document: Element, open_elements: list[Element], text: str) -> Element:
    if len(open_elements) > 1:
        raise _problem(text, len(text), f"<{shortened(open_elements[-1].name)}> is not closed")
    roots = document.elements
    if not roots:
        raise _problem(text, len(text), "there is no root element")
    return roots[0]


def _forbidden(text: str) -> int:
    """The position of the first character that XML does not allow, or -1."""
    if control := _CONTROL(text):
        return control.start()
    if text.isascii():
        return -1
    return max(text.find("\ufffe"), text.find("\uffff"))


def _skip_declaration(text: str) -> int:
    if not text.startswith("<?xml") or text[5:6] not in _BLANK:
        return 0
    declaration = re.match(_DECLARATION, text)
    if not declaration:
        raise _problem(text, 0, "the XML declaration is malformed")
    version = declaration.group(1) or declaration.group(2)
    if version != "1.0":
        raise _problem(text, declaration.start(), f"XML version {quoted(version)} is not supported")
    return declaration.end()


def _add_text(text: str, start: int, end: int, open_elements: list[Element], preserving: bool) -> None:
    value = text[start:end]
    if not value.strip(_BLANK):
        if preserving and _preserves_blanks(open_elements):
            open_elements[-1].children.append(value)
        return
    if len(open_elements) == 1:
        raise _problem(text, start, "there is text outside the root element")
    if "]]>" in value:
        raise _problem(text, start + value.index("]]>"), "']]>' is not allowed in text")
    if "&" in value:
        value = _decoded(value, text, start)
        if not value.strip(_BLANK):
            return
    open_elements[-1].children.append(value)


def _preserves_blanks(open_elements: list[Element]) -> bool:
    for element in reversed(open_elements):
        if space := element.attributes.get("xml:space"):
            return space == "preserve"
    return False


def _attributes(raw: str, text: str, start: int) -> dict[str, str]:
    attributes: dict[str, str] = {}
    for name, double_quoted, single_quoted in _ATTRIBUTES(raw):
        value = double_quoted or single_quoted
        if name in attributes:
            raise _problem(text, start, f"the attribute {quoted(name)} is there twice")
        attributes[name] = _decoded(value, text, start) if "&" in value else value
    return attributes


def _decoded(value: str, text: str, start: int) -> str:
    def character(match: re.Match[str]) -> str:
        reference = match.group(1)
        if reference is None:
            raise _problem(text, start, "'&' must begin a reference such as '&amp;'")
        if reference[0] != "#":
            if reference not in _ENTITIES:
                raise _problem(text, start, f"the entity {quoted(reference)} is not declared")
            return _ENTITIES[reference]
        digits = reference.lstrip("#x0")
        # No character has a number of nine digits, and Python refuses to convert thousands.
        number = int(digits or "0", 16 if reference[1] == "x" else 10) if len(digits) < 9 else 0
        if not 0 < number < 0x110000 or 0xD800 <= number < 0xE000 or _forbidden(chr(number)) >= 0:
            raise _problem(text, start, f"'&{reference};' is not a character allowed in XML")
        return chr(number)

    return re.sub(_REFERENCE, character, value)


def _check_prefixes(element: Element, open_elements: list[Element], text: str, start: int) -> None:
    for name in (element.name, *element.attributes):
        prefix, colon, _ = name.partition(":")
        if not colon or prefix in ("xml", "xmlns"):
            continue
        declaration = f"xmlns:{prefix}"
        if declaration not in element.attributes and not any(declaration in each.attributes for each in open_elements):
            raise _problem(text, start, f"the prefix {quoted(prefix)} is not declared")


def _add_other_markup(text: str, start: int, open_elements: list[Element]) -> int:
    """Adds a comment, CDATA section, processing instruction or DOCTYPE; returns the position after it."""
    siblings = open_elements[-1].children
    outside = len(open_elements) == 1
    if text.startswith("<!--", start):
        end = text.find("--", start + 4)
        if end < 0 or text[end + 2 : end + 3] != ">":
            raise _problem(text, start, "a comment is not closed, or '--' stands inside it")
        siblings.append(Comment(text[start + 4 : end]))
        return end + 3
    if text.startswith("<![CDATA[", start) and not outside:
        end = text.find("]]>", start)
        if end < 0:
            raise _problem(text, start, "a CDATA section is not closed")
        siblings.append(CData(text[start + 9 : end]))
        return end + 3
    if text.startswith("<?", start):
        end = text.find("?>", start)
        target = re.match(f"(?a){_NAME}", text[start + 2 : end]) if end >= 0 else None
        if not target or target.group().lower() == "xml":
            raise _problem(
                text, start, "a processing instruction is malformed, or an XML declaration is not at the start"
            )
        siblings.append(Instruction(text[start + 2 : end]))
        return end + 2
    if text.startswith("<!DOCTYPE", start) and outside and not open_elements[0].elements:
        if any(type(sibling) is Doctype for sibling in siblings):
            raise _problem(text, start, "there is more than one DOCTYPE")
        end = _doctype_end(text, start)
        siblings.append(Doctype(text[start:end]))
        return end
    raise _problem(text, start, f"malformed markup: {text[start : start + 40]!r}")


def _doctype_end(text: str, start: int) -> int:
    next_part = re.compile(_DOCTYPE_PART).search
    inside_brackets = False
    position = start
    while part := next_part(text, position):
        opening, position = part.group(), part.end()
        if opening in _DOCTYPE_ENDS:
            closing = _DOCTYPE_ENDS[opening]
            end = text.find(closing, position)
            if end < 0:
                # Searching for the end of each later part too would take quadratic time.
                raise _problem(text, part.start(), f"in the DOCTYPE, {opening} is not closed")
            position = end + len(closing)
        elif opening != ">":
            inside_brackets = opening == "["
        elif not inside_brackets:
            return position
    raise _problem(text, start, "the DOCTYPE is not closed")


def _problem(text: str, offset: int, reason: str) -> XmlProblem:
    line_start = text.rfind("\n", 0, offset) + 1
    return XmlProblem(reason, text.count("\n", 0, offset) + 1, offset - line_start + 1)


def inner_text(element: Element) -> str:
    """The text inside an element, without comments and markup."""
    found: list[str] = []
    waiting = element.children[::-1]
    while waiting:
        node = waiting.pop()
        if isinstance(node, Element):
            waiting.extend(reversed(node.children))
        elif type(node) is str or type(node) is CData:
            found.append(node)
    return "".join(found)


def inner_xml(element: Element) -> str:
    """The content of an element as XML, in .NET's form."""
    written: list[str] = []
    waiting = element.children[::-1]
    while waiting:
        node = waiting.pop()
        if not isinstance(node, Element):
            written.append(_markup(node))
            continue
        attributes = "".join(f' {name}="{_quoted(value)}"' for name, value in node.attributes.items())
        written.append(f"<{node.name}{attributes} />" if node.short else f"<{node.name}{attributes}>")
        if not node.short:
            waiting.append(_EndTag(f"</{node.name}>"))
            waiting.extend(reversed(node.children))
    return "".join(written)


class _EndTag(str):
    """An end tag on the stack of `inner_xml`."""

    __slots__ = ()


def _markup(text: str) -> str:
    if type(text) is _EndTag:
        return text
    if type(text) is Comment:
        return f"<!--{text}-->"
    if type(text) is CData:
        return f"<![CDATA[{text}]]>"
    if type(text) is Instruction:
        return f"<?{text}?>"
    return text.replace("&", "&amp;").replace("<", "&lt;").replace(">", "&gt;")


def _quoted(value: str) -> str:
    value = _markup(value).replace('"', "&quot;")
    return value.replace("\r", "&#xD;").replace("\n", "&#xA;").replace("\t", "&#x9;")
