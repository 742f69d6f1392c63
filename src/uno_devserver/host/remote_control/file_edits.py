"""Edits source files for apps, inside the workspace only, and none that is hidden or lies in a hidden folder.

What begins with a dot configures tools, which run code by it although no source was edited: .git and .githooks
(hooks), .devtools (add-ins, commands), .vs, .vscode, .idea (tasks), .cursor, .claude, .mcp.json (servers and hooks of
agents), .config (tools of dotnet), .devcontainer, .envrc. A list would never be complete, and no app has source there.

All edits of one file are made, in order, or none of them; each file is replaced in one step, so that no program reads
half a change. Every edit has a result, and a refused one leaves its file unchanged. Encoding, byte order mark, line
ends, owner and permissions of a file are kept.
"""

from __future__ import annotations

import os
import re
from collections.abc import Sequence

from ...system.files import FileProblem, encoding_of, read_bytes, remove_file, rewrite, write_atomic
from ...system.safe_paths import PathEscape, hidden_part, path_inside
from ...system.values import Value

# The result codes of the protocol.
DONE, NO_CHANGES, BAD_REQUEST, NOT_FOUND, FAILED, NOT_AVAILABLE = 200, 204, 400, 404, 500, 503

MAX_SIZE = 16 * 1024 * 1024  # in bytes before and characters after the edit; generated sources have a few MB
MAX_EDITS = 1000  # the most in one request; a rename in a large solution changes a few hundred files

NO_WORKSPACE = "This Host was started without a workspace, so it edits no files. Start it with --solution."
_SURROGATE = re.compile("[\ud800-\udfff]")
_UNTOUCHED = "Another edit of this file was refused, so none was made."


class FileEdit(Value):
    path: str  # absolute, or relative to the workspace
    old: str | None  # the text to replace, wherever it occurs; None for the whole file
    new: str | None  # None to delete the file
    may_create_or_delete: bool = False


class EditResult(Value):
    path: str
    result: int
    error: str | None = None


class EditRefused(Exception):
    """An edit cannot be made; `result` is the protocol's code."""

    def __init__(self, result: int, reason: str) -> None:
        super().__init__(reason)
        self.result = result


def apply_edits(workspace: str | None, edits: Sequence[FileEdit]) -> tuple[EditResult, ...]:
    """Make the edits and return their results, in the same order."""
    results: dict[int, EditResult] = {}
    by_file: dict[str, list[int]] = {}
    for number, edit in enumerate(edits):
        try:
            by_file.setdefault(_locate(workspace, edit.path), []).append(number)
        except EditRefused as refused:
            results[number] = EditResult(edit.path, refused.result, str(refused))
    for path, numbers in by_file.items():
        outcome = _edit_file(path, [edits[number] for number in numbers])
        results.update(zip(numbers, outcome, strict=True))
    return tuple(results[number] for number in range(len(edits)))


def _locate(workspace: str | None, path: str) -> str:
    if workspace is None:
        raise EditRefused(NOT_AVAILABLE, NO_WORKSPACE)
    if _SURROGATE.search(path):
        raise EditRefused(BAD_REQUEST, "The path contains half a surrogate pair, which no path can contain.")
    try:
        real = path_inside(workspace, path)
        hidden = hidden_part(workspace, real)
    except PathEscape as escape:
        raise EditRefused(
            BAD_REQUEST, f"'{path}' is refused: {escape}. Only files inside {workspace} are edited."
        ) from escape
    except OSError as error:
        raise EditRefused(BAD_REQUEST, f"'{path}' is refused: it cannot be looked up: {error.strerror}.") from error
    if hidden is not None:
        raise EditRefused(
            BAD_REQUEST,
            f"'{path}' is refused: '{hidden}' is hidden. Hidden files and folders are configuration of tools, and no "
            f"app edits them; use an editor.",
        )
    return real


def _edit_file(path: str, edits: Sequence[FileEdit]) -> tuple[EditResult, ...]:
    try:
        before = _read(path)
        results, after = plan_edits(edits, before)
        if after != before:
            _write(path, after)
        return results
    except EditRefused as refused:
        result, reason = refused.result, str(refused)
    except (OSError, ValueError) as error:  # ValueError: see `encode_text`
        result, reason = FAILED, f"'{path}' could not be changed: {getattr(error, 'strerror', None) or error}."
    return tuple(EditResult(edit.path, result, reason) for edit in edits)


def plan_edits(edits: Sequence[FileEdit], file: TextFile | None) -> tuple[tuple[EditResult, ...], TextFile | None]:
    """The results of all edits of one file, and the file after them, which is unchanged if one is refused."""
    results = []
    after = file
    for number, edit in enumerate(edits):
        try:
            changed = _changed(edit, after)
        except EditRefused as refused:
            untouched = [EditResult(other.path, BAD_REQUEST, _UNTOUCHED) for other in edits]
            untouched[number] = EditResult(edit.path, refused.result, str(refused))
            return tuple(untouched), file
        results.append(EditResult(edit.path, NO_CHANGES if changed == after else DONE))
        after = changed
    return tuple(results), after


def _changed(edit: FileEdit, file: TextFile | None) -> TextFile | None:
    for text in (edit.old, edit.new):
        if text is not None and _SURROGATE.search(text):
            raise EditRefused(BAD_REQUEST, "The text contains half a surrogate pair, which no file can contain.")
    if edit.new is None:
        _check_deletion(edit, file)
        return None
    if edit.old is None:
        return _written(edit, edit.new, file)
    if file is None:
        raise _missing(edit)
    return _replaced(edit, edit.old, edit.new, file)


def _check_deletion(edit: FileEdit, file: TextFile | None) -> None:
    if not edit.may_create_or_delete:
        raise EditRefused(
            BAD_REQUEST, "NewText is missing, and IsCreateDeleteAllowed does not allow to delete the file."
        )
    if file is None:
        raise _missing(edit)
    if edit.old and edit.old not in file.text and file.fitted(edit.old) not in file.text:
        raise EditRefused(BAD_REQUEST, f"'{edit.path}' does not contain OldText (any more), so it was not deleted.")


def _written(edit: FileEdit, text: str, file: TextFile | None) -> TextFile:
    if len(text) > MAX_SIZE:
        raise _too_large(edit)
    if file is not None:
        # A program that read the byte order mark as a character may send it back.
        return file.replace(text=file.fitted(text.removeprefix("\ufeff") if file.mark else text))
    if not edit.may_create_or_delete:
        raise _missing(edit)
    return TextFile(text)


def _replaced(edit: FileEdit, old: str, new: str, file: TextFile) -> TextFile:
    if not old:
        raise EditRefused(BAD_REQUEST, "OldText is empty; leave it out to replace the whole file.")
    new = file.fitted(new)
    if old not in file.text:
        old = file.fitted(old)  # the app may run on a system with other line ends
    count = file.text.count(old)
    if count == 0:
        raise EditRefused(BAD_REQUEST, f"'{edit.path}' does not contain OldText (any more), so nothing was changed.")
    if len(file.text) + count * (len(new) - len(old)) > MAX_SIZE:
        raise _too_large(edit)
    return file.replace(text=file.text.replace(old, new))


def _missing(edit: FileEdit) -> EditRefused:
    return EditRefused(NOT_FOUND, f"'{edit.path}' does not exist.")


def _too_large(edit: FileEdit) -> EditRefused:
    return EditRefused(BAD_REQUEST, f"'{edit.path}' would have more than {MAX_SIZE:,} characters.")


def _read(path: str) -> TextFile | None:
    try:
        return decode_text(read_bytes(path, MAX_SIZE))
    except FileNotFoundError:
        return None
    except FileProblem as problem:
        raise EditRefused(BAD_REQUEST, f"'{path}' is not edited: {problem.reason}.") from problem
    except UnicodeDecodeError as error:
        raise EditRefused(BAD_REQUEST, f"'{path}' is not edited: it is not valid {error.encoding} text.") from error


def _write(path: str, file: TextFile | None) -> None:
    exists = os.path.exists(path)
    if exists and os.stat(path).st_mode & 0o222 == 0:  # unlinking does not check the permissions of the file
        raise EditRefused(BAD_REQUEST, f"'{path}' is read-only.")
    if file is None:
        remove_file(path)
    elif exists:
        rewrite(path, encode_text(file))
    else:
        try:
            os.makedirs(os.path.dirname(path), exist_ok=True)
        except RecursionError:
            raise EditRefused(BAD_REQUEST, f"'{path}' is refused: it has too many folders.") from None
        write_atomic(path, encode_text(file), 0o666)  # the umask applies, as for any new source file


# Error handlers that keep invalid input: single bytes in UTF-8, lone surrogates in the others.
_LOSSLESS = {"utf-8": "surrogateescape"}


class TextFile(Value):
    text: str
    encoding: str = "utf-8"
    mark: bytes = b""

    @property
    def line_end(self) -> str | None:
        """The line end of all lines; None if they are mixed, or if there is only one line."""
        windows = self.text.count("\r\n")
        if windows == self.text.count("\n"):
            return "\r\n" if windows else None
        return "\n" if windows == 0 else None

    def fitted(self, text: str) -> str:
        """The text with the line ends of this file."""
        return text if self.line_end is None else re.sub(r"\r?\n", self.line_end, text)


def decode_text(data: bytes) -> TextFile:
    """Decode a file by its byte order mark; UnicodeDecodeError only for invalid UTF-16 and UTF-32."""
    mark, encoding = encoding_of(data)
    return TextFile(data[len(mark) :].decode(encoding, _LOSSLESS.get(encoding, "surrogatepass")), encoding, mark)


def encode_text(file: TextFile) -> bytes:
    """Encode a file; ValueError if the text cannot be encoded, or would be read in another encoding next time."""
    data = file.mark + file.text.encode(file.encoding, _LOSSLESS.get(file.encoding, "surrogatepass"))
    _, encoding = encoding_of(data)
    if encoding != file.encoding:
        raise ValueError(f"its first bytes would be the mark of {encoding}, and it is in {file.encoding}")
    return data
