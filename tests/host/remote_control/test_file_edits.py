"""Edits of source files: what is changed, what is kept, and what is refused."""

from __future__ import annotations

import os
import sys
from collections.abc import Sequence
from pathlib import Path

import pytest

from support.privileges import ROOT
from uno_devserver.host.remote_control import file_edits
from uno_devserver.host.remote_control.file_edits import (
    BAD_REQUEST,
    DONE,
    FAILED,
    NO_CHANGES,
    NOT_AVAILABLE,
    NOT_FOUND,
    EditResult,
    FileEdit,
    apply_edits,
)


@pytest.fixture
def page(tmp_path: Path) -> Path:
    page = tmp_path / "ws" / "Main.xaml"
    page.parent.mkdir()
    page.write_bytes(b"<Page>\n  <Text>one</Text>\n  <Text>one</Text>\n</Page>\n")
    return page


def edit(page: Path, *edits: FileEdit) -> list[EditResult]:
    return list(apply_edits(str(page.parent), edits))


MARK = b"\xef\xbb\xbf"
UTF_16 = "\ufeffone\0a".encode("utf-16-le")


@pytest.mark.parametrize(
    ("before", "old", "new", "after"),
    [
        (b"<A>one</A>\n<A>one</A>\n", "one", "two", b"<A>two</A>\n<A>two</A>\n"),  # wherever it occurs
        (b"<Page></Page>", None, "<Page />", b"<Page />"),  # the whole file
        (MARK + b"one", None, "\ufefftwo", MARK + b"two"),  # a mark that comes back as a character is not doubled
        (b"one", None, "\ufefftwo", MARK + b"two"),
        (b"caf\xe9 one\x80\xff\n", "one", "två", b"caf\xe9 tv\xc3\xa5\x80\xff\n"),  # bytes that are not text survive
        # Line ends stay those of the file.
        (b"a\r\nb\r\n", "a\nb", "c\nd\ne", b"c\r\nd\r\ne\r\n"),
        (b"a\nb\n", "a\r\nb", "c\r\nd", b"c\nd\n"),
        (b"a\r\nb\nc", "b\nc", "x\r\ny\nz", b"a\r\nx\r\ny\nz"),  # mixed: as it was sent
        (b"one line", "line", "two\nlines", b"one two\nlines"),
        (b"a\rb\n", "a\rb", "c\rd", b"c\rd\n"),
    ],
)
def test_a_text_or_the_whole_file_is_replaced(
    page: Path, before: bytes, old: str | None, new: str, after: bytes
) -> None:
    page.write_bytes(before)

    assert edit(page, FileEdit("Main.xaml", old, new)) == [EditResult("Main.xaml", DONE)]
    assert page.read_bytes() == after
    assert os.listdir(page.parent) == ["Main.xaml"]


@pytest.mark.parametrize(
    ("before", "old", "new", "result", "error"),
    [
        (b"one", "three", "four", BAD_REQUEST, "does not contain OldText"),
        (b"one", "", "x", BAD_REQUEST, "OldText is empty"),
        (b"one", "what the app knew", None, BAD_REQUEST, "so it was not deleted"),
        (b"one \x80", "one", "\udc80", BAD_REQUEST, "half a surrogate pair"),
        (b"one \x80", "\udc80", "x", BAD_REQUEST, "half a surrogate pair"),
        (b"one \x80", None, "\ud800", BAD_REQUEST, "half a surrogate pair"),
        (b"\xff\xfea", "a", "b", BAD_REQUEST, "utf-16-le"),
        (b"one\xff\xfea", "one", "", FAILED, "its first bytes would be the mark of utf-"),
        (UTF_16, "one", "", FAILED, "its first bytes would be the mark of utf-"),
    ],
)
def test_a_refused_edit_says_why_and_leaves_the_file(
    page: Path, before: bytes, old: str | None, new: str | None, result: int, error: str
) -> None:
    page.write_bytes(before)

    (refused,) = edit(page, FileEdit("Main.xaml", old, new, True))

    assert refused.result == result
    assert error in str(refused.error)
    assert page.read_bytes() == before


def test_a_missing_file_is_not_found(page: Path) -> None:
    (result,) = edit(page, FileEdit("Missing.xaml", "a", "b", True))

    assert (result.result, result.error) == (NOT_FOUND, "'Missing.xaml' does not exist.")


def test_a_new_file_is_made_where_that_is_allowed(page: Path) -> None:
    results = edit(page, FileEdit("new/deep/A.cs", None, "class A;\n", True), FileEdit("B.cs", None, "class B;\n"))

    assert [result.result for result in results] == [DONE, NOT_FOUND]
    assert (page.parent / "new" / "deep" / "A.cs").read_bytes() == b"class A;\n"
    assert sorted(os.listdir(page.parent)) == ["Main.xaml", "new"]


def test_new_files_and_folders_have_the_usual_permissions(page: Path) -> None:
    before = os.umask(0o022)
    try:
        edit(page, FileEdit("new/A.cs", None, "x", True))
    finally:
        os.umask(before)

    assert (page.parent / "new" / "A.cs").stat().st_mode & 0o777 == 0o644
    assert (page.parent / "new").stat().st_mode & 0o777 == 0o755


def test_a_file_is_deleted_where_that_is_allowed(page: Path) -> None:
    assert edit(page, FileEdit("Main.xaml", None, None))[0].result == BAD_REQUEST
    assert page.exists()

    # The app may run on a system with other line ends.
    assert edit(page, FileEdit("Main.xaml", "<Page>\r\n  <Text>", None, True))[0].result == DONE
    assert not page.exists()

    assert edit(page, FileEdit("Main.xaml", None, None, True))[0].result == NOT_FOUND


def test_an_edit_that_changes_nothing_says_so_and_does_not_touch_the_file(page: Path) -> None:
    stamp = page.stat()

    assert edit(page, FileEdit("Main.xaml", None, page.read_text()))[0].result == NO_CHANGES
    assert edit(page, FileEdit("Main.xaml", "one", "one"))[0].result == NO_CHANGES
    assert (page.stat().st_ino, page.stat().st_mtime_ns) == (stamp.st_ino, stamp.st_mtime_ns)


def test_the_edits_of_a_file_are_made_in_order(page: Path) -> None:
    results = edit(
        page,
        FileEdit("Main.xaml", "one", "two"),
        FileEdit(str(page), "two", "three"),
        FileEdit("./Main.xaml", None, None, True),
        FileEdit("Main.xaml", None, "four", True),
    )

    assert [result.result for result in results] == [DONE] * 4
    assert page.read_text() == "four"


def test_all_edits_of_a_file_are_made_or_none_and_other_files_do_not_care(page: Path) -> None:
    other = page.parent / "Other.cs"
    other.write_text("a")
    before = page.read_bytes()

    results = edit(
        page, FileEdit("Main.xaml", "one", "two"), FileEdit("Other.cs", "a", "b"), FileEdit("Main.xaml", "nowhere", "x")
    )

    assert [result.result for result in results] == [BAD_REQUEST, DONE, BAD_REQUEST]
    assert "Another edit" in (results[0].error or "")
    assert "does not contain" in (results[2].error or "")
    assert page.read_bytes() == before
    assert other.read_text() == "b"


@pytest.mark.parametrize(
    ("mark", "encoding"),
    [(b"", "utf-8"), (b"\xef\xbb\xbf", "utf-8"), (b"\xff\xfe", "utf-16-le"), (b"\xfe\xff", "utf-16-be"),
     (b"\xff\xfe\0\0", "utf-32-le"), (b"\0\0\xfe\xff", "utf-32-be")],
)  # fmt: skip
def test_encoding_and_byte_order_mark_stay(page: Path, mark: bytes, encoding: str) -> None:
    page.write_bytes(mark + "Příliš one\r\n".encode(encoding))

    assert edit(page, FileEdit("Main.xaml", "one", "žluťoučký 🚀"))[0].result == DONE
    assert page.read_bytes() == mark + "Příliš žluťoučký 🚀\r\n".encode(encoding)

    assert edit(page, FileEdit("Main.xaml", None, "whole\n"))[0].result == DONE
    assert page.read_bytes() == mark + "whole\r\n".encode(encoding)


@pytest.mark.parametrize("mode", [0o644, 0o664, 0o755, 0o600, 0o777])
def test_permissions_stay(page: Path, mode: int) -> None:
    page.chmod(mode)

    edit(page, FileEdit("Main.xaml", "one", "two"))

    assert page.stat().st_mode & 0o777 == mode


@pytest.mark.skipif(not ROOT, reason="only root may give files away")
def test_the_owner_stays(page: Path) -> None:
    os.chown(page, 1234, 5678)

    edit(page, FileEdit("Main.xaml", "one", "two"))

    assert (page.stat().st_uid, page.stat().st_gid) == (1234, 5678)


def test_another_name_of_the_same_file_elsewhere_is_not_edited(page: Path) -> None:
    outside = page.parent.parent / "outside.xaml"
    os.link(page, outside)

    assert edit(page, FileEdit("Main.xaml", "one", "two"))[0].result == DONE
    assert "one" in outside.read_text()


def test_a_link_inside_stays_a_link(page: Path) -> None:
    link = page.parent / "link.xaml"
    link.symlink_to("Main.xaml")

    assert edit(page, FileEdit("link.xaml", "one", "two"))[0].result == DONE
    assert link.is_symlink()
    assert "two" in page.read_text()


@pytest.mark.parametrize("change", [("one", "two"), (None, "new"), (None, None)])
def test_path_escape_is_refused_for_every_kind_of_edit(page: Path, change: tuple[str | None, str | None]) -> None:
    outside = page.parent.parent / "outside.cs"
    outside.write_text("one")
    (page.parent / "link.cs").symlink_to(outside)
    (page.parent / "up").symlink_to("..")
    paths = [
        "../outside.cs",
        str(outside),
        "link.cs",
        "up/outside.cs",
        "up/new.cs",
        f"{page.parent}/../outside.cs",
        "/etc/hosts",
    ]
    paths += ["a\0b", "", "/dev/stdin", f"{page.parent}x/a.cs"]

    results = edit(page, *(FileEdit(path, *change, True) for path in paths))

    assert {result.result for result in results} == {BAD_REQUEST}
    assert all("is refused" in (result.error or "") for result in results)
    assert outside.read_text() == "one"
    assert sorted(os.listdir(page.parent.parent)) == ["outside.cs", "ws"]


HIDDEN = [".git", ".GIT", ".devtools", ".vs", ".vscode", ".idea", ".cursor", ".claude", ".githooks"]


CHANGES = pytest.mark.parametrize("change", [("one", "two"), (None, "new"), (None, None)])


@CHANGES
@pytest.mark.parametrize("name", HIDDEN)
def test_nothing_below_a_hidden_folder_is_edited(page: Path, name: str, change: tuple[str | None, str | None]) -> None:
    _lay_hidden(page.parent, name)
    paths = [
        f"{name}/hooks/file",
        f"sub/module/{name}/hooks/file",
        str(page.parent / name / "hooks" / "file"),
        f"sub/../{name}/./hooks/file",
        f"{name}/new",
        f"{name}/hooks/new/deep",
        f"sub/{name}/new",
        name,
    ]

    results = edit(page, *(FileEdit(path, *change, True) for path in paths))

    _assert_hidden(page.parent, name, results)


@CHANGES
@pytest.mark.parametrize("name", HIDDEN)
def test_nor_is_it_by_way_of_a_link(page: Path, name: str, change: tuple[str | None, str | None]) -> None:
    _lay_hidden(page.parent, name)
    (page.parent / "docs").symlink_to(name)
    (page.parent / "plain.txt").symlink_to(f"{name}/hooks/file")
    (page.parent / "sub" / "again").symlink_to("../docs")
    paths = ["docs/hooks/file", "plain.txt", "sub/again/hooks/file", "docs/new"]

    results = edit(page, *(FileEdit(path, *change, True) for path in paths))

    _assert_hidden(page.parent, name, results)


@pytest.mark.skipif(sys.platform != "win32", reason="other systems take these characters as part of the name")
@pytest.mark.parametrize(
    "path", [".vscode./tasks.json", ".vscode /tasks.json", ".VSCode\\tasks.json", ".vscode::$DATA"]
)
def test_nor_is_it_by_another_spelling_that_windows_allows(page: Path, path: str) -> None:
    (page.parent / ".vscode").mkdir()
    (page.parent / ".vscode" / "tasks.json").write_text("one")

    (result,) = edit(page, FileEdit(path, None, "two", True))

    assert result.result == BAD_REQUEST
    assert (page.parent / ".vscode" / "tasks.json").read_text() == "one"


def _lay_hidden(root: Path, name: str) -> None:
    for folder in (root, root / "sub" / "module"):
        (folder / name / "hooks").mkdir(parents=True)
        (folder / name / "hooks" / "file").write_text("one")


def _assert_hidden(root: Path, name: str, results: Sequence[EditResult]) -> None:
    assert {result.result for result in results} == {BAD_REQUEST}
    assert all(f"'{name}' is hidden" in (result.error or "") for result in results)
    assert {file.read_text() for file in root.rglob("hooks/*")} == {"one"}
    assert not list(root.rglob("new"))


@pytest.mark.parametrize("name", [".git", ".mcp.json", ".envrc"])
def test_a_hidden_file_is_not_edited(page: Path, name: str) -> None:
    (page.parent / name).write_text("one")  # .git of a worktree or submodule is a file

    results = edit(page, FileEdit(name, "one", "two"), FileEdit(name, None, None, True))

    assert [result.result for result in results] == [BAD_REQUEST] * 2
    assert (page.parent / name).read_text() == "one"


@pytest.mark.parametrize("path", ["config/editor/tasks.json", ".vscode/tasks.json", "config/editor/new/deep.json"])
def test_nor_is_the_place_that_a_hidden_link_leads_to(page: Path, path: str) -> None:
    tasks = page.parent / "config" / "editor" / "tasks.json"
    tasks.parent.mkdir(parents=True)
    tasks.write_text("one")
    (page.parent / ".vscode").symlink_to("config/editor")

    (result,) = edit(page, FileEdit(path, None, "two", True))

    assert result.result == BAD_REQUEST
    assert "'.vscode' is hidden" in (result.error or "")
    assert tasks.read_text() == "one"


def test_hidden_links_that_lead_nowhere_do_not_matter(page: Path) -> None:
    for name, target in ((".broken", "missing"), (".circle", ".circle"), (".here", "."), (".up", "..")):
        (page.parent / name).symlink_to(target)

    assert edit(page, FileEdit("Main.xaml", "one", "two"))[0].result == DONE


def test_a_workspace_in_a_hidden_folder_is_edited(tmp_path: Path) -> None:
    page = tmp_path / ".worktrees" / "feature" / "Main.xaml"
    page.parent.mkdir(parents=True)
    page.write_text("one")
    (page.parent / ".git").write_text("gitdir: elsewhere")

    results = edit(page, FileEdit("Main.xaml", "one", "two"), FileEdit(str(page), "two", "three"))

    assert [result.result for result in results] == [DONE] * 2
    assert page.read_text() == "three"


def test_without_a_workspace_every_edit_is_refused(page: Path) -> None:
    results = apply_edits(None, [FileEdit(str(page), "one", "two"), FileEdit("x.cs", None, "x", True)])

    assert [result.result for result in results] == [NOT_AVAILABLE] * 2
    assert "without a workspace" in (results[0].error or "")
    assert "one" in page.read_text()


def test_what_is_no_regular_file_is_refused_at_once(page: Path) -> None:
    folder = page.parent / "folder"
    folder.mkdir()
    os.mkfifo(page.parent / "fifo")

    for name in ("folder", "fifo", "Main.xaml/below"):
        for old in ("one", None):
            (result,) = edit(page, FileEdit(name, old, "two", True))
            assert result.result == BAD_REQUEST
            assert "is not edited" in (result.error or "") or "refused" in (result.error or "")
    assert folder.is_dir()


@pytest.mark.parametrize("change", [("one", "two"), (None, "x"), (None, None)])
def test_a_read_only_file_is_refused(page: Path, change: tuple[str | None, str | None]) -> None:
    before = page.read_bytes()
    page.chmod(0o444)

    (result,) = edit(page, FileEdit("Main.xaml", *change, True))

    assert result.result == BAD_REQUEST
    assert "read-only" in (result.error or "")
    assert page.read_bytes() == before


def test_a_huge_file_is_refused(page: Path) -> None:
    with open(page, "wb") as stream:
        stream.truncate(file_edits.MAX_SIZE + 1)

    (result,) = edit(page, FileEdit("Main.xaml", "one", "two"))

    assert result.result == BAD_REQUEST
    assert "the limit is" in (result.error or "")


def test_a_replacement_that_would_become_huge_is_refused_before_it_is_made(page: Path) -> None:
    page.write_bytes(b"a" * 1_000_000)

    for change in (("a", "b" * 1_000_000), (None, "b" * (file_edits.MAX_SIZE + 1))):
        (result,) = edit(page, FileEdit("Main.xaml", *change))
        assert result.result == BAD_REQUEST
        assert "more than" in (result.error or "")
    assert page.stat().st_size == 1_000_000


def test_a_failing_disk_is_told(page: Path) -> None:
    # given: the new file cannot be made beside the old one, since its temporary name would be too long
    name = "n" * 250
    (page.parent / name).write_text("one")

    (result,) = edit(page, FileEdit(name, "one", "two"))

    assert result.result == FAILED
    assert "could not be changed: File name too long" in (result.error or "")
    assert (page.parent / name).read_text() == "one"
