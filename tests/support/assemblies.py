"""Tiny .NET assemblies, written byte by byte: as much of PE and CLI as it takes to be one."""

from __future__ import annotations

import struct
import uuid
from collections.abc import Sequence

MVID = "0b7a1a0e-8d1c-4f0e-9d58-0c2f5d1f3a10"
TARGET_PLATFORM = ("System.Runtime.Versioning", "TargetPlatformAttribute")
TARGET_FRAMEWORK = ("System.Runtime.Versioning", "TargetFrameworkAttribute")
SERVER_PROCESSOR = ("Uno.UI.RemoteControl.Host", "ServerProcessorAttribute")

Attribute = tuple[tuple[str, str], str | None]  # the type's namespace and name, and its one argument


def assembly(
    attributes: Sequence[Attribute] = (),
    *,
    mvid: str = MVID,
    name: str = "Sample.App",
    version: tuple[int, int, int, int] = (1, 2, 3, 4),
    own_attribute_types: bool = False,
    wide: bool = False,
    padding: int = 0,
    manifest: bool = True,
    pe32_plus: bool = False,
) -> bytes:
    """`own_attribute_types`: the types are defined in the assembly itself; `wide`: heaps as of a large assembly;
    `padding`: types and members that it refers to and never uses."""
    metadata = _metadata(attributes, mvid, name, version, own_attribute_types, wide, padding, manifest)
    return _pe(metadata, pe32_plus)


def _pe(metadata: bytes, pe32_plus: bool) -> bytes:
    address, raw = 0x2000, 0x400
    body = struct.pack("<IHHII", 72, 2, 5, address + 72, len(metadata)).ljust(72, b"\0") + metadata
    directories = bytearray(16 * 8)
    struct.pack_into("<II", directories, 14 * 8, address, 72)
    fixed = (b"\x0b\x02" if pe32_plus else b"\x0b\x01").ljust(112 if pe32_plus else 96, b"\0")
    optional = fixed + directories
    coff = struct.pack("<HHIIIHH", 0x14C, 1, 0, 0, 0, len(optional), 0x2102)
    section = b".text\0\0\0" + struct.pack("<IIII", len(body), address, len(body), raw).ljust(32, b"\0")
    dos = b"MZ".ljust(0x3C, b"\0") + struct.pack("<I", 0x80)
    return (dos.ljust(0x80, b"\0") + b"PE\0\0" + coff + optional + section).ljust(raw, b"\0") + body


class _Heap:
    def __init__(self) -> None:
        self.data = bytearray(1)

    def string(self, text: str) -> int:
        return self._add(text.encode() + b"\0")

    def blob(self, content: bytes) -> int:
        assert len(content) < 0x4000
        length = bytes([len(content)]) if len(content) < 0x80 else struct.pack(">H", 0x8000 | len(content))
        return self._add(length + content)

    def _add(self, data: bytes) -> int:
        at = len(self.data)
        self.data += data
        return at


def _metadata(
    attributes: Sequence[Attribute],
    mvid: str,
    name: str,
    version: tuple[int, int, int, int],
    own: bool,
    wide: bool,
    padding: int,
    manifest: bool,
) -> bytes:
    strings, blobs = _Heap(), _Heap()
    heap = "I" if wide else "H"

    def coded(tag_bits: int) -> str:
        """How wide a reference is that may lead to the padded tables."""
        return "I" if padding + len(attributes) >= 1 << (16 - tag_bits) else "H"

    type_ref = struct.Struct(f"<{coded(2)}{heap}{heap}")
    type_def = struct.Struct(f"<I{heap}{heap}{coded(2)}HH")
    method = struct.Struct(f"<IHH{heap}{heap}H")
    member_ref = struct.Struct(f"<{coded(3)}{heap}{heap}")
    attribute = struct.Struct(f"<{coded(5)}{coded(3)}{heap}")
    rows: dict[int, list[bytes]] = {0x00: [struct.pack(f"<H4{heap}", 0, strings.string("m.dll"), 1, 0, 0)]}
    if own:
        # One type without methods first, as compilers write it.
        rows[0x02] = [type_def.pack(0, strings.string("<Module>"), 0, 0, 1, 1)]
        rows[0x06] = []
        for number, ((namespace, kind), _) in enumerate(attributes, 1):
            rows[0x02].append(type_def.pack(0, strings.string(kind), strings.string(namespace), 0, 1, number))
            rows[0x06].append(method.pack(0, 0, 0, strings.string(".ctor"), 0, 1))
    else:
        rows[0x01] = [type_ref.pack(0, 0, 0)] * padding
        rows[0x0A] = [member_ref.pack(0, 0, 0)] * padding
        for number, ((namespace, kind), _) in enumerate(attributes, padding + 1):
            rows[0x01].append(type_ref.pack(0, strings.string(kind), strings.string(namespace)))
            rows[0x0A].append(member_ref.pack(number << 3 | 1, strings.string(".ctor"), 0))
    # Attributes of a module and of a file surround those of the assembly, as the table is sorted.
    rows[0x0C] = [attribute.pack(1 << 5 | 7, 1 << 3 | 3, 0)]
    for number, (_, argument) in enumerate(attributes, padding + 1):
        value = b"\xff" if argument is None else _packed_string(argument)
        constructor = number << 3 | (2 if own else 3)
        rows[0x0C].append(attribute.pack(46, constructor, blobs.blob(b"\1\0" + value + b"\0\0")))
    rows[0x0C].append(attribute.pack(2 << 5 | 14, 3, 0))
    if manifest:
        rows[0x20] = [struct.pack(f"<I4HI3{heap}", 0x8004, *version, 0, 0, strings.string(name), 0)]
    present = {number: content for number, content in rows.items() if content}
    valid = sum(1 << number for number in present)
    tables = struct.pack("<IBBBBQQ", 0, 2, 0, 7 if wide else 0, 1, valid, 0)
    tables += b"".join(struct.pack("<I", len(present[number])) for number in sorted(present))
    tables += b"".join(b"".join(present[number]) for number in sorted(present))
    streams = {
        "#~": tables,
        "#Strings": bytes(strings.data),
        "#GUID": uuid.UUID(mvid).bytes_le,
        "#Blob": bytes(blobs.data),
    }
    return _root(streams)


def _packed_string(text: str) -> bytes:
    data = text.encode()
    assert len(data) < 0x80
    return bytes([len(data)]) + data


def _root(streams: dict[str, bytes]) -> bytes:
    head = b"BSJB" + struct.pack("<HHII", 1, 1, 0, 12) + b"v4.0.30319\0\0" + struct.pack("<HH", 0, len(streams))
    names = [name.encode().ljust((len(name) // 4 + 1) * 4, b"\0") for name in streams]
    at = len(head) + sum(8 + len(name) for name in names)
    body = b""
    for name, data in zip(names, streams.values(), strict=True):
        padded = data.ljust((len(data) + 3) // 4 * 4, b"\0")
        head += struct.pack("<II", at, len(padded)) + name
        at += len(padded)
        body += padded
    return head + body


def assembly_of_long_names(attributes: int) -> bytes:
    """An assembly with generic processors, each of whose names has 47 arguments, nested 49 deep, of 1,000 letters."""
    strings, blobs = _Heap(), _Heap()
    letters = strings.string("a" * 1000)
    generic = (strings.string(f"{SERVER_PROCESSOR[1]}`1"), strings.string(SERVER_PROCESSOR[0]))
    nested = [struct.pack("<HHH", (2 + level) << 2 | 3, letters, 0) for level in range(48)]
    innermost = b"\x12" + struct.pack(">H", 0x8000 | (2 + len(nested)) << 2 | 1)
    signature = b"\x15\x12\x05\x01\x15" + innermost + b"\x2f" + innermost * 47
    rows = {
        0x00: [struct.pack("<H4H", 0, strings.string("m.dll"), 1, 0, 0)],
        0x01: [struct.pack("<HHH", 0, *generic), struct.pack("<HHH", 0, letters, 0), *nested],
        0x0A: [struct.pack("<HHH", 1 << 3 | 4, strings.string(".ctor"), 0)],
        0x0C: [struct.pack("<HHH", 46, 1 << 3 | 3, blobs.blob(b"\1\0\0\0"))] * attributes,
        0x1B: [struct.pack("<H", blobs.blob(signature))],
        0x20: [struct.pack("<I4HI3H", 0x8004, 1, 0, 0, 0, 0, 0, letters, 0)],
    }
    tables = struct.pack("<IBBBBQQ", 0, 2, 0, 0, 1, sum(1 << number for number in rows), 0)
    tables += b"".join(struct.pack("<I", len(content)) for content in rows.values())
    tables += b"".join(b"".join(content) for content in rows.values())
    guids = uuid.UUID(MVID).bytes_le
    streams = {"#~": tables, "#Strings": bytes(strings.data), "#GUID": guids, "#Blob": bytes(blobs.data)}
    return _pe(_root(streams), pe32_plus=False)
