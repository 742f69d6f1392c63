"""`config`: shows the workspace's config, each of its settings, its effects and its problems."""

from __future__ import annotations

import json
import os
import re
import sys
from enum import Enum

from ..hotreload.build_command import build_of
from ..hotreload.sources.finder import PackageKind, evaluation_of, find_sources, kind_of
from ..hotreload.sources.globs import Globs
from ..hotreload.watched_package import Role
from ..issues import REMEDIES, Issue, UserError, fatal
from ..proxy.options import ProxyOptions
from ..proxy.reload.watched_code import find_watched_code, packages_of
from ..proxy.upstream.base import has_work_for_host
from ..system.folders import folders
from ..system.programs import named_program_candidates
from ..system.text import (
    HIDDEN,
    shown_text,
    shown_url,
    shown_variable,
    shown_words,
    variable_to_agree_to,
    words_to_agree_to,
)
from ..system.values import Value
from ..workspace.command_package import script_watcher
from ..workspace.config import FIELDS, ClientCommand, Config, ServerCommand, read_config
from ..workspace.npm_packages import TSCONFIGS
from ..workspace.paths import is_inside
from ..workspace.repository import MANIFESTS
from ..workspace.resolver import ResolutionKind, resolve
from ..workspace.server_command import header_problems, package_folder, server_command, without_own_reload
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

    Watched = tuple[tuple[WatchedPackage, BuildCommand | None, Sources], ...]  # packages with builds and files

SCHEMA = "host.config.schema.json"
NOTHING_STARTED = "Correct the file (comments and trailing commas are allowed); until then proxies start no server."
COMPARED_PATTERNS = 100  # of a setting, of which a remark says that they fit no file; each is compared with all files
WRITE_CONFIG = "Run 'uno-devserver init', which writes one."
RUN_WITHOUT = (
    "Or run the server without one: 'uno-devserver inspect -- <its command>' for a page, 'uno-devserver mcp start "
    "--watch -- <its command>' for a client; 'uno-devserver config -- <its command>' shows what is watched."
)
_A_HOST = "a Host, with the workspace's add-ins; mcpServerRoot or mcpServer would name another server"


def run(invocation: Invocation) -> Result:
    if invocation.on("schema"):
        return _schema()
    if invocation.child:
        return _typed(invocation)
    workspace = workspace_of(invocation)
    if not workspace.resolved:
        raise no_config(workspace)
    found = _look(workspace)
    return Result(_data(found), _report(found, files=invocation.on("files")), 1 if found.problems else 0)


def findings_in(folder: str) -> ConfigFindings:
    """What follows from the config in the folder."""
    return _look(resolve(folder, explicit=True))


def _schema() -> Result:
    package = os.path.dirname(os.path.dirname(os.path.abspath(__file__)))
    with open(os.path.join(package, "workspace", SCHEMA), encoding="utf-8") as stream:
        text = stream.read()
    return Result(json.loads(text), text.rstrip("\n"))


def no_config(workspace: Workspace) -> UserError:
    folder, issue = workspace.requested_directory, workspace.issues[0]
    if not is_undeclared_package(workspace):
        message = f"There is no workspace, so there is no config. {issue.message}"
        return UserError(issue.code, message, issue.remediation)
    message = f"There is no config for {folder}, the folder of a package."
    return UserError(issue.code, message, f"{WRITE_CONFIG} {RUN_WITHOUT}")


def is_undeclared_package(workspace: Workspace) -> bool:
    """Whether the folder is no workspace, and has a package whose server a config could name."""
    if workspace.resolved or workspace.kind is ResolutionKind.Ambiguous:
        return False
    folder, has_solution = workspace.requested_directory, workspace.kind is not ResolutionKind.NoCandidates
    is_package = any(os.path.isfile(os.path.join(folder, name)) for name in MANIFESTS)
    if has_solution and is_package:  # an app that lacks its global.json may have one, for its tools
        return False
    return is_package or package_folder(folder) is not None


def _typed(invocation: Invocation) -> Result:
    """What hot reload of a typed command watches and builds."""
    options = ProxyOptions(invocation.folder(), command=invocation.child, watch=True)
    code = find_watched_code(options, None, os.environ)
    line = without_own_reload(options.command)
    rows = [Row("server", shell_line(shown_words(line))), Row("runs in", options.directory)]
    sources: Watched = ()
    if isinstance(code, str):
        rows.append(Row("hot reload", f"off: {code}"))
    else:
        sources = tuple((package, build, find_sources(package)) for package, build in _built(code.packages))
        how = f"by {code.config.path}" if code.config.path else "by --watch"
        rows += [Row("hot reload", f"on, {how}"), *_source_rows(sources)]
    remarks = tuple(_reload_remarks(options.command, line, options.directory))
    found = [(*files.problems, build.problem if build else "") for _, build, files in sources]
    problems = tuple(problem for each in found for problem in each if problem)
    data = {
        "server": {"command": list(shown_words(line)), "cwd": options.directory},
        "hotReload": not isinstance(code, str),
        "packages": _package_data(sources),
        "remarks": list(remarks),
        "problems": [{"message": problem, "nextStep": None} for problem in problems],
    }
    sections = (
        Section("", tuple(rows)),
        *(_listed(sources) if invocation.on("files") else ()),
        Bullets("Remarks", remarks),
        Bullets("Problems", problems, Style.BAD),
    )
    title = f"The command {shell_line(shown_words(options.command))}"
    return Result(data, Report(title, sections), 1 if problems else 0)


def _reload_remarks(given: Sequence[str], line: Sequence[str], folder: str) -> Iterator[str]:
    """Yield what was left out of a command because it would reload the server, or should be."""
    left_out = [*given]
    for word in line:
        left_out.remove(word)
    if left_out:
        what = shell_line(shown_words(left_out))
        yield f"'{what}' is left out of the command: hot reload restarts the server, and its session goes on."
    watcher, alone = script_watcher(line, folder) or ((), ())
    if watcher:
        instead = f"'{shell_line(shown_words(alone))}'" if alone else "the server's own command"
        yield (
            f"The script runs '{shell_line(shown_words(watcher))}', which restarts the server itself and loses its "
            f"session; write {instead} instead."
        )


def _look(workspace: Workspace) -> ConfigFindings:
    folder = workspace.working_directory
    config = read_config(workspace.config)
    config = config.replace(issues=config_issues(config, workspace))
    commands = commands_of(folder, config)
    found = ConfigFindings(
        workspace,
        folder,
        config,
        "" if is_trusted(os.environ, folder) else refusal(folders().state, folder),
        commands,
        tuple((package, build, find_sources(package)) for package, build in commands.packages),
    )
    return found.replace(problems=tuple(dict.fromkeys(_problems(found))), remarks=tuple(_remarks(found)))


class ConfigFindings(Value):
    workspace: Workspace
    folder: str  # the folder of the workspace
    config: Config
    refusal: str  # the end of a sentence: why the workspace's code may not run; empty if it may
    commands: ConfigCommands
    sources: Watched
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
    """Of the config itself, or of one entry of its `servers`."""

    server: ServerLine | Issue | None  # None if the config names no server
    packages: tuple[tuple[WatchedPackage, BuildCommand | None], ...]  # the watched packages, with their builds
    typed: tuple[WatchedPackage, BuildCommand | None] | None  # of a server whose command follows `mcp start --`
    client: tuple[tuple[str, ...], str] | None  # the client's command line, and the folder in which it runs
    env_file: str | None = None  # the file with variables of the server
    url: str | None = None  # of a server that is only connected to
    headers: tuple[tuple[str, str], ...] = ()  # of requests to the server, as they are shown
    name: str | None = None  # of the entry
    servers: tuple[ConfigCommands, ...] = ()  # those of the entries

    @property
    def whose(self) -> str:
        return "the server" if self.name is None else f"the server '{self.name}'"

    @property
    def server_build(self) -> BuildCommand | None:
        return next((build for package, build in self.packages if package.role is Role.SERVER), None)

    def unknown(self) -> list[Issue]:
        """Why it is not known how servers are started."""
        return [each.server for each in (self, *self.servers) if isinstance(each.server, Issue)]

    def in_words(self) -> list[str]:
        words = []
        name = "" if self.name is None else f" '{self.name}'"
        sent = f", with {', '.join(f'{name}: {value}' for name, value in self.headers)}" if self.headers else ""
        if self.url is not None:
            sent += f" (variables also from {self.env_file})" if self.env_file and sent else ""
            words.append(f"A connection to the MCP server{name} at {shown_text(self.url)}{sent}")
        elif isinstance(self.server, Issue):
            words.append(f"The MCP server{name}, as soon as its package says how it is started")
        elif self.server is not None:
            variables = [
                shell_line((f"{name}={variable_to_agree_to(name, value, self.server.line)}",))
                for name, value in self.server.environment
            ]
            environment = f", with {' '.join(variables)}" if variables else ""
            if self.env_file is not None:
                environment += f", with {_names(self.server)} from {self.env_file}"
            line = shell_line(words_to_agree_to(self.server.line))
            requests = sent and f"; requests{sent}"
            words.append(f"The MCP server{name}: {line}, in {self.server.folder}{environment}{requests}")
        watched = [
            (self.whose if package.role is Role.SERVER else "the extension", package, build)
            for package, build in self.packages
        ]
        if self.typed is not None:
            watched.append(("a server that you start by 'mcp start -- <command>'", *self.typed))
        for whose, package, build in watched:
            if build is not None:
                fails = f" (cannot run: {build.problem})" if build.problem else ""
                words.append(f"When code of {whose} has changed: {_build_line(build)}{fails}")
            if evaluation := evaluation_of(package):
                words.append(f"To find the code of {whose}: {evaluation}, in {package.root}")
        if self.client is not None:
            words.append(f"The client: {shell_line(words_to_agree_to(self.client[0]))}, in {self.client[1]}")
        return [*words, *(line for entry in self.servers for line in entry.in_words())]


def commands_of(folder: str, config: Config) -> ConfigCommands:
    """The commands that this program runs because of the config of the workspace in `folder`."""
    reloads = config.hot_reload.enabled
    packages = _built(packages_of(folder, config)) if reloads else ()
    is_typed = reloads and not config.names_server and not config.servers
    typed = _built(packages_of(folder, config, typed=("<command>",))) if is_typed else ()
    client = config.client if reloads else None  # only hot reload starts the client
    starts = config.names_server and not config.connects_only
    return ConfigCommands(
        server_command(config, os.environ, sys.platform) if starts else None,
        packages,
        next((pair for pair in typed if pair[0].role is Role.SERVER), None),
        ((client.command, *client.args), config.client_folder or folder) if client else None,
        config.server.env_file if config.server is not None else None,
        config.server.url if config.server is not None and config.connects_only else None,
        tuple(_shown_headers(config.server.headers if config.server is not None else ())),
        config.name,
        tuple(commands_of(folder, entry) for entry in config.servers if entry.enabled),
    )


def _shown_headers(headers: Iterable[tuple[str, str]]) -> Iterator[tuple[str, str]]:
    """The headers with the variables that they name; all else of their values is hidden."""
    for name, value in headers:
        named = " ".join(re.findall(r"\$\{[^}]*\}", value))
        scheme = re.match(r"(?i)(bearer|basic|token) (?=\$\{)", value)
        is_whole = named and value == (scheme[0] if scheme else "") + named
        yield name, value if is_whole else f"{named} {HIDDEN}".strip()


def _built(packages: Sequence[WatchedPackage]) -> tuple[tuple[WatchedPackage, BuildCommand | None], ...]:
    return tuple((package, build_of(package, os.environ, sys.platform)) for package in packages)


def _build_line(build: BuildCommand) -> str:
    """The build and, before it, those of the packages that the built one uses."""
    builds = [*build.prerequisites, *([build] if build.line else [])]
    return ", then ".join(f"{each.named}, in {each.folder}" for each in builds)


def shown_env(variables: Iterable[tuple[str, str]]) -> Iterator[tuple[str, str]]:
    return ((name, shown_variable(name, value)) for name, value in variables)


def _names(server: ServerLine) -> str:
    """The names of the variables that a file gives; their values are not shown."""
    return ", ".join(name for name, _ in server.from_file) or "no variables"


def shell_line(line: Sequence[str]) -> str:
    """The command as it is typed in a shell. Line ends are escaped, so that no argument looks like lines of output."""
    from ..system.command_lines import quoted_line

    return quoted_line(line).replace("\n", "\\n")


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
    misnamed = (issue for issue in found.workspace.issues if issue.code == "FileMisnamed")
    # A missing folder is told with its place in the file already; that no server is found in it is no news.
    told = " ".join(issue.message for issue in found.config.issues)
    unknown = (issue for issue in found.commands.unknown() if issue.message.rpartition(": ")[2].rstrip(".") not in told)
    for issue in (*misnamed, *found.config.issues, *unknown, *header_problems(found.config, os.environ)):
        typed = " ('mcp start -- <command>' does not need it.)" if issue is server and _may_be_typed(found) else ""
        yield issue.message, issue.remediation + typed
    for commands in (found.commands, *found.commands.servers):
        yield from _start_problems(found, commands)
    if found.commands.client is not None:
        line, folder = found.commands.client
        yield from _program(found, "client", "client", line[0], folder, os.environ)
    for package, build, files in found.sources:
        if not os.path.isdir(package.root):  # already reported as an issue of the config
            continue
        yield from ((problem, "") for problem in files.problems)
        if build is not None and build.problem:
            yield build.problem, ""


def _start_problems(found: ConfigFindings, commands: ConfigCommands) -> Iterator[tuple[str, str]]:
    """Yield why the server of the config, or of one entry of its `servers`, cannot be started."""
    server = commands.server
    if server is None or isinstance(server, Issue):
        return
    who = commands.whose.removeprefix("the ")
    section = "mcpServer" if commands.name is None else f"servers.{commands.name}"
    missing, build = _missing_file(server), commands.server_build
    if missing is None:
        yield from _program(found, who, section, server.line[0], server.folder, server.environ(os.environ))
    elif build is None or not build.writes:
        own = f", and '{build.named}' does not write it" if build else ""
        step = f"Correct its path, or name a build that writes it as {section}.build."
        yield f"The {who} cannot be started: there is no file {missing}{own}.", step


def _remarks(found: ConfigFindings) -> Iterator[str]:
    """Yield remarks on unusual settings that may be intended."""
    server, build = found.commands.server, found.commands.server_build
    if server is not None and not isinstance(server, Issue) and found.config.server is not None:
        own = found.config.server
        given = (own.command, *own.args) if own.command is not None else server.line
        yield from _reload_remarks(given, server.line if own.command is not None else given, server.folder)
    if build is not None and build.writes and server is not None and not isinstance(server, Issue):
        missing = _missing_file(server)
        if missing is not None:
            elsewhere = _written_elsewhere(build.folder, missing, server.origin)
            yield f"{missing} does not exist yet; {build.named} is run when the server is first needed.{elsewhere}"
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


def _missing_file(server: ServerLine) -> str | None:
    """The first file that the command starts and that does not exist; of a program on Windows, its ending may lack."""
    program = server.line[0]
    candidates = named_program_candidates(program, server.folder, server.environ(os.environ), sys.platform)
    paths = [path for path in server.started() if not os.path.exists(path)]
    if any(map(os.path.isfile, candidates)):
        paths = [path for path in paths if path != os.path.normpath(os.path.join(server.folder, program))]
    return next(iter(paths), None)


def _written_elsewhere(folder: str, missing: str, origin: str) -> str:
    """A sentence about the folder that TypeScript writes into, if the missing file is not in it."""
    from ..hotreload.sources.typescript.disk import Disk
    from ..hotreload.sources.typescript.tsconfig import read_tsconfig

    path = next((path for name in TSCONFIGS if os.path.isfile(path := os.path.join(folder, name))), None)
    written = read_tsconfig(path, Disk()).options.get("outDir") if path else None
    if not isinstance(written, str) or is_inside(missing, os.path.normpath(os.path.join(folder, written))):
        return ""
    return f" But {path} has it write into {written}: if it does not write that file, correct {origin}."


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
    for pattern in patterns[:COMPARED_PATTERNS]:
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
            Section("Settings", tuple(_settings(found.config))),
            *what_follows(found, files=files),
        ),
    )


def start_problems(folder: str) -> tuple[str, ...]:
    """Why servers of the config in the folder cannot be started, in sentences."""
    workspace = resolve(folder, explicit=True)
    config = read_config(workspace.config)
    commands = commands_of(workspace.working_directory, config)
    found = ConfigFindings(workspace, workspace.working_directory, config, "", commands, ())
    return tuple(dict.fromkeys(f"{message} {step}".strip() for message, step in _problems(found)))


def what_follows(found: ConfigFindings, *, files: bool = False) -> Iterator[Section | Bullets]:
    """The parts of a report that `config` and `init` share."""
    yield Section("What follows", tuple(_follows(found)))
    if files:
        yield from _listed(found.sources)
    yield Bullets("Remarks", found.remarks)
    yield Bullets("Problems", tuple(_problem(*problem) for problem in found.problems), Style.BAD)


def _listed(watched: Watched) -> Iterator[Bullets]:
    for package, _, sources in watched:
        yield Bullets(f"Sources of the {package.role.value}, from {sources.root}", tuple(sorted(sources.files)))


def _settings(config: Config) -> Iterator[Row]:
    given = [field for field in FIELDS if field.title in config.given]
    for field in given:
        value = _value(config, field)
        yield Row(field.title, value if isinstance(value, str) else json.dumps(value))
    if len(given) < len(FIELDS):
        yield Row("all others" if given else "all", "their defaults, which docs/configuration.md and --json list")


def _follows(found: ConfigFindings) -> Iterator[Row]:
    server, client = found.commands.server, found.commands.client
    if found.refusal:
        yield Row("trusted", f"no: {found.refusal}; run {AGREE} to agree", style=Style.WARN)
    else:
        yield Row("trusted", "yes", style=Style.GOOD)
    if found.commands.url is not None:
        yield Row("server", f"at {shown_url(found.commands.url)}, which is only connected to")
        yield from (Row("header", f"{name}: {value}") for name, value in found.commands.headers)
    elif server is None or isinstance(server, Issue):
        unknown = server is not None or any(issue.fatal for issue in found.config.issues)
        only = _has_only_servers(found)
        yield Row("server", "not known" if unknown else "only those of 'servers'" if only else _A_HOST)
    else:
        yield Row("server", shell_line(shown_words(server.line)))
        yield Row("runs in", server.folder)
        if found.commands.env_file is not None:
            yield Row("variables", f"{_names(server)} from {found.commands.env_file}")
        if found.config.server is not None and found.config.server.url is not None:
            yield Row("listens at", shown_url(found.config.server.url))
        yield Row("as said by", server.origin)
    if not _has_only_servers(found):  # each of these says its own
        yield Row("hot reload", found.strategy)
    yield from _source_rows(found.sources)
    if client is not None:
        yield Row("client", f"{shell_line(shown_words(client[0]))}, in {client[1]}")
    for entry in found.config.servers:
        yield Row(f"server '{entry.name}'", _entry_line(entry, found.commands))


def _source_rows(watched: Watched) -> Iterator[Row]:
    for package, build, files in watched:
        role = package.role.value
        if not os.path.isdir(package.root):
            yield Row(f"sources of the {role}", f"none: there is no folder {package.root}")
            continue
        own, *used = files.packages
        yield Row(f"sources of the {role}", _counted(own))
        yield from (Row("with the package", _counted(each)) for each in used)
        none = "none, by mcpServer.build" if package.build == () else "none"
        if package.build is None and kind_of(package) is PackageKind.PYTHON:
            none = "none; new code with a syntax error is not started"
        yield Row(f"build of the {role}", _build_line(build) if build else none)


def _has_only_servers(found: ConfigFindings) -> bool:
    config = found.config
    known = not config.names_server and not any(issue.fatal for issue in config.issues)
    return bool(config.servers) and known and not has_work_for_host(found.workspace)


def _entry_line(entry: Config, commands: ConfigCommands) -> str:
    """What is served by an entry of `servers`."""
    known = next((each for each in commands.servers if each.name == entry.name), None)
    if known is None:
        return "not served, by enabled"
    if known.url is not None:
        return f"connected to at {shown_url(known.url)}"
    if known.server is None or isinstance(known.server, Issue):
        return "not known"
    watched = [f"{kind_of(package).value} in {package.root}" for package, _ in known.packages]
    reloads = f"; hot reload of {', '.join(watched)}" if watched else "; no hot reload"
    return f"{shell_line(shown_words(known.server.line))}, in {known.server.folder}{reloads}"


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
        "tools": config.tools,
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
    if field.name == "headers":
        return dict(_shown_headers(value))
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
        "connectsTo": found.commands.url and shown_url(found.commands.url),
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
        "servers": [
            {"name": entry.name, "enabled": entry.enabled, "serves": _entry_line(entry, found.commands)}
            for entry in config.servers
        ],
        "hotReload": found.reloads,
        "packages": _package_data(found.sources),
        "client": {"command": list(shown_words(client[0])), "cwd": client[1]} if client else None,
        "remarks": list(found.remarks),
        "problems": [{"message": message, "nextStep": step or None} for message, step in found.problems],
    }


def _package_data(watched: Watched) -> list[dict[str, object]]:
    return [
        {
            "role": package.role.value,
            "root": files.root,
            "kind": kind_of(package).value,
            "files": sorted(files.files),
            "uses": [{"root": used.root, "kind": used.kind, "files": used.files} for used in files.packages[1:]],
            "build": build.named if build else None,
        }
        for package, build, files in watched
    ]
