"""Every test, and the branches of `src` that it takes: `python tests/support/coverage_run.py [--save] [ARGS …]`.

The processes that tests start count too, with whatever environment: all run with a Python of their own, a virtual
environment that lives as long as the run, in which each start begins the measurement. The run fails where the total is
below 90 %, where a module is and nothing here says why, and where something here says why and it is not. Tests do not
decide: some hold times that the measurement prolongs, and `make test` judges them. ARGS go to pytest, as `-k words` or
`tests/msbuild`: then the modules that were measured are printed, and nothing is judged, which only all tests can be.
"""

from __future__ import annotations

import argparse
import json
import subprocess
import sys
import sysconfig
import tempfile
import venv
from collections.abc import Mapping, Sequence
from pathlib import Path
from typing import NamedTuple

if __name__ == "__main__":
    sys.path[:0] = [str(Path(__file__).parents[1]), str(Path(__file__).parents[2])]

from benchmarks import figures

from support.long_runs import interruptible, need

ROOT = Path(__file__).parents[2]
SOURCE = ROOT / "src" / "uno_devserver"
SETTINGS = ROOT / "pyproject.toml"
WANTED = 90.0
RAN = (0, 1)  # what pytest says when all tests were run, with or without failures

# They hold which modules are imported, and how long that takes; coverage imports its own, and takes its time.
LEFT_OUT = ("tests/test_hot_path.py", "tests/proxy/test_hot_path.py")

# Modules with less, each with the reason.
_WINDOWS = "calls of Windows, which have no meaning elsewhere; what decides is pure and covered"
REASONS = {
    "hotreload/die_with_parent.py": "a program of its own, for which Python starts without site packages, where "
    "nothing measures; the tests of `hotreload/client_app.py` see what it does",
    "protocol/client/pipe_lines.py": _WINDOWS,
    "system/jobs.py": _WINDOWS,
    "system/locks.py": "the lock of Windows; and the disk that is full when a lock is taken has no room for figures",
    "system/pipe_clients.py": _WINDOWS,
}


class Module(NamedTuple):
    name: str
    statements: int
    missed: int
    branches: int
    missed_branches: int

    @property
    def percent(self) -> float:
        """Of statements and branches together, as coverage.py counts."""
        return _percent(self.statements + self.branches, self.missed + self.missed_branches)


def main() -> int:
    parser = argparse.ArgumentParser(
        prog="python tests/support/coverage_run.py",
        usage="%(prog)s [--help] [--save] [ARGS ...]",
        description=__doc__,
        formatter_class=argparse.RawDescriptionHelpFormatter,
        allow_abbrev=False,
    )
    parser.add_argument("--save", action="store_true", help="record it in benchmarks/results and docs/proof.md (no)")
    options, for_pytest = parser.parse_known_args()
    need(parser, "coverage")
    if options.save and for_pytest:
        parser.error("only a run of all tests is recorded; leave --save out, or what is for pytest")
    with interruptible(), tempfile.TemporaryDirectory(prefix="u") as folder:
        code = _run_tests(measuring_python(Path(folder), SOURCE), for_pytest)
        if code not in RAN:
            print(f"pytest ended with {code} before the tests had run: nothing is judged; see above")
            return 1
        modules = combined(Path(folder), SOURCE)
    if for_pytest:
        print(figures_of_a_part(modules))
        return 0
    missed = problems(modules, REASONS)
    report = _report(modules)
    print(report)
    for problem in missed:
        print(f"MISS: {problem}")
    if options.save:
        figures.save("coverage", 1, [module._asdict() for module in [_total(modules), *modules]], report)
    return 1 if missed else 0


def measuring_python(folder: Path, source: Path) -> str:
    """A Python that has what this one has, and measures from its start."""
    venv.create(folder / "venv", symlinks=True)
    own = Path(sysconfig.get_path("purelib", vars={"base": str(folder / "venv")}))
    begin = (str(SETTINGS), str(source), str(folder / "data" / "branches"))
    lines = [
        str(source.parent),
        f"import site; site.addsitedir({sysconfig.get_path('purelib')!r})",
        # Programs that were installed for tests lie below the folder of the real environment.
        f"import sys; sys.prefix = {sys.prefix!r}",
        f"import runpy; runpy.run_path({str(Path(__file__).with_name('coverage_start.py'))!r})['begin']{begin!r}",
    ]
    (own / "measured.pth").write_text("".join(f"{line}\n" for line in lines), "utf-8")
    (folder / "data").mkdir()
    for program in ("uno-devserver", "uno.devserver"):
        script = folder / "venv" / "bin" / program
        text = f"#!{folder}/venv/bin/python\nimport sys\nfrom uno_devserver.__main__ import main\nsys.exit(main())\n"
        script.write_text(text, "utf-8")
        script.chmod(0o755)
    return str(folder / "venv" / "bin" / "python")


def _run_tests(python: str, arguments: Sequence[str]) -> int:
    left_out = [f"--ignore={path}" for path in LEFT_OUT]
    pytest = [python, "-m", "pytest", "-n", "4", "--dist", "worksteal", *left_out, *arguments]
    return subprocess.run(pytest, cwd=ROOT, stdin=subprocess.DEVNULL).returncode


def combined(folder: Path, source: Path) -> list[Module]:
    import coverage  # not needed, and perhaps not installed, where only the judgement is tried

    measured = coverage.Coverage(
        config_file=str(SETTINGS), source=[str(source)], data_file=str(folder / "branches"), messages=False
    )
    measured.combine([str(folder / "data")])
    report = folder / "report.json"
    measured.json_report(outfile=str(report))
    modules = []
    for path, found in json.loads(report.read_text("utf-8"))["files"].items():
        of = found["summary"]
        name = Path(path).resolve().relative_to(source).as_posix()
        counts = of["num_statements"], of["missing_lines"], of["num_branches"], of["missing_branches"]
        modules.append(Module(name, *counts))
    return sorted(modules)


def _total(modules: Sequence[Module]) -> Module:
    return Module("total", *(sum(column) for column in zip(*(module[1:] for module in modules), strict=True)))


def problems(modules: Sequence[Module], reasons: Mapping[str, str]) -> list[str]:
    total, below = _total(modules), {module.name: module for module in modules if module.percent < WANTED}
    found = [f"{name}: {below[name].percent:.1f} %, and no reason why" for name in sorted(below.keys() - reasons)]
    found += [f"{name}: a reason, and nothing to excuse" for name in sorted(reasons.keys() - below)]
    of_branches = _percent(total.branches, total.missed_branches)
    if of_branches < WANTED:
        found.append(f"{of_branches:.1f} % of all branches")
    return found


def figures_of_a_part(modules: Sequence[Module]) -> str:
    taken = [module for module in modules if module.missed < module.statements]
    lines = ["Only a part of the tests was run, so nothing is judged. Modules of which something was run:", ""]
    lines += [
        "| module | taken |",
        "|---|---:|",
        *(f"| `{module.name}` | {module.percent:.1f} % |" for module in taken),
    ]
    return "\n".join(lines)


def _report(modules: Sequence[Module]) -> str:
    total = _total(modules)
    lines = [
        f"{figures.machine_and_commit()}.",
        "",
        "| | of | taken |",
        "|---|---:|---:|",
        f"| branches | {total.branches} | {_percent(total.branches, total.missed_branches):.1f} % |",
        f"| statements | {total.statements} | {_percent(total.statements, total.missed):.1f} % |",
        f"| both, as coverage.py counts | {total.statements + total.branches} | {total.percent:.1f} % |",
        "",
    ]
    below = sorted((module for module in modules if module.percent < WANTED), key=lambda module: module.percent)
    if below:
        lines += [f"Modules below {WANTED:.0f} %:", "", "| module | taken | why |", "|---|---:|---|"]
        lines += [f"| `{module.name}` | {module.percent:.1f} % | {REASONS.get(module.name, '')} |" for module in below]
    return "\n".join([*lines, ""])


def _percent(of: int, missed: int) -> float:
    return 100.0 * (of - missed) / of if of else 100.0


if __name__ == "__main__":
    sys.exit(main())
