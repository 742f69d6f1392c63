"""The Host as a controller: what `--command` does, for launchers that know the verbs by that name."""

from __future__ import annotations

import json
from pathlib import Path

from support.bundled import BundledHost, run_host
from uno_devserver.cli.host import command_line
from uno_devserver.host.flags import read_flags


def test_list_and_cleanup_are_the_commands_of_that_name() -> None:
    assert command_line(read_flags(["--command=list"], {})) == ["list"]
    assert command_line(read_flags(["-c", "CLEANUP", "--httpPort", "5000"], {})) == ["cleanup"]


def test_stop_is_about_one_workspace(tmp_path: Path) -> None:
    solution = tmp_path / "App.sln"
    solution.touch()

    assert command_line(read_flags(["--command", "stop"], {})) == ["stop"]
    told = command_line(read_flags(["--command", "stop", "--solution", str(solution)], {}))
    assert told == ["stop", "--solution-dir", str(tmp_path)]


def test_start_gets_every_flag_that_was_given_and_none_of_the_environment(tmp_path: Path) -> None:
    solution = tmp_path / "My App.sln"
    solution.touch()
    arguments = ["--command=start", "/httpPort", "5000", "--solution", str(solution), "--workingDir", str(tmp_path)]
    arguments += ["--addins", "", "--metadata-updates", "true", "--force-msbuild-discovery", "--X=y z"]

    told = command_line(read_flags(arguments, {"UNO_DEVSERVER_ppid": "7"}))

    assert told == [
        "start", "--solution-dir", str(tmp_path), "--httpport", "5000", "--solution", str(solution), "--addins", ";",
        "--metadata-updates", "true", "--force-msbuild-discovery", "--x", "y z",
    ]  # fmt: skip


def test_a_switch_that_is_off_is_not_passed_on() -> None:
    told = command_line(read_flags(["--command=start", "--force-msbuild-discovery", "false"], {}))

    assert told == ["start"]


def test_a_blank_flag_was_not_given(tmp_path: Path) -> None:
    told = command_line(
        read_flags(["--command=start", "--ideChannel", "", "--solution", " ", "--timeoutMs", "500"], {})
    )

    assert told == ["start", "--timeoutms", "500"]


def test_a_limit_that_is_no_number_is_refused_by_start(tmp_path: Path) -> None:
    done = run_host(tmp_path, "--command=start", "--timeoutMs", "soon")

    assert done.returncode != 0
    assert "timeoutMs" in done.stderr


def test_a_controller_lists_starts_and_stops(tmp_path: Path) -> None:
    solution = tmp_path / "App.sln"
    solution.write_text("Microsoft Visual Studio Solution File, Format Version 12.00\n")

    try:
        started = run_host(tmp_path, "--command=start", "--solution", "App.sln", "--addins", ";")
        again = run_host(tmp_path, "--command=start", "--solution", "App.sln")
        listed = run_host(tmp_path, "--command", "list")
    finally:
        stopped = run_host(tmp_path, "--command=stop", "--solution", "App.sln")
    after = run_host(tmp_path, "-c", "list")

    assert started.returncode == 0, started
    assert "is ready on port" in started.stdout
    assert again.returncode == 0
    assert f"Solution: {solution}" in listed.stdout
    assert "Total active DevServers: 1" in listed.stdout
    assert "Successfully stopped 1 DevServer(s)" in stopped.stdout
    assert "No active DevServers found." in after.stdout


def test_stop_leaves_the_servers_of_other_workspaces_alone(tmp_path: Path) -> None:
    for name in ("one", "two"):
        (tmp_path / name).mkdir()
        (tmp_path / name / "App.sln").touch()
    first, second = (tmp_path / name / "App.sln" for name in ("one", "two"))

    with (
        BundledHost(tmp_path, "--addins", ";", "--solution", str(first)) as one,
        BundledHost(tmp_path, "--addins", ";", "--solution", str(second)) as two,
    ):
        done = run_host(tmp_path, "--command=stop", "--solution", str(first))

        assert done.returncode == 0
        assert one.ended() == 0
        assert two.process.poll() is None
        assert two.health()["status"] == "Healthy"


def test_cleanup_removes_what_is_stale(tmp_path: Path) -> None:
    with BundledHost(tmp_path, "--addins", ";") as host:
        entry = json.loads(host.entry.read_text("utf-8"))
        stale = host.registry / "devserver-999999.json"
        stale.write_text(json.dumps({**entry, "ProcessId": 999999}))

        done = run_host(tmp_path, "--command=cleanup")

        assert "Cleanup completed." in done.stdout
        assert not stale.exists()
        assert host.entry.exists()


def test_a_verb_that_does_not_exist_is_refused(tmp_path: Path) -> None:
    done = run_host(tmp_path, "--command=bogus")

    assert done.returncode == 1
    assert "start, stop, list, cleanup" in done.stderr
