"""What stands in one of a client's files: read, understood and matched, or the reason why not, as a sentence.

Never raises for what is, or is not, on the disk.
"""

from __future__ import annotations

import os

from ..system.files import FileProblem, encoding_of, read_bytes
from ..system.values import Value
from .edits.document import NO_ROOT_OBJECT, EditProblem, WrongKind, open_document
from .entry_match import matches
from .profiles import Format

TYPE_CHECKING = False
if TYPE_CHECKING:
    from collections.abc import Iterable

    from .edits.document import Document
    from .entry_match import Match
    from .profiles import Place
    from .servers import ServerDefinition

# Some clients keep conversations beside the servers, which makes their files tens of megabytes long.
MAX_BYTES = 64 * 1024 * 1024

_FORMATS = {Format.JSON: "JSON", Format.JSONC: "JSON", Format.TOML: "TOML", Format.YAML: "YAML"}


class ConfigFile(Value):
    place: Place
    content: bytes | None = None  # None: there is no file, or it cannot be read
    document: Document | None = None  # None: there is no file, or it was not understood
    problem: str = ""
    matches: tuple[Match, ...] = ()


def read_place(place: Place, servers: Iterable[ServerDefinition]) -> ConfigFile:
    try:
        content = read_bytes(place.path, MAX_BYTES)
    except FileNotFoundError:
        return ConfigFile(place, problem=_dangling(place.path))
    except FileProblem as problem:
        return ConfigFile(place, problem=f"Could not read config file '{place.path}': {problem.reason}")
    return parse_place(place, content, servers)


def _dangling(path: str) -> str:
    if not os.path.islink(path):
        return ""
    return f"Could not read config file '{path}': it is a link to a file that does not exist"


def parse_place(place: Place, content: bytes, servers: Iterable[ServerDefinition]) -> ConfigFile:
    """What stands in this content of a place's file, whether it is on the disk or only planned."""
    try:
        text, _, _ = decode_text(content)
    except EditProblem as problem:
        return ConfigFile(place, content, problem=f"Could not read config file '{place.path}': {problem}")
    try:
        document = open_document(text, place.format, place.root, place.dialect.name_key)
    except EditProblem as problem:
        return ConfigFile(place, content, problem=_explained(problem, place))
    return ConfigFile(place, content, document, "", matches(document.entries, servers, place.dialect))


def _explained(problem: EditProblem, place: Place) -> str:
    if problem.reason == NO_ROOT_OBJECT:
        return f"Config file '{place.path}' {problem}"
    if isinstance(problem, WrongKind):
        return f"Config file '{place.path}': {problem}"
    return f"Invalid {_FORMATS[place.format]} in config file '{place.path}': {problem}"


def decode_text(data: bytes) -> tuple[str, bytes, str]:
    """The text without its byte order mark, that mark, and the encoding; raises EditProblem."""
    bom, encoding = encoding_of(data)
    try:
        return data[len(bom) :].decode(encoding), bom, encoding
    except UnicodeDecodeError as error:
        raise EditProblem(
            f"it is not {encoding.upper()} text: byte {len(bom) + error.start} cannot be decoded"
        ) from error


def encode_text(text: str, bom: bytes, encoding: str) -> bytes:
    try:
        return bom + text.encode(encoding)
    except UnicodeEncodeError as error:
        raise EditProblem(f"the new text cannot be written as {encoding.upper()}: {error.reason}") from error


def repair(path: str) -> str:
    if os.path.lexists(path) and not os.path.isfile(path):  # a folder, a link to nothing
        return f"Take '{path}' away, or make it a file, and run this again."
    return f"Repair the file '{path}', or take it away, and run this again."
