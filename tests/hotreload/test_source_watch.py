"""What the watch tells is what a fresh look finds, whatever happens to a real tree; what cannot matter is no news."""

from __future__ import annotations

import mmap
import os
import random
import shutil
from collections.abc import Callable
from pathlib import Path

import pytest

from hotreload.trees import as_ordinary_user, fresh_digest, watched
from support.files import write, write_all
from uno_devserver.hotreload.fingerprint import Fingerprint
from uno_devserver.hotreload.source_watch import SourceWatch, Unwatchable
from uno_devserver.hotreload.sources.finder import find_sources
from uno_devserver.hotreload.sources.source_tree import Sources
from uno_devserver.hotreload.watched_package import Role, WatchedPackage


def assert_noticed(one: Fingerprint, root: Path) -> None:
    before = one._state.digest if one._state else ""
    assert one.news() is True
    assert one.digest() == fresh_digest(root) != before


# Exact.


def test_every_single_write_is_noticed_at_once(tmp_path: Path) -> None:
    path = write(tmp_path / "pkg/a.py", "")
    with watched(tmp_path) as one, path.open("ab", buffering=0) as stream:
        for _ in range(200):
            stream.write(b"x")
            assert_noticed(one, tmp_path)
            assert one.news() is False


def test_all_ways_to_write_are_noticed(tmp_path: Path) -> None:
    path = write(tmp_path / "a.py", "hello")
    with watched(tmp_path) as one:
        os.truncate(path, 3)
        assert_noticed(one, tmp_path)

        with path.open("r+b") as stream, mmap.mmap(stream.fileno(), 3) as memory:
            memory[0] = ord("j")
        assert_noticed(one, tmp_path)

        write(tmp_path / "beside", "new").replace(path)
        assert_noticed(one, tmp_path)

        source, target = os.open(write(tmp_path / "beside", "copied"), os.O_RDONLY), os.open(path, os.O_WRONLY)
        os.copy_file_range(source, target, 6)
        assert_noticed(one, tmp_path)
        os.close(source)
        os.close(target)


BUILT = '[build-system]\nrequires = []\n[project]\nname = "x"\n'
FIND = BUILT + '[tool.setuptools.packages.find]\nwhere = ["lib"]\ninclude = ["p*"]\n'
Edit = Callable[[Path], object]


def saved(name: str, content: str) -> Edit:
    return lambda root: write(root / name, content)


def renamed(name: str, new: str) -> Edit:
    return lambda root: (root / name).replace(root / new)


# The files, and edits that are noticed one by one; the package is in `p`.
EDITS: dict[str, tuple[dict[str, str], list[Edit]]] = {
    "files in folders that were just made": (
        {"p/a.py": ""}, [saved("p/x/y/z/new.py", "1"), saved("p/x/y/z/new.py", "2")],
    ),
    "folders that are renamed, removed and made again": (
        {"p/a/b/c.py": "1", "p/d.py": ""},
        [
            renamed("p/a", "p/z"),
            saved("p/z/b/c.py", "2"),
            lambda root: shutil.copytree(root / "p/z", root / "p/a"),  # the old paths, but other folders
            saved("p/a/b/c.py", "3"),
            lambda root: shutil.rmtree(root / "p/a"),
        ],
    ),
    "the folder of the package that is moved away": ({"p/a.py": "1"}, [renamed("p", "q"), saved("p/a.py", "2")]),
    "a root that comes into being": ({}, [saved("p/a.py", "1")]),
    "a package where packages are looked for": (
        {"p/pyproject.toml": BUILT, "p/x/a.py": "1", "p/src/notes.txt": ""}, [saved("p/src/x/a.py", "2")],
    ),
    "a package in a folder that setuptools searches": (
        {"p/pyproject.toml": FIND, "p/lib/p1/a.py": "1"}, [saved("p/lib/p2/a.py", "2")],
    ),
    "a folder that becomes an environment": (
        {"p/a.py": "1", "p/v/b.py": "2"},
        [saved("p/v/pyvenv.cfg", ""), lambda root: (root / "p/v/pyvenv.cfg").unlink()],
    ),
    "a root behind a link that is changed": (
        {"v1/a.py": "1", "v2/a.py": "2", "p": "-> v1", "next": "-> v2"}, [renamed("next", "p"), saved("v2/a.py", "3")],
    ),
    "links in circles": (
        {"p/a/b.py": "1", "p/a/up": "-> ..", "p/a/self": "-> self", "p/a/x.py": "-> y.py", "p/a/y.py": "-> x.py"},
        [saved("p/a/b.py", "2")],
    ),
}  # fmt: skip


@pytest.mark.parametrize(("files", "edits"), EDITS.values(), ids=EDITS)
def test_each_edit_is_noticed(tmp_path: Path, files: dict[str, str], edits: list[Edit]) -> None:
    for name, content in files.items():
        if content.startswith("-> "):
            (tmp_path / name).symlink_to(content.removeprefix("-> "))
        else:
            write(tmp_path / name, content)
    with watched(tmp_path / "p") as one:
        for edit in edits:
            edit(tmp_path)
            assert_noticed(one, tmp_path / "p")


def test_a_root_below_a_link_is_watched_where_the_link_leads_now(tmp_path: Path) -> None:
    write_all(tmp_path, {"v1/pkg/a.py": "1", "v2/pkg/a.py": "2"})
    (tmp_path / "current").symlink_to("v1")
    root = tmp_path / "current/pkg"
    with watched(root) as one:
        (tmp_path / "next").symlink_to("v2")
        (tmp_path / "next").replace(tmp_path / "current")
        assert_noticed(one, root)
        write(tmp_path / "v2/pkg/a.py", "3")
        assert_noticed(one, root)
        (tmp_path / "v2").rename(tmp_path / "v3")
        assert_noticed(one, root)


def test_a_folder_above_the_package_that_is_moved_away_is_noticed(tmp_path: Path) -> None:
    root = tmp_path / "above/package"
    write(root / "a.py", "1")
    with watched(root) as one:
        (tmp_path / "above").rename(tmp_path / "elsewhere")
        assert_noticed(one, root)
        write(root / "a.py", "2")
        assert_noticed(one, root)


def test_a_manifest_that_changes_what_counts_is_noticed(tmp_path: Path) -> None:
    write_all(tmp_path, {"a.py": "1", "b.js": "2", "src/c.py": "3"})
    with watched(tmp_path) as one:
        manifest = write(tmp_path / "pyproject.toml", '[build-system]\nrequires = []\n[project]\nname = "x"\n')
        assert_noticed(one, tmp_path)
        assert list(one.changed_paths) == ["a.py"]
        manifest.write_text('[tool.setuptools]\npy-modules = ["a"]\n')
        assert_noticed(one, tmp_path)
        write(tmp_path / "package.json", '{"main": "b.js"}')
        assert_noticed(one, tmp_path)
        assert list(one.changed_paths) == ["a.py", "b.js"]


def test_a_project_that_makes_it_code_of_another_kind_is_noticed(tmp_path: Path) -> None:
    write_all(tmp_path, {"a.py": "1", "b.cs": "2"})
    with watched(tmp_path) as one:
        write(tmp_path / "App.csproj", '<Project Sdk="Microsoft.NET.Sdk" />')
        assert_noticed(one, tmp_path)
        assert list(one.changed_paths) == ["App.csproj", "a.py", "b.cs"]


def test_files_that_only_a_pattern_counts_in_are_noticed(tmp_path: Path) -> None:
    write(tmp_path / "a.py", "")
    include = ("queries/*.sql", "Makefile")
    with watched(tmp_path, include) as one:
        write(tmp_path / "queries/x.sql", "select")
        assert one.digest() == fresh_digest(tmp_path, include)
        write(tmp_path / "queries/y.sql", "select")
        assert one.news() is True
        assert one.digest() == fresh_digest(tmp_path, include)
        write(tmp_path / "Makefile", "all:")
        assert one.news() is True
        assert one.digest() == fresh_digest(tmp_path, include)
        assert one.changed_paths == ("Makefile",)


def test_a_file_that_a_source_begins_to_import_counts_from_then_on(tmp_path: Path) -> None:
    write_all(
        tmp_path, {"p/tsconfig.json": '{"files": ["a.ts"]}', "p/a.ts": "export {}", "p/lib/b.ts": "export const b = 1"}
    )
    root = tmp_path / "p"
    with watched(root) as one:
        write(root / "a.ts", 'import "./lib/b"')
        assert_noticed(one, root)
        assert len(one.files) == 2
        write(root / "lib/b.ts", "export const b = 2")
        assert_noticed(one, root)
        assert one.changed_paths == ("lib/b.ts",)


def test_files_and_folders_that_are_closed_and_opened_again_are_noticed(tmp_path: Path) -> None:
    write(tmp_path / "warm.py", "")
    fresh_digest(tmp_path)  # all modules are imported, as long as they can be
    with as_ordinary_user() as folder:
        root = folder / "root"
        write_all(root, {"a.py": "1", "sub/b.py": "2"})
        with watched(root) as one:
            open_digest = one.digest()
            for path, mode in ((root / "a.py", 0o644), (root / "sub", 0o755), (root, 0o755)):
                path.chmod(0)
                assert_noticed(one, root)
                assert str(path) in one.problems[0]
                path.chmod(mode)
                assert_noticed(one, root)
                assert one.digest() == open_digest
                assert one.problems == ()
            write(root / "sub/b.py", "3")
            assert_noticed(one, root)


@pytest.mark.parametrize("pattern", [".env", "*/.env", "conf/*.env", "**/.env"])
def test_a_hidden_file_that_is_named_is_noticed_when_it_appears(tmp_path: Path, pattern: str) -> None:
    write_all(tmp_path, {"a.py": "", "conf/b.py": ""})
    with watched(tmp_path, include=(pattern,)) as one:
        path = write(tmp_path / (".env" if pattern == ".env" else "conf/.env"), "A=1")
        assert one.news() is True
        assert one.digest() == fresh_digest(tmp_path, (pattern,))
        assert len(one.files) == 3
        path.write_text("A=2")
        assert one.news() is True


# Links.


def test_what_links_lead_to_is_watched_at_each_step(tmp_path: Path) -> None:
    root = tmp_path / "root"
    write_all(tmp_path, {"root/a.py": "", "far/one.py": "1", "far/two.py": "2", "lib/x.py": "x", "lib2/x.py": "y"})
    (tmp_path / "step").mkdir()
    (tmp_path / "step/here.py").symlink_to(tmp_path / "far/one.py")
    (tmp_path / "step/lib").symlink_to("../lib")
    (root / "link.py").symlink_to("../step/here.py")
    (root / "lib").symlink_to("../step/lib")
    (root / "later.py").symlink_to("../far/three.py")
    with watched(root) as one:
        write(tmp_path / "far/one.py", "changed")
        assert_noticed(one, root)
        assert one.changed_paths == ("link.py",)
        (tmp_path / "step/here.py").unlink()
        (tmp_path / "step/here.py").symlink_to(tmp_path / "far/two.py")
        assert_noticed(one, root)
        write(tmp_path / "lib/x.py", "changed")
        assert_noticed(one, root)
        (tmp_path / "step/lib").unlink()
        (tmp_path / "step/lib").symlink_to("../lib2")
        assert_noticed(one, root)
        write(tmp_path / "lib2/new.py", "")
        assert_noticed(one, root)
        write(tmp_path / "far/three.py", "3")
        assert_noticed(one, root)


def test_a_file_with_two_names_is_watched_under_both(tmp_path: Path) -> None:
    root = tmp_path / "root"
    other = write(tmp_path / "elsewhere/b.py", "1")
    root.mkdir()
    (root / "a.py").hardlink_to(other)
    with watched(root) as one:
        other.write_text("2")
        assert_noticed(one, root)
        (root / "new.py").hardlink_to(write(tmp_path / "elsewhere/c.py", "3"))
        assert_noticed(one, root)
        write(tmp_path / "elsewhere/c.py", "4")
        assert_noticed(one, root)


# Noise.


@pytest.mark.parametrize("name", [".a.py.swp", "4913", "a.py~", "server.log", "db.sqlite-journal", "a.pyc", "#a.py#"])
def test_other_files_beside_the_code_are_no_news(tmp_path: Path, name: str) -> None:
    write(tmp_path / "a.py", "1")
    with watched(tmp_path) as one:
        write(tmp_path / name, "x")
        write(tmp_path / name, "y")
        assert one.news() is False
        (tmp_path / name).unlink()
        assert one.news() is False


def test_folders_that_are_not_looked_into_lead_to_one_look_and_to_no_other_digest(tmp_path: Path) -> None:
    write(tmp_path / "a.py", "1")
    with watched(tmp_path) as one:
        before = one.digest()
        write(tmp_path / "__pycache__/a.pyc", "x")
        assert one.digest() == before
        write(tmp_path / "__pycache__/b.pyc", "x")
        write(tmp_path / "__pycache__/c.py", "x")
        assert one.news() is False


def test_what_happens_beside_the_target_of_a_link_is_no_news(tmp_path: Path) -> None:
    root = tmp_path / "root"
    write(tmp_path / "shared/a.py", "1")
    root.mkdir()
    (root / "a.py").symlink_to("../shared/a.py")
    with watched(root) as one:
        write(tmp_path / "shared/b.py", "2")
        (tmp_path / "shared/folder").mkdir()
        assert one.news() is False


# Limits.


def test_more_events_than_the_queue_holds_lead_to_reading_everything(tmp_path: Path) -> None:
    write_all(tmp_path, {"a.py": "1", "b.py": "2"})
    limit = int(Path("/proc/sys/fs/inotify/max_queued_events").read_text())
    with watched(tmp_path) as one:
        for _ in range(limit // 2 + 10):  # each pair gives two events at least
            os.close(os.open(tmp_path / "x", os.O_CREAT))
            os.unlink(tmp_path / "x")
        write(tmp_path / "b.py", "lost")
        write(tmp_path / "new/c.py", "lost too")

        assert_noticed(one, tmp_path)
        write(tmp_path / "new/c.py", "seen")
        assert_noticed(one, tmp_path)
        assert one.news() is False


@pytest.mark.skipif(not os.path.isdir("/proc/self"), reason="needs a file system that reports nothing")
def test_a_file_system_that_does_not_report_is_not_watched() -> None:
    watch = SourceWatch()

    with pytest.raises(Unwatchable, match=r"\(proc\)"):
        watch.cover(Sources("/proc/self", {}, frozenset({"/proc/self/net"})))
    watch.close()


def test_a_list_that_was_made_before_the_watch_is_made_again(tmp_path: Path) -> None:
    """What appears between the look into a folder and its watch would be lost."""
    write(tmp_path / "a.py", "1")
    package = WatchedPackage(Role.SERVER, str(tmp_path))
    late = [lambda: write(tmp_path / "late.py", "x"), lambda: write(tmp_path / "sub/later.py", "x")]

    def find() -> Sources:
        sources = find_sources(package)
        if late:
            late.pop(0)()
        return sources

    one = Fingerprint(find)
    one.digest()
    assert len(one.files) == 2
    assert_noticed(one, tmp_path)
    assert len(one.files) == 3
    one.close()


def test_folders_that_are_others_at_each_look_are_looked_at_again(tmp_path: Path) -> None:
    folders = [write(tmp_path / f"p{number}/a.py", "").parent for number in range(20)]

    def find() -> Sources:
        return Sources(str(tmp_path), {}, frozenset({str(folders.pop())}))

    one = Fingerprint(find)
    one.digest()

    assert one.news() is True
    one.close()


def test_without_a_table_of_mounts_nothing_is_relied_on(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr("uno_devserver.hotreload.source_watch.MOUNTS_FILE", str(tmp_path / "missing"))
    watch = SourceWatch()

    with pytest.raises(Unwatchable, match=r"\(unknown\)"):
        watch.cover(Sources(str(tmp_path), {}, frozenset({str(tmp_path)})))
    watch.close()


# Whatever happens.


NAMES = ("a.py", "b.py", "c.txt", "d", "e.py", "__pycache__", "pyvenv.cfg", "package.json", "f.js")


class Vandal:
    """Does something at random to a tree, as editors, git and people do."""

    def __init__(self, root: Path, outside: Path, seed: int, names: tuple[str, ...] = NAMES) -> None:
        self._root, self._outside, self._names = root, outside, names
        self._random = random.Random(seed)
        self.done: list[str] = []

    def act(self) -> None:
        deeds: list[Callable[[], object]] = [
            *[self._write] * 6, *[self._append] * 4, self._touch, self._remove, self._remove, self._move, self._move,
            self._make_folder, self._make_folder, self._link, self._hard_link, self._replace, self._copy,
        ]  # fmt: skip
        deed = self._random.choice(deeds)
        try:
            deed()
            self.done.append(deed.__name__)
        except (OSError, shutil.Error):  # a folder in the place of a file, and the like
            pass

    def _path(self, existing: bool = False) -> Path:
        base = self._root if self._random.random() < 0.85 else self._outside
        if existing and self._random.random() < 0.9:
            found = [Path(folder) / name for folder, below, files in os.walk(base) for name in [*below, *files]]
            if found:
                return self._random.choice(sorted(found))
        depth = self._random.randint(1, 3)
        return base.joinpath(*(self._random.choice(self._names) for _ in range(depth)))

    def _write(self) -> None:
        write(self._path(), self._random.choice(["", "x", "y", "longer"]))

    def _append(self) -> None:
        with self._path(existing=True).open("a") as stream:
            stream.write("z")

    def _touch(self) -> None:
        os.utime(self._path(existing=True))

    def _remove(self) -> None:
        path = self._path(existing=True)
        if path.is_dir() and not path.is_symlink():
            shutil.rmtree(path)
        else:
            path.unlink()

    def _move(self) -> None:
        self._path(existing=True).rename(self._path())

    def _make_folder(self) -> None:
        self._path().mkdir(parents=True)

    def _link(self) -> None:
        target = self._path(existing=self._random.random() < 0.8)
        path = self._path()
        path.parent.mkdir(parents=True, exist_ok=True)
        path.symlink_to(os.path.relpath(target, path.parent) if self._random.random() < 0.5 else target)

    def _hard_link(self) -> None:
        # Made where the code is: a name that a watched file gets elsewhere is the one thing that cannot be seen.
        source, path = self._path(existing=True), self._path()
        if not source.is_symlink() and str(path).startswith(str(self._root)) and source.stat().st_nlink == 1:
            path.hardlink_to(source)

    def _replace(self) -> None:
        path = self._path(existing=True)
        write(path.with_name("new~"), self._random.choice(["x", "q"])).replace(path)

    def _copy(self) -> None:
        copy = self._root.with_name("copy")  # not straight into the tree: it might be copied into itself, for ever
        shutil.rmtree(copy, ignore_errors=True)
        shutil.copytree(self._path(existing=True), copy, symlinks=True)
        copy.rename(self._path())


@pytest.mark.parametrize("seed", range(12))
def test_after_anything_that_happens_watching_and_reading_agree(tmp_path: Path, seed: int) -> None:
    root, outside = tmp_path / "root", tmp_path / "outside"
    write_all(root, {"a.py": "1", "d/b.py": "2", "d/e/a.py": "3"})
    write_all(outside, {"a.py": "1", "d/b.py": "2"})

    assert_agreement(root, Vandal(root, outside, seed), seed)


@pytest.mark.parametrize("seed", range(12))
def test_after_anything_that_happens_in_a_used_package_they_agree_too(tmp_path: Path, seed: int) -> None:
    root, outside = tmp_path / "root", tmp_path / "outside"
    (tmp_path / ".git").mkdir()
    write_all(root, {"package.json": '{"dependencies": {"used": "*"}}', "a.js": "1", "node_modules/x/i.js": ""})
    write_all(outside, {"package.json": '{"name": "used"}', "a.js": "1", "d/b.js": "2"})
    (root / "node_modules/used").symlink_to("../../outside")

    # Most of it happens in the used package; its link, and the manifests, may go and come as well.
    assert_agreement(root, Vandal(outside, root, seed, ("a.js", "b.js", "c.txt", "d", "node_modules")), seed)


def assert_agreement(root: Path, vandal: Vandal, seed: int) -> None:
    rounds = random.Random(seed)
    with watched(root) as one:
        for step in range(120):
            for _ in range(rounds.choice([1, 1, 1, 2, 5])):
                vandal.act()
            if root.exists():
                known = one._state.digest if one._state else ""
                news = one.news()
                expected = fresh_digest(root)
                assert news or expected == known, (seed, step, vandal.done[-5:])
                assert one.digest() == expected, (seed, step, vandal.done[-5:])
        assert one.watching
        assert len(set(vandal.done)) > 8
