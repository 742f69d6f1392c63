"""MSBuild's own functions."""

from __future__ import annotations

from pathlib import Path

import pytest

from support.files import write

from .conftest import Call


@pytest.mark.parametrize(
    ("expression", "expected"),
    [
        ("Add(1, 2)", "3"),
        ("Add(1.5, 2)", "3.5"),
        ("Add('1,000', 0.5)", "1000.5"),
        ("Subtract(5, 8)", "-3"),
        ("Multiply(3, 4)", "12"),
        ("Multiply(9223372036854775807, 2)", "-2"),
        ("Multiply(1e10, 1e10)", "1E+20"),
        ("Divide(7, 2)", "3"),
        ("Divide(-7, 2)", "-3"),
        ("Divide(7.0, 2)", "3.5"),
        ("Modulo(-7, 4)", "-3"),
        ("Modulo(-7.5, 4)", "-3.5"),
        ("BitwiseOr(1, 2)", "3"),
        ("BitwiseAnd(3, 2)", "2"),
        ("BitwiseXor(3, 2)", "1"),
        ("BitwiseNot(0)", "-1"),
        ("Escape('a;b')", "a;b"),
        ("Unescape('a%3Bb')", "a;b"),
        ("ValueOrDefault('$(Nope)', 'd')", "d"),
        ("ValueOrDefault('$(A)', 'd')", "banana"),
        ("EnsureTrailingSlash('a\\b')", "a/b/"),
        ("EnsureTrailingSlash('a/')", "a/"),
        ("EnsureTrailingSlash('')", ""),
        ("NormalizePath('/a', '..', 'b')", "/b"),
        ("NormalizePath('/a\\b/./c')", "/a/b/c"),
        ("NormalizeDirectory('/a', 'b')", "/a/b/"),
        ("MakeRelative('/a/b', '/a/c/d.dll')", "../c/d.dll"),
        ("MakeRelative('/a/b/', '/a/b/d/')", "d/"),
        ("MakeRelative('/a/b', '/a/b')", "."),
        ("MakeRelative('/a', '/b')", "/b"),
        ("MakeRelative('', 'b')", "b"),
        ("SubstringByAsciiChars('aébc', 1, 2)", "_b"),
        ("SubstringByAsciiChars('abc', 9, 2)", ""),
        ("ConvertToBase64('häi')", "aMOkaQ=="),
        ("ConvertFromBase64('aMOkaQ==')", "häi"),
        ("IsOsBsdLike()", "False"),
    ],
)
def test_a_function_is_msbuilds(expression: str, expected: str, call: Call) -> None:
    assert call(f"$([MSBuild]::{expression})") == expected


@pytest.mark.parametrize(
    ("expression", "expected"),
    [
        ("VersionGreaterThan('1.10', '1.9')", "True"),
        ("VersionLessThan('10.0', '9.0')", "False"),
        ("VersionEquals('v1.0-beta', '1.0.0.0')", "True"),
        ("VersionNotEquals('1', '2')", "True"),
        ("VersionGreaterThanOrEquals('10', '10.0')", "True"),
        ("VersionLessThanOrEquals('10.0.1', '10')", "False"),
    ],
)
def test_versions_are_compared_as_numbers(expression: str, expected: str, call: Call) -> None:
    assert call(f"$([MSBuild]::{expression})") == expected


@pytest.mark.parametrize(
    ("expression", "expected"),
    [
        ("GetTargetFrameworkIdentifier('net10.0')", ".NETCoreApp"),
        ("GetTargetFrameworkIdentifier('net472')", ".NETFramework"),
        ("GetTargetFrameworkVersion('net10.0-android36.0')", "10.0"),
        ("GetTargetFrameworkVersion('net472')", "4.7.2"),
        ("GetTargetFrameworkVersion('netstandard2.0', 3)", "2.0.0"),
        ("GetTargetPlatformIdentifier('$(Tfm)')", "android"),
        ("GetTargetPlatformVersion('$(Tfm)')", "36.0"),
        ("IsTargetFrameworkCompatible('net10.0', 'net8.0')", "True"),
        ("IsTargetFrameworkCompatible('net8.0', 'net10.0')", "False"),
    ],
)
def test_target_frameworks_are_taken_apart(expression: str, expected: str, call: Call) -> None:
    assert call(f"$([MSBuild]::{expression})") == expected


def test_a_file_is_looked_for_in_all_folders_above(call: Call, tmp_path: Path) -> None:
    write(tmp_path / "here.props", "")
    write(tmp_path / "a" / "b" / "x", "")

    assert call("$([MSBuild]::GetPathOfFileAbove('here.props'))") == str(tmp_path / "here.props")
    assert call("$([MSBuild]::GetPathOfFileAbove('here.props', 'a/b/'))") == str(tmp_path / "here.props")
    assert call("$([MSBuild]::GetPathOfFileAbove('none.props'))") == ""
    assert call("$([MSBuild]::GetDirectoryNameOfFileAbove('a/b', 'here.props'))") == str(tmp_path)
    assert call("$([MSBuild]::GetDirectoryNameOfFileAbove('a', 'none.props'))") == ""
    assert call("$([MSBuild]::FileExists('here.props'))") == "True"
    assert call("$([MSBuild]::DirectoryExists('a\\b'))") == "True"


@pytest.mark.parametrize(
    ("expression", "code"),
    [
        ("Add('x', 1)", "MSB4186"),
        ("Divide(1, 0)", "MSB4184"),
        ("Divide(1.5, 0)", "MSB4184"),
        ("Modulo(1.5, 0)", "MSB4184"),
        ("BitwiseOr(1, 'x')", "MSB4186"),
        ("BitwiseNot()", "MSB4186"),
        ("VersionGreaterThan('', '9.0')", "MSB4184"),
        ("VersionGreaterThan('1')", "MSB4186"),
        ("NormalizePath('')", "MSB4184"),
        ("GetPathOfFileAbove('a/b')", "MSB4184"),
        ("ConvertFromBase64('*')", "MSB4184"),
        ("ValueOrDefault('a')", "MSB4186"),
        ("GetTargetFrameworkIdentifier('monoandroid')", "Unsupported"),
        ("IsTargetFrameworkCompatible('net48', 'netstandard2.0')", "Unsupported"),
        ("StableStringHash('a')", "Unsupported"),
    ],
)
def test_what_fails_has_a_code(expression: str, code: str, call: Call) -> None:
    assert call(f"$([MSBuild]::{expression})") == code
