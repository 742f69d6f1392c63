"""File names that stand for paths, and files that are this user's alone."""

from __future__ import annotations

import hashlib
import os
import re
import subprocess
import sys
import tempfile
from collections.abc import Iterator
from pathlib import Path

import pytest

from support.files import write
from support.privileges import ROOT
from uno_devserver.system.files import FileProblem
from uno_devserver.system.locks import FileLock
from uno_devserver.system.state_files import name_for, open_own, read_own, read_state, sha256, write_own, write_state

NOBODY = 65534
needs_root = pytest.mark.skipif(not ROOT, reason="only root can give a file to another user")
needs_modes = pytest.mark.skipif(sys.platform == "win32", reason="Windows has access control lists instead of modes")


@pytest.mark.parametrize(
    ("path", "shown"),
    [("/src/My App", "my_app"), ("/src/größe.ui", "größe.ui"), ("/", "root"), ("/a/b;c'd", "b_c_d")],
)
def test_a_name_shows_what_it_stands_for(path: str, shown: str) -> None:
    assert re.fullmatch(rf"{re.escape(shown)}-[0-9a-f]{{8}}", name_for(path))


def test_another_name_can_be_shown_for_the_same_path() -> None:
    assert name_for("/src/app/App.sln", shown="App") == "App" + name_for("/src/app/App.sln").removeprefix("app.sln")


def test_two_folders_of_one_name_get_two_names() -> None:
    assert name_for("/one/app") != name_for("/two/app")


def test_a_link_and_another_case_are_the_same_place(tmp_path: Path) -> None:
    (tmp_path / "app").mkdir()
    (tmp_path / "link").symlink_to(tmp_path / "app")

    assert name_for(str(tmp_path / "link")) == name_for(str(tmp_path / "app"))
    assert name_for("/src/App") == name_for("/src/aPP")


def test_a_name_is_short_and_valid_whatever_the_path_is() -> None:
    name = name_for("/src/" + "\udce9\n" + "x" * 300)

    assert len(name) == 40 + 1 + 8
    assert name.startswith("__xxx")


@pytest.mark.parametrize("data", [b"", b"a", bytes(range(256)) * 1000])
def test_the_digest_is_hashlibs(data: bytes) -> None:
    assert sha256(data) == hashlib.sha256(data).hexdigest()


def test_it_does_without_hashlib() -> None:
    code = "import sys; from uno_devserver.system.state_files import sha256; sha256(b'');"
    code += "sys.exit('hashlib' in sys.modules)"

    assert subprocess.run([sys.executable, "-c", code], check=False).returncode == 0


def test_another_python_has_no_module_of_that_name_and_uses_hashlib(monkeypatch: pytest.MonkeyPatch) -> None:
    for name in ("_sha2", "_sha256"):
        monkeypatch.setitem(sys.modules, name, None)  # which makes its import fail

    assert sha256(b"a") == hashlib.sha256(b"a").hexdigest()


# --- this user's alone ---


@pytest.fixture
def state(tmp_path: Path) -> Path:
    """A state folder as another version, an archive or a wide umask may have left it."""
    folder = tmp_path / "data" / "Uno Platform" / "uno.devserver"
    write(folder / "trust" / "app.json", '{"workspace": "/src/app"}')
    for one in (tmp_path / "data", *(tmp_path / "data").rglob("*")):
        one.chmod(0o777 if one.is_dir() else 0o664)
    return folder


def modes(*folders: Path) -> list[str]:
    return [oct(folder.stat().st_mode & 0o777) for folder in folders]


@needs_modes
def test_existing_folders_of_ours_are_closed_to_others_and_those_above_stay(state: Path) -> None:
    write_state(str(state / "ports" / "app.json"), {"port": 1})
    assert modes(state, state / "ports", state / "trust") == ["0o700", "0o700", "0o777"]

    assert read_state(str(state / "trust" / "app.json")) == {"workspace": "/src/app"}

    assert modes(state / "trust", state.parent, state.parent.parent) == ["0o700", "0o777", "0o777"]


@needs_modes
def test_the_registry_is_closed_to_others_too(state: Path) -> None:
    registry = state.parent / "DevServers"
    registry.mkdir(mode=0o755)

    write_own(str(registry / "devserver-1.json"), b"{}")

    assert modes(registry, registry / "devserver-1.json", state) == ["0o700", "0o600", "0o777"]


@needs_modes
def test_locks_and_logs_that_others_could_read_are_closed_to_them(state: Path) -> None:
    for name in ("logs/host.log", "locks/app.lock"):
        write(state / name, "old").chmod(0o644)

    os.close(open_own(str(state / "logs" / "host.log")))
    lock = FileLock(str(state / "locks" / "app.lock"))
    lock.acquire(0, lambda _holder: None)
    lock.release()

    assert modes(state / "logs/host.log", state / "locks/app.lock", state / "logs") == ["0o600", "0o600", "0o700"]


@needs_modes
def test_a_file_that_others_could_have_written_is_not_believed(state: Path) -> None:
    path = state / "trust" / "app.json"
    path.chmod(0o666)

    assert read_state(str(path)) == {}
    with pytest.raises(FileProblem, match="other users may write it"):
        read_own(str(path), 100)


@needs_root
def test_a_file_of_another_user_is_not_believed(state: Path) -> None:
    path = state / "trust" / "app.json"
    os.chown(path, NOBODY, -1)

    assert read_state(str(path)) == {}
    with pytest.raises(FileProblem, match="it belongs to another user"):
        read_own(str(path), 100)
    with pytest.raises(PermissionError, match="it belongs to another user"):
        open_own(str(path))
    assert path.read_text("utf-8") == '{"workspace": "/src/app"}'

    write_state(str(path), {"workspace": "/src/mine"})  # a new file of ours takes its place
    assert read_state(str(path)) == {"workspace": "/src/mine"}


@needs_root
@pytest.mark.parametrize("owned", ["uno.devserver", "uno.devserver/trust"])
def test_a_folder_of_another_user_is_not_used_and_the_log_says_so_once(
    state: Path, owned: str, capfd: pytest.CaptureFixture[str]
) -> None:
    folder = state.parent / owned
    os.chown(folder, NOBODY, -1)

    assert read_state(str(state / "trust" / "app.json")) == {}
    for name in ("app.json", "new.json"):
        with pytest.raises(PermissionError, match="it belongs to another user"):
            write_state(str(state / "trust" / name), {})
    with pytest.raises(PermissionError, match="it belongs to another user"):
        open_own(str(state / "trust" / "app.lock"))

    assert os.listdir(state / "trust") == ["app.json"]
    said = f"{folder} is not used: it belongs to another user. Remove it, or make it yours alone (chown, chmod)."
    assert capfd.readouterr().err.count(said) == 1


@needs_root
def test_a_link_of_another_user_to_a_folder_of_ours_is_not_followed(state: Path, tmp_path: Path) -> None:
    write(tmp_path / "repository" / "app.json", '{"workspace": "/src/app"}')
    for path in (state / "linked", state / "own"):
        path.symlink_to(tmp_path / "repository")
    os.chown(state / "linked", NOBODY, -1, follow_symlinks=False)

    assert read_state(str(state / "linked" / "app.json")) == {}
    assert read_state(str(state / "own" / "app.json")) == {"workspace": "/src/app"}


@needs_modes
def test_a_link_in_the_place_of_a_file_is_neither_read_nor_written_through(state: Path, tmp_path: Path) -> None:
    target = write(tmp_path / "repository" / "agreed.json", '{"workspace": "/src/app"}')
    link = state / "trust" / "link.json"
    link.symlink_to(target)

    assert read_state(str(link)) == {}
    with pytest.raises(OSError, match="symbolic link"):
        open_own(str(link))
    write_state(str(link), {"workspace": "/src/mine"})

    assert target.read_text("utf-8") == '{"workspace": "/src/app"}'
    assert read_state(str(link)) == {"workspace": "/src/mine"}


@pytest.fixture
def shared() -> Iterator[Path]:
    """A folder that all users may enter."""
    with tempfile.TemporaryDirectory(prefix="u", dir="/tmp") as folder:
        os.chmod(folder, 0o755)
        yield Path(folder)


@needs_root
def test_a_user_believes_files_of_root_and_of_nobody_else(shared: Path) -> None:
    for name, owner in (("own", NOBODY), ("root", 0), ("other", 65533)):
        os.chown(write(shared / name, f'{{"of": "{name}"}}'), owner, -1)
    code = f"import os, sys; sys.path[:] = {sys.path!r}; from uno_devserver.system.state_files import read_state as r;"
    code += f"import uno_devserver.system.jsonc; os.setgroups([]); os.setgid({NOBODY}); os.setuid({NOBODY});"
    code += f"print([r(os.path.join({str(shared)!r}, name)) for name in ('own', 'root', 'other')])"

    told = subprocess.run([sys.executable, "-c", code], capture_output=True, text=True, check=True).stdout

    assert told == "[{'of': 'own'}, {'of': 'root'}, {}]\n"
