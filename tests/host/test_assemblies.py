"""What is read from the metadata of .NET assemblies."""

from __future__ import annotations

import os
import tracemalloc
from pathlib import Path

import pytest

from support.assemblies import (
    MVID,
    SERVER_PROCESSOR,
    TARGET_FRAMEWORK,
    TARGET_PLATFORM,
    assembly,
    assembly_of_long_names,
)
from uno_devserver.host.assemblies import Assembly, NotAnAssembly, parse_assembly, read_assembly

APP = assembly([(TARGET_FRAMEWORK, ".NETCoreApp,Version=v10.0"), (TARGET_PLATFORM, "Desktop1.0")])


def test_the_identity_of_an_assembly_is_read() -> None:
    assert parse_assembly(APP) == Assembly(MVID, "1.2.3.4", "Desktop1.0", ())


def test_an_assembly_without_the_attribute_has_no_platform() -> None:
    assert parse_assembly(assembly([(TARGET_FRAMEWORK, ".NETCoreApp,Version=v10.0")])).platform is None
    assert parse_assembly(assembly()).platform is None
    assert parse_assembly(assembly([(TARGET_PLATFORM, None)])).platform is None


@pytest.mark.parametrize("pe32_plus", [False, True])
@pytest.mark.parametrize("padding", [0, 1 << 11, 1 << 13, 1 << 14, 1 << 16])  # where references become wider
@pytest.mark.parametrize("wide", [False, True])
def test_assemblies_of_every_size_are_read(wide: bool, padding: int, pe32_plus: bool) -> None:
    data = assembly([(TARGET_PLATFORM, "ios26.0")], wide=wide, padding=padding, pe32_plus=pe32_plus)

    assert parse_assembly(data).platform == "ios26.0"
    assert parse_assembly(data).version == "1.2.3.4"


def test_attribute_types_of_the_assembly_itself_are_recognised() -> None:
    data = assembly([(TARGET_FRAMEWORK, "x"), (TARGET_PLATFORM, "Own1.0")], own_attribute_types=True)

    assert parse_assembly(data).platform == "Own1.0"


def test_declared_processors_are_named_without_their_assembly() -> None:
    types = [
        "Uno.Hot.Processor",
        "Uno.Other.Processor, Other, Version=1.0.0.0, Culture=neutral",
        "Uno.Of`1[[System.String, mscorlib]], Other, Version=1.0.0.0",
    ]
    data = assembly([(SERVER_PROCESSOR, name) for name in types])

    assert parse_assembly(data).processors == (
        "Uno.Hot.Processor",
        "Uno.Other.Processor",
        "Uno.Of`1[[System.String, mscorlib]]",
    )


@pytest.mark.parametrize(
    ("data", "reason"),
    [
        (b"", "not a PE file"),
        (b"#!/bin/sh\n", "not a PE file"),
        (b"MZ" + b"\0" * 200, "not a PE file"),
        (b"MZ", "damaged"),
        (assembly(manifest=False), "without an assembly"),
        (APP[:0x80] + b"PE\0\0" + b"\0" * 400, "no .NET file"),
        (APP.replace(b"BSJB", b"XXXX"), "damaged"),
    ],
)
def test_what_is_no_assembly_is_refused_with_a_reason(data: bytes, reason: str) -> None:
    with pytest.raises(NotAnAssembly, match=reason):
        parse_assembly(data)


def test_native_code_is_no_assembly() -> None:
    start = 0x80 + 24 + 96 + 14 * 8
    native = APP[:start] + b"\0" * 8 + APP[start + 8 :]

    with pytest.raises(NotAnAssembly, match="native"):
        parse_assembly(native)


def test_an_assembly_cut_short_anywhere_is_refused_or_read() -> None:
    for length in range(len(APP)):
        try:
            parse_assembly(APP[:length])
        except NotAnAssembly:
            pass


def test_a_folder_is_no_assembly(tmp_path: Path) -> None:
    with pytest.raises(NotAnAssembly, match="not a regular file"):
        read_assembly(str(tmp_path))


def test_of_a_file_of_any_size_a_few_pages_are_read(tmp_path: Path) -> None:
    # given: an assembly, and native code, of a gigabyte each
    large, native = tmp_path / "large.dll", tmp_path / "native.dll"
    for path, content in ((large, APP), (native, b"MZ" + b"\0" * 200)):
        path.write_bytes(content)
        os.truncate(path, 1 << 30)

    # when
    tracemalloc.start()
    try:
        found = read_assembly(str(large))
        with pytest.raises(NotAnAssembly, match="not a PE file"):
            read_assembly(str(native))
        peak = tracemalloc.get_traced_memory()[1]
    finally:
        tracemalloc.stop()

    # then
    assert found == parse_assembly(APP)
    assert peak < 1 << 20


@pytest.mark.parametrize("path", ["/proc/self/status", "/proc/kmsg", "/proc/self/mem"])
def test_files_without_a_size_are_not_read(path: str) -> None:
    if not os.path.exists(path):
        pytest.skip(f"there is no {path} here")

    with pytest.raises(NotAnAssembly):
        read_assembly(path)


def test_a_pipe_and_a_device_are_no_assemblies(tmp_path: Path) -> None:
    os.mkfifo(tmp_path / "pipe.dll")

    for path in (str(tmp_path / "pipe.dll"), "/dev/zero"):
        with pytest.raises(NotAnAssembly, match="not a regular file"):
            read_assembly(path)


def test_a_small_file_cannot_name_gigabytes_of_types() -> None:
    # given: one processor, whose name of megabytes is within the limits; and the same a thousand times
    assert sum(map(len, parse_assembly(assembly_of_long_names(1)).processors)) > 1_000_000
    hostile = assembly_of_long_names(1000)
    assert len(hostile) < 20_000

    # when
    tracemalloc.start()
    try:
        with pytest.raises(NotAnAssembly):
            parse_assembly(hostile)
        peak = tracemalloc.get_traced_memory()[1]
    finally:
        tracemalloc.stop()

    # then
    assert peak < 32 << 20
