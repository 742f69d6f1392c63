"""`demo`: it shows what it says, fails where that is not so, and leaves nothing behind."""

from __future__ import annotations

import json
import shutil
import signal
import subprocess
import sys
import sysconfig
import tempfile
import time
import venv
from collections.abc import Iterator
from pathlib import Path

import psutil
import pytest

import uno_devserver
from support.dotnet import write_program
from support.machine import WINDOWS, Machine
from support.terminals import Terminal, columns_of, shown
from uno_devserver.cli.demo.command import typed
from uno_devserver.cli.demo.files import ADD_IN, EDIT, FILES

SECONDS = 60  # a run takes one or two; the rest is for machines that have other things to do
GONE_SECONDS = 2.0
STEPS = ["discovery", "tools-before-host", "first-call", "second-start", "healing", "hot-reload"]
STEPS += ["inspector", "registration"]


class Stand:
    """A machine, and the temporary folder in which the demo makes its own."""

    def __init__(self, machine: Machine, temp: Path) -> None:
        self.machine = machine
        self.temp = temp
        self.environ = {**machine.variables(), "TMPDIR": str(temp)}

    def run(self, *arguments: str, program: Path | None = None) -> subprocess.CompletedProcess[str]:
        done = subprocess.run(
            [*self._command(program), "demo", *arguments],
            cwd=self.machine.workspace,
            env=self.environ,
            stdin=subprocess.DEVNULL,
            capture_output=True,
            encoding="utf-8",
            timeout=SECONDS,
        )
        assert "Traceback" not in done.stdout + done.stderr
        return done

    def spawn(self) -> subprocess.Popen[str]:
        return subprocess.Popen(
            [*self._command(None), "demo"],
            cwd=self.machine.workspace,
            env=self.environ,
            stdin=subprocess.DEVNULL,
            stdout=subprocess.PIPE,
            stderr=subprocess.STDOUT,
            text=True,
        )

    def left(self) -> list[str]:
        """Processes and files of a demo that do not go: what was killed is gone a moment later."""
        deadline = time.monotonic() + GONE_SECONDS
        while (found := self._found()) and time.monotonic() < deadline:
            time.sleep(0.01)
        return found

    def _found(self) -> list[str]:
        found = []
        for process in psutil.process_iter():
            try:
                if process.environ().get("HOME", "").startswith(str(self.temp)):
                    found.append(f"{process.pid}: {process.cmdline()}")
            except (psutil.Error, OSError):
                continue  # it has ended, or is another user's
        return found + [str(path) for path in self.temp.rglob("*")]

    def touched(self) -> list[Path]:
        """What is in the folders of the user, all of which were empty."""
        machine = self.machine
        return [path for folder in (machine.home, machine.data, machine.workspace) for path in folder.rglob("*")]

    def stand_in(self, behaviour: str) -> Path:
        """A program of our name that does as ours does, but for what `behaviour` makes of `words`."""
        path = self.machine.root / "bin" / "uno-devserver"
        path.parent.mkdir()
        write_program(
            path,
            f"#!{sys.executable}\nimport os, sys\nwords = sys.argv[1:]\n{behaviour}\n"
            "from uno_devserver.__main__ import main\nsys.exit(main())\n",
        )
        return path.with_suffix(".exe") if WINDOWS else path

    def _command(self, program: Path | None) -> list[str]:
        return [str(program)] if program else [sys.executable, "-m", "uno_devserver"]


@pytest.fixture
def stand(machine: Machine) -> Iterator[Stand]:
    temp = Path(tempfile.mkdtemp(prefix="u"))  # short: there are sockets below
    yield Stand(machine, temp.resolve())
    shutil.rmtree(temp, ignore_errors=True)


def test_all_steps_pass_and_are_read_at_80_columns_with_their_milliseconds(stand: Stand) -> None:
    # when
    done = stand.run()

    # then
    assert (done.returncode, done.stderr) == (0, "")
    lines = done.stdout.splitlines()
    numbered = [line for line in lines if line[:1].isdigit()]
    assert [line.split(".")[0] for line in numbered] == [str(number) for number in range(1, len(STEPS) + 1)]
    assert [line for line in lines if len(line) > 80] == []
    assert {len(line) for line in lines if line.endswith(" ms")} == {80}
    assert "\x1b" not in done.stdout
    program = "uno-devserver.exe" if WINDOWS else "uno-devserver"
    assert lines[-2].endswith(f"{program} inspect")
    assert lines[-1].endswith(f"{program} mcp install <client>")
    # and nothing is left, and nothing of the user's was touched
    assert stand.left() == []
    assert stand.touched() == []


def test_a_narrow_terminal_has_each_time_at_the_end_of_its_line(stand: Stand) -> None:
    terminal = Terminal(stand.machine, "demo", columns=70, env={"TMPDIR": str(stand.temp)})

    lines = shown(terminal.end())

    assert terminal.process.returncode == 0
    assert {columns_of(line) for line in lines if line.endswith(" ms")} == {70}
    assert max(columns_of(line) for line in lines if line.startswith(tuple("12345678"))) <= 70


def test_it_needs_nothing_but_the_installed_package(stand: Stand) -> None:
    # given: the package alone, and what it depends on, where an installer would put them
    installed = stand.machine.root / "installed"
    venv.create(installed, symlinks=True)
    packages = Path(sysconfig.get_path("purelib", vars={"base": str(installed)}))
    own = Path(uno_devserver.__file__).parent
    shutil.copytree(own, packages / own.name, ignore=shutil.ignore_patterns("__pycache__"))
    # A folder that another .pth file names is searched, but its own .pth files, of which one leads here, are not read.
    (packages / "dependencies.pth").write_text(f"{sysconfig.get_path('purelib')}\n")
    program = installed / "bin" / "uno-devserver"
    program.write_text(
        f"#!{installed}/bin/python\nimport sys\nimport uno_devserver\n"
        f"assert uno_devserver.__file__.startswith({str(installed)!r})\n"
        "from uno_devserver.__main__ import main\nsys.exit(main())\n"
    )
    program.chmod(0o755)

    # when
    done = stand.run("--json", program=program)

    # then: one document, and no prose
    assert (done.returncode, done.stderr) == (0, "")
    told = json.loads(done.stdout)
    assert list(told) == ["ok", "steps", "seconds"]
    assert told["ok"] is True
    assert [step["name"] for step in told["steps"]] == STEPS
    for step in told["steps"]:
        assert list(step) == ["name", "milliseconds", "ok", "detail"]
        assert step["ok"] is True
        assert 0 < step["milliseconds"] < told["seconds"] * 1000
        assert step["detail"]
    assert stand.left() == []


@pytest.mark.parametrize(
    ("behaviour", "step", "sentence"),
    [
        (
            "if words[:1] == ['disco']: sys.exit(print('One.dll'))",
            1,
            "Expected the add-ins Uno.Settings.DevServer.dll and Acme.DevTools.dll, but disco printed 'One.dll'.",
        ),
        (
            "if words[:1] == ['trust']: sys.exit('no space left')",
            2,
            "Expected 'uno-devserver trust' to succeed, but it ended with 1 and said: no space left.",
        ),
        (
            "if words[:1] == ['--mcp-app']: sys.stdin.readline(); sys.exit('no loop')",
            2,
            "Expected an answer to initialize, but the proxy ended, with exit code 1. The proxy's last lines: no loop",
        ),
        (
            "if words[:2] == ['mcp', 'uninstall']: sys.exit()",
            STEPS.index("registration") + 1,
            "Expected Cursor's file as it was, but it holds {",
        ),
    ],
    ids=["other add-ins", "a command fails", "the proxy dies", "the file is not given back"],
)
def test_a_step_that_does_not_do_what_it_says_fails_the_demo_and_tells_why(
    stand: Stand, behaviour: str, step: int, sentence: str
) -> None:
    # when
    done = stand.run(program=stand.stand_in(behaviour))

    # then
    assert done.returncode == 1
    said = " ".join(done.stderr.split())
    assert said.startswith(f"The demo failed in step {step}. {sentence}")
    assert "Try next" not in done.stdout
    assert stand.left() == []


def test_a_failure_is_a_step_of_the_document_too(stand: Stand) -> None:
    done = stand.run("--json", program=stand.stand_in("if words[:1] == ['--mcp-app']: sys.exit('no loop')"))

    told = json.loads(done.stdout)
    assert (done.returncode, done.stderr, told["ok"]) == (1, "", False)
    assert [(step["name"], step["ok"]) for step in told["steps"]] == [(STEPS[0], True), (STEPS[1], False)]
    assert "no loop" in told["steps"][1]["detail"]


def test_a_host_that_ignores_an_edit_is_noticed(stand: Stand) -> None:
    # given: no reload happens behind this proxy
    config = '{"hotReload": {"enabled": false}}'
    off = f"if words == ['trust']: open('.devtools/host.config.jsonc', 'w').write({config!r})"

    done = stand.run(program=stand.stand_in(off))

    assert done.returncode == 1
    assert f"The demo failed in step {STEPS.index('hot-reload') + 1}. Expected" in " ".join(done.stderr.split())
    assert stand.left() == []


@pytest.mark.parametrize(
    ("number", "moment"),
    [(signal.SIGTERM, "2. "), (signal.SIGINT, "5. ")],
    ids=["while the Host starts", "while the Host is killed"],
)
def test_an_interrupted_demo_leaves_nothing_behind(stand: Stand, number: signal.Signals, moment: str) -> None:
    # given
    demo = stand.spawn()
    assert demo.stdout is not None
    for line in demo.stdout:
        if line.startswith(moment):
            break

    # when: it is told to end, and by an impatient person twice
    began = time.monotonic()
    demo.send_signal(number)
    demo.send_signal(signal.SIGINT)
    rest, _ = demo.communicate(timeout=SECONDS)

    # then
    assert demo.returncode == 130
    assert time.monotonic() - began < 10
    assert "Interrupted." in rest
    assert "Traceback" not in rest
    assert stand.left() == []


def test_ctrl_c_in_a_terminal_ends_it_with_all_that_it_started(stand: Stand) -> None:
    # given: as people see it, with colours
    terminal = Terminal(stand.machine, "demo", env={"TMPDIR": str(stand.temp)})
    assert "\x1b[1m1. Discovery" in terminal.until("3. ")

    # when
    terminal.press(b"\x03")
    sent = terminal.end()

    # then
    assert shown(sent)[-1] == "Interrupted. All processes were ended, and all files removed."
    assert terminal.process.returncode == 130
    assert stand.left() == []


def test_a_reader_that_goes_away_is_no_failure(stand: Stand) -> None:
    demo = stand.spawn()
    assert demo.stdout is not None
    assert demo.stdout.readline().startswith("uno-devserver")

    demo.stdout.close()

    assert demo.wait(SECONDS) == 0
    assert stand.left() == []


def test_a_folder_that_cannot_be_written_is_named_with_the_next_step(stand: Stand) -> None:
    # given: the system's other temporary folders are left out, as on a machine whose disk is full
    stand.environ["TMPDIR"] = str(stand.temp / "missing")
    code = (
        "import sys, tempfile\n"
        "tempfile.tempdir = sys.argv.pop()\n"
        "from uno_devserver.cli.main import main\n"
        "sys.exit(main(['demo']))"
    )

    done = subprocess.run(
        [sys.executable, "-c", code, stand.environ["TMPDIR"]], env=stand.environ, capture_output=True, text=True
    )

    assert done.returncode == 1
    assert "could not be written" in done.stderr
    assert "next: Set TMPDIR to a folder with some space." in done.stderr


def test_what_is_edited_is_in_the_add_in() -> None:
    assert FILES[ADD_IN].count(EDIT[0]) == 1


def test_the_commands_to_try_next_are_typed_as_this_installation_wants_them(tmp_path: Path) -> None:
    on_path, elsewhere = tmp_path / "on path" / "uno-devserver", tmp_path / "else where" / "uno-devserver"
    for script in (on_path, elsewhere):
        script.parent.mkdir()
        script.touch(0o755)
    environ = {"PATH": str(on_path.parent), "HOME": str(tmp_path / "home")}
    cached = tmp_path / "home/.cache/uv/archive/bin/uno-devserver"

    assert typed([str(on_path)], environ) == "uno-devserver"
    assert typed([str(elsewhere)], environ) == f"'{elsewhere}'"
    assert typed(["/usr/bin/python3", "-m", "uno_devserver"], environ) == "/usr/bin/python3 -m uno_devserver"
    assert typed([str(cached)], {**environ, "UV": "/usr/bin/uv"}, "1.2.3") == "uvx uno-devserver"
    assert typed([str(cached)], {**environ, "UV": "/usr/bin/uv"}, "1.2.3.dev0") == str(cached), (
        "its name may be another's"
    )
