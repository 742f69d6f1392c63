"""`.csproj.user`: a new one has the recorded bytes, and of an existing one nothing but the value changes."""

from __future__ import annotations

import base64
import json
import os
import stat
import subprocess
import sys
import threading
import xml.etree.ElementTree as ElementTree
from pathlib import Path

import pytest
from hypothesis import given, settings
from hypothesis import strategies as st

from support.files import snapshot, write
from support.golden import GOLDEN
from support.privileges import AS_A_USER, ROOT, needs_a_user
from uno_devserver.instances.csproj_user import (
    MAX_BYTES,
    ElementSpan,
    NotUnderstood,
    PortFileAction,
    SolutionPorts,
    merged,
    root_span,
    without_texts,
    write_port,
)
from uno_devserver.msbuild.xml import XmlProblem
from uno_devserver.system.files import TEMPORARY

RECORDED = GOLDEN / "bytes" / "csproj-user"
START = GOLDEN / "host" / "start"
BEFORE = sorted(path.name.removesuffix(".before.xml") for path in RECORDED.glob("*.before.xml"))
NEW = sorted(path.name for path in RECORDED.glob("csproj-user-new*.xml"))
VALUE = "53821#"
TAB = "\t"
PROPERTIES = f"<UnoPlatformIDE>cli</UnoPlatformIDE><UnoRemoteControlPort>{VALUE}</UnoRemoteControlPort>"
GROUP = f"<PropertyGroup>{PROPERTIES}</PropertyGroup>"


def solution(root: Path, *projects: str, existing: bool = True) -> str:
    paths = "".join(f'<Project Path="{project}" />' for project in projects)
    for project in projects if existing else ():
        write(root / project, "<Project />")
    return str(write(root / "App.slnx", f"<Solution>{paths}</Solution>"))


def laid_out(child: str, grandchild: str) -> str:
    """A new group in lines that begin so."""
    ide, port = PROPERTIES.replace("><Uno", ">\n<Uno").split("\n")
    return f"\n{child}<PropertyGroup>\n{grandchild}{ide}\n{grandchild}{port}\n{child}</PropertyGroup>"


def merge(text: str) -> str:
    return merged(text.encode(), VALUE).decode()


# --- as recorded --------------------------------------------------------------------------------------------------


def test_a_new_file_has_the_recorded_bytes(tmp_path: Path) -> None:
    path = tmp_path / "App" / "App.csproj.user"

    result = write_port(solution(tmp_path, "App/App.csproj"), 53821, str(tmp_path))

    assert [(file.path, file.action) for file in result.files] == [(str(path), PortFileAction.CREATED)]
    assert path.read_bytes() == (RECORDED / "csproj-user-new.xml").read_bytes()
    assert stat.S_IMODE(path.stat().st_mode) == 0o666 & ~_umask()


def test_the_temporary_file_of_a_writer_that_was_killed_is_removed(tmp_path: Path) -> None:
    path = solution(tmp_path, "App/App.csproj")
    killed = subprocess.Popen([sys.executable, "-c", ""])
    killed.wait()
    left = write(tmp_path / f"App/App.csproj.user.{killed.pid}-0{TEMPORARY}", "<Proj")
    others = [f"App/App.csproj.user.{os.getpid()}-0{TEMPORARY}", f"App/Notes.{killed.pid}-0{TEMPORARY}"]
    for name in others:
        write(tmp_path / name, "<Proj")

    write_port(path, 53821, str(tmp_path))

    assert not left.exists()
    assert all((tmp_path / name).exists() for name in others), "of a writer that lives, and of another file"


def test_the_recorded_start_gives_the_recorded_files(tmp_path: Path) -> None:
    """The .NET tool adds a byte order mark to a file that had none, and takes its last newline; ours does not."""
    before, after = (json.loads((START / "csproj-user.json").read_bytes())[key] for key in ("before", "after"))
    for name, file in before.items():
        write(tmp_path / name, base64.b64decode(file["base64"]))
    path = solution(tmp_path, *(name.removesuffix(".user") for name in after))

    write_port(path, 5651, str(tmp_path))

    for name, file in after.items():
        theirs, ours = base64.b64decode(file["base64"]), (tmp_path / name).read_bytes()
        assert ours == (theirs if name not in before else theirs.removeprefix(b"\xef\xbb\xbf") + b"\n")


def test_the_recorded_second_start_changes_the_port(tmp_path: Path) -> None:
    first = json.loads((START / "csproj-user.json").read_bytes())["after"]
    second = json.loads((START / "csproj-user-second.json").read_bytes())
    for name, file in first.items():
        write(tmp_path / name, base64.b64decode(file["base64"]))
    path = solution(tmp_path, *(name.removesuffix(".user") for name in first))

    result = write_port(path, 5652, str(tmp_path))

    assert {file.action for file in result.files} == {PortFileAction.UPDATED}
    assert {name: (tmp_path / name).read_bytes() for name in second} == {
        name: base64.b64decode(file["base64"]) for name, file in second.items()
    }


@pytest.mark.parametrize("name", BEFORE)
def test_what_msbuild_reads_is_what_it_reads_in_the_recorded_file(name: str) -> None:
    before = (RECORDED / f"{name}.before.xml").read_bytes()
    recorded = (RECORDED / f"{name}.after-default.xml").read_bytes()

    expected = properties(recorded)
    if name.startswith("b-"):  # the recording filled in what the .NET tool leaves alone where there is a port already
        del expected["", "UnoPlatformIDE"]
    assert properties(merged(before, VALUE)) == expected


@pytest.mark.parametrize("name", BEFORE)
def test_every_line_of_the_file_stays_except_that_of_the_value(name: str) -> None:
    before = (RECORDED / f"{name}.before.xml").read_bytes()
    encoding = "utf-16" if before.startswith(b"\xff\xfe") else "utf-8"

    after = merged(before, VALUE)

    assert after[:2] == before[:2], "a byte order mark is there or not, as before"
    kept = (
        before.decode(encoding).replace("1000", VALUE).replace('" />\n', '">\n' if name.startswith("e-") else '" />\n')
    )
    lines = after.decode(encoding).splitlines(keepends=True)
    missing = [line for line in kept.splitlines(keepends=True) if line not in lines]
    assert missing == []
    assert merged(after, VALUE) == after, "and once it is right, nothing changes any more"


@pytest.mark.parametrize("name", NEW)
def test_a_file_that_is_right_already_is_right_in_every_layout(name: str) -> None:
    recorded = (RECORDED / name).read_bytes()

    assert merged(recorded, VALUE) == recorded


def properties(document: bytes) -> dict[tuple[str, str], str | None]:
    """What each property is in the end, per condition of its group: later ones win.

    A carriage return that is written as a reference is lost by the .NET tool; it does not count here.
    """
    found = {}
    for group in ElementTree.fromstring(document):
        for element in group:
            name = group.get("Condition", ""), element.tag.rpartition("}")[2]
            found[name] = element.text and element.text.replace("\r", "")
    return found


def _umask() -> int:
    mask = os.umask(0)
    os.umask(mask)
    return mask


# --- an existing file, text by text -------------------------------------------------------------------------------


@pytest.mark.parametrize(
    ("before", "after"),
    [
        ("<UnoRemoteControlPort>1</UnoRemoteControlPort>", "<UnoRemoteControlPort>53821#</UnoRemoteControlPort>"),
        ("<UnoRemoteControlPort/>", "<UnoRemoteControlPort>53821#</UnoRemoteControlPort>"),
        ("<UnoRemoteControlPort a='>' />", "<UnoRemoteControlPort a='>'>53821#</UnoRemoteControlPort>"),
        ("<UnoRemoteControlPort\n></UnoRemoteControlPort >", "<UnoRemoteControlPort\n>53821#</UnoRemoteControlPort >"),
        ("<UnoRemoteControlPort> 1\n</UnoRemoteControlPort>", "<UnoRemoteControlPort>53821#</UnoRemoteControlPort>"),
        (
            "<UnoRemoteControlPort><![CDATA[1]]></UnoRemoteControlPort>",
            "<UnoRemoteControlPort>53821#</UnoRemoteControlPort>",
        ),
    ],
)
def test_a_port_is_replaced_where_it_stands(before: str, after: str) -> None:
    around = "<Project>\r\n <PropertyGroup>{}<B/></PropertyGroup>\t</Project>\n"

    assert merge(around.format(before)) == around.format(after)


def test_every_group_that_has_the_port_gets_it_because_msbuild_takes_the_last() -> None:
    text = """<Project>
  <PropertyGroup><Other>1</Other></PropertyGroup>
  <PropertyGroup Condition="'$(Configuration)' == 'Release'">
    <UnoRemoteControlPort>1</UnoRemoteControlPort><UnoPlatformIDE>vs</UnoPlatformIDE>
  </PropertyGroup>
  <PropertyGroup><UnoRemoteControlPort>22222222</UnoRemoteControlPort></PropertyGroup>
</Project>"""

    assert merge(text) == text.replace(">1</Uno", f">{VALUE}</Uno").replace(">22222222<", f">{VALUE}<")


@pytest.mark.parametrize(
    "group",
    [
        """<PropertyGroup Condition="'$(A)' == 'x'"><UnoRemoteControlPort>1</UnoRemoteControlPort></PropertyGroup>""",
        """<PropertyGroup><UnoRemoteControlPort\n Condition = "'$(A)'=='x'">1</UnoRemoteControlPort></PropertyGroup>""",
    ],
)
def test_a_port_that_has_only_conditions_gets_company_that_has_none(group: str) -> None:
    once = merge(f"<Project>\n  {group}\n</Project>\n")

    added = f"<UnoRemoteControlPort>{VALUE}</UnoRemoteControlPort>\n"
    assert group.replace(">1<", f">{VALUE}<") in once
    assert once.endswith(f"{added}  </PropertyGroup>\n</Project>\n")
    assert merge(once) == once


@pytest.mark.parametrize(
    ("content", "after"),
    [
        *(
            (right, right)
            for right in (VALUE, f"<![CDATA[{VALUE}]]>", "53821&#35;", f"{VALUE}<!-- x -->", f"<?x?>{VALUE}")
        ),
        ("1<!-- why -->2", f"{VALUE}<!-- why -->"),
    ],
)
def test_a_value_that_is_right_stays_however_it_is_written_and_a_comment_survives(content: str, after: str) -> None:
    around = "<Project><PropertyGroup><UnoRemoteControlPort>{}</UnoRemoteControlPort></PropertyGroup></Project>"

    assert merge(around.format(content)) == around.format(after)


@pytest.mark.parametrize(
    ("before", "after"),
    [
        ("<Project/>", f"<Project>{GROUP}</Project>"),
        ("<Project></Project>", f"<Project>{GROUP}</Project>"),
        ("<Project ></Project >", f"<Project >{GROUP}</Project >"),
        ("<Project><A/></Project>", f"<Project><A/>{GROUP}</Project>"),
        ("<Project>\n\n</Project>\n", f"<Project>{laid_out('  ', '    ')}\n\n</Project>\n"),
        ("<Project>\n<A>\n<B/>\n</A>\n</Project>", f"<Project>\n<A>\n<B/>\n</A>{laid_out('', '')}\n</Project>"),
        ("<Project>\n   <A/></Project>", f"<Project>\n   <A/>{laid_out(' ' * 3, ' ' * 6)}\n</Project>"),
        ("<Project>\n\t<A/>\n</Project>", f"<Project>\n\t<A/>{laid_out(TAB, TAB + TAB)}\n</Project>"),
        ("\n <Project />", f"\n <Project>{laid_out('   ', '     ')}\n </Project>"),
        (
            "<Project>\n<!-- </Project> -->\n</Project>",
            f"<Project>\n<!-- </Project> -->{laid_out('  ', '    ')}\n</Project>",
        ),
    ],
)
@pytest.mark.parametrize("newline", ["\n", "\r\n", "\r"], ids=["LF", "CRLF", "CR"])
def test_a_new_group_is_laid_out_like_the_rest(before: str, after: str, newline: str) -> None:
    assert merge(before.replace("\n", newline)) == after.replace("\n", newline)


@pytest.mark.parametrize(
    "inside",
    [
        "<!-- <PropertyGroup><UnoRemoteControlPort>1</UnoRemoteControlPort></PropertyGroup> -->",
        "<A><![CDATA[<PropertyGroup><UnoRemoteControlPort>1</UnoRemoteControlPort></PropertyGroup>]]></A>",
        "<?x <PropertyGroup><UnoRemoteControlPort>1</UnoRemoteControlPort></PropertyGroup> ?>",
        '<A x="</PropertyGroup>>" y=\'"\'/>'.replace("</", ""),
        "<Target><PropertyGroup><UnoRemoteControlPort>1</UnoRemoteControlPort></PropertyGroup></Target>",
        "<PropertyGroup><A><UnoRemoteControlPort>1</UnoRemoteControlPort></A></PropertyGroup>",
        "<PropertyGroup xmlns='other'><UnoRemoteControlPort>1</UnoRemoteControlPort></PropertyGroup>",
        "<propertygroup><UnoRemoteControlPort>1</UnoRemoteControlPort></propertygroup>",
        "<o:PropertyGroup xmlns:o='o'><o:UnoRemoteControlPort>1</o:UnoRemoteControlPort></o:PropertyGroup>",
    ],
)
def test_what_only_looks_like_the_port_is_not_taken_for_it(inside: str) -> None:
    assert merge(f"<Project>{inside}</Project>") == f"<Project>{inside}{GROUP}</Project>"


def test_elements_with_a_prefix_get_the_prefix() -> None:
    text = "<m:Project xmlns:m='http://schemas.microsoft.com/developer/msbuild/2003'></m:Project>"

    result = merge(text)

    root = ElementTree.fromstring(result)
    assert [root[0].tag, *(element.tag for element in root[0])] == [
        root.tag.replace("Project", name) for name in ("PropertyGroup", "UnoPlatformIDE", "UnoRemoteControlPort")
    ]
    assert merge(result) == result


@pytest.mark.parametrize("bom", [b"", b"\xef\xbb\xbf"])
@pytest.mark.parametrize("declaration", ["", '<?xml version="1.0" encoding="windows-1252"?>'])
def test_bytes_of_another_encoding_are_carried_through(bom: bytes, declaration: str) -> None:
    name = "Grüße".encode("utf-8" if bom else "cp1252")
    data = bom + declaration.encode() + b"<Project><A>" + name + b"</A></Project>"

    assert merged(data, VALUE) == data.replace(b"</A>", b"</A>" + GROUP.encode())


@pytest.mark.parametrize("encoding", ["utf-16-le", "utf-16-be", "utf-32-le"])
def test_wide_encodings_stay(encoding: str) -> None:
    text = "\ufeff<Project><A>Příklad 🚀</A></Project>"

    assert merged(text.encode(encoding), VALUE) == text.replace("</A>", "</A>" + GROUP).encode(encoding)


# --- what is left alone -------------------------------------------------------------------------------------------

BAD = {
    "empty": b"",
    "text": b"not xml",
    "cut": b"<Project><PropertyGroup>",
    "two roots": b"<Project/><Project/>",
    "undeclared prefix": b"<x:Project/>",
    "entity": b"<Project>&unknown;</Project>",
    "other root": b"<configuration/>",
    "doctype": b"<!DOCTYPE Project [<!ENTITY a 'b'>]><Project/>",
    "half UTF-16": b"\xff\xfe<\0P",
    "odd UTF-16": b"\xff\xfe<\0P\0\0",
    "UTF-16 without a mark": "<Project/>".encode("utf-16-le"),
    "NUL": b"<Project>\0</Project>",
    "deep": b"<Project>" + b"<a>" * 5000,
    "huge": b"<Project>" + b" " * MAX_BYTES + b"</Project>",
}


@pytest.mark.timeout(20)
@pytest.mark.parametrize("content", BAD.values(), ids=BAD)
def test_a_file_that_is_not_understood_is_left_alone_and_the_others_are_written(tmp_path: Path, content: bytes) -> None:
    bad = write(tmp_path / "A" / "A.csproj.user", content)

    result = write_port(solution(tmp_path, "A/A.csproj", "B/B.csproj"), 5611, str(tmp_path))

    assert [file.path for file in result.files] == [str(tmp_path / "B" / "B.csproj.user")]
    (warning,) = result.warnings
    assert warning.startswith(f"{bad} was left as it is, so its app does not learn port 5611: ")
    assert len(warning) < 500 + len(str(bad))
    assert bad.read_bytes() == content


def test_a_file_that_is_right_is_not_even_touched(tmp_path: Path) -> None:
    path = solution(tmp_path, "App.csproj")
    write_port(path, 5611, str(tmp_path))
    user_file = tmp_path / "App.csproj.user"
    os.utime(user_file, ns=(1, 1))
    before = user_file.stat()

    result = write_port(path, 5611, str(tmp_path))

    assert [file.action for file in result.files] == [PortFileAction.UNCHANGED]
    assert (user_file.stat().st_mtime_ns, user_file.stat().st_ino) == (before.st_mtime_ns, before.st_ino)


def test_a_write_protected_file_is_respected(tmp_path: Path) -> None:
    path = write(tmp_path / "App.csproj.user", "<Project/>")
    path.chmod(0o444)

    (warning,) = write_port(solution(tmp_path, "App.csproj"), 5611, str(tmp_path)).warnings

    assert warning.endswith(
        "App.csproj.user was left as it is, so its app does not learn port 5611: it is write-protected."
    )
    assert path.read_text() == "<Project/>"


def test_a_link_is_followed_and_stays_a_link(tmp_path: Path) -> None:
    target = write(tmp_path / "shared.user", "<Project/>")
    target.chmod(0o640)
    (tmp_path / "App.csproj.user").symlink_to("shared.user")

    write_port(solution(tmp_path, "App.csproj"), 53821, str(tmp_path))

    assert os.readlink(tmp_path / "App.csproj.user") == "shared.user"
    assert target.read_text() == f"<Project>{GROUP}</Project>"
    assert stat.S_IMODE(target.stat().st_mode) == 0o640


@pytest.mark.timeout(20)
def test_links_to_nowhere_folders_and_pipes_are_left_alone(tmp_path: Path) -> None:
    path = solution(tmp_path, "A.csproj", "B.csproj", "C.csproj")
    (tmp_path / "A.csproj.user").symlink_to("missing")
    (tmp_path / "B.csproj.user").mkdir()
    os.mkfifo(tmp_path / "C.csproj.user")

    result = write_port(path, 5611, str(tmp_path))

    assert (result.files, len(result.warnings)) == ((), 3)
    assert not (tmp_path / "missing").exists()


@pytest.mark.skipif(not ROOT, reason="only root can make files in others' names")
def test_what_root_makes_in_a_users_project_is_the_users(tmp_path: Path) -> None:
    path = solution(tmp_path, "App.csproj")
    os.chown(tmp_path / "App.csproj", 12345, 23456)

    write_port(path, 5611, str(tmp_path))

    made = (tmp_path / "App.csproj.user").stat()
    assert (made.st_uid, made.st_gid) == (12345, 23456)


@pytest.mark.parametrize("exists", [True, False])
def test_what_an_ide_writes_at_the_same_moment_is_not_lost(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch, exists: bool
) -> None:
    user_file, theirs = tmp_path / "App.csproj.user", "<Project><A/></Project>"
    if exists:
        write(user_file, "<Project/>")
    monkeypatch.setattr(os, "fsync", lambda _: user_file.write_text(theirs))  # the moment before it is replaced

    result = write_port(solution(tmp_path, "App.csproj"), 53821, str(tmp_path))

    assert ([file.action for file in result.files], result.warnings) == ([PortFileAction.UPDATED], ())
    assert user_file.read_text() == merge(theirs)


def test_a_file_that_another_program_changes_again_and_again_is_left_alone(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    user_file = write(tmp_path / "App.csproj.user", "<Project/>")
    names = iter("ABCDEFG")
    monkeypatch.setattr(os, "fsync", lambda _: user_file.write_text(f"<Project><{next(names)}/></Project>"))

    (warning,) = write_port(solution(tmp_path, "App.csproj"), 5611, str(tmp_path)).warnings

    assert warning.endswith("does not learn port 5611: another program changed it at the same moment.")
    assert user_file.read_text() == "<Project><C/></Project>"


@needs_a_user
def test_a_folder_that_cannot_be_written_does_not_stop_the_others(tmp_path: Path) -> None:
    path = solution(tmp_path, "A/A.csproj", "B/B.csproj")
    (tmp_path / "A").chmod(0o555)
    code = (
        "from uno_devserver.instances.csproj_user import write_port; "
        f"result = write_port({path!r}, 1, {str(tmp_path)!r}); print(len(result.files), *result.warnings)"
    )

    result = subprocess.run([*AS_A_USER, sys.executable, "-c", code], capture_output=True, text=True, timeout=20)

    (tmp_path / "A").chmod(0o755)
    assert result.stdout.startswith(f"1 {tmp_path}/A/A.csproj.user was left as it is"), result.stderr
    assert result.stdout.endswith(": Permission denied.\n")


# --- which projects -----------------------------------------------------------------------------------------------


def test_only_c_sharp_projects_that_exist_get_a_file(tmp_path: Path) -> None:
    path = solution(tmp_path, "A.csproj", "B.vbproj", "C.CSPROJ", "D.fsproj")
    write(
        tmp_path / "App.slnx", Path(path).read_text().replace("</Solution>", '<Project Path="Gone.csproj"/></Solution>')
    )

    result = write_port(path, 5611, str(tmp_path))

    assert [os.path.basename(file.path) for file in result.files] == ["A.csproj.user", "C.CSPROJ.user"]
    assert result.warnings == ()
    assert not (tmp_path / "Gone.csproj.user").exists()


def test_a_project_beside_the_solutions_folder_belongs_to_it(tmp_path: Path) -> None:
    (tmp_path / "App").mkdir()

    write_port(solution(tmp_path / "App", "App.csproj", "../Lib/Lib.csproj"), 5611, str(tmp_path))

    assert (tmp_path / "Lib" / "Lib.csproj.user").exists()


def outside_warning(path: str, folder: Path, *files: Path) -> str:
    return (
        f"{path} names projects outside of the workspace {folder}, or by links that lead out of it. Nothing is written "
        f"there, so their apps do not learn port 5611: {', '.join(map(str, files))}. To let them, set "
        "UnoRemoteControlPort to 5611# in these files yourself."
    )


def test_projects_outside_of_the_workspace_are_named_and_left_alone(tmp_path: Path) -> None:
    workspace = tmp_path / "ws"
    workspace.mkdir()
    other = write(tmp_path / "other" / "Other.csproj", "<Project />")
    write(tmp_path / "ws-similar" / "B.csproj.user", "<Project/>")
    path = solution(workspace, "../ws-similar/B.csproj", str(other), "App.csproj", "a/../../ws/In.csproj")
    before = snapshot(tmp_path / "other"), snapshot(tmp_path / "ws-similar")

    result = write_port(path, 5611, str(workspace))

    assert [os.path.basename(file.path) for file in result.files] == ["App.csproj.user", "In.csproj.user"]
    files = (tmp_path / "ws-similar" / "B.csproj.user", tmp_path / "other" / "Other.csproj.user")
    assert result.warnings == (outside_warning(path, workspace, *files),)
    assert (snapshot(tmp_path / "other"), snapshot(tmp_path / "ws-similar")) == before


@pytest.mark.parametrize("exists", [True, False])
def test_links_that_lead_out_of_the_workspace_are_not_followed(tmp_path: Path, exists: bool) -> None:
    workspace, outside = tmp_path / "ws", tmp_path / "outside"
    write(outside / "In" / "In.csproj", "<Project />")
    if exists:
        write(outside / "A.csproj.user", "<Project/>")
        write(outside / "In" / "In.csproj.user", "<Project/>")
    path = solution(workspace, "A.csproj", "B.csproj")
    write(workspace / "App.slnx", Path(path).read_text().replace("B.csproj", "In/In.csproj"))
    (workspace / "A.csproj.user").symlink_to("../outside/A.csproj.user")
    (workspace / "In").symlink_to(outside / "In")
    before = snapshot(outside)

    result = write_port(path, 5611, str(workspace))

    files = (workspace / "A.csproj.user", workspace / "In" / "In.csproj.user")
    assert (result.files, result.warnings) == ((), (outside_warning(path, workspace, *files),))
    assert snapshot(outside) == before


def test_a_warning_names_a_few_of_many_projects(tmp_path: Path) -> None:
    (tmp_path / "ws").mkdir()
    path = solution(tmp_path / "ws", *(f"../{number}.csproj" for number in range(50)))

    (warning,) = write_port(path, 5611, str(tmp_path / "ws")).warnings

    assert f"{tmp_path}/9.csproj.user and 40 more. " in warning


def test_the_files_of_many_projects_are_flushed_to_the_disk_side_by_side(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    names = [f"App{number:02}.csproj" for number in range(12)]
    path = solution(tmp_path, *names)
    write(tmp_path / "App05.csproj.user", "<!DOCTYPE x><Project/>")
    together = threading.Barrier(2)  # the eleven new files, and one of the test's own
    fsync = os.fsync
    monkeypatch.setattr(os, "fsync", lambda handle: (together.wait(60), fsync(handle)))
    own = threading.Thread(target=together.wait, args=(60,))
    own.start()

    result = write_port(path, 53821, str(tmp_path))

    own.join()
    assert [Path(file.path).name for file in result.files] == [f"{name}.user" for name in names if "05" not in name]
    assert [warning.partition(" was left")[0] for warning in result.warnings] == [str(tmp_path / "App05.csproj.user")]


def test_a_damaged_solution_is_named_and_what_it_still_tells_is_used(tmp_path: Path) -> None:
    write(tmp_path / "A.csproj", "<Project/>")
    header = (
        'Microsoft Visual Studio Solution File\nProject("{x}") = "A", "A.csproj", "{y}"\nEndProject\nProject(broken\n'
    )
    path = write(tmp_path / "App.sln", header)

    result = write_port(str(path), 5611, str(tmp_path))

    assert [os.path.basename(file.path) for file in result.files] == ["A.csproj.user"]
    assert result.warnings[0].startswith(f"{path}: ")


@pytest.mark.parametrize("name", ["missing.sln", "App.txt"])
def test_without_a_solution_nothing_is_written(tmp_path: Path, name: str) -> None:
    write(tmp_path / "App.csproj", "<Project/>")
    write(tmp_path / "App.txt", "x")
    before = snapshot(tmp_path)

    result = write_port(str(tmp_path / name), 5611, str(tmp_path))

    assert (result.files, len(result.warnings)) == ((), 1)
    assert snapshot(tmp_path) == before


# --- any text -----------------------------------------------------------------------------------------------------

PIECES = st.sampled_from(
    [
        "<PropertyGroup>",
        "</PropertyGroup>",
        "<UnoRemoteControlPort>",
        "</UnoRemoteControlPort>",
        "<UnoRemoteControlPort/>",
    ]
    + ["<!--", "-->", "<![CDATA[", "]]>", "\r\n", "\n", "\t", " ", "1", "&amp;", "ž", "<A x='>'/>", "<?x ?>", "<", "\0"]
)


@settings(deadline=None, max_examples=300)
@given(st.lists(PIECES, max_size=14))
def test_of_any_file_the_port_can_be_read_afterwards_or_it_is_refused(pieces: list[str]) -> None:
    text = f"<Project>{''.join(pieces)}</Project>\n"

    try:
        result = merge(text)
    except (NotUnderstood, XmlProblem):
        return

    ports = [
        port.text for port in ElementTree.fromstring(result.encode()).findall("PropertyGroup/UnoRemoteControlPort")
    ]
    assert VALUE in ports
    assert merge(result) == result


# --- element spans ---------------------------------------------------------------------------------------------------


TEXT = """<?xml version="1.0"?><!-- <x> --><r xmlns='one' xmlns:p="two">
  <a x="/b>" y='>'>1<![CDATA[<a>]]></a><p:a/><a xmlns=""><a/></a>
</r>"""


def outer(place: ElementSpan) -> str:
    return TEXT[place.start : place.end]


def test_an_element_reaches_from_its_start_tag_to_its_end_tag() -> None:
    root = root_span(TEXT)

    assert outer(root).startswith("<r xmlns")
    assert outer(root).endswith("</r>")
    assert [outer(child) for child in root.children] == [
        "<a x=\"/b>\" y='>'>1<![CDATA[<a>]]></a>",
        "<p:a/>",
        '<a xmlns=""><a/></a>',
    ]


def test_the_content_stands_between_the_tags() -> None:
    first, short, _ = root_span(TEXT).children

    assert TEXT[first.inner_start : first.inner_end] == "1<![CDATA[<a>]]>"
    assert (first.short, short.short) == (False, True)
    assert short.inner_start == short.inner_end == short.end


def test_names_have_the_namespace_that_holds_where_they_stand() -> None:
    root = root_span(TEXT)

    assert [(child.prefix, child.name, child.namespace) for child in root.children] == [
        ("", "a", "one"),
        ("p", "a", "two"),
        ("", "a", ""),
    ]
    assert root.named("a") == root.children[:1]
    assert root.named("b") == []


def test_comments_and_instructions_are_kept_when_texts_go() -> None:
    assert without_texts("1<!-- <a> --><![CDATA[2]]><b>3</b><?x y?>\n") == "<!-- <a> --><?x y?>"


@pytest.mark.parametrize("text", ["", "<a>", "<a></b>", "<a/><b/>", "<a", "text"])
def test_what_is_not_well_formed_has_no_places(text: str) -> None:
    with pytest.raises(XmlProblem):
        root_span(text)


def test_a_space_that_xml_does_not_know_is_part_of_a_name() -> None:
    assert root_span("<\u00a0r/>").name == "\u00a0r"


@pytest.mark.skipif(not hasattr(os, "mkfifo"), reason="needs named pipes")
def test_while_a_project_lies_outside_only_what_has_no_file_is_looked_at_again(tmp_path: Path) -> None:
    # given: a project in the workspace, one outside of it, and one whose file is a pipe that nobody writes
    workspace = tmp_path / "ws"
    own, piped = workspace / "Own.csproj", workspace / "Piped.csproj"
    for project in (own, piped, tmp_path / "Outside.csproj"):
        project.parent.mkdir(exist_ok=True)
        project.write_text("<Project />")
    os.mkfifo(f"{piped}.user")
    paths = ("Own.csproj", "Piped.csproj", "../Outside.csproj")
    listed = "".join(f'<Project Path="{path}" />' for path in paths)
    solution = workspace / "App.slnx"
    solution.write_text(f"<Solution>{listed}</Solution>")
    ports = SolutionPorts(str(solution), 5000, str(workspace))
    assert len(ports.update()) == 2
    assert "5000#" in Path(f"{own}.user").read_text()

    # when
    Path(f"{own}.user").write_text("<Project />")
    os.unlink(f"{piped}.user")
    told = ports.update()

    # then
    assert told == []
    assert Path(f"{own}.user").read_text() == "<Project />"
    assert "5000#" in Path(f"{piped}.user").read_text()
    assert not (tmp_path / "Outside.csproj.user").exists()
