"""Finds the add-ins to load, imports them, and lets them register.

If an add-in cannot be loaded, one line says why and where, and the others are loaded. Only sources are loaded, no
bytecode; nothing is written next to an add-in, and its folder is not put on `sys.path`.
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
from types import CodeType, ModuleType

from ...system.event_loop import run_in_thread
from ...system.log import log
from ...system.values import Value
from ..flags import HostFlags
from .failures import MODULE_PREFIX, place_in_thread, place_of_error, sentence

REASON_CHARACTERS = 500  # a reason is one line

_numbers = itertools.count(1)  # makes module names unique, because two add-ins may have the same name


async def chosen_addins(flags: HostFlags, environ: Mapping[str, str]) -> tuple[list[str], str | None]:
    """The paths of the add-ins to load, and an error if finding them failed. Without `--addins`, MSBuild is asked."""
    value, solution = flags.addins, flags.solution
    if value is not None and (solution is None or not flags.force_msbuild):
        # A launcher passes a path relative to the workspace if the full path contains a semicolon.
        return [os.path.join(flags.workspace or "", path) for path in parse_addins(value)], None
    if solution is None:
        log.warn("No solution and no --addins were given, so no add-ins are loaded.")
        return [], None
    try:
        return await run_in_thread(lambda: _ask_msbuild(solution, environ))
    except Exception as error:
        log.debug(traceback.format_exc())
        return [], f"The discovery of add-ins failed: {error!r}."


def _ask_msbuild(solution: str, environ: Mapping[str, str]) -> tuple[list[str], str | None]:
    from ...discovery.discover import DiscoveryRequest, discover_addins

    directory = os.path.dirname(solution)
    found = discover_addins(DiscoveryRequest(directory, explicit=True, solution=solution, force_msbuild=True), environ)
    for issue in found.issues:
        log.warn(f"{issue.message} {issue.remediation}")
    failure = next((issue.message for issue in found.issues if issue.code == "MSBuildDiscoveryFailed"), None)
    paths = list(found.for_host)
    if not paths and failure is None:
        log.info(f"Didn't find any add-ins for solution '{solution}'.")
    return paths, failure


def parse_addins(value: str) -> list[str]:
    """The paths in a value of `--addins`: split at `;`, trimmed, without empty ones and duplicates, ignoring case."""
    paths: dict[str, str] = {}
    for part in value.split(";"):
        if path := part.strip():
            paths.setdefault(path.lower(), path)
    return list(paths.values())


class AddInRefused(Exception):
    """The add-in cannot be loaded; the text says why."""


class AddInSource(Value):
    file: str  # the file to run
    package: str | None  # the folder of a package


def name_of(path: str) -> str:
    """The name of an add-in: that of its file or folder, without the extension."""
    base = os.path.basename(path.rstrip("/\\"))
    if base.lower() == "__init__.py":
        base = os.path.basename(os.path.dirname(path))
    stem, extension = os.path.splitext(base)
    return stem if extension.lower() in (".py", ".dll") else base


def locate(path: str) -> AddInSource:
    """The add-in at a path; AddInRefused if there is none that this Host can load."""
    if not os.path.isabs(path):
        raise AddInRefused(f"{path} is not an absolute path")
    if not os.path.exists(path):
        raise AddInRefused(f"{path} does not exist")
    if path.lower().endswith(".dll"):
        raise AddInRefused(f"{path} is a .NET assembly, which only the .NET Host loads")
    if os.path.isdir(path):
        file = os.path.join(path, "__init__.py")
        if not os.path.isfile(file):
            raise AddInRefused(f"{path} is a folder without an __init__.py")
        return AddInSource(file, path)
    if not path.lower().endswith(".py") or not os.path.isfile(path):
        raise AddInRefused(f"{path} is neither a Python file nor a package folder")
    return AddInSource(path, os.path.dirname(path) if os.path.basename(path) == "__init__.py" else None)


def load(name: str, source: AddInSource, register: Callable[[ModuleType], None], seconds: float) -> str | None:
    """Import an add-in, let `register` call its entry point, within a time limit, and return its version.

    Raises AddInRefused for every kind of failure.
    """
    _install_finder()
    module = f"{MODULE_PREFIX}{next(_numbers)}_{name}"
    outcome: list[str | BaseException | None] = []

    def work() -> None:
        try:
            outcome.append(_import(source, module, register))
        except BaseException as error:  # includes SystemExit, because an add-in must not end the Host
            outcome.append(error)

    thread = threading.Thread(target=work, name=f"load {name}", daemon=True)
    thread.start()
    thread.join(seconds)
    if not outcome:
        place = place_in_thread(thread.ident or 0)
        _interrupt(thread)
        raise AddInRefused(f"it did not finish loading within {seconds:g} s{place}")
    result = outcome[0]
    if not isinstance(result, BaseException):
        return result
    _forget(module)
    raise AddInRefused(reason(result)) from result


def reason(error: BaseException) -> str:
    """Why an add-in failed, in one line, with the file and line of the add-in where that happened."""
    if isinstance(error, AddInRefused):
        return str(error)
    if isinstance(error, SyntaxError):
        place = f" ({error.filename}:{error.lineno})" if error.filename else ""
        return _one_line(f"SyntaxError: {error.msg}{place}")
    missing_sdk = isinstance(error, ModuleNotFoundError) and error.name == "mcp"
    advice = ": install uno-devserver[sdk]" if missing_sdk else ""
    return _one_line(sentence(error)) + advice + place_of_error(error)


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
    """Compiles a module from its source, always and in memory.

    A workspace may contain compiled copies that were made from other sources: Python would run those, although the
    user has seen the sources. Nothing is written into a workspace, either.
    """

    def get_code(self, fullname: str) -> CodeType:
        path = self.get_filename(fullname)
        code: CodeType = self.source_to_code(self.get_data(path), path)
        return code


class _Finder:
    """Makes later imports from an add-in's package use `_Loader` too, and refuses bytecode without a source."""

    def find_spec(
        self, fullname: str, path: Sequence[str] | None, target: ModuleType | None = None
    ) -> importlib.machinery.ModuleSpec | None:
        if not fullname.startswith(MODULE_PREFIX):
            return None
        spec = importlib.machinery.PathFinder.find_spec(fullname, path, target)
        if spec is not None and isinstance(spec.loader, importlib.machinery.SourcelessFileLoader):
            # Not None, because Python's own finder, which is asked next, would load it.
            raise ImportError(f"{spec.origin} is bytecode, and its source is missing", name=fullname, path=spec.origin)
        if spec is not None and isinstance(spec.loader, importlib.machinery.SourceFileLoader):
            spec.loader = _Loader(fullname, spec.loader.path)
        return spec


def _install_finder() -> None:
    if not any(isinstance(finder, _Finder) for finder in sys.meta_path):
        sys.meta_path.insert(0, _Finder())


def _forget(module: str) -> None:
    """Remove an add-in's modules from `sys.modules`."""
    for name in list(sys.modules):
        if name == module or name.startswith(module + "."):
            del sys.modules[name]


def _interrupt(thread: threading.Thread) -> None:
    """Raise SystemExit in a thread that hangs, to end a loop of Python code that uses the processor."""
    import ctypes

    if thread.ident is not None:
        ctypes.pythonapi.PyThreadState_SetAsyncExc(ctypes.c_ulong(thread.ident), ctypes.py_object(SystemExit))


def _one_line(message: str) -> str:
    return " ".join(message.split())[:REASON_CHARACTERS]
