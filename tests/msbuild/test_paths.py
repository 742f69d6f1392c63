"""Paths by MSBuild's rules, of both systems on every system."""

from __future__ import annotations

import pytest

from uno_devserver.msbuild.paths import adjust, comparison_key, full_path, ignoring_case, is_rooted, to_slashes


@pytest.mark.parametrize(
    ("value", "folders", "expected"),
    [
        ("/p/buildTransitive/..\\tools\\X.dll", {"/p"}, "/p/buildTransitive/../tools/X.dll"),
        ("..\\tools\\X.dll", {".."}, "../tools/X.dll"),
        ("sub\\X.dll", {"sub"}, "sub/X.dll"),
        ("other\\X.dll", {"sub"}, "other\\X.dll"),
        ("C:\\dir\\file", set(), "C:\\dir\\file"),
        ("\\\\server\\share", {"/server"}, "\\\\server\\share"),
        ("\\bin\\x", {"/bin"}, "/bin/x"),
        ("\\bin", {"/bin"}, "/bin"),
        ("'sub\\X.dll'", {"sub"}, "'sub/X.dll'"),
        ("sub\\\\a//b\\c", {"sub"}, "sub/a/b/c"),
        ("sub//c", {"sub"}, "sub//c"),
        ("$(A)\\b", {"$(A)"}, "$(A)\\b"),
        ("@(A)\\b", {"@(A)"}, "@(A)\\b"),
        ("a \\ b", set(), "a \\ b"),
        ("plain", {"plain"}, "plain"),
    ],
)
def test_backslashes_turn_round_where_the_first_folder_exists(value: str, folders: set[str], expected: str) -> None:
    assert adjust(value, folders.__contains__, windows=False) == expected


def test_on_windows_backslashes_stay() -> None:
    assert adjust("..\\a", lambda _: True, windows=True) == "..\\a"
    assert to_slashes("..\\a", windows=True) == "..\\a"
    assert to_slashes("..\\a", windows=False) == "../a"


@pytest.mark.parametrize(
    ("path", "expected"),
    [
        ("x", "/p/q/x"),
        ("../x", "/p/x"),
        ("./a/../b", "/p/q/b"),
        ("a//b", "/p/q/a/b"),
        ("dir/", "/p/q/dir/"),
        ("dir\\", "/p/q/dir/"),
        ("a\\b", "/p/q/a/b"),
        ("/../../x", "/x"),
        ("/", "/"),
        ("..", "/p"),
        ("\\\\server\\share", "/server/share"),
        (".hidden", "/p/q/.hidden"),
        ("a..b", "/p/q/a..b"),
    ],
)
def test_a_full_path_is_resolved_in_the_text(path: str, expected: str) -> None:
    assert full_path(path, "/p/q", windows=False) == expected


def test_a_full_path_on_windows_has_its_drive_and_backslashes() -> None:
    assert full_path("..\\x/y", "C:\\p\\q", windows=True) == "C:\\p\\x\\y"
    assert full_path("d/", "C:\\p", windows=True) == "C:\\p\\d\\"
    assert full_path("D:\\x", "C:\\p", windows=True) == "D:\\x"


def test_what_is_rooted_depends_on_the_system() -> None:
    assert is_rooted("/x", windows=False)
    assert not is_rooted("C:\\x", windows=False)
    assert is_rooted("C:\\x", windows=True)
    assert is_rooted("\\x", windows=True)
    assert not is_rooted("x", windows=True)


def test_two_spellings_of_a_path_compare_equal_without_regard_to_case() -> None:
    assert comparison_key("./A/b.dll", "/p") == comparison_key("a\\B.DLL", "/p")
    assert comparison_key("a/", "/p") == comparison_key("a", "/p")


def test_ignoring_case_sorts_letters_before_the_underscore_and_keeps_lengths() -> None:
    assert ignoring_case("z") < ignoring_case("_u")
    assert ignoring_case("straße é") == "STRAßE É"
