"""Finds and reads global.json, which names the Uno SDK in `msbuild-sdks`.

Reading never raises: the result for a file that is missing, malformed or without Uno has an issue that names the file.
"""

from __future__ import annotations

import os

from ..issues import Issue, fatal
from ..system.files import FileProblem, read_bytes
from ..system.jsonc import JsonProblem, parse
from ..system.values import Value
from .paths import absolute, upwards

GLOBAL_JSON = "global.json"
SECTION = "msbuild-sdks"
UNO_SDKS = ("Uno.Sdk", "Uno.Sdk.Private")  # if a file names both, the first is used
MAX_BYTES = 1024 * 1024  # real files have a few hundred bytes


class UnoSdk(Value):
    """The SDK's package, which has one of two names, and its version. Both may exist with the same version."""

    package: str
    version: str


class GlobalJson(Value):
    path: str
    uno_sdk: UnoSdk | None
    issue: Issue | None
    document: object  # the whole content; None if it could not be parsed


def find_global_json(directory: str) -> str | None:
    """The nearest file global.json in the directory or above it; None if there is none. Folders are ignored."""
    paths = (os.path.join(folder, GLOBAL_JSON) for folder in upwards(absolute(directory)))
    return next((path for path in paths if os.path.isfile(path)), None)


def read_global_json(path: str) -> GlobalJson:
    try:
        document = parse(read_bytes(path, MAX_BYTES))
    except JsonProblem as problem:
        where = f"line {problem.line}, column {problem.column}"
        return _invalid(path, f"{path} is not valid JSON: {where}: {problem.reason}.")
    except FileNotFoundError:
        return _invalid(path, f"{path} does not exist.")
    except FileProblem as problem:
        return _invalid(path, f"{path} cannot be read: {problem.reason}.")
    if not isinstance(document, dict):
        return _invalid(path, f"{path} holds no JSON object: line 1, column 1 must begin with '{{'.")
    section = document.get(SECTION)
    sdks = section if isinstance(section, dict) else {}
    for package in UNO_SDKS:
        version = sdks.get(package)
        if isinstance(version, str) and _can_name_a_folder(version):
            return GlobalJson(path, UnoSdk(package, version), None, document)
    return GlobalJson(path, None, fatal("UnoSdkNotInGlobalJson", *_what_is_missing(path, sdks)), document)


def _can_name_a_folder(version: str) -> bool:
    """Whether the version can be a folder name in the NuGet cache, which must not lead out of the cache."""
    return version.isprintable() and version.strip(" .") != "" and not {"/", "\\"} & set(version)


def _invalid(path: str, message: str) -> GlobalJson:
    return GlobalJson(path, None, fatal("GlobalJsonInvalid", message), None)


def _what_is_missing(path: str, sdks: dict[str, object]) -> tuple[str, str]:
    """The sentence, and the next step where it is not the usual one."""
    for package in UNO_SDKS:
        if package in sdks:
            message = f"{path} names {package} under {SECTION}, but what stands there is no version."
            return message, f'Write its version as text, as in "{package}": "6.5.31".'
    known = {package.lower(): package for package in UNO_SDKS}
    for name in sdks:
        if name.lower() in known:
            message = f"{path} says '{name}' under {SECTION}; it must be spelled '{known[name.lower()]}'."
            return message, "Correct the name in the file."
    return f"{path} names neither {UNO_SDKS[0]} nor {UNO_SDKS[1]} under {SECTION}.", ""
