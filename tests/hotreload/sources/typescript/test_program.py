"""What a listing tells besides the files, and what it makes of input that is broken."""

from __future__ import annotations

import json
from pathlib import Path

import pytest

from hotreload.trees import as_ordinary_user
from support.files import write, write_all
from uno_devserver.hotreload.sources.finder import find_sources
from uno_devserver.hotreload.sources.typescript.disk import Disk
from uno_devserver.hotreload.sources.typescript.imports import ImportedNames
from uno_devserver.hotreload.watched_package import Role, WatchedPackage
from uno_devserver.workspace import repository

from .ts_projects import typescript_sources


@pytest.fixture
def root(tmp_path: Path) -> Path:
    return tmp_path.resolve() / "package"


def test_folders_are_all_in_which_a_source_may_appear(root: Path) -> None:
    write_all(
        root,
        {
            "tsconfig.json": '{"files": ["src/a.ts"], "include": ["lib"]}',
            "src/a.ts": "import './gone'; import '../other/b'",
            "other/b.ts": "",
            "lib/empty/x.txt": "",
        },
    )

    sources = typescript_sources(root)

    assert list(sources.files) == ["other/b.ts", "src/a.ts"]
    assert sources.folders == {str(root / name) for name in (".", "src", "other", "lib", "lib/empty")}
    assert sources.deciding == {str(root / "tsconfig.json")}
    assert sources.endings == frozenset((".ts", ".tsx", ".mts", ".cts", ".json"))


def test_a_file_beside_the_root_is_named_from_the_root(root: Path) -> None:
    write_all(root, {"tsconfig.json": '{"include": ["../shared/*"]}', "../shared/a.ts": ""})

    assert typescript_sources(root).files == {"../shared/a.ts": str(root.parent / "shared/a.ts")}


def test_the_cache_holds_what_is_there_now_and_spares_reading_it_again(root: Path) -> None:
    # Given
    write_all(root, {"tsconfig.json": '{"files": ["a.ts"]}', "a.ts": "import './b'", "b.ts": "", "c.ts": ""})
    cache: dict[str, ImportedNames] = {}
    typescript_sources(root, cache)
    before = set(cache)

    # When
    write(root / "a.ts", "import './c'")
    sources = typescript_sources(root, cache)

    # Then
    assert sorted(sources.files) == ["a.ts", "c.ts"]
    assert len(cache) == 2
    assert len(before & set(cache)) == 1, "b.ts and c.ts have the same content"

    # And: what the cache says is believed
    for key in cache:
        cache[key] = ImportedNames()
    assert sorted(typescript_sources(root, cache).files) == ["a.ts"]


@pytest.mark.parametrize(
    ("config", "problem"),
    [
        ('{"include": ["src"', "tsconfig.json is not JSON: "),
        ("17", "tsconfig.json does not contain a JSON object"),
        ('{"extends": "./nowhere"}', "extends ./nowhere, which is not found"),
        ('{"extends": "@corp/missing/base.json"}', "extends @corp/missing/base.json, which is not found"),
        ('{"extends": ["./a.json", 5]}', "extends contains 5 where a text is expected"),
        ('{"extends": "./tsconfig"}', "in a circle"),
        ('{"extends": "./circle.json"}', "in a circle"),
        ('{"include": "src"}', "include is not a list"),
        ('{"exclude": [1]}', "exclude contains 1 where a text is expected"),
        ('{"include": ["src", "lib/**"]}', "lib/** ends with **"),
        ('{"include": ["src", "**/../x"]}', "has .. after **"),
        ('{"include": ["src", "a*a*a*a*b"]}', "has more than 3 wildcards"),
        ('{"include": ["src"], "exclude": ["**/a/**/a/**/a/**/b"]}', "has more than 3 wildcards"),
        ('{"compilerOptions": []}', "compilerOptions is not an object"),
        ('{"references": [{"path": "./missing"}]}', "missing/tsconfig.json, which does not exist"),
        ('{"references": ["src"]}', "references contains 'src'"),
        ('{"files": ["src/a.ts", "src/missing.ts"]}', "src/missing.ts, which does not exist"),
        ('{"files": ["src/a.ts", "src/a.css"]}', "src/a.css, which does not exist or is not a source file"),
    ],
)
def test_a_broken_configuration_is_said_and_the_rest_counts(config: str, problem: str, root: Path) -> None:
    write_all(root, {"tsconfig.json": config, "circle.json": '{"extends": "./tsconfig.json"}', "a.json": "{}"})
    write_all(root, {"src/a.ts": "", "src/a.css": ""})

    sources = typescript_sources(root)

    assert any(problem in sentence for sentence in sources.problems), sources.problems
    assert list(sources.files) == ["src/a.ts"]


def test_patterns_that_lead_through_the_whole_disk_come_to_an_end(root: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(repository, "MAX_CHARACTERS", 10_000)
    write_all(root, {"tsconfig.json": '{"include": ["src", "/**/*"]}', "src/a.ts": ""})

    sources = find_sources(WatchedPackage(Role.SERVER, str(root)))

    assert "too many files and folders" in sources.problems[-1]


def test_a_folder_without_a_configuration_has_no_sources(root: Path) -> None:
    write(root / "a.ts", "")

    sources = typescript_sources(root)

    assert sources.files == {}
    assert sources.folders == {str(root)}
    assert "neither a tsconfig.build.json nor a tsconfig.json" in sources.problems[0]


def test_a_folder_that_is_not_there_has_no_sources(root: Path) -> None:
    sources = typescript_sources(root)

    assert sources.files == {}
    assert not sources.folders
    assert sources.problems


def test_projects_may_reference_each_other_in_a_circle(root: Path) -> None:
    write_all(
        root,
        {
            "tsconfig.json": '{"files": ["a.ts"], "references": [{"path": "other"}, {"path": "."}]}',
            "other/tsconfig.json": '{"references": [{"path": ".."}]}',
            "a.ts": "import './other/b'",
            "other/b.ts": "import '../a'",
        },
    )

    assert sorted(typescript_sources(root).files) == ["a.ts", "other/b.ts"]


def test_entries_of_a_package_may_lead_to_each_other_in_a_circle(root: Path) -> None:
    package = {"imports": {"#a": "#b", "#b": "#a", "#c": {"default": ["#d", "./c.ts"]}}}
    write_all(root, {"tsconfig.json": '{"files": ["a.ts"]}', "package.json": json.dumps(package), "c.ts": ""})
    write(root / "a.ts", "import '#a'; import '#c'")

    assert sorted(typescript_sources(root).files) == ["a.ts", "c.ts"]


def test_what_cannot_be_read_is_said_and_the_rest_counts() -> None:
    with as_ordinary_user() as base:
        write_all(base, {"tsconfig.json": "{}", "a.ts": "", "secret.ts": "", "closed/b.ts": ""})
        (base / "secret.ts").chmod(0)
        (base / "closed").chmod(0)

        sources = typescript_sources(base)

        assert sorted(sources.files) == ["a.ts", "secret.ts"], "a file that cannot be read is one all the same"
        assert any("secret.ts cannot be read" in problem for problem in sources.problems)
        assert any(f"The folder {base}/closed cannot be read" in problem for problem in sources.problems)


def test_a_disk_that_ignores_case_finds_a_file_by_any_spelling(root: Path) -> None:
    write(root / "Main.ts", "")

    assert Disk(case_sensitive=False).is_file(f"{root}/mAIN.TS")
    assert not Disk(case_sensitive=True).is_file(f"{root}/mAIN.TS")
