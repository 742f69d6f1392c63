"""The user's agreement: kept outside the workspace, for its path, its config and its kinds of code."""

from __future__ import annotations

import json
import os
from pathlib import Path

import pytest

from support.files import write, write_all
from support.machine import DATA_HOME
from support.privileges import ROOT
from uno_devserver.system.files import FileProblem
from uno_devserver.system.folders import folders
from uno_devserver.workspace import repository
from uno_devserver.workspace.trust import (
    NOT_AGREED,
    ForeignCode,
    TrustQuestion,
    agree,
    agreement_path,
    agreements,
    is_agreed,
    is_trusted,
    refusal,
    revoke,
    trust_question,
    was_trusted,
)

SERVER = {
    ".devtools/host.config.jsonc": '{"mcpServerRoot": "../server", "extensionPath": "../app"}',
    "server/package.json": '{"bin": "main.js", "scripts": {"test": "t"}}',
    "app/pyproject.toml": "",
}


@pytest.fixture
def workspace(tmp_path: Path) -> Path:
    write(tmp_path / "ws" / ".devtools" / "addins" / "greeter.py", "")
    write(tmp_path / "ws" / ".devtools" / "host.config.jsonc", "{}")
    return tmp_path / "ws"


@pytest.fixture
def state(tmp_path: Path) -> str:
    return str(tmp_path / "data" / "Uno Platform" / "uno.devserver")


def _environ(tmp_path: Path, trust: str = "") -> dict[str, str]:
    return {"HOME": str(tmp_path), DATA_HOME: str(tmp_path / "data"), "UNO_DEVSERVER_TRUST": trust}


def test_an_agreement_is_kept_and_can_be_taken_back(workspace: Path, state: str, tmp_path: Path) -> None:
    assert not is_trusted(_environ(tmp_path), str(workspace))
    assert refusal(state, str(workspace)) == NOT_AGREED

    agree(state, trust_question(str(workspace)), "trust")
    assert is_agreed(state, str(workspace))
    assert is_trusted(_environ(tmp_path), str(workspace))

    assert revoke(state, str(workspace)) is True
    assert not is_agreed(state, str(workspace))
    assert revoke(state, str(workspace)) is False


def test_revoking_the_agreement_of_a_path_leaves_that_of_a_path_in_other_letters(workspace: Path, state: str) -> None:
    agree(state, trust_question(str(workspace)), "trust")
    other = workspace.with_name("WS")
    other.mkdir()
    if other.samefile(workspace):
        pytest.skip("this file system takes both for the same folder")

    assert revoke(state, str(other)) is False
    assert is_agreed(state, str(workspace))


@pytest.mark.skipif(not ROOT, reason="only root can give a file to another user")
def test_an_agreement_that_another_user_has_written_agrees_to_nothing(
    workspace: Path, state: str, tmp_path: Path
) -> None:
    agree(state, trust_question(str(workspace)), "trust")
    os.chown(agreement_path(state, str(workspace)), 65534, -1)

    assert not is_trusted(_environ(tmp_path), str(workspace))
    assert agreements(state) == []


@pytest.mark.parametrize(
    "path",
    [
        ".",
        ".devtools",
        ".devtools/host.config.jsonc",
        ".devtools/addins",
        ".devtools/addins/greeter.py",
        ".devtools/addins/package",
        ".devtools/addins/package/__init__.py",
        "server",
        "server/package.json",
        "app",
    ],
)
@pytest.mark.usefixtures("ordinary_user")
def test_code_of_another_user_is_never_agreed_to(workspace: Path, state: str, tmp_path: Path, path: str) -> None:
    write_all(workspace, {**SERVER, ".devtools/addins/package/__init__.py": ""})
    agree(state, trust_question(str(workspace)), "trust")
    assert is_agreed(state, str(workspace)), "what root has installed is not another user's"

    os.chown(workspace / path, 65534, -1)

    whose = f"{workspace / path} belongs to another user (id 65534)"
    assert not is_trusted(_environ(tmp_path), str(workspace))
    assert refusal(state, str(workspace)) == whose
    assert [one.outdated for one in agreements(state)] == [whose]
    with pytest.raises(ForeignCode, match=f"{workspace / path}: it belongs to another user"):
        trust_question(str(workspace))
    assert is_trusted(_environ(tmp_path, "1"), str(workspace)), "automation may agree to everything"


@pytest.mark.parametrize(
    "name", ["global.json", "Directory.Build.props", "Directory.Build.targets", "Directory.Build.rsp", "nuget.config"]
)
@pytest.mark.usefixtures("ordinary_user")
def test_what_another_user_has_put_above_a_workspace_for_its_build_is_not_agreed_to(
    workspace: Path, state: str, tmp_path: Path, name: str
) -> None:
    project = workspace / "project"
    write_all(workspace, {"global.json": "{}", name: "{}", "project/.devtools/addins/greeter.py": ""})
    agree(state, trust_question(str(project)), "trust")
    assert is_agreed(state, str(project))

    os.chown(workspace / name, 65534, -1)

    assert not is_trusted(_environ(tmp_path), str(project))
    with pytest.raises(ForeignCode, match=f"{workspace}/{name}: it belongs to another user"):
        trust_question(str(project))

    write(project / name, "{}")
    nearest_counts = name != "nuget.config"
    assert is_agreed(state, str(project)) == nearest_counts, "every nuget.config is read, of the others the nearest"


@pytest.mark.usefixtures("ordinary_user")
def test_what_another_user_has_put_above_a_csharp_server_is_not_agreed_to(workspace: Path) -> None:
    files = {"app/.devtools/host.config.jsonc": '{"mcpServerRoot": ".."}', "app/Server.csproj": "<Project />"}
    write_all(workspace, {**files, "Directory.Build.targets": "<Project />"})
    assert "the package of Server.csproj" in trust_question(str(workspace / "app")).kinds

    os.chown(workspace / "Directory.Build.targets", 65534, -1)

    with pytest.raises(ForeignCode, match=f"{workspace}/Directory.Build.targets: it belongs to another user"):
        trust_question(str(workspace / "app"))


@pytest.mark.usefixtures("ordinary_user")
def test_variables_that_another_user_has_written_are_not_agreed_to(workspace: Path) -> None:
    server = '{"mcpServer": {"command": "serve", "envFile": "../.env"}}'
    write_all(workspace, {".devtools/host.config.jsonc": server, ".env": ""})
    assert "the variables of .env" in trust_question(str(workspace)).kinds

    os.chown(workspace / ".env", 65534, -1)

    with pytest.raises(ForeignCode, match=f"{workspace}/.env: it belongs to another user"):
        trust_question(str(workspace))


def test_a_link_to_a_package_that_leads_elsewhere_needs_a_new_agreement(workspace: Path, state: str) -> None:
    write(workspace / ".devtools/host.config.jsonc", '{"mcpServerRoot": "../server"}')
    for folder in ("one", "two"):
        write_all(workspace / folder, {"package.json": "{}", "server.py": ""})
    link = workspace / "server"
    link.symlink_to("one")
    agree(state, trust_question(str(workspace)), "trust")
    before = is_agreed(state, str(workspace))

    link.unlink()
    link.symlink_to("two")

    assert before
    assert "two has been added since the user agreed" in refusal(state, str(workspace))


def test_packages_that_cannot_all_be_found_cannot_be_agreed_to(
    workspace: Path, state: str, monkeypatch: pytest.MonkeyPatch
) -> None:
    write(workspace / ".devtools/host.config.jsonc", '{"mcpServerRoot": "../server"}')
    write(workspace / "server/package.json", json.dumps({"dependencies": dict.fromkeys(map(str, range(50)), "*")}))
    write(workspace / "node_modules/a/b", "")
    agree(state, trust_question(str(workspace)), "trust")

    monkeypatch.setattr(repository, "MAX_CHARACTERS", 1000)

    assert "package.json cannot be used (the packages that it uses cannot all be found" in refusal(
        state, str(workspace)
    )
    with pytest.raises(FileProblem, match="too many files and folders"):
        trust_question(str(workspace))


@pytest.mark.parametrize("others", ["link", "target"])
@pytest.mark.usefixtures("ordinary_user")
def test_neither_a_link_of_another_user_nor_one_to_his_code_is_agreed_to(
    workspace: Path, state: str, tmp_path: Path, others: str
) -> None:
    (workspace / ".devtools").rename(tmp_path / "target")
    (workspace / ".devtools").symlink_to(tmp_path / "target")
    agree(state, trust_question(str(workspace)), "trust")
    assert is_agreed(state, str(workspace))

    os.chown({"link": workspace / ".devtools", "target": tmp_path / "target"}[others], 65534, -1, follow_symlinks=False)

    assert not is_agreed(state, str(workspace))


@pytest.mark.usefixtures("ordinary_user")
def test_a_server_whose_workspace_became_another_users_does_not_go_on(workspace: Path, tmp_path: Path) -> None:
    environ = _environ(tmp_path)
    agree(folders(environ).state, trust_question(str(workspace)), "trust")
    (workspace / ".devtools" / "host.config.jsonc").write_text("{ changed")
    assert was_trusted(environ, str(workspace))

    os.chown(workspace, 65534, -1)

    assert not was_trusted(environ, str(workspace))


@pytest.mark.skipif(not ROOT, reason="only root can give a file to another user")
def test_root_may_agree_to_code_of_users_as_in_a_container(workspace: Path, state: str) -> None:
    for path in (workspace, *workspace.rglob("*")):
        os.chown(path, 65534, -1)

    agree(state, trust_question(str(workspace)), "trust")

    assert is_agreed(state, str(workspace))


def test_what_there_is_to_agree_to_is_named(workspace: Path) -> None:
    asked = trust_question(str(workspace))

    assert asked.addins == (str(workspace / ".devtools" / "addins" / "greeter.py"),)
    assert asked.config == str(workspace / ".devtools" / "host.config.jsonc")
    assert asked.kinds == ("the add-in greeter.py",)


def test_a_workspace_without_code_has_nothing_to_agree_to(tmp_path: Path) -> None:
    assert trust_question(str(tmp_path)) == TrustQuestion(str(tmp_path))


@pytest.mark.parametrize(("value", "trusted"), [("1", True), (" 1 ", True), ("0", False), ("true", False), ("", False)])
def test_automation_agrees_by_the_environment(workspace: Path, tmp_path: Path, value: str, trusted: bool) -> None:
    assert is_trusted(_environ(tmp_path, value), str(workspace)) is trusted


USES_A_BUILT_PACKAGE = {
    "server/package.json": '{"dependencies": {"used": "link:../used"}}',
    "used/package.json": '{"main": "dist/a.js", "scripts": {"build": "make"}}',
}


@pytest.mark.parametrize(
    ("files", "why"),
    [
        ({".devtools/addins/greeter.py": "print('edited')", "server/package.json": '{"bin": "other.js"}'}, ""),
        ({".devtools/addins/_helper.py": "", "server/main.js": "new", "server/yarn.lock": "", "notes.csproj": ""}, ""),
        ({".devtools/host.config.jsonc": "{}"}, "its config was changed since the user agreed to it"),
        ({".devtools/addins/second.py": ""}, "the add-in second.py"),
        ({".devtools/addins/more/__init__.py": ""}, "the add-in folder more"),
        ({"global.json": "{}"}, "the build of its projects"),
        ({"server/package.json": '{"scripts": {"build": "make"}}'}, "the script 'build' of server/package.json"),
        ({"app/package.json": '{"scripts": {"compile": "make"}}'}, "the package of app/package.json"),
        ({"server/package.json": "{ broken"}, "the script 'build' of server/package.json"),
        ({"server/Server.csproj": ""}, "the package of server/Server.csproj"),
        ({"server/go.mod": ""}, "the package of server/go.mod"),
        (USES_A_BUILT_PACKAGE, "the script 'build' of used/package.json"),
    ],
)
def test_edits_are_agreed_to_and_a_changed_config_or_a_new_kind_of_code_is_not(
    workspace: Path, state: str, files: dict[str, str], why: str
) -> None:
    write_all(workspace, SERVER)
    agree(state, trust_question(str(workspace)), "trust")
    before = {path: workspace / path for path in files if (workspace / path).exists()}
    kept = {path: file.read_text() for path, file in before.items()}

    write_all(workspace, files)

    assert is_agreed(state, str(workspace)) is not bool(why)
    assert not why or why in refusal(state, str(workspace))
    for path in files:
        (workspace / path).unlink()
    for folder in {(workspace / path).parent for path in files}:
        if not any(folder.iterdir()):
            folder.rmdir()
    write_all(workspace, kept)
    assert is_agreed(state, str(workspace)), "what was agreed to is back"


def test_a_package_that_no_relative_path_leads_to_can_be_agreed_to(
    workspace: Path, state: str, monkeypatch: pytest.MonkeyPatch
) -> None:
    """As on Windows, if it is on another drive."""
    write_all(workspace, SERVER)

    def on_another_drive(path: str, start: str) -> str:
        raise ValueError(f"{path} is on another drive than {start}")

    monkeypatch.setattr(os.path, "relpath", on_another_drive)

    assert f"the package of {workspace}/server/package.json" in trust_question(str(workspace)).kinds


def test_an_agreement_without_kinds_is_one_to_no_code(workspace: Path, state: str) -> None:
    agree(state, trust_question(str(workspace)), "trust")
    path = Path(agreement_path(state, str(workspace)))
    kept = json.loads(path.read_bytes())

    path.write_text(json.dumps({name: value for name, value in kept.items() if name != "kinds"}))

    assert not is_agreed(state, str(workspace))


@pytest.mark.parametrize("content", ["", "{}"])
def test_a_config_that_appears_is_another_question(tmp_path: Path, state: str, content: str) -> None:
    agree(state, trust_question(str(tmp_path)), "trust")

    write(tmp_path / ".devtools" / "host.config.jsonc", content)

    assert not is_agreed(state, str(tmp_path))


def test_the_agreement_holds_for_every_way_to_the_same_place(workspace: Path, state: str, tmp_path: Path) -> None:
    (tmp_path / "link").symlink_to(workspace)

    agree(state, trust_question(str(tmp_path / "link")), "trust")

    assert is_agreed(state, str(workspace))
    assert is_agreed(state, f"{workspace}/.devtools/..")


def test_another_workspace_is_another_question(workspace: Path, state: str, tmp_path: Path) -> None:
    agree(state, trust_question(str(workspace)), "trust")
    other = tmp_path / "other"

    workspace.rename(other)

    assert not is_agreed(state, str(other))


def test_a_file_that_names_another_workspace_agrees_to_nothing(workspace: Path, state: str, tmp_path: Path) -> None:
    """Two paths may share a file name, by chance or because somebody made it so."""
    agree(state, trust_question(str(workspace)), "trust")
    other = tmp_path / "other"
    other.mkdir()

    os.rename(agreement_path(state, str(workspace)), agreement_path(state, str(other)))

    assert not is_agreed(state, str(other))


def test_folders_that_differ_in_case_alone_are_two_questions(state: str, tmp_path: Path) -> None:
    for name in ("App", "app"):
        (tmp_path / name).mkdir()

    agree(state, trust_question(str(tmp_path / "App")), "trust")

    assert is_agreed(state, str(tmp_path / "App"))
    assert not is_agreed(state, str(tmp_path / "app"))


def test_the_file_is_the_users_alone_and_says_how_it_came_about(workspace: Path, state: str) -> None:
    agree(state, trust_question(str(workspace)), "start")

    path = Path(agreement_path(state, str(workspace)))
    kept = json.loads(path.read_bytes())
    assert (path.stat().st_mode & 0o777, path.parent.name) == (0o600, "trust")
    assert (kept["workspace"], kept["agreedBy"]) == (str(workspace), "start")
    assert list(path.parent.iterdir()) == [path]


@pytest.mark.parametrize("content", [b"", b"[]", b"{", b"\xff\xfe", b'{"workspace": 1}', b"[" * 5000])
def test_a_damaged_file_agrees_to_nothing(workspace: Path, state: str, content: bytes) -> None:
    agree(state, trust_question(str(workspace)), "trust")

    Path(agreement_path(state, str(workspace))).write_bytes(content)

    assert not is_agreed(state, str(workspace))


def test_a_config_that_cannot_be_read_is_never_agreed_to(workspace: Path, state: str) -> None:
    agree(state, trust_question(str(workspace)), "trust")
    config = workspace / ".devtools" / "host.config.jsonc"
    config.unlink()
    os.mkfifo(config)

    assert not is_agreed(state, str(workspace))
    with pytest.raises(FileProblem, match="not a regular file"):
        trust_question(str(workspace))


def test_a_name_that_is_no_text_can_be_agreed_to(tmp_path: Path, state: str) -> None:
    folder = os.fsdecode(os.fsencode(tmp_path) + b"/\xff\xe4")
    os.mkdir(folder)

    agree(state, trust_question(folder), "trust")

    assert is_agreed(state, folder)
