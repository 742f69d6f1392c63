"""The command line of the MCP server of a config: from the config itself, else from the package in its folder.

Nothing is run, and no program except `uv` is searched for until the server is started, unless its arguments were given
with it as one text. If the command line is not known, the result is an issue that says what to write. Cheap to import:
the start of the server waits for it.
"""

from __future__ import annotations

import contextlib
import json
import os
import sys
from itertools import islice

from ..issues import Issue, fatal, warning
from ..system.files import FileProblem, names_in, read_bytes
from ..system.folders import relative_path
from ..system.jsonc import JsonProblem, parse
from ..system.programs import named_program_candidates, program_candidates
from ..system.text import shown_words, usable_name
from ..system.values import Value
from .config import PROJECTS, Config, ServerCommand, can_be_given

TYPE_CHECKING = False
if TYPE_CHECKING:
    from collections.abc import Iterable, Iterator, Mapping
    from typing import Any

MAX_BYTES = 1024 * 1024  # the limit for a package.json or pyproject.toml, which have a few KB
MCP_SDK = b"ModelContextProtocol"  # the package of C# servers, also the namespace
MAX_FOLDERS = 500  # that are searched for a .NET server
BUILT = frozenset({"bin", "obj", "node_modules"})
NODE = "node"
PACKAGE = "package.json"
PYPROJECT = "pyproject.toml"
SCRIPTS = ("server.py", "main.py", "__main__.py")  # the usual names of a server in one file
# The programs that can watch code themselves, and their words for it: two reloads at once lose the session, and the old
# code with it. Those in the second set have a value.
OWN_RELOADS = {
    "node": ({"--watch", "--watch-preserve-output"}, {"--watch-path"}),
    "tsx": ({"watch", "--clear-screen"}, set()),
    "bun": ({"--watch", "--hot", "--no-clear-screen"}, set()),
    "deno": ({"--watch", "--watch-hmr", "--no-clear-screen"}, {"--watch-exclude"}),
    "fastmcp": ({"--reload", "--no-reload"}, {"--reload-dir"}),
}
_VALUED = {"-r", "--require", "--import", "--loader", "--env-file", "-C", "--conditions"}  # of Node, before the script
LACKS = f"has no {PACKAGE} with 'bin' or 'main', no {PYPROJECT} with 'project.scripts', and no .csproj"
# By the manifest in the folder of a server: what that lacks, and a command for an example.
EXAMPLES = {
    PACKAGE: ("has neither 'bin' nor 'main'", (NODE, "dist/index.js")),
    PYPROJECT: ("has no 'project.scripts'", ()),  # the example is made from the files beside it
    "go.mod": ("names no program", ("go", "run")),  # the package is looked for
    "Cargo.toml": ("is not searched for programs", ("cargo", "run", "--quiet")),
}


class ServerLine(Value):
    """A command line without a shell."""

    line: tuple[str, ...]  # the program is a name or a path, which may be relative to the folder
    folder: str  # the working directory
    environment: tuple[tuple[str, str], ...]  # in addition to our variables
    origin: str  # a noun phrase or path: where the command line comes from
    from_file: tuple[tuple[str, str], ...] = ()  # the variables of mcpServer.envFile, whose values are never shown
    output: str = ""  # the folder with the output of a .NET build: the program is started from a copy of it
    copies: str = ""  # the folder for these copies

    def environ(self, ours: Mapping[str, str], platform: str = sys.platform) -> dict[str, str]:
        """All variables. On Windows `Path` replaces `PATH`: there, case is ignored, and Python gives us capitals."""
        all_of_them = (*ours.items(), *self.from_file, *self.environment)
        return {name.upper() if platform == "win32" else name: value for name, value in all_of_them}

    def started(self) -> tuple[str, ...]:
        """The paths of the files that it starts, whether or not they exist, as far as they are known."""
        from .command_package import started_files  # few starts need it

        return tuple(self.built()) or started_files(self.line, self.folder)

    def built(self) -> list[str]:
        """The words of the line that are files of the output."""
        return [word for word in self.line if self.output and word.startswith(os.path.join(self.output, ""))]


class _Problem(Exception):
    """There is a package, but it has no usable command line."""


def server_command(config: Config, environ: Mapping[str, str], platform: str) -> ServerLine | Issue:
    """The command line for a config that names a server, or the issue that says why it is not known."""
    root = config.server_folder
    assert root is not None
    own = config.server or ServerCommand()
    folder = own.cwd or root
    from_file = file_variables(config)
    if isinstance(from_file, Issue):
        return from_file
    if own.command is not None:
        if apart := _split_apart(own.command, folder, environ, platform):
            message = f"{config.section}.command in {config.path} has arguments besides the program '{apart[0]}'."
            step = f"Write them into args: {_section(config, shown_words((*apart, *own.args)))}."
            return fatal("ConfigInvalid", message, step)
        origin = f"{config.section} in {config.path}"
        line = (own.command, *own.args)
        line = without_own_reload(line) if config.hot_reload.enabled else line
        return ServerLine(line, folder, own.env, origin, from_file)
    try:
        found = _of_package(root) or _of_pyproject(root, {**environ, **dict(from_file), **dict(own.env)}, platform)
        project = None if found else _project_in(root)
    except _Problem as problem:
        return _unknown(config, str(problem), platform)
    if project is not None:
        from .dotnet_command import dotnet_command  # reads project files, and only .NET servers need it

        is_built = config.hot_reload.enabled or own.build == ()
        # Without the variables of the file: a launch profile may name them, and its values are shown.
        started = dotnet_command(project, own.args, {**environ, **dict(own.env)}, is_built=is_built)
        profile = (pair for pair in started.environment if pair[0] not in dict(from_file))
        return ServerLine(
            started.line, folder, (*profile, *own.env), project, from_file, started.output, started.copies
        )
    if found is None:
        manifest = _manifest_in(root)
        lacks = f"{os.path.join(root, manifest)} {EXAMPLES[manifest][0]}" if manifest else f"{root} {LACKS}"
        why = lacks if os.path.isdir(root) else f"there is no folder {root}"
        return _elsewhere(config) or _unknown(config, why, platform)
    line, origin = found
    return ServerLine((*line, *own.args), folder, own.env, origin, from_file)


def file_variables(config: Config) -> tuple[tuple[str, str], ...] | Issue:
    """The variables of mcpServer.envFile, or the issue that says why they cannot be read."""
    path = config.server.env_file if config.server else None
    if path is None:
        return ()
    from ..system.safe_paths import PathEscape, path_inside
    from .env_file import read_env_file  # few configs name one

    try:
        path_inside(os.path.dirname(os.path.dirname(config.path or "")), path)
        return read_env_file(path)
    except PathEscape:
        message = f"mcpServer.envFile of {config.path} cannot be used: {path} leads out of the workspace."
        return fatal("ConfigInvalid", message, "Name a file inside the workspace; then call a tool.")
    except FileProblem as problem:
        message = f"{config.section}.envFile of {config.path} cannot be used: {problem}."
        return fatal("ConfigInvalid", message, "Correct that file, or name another one; then call a tool.")


def server_headers(config: Config, environ: Mapping[str, str]) -> dict[str, str] | Issue:
    """The headers for the server's URL, with variables expanded, or the issue that says why that cannot be done."""
    own = config.server or ServerCommand()
    if not own.headers:
        return {}
    from ..protocol.client.credentials import expanded_headers  # few configs name headers

    from_file = file_variables(config)
    if isinstance(from_file, Issue):
        return from_file
    try:
        return expanded_headers(dict(own.headers), {**environ, **dict(from_file), **dict(own.env)})
    except ValueError as error:
        message = f"{config.section}.headers in {config.path} cannot be used: {error}."
        step = f"Set it, for example in the file of {config.section}.envFile, or correct the config; then call a tool."
        return fatal("ConfigInvalid", message, step)


def header_problems(config: Config, environ: Mapping[str, str]) -> Iterator[Issue]:
    """Warnings of headers that cannot be sent, because variables lack here; a client may give others to its proxy."""
    for each in (config, *(entry for entry in config.servers if entry.enabled)):
        found = server_headers(each, environ)
        is_known = not each.connects_only and isinstance(file_variables(each), Issue)  # why it cannot be started
        if isinstance(found, Issue) and not is_known:
            step = f"Set it in the file of {each.section}.envFile, or where the AI client starts the proxy."
            yield warning(found.code, found.message, step)


def without_own_reload(line: tuple[str, ...]) -> tuple[str, ...]:
    """The command line without the options by which its program would reload the server itself."""
    names = [os.path.basename(word).removesuffix(".exe") for word in line]
    at = next((number for number, name in enumerate(names) if name in OWN_RELOADS), None)
    if at is None:
        return line
    alone, with_value = OWN_RELOADS[names[at]]
    kept, rest = list(line[: at + 1]), list(line[at + 1 :])
    while rest:
        word = rest.pop(0)
        name, has_value, _ = word.partition("=")
        is_script = not word.startswith("-") and word not in alone and word != "run" and kept[-1] not in _VALUED
        if word == "--" or (is_script and names[at] != "fastmcp"):
            return (*kept, word, *rest)  # what follows is for the server
        if name in with_value and not has_value:
            del rest[:1]
        elif name not in alone and name not in with_value:
            kept.append(word)
    return tuple(kept)


def package_folder(folder: str) -> str | None:
    """The folder if it has a package, or the .NET server in or below it; None if there is neither."""
    return folder if _manifest_in(folder) else _dotnet_server(folder)


def _dotnet_server(folder: str) -> str | None:
    """The first folder, in or below this one, with a .NET project or program that uses the SDK of MCP."""
    from .dotnet_project import projects_in

    for place, names, files in islice(os.walk(folder), MAX_FOLDERS):
        is_deep = os.sep in os.path.relpath(place, folder)  # like src/Server
        names[:] = [] if is_deep else sorted(name for name in names if name[0] != "." and name not in BUILT)
        for name in projects_in(place, files):
            with contextlib.suppress(OSError, FileProblem):
                if MCP_SDK in read_bytes(os.path.join(place, name), MAX_BYTES):
                    return place
    return None


def server_name(config: Config) -> str:
    """The name of what a config serves: the given name, else that of the folder."""
    return given_name(config) or folder_name(config)


def given_name(config: Config) -> str | None:
    """The server's name in the config or in its package; None if there is no usable one."""
    if config.hot_reload.server_name:
        return config.hot_reload.server_name
    root = _named_folder(config)
    try:
        named = _read_json(root).get("name") or _read_toml(root).get("project", {}).get("name")
        named = named or _module_name(root) or os.path.splitext(os.path.basename(_project_in(root) or ""))[0]
    except (_Problem, AttributeError):
        named = None
    return usable_name(named)


def project_name(root: str) -> str:
    """The name in the pyproject.toml of a folder; empty if there is none."""
    try:
        project = _read_toml(root).get("project")
    except _Problem:
        return ""
    name = project.get("name") if isinstance(project, dict) else None
    return name if isinstance(name, str) else ""


def _module_name(root: str) -> str | None:
    """The last part of a Go module's path; None if there is no module."""
    try:
        lines = read_bytes(os.path.join(root, "go.mod"), MAX_BYTES).decode("utf-8", "replace").splitlines()
    except (FileNotFoundError, FileProblem):
        return None
    found = next((words[1] for line in lines if len(words := line.split()) > 1 and words[0] == "module"), "")
    return found.strip('"').rpartition("/")[2] or None


def folder_name(config: Config) -> str:
    root = _named_folder(config)
    return os.path.basename(root) or root


def _named_folder(config: Config) -> str:
    """The folder with the code of the declared server; that of the workspace for a config with `servers` only."""
    assert config.path is not None
    return config.server_folder or os.path.dirname(os.path.dirname(config.path))


def _elsewhere(config: Config) -> Issue | None:
    """The issue for a common mistake, a path that is relative to the workspace instead of the config's folder."""
    folder, root = os.path.dirname(os.path.abspath(config.path or "")), config.server_root
    if root is None:
        return None
    is_within = os.path.join(root, "").startswith(os.path.join(folder, ""))
    if os.path.isdir(root) and not is_within:
        return None
    meant = os.path.normpath(os.path.join(folder, "..", relative_path(root, folder)))
    if not os.path.isdir(meant):
        return None
    path = os.path.relpath(meant, folder).replace(os.sep, "/")
    key = "mcpServerRoot" if config.name is None else "root"
    message = f'{key} in {config.path} must probably be "{path}", which is {meant}: {root} has no server.'
    return fatal("ConfigInvalid", message, f'Write "{key}": "{path}": paths are relative to the folder of the file.')


def _unknown(config: Config, why: str, platform: str) -> Issue:
    message = f"How the server of {config.path} is started is not known: {why}."
    return fatal("ConfigInvalid", message, f"Write it into that file, as in {_example(config, platform)}.")


def _example(config: Config, platform: str) -> str:
    """A section of a config with a command that fits the kind of server in its folder."""
    return _section(config, command_by_hand(config, platform))


def _section(config: Config, line: Iterable[str]) -> str:
    """The section of a config with this command line."""
    program, *given = map(json.dumps, line)
    root = ""
    if config.name is not None and config.server_root is not None:
        path = relative_path(config.server_root, os.path.dirname(config.path or "")).replace(os.sep, "/")
        root = f'"root": {json.dumps(path)}, '
    return f'"{config.name or "mcpServer"}": {{{root}"command": {program}, "args": [{", ".join(given)}]}}'


def _split_apart(command: str, folder: str, environ: Mapping[str, str], platform: str) -> tuple[str, ...]:
    """The words of a command that is a program with its arguments; empty if a program may have that name."""
    words = command.split()
    found = [named_program_candidates(name, folder, environ, platform) for name in (command, words[0])]
    is_named, is_program = (any(map(os.path.isfile, paths)) for paths in found)
    return tuple(words) if words[1:] and is_program and not is_named else ()


def _manifest_in(root: str) -> str | None:
    return next((name for name in EXAMPLES if os.path.isfile(os.path.join(root, name))), None)


def command_by_hand(config: Config, platform: str) -> tuple[str, ...]:
    """A command line for an example, which fits the kind of server in the folder of a config."""
    root = _named_folder(config)
    manifest = _manifest_in(root)
    if manifest == "go.mod":
        return *EXAMPLES[manifest][1], _go_program(root)
    if manifest not in (None, PYPROJECT):
        return EXAMPLES[manifest][1]
    names = names_in(root)
    if manifest is None and any(name.lower().endswith((*PROJECTS, ".cs")) for name in names):
        from .dotnet_project import projects_in

        if projects := projects_in(root, names):  # several, of which one is meant
            how = () if projects[0].lower().endswith(".cs") else ("--project",)
            return "dotnet", "run", *how, projects[0]
    found = sorted(name for name in names if name.endswith(".py"))
    script = next((name for name in (*SCRIPTS, *found) if name in found), SCRIPTS[0] if manifest else None)
    if script is None:
        programs = [name for name in names if name.endswith((".js", ".mjs"))]
        return ("node", *programs) if len(programs) == 1 else EXAMPLES[PACKAGE][1]
    own = ".venv/Scripts/python.exe" if platform == "win32" else ".venv/bin/python"
    usual = "python" if platform == "win32" else "python3"
    return own if os.path.isfile(os.path.join(root, own)) else usual, script


def _go_program(root: str) -> str:
    """The first package of a Go module that can be run, among the usual folders."""
    from glob import glob

    for folder in (".", "./cmd/*", "./*"):
        for path in sorted(glob(os.path.join(root, folder, "*.go"))):
            if not path.endswith("_test.go") and _is_go_program(path):
                below = os.path.relpath(os.path.dirname(path), root).replace(os.sep, "/")
                return "." if below == "." else f"./{below}"
    return "."


def _is_go_program(path: str) -> bool:
    try:
        return b"package main" in (line.strip() for line in read_bytes(path, MAX_BYTES).splitlines())
    except (FileNotFoundError, FileProblem):
        return False


# The kinds of packages: each gives a command line and its origin.


def _of_package(root: str) -> tuple[tuple[str, ...], str] | None:
    package, path = _read_json(root), os.path.join(root, PACKAGE)
    programs, name = package.get("bin"), package.get("name")
    chosen, key = programs, "bin"
    if isinstance(programs, dict):
        chosen = _chosen(programs, str(name).rpartition("/")[2], f"'bin' of {path}")
    if chosen is None:
        chosen, key = package.get("main"), "main"
    if chosen is None:
        return None
    if not isinstance(chosen, str) or not chosen.strip() or not can_be_given(chosen):
        raise _Problem(f"'{key}' of {path} names no file")
    return (NODE, os.path.normpath(os.path.join(root, chosen))), f"'{key}' of {path}"


def _of_pyproject(root: str, environ: Mapping[str, str], platform: str) -> tuple[tuple[str, ...], str] | None:
    project, path = _read_toml(root).get("project"), os.path.join(root, PYPROJECT)
    if not isinstance(project, dict) or not isinstance(project.get("scripts"), dict):
        return None
    scripts = project["scripts"]
    name = _chosen({script: script for script in scripts}, str(project.get("name")), f"'project.scripts' of {path}")
    if name is None:
        return None
    origin = f"'project.scripts' of {path}"
    if not can_be_given(name):
        raise _Problem(f"{origin} names no program")
    installed = (".venv", "Scripts", f"{name}.exe") if platform == "win32" else (".venv", "bin", name)
    locked = _uv_folder(root)
    for folder in (root, locked or root):
        if os.path.isfile(program := os.path.join(folder, *installed)):
            return (program,), origin
    if locked is not None and _is_there("uv", environ, platform):
        return ("uv", "run", "--project", root, name), origin
    return (name,), origin


def _uv_folder(root: str) -> str | None:
    """The folder with the lockfile and the environment of a uv project: its own, or that of its workspace."""
    from .repository import repository_of

    above = repository_of(root, "").upwards(os.path.realpath(root))
    found = next((folder for folder in above if os.path.isfile(os.path.join(folder, "uv.lock"))), None)
    return root if found == os.path.realpath(root) else found


def _project_in(root: str) -> str | None:
    """The path of the .NET project or file-based program in a folder; raises _Problem if there are several."""
    from .dotnet_project import projects_in

    found = projects_in(root, names_in(root))
    if len(found) > 1:
        raise _Problem(f"{root} has several projects: {', '.join(found[:10])}")
    return os.path.join(root, found[0]) if found else None


def _chosen(programs: Mapping[str, Any], package: str, where: str) -> Any | None:
    """The program with the name of the package, else the only one, if any; raises _Problem if there are several."""
    if package in programs or len(programs) < 2:
        return programs.get(package, next(iter(programs.values()), None))
    raise _Problem(f"{where} has several programs: {', '.join(programs)}")


def _is_there(name: str, environ: Mapping[str, str], platform: str) -> bool:
    return any(os.path.isfile(path) for path in program_candidates(name, environ, platform))


def _read_json(root: str) -> dict[str, Any]:
    path = os.path.join(root, PACKAGE)
    try:
        document = parse(read_bytes(path, MAX_BYTES))
    except FileNotFoundError:
        return {}
    except FileProblem as problem:
        raise _Problem(f"{path} cannot be read: {problem.reason}") from problem
    except JsonProblem as problem:
        raise _Problem(f"{path}:{problem.line}:{problem.column}: {problem.reason}") from problem
    if not isinstance(document, dict):
        raise _Problem(f"{path} must be an object")
    return document


def _read_toml(root: str) -> dict[str, Any]:
    path = os.path.join(root, PYPROJECT)
    try:
        content = read_bytes(path, MAX_BYTES)
    except FileNotFoundError:
        return {}
    except FileProblem as problem:
        raise _Problem(f"{path} cannot be read: {problem.reason}") from problem
    from ..system.toml import parse as parse_toml  # tomllib takes 10 ms, and only Python servers need it

    try:
        return parse_toml(content.decode("utf-8"))
    except (ValueError, RecursionError) as error:
        raise _Problem(f"{path}: {error}") from error
