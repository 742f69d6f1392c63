"""Which of the imported files can have a say about an item: those are evaluated, the others are not."""

from __future__ import annotations

import os
from pathlib import Path

import pytest

from support.files import write
from uno_devserver.discovery.import_filter import MAX_BYTES, ImportFilter

ITEM = "UnoRemoteControlAddIns"
HOLDER = f'<Project><ItemGroup><{ITEM} Include="x.dll" /></ItemGroup></Project>'
NOTHING = "<Project><PropertyGroup><Unrelated>1</Unrelated></PropertyGroup></Project>"


class Files:
    """A folder of project files, asked about by their names."""

    def __init__(self, folder: Path) -> None:
        self.folder = folder
        self.relevance = ImportFilter(ITEM)

    def add(self, name: str, content: str | bytes) -> str:
        return str(write(self.folder / name, content))

    def chosen(self, files: dict[str, str], also: dict[str, str] | None = None) -> list[str]:
        """The names of the files that were chosen, in order."""
        paths = [self.add(name, content) for name, content in files.items()]
        always = [self.add(name, content) for name, content in (also or {}).items()]
        return [os.path.relpath(path, self.folder) for path in self.relevance.choose(paths, always)]


@pytest.fixture
def files(tmp_path: Path) -> Files:
    return Files(tmp_path)


def project(body: str) -> str:
    return f"<Project>{body}</Project>"


def properties(body: str) -> str:
    return project(f"<PropertyGroup>{body}</PropertyGroup>")


def item(include: str, more: str = "") -> str:
    return project(f'<ItemGroup><{ITEM} Include="{include}" {more}/></ItemGroup>')


# --- the item -----------------------------------------------------------------------------------------------------


@pytest.mark.parametrize(
    "element",
    [f'<{ITEM} Include="x" />', f'<{ITEM.lower()} Include="x"/>', f"<{ITEM}>", f"<{ITEM}\n Remove='x'/>", f"<{ITEM}/>"],
)
def test_a_file_with_an_element_of_that_name_is_kept(files: Files, element: str) -> None:
    assert files.chosen({"a.targets": project(f"<ItemGroup>{element}</ItemGroup>")}) == ["a.targets"]


@pytest.mark.parametrize("text", [f"<{ITEM}Other Include='x'/>", f"<My{ITEM}/>", f"<!-- {ITEM} -->", f"<P>{ITEM}</P>"])
def test_a_file_that_only_sounds_like_it_is_not(files: Files, text: str) -> None:
    assert files.chosen({"a.targets": project(text)}) == []


def test_files_keep_their_order_and_those_without_a_say_are_left_out(files: Files) -> None:
    chosen = files.chosen({"z.targets": HOLDER, "n.targets": NOTHING, "a.targets": HOLDER, "m.props": NOTHING})

    assert chosen == ["z.targets", "a.targets"]


def test_where_nothing_holds_the_item_nothing_is_kept(files: Files) -> None:
    assert files.chosen({"a.props": properties("<A>$(B)</A>"), "b.props": properties("<B>1</B>")}) == []


@pytest.mark.parametrize("encoding", ["utf-16", "utf-16-be", "utf-8-sig"])
def test_other_encodings_are_looked_into(files: Files, encoding: str) -> None:
    bom = b"\xfe\xff" if encoding == "utf-16-be" else b""
    path = files.add("a.targets", bom + item("$(Path)").encode(encoding))
    other = files.add("b.props", bom + properties("<Path>x</Path>").encode(encoding))

    assert files.relevance.choose([other, path]) == [other, path]


# --- properties and items that it refers to -----------------------------------------------------------------------


def test_a_file_that_defines_a_property_of_a_kept_one_is_kept_and_so_on(files: Files) -> None:
    chosen = files.chosen(
        {
            "third.props": properties("<Third>x</Third>"),
            "second.props": properties("<Second>$(Third)</Second>"),
            "other.props": properties("<Other>$(Third)</Other>"),
            "first.props": properties("<FIRST>$(second)</FIRST>"),
            "item.targets": item("$(First)/x.dll"),
        }
    )

    assert chosen == ["third.props", "second.props", "first.props", "item.targets"]


@pytest.mark.parametrize(
    "reference",
    [
        "$(Wanted)",
        "$( Wanted )",
        "$(wanted)",
        "$(Wanted.Replace('a', 'b'))",
        "$([System.IO.Path]::Combine('$(Wanted)', 'x'))",
        "$([MSBuild]::NormalizePath($(Wanted)))",
        "@(Wanted)",
        "@( Wanted -> '%(Identity)' )",
        "@(Wanted->Distinct())",
        "@(Wanted-&gt;Distinct())",
    ],
)
def test_every_way_to_refer_to_something_counts(files: Files, reference: str) -> None:
    chosen = files.chosen({"w.props": project("<X><Wanted Include='1'>1</Wanted></X>"), "i.targets": item(reference)})

    assert chosen == ["w.props", "i.targets"]


def test_a_name_may_hold_dashes(files: Files) -> None:
    packages = {"w.props": properties("<Wanted-By-Us>1</Wanted-By-Us>"), "i.targets": item("$(Wanted-By-Us)")}

    assert files.chosen(packages) == ["w.props", "i.targets"]


@pytest.mark.parametrize(
    "holder",
    [
        item("x.dll", "Condition=\"'$(Wanted)' == '1'\""),
        project(f"<ItemGroup Condition=\"'$(Wanted)' != ''\"><{ITEM} Include='x' /></ItemGroup>"),
        item("a;b", 'Exclude="@(Wanted)"'),
        project(f"<ItemGroup><{ITEM} Include='x'><Note>$(Wanted)</Note></{ITEM}></ItemGroup>"),
    ],
    ids=["condition", "group", "exclude", "metadata"],
)
def test_references_count_wherever_they_stand(files: Files, holder: str) -> None:
    chosen = files.chosen({"w.props": properties("<Wanted>1</Wanted>"), "i.targets": holder})

    assert chosen == ["w.props", "i.targets"]


def test_files_that_are_evaluated_in_any_case_give_references_too(files: Files) -> None:
    packages = {"w.props": properties("<Wanted>1</Wanted>"), "n.props": NOTHING}

    assert files.chosen(packages, also={"App.csproj": item("$(Wanted)")}) == ["w.props"]
    assert files.chosen(packages, also={"Other.csproj": properties("<Own>$(Wanted)</Own>")}) == []


def test_a_project_that_sets_a_property_of_a_package_brings_in_what_it_refers_to(files: Files) -> None:
    packages = {"w.props": properties("<Wanted>1</Wanted>"), "i.targets": item("$(Own)")}

    chosen = files.chosen(packages, also={"App.csproj": properties("<Own>$(Wanted)</Own>")})

    assert chosen == ["w.props", "i.targets"]


def test_properties_that_refer_to_each_other_come_to_an_end(files: Files) -> None:
    chosen = files.chosen(
        {"a.props": properties("<A>$(B)</A>"), "b.props": properties("<B>$(A)</B>"), "i.targets": item("$(A)")}
    )

    assert chosen == ["a.props", "b.props", "i.targets"]


# --- imports ------------------------------------------------------------------------------------------------------


@pytest.mark.parametrize(
    "element",
    [
        '<Import Project="msbuild/common.targets" />',
        "<Import Project='msbuild/common.targets'/>",
        '<Import Project="msbuild\\common.targets" />',
        '<Import Project="$(MSBuildThisFileDirectory)msbuild/common.targets" />',
        '<Import Project="$(MSBuildThisFileDirectory)/msbuild/../msbuild/common.targets" />',
        '<Import\n   Condition="true"\n   Project = "msbuild/common.targets"\n/>',
        "<Import Condition=\"'$(A)' > '1'\" Project=\"msbuild/common.targets\" />",
        '<Import Label=\'"a > b"\' Project="msbuild/common.targets" />',
        "<Import Condition='Exists(\"x>y\")' Project='msbuild/common.targets' />",
        '<ImportGroup><Import Project="msbuild/common.targets" /></ImportGroup>',
    ],
)
def test_a_file_that_imports_one_with_the_item_is_kept(files: Files, element: str) -> None:
    files.add("msbuild/common.targets", HOLDER)
    path = files.add("a.targets", project(element))

    assert files.relevance.choose([path]) == [path]
    assert files.relevance.mentions(path)


def test_imports_are_followed_through_each_other_and_in_circles(files: Files) -> None:
    files.add("b.targets", project('<Import Project="c.targets" /><Import Project="a.targets" />'))
    files.add("c.targets", HOLDER)
    path = files.add("a.targets", project('<Import Project="b.targets" /><Import Project="a.targets" />'))

    assert files.relevance.matters(path)


def test_the_names_of_the_importing_file_itself_are_known(files: Files) -> None:
    files.add("Acme.core.targets", HOLDER)
    element = '<Import Project="$(MSBuildThisFileName).core$(msbuildthisfileextension)" />'
    path = files.add("Acme.targets", project(element))

    assert files.relevance.mentions(path)


def test_an_import_of_a_file_without_a_say_changes_nothing(files: Files) -> None:
    files.add("common.targets", NOTHING)
    path = files.add("a.targets", project('<Import Project="common.targets" />'))

    assert files.relevance.choose([path]) == []


def test_an_imported_file_that_is_missing_has_no_say(files: Files) -> None:
    path = files.add("a.targets", project('<Import Project="missing.targets" />'))

    assert not files.relevance.matters(path)


@pytest.mark.parametrize(
    "target",
    [
        "$(SomeFolder)x.targets",
        "*.targets",
        "x?.targets",
        "a.targets;b.targets",
        "a&amp;b.targets",
        "a%20b.targets",
        "@(Files)",
    ],
)
def test_a_file_with_an_import_that_only_an_evaluation_can_tell_is_kept(files: Files, target: str) -> None:
    path = files.add("a.targets", project(f'<Import Project="{target}" />'))

    assert files.relevance.choose([path]) == [path]
    assert not files.relevance.mentions(path), "kept, but it does not surely hold the item"


def test_references_of_imported_files_count_as_well(files: Files) -> None:
    files.add("common.targets", item("$(Wanted)"))

    chosen = files.chosen(
        {"w.props": properties("<Wanted>1</Wanted>"), "a.targets": project('<Import Project="common.targets" />')}
    )

    assert chosen == ["w.props", "a.targets"]


def test_a_property_of_an_imported_file_keeps_the_file_that_imports_it(files: Files) -> None:
    files.add("common.props", properties("<Wanted>1</Wanted>"))

    chosen = files.chosen({"a.props": project('<Import Project="common.props" />'), "i.targets": item("$(Wanted)")})

    assert chosen == ["a.props", "i.targets"]


# --- bad files ----------------------------------------------------------------------------------------------------


@pytest.mark.timeout(5)
def test_what_cannot_be_read_has_no_say(files: Files) -> None:
    os.mkfifo(files.folder / "fifo.targets")
    (files.folder / "folder.targets").mkdir()
    (files.folder / "loop.targets").symlink_to("loop.targets")
    huge = files.add("huge.targets", HOLDER.encode() + b" " * MAX_BYTES)
    paths = [str(files.folder / name) for name in ("fifo.targets", "folder.targets", "loop.targets", "missing.targets")]

    assert files.relevance.choose([*paths, huge]) == []


@pytest.mark.parametrize("content", [b"", b"\0", b"\xff\xfe\x00", b"<Project", HOLDER.encode("utf-16-le")])
def test_damaged_files_are_no_error(files: Files, content: bytes) -> None:
    path = files.add("a.targets", content)

    assert files.relevance.choose([path]) == []


@pytest.mark.timeout(10)
@pytest.mark.parametrize(
    "piece",
    [
        "<Import ",
        "<Import Project=",
        '<Import x="',
        "<Import x='",
        "$(",
        "$( ",
        "@(A",
        "<A ",
        '<Import Project="x" ',
        "<",
    ],
)
def test_a_hostile_file_costs_no_more_time_than_its_length_explains(files: Files, piece: str) -> None:
    path = files.add("a.targets", HOLDER + piece * (200_000 // len(piece)))

    assert files.relevance.choose([path]) == [path]


@pytest.mark.timeout(20)
def test_thousands_of_names_are_looked_up_at_once(files: Files) -> None:
    many = "".join(f"$(P{number})" for number in range(20_000))

    chosen = files.chosen({"w.props": properties("<P19999>1</P19999>"), "n.props": NOTHING, "i.targets": item(many)})

    assert chosen == ["w.props", "i.targets"]


def test_each_file_is_read_once(files: Files) -> None:
    path = files.add("a.targets", HOLDER)
    assert files.relevance.matters(path)

    Path(path).unlink()

    assert files.relevance.choose([path]) == [path]
