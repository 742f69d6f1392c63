"""The content of an element as text: without its markup, or with all of it."""

from __future__ import annotations

from .xml import CData, Comment, Element, Instruction


def inner_text(element: Element) -> str:
    """All text below an element, without comments and markup."""
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
    """What stands between the tags, written as .NET writes it."""
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
    """Markup that is already written."""

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
