"""Reads and validates a user's definitions file; separate from `definitions`, because validation is seldom needed.

Valid definitions need no further checks. Comments and trailing commas are allowed. A name that is not known is reported
and ignored: a file may have been made for a later version, or for the .NET tool.
"""

from __future__ import annotations

import os
import re

from ..issues import UserError
from ..system.files import FileProblem, read_bytes
from ..system.jsonc import JsonProblem, parse
from ..system.log import log
from .definitions import CLIENTS, packaged, packaged_path
from .json_schema import SchemaProblem, problems
from .paths import TOKENS, tokens_of
from .profiles import HTTP, Format, Use

TYPE_CHECKING = False
if TYPE_CHECKING:
    from collections.abc import Iterator, Mapping
    from typing import Any

MAX_BYTES = 4 * 1024 * 1024  # our own file has 20 KB
SCHEMA = "$schema"  # a key that only editors use


def read_external(kind: str, path: str) -> dict[str, Any]:
    """The definitions in a file, by their names; raises UserError if the file is invalid."""
    definitions = _read(path)
    schema = f"{kind}.schema.json"
    found = list(problems(definitions, packaged(schema)))
    for one in found:
        if one.unknown:
            log.warn(f"{path}: {one.path} {one.reason} (ignored)")
    problem = next((one for one in found if not one.unknown), None) or next(_further_problems(kind, definitions), None)
    if problem is not None:
        place = f"{problem.path}: " if problem.path else ""
        raise _invalid(f"{path}: {place}{problem.reason}", f"Correct the file; {packaged_path(schema)} describes it.")
    return {name: data for name, data in definitions.items() if name != SCHEMA}


def _read(path: str) -> Any:
    wrong_path = "Name a readable file, or leave the option out."
    try:
        return parse(read_bytes(os.path.abspath(path), MAX_BYTES))
    except FileNotFoundError:
        raise _invalid(f"Definitions file does not exist: {path}", wrong_path) from None
    except FileProblem as problem:
        raise _invalid(f"Definitions file cannot be read: {path}: {problem.reason}", wrong_path) from None
    except JsonProblem as problem:
        raise _invalid(f"Definitions file is not valid JSON: {path}: {problem}", "Correct the file there.") from None


def _invalid(message: str, next_step: str) -> UserError:
    return UserError("DefinitionsInvalid", message, next_step, exit_code=2)


def _further_problems(kind: str, definitions: Mapping[str, Any]) -> Iterator[SchemaProblem]:
    """Violations of rules that the schema cannot express."""
    names = [name for name in definitions if name != SCHEMA]
    if not names:
        yield SchemaProblem("", "must have at least one definition")
    for name in names:
        check = _client_problems if kind == CLIENTS else _server_problems
        for problem in check(definitions[name]):
            yield SchemaProblem(f"{name}.{problem.path}", problem.reason)


def _client_problems(data: Mapping[str, Any]) -> Iterator[SchemaProblem]:
    variables = data.get("variables", {})
    places = [{"path": one} if isinstance(one, str) else one for one in data["configPaths"]]
    for name, template in variables.items():
        yield from _template_problems(f"variables.{name}", template, ())
    for index, place in enumerate(places):
        where = f"configPaths[{index}]"
        yield from _template_problems(where, place["path"], variables)
        yield from _root_problems(f"{where}.rootKey", place.get("rootKey", ""), variables)
        if "nameKey" in {**data, **place} and {**data, **place}.get("format") != Format.YAML.value:
            yield SchemaProblem(where, "servers can be a list ('nameKey') in YAML only")
    if places and not data.get("jsonRootKey"):
        yield SchemaProblem("jsonRootKey", "is missing, and configPaths need it")
    yield from _root_problems("jsonRootKey", data.get("jsonRootKey", ""), variables)
    for index, sign in enumerate(data.get("signs", ())):
        yield from _template_problems(f"signs[{index}]", sign, variables)
    target = data.get("writeTarget")
    usable = [place["path"] for place in places if place.get("use", Use.WRITE.value) == Use.WRITE.value]
    if places and target is not None and target not in usable:
        yield SchemaProblem("writeTarget", f"must be one of configPaths that can be written to, not '{target}'")


def _template_problems(path: str, template: str, variables: Mapping[str, str] | tuple[()]) -> Iterator[SchemaProblem]:
    yield from _token_problems(path, template, variables)
    if not re.match(r"\{\w+\}(/|$)|/|[A-Za-z]:[\\/]", template):
        yield SchemaProblem(path, f"must begin with a token such as {{workspace}}, or be absolute, not '{template}'")
    if "\0" in template:
        yield SchemaProblem(path, "must not have a NUL character")


def _root_problems(path: str, keys: str | list[str], variables: Mapping[str, str]) -> Iterator[SchemaProblem]:
    for index, key in enumerate(keys if isinstance(keys, list) else ()):
        yield from _token_problems(f"{path}[{index}]", key, variables)


def _token_problems(path: str, template: str, variables: Mapping[str, str] | tuple[()]) -> Iterator[SchemaProblem]:
    for token in tokens_of(template):
        if token not in TOKENS and token not in variables:
            known = ", ".join(f"{{{one}}}" for one in (*TOKENS, *variables))
            yield SchemaProblem(path, f"has the unknown token {{{token}}}; known are {known}")


def _server_problems(data: Mapping[str, Any]) -> Iterator[SchemaProblem]:
    wanted, other = ("url", "command") if data["transport"] == HTTP else ("command", "url")
    ways = {"variants": data["variants"]} | {f"runners.{name}": one for name, one in data.get("runners", {}).items()}
    for way, variants in ways.items():
        for variant, definition in variants.items():
            if wanted not in definition or other in definition:
                needs = f"must have '{wanted}', and no '{other}': the transport is {data['transport']}"
                yield SchemaProblem(f"{way}.{variant}", needs)
    for kind, patterns in data["detection"].items():
        for index, pattern in enumerate(patterns or ()):
            try:
                re.compile(pattern, re.IGNORECASE)
            except (re.error, OverflowError, RecursionError) as error:
                yield SchemaProblem(f"detection.{kind}[{index}]", f"is no regular expression: {error}")
