"""`project.assets.json`: searching NuGet's layout and parsing the whole document say the same, and what NuGet says."""

from __future__ import annotations

import json
import os
import re
from collections.abc import Callable, Mapping
from pathlib import Path
from typing import Any, NamedTuple

import pytest
from hypothesis import HealthCheck, given, settings
from hypothesis import strategies as st

from support.golden import GOLDEN
from support.tables import every
from uno_devserver.discovery import assets
from uno_devserver.discovery.assets import Assets, read_assets
from uno_devserver.msbuild.frameworks import short_framework_name
from uno_devserver.system.files import FileProblem
from uno_devserver.system.jsonc import JsonProblem


class Recorded(NamedTuple):
    """An assets file that the real NuGet wrote, and the other files of its folder."""

    text: str
    folder: Mapping[str, str]

    @property
    def document(self) -> dict[str, Any]:
        document: dict[str, Any] = json.loads(self.text)
        return document


def _recorded() -> dict[str, Recorded]:
    found = {}
    for path in sorted((GOLDEN / "restore").glob("*.json")):
        files = json.loads(path.read_text("utf-8"))["files"]
        for name, content in files.items():
            if name.endswith("/project.assets.json"):
                folder = os.path.dirname(name)
                beside = {
                    file[len(folder) + 1 :]: text for file, text in files.items() if file.startswith(folder + "/")
                }
                found[f"{path.stem}:{folder}"] = Recorded(content, beside)
    return found


RECORDED = _recorded()


def target(
    *, kind: str = "package", build: tuple[str, ...] = (), depends_on: tuple[str, ...] = (), **other: object
) -> dict[str, Any]:
    """An entry of `targets`, with its members in NuGet's order."""
    return {
        "type": kind,
        **({"dependencies": dict.fromkeys(depends_on, "1.0.0")} if depends_on else {}),
        **other,
        **({"build": {name: {} for name in build}} if build else {}),
    }


def document(
    targets: Mapping[str, Mapping[str, object]], files: Mapping[str, list[str]] | None = None
) -> dict[str, Any]:
    keys = sorted({key for entries in targets.values() for key in entries} | set(files or {}))
    return {
        "version": 4,
        "targets": targets,
        "libraries": {
            key: {"sha512": "eA==", "type": "package", "path": key.lower(), "files": (files or {}).get(key, [])}
            for key in keys
        },
        "projectFileDependencyGroups": {framework: [] for framework in targets},
        "packageFolders": {"/home/dev/.nuget/packages/": {}, "/fallback": {}},
        "project": {"version": "1.0.0", "restore": {"projectName": "App", "projectPath": "/src/App/App.csproj"}},
    }


class Reader:
    """Reads a document in NuGet's layout and in others."""

    def __init__(self, folder: Path) -> None:
        self.path = folder / "project.assets.json"

    def read(self, data: str | bytes) -> Assets:
        self.path.write_bytes(data.encode() if isinstance(data, str) else data)
        return read_assets(str(self.path))

    def both(self, content: object) -> Assets:
        """As NuGet writes it and in one line, which must be the same."""
        searched, parsed = self.read(json.dumps(content, indent=2)), self.read(json.dumps(content))
        assert searched == parsed
        return searched


@pytest.fixture
def reader(tmp_path: Path) -> Reader:
    return Reader(tmp_path)


# --- recorded files -----------------------------------------------------------------------------------------------


def test_the_recorded_files_are_many_and_of_both_versions() -> None:
    assert len(RECORDED) > 100
    assert {recorded.document["version"] for recorded in RECORDED.values()} == {3, 4}
    generated = [
        text for recorded in RECORDED.values() for name, text in recorded.folder.items() if ".nuget.g." in name
    ]
    assert sum(len(_imports(text)) for text in generated) > 140, "and their imports are there to compare"


def test_searching_nugets_layout_gives_what_parsing_the_document_gives(reader: Reader) -> None:
    def check(name: str) -> None:
        recorded = RECORDED[name]
        searched = reader.read(recorded.text)

        assert searched == reader.read(json.dumps(recorded.document)), "in one line"
        assert searched == reader.read(recorded.text.replace("\n", "\r\n")), "with the line ends of Windows"

    every(RECORDED, check)


def test_packages_and_folders_are_those_of_the_document(reader: Reader) -> None:
    def check(name: str) -> None:
        recorded = RECORDED[name]
        found = reader.read(recorded.text)

        libraries = recorded.document["libraries"]
        packages = {tuple(key.split("/")): entry for key, entry in libraries.items() if entry["type"] == "package"}
        assert set(found.packages) == set(packages)
        assert set(found.with_manifest) == {
            key for key, entry in packages.items() if "devserver-addin.json" in entry["files"]
        }
        assert set(found.with_tools) == {
            key for key, entry in packages.items() if any(f.startswith("tools/devserver/") for f in entry["files"])
        }
        assert list(found.package_folders) == list(recorded.document["packageFolders"])
        assert found.project == recorded.document["project"]["restore"]["projectPath"]

    every(RECORDED, check)


@pytest.mark.parametrize("size", [64, 300, 1000, 4096])
def test_parts_of_any_size_give_the_same(reader: Reader, monkeypatch: pytest.MonkeyPatch, size: int) -> None:
    """Packages, keys and names lie across the ends of the parts that are read at once."""
    whole = {name: found for name, one in RECORDED.items() if (found := reader.read(one.text)).packages}
    monkeypatch.delattr(assets, "parse_strict")  # none of them is parsed whole
    monkeypatch.setattr(assets, "PART_BYTES", size)
    monkeypatch.setattr(assets, "BLOCK_BYTES", size)

    def check(name: str) -> None:
        assert reader.read(RECORDED[name].text) == whole[name]

    every(whole, check)


def test_build_files_come_in_the_order_of_nugets_own_imports(reader: Reader) -> None:
    def check(name: str) -> None:
        recorded = RECORDED[name]
        found = reader.read(recorded.text)

        project = os.path.basename(found.project or "")
        build_files = {short_framework_name(name): entries for name, entries in (found.build_files or {}).items()}
        generated = {ending: recorded.folder.get(f"{project}.nuget.g.{ending}", "") for ending in ("props", "targets")}
        groups = [(ending, *group) for ending, text in generated.items() for group in _imports(text).items()]
        for ending, framework, imported in groups:
            entries = (
                build_files.get(framework) or build_files.get(framework + "7.0") or next(iter(build_files.values()))
            )
            files = [f"{name}/{version}/{file}".lower() for (name, version), listed in entries for file in listed]
            wanted = [file for file in files if file.endswith(ending) and "/buildmultitargeting/" not in file]
            assert [path[-len(file) :] for path, file in zip(imported, wanted, strict=True)] == wanted

    every(RECORDED, check)


def _imports(generated: str) -> dict[str, list[str]]:
    """The imports of a .g.props or .g.targets file in lower case, by target framework ('' if there is only one)."""
    groups = re.findall(r'<ImportGroup Condition="([^"]*)">(.*?)</ImportGroup>', generated, re.DOTALL)
    by_framework = {}
    for condition, body in groups:
        framework = re.search(r"'\$\(TargetFramework\)' == '([^']*)'", condition)
        if framework and not framework[1]:
            continue  # the outer build of several frameworks
        by_framework[framework[1] if framework else ""] = re.findall(r'<import project="([^"]*)"', body.lower())
    return by_framework


# --- order --------------------------------------------------------------------------------------------------------


def test_files_of_a_dependency_come_first_otherwise_ids_descend(reader: Reader) -> None:
    entries = {
        "A/1.0.0": target(build=("build/A.targets",)),
        "B/1.0.0": target(build=("build/B.targets",), depends_on=("C",)),
        "C/1.0.0": target(build=("build/C.targets",)),
    }

    found = reader.both(document({"net10.0": entries}))

    assert [package[0] for package, _ in _build_files(found)] == ["C", "B", "A"]


@pytest.mark.parametrize("kind", ["package", "project"])
def test_a_dependency_through_something_without_files_counts_too(reader: Reader, kind: str) -> None:
    entries = {
        "A/1.0.0": target(build=("build/A.targets",)),
        "M/1.0.0": target(kind=kind, depends_on=("A",)),
        "Z/1.0.0": target(build=("build/Z.targets",), depends_on=("m",)),
    }

    found = reader.both(document({"net10.0": entries}))

    assert [package[0] for package, _ in _build_files(found)] == ["A", "Z"]


def test_circles_and_unknown_dependencies_do_no_harm(reader: Reader) -> None:
    entries = {
        "A/1.0.0": target(build=("build/A.targets",), depends_on=("A", "B", "Nowhere")),
        "B/1.0.0": target(build=("build/B.targets",), depends_on=("A",)),
    }

    found = reader.both(document({"net10.0": entries}))

    assert {package[0] for package, _ in _build_files(found)} == {"A", "B"}


@pytest.mark.timeout(20)
def test_a_chain_of_10000_packages_is_no_deeper_than_a_short_one(reader: Reader) -> None:
    entries = {
        f"P{n:05}/1.0.0": target(build=(f"build/P{n:05}.targets",), depends_on=(f"P{n + 1:05}",)) for n in range(10_000)
    }

    found = reader.both(document({"net10.0": entries}))

    assert [package[0] for package, _ in _build_files(found)][:2] == ["P09999", "P09998"]


def _build_files(assets: Assets) -> tuple[tuple[tuple[str, str], tuple[str, ...]], ...]:
    assert assets.build_files
    return assets.build_files["net10.0"]


# --- what is said -------------------------------------------------------------------------------------------------


def test_all_of_it_in_one_file(reader: Reader) -> None:
    entries = {
        "Acme.Both/1.0.0": target(
            build=("build/Acme.Both.props", "build/Acme.Both.targets"), compile={"lib/x.dll": {}}
        ),
        "Acme.Manifest/2.0.0-beta.1": target(),
        "Acme.Nothing/1.0.0": target(build=("build/_._",)),
        "Lib/1.0.0": target(kind="project"),
    }
    files = {
        "Acme.Both/1.0.0": ["build/Acme.Both.props", "tools/devserver/Acme.Both.dll"],
        "Acme.Manifest/2.0.0-beta.1": ["devserver-addin.json", "docs/devserver-addin.json.md"],
        "Acme.Nothing/1.0.0": ["docs/devserver-addin.json", "tools/devserver.txt"],
    }

    found = reader.both(document({"net10.0": entries}, files))

    assert found == Assets(
        "/src/App/App.csproj",
        ("/home/dev/.nuget/packages/", "/fallback"),
        (("Acme.Both", "1.0.0"), ("Acme.Manifest", "2.0.0-beta.1"), ("Acme.Nothing", "1.0.0")),
        (("Acme.Manifest", "2.0.0-beta.1"),),
        (("Acme.Both", "1.0.0"),),
        {"net10.0": ((("Acme.Both", "1.0.0"), ("build/Acme.Both.props", "build/Acme.Both.targets")),)},
    )


def test_frameworks_are_named_as_in_the_file_also_those_of_one_runtime(reader: Reader) -> None:
    entries = {"A/1.0.0": target(build=("build/A.targets",))}
    names = ["net10.0", "net10.0/linux-x64", ".NETStandard,Version=v2.0", "net10.0-windows7.0"]

    found = reader.both(document(dict.fromkeys(names, entries)))

    assert list(found.build_files or ()) == names
    assert found.packages == (("A", "1.0.0"),), "each package once"


def test_a_name_in_other_letters_is_read(reader: Reader) -> None:
    content = document({"net10.0": {"Příklad.Č/1.0.0": target(build=("build/Příklad.Č.targets",))}})
    content["project"]["restore"]["projectPath"] = '/src/Můj projekt/Můj "projekt".csproj'

    raw = reader.read(json.dumps(content, indent=2, ensure_ascii=False))

    assert raw == reader.both(content)
    assert raw.packages == (("Příklad.Č", "1.0.0"),)
    assert raw.project == '/src/Můj projekt/Můj "projekt".csproj'


def test_without_targets_the_libraries_are_the_packages(reader: Reader) -> None:
    """As in files that other tools than NuGet write; a type that is not given means a package."""
    libraries = {"A/1.0.0": {"type": "package"}, "B/2.0.0": {}, "P/1.0.0": {"type": "project"}, "NoSlash": {}, "/": {}}
    content = {"version": 3, "targets": {}, "libraries": libraries}

    found = reader.both(content)

    assert found.packages == (("A", "1.0.0"), ("B", "2.0.0"))
    assert (found.build_files, found.project, found.package_folders) == (None, None, ())


@pytest.mark.parametrize("encoding", ["utf-8-sig", "utf-16"])
def test_a_byte_order_mark_changes_nothing(reader: Reader, encoding: str) -> None:
    content = document({"net10.0": {"A/1.0.0": target(build=("build/A.targets",))}})

    assert reader.read(json.dumps(content, indent=2).encode(encoding)) == reader.both(content)


# --- damage -------------------------------------------------------------------------------------------------------

SINGLE = RECORDED["single:ws/App/obj"].text


def test_a_missing_file_is_not_found_and_a_folder_is_a_problem(tmp_path: Path) -> None:
    with pytest.raises(FileNotFoundError):
        read_assets(str(tmp_path / "project.assets.json"))
    with pytest.raises(FileProblem):
        read_assets(str(tmp_path))


@pytest.mark.parametrize("part", [0.0, 0.1, 0.5, 0.9, 0.9999])
def test_a_file_that_was_cut_off_is_a_problem(reader: Reader, part: float) -> None:
    with pytest.raises(JsonProblem):
        reader.read(SINGLE[: int(len(SINGLE) * part)])


@pytest.mark.parametrize("content", ["null", "[]", "1", '"text"'])
def test_what_is_no_object_is_a_problem(reader: Reader, content: str) -> None:
    with pytest.raises(FileProblem, match="not contain a JSON object"):
        reader.read(content)


@pytest.mark.parametrize(
    "spoil",
    [
        lambda text: text.replace('"build": {', '"build": [', 1),
        lambda text: text.replace('"projectPath": "', '"projectPath": ', 1),
        lambda text: text.replace('\n  "packageFolders": {', '\n  "packageFolders": oops {', 1),
        lambda text: text.replace('.targets": {}', '.targets": {', 1),
    ],
    ids=["list", "no quote", "word", "brace"],
)
def test_damage_where_it_matters_is_a_problem(reader: Reader, spoil: Callable[[str], str]) -> None:
    assert spoil(SINGLE) != SINGLE

    with pytest.raises(JsonProblem):
        reader.read(spoil(SINGLE))


@pytest.mark.timeout(20)
@pytest.mark.parametrize(
    "middle",
    [
        "[" * 1_000_000,
        '\n      "A/1.0.0": {' * 50_000,
        '\n        "build": {' * 50_000,
        '\n      "A/1.0.0": {\n        "type": "package",\n        "build": {' * 20_000,
        '\n      "A/1.0.0": {\n        "type": "package",\n        "dependencies": {' * 20_000,
        '\n        "devserver-addin.json"' * 50_000,
        "\n    " * 200_000,
    ],
    ids=["deep", "entries", "builds", "open builds", "open dependencies", "manifests", "blanks"],
)
@pytest.mark.parametrize("section", ["targets", "libraries"])
def test_a_hostile_file_costs_no_more_time_than_its_length_explains(reader: Reader, section: str, middle: str) -> None:
    try:
        reader.read(f'{{\n  "version": 4,\n  "{section}": {{\n    "net10.0": {{{middle}\n}}')
    except (JsonProblem, FileProblem):
        pass  # as a rule; where nothing that is wanted is damaged, it is not noticed


JSON_VALUES = st.recursive(
    st.none() | st.booleans() | st.integers() | st.sampled_from(["", "package", "A/1", "x/y/z"]),
    lambda inner: (
        st.lists(inner, max_size=2)
        | st.dictionaries(
            st.sampled_from(["A/1.0.0", "B/2", "/", "type", "build", "dependencies", "files", "restore", "net10.0"]),
            inner,
            max_size=3,
        )
    ),
    max_leaves=15,
)
SECTIONS = st.dictionaries(
    st.sampled_from(["targets", "libraries", "packageFolders", "project", "logs", "projectFileDependencyGroups"]),
    JSON_VALUES,
)


@settings(deadline=None, suppress_health_check=[HealthCheck.function_scoped_fixture])
@given(SECTIONS)
def test_sections_of_any_shape_are_read_in_both_ways_without_an_error(
    reader: Reader, sections: dict[str, object]
) -> None:
    content = {"version": 4, **sections}

    assert isinstance(reader.read(json.dumps(content, indent=2)), Assets)
    assert isinstance(reader.read(json.dumps(content)), Assets)


# --- names of target frameworks ---


@pytest.mark.parametrize(
    ("long", "short"),
    [
        (".NETCoreApp,Version=v10.0", "net10.0"),
        (".NETCoreApp,Version=v5.0", "net5.0"),
        (".NETCoreApp,Version=v3.1", "netcoreapp3.1"),
        (".NETStandard,Version=v2.0", "netstandard2.0"),
        (".NETFramework,Version=v4.7.2", "net472"),
        (".netcoreapp,version=V10.0", "net10.0"),
    ],
)
def test_long_names_of_older_assets_files_have_a_short_one(long: str, short: str) -> None:
    assert short_framework_name(long) == short


@pytest.mark.parametrize(
    "name",
    [
        "net10.0",
        "net10.0-windows7.0",
        "",
        "UAP,Version=v10.0",
        ".NETCoreApp,Version=",
        ".NETCoreApp,Version=v",
        ".NETCoreApp,Version=v.",
        ".NETCoreApp,Version=v..1",
        ".NETCoreApp,Version=v10.",
        ".NETCoreApp,Version=v" + "9" * 5000,
    ],
    ids=lambda name: name[:30],
)
def test_all_other_names_stay_as_they_are(name: str) -> None:
    assert short_framework_name(name) == name


@settings(deadline=None)
@given(st.text() | st.from_regex(r"\.NET(CoreApp|Standard|Framework),Version=v[\d.]*", fullmatch=True))
def test_no_framework_name_is_an_error(name: str) -> None:
    assert short_framework_name(short_framework_name(name)) == short_framework_name(name)
