"""The programs of the system that tests need: found, installed, or told about."""

from __future__ import annotations

import subprocess
import sys
from pathlib import Path

import pytest

from support import programs
from support.files import write
from support.privileges import ROOT

APT = """\
#!/bin/sh
echo "$@" >> {log}
for word in "$@"; do case $word in
  zsh) printf '#!/bin/sh\\n' > {bin}/zsh; /bin/chmod +x {bin}/zsh;;
  chromium) exit {chromium};;
esac; done
"""
ENV = '#!/bin/sh\nwhile :; do case $1 in *=*) shift;; *) break;; esac; done\nexec "$@"\n'


@pytest.fixture
def bin_folder(tmp_path: Path) -> Path:
    """All programs that there are."""
    folder = tmp_path / "bin"
    _program(folder / "env", ENV)
    return folder


def test_what_is_there_is_not_installed(bin_folder: Path, tmp_path: Path) -> None:
    for name in ("google-chrome", "zsh", "fish", "go"):
        _program(bin_folder / name, "#!/bin/sh\n")
    log = _install_apt(bin_folder, tmp_path)

    ran = _run(bin_folder)

    assert (ran.returncode, ran.stdout, ran.stderr) == (0, "", "")
    assert not log.exists()


@pytest.mark.skipif(not ROOT, reason="packages are installed by root")
def test_what_is_missing_is_installed_in_one_go(bin_folder: Path, tmp_path: Path) -> None:
    for name in ("chromium-browser", "fish", "go"):
        _program(bin_folder / name, "#!/bin/sh\n")
    log = _install_apt(bin_folder, tmp_path)

    ran = _run(bin_folder, CI="1")

    assert ran.returncode == 0, ran.stderr
    assert log.read_text().splitlines()[-1].endswith("install -y --no-install-recommends zsh")
    assert (bin_folder / "zsh").exists()


@pytest.mark.parametrize(("ci", "code"), [("", 0), ("true", 1)])
def test_what_cannot_be_installed_is_told_and_an_error_in_ci(
    bin_folder: Path, tmp_path: Path, ci: str, code: int
) -> None:
    for name in ("zsh", "fish", "go"):
        _program(bin_folder / name, "#!/bin/sh\n")
    _install_apt(bin_folder, tmp_path, chromium=100)

    ran = _run(bin_folder, CI=ci)

    assert ran.returncode == code
    assert "apt-get install chromium" in ran.stderr


def test_a_machine_without_a_package_manager_is_no_traceback(bin_folder: Path) -> None:
    ran = _run(bin_folder)

    assert ran.returncode == 0
    assert "apt-get" in ran.stdout
    assert "Traceback" not in ran.stderr


def test_a_test_without_its_program_is_skipped_but_fails_in_ci(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setenv("PATH", str(tmp_path))
    monkeypatch.setenv("CI", "")
    with pytest.raises(pytest.skip.Exception, match="apt-get install fish"):
        programs.needed("fish")

    monkeypatch.setenv("CI", "1")
    with pytest.raises(pytest.fail.Exception, match="apt-get install fish"):
        programs.needed("fish")


def _install_apt(folder: Path, tmp_path: Path, chromium: int = 0) -> Path:
    """A package manager that has zsh, and writes down what it is told."""
    log = tmp_path / "apt.log"
    _program(folder / "apt-get", APT.format(log=log, bin=folder, chromium=chromium))
    _program(folder / "apt-cache", "#!/bin/sh\nshift\nfor each; do echo '  Candidate: 1'; done\n")
    return log


def _program(path: Path, text: str) -> None:
    write(path, text).chmod(0o755)


def _run(folder: Path, **environment: str) -> subprocess.CompletedProcess[str]:
    return subprocess.run(
        [sys.executable, programs.__file__],
        env={"PATH": str(folder), **environment},
        stdin=subprocess.DEVNULL,
        capture_output=True,
        text=True,
        timeout=60,
        check=False,
    )
