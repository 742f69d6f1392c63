"""One place of a client's configuration: its file read, parsed, and its entries matched with our servers.

Reading never raises: the `problem` of the result says what is wrong with a broken file. A file of a workspace is not
read if a link leads out of the workspace: the link may have come with the repository, and lead to any file.
"""

from __future__ import annotations

import os
from itertools import takewhile

from ..system.files import FileProblem, encoding_of, read_bytes
from ..system.safe_paths import PathEscape, path_inside
from ..system.values import Value
from ..workspace.paths import upwards
from .edits.document import NO_ROOT_OBJECT, EditProblem, WrongKind, open_document
from .entry_match import matches
from .profiles import Format, Use

TYPE_CHECKING = False
if TYPE_CHECKING:
    from collections.abc import Iterable

    from .edits.document import Document
    from .entry_match import Match
    from .profiles import Place
    from .server_definition import ServerDefinition

# Some clients store conversations in the same file as the servers, so that it has tens of megabytes.
MAX_BYTES = 64 * 1024 * 1024
MAX_BYTES_OF_LINES = 128 * 1024  # TOML and YAML are written by hand; this much takes up to 5 s on a busy machine

LINK_STEP = "Replace the link by a file or folder of the workspace, and run this again."

_FORMATS = {Format.JSON: "JSON", Format.JSONC: "JSON", Format.TOML: "TOML", Format.YAML: "YAML"}


class ConfigFile(Value):
    place: Place
    content: bytes | None = None  # None if there is no file, or it cannot be read
    document: Document | None = None  # None if there is no file, or it cannot be parsed
    problem: str = ""
    matches: tuple[Match, ...] = ()
    next_step: str = ""  # a sentence, if there is a problem

    def entries_of(self, server: ServerDefinition, *, certain: bool = True) -> tuple[Match, ...]:
        """The entries of the server; with `certain=False`, those that may belong to another program instead."""
        return tuple(one for one in self.matches if one.server.is_same(server) and one.certain is certain)


class Location(Value):
    """An entry for a server, and the file that contains it."""

    config: ConfigFile
    match: Match

    @property
    def place(self) -> Place:
        return self.config.place

    @property
    def path(self) -> str:
        return self.place.path

    @property
    def legacy(self) -> bool:
        """Whether the client does not read this file."""
        return self.place.use is Use.LEGACY


def read_place(place: Place, servers: Iterable[ServerDefinition]) -> ConfigFile:
    limit = MAX_BYTES_OF_LINES if place.format in (Format.TOML, Format.YAML) else MAX_BYTES
    try:
        content = content_of(place.path, place.within, limit)
    except FileProblem as problem:
        reason = f"Could not read config file '{place.path}': {problem.reason}"
        return ConfigFile(place, problem=reason, next_step=_step_after(problem, place, limit))
    if content is not None:
        return parse_place(place, content, servers)
    existing = next(filter(os.path.lexists, upwards(place.path)), place.path)
    if not os.path.islink(existing) or os.path.exists(existing):
        return ConfigFile(place)
    link, step = "it is a link to a file", repair(existing)
    if existing != place.path:
        link = f"'{existing}' is a link to a folder"
        step = f"Create '{os.path.realpath(existing)}', or remove the link, and run this again."
    problem_of_link = f"Could not read config file '{place.path}': {link} that does not exist"
    return ConfigFile(place, problem=problem_of_link, next_step=step)


def _step_after(problem: FileProblem, place: Place, limit: int) -> str:
    if way_out(place.path, place.within):
        return LINK_STEP
    if isinstance(problem.__cause__, PermissionError):
        return f"Let this user read '{os.path.realpath(place.path)}', and run this again."
    if os.path.isfile(place.path) and os.path.getsize(place.path) > limit:
        return f"Make '{place.path}' smaller, or change it by hand."
    return repair(place.path)


def content_of(path: str, within: str | None, limit: int = MAX_BYTES) -> bytes | None:
    """The bytes of a configuration file, which must be `within` a folder; None if it does not exist.

    Raises FileProblem.
    """
    if out := way_out(path, within):
        raise FileProblem(path, out)
    try:
        return read_bytes(path, limit)
    except FileNotFoundError:
        return None


def way_out(path: str, within: str | None) -> str:
    """The end of a sentence: which link leads the path out of the folder `within`; empty if it stays there."""
    if within is None or not os.path.isdir(within):
        return ""
    out = ""
    for part in takewhile(lambda one: one != within, upwards(path)):
        try:
            path_inside(within, part)
        except PathEscape as escape:
            if isinstance(escape.__cause__, OSError):
                return str(escape)
            out = f"'{part}' is a link to '{os.path.realpath(part)}', outside of the workspace '{within}'"
        else:
            break
    return out


def parse_place(place: Place, content: bytes, servers: Iterable[ServerDefinition]) -> ConfigFile:
    """Parse the content of a place's file, from the disk or from a plan."""
    try:
        text, _, _ = decode_text(content)
    except EditProblem as problem:
        reason = f"Could not read config file '{place.path}': {problem}"
        return ConfigFile(place, content, problem=reason, next_step=repair(place.path))
    try:
        document = open_document(text, place.format, place.root, place.dialect.name_key)
    except EditProblem as problem:
        return ConfigFile(place, content, problem=_explained(problem, place), next_step=repair(place.path))
    there = (server.at(place) for server in servers)
    return ConfigFile(place, content, document, "", matches(document.entries, there, place.dialect))


def _explained(problem: EditProblem, place: Place) -> str:
    if problem.reason == NO_ROOT_OBJECT:
        return f"Config file '{place.path}' {problem}"
    if isinstance(problem, WrongKind):
        return f"Config file '{place.path}': {problem}"
    return f"Invalid {_FORMATS[place.format]} in config file '{place.path}': {problem}"


def decode_text(data: bytes) -> tuple[str, bytes, str]:
    """The text without its byte order mark, the mark, and the encoding; raises EditProblem."""
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
    """A sentence: the next step for a broken file."""
    if os.path.lexists(path) and not os.path.isfile(path):  # it is a folder, or a dangling link
        return f"Take '{path}' away, or make it a file, and run this again."
    return f"Fix or remove the file '{path}', and run this again."
