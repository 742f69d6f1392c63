"""Finds the imports of a source file in one pass of regular expressions, without parsing it.

The pass recognises comments, strings, templates and regular expressions, and finds no imports inside of them. Computed
names are ignored, as in TypeScript.
"""

from __future__ import annotations

import re

from ....system.files import decode
from ....system.values import Value

TYPE_CHECKING = False
if TYPE_CHECKING:
    from collections.abc import Iterator

LOOK_BACK = 200  # bytes that are searched for the previous word; few lines are indented so far
LOOK_AHEAD = 300  # bytes in which a regular expression after a closing bracket must end; few have a hundred

# Atomic: a comment ends at the first end mark; otherwise n comments could be matched in 2ⁿ ways.
_BLOCK_COMMENT = rb"(?>/\*[\s\S]*?\*/)"
# Possessive: a gap is never matched again, so that a page of spaces takes linear time.
_GAP = rb"(?:\s|//[^\n]*\n|" + _BLOCK_COMMENT + rb")*+"
_DOUBLE = rb'"[^"\\\n]*(?:\\[\s\S][^"\\\n]*)*"'
_SINGLE = rb"'[^'\\\n]*(?:\\[\s\S][^'\\\n]*)*'"
_TEXT = rb"(?:" + _DOUBLE + rb"|" + _SINGLE + rb")"
_PLAIN_TEMPLATE = rb"`[^`\\$]*(?:\\[\s\S][^`\\$]*)*`"

# The keyword comes before the check for a whole word: then the search knows its first letters, and skips fast.
_WORD = rb"%s(?<![\w$\x80-\xff]%s)(?![\w$\x80-\xff])"
_IMPORT = _WORD % (b"import", b"import")
_EXPORT = _WORD % (b"export", b"export")
_REQUIRE = _WORD % (b"require", b"require")
_NOISE = rb"//[^\n]*|/\*[\s\S]*?(?:\*/|\Z)|" + _DOUBLE + rb"|" + _SINGLE + rb"|[/`]"
_TOKENS = {
    # Key: whether it is JavaScript, and whether it is inside the substitution of a template, where braces matter.
    (False, False): re.compile(_NOISE + rb"|" + _IMPORT + rb"|" + _EXPORT),
    (False, True): re.compile(_NOISE + rb"|[{}]|" + _IMPORT),
    (True, False): re.compile(_NOISE + rb"|" + _IMPORT + rb"|" + _EXPORT + rb"|" + _REQUIRE),
    (True, True): re.compile(_NOISE + rb"|[{}]|" + _IMPORT + rb"|" + _REQUIRE),
}
_TEMPLATE_PART = re.compile(rb"[^`\\$]*(?:(?:\\[\s\S]|\$(?!\{))[^`\\$]*)*(`|\$\{|\Z)")
_REGEX = re.compile(rb"/(?:[^\\/\[\n\r]|\\[^\n]|\[(?:[^\]\\\n]|\\[^\n])*\])+/[A-Za-z]*")
# After a closing bracket a slash is a division, unless a member of regular expressions follows.
_USED_AS_REGEX = re.compile(rb"\s*(?:\?\.|\.)\s*(?:test|exec|source|flags|lastIndex|global)\b")
_WORD_BEFORE = re.compile(rb"[\w$\x80-\xff]+\Z")
_EXPECTS_VALUE = frozenset(
    b"return typeof case in of delete void throw new do else instanceof yield await default extends".split()
)

# Between the keyword and the name; without keywords, because a page of them would be read once for each.
_NAMES = (
    rb"(?:[\s,*{}]|(?!(?:import|export)\b(?!\s+as\b))[\w$\\\x80-\xff]++|//[^\n]*\n|"
    + _BLOCK_COMMENT
    + rb"|"
    + _TEXT
    + rb"(?=\s*(?:as\b|[,}])))*?"
)
_FROM = rb"(?<![\w$])from" + _GAP + rb"(" + _TEXT + rb")"
_FROM_TEXT = re.compile(rb"from\s*+[\"'/]")  # no comments, because an unclosed one would be read once for each match
_STATIC = re.compile(_GAP + rb"(?:(" + _TEXT + rb")|" + _NAMES + _FROM + rb")")
_EQUALS_REQUIRE = re.compile(
    _GAP + rb"(?:type" + _GAP + rb")?[\w$\x80-\xff]+" + _GAP + rb"=" + _GAP + rb"require" + _GAP + rb"\("
    + _GAP + rb"(" + _TEXT + rb")"
)  # fmt: skip
_EXPORT_FROM = re.compile(_GAP + rb"(?:type" + _GAP + rb")?(?=[*{])" + _NAMES + _FROM)
_CALL = re.compile(
    rb"(?:\s*\.\s*(?:defer|source))?" + _GAP + rb"\(" + _GAP + rb"(" + _TEXT + rb"|" + _PLAIN_TEMPLATE + rb")" + _GAP
    + rb"[,)]"
)  # fmt: skip
_BEFORE_TYPE = re.compile(rb"(?:<|(?<!\|)\||(?<!&)&|\b(?:typeof|keyof|extends|as|is|satisfies))\Z")
_MEMBER_OF_TYPE = re.compile(rb"(?<=\))\s*\.\s*(?!(?:then|catch|finally)\b)[\w$]")  # members of a promise follow calls
_REQUIRE_CALL = re.compile(
    _GAP + rb"\(" + _GAP + rb"(" + _TEXT + rb"|" + _PLAIN_TEMPLATE + rb")" + _GAP + rb",?" + _GAP + rb"\)"
)

_DOC_IMPORT = re.compile(
    rb"\{[^{}@]*?\bimport\s*\(\s*("
    + _TEXT
    + rb")\s*\)|@import\s[^\"'@]*?\bfrom\s*("
    + _TEXT
    + rb")|@import\s+("
    + _TEXT
    + rb")"
)
_HEADER = re.compile(rb"(?:\xef\xbb\xbf)?(?:#![^\n]*)?(?:\s|//[^\n]*|/\*[\s\S]*?\*/)*")
_COMMENT = re.compile(rb"(//[^\n]*)|/\*[\s\S]*?\*/")
_REFERENCE = re.compile(rb"///\s*<reference\s+(.*?)/>", re.IGNORECASE)
_ATTRIBUTE = re.compile(rb"(?:^|\s)(path|types|lib|no-default-lib)\s*=\s*(?:\"([^\"]*)\"|'([^']*)')")
_ESCAPE = re.compile(r"\\(?:u\{([0-9A-Fa-f]{1,6})\}|u([0-9A-Fa-f]{4})|x([0-9A-Fa-f]{2})|(\r?\n)|(.))", re.DOTALL)
_ESCAPED = {"n": "\n", "t": "\t", "r": "\r", "b": "\b", "f": "\f", "v": "\v", "0": "\0"}


class ImportedNames(Value):
    """The names that one file imports, in their order, each once."""

    static: tuple[str, ...] = ()  # import and export declarations, and import() in types
    dynamic: tuple[str, ...] = ()  # import() that is called
    required: tuple[str, ...] = ()  # import x = require(), and require() in JavaScript
    references: tuple[str, ...] = ()  # /// <reference path>
    types: tuple[str, ...] = ()  # /// <reference types>


def scan(data: bytes, *, javascript: bool) -> ImportedNames:
    """The imports of a file with this content."""
    if data[:2] in (b"\xff\xfe", b"\xfe\xff"):
        data = decode(data).encode("utf-8", "surrogatepass")
    found = _Scanner(data, javascript)
    found.run()
    references, types = _references(data)
    return ImportedNames(_once(found.static), _once(found.dynamic), _once(found.required), references, types)


class _Scanner:
    def __init__(self, data: bytes, javascript: bool) -> None:
        self._data = data
        self._javascript = javascript
        self._comment_end = -1
        self._no_regex_before = 0  # the end of a line on which no further regular expression begins
        self.static: list[str] = []
        self.dynamic: list[str] = []
        self.required: list[str] = []

    def run(self) -> None:
        data, javascript = self._data, self._javascript
        outside, inside = _TOKENS[javascript, False], _TOKENS[javascript, True]
        braces: list[int] = []  # the number of open braces in each substitution around this place
        place = 0
        last = self._last_keyword()
        while token := (inside if braces else outside).search(data, place):
            if token.start() > last:
                return  # most of a file follows its imports
            place = token.end()
            first = data[token.start()]
            if first == 0x22 or first == 0x27:  # quotes
                continue
            if first == 0x2F:  # slash
                place = self._after_slash(token)
            elif first == 0x60:  # backtick
                place = self._after_template(place, braces)
            elif first == 0x7B:  # an opening brace
                braces[-1] += 1
            elif first == 0x7D:
                braces[-1] -= 1
                if braces[-1] < 0:
                    braces.pop()
                    place = self._after_template(place, braces)
            else:
                place = self._after_keyword(token)

    def _last_keyword(self) -> int:
        data = self._data
        ends = [data.rfind(b"import"), *(match.start() for match in _FROM_TEXT.finditer(data))]
        return max(*ends, data.rfind(b"require") if self._javascript else -1)

    def _after_template(self, place: int, braces: list[int]) -> int:
        part = _TEMPLATE_PART.match(self._data, place)
        if part is None:  # for the type checker: the pattern matches everywhere
            return len(self._data)
        if part.group(1) == b"${":
            braces.append(0)
        return part.end()

    def _after_slash(self, token: re.Match[bytes]) -> int:
        data, start = self._data, token.start()
        if token.end() - start > 1:
            self._comment_end = token.end()
            if self._javascript and data.startswith(b"/**", start):
                for match in _DOC_IMPORT.finditer(data, start, token.end()):
                    self.static.append(_name(match.group(1) or match.group(2) or match.group(3)))
            return token.end()
        regex = self._regex(start)
        return start + 1 if regex is None else regex.end()

    def _regex(self, start: int) -> re.Match[bytes] | None:
        """The regular expression that begins at a slash, if one does; no line is read twice for this."""
        data, before = self._data, self._before(start)
        if before.endswith((b'"', b"'", b"`", b"<")):  # after < a slash is part of a JSX end tag
            return None
        word = _WORD_BEFORE.search(before)
        if word and word.group() not in _EXPECTS_VALUE:
            return None
        if before.endswith((b")", b"]", b"}")):
            regex = _REGEX.match(data, start, start + LOOK_AHEAD)
            return regex if regex and _USED_AS_REGEX.match(data, regex.end()) else None
        if start < self._no_regex_before:
            return None
        regex = _REGEX.match(data, start)
        if regex is None:
            end = data.find(b"\n", start)
            self._no_regex_before = len(data) if end < 0 else end
        return regex

    def _before(self, place: int) -> bytes:
        """The end of the text before a place, without white space; empty if that is a comment."""
        window = self._data[max(0, place - LOOK_BACK) : place]
        before = window.rstrip()
        return b"" if place - len(window) + len(before) == self._comment_end else before

    def _after_keyword(self, token: re.Match[bytes]) -> int:
        data, place = self._data, token.end()
        before = self._before(token.start())
        if before.endswith(b".") and not before.endswith(b"..."):
            return place  # it is a member with that name
        for pattern, names in self._forms(token.group()):
            match = pattern.match(data, place)
            if match is not None:
                if pattern is _CALL and self._is_type(before, match):
                    names = self.static
                name = _name(match.group(match.lastindex or 0))
                if name:
                    names.append(name)
                return match.end()
        return place

    def _is_type(self, before: bytes, call: re.Match[bytes]) -> bool:
        """Whether `import("x")` is a type, which is resolved like a declaration and not like a call."""
        return bool(_BEFORE_TYPE.search(before) or _MEMBER_OF_TYPE.match(self._data, call.end()))

    def _forms(self, keyword: bytes) -> Iterator[tuple[re.Pattern[bytes], list[str]]]:
        if keyword == b"import":
            yield _CALL, self.dynamic
            yield _STATIC, self.static
            yield _EQUALS_REQUIRE, self.required
        elif keyword == b"export":
            yield _EXPORT_FROM, self.static
        else:
            yield _REQUIRE_CALL, self.required


def _references(data: bytes) -> tuple[tuple[str, ...], tuple[str, ...]]:
    """The files and the types of `/// <reference>`, which count only before the first statement."""
    header = _HEADER.match(data)
    if header is None or b"<reference" not in header.group():
        return (), ()
    paths: list[str] = []
    types: list[str] = []
    for comment in _COMMENT.finditer(header.group()):
        reference = _REFERENCE.match(comment.group(1) or b"")
        if reference is None:
            continue
        values = {
            each.group(1): each.group(2) or each.group(3) or b"" for each in _ATTRIBUTE.finditer(reference.group(1))
        }
        if values.get(b"types"):
            types.append(_decoded(values[b"types"]))
        elif values.get(b"path") and b"lib" not in values:
            paths.append(_decoded(values[b"path"]))
    return tuple(paths), tuple(types)


def _once(names: list[str]) -> tuple[str, ...]:
    return tuple(dict.fromkeys(names))


def _name(quoted: bytes) -> str:
    text = _decoded(quoted[1:-1])
    return _ESCAPE.sub(_unescaped, text) if "\\" in text else text


def _decoded(data: bytes) -> str:
    return data.decode("utf-8", "surrogateescape")


def _unescaped(match: re.Match[str]) -> str:
    braced, four, two, line, other = match.groups()
    if line:
        return ""
    if other:
        return _ESCAPED.get(other, other)
    code = int(braced or four or two, 16)
    return chr(code) if code <= 0x10FFFF else ""
