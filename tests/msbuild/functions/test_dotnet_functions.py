"""The static functions of .NET's types."""

from __future__ import annotations

import sys
from pathlib import Path

import pytest

from support.files import write

from .conftest import Call


@pytest.mark.parametrize(
    ("expression", "expected"),
    [
        ("Combine('a', 'b/', 'c', '')", "a/b/c"),
        ("Combine('a', '/b')", "/b"),
        ("Combine('a', '..\\b')", "a/../b"),
        ("GetDirectoryName('/a/b/c.dll')", "/a/b"),
        ("GetDirectoryName('/a/b/')", "/a/b"),
        ("GetDirectoryName('/')", ""),
        ("GetFileName('/a/b.c.dll')", "b.c.dll"),
        ("GetFileNameWithoutExtension('/a/b.c.dll')", "b.c"),
        ("GetExtension('b.c.dll')", ".dll"),
        ("GetExtension('b.')", ""),
        ("GetExtension('.config')", ".config"),
        ("HasExtension('b.c')", "True"),
        ("ChangeExtension('a.dll', '.pdb')", "a.pdb"),
        ("ChangeExtension('a.dll', 'pdb')", "a.pdb"),
        ("ChangeExtension('a.dll', null)", "a"),
        ("ChangeExtension('a', 'b')", "a.b"),
        ("GetFullPath('/a/../b/')", "/b/"),
        ("GetFullPath('x', '/base')", "/base/x"),
        ("GetRelativePath('/a/b', '/a/c/d')", "../c/d"),
        ("IsPathRooted('/a')", "True"),
        ("IsPathRooted('C:\\a')", "False"),
        ("GetPathRoot('/a/b')", "/"),
        ("GetTempPath()", "/tmp/"),
        ("DirectorySeparatorChar", "/"),
        ("PathSeparator", ":"),
    ],
)
@pytest.mark.skipif(sys.platform == "win32", reason="the separators are those of this system")
def test_paths_are_dotnets(expression: str, expected: str, call: Call) -> None:
    assert call(f"$([System.IO.Path]::{expression})") == expected


def test_relative_paths_start_from_the_project_folder(call: Call, tmp_path: Path) -> None:
    write(tmp_path / "sub" / "x", "")

    assert call("$([System.IO.Path]::GetFullPath('sub/../y'))") == str(tmp_path / "y")
    assert call("$([System.IO.File]::Exists('sub\\x'))") == "True"
    assert call("$([System.IO.File]::Exists('sub'))") == "False"
    assert call("$([System.IO.Directory]::Exists('sub'))") == "True"
    assert call("$([System.IO.Directory]::Exists(''))") == "False"


@pytest.mark.parametrize(
    ("expression", "expected"),
    [
        ("[System.String]::IsNullOrEmpty('')", "True"),
        ("[System.String]::IsNullOrEmpty(null)", "True"),
        ("[System.String]::IsNullOrEmpty(' ')", "False"),
        ("[System.String]::IsNullOrWhiteSpace(' ')", "True"),
        ("[System.String]::Join('+', 'a', 'b')", "a+b"),
        ("[System.String]::Join('+', $(List.Split('.')))", "x+y+z"),
        ("[System.String]::Concat('a', $(N), 'b')", "a10b"),
        ("[System.String]::new('x').Length", "1"),
        ("[System.String]::Empty", ""),
        ("[System.Environment]::GetEnvironmentVariable('ACME')", "from-env"),
        ("[System.Environment]::GetEnvironmentVariable('acme')", ""),
        ("[System.Version]::Parse('1.2').Major", "1"),
        ("[System.Version]::Parse('1.2').Build", "-1"),
        ("[System.Version]::new('1.2.3.4')", "1.2.3.4"),
        ("[System.Math]::Max(2, 1.5)", "2"),
        ("[System.Math]::Min(2, 1.5)", "1.5"),
        ("[system.string]::COPY('x')", "x"),
    ],
)
def test_other_types_are_dotnets(expression: str, expected: str, call: Call) -> None:
    assert call(f"$({expression})") == expected


def test_the_operating_system_has_one_name(call: Call) -> None:
    runtime = "System.Runtime.InteropServices"
    expected = [str(sys.platform == name) for name in ("linux", "win32", "darwin")]

    for names, template in (
        (("Linux", "Windows", "MacOS"), "$([System.OperatingSystem]::Is{}())"),
        (("linux", "WINDOWS", "osx"), "$([MSBuild]::IsOSPlatform('{}'))"),
        (
            ("Linux", "Windows", "OSX"),
            f"$([{runtime}.RuntimeInformation]::IsOSPlatform($([{runtime}.OSPlatform]::{{}})))",
        ),
    ):
        assert [call(template.format(name)) for name in names] == expected


@pytest.mark.parametrize(
    ("expression", "code"),
    [
        ("[System.IO.Path]::GetFullPath('')", "MSB4184"),
        ("[System.IO.Path]::Combine()", "MSB4186"),
        ("[System.Version]::Parse('1')", "MSB4184"),
        ("[System.Math]::Max('a', 'b')", "MSB4186"),
        ("[System.IO.File]::ReadAllText('x')", "Unsupported"),
        ("[System.IO.File]::Delete('x')", "MSB4185"),
        ("[System.String]::Format('{0}', 'x')", "Unsupported"),
    ],
)
def test_what_fails_has_a_code(expression: str, code: str, call: Call) -> None:
    assert call(f"$({expression})") == code
