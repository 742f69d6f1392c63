"""The property pass: evaluates properties, conditions, Choose and imports in document order; collects item groups.

If a condition is undecided, both outcomes stay possible: a property keeps its value, or gets the new one if it has
none, and becomes a guess; an import is followed if its file exists; nested elements inherit the undecided condition as
a doubt.
"""

from __future__ import annotations

import os

from .conditions import Condition, PropertyOperands
from .expressions import GUESS, UNKNOWN, EvaluationScope, escape, glob_of, guessed, is_known, split_list, unescape
from .paths import WINDOWS, full_path, ignoring_case, split_extension, to_slashes, without_root
from .problems import LIMIT, EvaluationProblem, quoted
from .project_files import ProjectFile, ProjectFileCache, value_of
from .xml import Element

TYPE_CHECKING = False
if TYPE_CHECKING:
    from collections.abc import Iterable, Mapping, Sequence


# Nested imports. Those of the .NET SDK have about ten levels.
MAX_IMPORT_DEPTH = 60

# The undecided conditions of an element and its parents.
Doubts = tuple[str, ...]


class PropertyPass:
    """One pass over the files; its attributes are the results."""

    def __init__(
        self,
        project: str,
        global_properties: Mapping[str, str],
        properties: Mapping[str, str],
        environment: Mapping[str, str],
        defined: set[str] | None,
        load: ProjectFileCache,
        *,
        families: tuple[str, ...] = (),
        skips_sdk_imports: bool = False,
    ) -> None:
        """`defined` are the properties that are empty until set; None for all properties (plain MSBuild)."""
        self.scope = EvaluationScope(os.path.dirname(project), environment, defined, families, load.work)
        self.names: dict[str, str] = {}
        self.imported: list[str] = []
        self.item_groups: list[Group] = []
        self.definition_groups: list[Group] = []
        self.notes: list[EvaluationNote] = []
        self.definitions: set[str] = set()
        self.item_types: set[str] = set()
        self._load = load
        self._skips_sdk_imports = skips_sdk_imports
        self._globals = {name.lower() for name in global_properties}
        self._seen: set[str] = set()
        self._entry = -1
        self._depth = 0
        self._set_initial(project, {**properties, **global_properties})

    @property
    def surprises(self) -> bool:
        """Whether an imported file defines a property that was treated as unknown."""
        return not self.scope.missing.isdisjoint(self.definitions)

    def run(self, files: Sequence[str | Mapping[str, str]]) -> None:
        for self._entry, path in enumerate(files):
            if not isinstance(path, str):
                self._set_defaults(path)
                continue
            try:
                self._import(full_path(path, self.scope.folder), ())
            except EvaluationProblem as problem:
                problem.entry = self._entry
                raise

    def _set_defaults(self, defaults: Mapping[str, str]) -> None:
        """Sets the properties that are empty."""
        for name, value in defaults.items():
            if not self.scope.values.get(name.lower()):
                self.scope.values[name.lower()] = value
                self.names[name.lower()] = name

    def _set_initial(self, project: str, properties: Mapping[str, str]) -> None:
        values = self.scope.values
        values.update(self._load.environment_properties(self.scope.environment))
        values["os"] = "Windows_NT" if WINDOWS else "Unix"
        for name, value in properties.items():
            values[name.lower()] = value
            self.names[name.lower()] = name
        folder, file_name = os.path.split(project)
        stem, extension = split_extension(file_name)
        values["msbuildprojectdirectory"] = escape(folder)
        values["msbuildprojectdirectorynoroot"] = escape(without_root(folder))
        values["msbuildprojectextension"] = escape(extension)
        values["msbuildprojectfile"] = escape(file_name)
        values["msbuildprojectfullpath"] = escape(project)
        values["msbuildprojectname"] = escape(stem)

    # Files and their sections.

    def _import(self, path: str, doubts: Doubts) -> None:
        """Evaluates a file, unless it was evaluated before or is being evaluated."""
        key = ignoring_case(path)
        if key in self._seen:
            return
        self._seen.add(key)
        file = self._load.load(path)
        self.imported.append(path)
        self.definitions |= file.properties
        self.item_types |= file.items
        outer, self.scope.file_values = self.scope.file_values, file.values
        self._depth += 1
        try:
            if self._depth > MAX_IMPORT_DEPTH:
                raise EvaluationProblem(LIMIT, f"imports are nested more than {MAX_IMPORT_DEPTH} deep")
            self._release_globals(file.root.attributes.get("TreatAsLocalProperty", ""))
            self._sections(file.root.elements, file, doubts)
        except EvaluationProblem as problem:
            problem.path = problem.path or path
            raise
        finally:
            self.scope.file_values = outer
            self._depth -= 1

    def _release_globals(self, local_properties: str) -> None:
        if local_properties:
            self._globals -= {name.lower() for name in split_list(self.scope.expand(local_properties))}

    def _sections(self, sections: Iterable[Element], file: ProjectFile, doubts: Doubts) -> None:
        for section in sections:
            if section.name == "PropertyGroup":
                self._property_group(section, file, doubts)
            elif section.name == "ItemGroup":
                self.item_groups.append(Group(section, file, self._entry, doubts))
            elif section.name == "ItemDefinitionGroup":
                self.definition_groups.append(Group(section, file, self._entry, doubts))
            elif section.name == "Choose":
                self._choose(section, file, doubts)
            elif section.name == "Import":
                self._import_element(section, file, doubts)
            elif section.name == "ImportGroup":
                own = self._doubts(section, file.folder, doubts)
                if own is not None:
                    for element in section.elements:
                        self._import_element(element, file, own)

    def _doubts(self, element: Element, folder: str, doubts: Doubts) -> Doubts | None:
        """The doubts of an element, including its own condition; None if that is false.

        `folder` is the base of Exists: the file's folder for groups and imports, otherwise the project's.
        """
        condition = element.attributes.get("Condition")
        if not condition:
            return doubts
        holds = Condition(condition, 0).evaluate(PropertyOperands(self.scope, folder))
        if holds is None:
            return (*doubts, condition)
        return doubts if holds else None

    # Properties.

    def _property_group(self, group: Element, file: ProjectFile, doubts: Doubts) -> None:
        inside = self._doubts(group, file.folder, doubts)
        if inside is None:
            return
        for element in group.elements:
            key = element.name.lower()
            if key in self._globals:
                continue
            own = self._doubts(element, self.scope.folder, inside)
            if own is not None:
                self._assign(key, self.scope.expand(value_of(element)), bool(own))
                self.names[key] = element.name

    def _assign(self, key: str, value: str, doubtful: bool) -> None:
        values = self.scope.values
        if doubtful:
            current = values.get(key, "")
            if current == value:
                return
            if current.replace(GUESS, "") and UNKNOWN not in current:
                value = current
            value = guessed(value)
        values[key] = value

    def _choose(self, choose: Element, file: ProjectFile, doubts: Doubts) -> None:
        """Evaluates the first true branch, and before it each branch with an undecided condition."""
        undecided = doubts
        for branch in choose.elements:
            inside = self._doubts(branch, self.scope.folder, undecided)
            if inside is None:
                continue
            self._sections(branch.elements, file, inside)
            if inside == undecided:
                return
            undecided = inside

    # Imports.

    def _import_element(self, element: Element, file: ProjectFile, doubts: Doubts) -> None:
        inside = self._doubts(element, file.folder, doubts)
        if inside is None:
            return
        raw = element.attributes["Project"]
        if sdk := element.attributes.get("Sdk"):
            if self._skips_sdk_imports:
                return
            if not self.scope.three_valued:
                raise EvaluationProblem("MSB4236", f"the SDK {quoted(sdk)} cannot be resolved here")
            self.note(EvaluationNote(f"{sdk}: {raw}", file.path))
            return
        parts = split_list(self.scope.expand(raw))
        if not parts:
            raise EvaluationProblem("MSB4020", f"the import of {quoted(raw)} names no file")
        for part in parts:
            self._import_part(part, raw, file, inside)

    def _import_part(self, part: str, raw: str, file: ProjectFile, doubts: Doubts) -> None:
        if UNKNOWN in part:
            self.note(EvaluationNote(raw, file.path))
            return
        if not is_known(part):
            doubts = (*doubts, raw)
            part = part.replace(GUESS, "")
        if glob := glob_of(part, file.folder):
            for path, _ in glob.files(self.scope):
                self._import(full_path(path, file.folder), doubts)
            return
        path = full_path(to_slashes(unescape(part)), file.folder)
        if os.path.isfile(path):
            self._import(path, doubts)
        elif doubts:
            self.note(EvaluationNote(doubts[-1], file.path))
        else:
            raise EvaluationProblem("MSB4019", f"the imported file {path} does not exist")

    def note(self, note: EvaluationNote) -> None:
        self.notes.append(note)


class Group:
    """An ItemGroup or ItemDefinitionGroup for the item pass, with its undecided conditions."""

    __slots__ = ("doubts", "element", "entry", "file")

    def __init__(self, element: Element, file: ProjectFile, entry: int, doubts: tuple[str, ...]) -> None:
        self.element = element
        self.file = file
        self.entry = entry
        self.doubts = doubts


class EvaluationNote:
    """An undecided expression, and the item type (in lower case) that depends on it, if any."""

    __slots__ = ("expression", "item", "path")

    def __init__(self, expression: str, path: str, item: str = "") -> None:
        self.expression = expression
        self.path = path
        self.item = item
