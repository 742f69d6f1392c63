"""`config`: shows the workspace's config, each of its settings, its effects and its problems."""

from __future__ import annotations

import json
import os
import sys
from enum import Enum

from ..hotreload.build_command import build_of
from ..hotreload.sources.finder import evaluation_of, find_sources, kind_of
from ..hotreload.sources.globs import Globs
from ..hotreload.watched_package import Role
from ..issues import REMEDIES, Issue, UserError, fatal
from ..proxy.reload.watched_code import packages_of
from ..system.folders import folders
from ..system.programs import named_program_candidates
from ..system.text import shown_url, shown_variable, shown_words, variable_to_agree_to, words_to_agree_to
from ..system.values import Value
from ..workspace.config import FIELDS, ClientCommand, Config, ServerCommand, read_config
from ..workspace.server_command import server_command
from ..workspace.trust import AGREE, is_trusted, refusal
from .parse import workspace_of
from .result import Bullets, Report, Result, Row, Section
from .terminal import Style

TYPE_CHECKING = False
if TYPE_CHECKING:
    from collections.abc import Iterable, Iterator, Mapping, Sequence

    from ..hotreload.build_command import BuildCommand
    from ..hotreload.sources.source_tree import SourcePackage, Sources
    from ..hotreload.watched_package import WatchedPackage
    from ..workspace.config import Field
    from ..workspace.resolver import Workspace
    from ..workspace.server_command import ServerLine
    from .parse import Invocation

SCHEMA = "host.config.schema.json"
NOTHING_STARTED = "Correct the file (comments and trailing commas are allowed); until then proxies start no server."
# The effect of a setting that has no value.
_OTHERWISE = {
    "clientWorkspace": "extensionPath",
    "extensionPath": "none",
    "mcpServerRoot": "none",
    "mcpServer.command": "what the package names",
    "mcpServer.cwd": "mcpServerRoot, else the workspace",
    "mcpServer.envFile": "none",
    "mcpServer.url": "it uses standard input and output",
    "mcpServer.build": "the build of the package",
    "client.command": "none",
    "client.cwd": "clientWorkspace, else extensionPath",
    "client.readyPattern": "ready when it runs",
    "hotReload.mcpServerName": "the package's name, else what it calls itself, else its folder's",
    "pipeline.concurrency": "one at a time if there is an extensionPath or a client, else unlimited",
    "inspector.port": "6274, or the next that is free",
}
_A_HOST = "a Host, with the workspace's add-ins; mcpServerRoot or mcpServer would name another server"
# An argument with one of these endings is a file that the program runs; others may mean anything.
_SCRIPTS = (".js", ".mjs", ".cjs", ".ts", ".mts", ".py", ".dll")


def run(invocation: Invocation) -> Result:
    if invocation.on("schema"):
        return _schema()
    workspace = workspace_of(invocation)
    if not workspace.resolved:
        issue = workspace.issues[0]
        raise UserError(issue.code, f"There is no workspace, so there is no config. {issue.message}", issue.remediation)
    found = _look(workspace)
    return Result(_data(found), _report(found, files=invocation.on("files")), 1 if found.problems else 0)


def _schema() -> Result:
    package = os.path.dirname(os.path.dirname(os.path.abspath(__file__)))
    with open(os.path.join(package, "workspace", SCHEMA), encoding="utf-8") as stream:
        text = stream.read()
    return Result(json.loads(text), text.rstrip("\n"))


def _look(workspace: Workspace) -> ConfigFindings:
    folder = workspace.working_directory
    config = read_config(workspace.config)
    config = config.replace(issues=config_issues(config, workspace))
    commands = commands_of(folder, config)
    found = ConfigFindings(
        folder,
        config,
        "" if is_trusted(os.environ, folder) else refusal(folders().state, folder),
        commands,
        tuple((package, build, find_sources(package)) for package, build in commands.packages),
    )
    return found.replace(problems=tuple(dict.fromkeys(_problems(found))), remarks=tuple(_remarks(found)))


class ConfigFindings(Value):
    folder: str  # the folder of the workspace
    config: Config
    refusal: str  # the end of a sentence: why the workspace's code may not run; empty if it may
    commands: ConfigCommands
    sources: tuple[tuple[WatchedPackage, BuildCommand | None, Sources], ...]  # the watched packages
    problems: tuple[tuple[str, str], ...] = ()  # pairs of a problem and its next step, which may be empty
    remarks: tuple[str, ...] = ()

    @property
    def reloads(self) -> bool:
        return self.config.hot_reload.enabled and bool(self.sources)

    @property
    def strategy(self) -> str:
        if self.reloads:
            return f"on, by {self.config.hot_reload.strategy.value}"
        return "off: there is no code to watch" if self.config.hot_reload.enabled else "off, by hotReload.enabled"


# The commands that the config makes this program run.


class ConfigCommands(Value):
    server: ServerLine | Issue | None  # None if the config names no server
    packages: tuple[tuple[WatchedPackage, BuildCommand | None], ...]  # the watched packages, with their builds
    typed: tuple[WatchedPackage, BuildCommand | None] | None  # of a server whose command follows `mcp start --`
    client: tuple[tuple[str, ...], str] | None  # the client's command line, and the folder in which it runs
    env_file: str | None = None  # the file with variables of the server

    def in_words(self) -> list[str]:
        words = []
        if isinstance(self.server, Issue):
            words.append(f"An MCP server. {self.server.message}")
        elif self.server is not None:
            variables = [
                shell_line((f"{name}={variable_to_agree_to(name, value, self.server.line)}",))
                for name, value in self.server.environment
            ]
            environment = f", with {' '.join(variables)}" if variables else ""
            if self.env_file is not None:
                environment += f", with {_names(self.server)} from {self.env_file}"
            line = shell_line(words_to_agree_to(self.server.line))
            words.append(f"The MCP server: {line}, in {self.server.folder}{environment}")
        watched = [
            ("the server" if package.role is Role.SERVER else "the extension", package, build)
            for package, build in self.packages
        ]
        if self.typed is not None:
            watched.append(("a server that you start by 'mcp start -- <command>'", *self.typed))
        for whose, package, build in watched:
            if build is not None:
                words.append(f"When code of {whose} has changed: {_build_line(build)}")
            if evaluation := evaluation_of(package):
                words.append(f"To find the code of {whose}: {evaluation}, in {package.root}")
        if self.client is not None:
            words.append(f"The client: {shell_line(words_to_agree_to(self.client[0]))}, in {self.client[1]}")
        return words


def commands_of(folder: str, config: Config) -> ConfigCommands:
    """The commands that this program runs because of the config of the workspace in `folder`."""
    reloads = config.hot_reload.enabled
    packages = _built(packages_of(folder, config)) if reloads else ()
    typed = _built(packages_of(folder, config, typed=True)) if reloads and not config.names_server else ()
    client = config.client if reloads else None  # only hot reload starts the client
    return ConfigCommands(
        server_command(config, os.environ, sys.platform) if config.names_server else None,
        packages,
        next((pair for pair in typed if pair[0].role is Role.SERVER), None),
        ((client.command, *client.args), config.client_folder or folder) if client else None,
        config.server.env_file if config.server is not None else None,
    )


def _built(packages: Sequence[WatchedPackage]) -> tuple[tuple[WatchedPackage, BuildCommand | None], ...]:
    return tuple((package, build_of(package, os.environ, sys.platform)) for package in packages)


def _build_line(build: BuildCommand) -> str:
    """The build and, before it, those of the packages that the built one uses."""
    builds = [*build.before, *([build] if build.line else [])]
    return ", then ".join(f"{each.named}, in {each.folder}" for each in builds)


def shown_env(variables: Iterable[tuple[str, str]]) -> Iterator[tuple[str, str]]:
    return ((name, shown_variable(name, value)) for name, value in variables)


def _names(server: ServerLine) -> str:
    """The names of the variables that a file gives; their values are not shown."""
    return ", ".join(name for name, _ in server.from_file) or "no variables"


def shell_line(line: Sequence[str]) -> str:
    """The command as it is typed in a shell. Line ends are escaped, so that no argument looks like lines of output."""
    import shlex

    return shlex.join(line).replace("\n", "\\n")


# Problems and remarks.


def config_issues(config: Config, workspace: Workspace) -> tuple[Issue, ...]:
    """The issues of the config in the order of the file; fatal ones keep proxies from starting a server."""
    if not keeps_from_starting(config, workspace):
        return config.issues
    return tuple(
        fatal(issue.code, issue.message, NOTHING_STARTED) if issue == config.unclear else issue
        for issue in config.issues
    )


def keeps_from_starting(config: Config, workspace: Workspace) -> bool:
    if config.unclear is None:
        return False
    from ..proxy.upstream.base import uses_config

    return uses_config(workspace)


def _problems(found: ConfigFindings) -> Iterator[tuple[str, str]]:
    """Yield each problem with its next step, which may be empty."""
    server = found.commands.server
    unknown = [server] if isinstance(server, Issue) and not _may_be_typed(found) else []
    for issue in (*found.config.issues, *unknown):
        yield issue.message, issue.remediation
    if server is not None and not isinstance(server, Issue):
        if server.line[0] not in server.built():  # otherwise a build makes it
            yield from _program(found, "server", "mcpServer", server.line[0], server.folder, server.environ(os.environ))
        missing = _missing_script(server)
        if missing is not None and _server_build(found) is None:
            yield f"The server cannot be started: there is no file {missing}.", "Correct its path, or build it."
    if found.commands.client is not None:
        line, folder = found.commands.client
        yield from _program(found, "client", "client", line[0], folder, os.environ)
    for package, build, files in found.sources:
        if not os.path.isdir(package.root):  # already reported as an issue of the config
            continue
        yield from ((problem, "") for problem in files.problems)
        if build is not None and build.problem:
            yield build.problem, ""


def _remarks(found: ConfigFindings) -> Iterator[str]:
    """Yield remarks on unusual settings that may be intended."""
    server, build = found.commands.server, _server_build(found)
    if isinstance(server, Issue) and _may_be_typed(found):
        typed = "This does not matter for 'uno-devserver mcp start -- <command>'. Otherwise:"
        yield f"{server.message} {typed} {server.remediation}"
    if build is not None and server is not None and not isinstance(server, Issue):
        missing = _missing_script(server)
        if missing is not None:
            yield f"{missing} does not exist yet; {build.named} is run when the server is first needed."
    for package, _, files in found.sources:
        if not files.files and os.path.isdir(package.root):
            where = f"No file in {package.root} counts as code of the {package.role.value}, so no edit is noticed"
            yield f"{where}; hotReload.include can name some."
    for setting, pattern in _idle_patterns(found):
        yield f'hotReload.{setting}: "{pattern}" fits no file; patterns begin at the root of the package.'


def _may_be_typed(found: ConfigFindings) -> bool:
    """Whether the config names only the server's code, so that the user may type the command after `mcp start --`."""
    return found.config.server is None and any(
        files.files for package, _, files in found.sources if package.role is Role.SERVER
    )


def _program(
    found: ConfigFindings, who: str, section: str, name: str, folder: str, environ: Mapping[str, str]
) -> Iterator[tuple[str, str]]:
    if any(os.path.isfile(path) for path in named_program_candidates(name, folder, environ, sys.platform)):
        return
    message = f"The {who} cannot be started: the program '{name}' is not found."
    program, *arguments = name.split()
    if arguments:
        yield message, f"Write its arguments apart, as {section}.args: the program is '{program}' then."
    else:
        yield message, f"Install it, or name another one as {section}.command in {found.config.path}."


def _missing_script(server: ServerLine) -> str | None:
    words = (word for word in server.line[1:] if word.endswith(_SCRIPTS) and not word.startswith("-"))
    script = next(iter((*server.built(), *words)), None)
    path = None if script is None else os.path.normpath(os.path.join(server.folder, script))
    return None if path is None or os.path.exists(path) else path


def _server_build(found: ConfigFindings) -> BuildCommand | None:
    return next((build for package, build, _ in found.sources if package.role is Role.SERVER), None)


def _idle_patterns(found: ConfigFindings) -> Iterator[tuple[str, str]]:
    hot_reload = found.config.hot_reload
    if not found.sources:
        return
    sources = [files for _, _, files in found.sources]
    yield from _idle("include", hot_reload.include, sources)
    yield from _idle("watch", hot_reload.watch, sources)
    if hot_reload.exclude:
        whole = [find_sources(package.replace(exclude=())) for package, _, _ in found.sources]
        yield from _idle("exclude", hot_reload.exclude, whole)


def _idle(setting: str, patterns: tuple[str, ...], sources: Sequence[Sources]) -> Iterator[tuple[str, str]]:
    for pattern in patterns:
        globs = Globs((pattern,), setting, lambda _start: "")
        told = any(
            f'hotReload.{setting}: "{pattern[:100]}"' in problem for each in sources for problem in each.problems
        )
        if not (told or globs.problems or any(globs.match(path) for each in sources for path in each.files)):
            yield setting, pattern


# The output.


def _report(found: ConfigFindings, *, files: bool) -> Report:
    path = found.config.path or "none, so the defaults count"
    return Report(
        f"The config of the workspace {found.folder}: {path}",
        (
            Section("Settings", tuple(Row(field.title, _setting(found.config, field)) for field in FIELDS)),
            Section("What follows", tuple(_follows(found))),
            *(_listed(found) if files else ()),
            Bullets("Remarks", found.remarks),
            Bullets("Problems", tuple(_problem(*problem) for problem in found.problems), Style.BAD),
        ),
    )


def _listed(found: ConfigFindings) -> Iterator[Bullets]:
    for package, _, sources in found.sources:
        yield Bullets(f"Sources of the {package.role.value}, from {sources.root}", tuple(sorted(sources.files)))


def _setting(config: Config, field: Field) -> str:
    value = _value(config, field)
    text = _OTHERWISE[field.title] if value is None else value if isinstance(value, str) else json.dumps(value)
    return text if field.title in config.given else f"{text} (default)"


def _follows(found: ConfigFindings) -> Iterator[Row]:
    server, client = found.commands.server, found.commands.client
    if found.refusal:
        yield Row("trusted", f"no: {found.refusal}; run {AGREE} to agree", style=Style.WARN)
    else:
        yield Row("trusted", "yes", style=Style.GOOD)
    if server is None or isinstance(server, Issue):
        unknown = server is not None or any(issue.fatal for issue in found.config.issues)
        yield Row("server", "not known" if unknown else _A_HOST)
    else:
        yield Row("server", shell_line(shown_words(server.line)))
        yield Row("runs in", server.folder)
        if found.commands.env_file is not None:
            yield Row("variables", f"{_names(server)} from {found.commands.env_file}")
        if found.config.server is not None and found.config.server.url is not None:
            yield Row("listens at", shown_url(found.config.server.url))
        yield Row("as said by", server.origin)
    yield Row("hot reload", found.strategy)
    for package, build, files in found.sources:
        role = package.role.value
        if not os.path.isdir(package.root):
            yield Row(f"sources of the {role}", f"none: there is no folder {package.root}")
            continue
        own, *used = files.packages
        yield Row(f"sources of the {role}", _counted(own))
        yield from (Row("with the package", _counted(each)) for each in used)
        none = "none, by mcpServer.build" if package.build == () else "none needed"
        yield Row(f"build of the {role}", _build_line(build) if build else none)
    if client is not None:
        yield Row("client", f"{shell_line(shown_words(client[0]))}, in {client[1]}")


def _counted(package: SourcePackage) -> str:
    return f"{package.kind}, {package.files} file{'' if package.files == 1 else 's'} in {package.root}"


def _problem(message: str, step: str) -> str:
    """The problem, followed by its next step unless that is the usual one, "Correct the file"."""
    return message if step in ("", REMEDIES["ConfigInvalid"]) else f"{message} {step}"


def _value(config: Config, field: Field) -> object:
    """The value in its JSON form; None if the setting is not given and has no default."""
    holders = {
        "mcpServer": config.server or ServerCommand(),
        "hotReload": config.hot_reload,
        "inspector": config.inspector,
    }
    if field.section == "client":
        holders["client"] = config.client or ClientCommand("")
    holder = holders.get(field.section, config)
    value = getattr(holder, field.name)
    if isinstance(value, Enum):
        return value.value
    if field.name == "url" and value is not None:
        return shown_url(value)
    if field.name == "build" and value == ():
        return False
    if field.name == "build" and value is not None:
        return list(words_to_agree_to(value))
    if field.name == "env":
        return dict(shown_env(value))
    if field.name == "args":
        return list(shown_words((getattr(holder, "command", None) or "", *value))[1:])
    if isinstance(value, tuple):
        return list(value)
    return None if value == "" else value


def _data(found: ConfigFindings) -> dict[str, object]:
    config, server, client = found.config, found.commands.server, found.commands.client
    return {
        "workspaceDirectory": found.folder,
        "config": config.path,
        "trusted": not found.refusal,
        "refusal": found.refusal or None,
        "settings": {
            field.title: {"value": _value(config, field), "given": field.title in config.given} for field in FIELDS
        },
        "namesServer": config.names_server,
        "server": None
        if server is None or isinstance(server, Issue)
        else {
            "command": list(shown_words(server.line)),
            "cwd": server.folder,
            "env": dict(shown_env(server.environment)),
            "envFromFile": [name for name, _ in server.from_file],
            "url": shown_url(config.server.url) if config.server and config.server.url else None,
            "origin": server.origin,
        },
        "hotReload": found.reloads,
        "packages": [
            {
                "role": package.role.value,
                "root": files.root,
                "kind": kind_of(package).value,
                "files": sorted(files.files),
                "uses": [{"root": used.root, "kind": used.kind, "files": used.files} for used in files.packages[1:]],
                "build": build.named if build else None,
            }
            for package, build, files in found.sources
        ],
        "client": {"command": list(shown_words(client[0])), "cwd": client[1]} if client else None,
        "remarks": list(found.remarks),
        "problems": [{"message": message, "nextStep": step or None} for message, step in found.problems],
    }
