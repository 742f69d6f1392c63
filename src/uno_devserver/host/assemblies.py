"""Reads module id, version and some attributes of a .NET assembly from its metadata, without loading it.

Implements the needed part of PE and CLI (ECMA-335, partition II). A damaged, truncated or hostile file raises
`NotAnAssembly`; every offset in it is checked. Only the parts that are needed are read, a few KiB of any file.
"""

from __future__ import annotations

import io
import os
import struct
from bisect import bisect_left, bisect_right
from collections.abc import Iterator, Sequence
from contextlib import suppress
from typing import Any, BinaryIO

from ..system.event_loop import WorkQueue
from ..system.files import FileProblem, open_regular
from ..system.values import Value

READ_SECONDS = 3.0  # a disk answers in milliseconds, a lost network share never
MOST_WAITING = 32  # launches and apps that wait for their turn; an IDE announces one launch at a time
MOST_HANGING = 8  # threads that a lost network share may hold
MAX_SECTIONS = 96  # the loader's limit
MAX_ARGUMENT = 4096  # bytes of an attribute's first argument, e.g. the name of a type with its assembly
MAX_ATTRIBUTES = 1000  # the most attributes of one assembly; a compiler writes a dozen
MAX_NAME = 1024  # the runtime's limit
MAX_STREAMS = 16  # there are five kinds; Edit and Continue adds a few
MAX_STREAM_NAME = 32
MAX_TYPE_PARTS = 50  # nested types and type arguments in the name of one processor
MAX_ALL_PARTS = 4000  # of the types of all attributes: a few KiB of signatures could name megabytes, again and again

# The attribute with the platform of an app, such as "Desktop1.0"; the app reports the same text when it connects.
TARGET_PLATFORM = "System.Runtime.Versioning.TargetPlatformAttribute"
SERVER_PROCESSOR = "Uno.UI.RemoteControl.Host.ServerProcessorAttribute"
GENERIC_PROCESSOR = f"{SERVER_PROCESSOR}`1"  # ServerProcessor<T>: the type is an argument of the attribute's own type
INFORMATIONAL_VERSION = "System.Reflection.AssemblyInformationalVersionAttribute"
_WANTED = frozenset({TARGET_PLATFORM, SERVER_PROCESSOR, INFORMATIONAL_VERSION})


class NotAnAssembly(Exception):
    """The file is not a .NET assembly; the text says why."""


class Assembly(Value):
    mvid: str  # lower case, with dashes
    version: str  # the informational version or, if there is none, that of the assembly
    platform: str | None
    processors: tuple[str, ...]  # the full type names of the assembly's server processors


def assembly_reads(seconds: float = READ_SECONDS) -> WorkQueue:
    """The queue in which a Host reads all assemblies: whoever can reach it names their paths."""
    return WorkQueue(seconds, most_waiting=MOST_WAITING, most_hanging=MOST_HANGING)


def read_assembly(path: str) -> Assembly:
    """The assembly in a file; FileNotFoundError if there is no file, NotAnAssembly for every other problem."""
    try:
        with open_regular(path) as stream:
            # A file of /proc has the size 0 and is not read: that may wait, or have effects.
            return _assembly(_Range(stream, 0, os.fstat(stream.fileno()).st_size))
    except FileProblem as problem:
        raise NotAnAssembly(problem.reason) from problem


def parse_assembly(data: bytes) -> Assembly:
    return _assembly(_Range(io.BytesIO(data), 0, len(data)))


def _assembly(file: _Range) -> Assembly:
    try:
        return _Metadata(_metadata_in(file)).assembly()
    except (struct.error, IndexError, UnicodeDecodeError) as error:
        raise NotAnAssembly("its metadata is damaged or cut short") from error
    except OSError as error:
        raise NotAnAssembly(f"it cannot be read: {error.strerror}") from error


class _Range:
    """A part of a file, which is read piece by piece."""

    def __init__(self, stream: BinaryIO, start: int, size: int) -> None:
        self._stream, self._start, self._size = stream, start, max(size, 0)

    def part(self, at: int, size: int) -> _Range:
        return _Range(self._stream, self._start + at, min(size, self._size - at))

    def bytes(self, at: int, size: int) -> bytes:
        """At most `size` bytes: fewer where the range or the file ends."""
        size = min(size, self._size - at)
        if size <= 0:
            return b""
        self._stream.seek(self._start + at)
        return self._stream.read(size) or b""

    def unpack(self, layout: str | struct.Struct, at: int = 0) -> tuple[Any, ...]:
        layout = layout if isinstance(layout, struct.Struct) else struct.Struct(layout)
        return layout.unpack(self.bytes(at, layout.size))


def _metadata_in(file: _Range) -> _Range:
    """The CLI metadata of the file."""
    if file.bytes(0, 2) != b"MZ":
        raise NotAnAssembly("it is not a PE file")
    (pe,) = file.unpack("<I", 0x3C)
    if file.bytes(pe, 4) != b"PE\0\0":
        raise NotAnAssembly("it is not a PE file")
    section_count, optional_size = file.unpack("<6xH12xH", pe)
    optional = pe + 24
    (magic,) = file.unpack("<H", optional)
    directories = optional + {0x10B: 96, 0x20B: 112}.get(magic, optional_size)
    if directories + 15 * 8 > optional + optional_size:
        raise NotAnAssembly("it is no .NET file")
    (cli,) = file.unpack("<I", directories + 14 * 8)
    if cli == 0:
        raise NotAnAssembly("it contains only native code")
    first = optional + optional_size
    sections = [file.unpack("<8x4I", first + 40 * number) for number in range(min(section_count, MAX_SECTIONS))]
    rva, size = file.unpack("<8xII", _offset(cli, sections))
    return file.part(_offset(rva, sections), size)


def _offset(rva: int, sections: Sequence[tuple[int, ...]]) -> int:
    for _, address, size, start in sections:
        if address <= rva < address + size:
            return start + rva - address
    raise NotAnAssembly("its metadata is damaged or cut short")


# The columns of the tables, up to the last one that is needed: a number of bytes, an index into a heap (S, G, B), into
# a table (T and its number), or into one of several tables (a name in _CODED).
_TABLES: tuple[str, ...] = (
    "2 S G G G",  # 00 Module
    "ResolutionScope S S",  # 01 TypeRef
    "4 S S TypeDefOrRef T04 T06",  # 02 TypeDef
    "T04",
    "2 S B",  # 04 Field
    "T06",
    "4 2 2 S B T08",  # 06 MethodDef
    "T08",
    "2 2 S",  # 08 Param
    "T02 TypeDefOrRef",
    "MemberRefParent S B",  # 0A MemberRef
    "2 HasConstant B",
    "HasCustomAttribute CustomAttributeType B",  # 0C CustomAttribute
    "HasFieldMarshal B",
    "2 HasDeclSecurity B",
    "2 4 T02",
    "4 T04",  # 10 FieldLayout
    "B",
    "T02 T14",
    "T14",
    "2 S TypeDefOrRef",  # 14 Event
    "T02 T17",
    "T17",
    "2 S B",  # 17 Property
    "2 T06 HasSemantics",
    "T02 MethodDefOrRef MethodDefOrRef",
    "S",  # 1A ModuleRef
    "B",
    "2 MemberForwarded S T1A",
    "4 T04",
    "4 4",  # 1E, written by Edit and Continue
    "4",
    "4 2 2 2 2 4 B S S",  # 20 Assembly
    "4",
    "4 4 4",
    "2 2 2 2 4 B S S B",  # 23 AssemblyRef
    "4 T23",
    "4 4 4 T23",
    "4 S B",  # 26 File
    "4 4 S S Implementation",
    "4 4 S Implementation",
    "T02 T02",  # 29 NestedClass
)
_TYPE_REF, _TYPE_DEF, _MEMBER_REF, _CUSTOM_ATTRIBUTE, _ASSEMBLY = 0x01, 0x02, 0x0A, 0x0C, 0x20
_TYPE_SPEC, _NESTED_CLASS = 0x1B, 0x29

# The tables of a column that names several; the lowest bits of a value select one. None: never used.
_CODED: dict[str, tuple[int | None, ...]] = {
    "TypeDefOrRef": (0x02, 0x01, 0x1B),
    "HasConstant": (0x04, 0x08, 0x17),
    "HasCustomAttribute": (
        *(0x06, 0x04, 0x01, 0x02, 0x08, 0x09, 0x0A, 0x00, 0x0E, 0x17, 0x14),
        *(0x11, 0x1A, 0x1B, 0x20, 0x23, 0x26, 0x27, 0x28, 0x2A, 0x2C, 0x2B),
    ),
    "HasFieldMarshal": (0x04, 0x08),
    "HasDeclSecurity": (0x02, 0x06, 0x20),
    "MemberRefParent": (0x02, 0x01, 0x1A, 0x06, 0x1B),
    "HasSemantics": (0x14, 0x17),
    "MethodDefOrRef": (0x06, 0x0A),
    "MemberForwarded": (0x04, 0x06),
    "CustomAttributeType": (None, None, 0x06, 0x0A, None),
    "ResolutionScope": (0x00, 0x1A, 0x23, 0x01),
    "Implementation": (0x26, 0x23, 0x27),
}
# The types in a signature: one by its token, a generic one with arguments, and those with a code of their own.
_CLASSES = (0x11, 0x12)
_GENERIC_INSTANCE = 0x15
_PRIMITIVES = (
    *("Boolean", "Char", "SByte", "Byte", "Int16", "UInt16", "Int32", "UInt32", "Int64", "UInt64"),
    *("Single", "Double", "String"),
)
_FIRST_PRIMITIVE, _OBJECT = 0x02, 0x1C
_NAMED_BY_CODE = {**dict(enumerate(_PRIMITIVES, _FIRST_PRIMITIVE)), _OBJECT: "Object"}
_PARENT_IS_THE_ASSEMBLY = 1 << 5 | 14


class _Metadata:
    """The metadata of a module: its heaps, and its tables as rows of numbers."""

    def __init__(self, metadata: _Range) -> None:
        if metadata.bytes(0, 4) != b"BSJB":
            raise NotAnAssembly("its metadata is damaged or cut short")
        self._streams = dict(_streams(metadata))
        self._parts_left = MAX_ALL_PARTS
        self._absent = metadata.part(0, 0)
        tables = self._streams.get("#~") or self._streams.get("#-") or self._absent
        wide, valid = tables.unpack("<6xBxQ8x")
        at = 24
        self._rows = [0] * 64
        for number in range(64):
            if valid >> number & 1:
                (self._rows[number],) = tables.unpack("<I", at)
                at += 4
        at += 4 if wide & 0x40 else 0  # a number that only Edit and Continue writes
        self._heap_widths = {"S": 4 if wide & 1 else 2, "G": 4 if wide & 2 else 2, "B": 4 if wide & 4 else 2}
        self._tables = tables
        # For each table: the format of a row, and the offset of the first row.
        self._formats: list[tuple[struct.Struct, int]] = []
        for number, columns in enumerate(_TABLES):
            row = struct.Struct("<" + "".join("H" if self._width(c) == 2 else "I" for c in columns.split()))
            self._formats.append((row, at))
            at += row.size * self._rows[number]

    def assembly(self) -> Assembly:
        if self._rows[_ASSEMBLY] == 0:
            raise NotAnAssembly("it is a module without an assembly")
        _, _, mvid, _, _ = self._row(0, 1)
        _, *version, _, _, _, _ = self._row(_ASSEMBLY, 1)
        found = list(self._attributes())
        texts: dict[str, list[str]] = {kind: [text for other, text in found if other == kind] for kind in _WANTED}
        return Assembly(
            self._guid(mvid),
            next(iter(texts[INFORMATIONAL_VERSION]), ".".join(map(str, version))),
            next(iter(texts[TARGET_PLATFORM]), None),
            tuple(_without_assembly(text) for text in texts[SERVER_PROCESSOR]),
        )

    def _attributes(self) -> Iterator[tuple[str, str]]:
        """Type name and first argument (a text or a type) of the wanted attributes that have one."""
        everyone = range(1, self._rows[_CUSTOM_ATTRIBUTE] + 1)
        # The table is sorted by owner; the assembly has a dozen of its tens of thousands of attributes.
        first = bisect_left(everyone, _PARENT_IS_THE_ASSEMBLY, key=lambda n: self._row(_CUSTOM_ATTRIBUTE, n)[0])
        for number in everyone[first : first + MAX_ATTRIBUTES]:
            parent, constructor, value = self._row(_CUSTOM_ATTRIBUTE, number)
            if parent != _PARENT_IS_THE_ASSEMBLY:
                return
            table, of_type = self._type_of(constructor)
            if table == _TYPE_SPEC:
                names = _TypeNames(self, self._blob(self._row(_TYPE_SPEC, of_type)[0]))
                with suppress(_UnusualType):
                    if names.begins_with(GENERIC_PROCESSOR):
                        yield SERVER_PROCESSOR, names.next()
            elif table in (_TYPE_DEF, _TYPE_REF) and (kind := self.type_name(table, of_type)) in _WANTED:
                argument = _first_argument(self._blob(value))
                if argument:
                    yield kind, argument

    def _type_of(self, constructor: int) -> tuple[int | None, int]:
        """The type of a constructor: its table, and its number there."""
        kind, number = constructor & 7, constructor >> 3
        if kind == 2:  # a method of this assembly; its type is the last one whose first method is not after it
            everyone = range(1, self._rows[_TYPE_DEF] + 1)
            return _TYPE_DEF, bisect_right(everyone, number, key=lambda n: self._row(_TYPE_DEF, n)[5])
        parent = self._row(_MEMBER_REF, number)[0]
        return _CODED["MemberRefParent"][parent & 7], parent >> 3

    def type_name(self, table: int, number: int) -> str:
        """The name of a type as reflection writes it; the types around it are followed by a plus."""
        parts: list[str] = []
        while len(parts) < MAX_TYPE_PARTS and self._parts_left > 0:
            self._parts_left -= 1
            row = self._row(table, number)
            parts.append(self._string(row[1]))
            around = self._type_around(table, number, row)
            if around is None:
                namespace = self._string(row[2])
                return f"{namespace}." * bool(namespace) + "+".join(reversed(parts))
            number = around
        raise IndexError(number)

    def _type_around(self, table: int, number: int, row: tuple[int, ...]) -> int | None:
        """The number, in the same table, of the type in which this one is nested; None if it is not."""
        if table == _TYPE_REF:
            scope = row[0]
            return scope >> 2 if scope & 3 == 3 else None
        everyone = range(1, self._rows[_NESTED_CLASS] + 1)  # sorted by the inner type
        at = bisect_left(everyone, number, key=lambda n: self._row(_NESTED_CLASS, n)[0])
        inner, outer = self._row(_NESTED_CLASS, everyone[at]) if at < len(everyone) else (0, 0)
        return outer if inner == number else None

    def _row(self, table: int, number: int) -> tuple[int, ...]:
        if not 1 <= number <= self._rows[table]:
            raise IndexError(number)
        row, start = self._formats[table]
        return self._tables.unpack(row, start + row.size * (number - 1))

    def _width(self, column: str) -> int:
        if column.isdigit():
            return int(column)
        if column in self._heap_widths:
            return self._heap_widths[column]
        if column not in _CODED:
            return 2 if self._rows[int(column[1:], 16)] < 1 << 16 else 4
        choices = _CODED[column]
        tag_bits = (len(choices) - 1).bit_length()
        most = max(self._rows[table] for table in choices if table is not None)
        return 2 if most < 1 << (16 - tag_bits) else 4

    def _string(self, index: int) -> str:
        heap = self._streams.get("#Strings", self._absent)
        return heap.bytes(index, MAX_NAME).partition(b"\0")[0].decode()

    def _guid(self, index: int) -> str:
        if index < 1:
            raise IndexError(index)
        first, second, third, rest = self._streams.get("#GUID", self._absent).unpack("<IHH8s", 16 * (index - 1))
        return f"{first:08x}-{second:04x}-{third:04x}-{rest[:2].hex()}-{rest[2:].hex()}"

    def _blob(self, index: int) -> bytes:
        heap = self._streams.get("#Blob", self._absent)
        length, start = _packed(heap.bytes(index, 4), 0)
        return heap.bytes(index + start, min(length, MAX_ARGUMENT))


class _UnusualType(Exception):
    """An array, a pointer or the like, which cannot be a processor."""


class _TypeNames:
    """Reads the names of the types in a signature, one after the other."""

    def __init__(self, metadata: _Metadata, signature: bytes) -> None:
        self._metadata = metadata
        self._signature = signature
        self._at = 0
        self._parts = 0

    def begins_with(self, generic: str) -> bool:
        """Whether this is a generic type of that name; its first argument is read next."""
        if self._signature[:1] != bytes([_GENERIC_INSTANCE]):
            return False
        self._at = 1
        if self.next() != generic:
            return False
        self._number()  # how many arguments there are
        return True

    def next(self) -> str:
        self._parts += 1
        if self._parts > MAX_TYPE_PARTS:
            raise IndexError(self._parts)
        code = self._number()
        if code in _CLASSES:
            token = self._number()
            table = _CODED["TypeDefOrRef"][token & 3]
            if table not in (_TYPE_DEF, _TYPE_REF):
                raise IndexError(token)
            return self._metadata.type_name(table, token >> 2)
        if code == _GENERIC_INSTANCE:
            name, count = self.next(), self._number()
            if count > MAX_TYPE_PARTS:
                raise IndexError(count)
            return f"{name}[{','.join(f'[{self.next()}]' for _ in range(count))}]"
        if code not in _NAMED_BY_CODE:
            raise _UnusualType(code)
        return f"System.{_NAMED_BY_CODE[code]}"

    def _number(self) -> int:
        number, self._at = _packed(self._signature, self._at)
        return number


def _without_assembly(name: str) -> str:
    """The name of a type without that of its assembly, which follows a comma outside of type arguments."""
    depth = 0
    for at, character in enumerate(name):
        depth += (character == "[") - (character == "]")
        if character == "," and depth == 0:
            return name[:at].strip()
    return name.strip()


def _streams(metadata: _Range) -> Iterator[tuple[str, _Range]]:
    (version_length,) = metadata.unpack("<12xI")
    at = 16 + version_length
    (count,) = metadata.unpack("<2xH", at)
    at += 4
    for _ in range(min(count, MAX_STREAMS)):
        offset, size = metadata.unpack("<II", at)
        name = metadata.bytes(at + 8, MAX_STREAM_NAME).partition(b"\0")[0]
        yield name.decode("ascii"), metadata.part(offset, size)
        at += 8 + (len(name) // 4 + 1) * 4  # padded by one to four zeros


def _first_argument(blob: bytes) -> str | None:
    if blob[:2] != b"\x01\x00" or blob[2] == 0xFF:  # 0xFF: null
        return None
    length, start = _packed(blob, 2)
    return blob[start : start + length].decode()


def _packed(data: bytes, at: int) -> tuple[int, int]:
    """A compressed number, and the offset after it."""
    first = data[at]
    if first < 0x80:
        return first, at + 1
    if first < 0xC0:
        return (first & 0x3F) << 8 | data[at + 1], at + 2
    return (first & 0x1F) << 24 | data[at + 1] << 16 | data[at + 2] << 8 | data[at + 3], at + 4
