"""From the text of `--addins` to registered add-ins.

An add-in that cannot be loaded, in whatever way it fails, costs nothing but itself: it is reported with one line that
says why and where, and the others load. Nothing is written beside an add-in, and its folder is not put on `sys.path`.
"""

from __future__ import annotations

import importlib.machinery
import importlib.util
import inspect
import itertools
import os
import sys
import threading
import traceback
from collections.abc import Callable, Mapping, Sequence
from functools import partial
from types import FrameType, ModuleType, TracebackType
from typing import Any

from ...system.log import log
from ...system.values import Value
from ..flags import HostFlags
from .failures import MODULE_PREFIX, AddInExit, sentence
from .invocation import invoke_apart

REASON_CHARACTERS = 500  # a reason is one line

_numbers = itertools.count(1)  # makes module names unique: two add-ins may be called the same


class AddInRefused(Exception):
    """The add-in cannot be loaded, and why."""


class AddInSource(Value):
    """Where an add-in lies."""

    name: str
    path: str  # as it was given
    file: str  # the file to run
    package: str | None  # its folder, when it is a package


def parse_addins(value: str) -> list[str]:
    """The paths in a value of `--addins`: split at `;`, trimmed, the empty ones dropped, each once ignoring case."""
    paths: dict[str, str] = {}
    for part in value.split(";"):
        if path := part.strip():
            paths.setdefault(path.lower(), path)
    return list(paths.values())


def name_of(path: str) -> str:
    """What an add-in is called: as its file or folder, without the extension."""
    base = os.path.basename(path.rstrip("/\\"))
    if base.lower() == "__init__.py":
        base = os.path.basename(os.path.dirname(path))
    stem, extension = os.path.splitext(base)
    return stem if extension.lower() in (".py", ".dll") else base


def locate(path: str) -> AddInSource:
    """The add-in at a path; Refused when there is none that this Host can load."""
    name = name_of(path)
    if not os.path.isabs(path):
        raise AddInRefused(f"{path} is not an absolute path")
    if path.lower().endswith(".dll"):
        raise AddInRefused(f"{path} is a .NET assembly and needs the .NET Host: start with '--host dotnet'")
    if os.path.isdir(path):
        file = os.path.join(path, "__init__.py")
        if not os.path.isfile(file):
            raise AddInRefused(f"{path} is a folder without an __init__.py")
        return AddInSource(name, path, file, path)
    if not os.path.exists(path):
        raise AddInRefused(f"{path} does not exist")
    if not path.lower().endswith(".py") or not os.path.isfile(path):
        raise AddInRefused(f"{path} is neither a Python file nor a package folder")
    is_package = os.path.basename(path) == "__init__.py"
    return AddInSource(name, path, path, os.path.dirname(path) if is_package else None)


def load(source: AddInSource, register: Callable[[ModuleType], None], seconds: float) -> str | None:
    """Import an add-in and let `register` call its entry point, within a time; its version. Refused when that fails."""
    _install_finder()
    module = f"{MODULE_PREFIX}{next(_numbers)}_{source.name}"
    outcome: list[str | BaseException | None] = []

    def work() -> None:
        try:
            outcome.append(_import(source, module, register))
        except BaseException as error:  # SystemExit too: an add-in must not end the Host
            outcome.append(error)

    thread = threading.Thread(target=work, name=f"load {source.name}", daemon=True)
    thread.start()
    thread.join(seconds)
    if not outcome:
        where = _where_is(thread, source)
        _interrupt(thread)
        raise AddInRefused(f"it did not finish loading within {seconds:g} s{where}")
    result = outcome[0]
    if not isinstance(result, BaseException):
        return result
    _forget(module)
    raise AddInRefused(reason(result, source)) from result


def reason(error: BaseException, source: AddInSource) -> str:
    """Why, in one line, and the line of the add-in where it happened."""
    if isinstance(error, AddInRefused):
        return str(error)
    if isinstance(error, SyntaxError):
        where = f" ({error.filename}:{error.lineno})" if error.filename else ""
        return _one_line(f"SyntaxError: {error.msg}{where}")
    if isinstance(error, ModuleNotFoundError) and error.name == "mcp":
        return f"{_one_line(sentence(error))}: install uno-devserver[sdk]{_where(error.__traceback__, source)}"
    origin = error.__cause__ if isinstance(error, AddInExit) and error.__cause__ is not None else error
    return _one_line(sentence(error)) + _where(origin.__traceback__, source)


def _import(source: AddInSource, name: str, register: Callable[[ModuleType], None]) -> str | None:
    locations = None if source.package is None else [source.package]
    spec = importlib.util.spec_from_file_location(
        name, source.file, loader=_Loader(name, source.file), submodule_search_locations=locations
    )
    assert spec is not None
    assert spec.loader is not None
    module = importlib.util.module_from_spec(spec)
    sys.modules[name] = module
    spec.loader.exec_module(module)
    if not callable(getattr(module, "register", None)):
        raise AddInRefused(f"it has no function register(addin) ({source.file})")
    if inspect.iscoroutinefunction(module.register):
        raise AddInRefused(f"register(addin) cannot be async; what has to wait goes into on_start ({source.file})")
    register(module)
    version = getattr(module, "__version__", None)
    return version if isinstance(version, str) else None


class _Loader(importlib.machinery.SourceFileLoader):
    """Compiles in memory: nothing is written into a workspace."""

    def set_data(self, path: str, data: Any, *, _mode: int = 0o666) -> None:
        pass


class _Finder:
    """The same for the modules inside an add-in's package, whenever they are imported."""

    def find_spec(
        self, fullname: str, path: Sequence[str] | None, target: ModuleType | None = None
    ) -> importlib.machinery.ModuleSpec | None:
        if not fullname.startswith(MODULE_PREFIX):
            return None
        spec = importlib.machinery.PathFinder.find_spec(fullname, path, target)
        if spec is not None and isinstance(spec.loader, importlib.machinery.SourceFileLoader):
            spec.loader = _Loader(fullname, spec.loader.path)
        return spec


def _install_finder() -> None:
    if not any(isinstance(finder, _Finder) for finder in sys.meta_path):
        sys.meta_path.insert(0, _Finder())


def _forget(module: str) -> None:
    """Take an add-in's modules out of the interpreter's list."""
    for name in list(sys.modules):
        if name == module or name.startswith(module + "."):
            del sys.modules[name]


def _where(trace: TracebackType | None, source: AddInSource) -> str:
    """The innermost line of the add-in in a traceback."""
    found = ""
    while trace is not None:
        if _belongs(trace.tb_frame, source):
            found = f" ({trace.tb_frame.f_code.co_filename}:{trace.tb_lineno})"
        trace = trace.tb_next
    return found


def _where_is(thread: threading.Thread, source: AddInSource) -> str:
    """The line of the add-in that a thread is in."""
    frame = sys._current_frames().get(thread.ident or 0)
    while frame is not None:
        if _belongs(frame, source):
            return f" ({frame.f_code.co_filename}:{frame.f_lineno})"
        frame = frame.f_back
    return ""


def _belongs(frame: FrameType, source: AddInSource) -> bool:
    file = frame.f_code.co_filename
    return file == source.file or (source.package is not None and file.startswith(source.package + os.sep))


def _interrupt(thread: threading.Thread) -> None:
    """Ask a thread that hangs to end: in a loop of Python code it does, and leaves the processor to the Host."""
    import ctypes

    if thread.ident is not None:
        ctypes.pythonapi.PyThreadState_SetAsyncExc(ctypes.c_ulong(thread.ident), ctypes.py_object(SystemExit))


def _one_line(message: str) -> str:
    return " ".join(message.split())[:REASON_CHARACTERS]


async def chosen_addins(configuration: HostFlags, environ: Mapping[str, str]) -> tuple[list[str], str | None]:
    """Their paths, and why there may be too few. Being told, even of none, saves asking MSBuild."""
    told, solution = configuration.addins, configuration.solution
    if told is not None and (solution is None or not configuration.force_msbuild):
        return _told(told, configuration.workspace), None
    if solution is None:
        log.warn("No solution and no --addins were given, so no add-ins are loaded.")
        return [], None
    try:
        found: tuple[list[str], str | None] = await invoke_apart(partial(_asked_of_msbuild, solution, environ))
    except Exception as error:
        log.debug(traceback.format_exc())
        return [], f"The discovery of add-ins failed: {error!r}."
    return found


def _told(value: str, workspace: str | None) -> list[str]:
    """A launcher writes a path relative to the workspace where the full one has a semicolon."""
    return [os.path.join(workspace or "", path) for path in parse_addins(value)]


def _asked_of_msbuild(solution: str, environ: Mapping[str, str]) -> tuple[list[str], str | None]:
    from ...discovery.discover import DiscoveryRequest, discover_addins

    directory = os.path.dirname(solution)
    found = discover_addins(DiscoveryRequest(directory, explicit=True, solution=solution, force_msbuild=True), environ)
    for issue in found.issues:
        log.warn(f"{issue.message} {issue.remediation}")
    failure = next((issue.message for issue in found.issues if issue.code == "MSBuildDiscoveryFailed"), None)
    paths = list(dict.fromkeys(addin.path for addin in found.found))
    if not paths and failure is None:
        log.info(f"Didn't find any add-ins for solution '{solution}'.")
    return paths, failure
