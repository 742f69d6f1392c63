"""Evaluates project files: the items and properties that MSBuild would see.

`Evaluator.evaluate` behaves like a project without an SDK that imports the given files in order. With
`undefined_is_unknown=False` the result is that of MSBuild. With True (the default) an undefined property is unknown
instead of empty; items that depend on it are kept and marked as uncertain, and a note names the expression.
"""

from __future__ import annotations

from ..system.values import Value
from .expressions import GUESS, UNKNOWN, unescape
from .items import ItemPass
from .paths import full_path, to_slashes
from .problems import EvaluationProblem
from .project_files import ProjectFileCache
from .properties import PropertyPass

TYPE_CHECKING = False
if TYPE_CHECKING:
    from collections.abc import Iterable, Mapping, Sequence

    from .metadata import ItemEntry
    from .properties import EvaluationNote

# How often the property pass may run until imported files define no property that it treated as undefined.
MAX_ROUNDS = 6


class Item(Value):
    """An item; `certain` is False if its existence depends on something unknown."""

    identity: str
    full_path: str
    metadata: dict[str, str]
    defined_in: str
    certain: bool


class Evaluator:
    """Evaluates files for one project, which need not exist; relative paths are relative to its folder.

    Files can change `properties` and `environment`, but not `global_properties`. `load` shares parsed files between
    evaluators. `families`: words in lower case; a property whose name begins with one is empty and not unknown if no
    file defines it. `skips_sdk_imports`: whether imports of an SDK's files have no effect, for a caller that gives its
    own.
    """

    def __init__(
        self,
        project: str,
        *,
        global_properties: Mapping[str, str] | None = None,
        properties: Mapping[str, str] | None = None,
        environment: Mapping[str, str] | None = None,
        undefined_is_unknown: bool = True,
        families: Iterable[str] = (),
        skips_sdk_imports: bool = False,
        load: ProjectFileCache | None = None,
    ) -> None:
        self._project = project
        self._global_properties = global_properties or {}
        self._properties = properties or {}
        self._environment = environment or {}
        self._undefined_is_unknown = undefined_is_unknown
        self._families = tuple(families)
        self._skips_sdk_imports = skips_sdk_imports
        self._load = load or ProjectFileCache()

    def evaluate(self, files: Sequence[str | Mapping[str, str]]) -> Evaluation:
        """The items and properties of the files at these absolute paths; raises EvaluationProblem.

        A mapping between the files gives properties that are set at this point if they are still empty.
        """
        properties = self._property_pass(files)
        items = ItemPass(
            properties.scope, properties.item_types if self._undefined_is_unknown else None, properties.note
        )
        for evaluate, groups in (
            (items.define, properties.definition_groups),
            (items.evaluate, properties.item_groups),
        ):
            for group in groups:
                try:
                    evaluate(group)
                except EvaluationProblem as problem:
                    problem.path = problem.path or group.file.path
                    problem.entry = group.entry
                    raise
        return Evaluation(properties, items)

    def _property_pass(self, files: Sequence[str | Mapping[str, str]]) -> PropertyPass:
        """Runs the property pass, and again if imported files define properties that it treated as unknown."""
        defined = self._definitions(files) if self._undefined_is_unknown else None
        for rounds_left in reversed(range(MAX_ROUNDS)):
            properties = PropertyPass(
                self._project,
                self._global_properties,
                self._properties,
                self._environment,
                defined,
                self._load,
                families=self._families,
                skips_sdk_imports=self._skips_sdk_imports,
            )
            try:
                properties.run(files)
            except EvaluationProblem:
                if not properties.surprises or not rounds_left:
                    raise
            if defined is None or not properties.surprises:
                break
            defined |= properties.definitions
        return properties

    def _definitions(self, files: Sequence[str | Mapping[str, str]]) -> set[str]:
        names: set[str] = set()
        for path in files:
            if not isinstance(path, str):
                names.update(map(str.lower, path))
                continue
            try:
                names |= self._load.load(path).properties
            except EvaluationProblem:
                pass  # the property pass reads the file too, and reports the problem
        return names


class Evaluation:
    """The result of an evaluation."""

    def __init__(self, properties: PropertyPass, items: ItemPass) -> None:
        self._properties = properties
        self._items = items
        properties.scope.file_values = {}
        # The evaluated files, in order.
        self.imported = tuple(properties.imported)
        # The folders that wildcards have read.
        self.folders = frozenset(properties.scope.folders)
        # The undecided expressions that affect the result, each with its file.
        self.notes = list(dict.fromkeys([*_pairs(properties.notes), *properties.scope.unsupported]))

    def items(self, name: str) -> list[Item]:
        """All items of a type, in order."""
        return [self._item(entry) for entry in self._items.lists.get(name.lower(), [])]

    def property(self, name: str) -> str | None:
        """The value of a property: empty if it is not set, None if it is unknown, the guess if it is a guess."""
        return _final(self._properties.scope.lookup(name))

    def properties(self, prefix: str = "") -> dict[str, str | None]:
        """The properties whose names start with the prefix, with their values."""
        return {
            name: self.property(name) for key, name in self._properties.names.items() if key.startswith(prefix.lower())
        }

    def notes_about(self, name: str) -> list[tuple[str, str]]:
        """The notes about items of a type, and those about imports, which may affect all types."""
        relevant = [note for note in self._properties.notes if note.item in ("", name.lower())]
        return list(dict.fromkeys(_pairs(relevant)))

    def _item(self, entry: ItemEntry) -> Item:
        metadata = {}
        for name, value in self._items.all_metadata(entry).values():
            if UNKNOWN not in value:
                metadata[name] = unescape(value.replace(GUESS, ""))
        return Item(
            unescape(entry.identity),
            full_path(to_slashes(unescape(entry.identity)), self._properties.scope.folder),
            metadata,
            entry.defined_in,
            entry.certain,
        )


def _pairs(notes: list[EvaluationNote]) -> list[tuple[str, str]]:
    return [(note.expression, note.path) for note in notes]


def _final(value: str) -> str | None:
    return None if UNKNOWN in value else unescape(value.replace(GUESS, ""))
