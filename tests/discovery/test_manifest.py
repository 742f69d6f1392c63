"""`devserver-addin.json`: which entry points a package declares, and what is refused."""

from __future__ import annotations

import json
import os
from pathlib import Path

import pytest
from hypothesis import HealthCheck, given, settings
from hypothesis import strategies as st

from support.files import write
from uno_devserver.discovery.manifest import MANIFEST_NAME, MAX_BYTES, Manifest, read_manifest

ONE = {"version": 1, "addins": [{"entryPoint": "tools/devserver/One.dll"}]}

JSON_VALUES = st.recursive(
    st.none() | st.booleans() | st.integers() | st.floats() | st.text(),
    lambda inner: st.lists(inner, max_size=3) | st.dictionaries(st.text(), inner, max_size=3),
    max_leaves=8,
)
PATH_PARTS = ["..", ".", "", "tools", "One.dll", "in", "out", "loop", "C:", "~", "\0", "\ud800", "x" * 300, " "]


@pytest.fixture(scope="module")
def package(tmp_path_factory: pytest.TempPathFactory) -> Path:
    """A package folder with links that stay inside and links that lead out."""
    root = tmp_path_factory.mktemp("nuget")
    folder = root / "acme.tool" / "1.0.0"
    write(folder / "tools" / "devserver" / "One.dll", b"MZ")
    write(root / "acme.other" / "1.0.0" / "Other.dll", b"MZ")
    (folder / "in").symlink_to("tools/devserver")
    (folder / "out").symlink_to("../../acme.other/1.0.0")
    (folder / "loop").symlink_to("loop")
    return folder


def read(package: Path, content: object, host_version: str | None = "6.5.31") -> Manifest:
    write(package / MANIFEST_NAME, content if isinstance(content, (str, bytes)) else json.dumps(content))
    return read_manifest(str(package), "Acme.Tool", host_version)


def codes(manifest: Manifest) -> list[str]:
    return [issue.code for issue in manifest.issues]


def accepted(package: Path, *names: str) -> tuple[str, ...]:
    return tuple(str(package / name) for name in names)


# --- what is declared ---------------------------------------------------------------------------------------------


def test_no_manifest_leaves_the_decision_to_the_targets_files(tmp_path: Path) -> None:
    assert read_manifest(str(tmp_path), "Acme.Tool", "6.5.31") == Manifest(None)


def test_entry_points_are_paths_in_the_package_whether_they_exist_or_not(package: Path) -> None:
    content = {"version": 1, "addins": [{"entryPoint": "tools/devserver/One.dll"}, {"entryPoint": "tools/Two.dll"}]}

    assert read(package, content) == Manifest(accepted(package, "tools/devserver/One.dll", "tools/Two.dll"))


@pytest.mark.parametrize("version", [{}, {"version": 0}, {"version": 1}], ids=["none", "0", "1"])
def test_versions_up_to_ours_are_understood(package: Path, version: dict[str, int]) -> None:
    content = {**version, "addins": ONE["addins"]}

    assert read(package, content).entry_points == accepted(package, "tools/devserver/One.dll")


@pytest.mark.parametrize("version", [2, 99, 10**400])
def test_a_newer_version_leaves_the_decision_to_the_targets_files_and_says_so(package: Path, version: int) -> None:
    manifest = read(package, {"version": version, "addins": "in a form of the future"})

    assert manifest.entry_points is None
    assert codes(manifest) == ["AddInManifestUnsupported"]
    assert str(package / MANIFEST_NAME) in manifest.issues[0].message


@pytest.mark.parametrize("content", [{"version": 1}, {}, {"version": 1, "addins": []}])
def test_a_manifest_without_add_ins_ends_the_search_with_none(package: Path, content: object) -> None:
    assert read(package, content) == Manifest(())


def test_names_ignore_case_and_unknown_ones_are_left_alone(package: Path) -> None:
    content = {"Version": 1, "future": {}, "ADDINS": [{"EntryPoint": "tools/Two.dll", "MINHOSTVERSION": "9.0"}]}

    assert codes(read(package, content)) == ["AddInHostTooOld"]


def test_comments_trailing_commas_and_other_encodings_are_fine(package: Path) -> None:
    text = '// ours\n{"addins": [{"entryPoint": "tools/devserver/One.dll",},],}'

    for data in (text, text.encode("utf-8-sig"), text.encode("utf-16"), text.replace("\n", "\r\n")):
        assert read(package, data).entry_points == accepted(package, "tools/devserver/One.dll")


@pytest.mark.parametrize(
    "content",
    ["", "{", "not json", "[]", "null", "1", b"\0\1\2", b"MZ" * 1000, "[" * 100_000, " " * (MAX_BYTES + 1)],
    ids=["empty", "cut", "text", "list", "null", "number", "binary", "dll", "deep", "huge"],
)
def test_a_damaged_manifest_ends_the_search_with_none_and_says_so(package: Path, content: str | bytes) -> None:
    """Guessing past it could load a file that the package's author took out."""
    manifest = read(package, content)

    assert manifest.entry_points == ()
    assert codes(manifest) == ["AddInManifestInvalid"]
    assert str(package / MANIFEST_NAME) in manifest.issues[0].message


@pytest.mark.parametrize("version", ["1", 1.0, True, None, [1]], ids=str)
@pytest.mark.parametrize("addins", [[], ONE["addins"]], ids=["none", "one"])
def test_a_version_that_is_no_whole_number_is_damage(package: Path, version: object, addins: object) -> None:
    manifest = read(package, {"version": version, "addins": addins})

    assert (manifest.entry_points, codes(manifest)) == ((), ["AddInManifestInvalid"])


@pytest.mark.parametrize("addins", [{}, "x", None, 1], ids=str)
def test_add_ins_that_are_no_list_are_damage(package: Path, addins: object) -> None:
    manifest = read(package, {"version": 1, "addins": addins})

    assert (manifest.entry_points, codes(manifest)) == ((), ["AddInManifestInvalid"])


@pytest.mark.timeout(5)
@pytest.mark.parametrize("kind", ["folder", "fifo", "loop"])
def test_a_manifest_that_is_no_file_is_damage(tmp_path: Path, kind: str) -> None:
    path = tmp_path / MANIFEST_NAME
    if kind == "folder":
        path.mkdir()
    elif kind == "fifo":
        os.mkfifo(path)
    else:
        path.symlink_to(MANIFEST_NAME)

    manifest = read_manifest(str(tmp_path), "Acme.Tool", "6.5.31")

    assert (manifest.entry_points, codes(manifest)) == ((), ["AddInManifestInvalid"])


# --- each entry on its own ----------------------------------------------------------------------------------------


@pytest.mark.parametrize("entry", [{}, {"entryPoint": None}, {"entryPoint": " "}, {"entryPoint": 3}, None, 1, [], "x"])
def test_an_entry_without_an_entry_point_is_left_out_and_the_others_count(package: Path, entry: object) -> None:
    manifest = read(package, {"version": 1, "addins": [entry, *ONE["addins"]]})  # type: ignore[misc]

    assert manifest.entry_points == accepted(package, "tools/devserver/One.dll")
    assert codes(manifest) == ["AddInManifestInvalid"]
    assert "addins[0]" in manifest.issues[0].message


@pytest.mark.parametrize(
    ("minimum", "host", "counts"),
    [
        ("6.5.0", "6.5.31", True),
        ("6.5.31", "6.5.31", True),
        ("6.5", "6.5.0", True),
        ("6.5.0", "6.5", True),
        ("6.5.0-dev.7", "6.5.0-dev.1", True),
        ("6.10.0", "6.9.0", False),
        ("7.0.0", "6.5.31", False),
        ("6.5.31.1", "6.5.31", False),
        ("7", "6.5.31", False),
        ("6", "6.5.31", True),
        ("soon", "6.5.31", True),
        ("soon", None, True),
        ("", None, True),
        (None, None, True),
        (7, "6.5.31", True),
        ({}, "6.5.31", True),
    ],
)
def test_the_hosts_version_must_reach_a_minimum_that_is_a_version(
    package: Path, minimum: object, host: str | None, counts: bool
) -> None:
    """By numbers alone."""
    entry = {"entryPoint": "tools/devserver/One.dll", "minHostVersion": minimum}

    manifest = read(package, {"version": 1, "addins": [entry]}, host)

    assert manifest.entry_points == (accepted(package, "tools/devserver/One.dll") if counts else ())
    assert codes(manifest) == ([] if counts else ["AddInHostTooOld"])


@pytest.mark.parametrize("host", [None, "", "DefaultUnoVersion"])
def test_a_minimum_with_an_unknown_host_version_is_a_warning_and_the_add_in_counts(
    package: Path, host: str | None
) -> None:
    entry = {"entryPoint": "tools/devserver/One.dll", "minHostVersion": "7.0.0"}

    manifest = read(package, {"version": 1, "addins": [entry]}, host)

    assert manifest.entry_points == accepted(package, "tools/devserver/One.dll")
    assert codes(manifest) == ["AddInHostVersionUnknown"]


def test_several_entries_are_judged_one_by_one(package: Path) -> None:
    entries = [
        {"entryPoint": "tools/Old.dll", "minHostVersion": "1.0.0"},
        {"entryPoint": "tools/New.dll", "minHostVersion": "9.0.0"},
        {"entryPoint": "../Escape.dll"},
        {},
        {"entryPoint": "tools/Last.dll"},
    ]

    manifest = read(package, {"version": 1, "addins": entries})

    assert manifest.entry_points == accepted(package, "tools/Old.dll", "tools/Last.dll")
    assert codes(manifest) == ["AddInHostTooOld", "AddInEntryPointRefused", "AddInManifestInvalid"]


# --- inside the package -------------------------------------------------------------------------------------------


@pytest.mark.parametrize(
    ("written", "meant"),
    [
        ("tools\\devserver\\One.dll", "tools/devserver/One.dll"),
        ("./tools//devserver/./One.dll", "tools/devserver/One.dll"),
        ("tools/../tools/devserver/One.dll", "tools/devserver/One.dll"),
        ("in/One.dll", "in/One.dll"),
        ("..One.dll", "..One.dll"),
        ("~/One.dll", "~/One.dll"),
    ],
)
def test_paths_in_the_package_are_taken_in_any_spelling(package: Path, written: str, meant: str) -> None:
    content = {"addins": [{"entryPoint": written}]}

    assert read(package, content) == Manifest(accepted(package, meant))


@pytest.mark.parametrize(
    "entry_point",
    [
        "../../acme.other/1.0.0/Other.dll",
        "tools/../../Other.dll",
        "..\\..\\Other.dll",
        "..",
        ".",
        "tools/..",
        "/etc/hostname",
        "\\\\server\\share\\x.dll",
        "//server/share/x.dll",
        "C:\\x.dll",
        "c:/x.dll",
        "C:x.dll",
        "out/Other.dll",
        "tools/../out/Other.dll",
        "nul\0.dll",
        "lone\ud800.dll",
        "../1.0.0-other/x.dll",
    ],
)
def test_a_path_that_leads_out_is_refused(package: Path, entry_point: str) -> None:
    manifest = read(package, {"addins": [{"entryPoint": entry_point}]})

    assert manifest.entry_points == ()
    assert codes(manifest) == ["AddInEntryPointRefused"]
    assert "Acme.Tool" in manifest.issues[0].message


@pytest.mark.parametrize("spelling", ["{parent}/./1.0.0", "{parent}//1.0.0", "{folder}/../1.0.0", "{folder}/"])
def test_the_packages_own_folder_may_be_written_in_any_way(package: Path, spelling: str) -> None:
    """HOME, and with it the package folder, is what the user made it."""
    write(package / MANIFEST_NAME, json.dumps(ONE))

    manifest = read_manifest(spelling.format(parent=package.parent, folder=package), "Acme.Tool", None)

    assert manifest == Manifest(accepted(package, "tools/devserver/One.dll"))


def test_a_package_folder_that_is_a_link_is_a_package_folder(package: Path, tmp_path: Path) -> None:
    write(package / MANIFEST_NAME, json.dumps(ONE))
    (tmp_path / "link").symlink_to(package)

    manifest = read_manifest(str(tmp_path / "link"), "Acme.Tool", None)

    assert manifest == Manifest((str(tmp_path / "link/tools/devserver/One.dll"),))


# --- anything -----------------------------------------------------------------------------------------------------


@settings(deadline=None, suppress_health_check=[HealthCheck.function_scoped_fixture])
@given(JSON_VALUES, JSON_VALUES, JSON_VALUES, JSON_VALUES)
def test_any_json_gives_a_manifest(
    package: Path, document: object, version: object, entry: object, minimum: object
) -> None:
    shapes = [
        document,
        {"version": version, "addins": entry},
        {"version": 1, "addins": [entry, {"entryPoint": entry, "minHostVersion": minimum}]},
    ]

    for shape in shapes:
        manifest = read(package, shape)
        assert manifest.entry_points is None or isinstance(manifest.entry_points, tuple)


@settings(deadline=None)
@given(st.lists(st.sampled_from(PATH_PARTS), min_size=1, max_size=5), st.sampled_from("/\\"))
def test_an_accepted_entry_point_always_lies_in_the_package(package: Path, parts: list[str], separator: str) -> None:
    manifest = read(package, {"addins": [{"entryPoint": separator.join(parts)}]})

    for entry_point in manifest.entry_points or ():
        real = Path(os.path.realpath(entry_point))
        assert real.is_relative_to(package.resolve())
        assert real != package.resolve()
