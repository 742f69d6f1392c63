"""The item pass: evaluates Include, Exclude, Remove, Update, and metadata.

It runs after the property pass. An item with an undecided condition is kept and marked as uncertain. A part of an
Include with an unknown path is noted, and kept only if a file exists at the path with the unknown value left empty.
Items with a false condition are evaluated and dropped, because MSBuild reports their errors.
"""

from __future__ import annotations

import os

from .conditions import BUILT_IN, CUSTOM_METADATA, ITEMS, Condition, PropertyOperands
from .expressions import GUESS, UNKNOWN, escape, glob_of, guessed, split_list, unescape
from .metadata import ItemEntry, Metadata, built_in, is_built_in, replace_references
from .paths import adjust, comparison_key, full_path
from .problems import LIMIT, EvaluationProblem, quoted
from .project_files import ProjectFile, value_of
from .properties import EvaluationNote, Group
from .validation import metadata_attributes

TYPE_CHECKING = False
if TYPE_CHECKING:
    from collections.abc import Callable, Iterator

    from .expressions import EvaluationScope
    from .globs import Glob
    from .xml import Element

# Items and metadata together: stops lists that double themselves before the memory is full. The largest projects have
# tens of thousands of items.
MAX_ITEMS = 300_000


class ItemPass:
    """Evaluates groups in order; `lists` contains the items by type in lower case."""

    def __init__(
        self, scope: EvaluationScope, defined: set[str] | None, note: Callable[[EvaluationNote], None]
    ) -> None:
        """`defined` are the item types that are empty while they have no items; None for all types (plain MSBuild)."""
        self.scope = scope
        self.lists: dict[str, list[ItemEntry]] = {}
        self._defaults: dict[str, Metadata] = {}
        self._defined = defined
        self._note = note
        self._items_left = MAX_ITEMS
        self._conditions: dict[tuple[str, int], Condition] = {}

    def define(self, group: Group) -> None:
        """Evaluates an ItemDefinitionGroup."""
        doubts = self._doubts(group.element, group.file, group.doubts, 0, None)
        if doubts is None:
            return
        for definition in group.element.elements:
            defaults = self._defaults.setdefault(definition.name.lower(), {})
            table = ItemEntry("", definition.name, group.file.path, certain=True)
            table.metadata = defaults
            own_doubts = self._doubts(definition, group.file, doubts, CUSTOM_METADATA, table)
            if own_doubts is not None:
                self._decorate(definition, group.file, [table], CUSTOM_METADATA, guess=bool(own_doubts))

    def evaluate(self, group: Group) -> None:
        """Evaluates an ItemGroup."""
        file = group.file
        doubts = self._doubts(group.element, file, group.doubts, ITEMS, None)
        for element in group.element.elements:
            own_doubts = self._doubts(element, file, doubts or (), ITEMS, None)
            skipped = doubts is None or own_doubts is None
            if "Include" in element.attributes:
                self._include(element, file, own_doubts or (), skipped)
            elif not skipped and "Remove" in element.attributes:
                self._remove(element, file, own_doubts or ())
            elif not skipped:
                self._update(element, file, own_doubts or ())

    # Values for item lists and metadata references.

    def entries(self, name: str) -> list[ItemEntry] | None:
        found = self.lists.get(name.lower())
        if found is None:
            return [] if self._defined is None or name.lower() in self._defined else None
        return found

    def value(self, entry: ItemEntry, name: str) -> str:
        """The escaped value of an item's metadata, built in or custom."""
        if is_built_in(name):
            return built_in(entry, name, self.scope)
        key = name.lower()
        found = entry.metadata.get(key) or self._defaults.get(entry.type_name.lower(), {}).get(key)
        return found[1] if found else ""

    def all_metadata(self, entry: ItemEntry) -> Metadata:
        return {**self._defaults.get(entry.type_name.lower(), {}), **entry.metadata}

    # The operations.

    def _include(self, element: Element, file: ProjectFile, doubts: tuple[str, ...], skipped: bool) -> None:
        raw = element.attributes["Include"]
        excluded = self._excluded(element, file, skipped) if "Exclude" in element.attributes else None
        certain = not doubts and (excluded is None or excluded.complete)
        added = []
        for part in self._parts(raw):
            if UNKNOWN in part:
                self._remark(raw, element, file, skipped)
                part = self._if_empty(part)
                if not part:
                    continue
            for entry in self._included(part, element, file, skipped, excluded):
                if (matches := excluded.matches(entry) if excluded else False) is not True:
                    entry.certain = entry.certain and certain and matches is False
                    self._count(1)
                    added.append(entry)
        self._decorate(element, file, added, ITEMS | CUSTOM_METADATA | BUILT_IN)
        if skipped:
            return
        self.lists.setdefault(element.name.lower(), []).extend(added)
        if not all(entry.certain for entry in added):
            for expression in doubts or (raw,):
                self._remark(expression, element, file, skipped)

    def _if_empty(self, part: str) -> str:
        """The path with its unknown parts left empty, as a guess; empty if there is no such file."""
        path = part.replace(UNKNOWN, "").replace(GUESS, "").strip()
        if not path or "@(" in path or glob_of(path, self.scope.folder):
            return ""
        return GUESS + path if os.path.isfile(full_path(unescape(path), self.scope.folder)) else ""

    def _included(
        self, part: str, element: Element, file: ProjectFile, skipped: bool, excluded: Selection | None
    ) -> Iterator[ItemEntry]:
        """The items of one part of an Include."""
        certain = GUESS not in part
        part = part.replace(GUESS, "")
        if "@(" in part and (entries := self._from_list(part, element, file, skipped)) is not None:
            for entry in entries:
                entry.certain = entry.certain and certain
                yield entry
            return
        if glob := glob_of(part, self.scope.folder):
            covers = (lambda _folder: False) if excluded is None else excluded.covers
            for path, below in [] if skipped else glob.files(self.scope, covers):
                yield ItemEntry(escape(path), element.name, file.path, certain, below)
            return
        yield ItemEntry(part, element.name, file.path, certain)

    def _from_list(self, part: str, element: Element, file: ProjectFile, skipped: bool) -> list[ItemEntry] | None:
        """Copies of the items that a part refers to; None if it is not an item list."""
        from .item_lists import find_expressions, join, select  # imported only for files that refer to lists

        expressions = find_expressions(part)
        if not expressions:
            return None
        expression = expressions[0]
        if len(expressions) > 1 or expression.start > 0 or expression.end < len(part):
            raise EvaluationProblem("MSB4012", f"the item list in {quoted(part)} is mixed with text")
        selected = select(expression, self)
        if selected is None:
            self._remark(part, element, file, skipped)
            return []
        if expression.separator is not None:
            selected = [(self.scope.checked(join(selected, expression.separator)), None)] if selected else []
        copies = []
        for text, source in selected:
            if UNKNOWN in text:
                self._remark(part, element, file, skipped)
                continue
            entry = ItemEntry(text.replace(GUESS, ""), element.name, file.path, GUESS not in text)
            if source:
                entry.certain = entry.certain and source.certain
                entry.metadata = self.all_metadata(source)
            self._count(len(entry.metadata))
            copies.append(entry)
        return copies

    def _excluded(self, element: Element, file: ProjectFile, skipped: bool) -> Selection:
        raw = element.attributes["Exclude"]
        selection = self._selection()
        for part in split_list(self._with_lists(self.scope.expand(raw))):
            selection.add(part)
        if not selection.complete:
            self._remark(raw, element, file, skipped)
        return selection

    def _remove(self, element: Element, file: ProjectFile, doubts: tuple[str, ...]) -> None:
        raw = element.attributes["Remove"]
        key = element.name.lower()
        matches: Callable[[ItemEntry], bool | None]
        if names := split_list(self.scope.expand(element.attributes.get("MatchOnMetadata", ""))):
            matches = self._same_metadata(raw, names)
        else:
            selection = self._selected(raw)
            matches = selection.matches
            if not selection.complete:
                self._remark(raw, element, file, skipped=False)
        kept = []
        undecided = False
        for entry in self._all(key):
            chosen = matches(entry)
            if chosen is True and not doubts:
                continue
            if chosen is not False:
                entry.certain = False
                undecided = True
            kept.append(entry)
        self.lists[key] = kept
        if undecided:
            for expression in doubts or (raw,):
                self._remark(expression, element, file, skipped=False)

    def _update(self, element: Element, file: ProjectFile, doubts: tuple[str, ...]) -> None:
        selection = self._selected(element.attributes["Update"])
        found = [entry for entry in self._all(element.name.lower()) if selection.matches(entry) is not False]
        if doubts:
            for entry in found:
                entry.certain = False
        self._decorate(element, file, found, ITEMS | CUSTOM_METADATA | BUILT_IN)
        for expression in doubts if found else ():
            self._remark(expression, element, file, skipped=False)

    def _all(self, key: str) -> list[ItemEntry]:
        entries = self.lists.get(key, [])
        self.scope.count_steps(len(entries))
        return entries

    def _selection(self) -> Selection:

        return Selection(self.scope)

    def _selected(self, raw: str) -> Selection:
        selection = self._selection()
        for part in self._parts(raw):
            for each in split_list(self._with_lists(part)) if "@(" in part else [part]:
                selection.add(each)
        return selection

    def _same_metadata(self, raw: str, names: list[str]) -> Callable[[ItemEntry], bool]:
        """For MatchOnMetadata: the items with the same values as a listed item; empty values match nothing."""
        from .item_lists import find_expressions

        wanted = set()
        for expression in find_expressions(self.scope.expand(raw)):
            for entry in self.entries(expression.name) or []:
                wanted.add(tuple(unescape(self.value(entry, name)) for name in names))
        wanted = {values for values in wanted if any(values)}
        return lambda entry: tuple(unescape(self.value(entry, name)) for name in names) in wanted

    # Metadata.

    def _decorate(
        self, element: Element, file: ProjectFile, entries: list[ItemEntry], allowed: int, guess: bool = False
    ) -> None:
        """Sets the metadata in an element's attributes and children on each item."""
        settings = [(name, value, "") for name, value in metadata_attributes(element)]
        settings += [(child.name, value_of(child), child.attributes.get("Condition", "")) for child in element.elements]
        self._count(len(entries) * len(settings))
        for entry in entries if settings else ():
            for name, raw, condition in settings:
                holds = self._holds(condition, allowed, entry) if condition else True
                if holds is False:
                    continue
                value = self._expanded(raw, entry)
                if "\\" in value:
                    value = adjust(value, lambda path: os.path.isdir(os.path.join(file.folder, path)))
                if holds is None or guess:
                    value = guessed(value)
                entry.metadata[name.lower()] = (name, value)

    def _expanded(self, raw: str, entry: ItemEntry | None) -> str:
        """Replaces metadata, properties and item lists in the text, in this order."""
        if entry and "%(" in raw:
            raw = self.scope.checked(self._with_metadata(raw, entry))
        return self._with_lists(self.scope.expand(raw))

    def _with_metadata(self, raw: str, entry: ItemEntry) -> str:
        def value(type_name: str | None, name: str) -> str:
            if type_name and type_name.lower() != entry.type_name.lower():
                return ""
            return self.value(entry, name)

        if "@(" not in raw:
            return replace_references(raw, value)
        from .item_lists import find_expressions

        # The references inside an item list belong to its own items.
        done = []
        position = 0
        for expression in find_expressions(raw):
            done += [
                replace_references(raw[position : expression.start], value),
                raw[expression.start : expression.end],
            ]
            position = expression.end
        return "".join(done) + replace_references(raw[position:], value)

    # Helpers.

    def _parts(self, raw: str) -> list[str]:
        """The parts of an Include, Remove or Update with properties replaced; item lists are kept."""
        text = self.scope.expand(raw)
        if "@(" not in text:
            return split_list(text)
        from .item_lists import split_outside_lists

        return split_outside_lists(text)

    def _with_lists(self, text: str) -> str:
        if "@(" not in text:
            return text
        from .item_lists import expand_lists

        return expand_lists(text, self)

    def _doubts(
        self, element: Element, file: ProjectFile, doubts: tuple[str, ...], allowed: int, entry: ItemEntry | None
    ) -> tuple[str, ...] | None:
        """The undecided conditions of an element and its parents; None if the element's condition is false."""
        self.scope.file_values = file.values
        condition = element.attributes.get("Condition")
        if not condition:
            return doubts
        holds = self._holds(condition, allowed, entry)
        if holds is None:
            return (*doubts, condition)
        return doubts if holds else None

    def _holds(self, condition: str, allowed: int, entry: ItemEntry | None) -> bool | None:
        parsed = self._conditions.get((condition, allowed))
        if parsed is None:
            parsed = self._conditions[condition, allowed] = Condition(condition, allowed)
        operands = PropertyOperands(self.scope, self.scope.folder, lambda raw: self._expanded(raw, entry))
        return parsed.evaluate(operands)

    def _remark(self, expression: str, element: Element, file: ProjectFile, skipped: bool) -> None:
        if not skipped:
            self._note(EvaluationNote(expression, file.path, element.name.lower()))

    def _count(self, items: int) -> None:
        self._items_left -= items
        if self._items_left < 0:
            raise EvaluationProblem(LIMIT, f"there are more than {MAX_ITEMS:,} items and metadata")


# Splitting this many characters of a path takes about as long as visiting an item.
_CHARACTERS_PER_STEP = 1024


class Selection:
    """A set of paths and patterns, some of which may be guesses."""

    def __init__(self, scope: EvaluationScope) -> None:
        self._certain = _Paths(scope)
        self._guessed = _Paths(scope)
        # Whether all parts are known.
        self.complete = True

    def add(self, part: str) -> None:
        if UNKNOWN in part:
            self.complete = False
        elif GUESS in part:
            self._guessed.add(part.replace(GUESS, ""))
        else:
            self._certain.add(part)

    def matches(self, entry: ItemEntry) -> bool | None:
        """Whether an item is selected; None if only a guess selects it."""
        if self._certain.contain(entry):
            return True
        return None if self._guessed.contain(entry) else False

    def covers(self, folder: str) -> bool:
        """Whether all files below a folder are selected."""
        return self._certain.cover(folder)


class _Paths:
    def __init__(self, scope: EvaluationScope) -> None:
        self._scope = scope
        self._keys: set[str] = set()
        self._globs: list[Glob] = []

    def add(self, part: str) -> None:
        if glob := glob_of(part, self._scope.folder):
            self._globs.append(glob)
        else:
            self._keys.add(comparison_key(unescape(part), self._scope.folder))

    def cover(self, folder: str) -> bool:
        return any(glob.covers(folder, self._scope) for glob in self._globs)

    def contain(self, entry: ItemEntry) -> bool:
        if not self._keys and not self._globs:
            return False
        path = unescape(entry.identity)
        # Each pattern splits the path again, and a path may be as long as any value.
        self._scope.count_steps(len(self._globs) * (1 + len(path) // _CHARACTERS_PER_STEP))
        if comparison_key(path, self._scope.folder) in self._keys:
            return True
        if not self._globs:
            return False
        from .globs import comparable_names

        names = comparable_names(path, self._scope.folder)
        return any(glob.matches(names, self._scope) for glob in self._globs)
