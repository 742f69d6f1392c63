"""The special folders, by .NET's rules: Linux against what .NET 10 gave when it was run, the others as documented."""

from __future__ import annotations

import json
import ntpath
import os
import subprocess
import sys
from collections.abc import Mapping
from pathlib import Path
from typing import Any

import pytest

from support.privileges import ROOT
from uno_devserver.system.folders import Folders, folders, folders_on, relative_path

if sys.platform != "win32":
    import pwd

RECORD = json.loads((Path(__file__).parent.parent / "golden/special-folders/special-folders.json").read_text("utf-8"))
PASSWD_HOME = "{PASSWD_HOME}"


def passwd_home() -> str:
    return PASSWD_HOME


def never_asked() -> str:
    raise AssertionError("the passwd entry is asked only where the environment says nothing")


def given(environment: Mapping[str, str | None]) -> dict[str, str]:
    """The recorded environment, with a home that is absolute as the real one was."""
    return {name: value.replace("{HOME}", "/{HOME}") for name, value in environment.items() if value is not None}


# --- Linux --------------------------------------------------------------------------------------------------------


@pytest.mark.parametrize("case", RECORD["folders"], ids=lambda case: str(case["case"]))
def test_linux_folders_are_those_that_net_gave_without_looking_at_the_disk(case: dict[str, Any]) -> None:
    """.NET's default call answers with an empty string for a folder that does not exist; nobody can write a file
    there. We always give the path, as .NET does with the option DoNotVerify."""
    expected = {
        name: value.replace("{HOME}", "/{HOME}")
        for name, value in case["result"].items()
        if name.endswith("/DoNotVerify")
    }

    found = folders_on("linux", given(case["environment"]), passwd_home)

    assert {
        "LocalApplicationData/DoNotVerify": found.local_application_data,
        "ApplicationData/DoNotVerify": found.application_data,
        "CommonApplicationData/DoNotVerify": found.common_application_data,
        "UserProfile/DoNotVerify": found.home,
    } == expected


@pytest.mark.parametrize("case", RECORD["folders"], ids=lambda case: str(case["case"]))
def test_where_net_finds_an_existing_folder_it_is_the_same(case: dict[str, Any]) -> None:
    found = folders_on("linux", given(case["environment"]), passwd_home)

    for name, folder in [
        ("LocalApplicationData/None", found.local_application_data),
        ("ApplicationData/None", found.application_data),
        ("UserProfile/None", found.home),
    ]:
        recorded = case["result"][name].replace("{HOME}", "/{HOME}")
        assert recorded in ("", folder), name


def test_the_root_folder_as_home_gives_no_double_slash() -> None:
    assert folders_on("linux", {"HOME": "/"}, never_asked).application_data == "/.config"


@pytest.mark.parametrize("home", ["", None], ids=["empty", "unset"])
def test_without_home_the_passwd_entry_counts(home: str | None) -> None:
    environment = {**os.environ, "HOME": home}
    code = "from uno_devserver.system.folders import folders; print(folders().home)"

    result = subprocess.run(
        [sys.executable, "-c", code],
        env={name: value for name, value in environment.items() if value is not None},
        capture_output=True,
        text=True,
        timeout=20,
    )

    assert result.stdout.strip() == pwd.getpwuid(os.geteuid()).pw_dir


def test_a_given_environment_is_asked_instead_of_the_processs_own() -> None:
    assert folders({"HOME": "/somewhere"}).home == "/somewhere"
    assert folders({}).home == pwd.getpwuid(os.geteuid()).pw_dir


@pytest.mark.skipif(not ROOT, reason="only root can become a user that the system does not know")
def test_a_user_without_a_passwd_entry_lives_in_the_root_folder() -> None:
    """As in a container that was started with an arbitrary user id."""
    code = "import os, uno_devserver.system.folders as f; os.setuid(54321); print(f.folders({}).application_data)"

    result = subprocess.run([sys.executable, "-c", code], capture_output=True, text=True, timeout=20)

    assert result.stdout.strip() == "/.config"


# --- Windows and macOS --------------------------------------------------------------------------------------------


def test_windows_folders_come_from_the_environment() -> None:
    environment = {
        "USERPROFILE": "C:\\Users\\dev",
        "APPDATA": "D:\\Roaming",
        "LOCALAPPDATA": "D:\\Local",
        "PROGRAMDATA": "D:\\Data",
        "HOME": "/ignored",
        "XDG_DATA_HOME": "/ignored",
    }

    assert folders_on("win32", environment, never_asked) == Folders(
        "C:\\Users\\dev", "D:\\Roaming", "D:\\Local", "D:\\Data"
    )


def test_windows_folders_lie_in_the_profile_where_the_environment_says_nothing() -> None:
    found = folders_on("win32", {"APPDATA": ""}, lambda: "C:\\Users\\dev")

    assert found.home == "C:\\Users\\dev"
    assert found.application_data == "C:\\Users\\dev\\AppData\\Roaming"
    assert found.local_application_data == "C:\\Users\\dev\\AppData\\Local"
    assert found.common_application_data == "C:\\ProgramData"


@pytest.mark.parametrize("home", ["/Users/dev", "/Users/dev/"])
def test_macos_has_one_folder_for_both_kinds_of_data_and_knows_no_xdg(home: str) -> None:
    environment = {"HOME": home, "XDG_DATA_HOME": "/xdg", "XDG_CONFIG_HOME": "/xdg"}

    found = folders_on("darwin", environment, never_asked)

    assert found.application_data == "/Users/dev/Library/Application Support"
    assert found.local_application_data == "/Users/dev/Library/Application Support"
    assert found.common_application_data == "/usr/share"


# --- ours ---------------------------------------------------------------------------------------------------------


def test_the_registry_and_our_state_lie_where_the_net_tool_looks() -> None:
    found = folders_on("linux", {"HOME": "/home/dev"}, never_asked)

    assert found.registry == "/home/dev/.local/share/Uno Platform/DevServers"
    assert found.state == "/home/dev/.local/share/Uno Platform/uno.devserver"


def test_a_relative_home_does_not_put_our_files_into_the_current_folder() -> None:
    assert Path(folders({"HOME": "."}).state).is_absolute()


@pytest.mark.parametrize(
    ("path", "relative"), [(r"C:\ws\server\a.py", r"server\a.py"), (r"C:\b.py", r"..\b.py"), (r"D:\c.py", r"D:\c.py")]
)
def test_a_path_on_another_drive_is_relative_to_none_of_this_one(path: str, relative: str) -> None:
    assert relative_path(path, r"C:\ws", ntpath.relpath) == relative
