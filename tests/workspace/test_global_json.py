"""global.json: found upwards, read as people write it."""

from __future__ import annotations

from pathlib import Path

import pytest
from hypothesis import example, given
from hypothesis import strategies as st

from support.files import write
from uno_devserver.workspace.global_json import GlobalJson, UnoSdk, find_global_json, read_global_json

UNO = '{ "msbuild-sdks": { "Uno.Sdk": "6.5.31" } }'


def read(folder: Path, content: str | bytes) -> GlobalJson:
    return read_global_json(str(write(folder / "global.json", content)))


def code(result: GlobalJson) -> str | None:
    return result.issue.code if result.issue else None


def test_the_nearest_file_upwards_is_found(tmp_path: Path) -> None:
    write(tmp_path / "global.json", UNO)
    near = write(tmp_path / "a" / "global.json", "{}")
    (tmp_path / "a" / "b" / "c").mkdir(parents=True)

    assert find_global_json(str(tmp_path / "a" / "b" / "c")) == str(near)


def test_a_folder_of_that_name_does_not_count(tmp_path: Path) -> None:
    file = write(tmp_path / "global.json", UNO)
    (tmp_path / "a" / "global.json").mkdir(parents=True)

    assert find_global_json(str(tmp_path / "a")) == str(file)


def test_a_relative_directory_is_looked_at_from_the_current_one(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    file = write(tmp_path / "global.json", UNO)
    (tmp_path / "a").mkdir()
    monkeypatch.chdir(tmp_path)

    assert find_global_json("a") == str(file)


@pytest.mark.parametrize(
    ("content", "package", "version"),
    [
        (UNO, "Uno.Sdk", "6.5.31"),
        ('{"msbuild-sdks":{"Uno.Sdk.Private":"6.6.0-dev.12"}}', "Uno.Sdk.Private", "6.6.0-dev.12"),
        ('{"msbuild-sdks":{"Uno.Sdk.Private":"6.6.0-dev.12","Uno.Sdk":"6.5.31"}}', "Uno.Sdk", "6.5.31"),
        ('{"msbuild-sdks":{"Uno.Sdk":"  ","Uno.Sdk.Private":"6.0.0"}}', "Uno.Sdk.Private", "6.0.0"),
        ('{"msbuild-sdks":{"Uno.Sdk":6.5,"Uno.Sdk.Private":"6.0.0"}}', "Uno.Sdk.Private", "6.0.0"),
        ('// top\n{ /* c */ "msbuild-sdks": { "Uno.Sdk": "6.5.31", }, }', "Uno.Sdk", "6.5.31"),
        (b"\xef\xbb\xbf" + UNO.replace(" ", "\r\n").encode(), "Uno.Sdk", "6.5.31"),
        (b"\xff\xfe" + UNO.encode("utf-16-le"), "Uno.Sdk", "6.5.31"),
    ],
)
def test_the_uno_sdk_is_read(tmp_path: Path, content: str | bytes, package: str, version: str) -> None:
    result = read(tmp_path, content)

    assert (result.uno_sdk, result.issue) == (UnoSdk(package, version), None)


@pytest.mark.parametrize(
    "content",
    [
        "{}",
        '{"sdk":{"version":"10.0.100"}}',
        '{"msbuild-sdks":{"uno.sdk":"6.5.31"}}',
        '{"MSBuild-Sdks":{"Uno.Sdk":"6.5.31"}}',
        '{"msbuild-sdks":["Uno.Sdk"]}',
        '{"msbuild-sdks":{"Uno.Sdk":""}}',
        '{"msbuild-sdks":{"Uno.Sdk":null}}',
        '{"msbuild-sdks":{"Uno.Sdk":{"version":"6.5.31"}}}',
    ],
)
def test_a_file_without_a_usable_uno_sdk_says_so_and_names_itself(tmp_path: Path, content: str) -> None:
    result = read(tmp_path, content)

    assert (result.uno_sdk, code(result)) == (None, "UnoSdkNotInGlobalJson")
    assert result.issue
    assert result.path in result.issue.message


def test_a_name_in_another_case_is_pointed_out(tmp_path: Path) -> None:
    result = read(tmp_path, '{"msbuild-sdks":{"uno.sdk":"6.5.31"}}')

    assert result.issue
    assert "'uno.sdk'" in result.issue.message
    assert "'Uno.Sdk'" in result.issue.message


@pytest.mark.parametrize("version", ["../../evil", "..", "a\\\\b", "6.0\\u0000", "\\ud800", "6\\n"])
def test_a_version_that_could_not_be_a_folder_name_does_not_count(tmp_path: Path, version: str) -> None:
    result = read(tmp_path, UNO.replace("6.5.31", version))

    assert (result.uno_sdk, code(result)) == (None, "UnoSdkNotInGlobalJson")


def test_a_malformed_file_is_named_with_line_and_column(tmp_path: Path) -> None:
    result = read(tmp_path, '{\n  "msbuild-sdks": oops\n}')

    assert code(result) == "GlobalJsonInvalid"
    assert result.issue
    assert f"{result.path} is not valid JSON: line 2, column 19" in result.issue.message


@pytest.mark.parametrize("content", ["", "[]", '"Uno.Sdk"', "null", '{"msbuild-sdks":', b"\x00\xff\xfe", "[" * 100_000])
def test_what_is_no_json_object_is_invalid(tmp_path: Path, content: str | bytes) -> None:
    result = read(tmp_path, content)

    assert (result.uno_sdk, code(result), result.document) == (None, "GlobalJsonInvalid", None)


def test_a_missing_file_a_folder_and_a_huge_file_are_invalid(tmp_path: Path) -> None:
    huge = write(tmp_path / "huge.json", UNO + " " * 2_000_000)

    assert code(read_global_json(str(tmp_path / "missing.json"))) == "GlobalJsonInvalid"
    assert code(read_global_json(str(tmp_path))) == "GlobalJsonInvalid"
    assert code(read_global_json(str(huge))) == "GlobalJsonInvalid"


def test_the_other_sections_are_there_for_others(tmp_path: Path) -> None:
    result = read(tmp_path, '{"sdk":{"version":"10.0.100"},"msbuild-sdks":{"Uno.Sdk":"6.5.31","Other":"1.0"}}')

    assert result.document == {"sdk": {"version": "10.0.100"}, "msbuild-sdks": {"Uno.Sdk": "6.5.31", "Other": "1.0"}}


@given(st.one_of(st.binary(max_size=300), st.text(max_size=300).map(lambda text: text.encode("utf-8", "replace"))))
@example(b'{"msbuild-sdks":{"Uno.Sdk":"6.5.31"}}')
def test_any_bytes_give_a_version_or_an_issue(tmp_path_factory: pytest.TempPathFactory, content: bytes) -> None:
    folder = tmp_path_factory.getbasetemp() / "any-global-json"

    result = read(folder, content)

    assert (result.uno_sdk is None) == (result.issue is not None)
