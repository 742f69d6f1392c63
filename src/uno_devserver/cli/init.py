"""`init`: writes `.devtools/host.config.jsonc` for the server in a folder, a command or a URL, and shows what follows.

An existing config is never changed.
"""

from __future__ import annotations

import json
import os
import sys
from contextlib import suppress

from ..issues import Issue, UserError
from ..system.command_lines import quoted_line
from ..system.safe_paths import PathEscape, path_inside
from ..system.text import shown_url
from ..workspace.config import Config
from ..workspace.devtools_folder import CONFIG
from ..workspace.server_command import command_by_hand, package_folder, server_command
from .config import findings_in, what_follows
from .parse import check_url
from .result import Bullets, Report, Result

TYPE_CHECKING = False
if TYPE_CHECKING:
    from .parse import Invocation

SIGN_IN = "'uno-devserver login {}' signs in, if the server wants that."
HAS_KEY = "The URL has what may be a key, and is in the file now: do not commit it."
NEXT = (
    "'uno-devserver inspect' opens a page with its tools; it asks first whether the server may run.",
    "'uno-devserver mcp install <client>' registers it with an AI client, and asks the same.",
)
ROOT_COMMENT = "The folder of the server's code, seen from .devtools: its build and its sources follow from it."
WAIT_COMMENT = "Calls wait while the server restarts; without this they are answered that it restarts."
NO_COMMAND = "'{}' does not say how an MCP server in it is started."


def run(invocation: Invocation) -> Result:
    folder = invocation.folder()
    path = os.path.join(folder, CONFIG)
    if os.path.lexists(path):
        step = "Change that file; 'uno-devserver config' shows what follows from it."
        raise UserError("ConfigExists", f"There is a config already: {path}.", step)
    url = _url(invocation)
    _write(folder, path, config_text(folder, url, invocation.child))
    found = findings_in(folder)
    data = {"config": path, "problems": [{"message": text, "nextStep": step or None} for text, step in found.problems]}
    steps = NEXT
    if url is not None:
        shown = shown_url(url)
        steps = (*(() if shown == url else (HAS_KEY,)), SIGN_IN.format(shown), *NEXT)
    sections = (*what_follows(found), Bullets("Next", () if found.problems else steps))
    return Result(data, Report(f"Wrote {path}", sections), 1 if found.problems else 0)


def _url(invocation: Invocation) -> str | None:
    url = next(iter(invocation.arguments), None)
    if url is None:
        return None
    if invocation.child:
        raise UserError("BadValue", "A URL and a command are given.", "Name one of them.", exit_code=2)
    if "://" not in url:
        line = quoted_line(("uno-devserver", "init", "--", url))
        step = f"Write a URL with http:// or https://, or a command behind '--': {line}"
        raise UserError("BadValue", f"'{url}' is no URL.", step, exit_code=2)
    check_url(url, "the URL")
    return url


def config_text(folder: str, url: str | None, command: tuple[str, ...]) -> str:
    """The config for a URL, a command that runs in the folder, or else the package in or below the folder."""
    if url is not None:
        return _text({"mcpServer": {"url": url}})
    root = package_folder(folder)
    if not command:
        config = Config(path=os.path.join(folder, CONFIG), server_root=root or folder)
        if root is None or isinstance(server_command(config, os.environ, sys.platform), Issue):
            line = quoted_line(("uno-devserver", "init", "--", *command_by_hand(config, sys.platform)))
            raise UserError("NoServer", NO_COMMAND.format(root or folder), f"Name its command, as in: {line}")
    seen = os.path.relpath(root or folder, os.path.dirname(os.path.join(folder, CONFIG))).replace(os.sep, "/")
    named = {"mcpServer": {"command": command[0], "args": [*command[1:]]}} if command else {}
    return _text({"mcpServerRoot": seen, **named, "proxy": {"waitCalls": True}})


def _text(settings: dict[str, object]) -> str:
    comments = {"mcpServerRoot": ROOT_COMMENT, "proxy": WAIT_COMMENT}
    lines = []
    for name, value in settings.items():
        lines += [f"  // {comments[name]}"] if name in comments else []
        lines.append(f"  {json.dumps(name)}: {json.dumps(value, ensure_ascii=False)},")
    return "\n".join(["{", *lines, "}", ""]).replace(",\n}", "\n}")


def _write(folder: str, path: str, text: str) -> None:
    """Create the file with the rights that this user's new files have; raises UserError if it cannot be."""
    again = "Correct that, then run 'uno-devserver init' again."
    try:
        data = text.encode()
        os.makedirs(os.path.dirname(path_inside(folder, path)), exist_ok=True)
        with open(path, "xb") as stream:
            try:
                stream.write(data)
                stream.flush()
            except BaseException:
                with suppress(OSError):
                    os.unlink(path)
                raise
    except UnicodeEncodeError as error:
        message = f"{path} is not written: a name that would be in it is no text."
        raise UserError("ConfigNotWritten", message, again) from error
    except PathEscape as problem:
        message, step = f"{path} cannot be written: {problem}.", "Remove the link, or run 'init' where it leads to."
        raise UserError("ConfigNotWritten", message, step) from problem
    except OSError as error:
        raise UserError("ConfigNotWritten", f"{path} cannot be written: {error.strerror}.", again) from error
