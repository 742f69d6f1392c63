"""YAML documents: finds the servers in a file, and edits them in small checked steps.

The servers are a mapping by name, or a list whose items have a name. After each step the text is parsed again; a step
that would change anything else is refused.

Hand-written, because ruamel.yaml keeps comments but not all other bytes. PyYAML's parser checks the result.
"""

from __future__ import annotations

from . import yaml_splices
from .document import EditProblem, Remark, ServerEntry, WrongKind, same_value, spliced
from .yaml_layout import YamlStyle, column_of, style_of, unsafe
from .yaml_nodes import (
    ALIAS,
    MAPPING,
    SCALAR,
    SEQUENCE,
    ValueReader,
    YamlNode,
    after_colon,
    after_properties,
    content,
    is_merge,
    is_null,
    kind_of,
    lacks_line_break,
    name_of,
    position_of,
    problem_at,
    read,
    referent,
    walk,
)

TYPE_CHECKING = False
if TYPE_CHECKING:
    from collections.abc import Callable, Collection, Iterable, Mapping

    from .document import Splice

    Check = Callable[[YamlNode], bool]


class YamlDocument:
    """`root` is the path of keys to the servers. With `name_key` they are a list, and this key has an item's name."""

    def __init__(self, text: str, root: tuple[str, ...], name_key: str | None) -> None:
        self._text, self._root, self._name_key = text, root, name_key
        self._stream = read(text)
        self._way: list[YamlNode] = []  # the existing nodes from the top to the servers, with aliases resolved
        self._positions: list[int] = []  # in each node of the way except the last, the index of the next pair
        self._missing = root  # the keys that do not exist
        self._find_servers()
        self._slots = self._find_slots()
        meanings = ValueReader()
        self.entries = tuple(self._entry(slot, meanings) for slot in self._slots)

    @property
    def remarks(self) -> tuple[Remark, ...]:
        """The first key that a mapping has twice: newer parsers refuse the text, older ones use the last value."""
        top = self._stream.top
        for node in walk(top) if top is not None else ():
            seen: set[str] = set()
            for key in node.items[::2] if node.kind == MAPPING else ():
                if key.kind == SCALAR and not is_merge(key) and key.value in seen:
                    return (Remark(f"a second key '{key.value}'", position_of(self._text, key.begin)[0]),)
                seen.add(key.value)
        return ()

    def spans(self, at: int) -> tuple[tuple[int, int], ...]:
        slot, servers = self._slots[at], self._way[-1]
        first = servers.items[2 * slot] if servers.kind == MAPPING else servers.items[slot]
        return ((first.begin, self._value(slot).end),)

    def put(self, at: int | None, name: str, settings: Mapping[str, object], drop: Collection[str] = ()) -> str:
        wanted = {key: value for key, value in settings.items() if key != self._name_key}
        unwanted = [key for key in drop if key not in wanted and key != self._name_key]
        if at is None:
            servers = self._servers
            before_last = servers is not None and lacks_line_break(self._text, servers)
            document, at = self._with_entry(name, wanted), len(self.entries) - before_last
        else:
            document = self._with_settings(at, name, wanted, unwanted)
        found = document.entries[at].settings or {}  # including merged settings
        done = all(key in found and same_value(found[key], value) for key, value in wanted.items())
        if not done or any(key in found for key in unwanted):
            raise self._unsafe()
        return document._text

    def remove(self, indexes: Collection[int]) -> str:
        document = self
        for index in sorted(set(indexes), reverse=True):
            document = document._without_entry(index)
        return document._text

    # Reading

    def _find_servers(self) -> None:
        top = self._stream.top
        if top is None:
            return
        node = self._enter(top)
        for depth, key in enumerate(self._root):
            if depth and is_null(node):
                return
            self._demand(node, MAPPING, depth)
            found = [at for at, (name, _) in enumerate(node.pairs) if ValueReader().of(name) == key]
            if not found:
                return
            self._positions.append(found[-1])  # clients use the last of duplicate keys
            self._missing = self._root[depth + 1 :]
            node = self._enter(node.pairs[found[-1]][1])
        if not is_null(node):
            self._demand(node, SEQUENCE if self._name_key else MAPPING, len(self._root))

    def _enter(self, node: YamlNode) -> YamlNode:
        self._way.append(referent(node))
        return self._way[-1]

    def _demand(self, node: YamlNode, kind: str, depth: int) -> None:
        if node.kind != kind:
            name = f"'{'.'.join(self._root[:depth])}'" if depth else "the top level"
            raise problem_at(self._text, node.begin, f"{name} is {kind_of(node)}, not a {kind}", WrongKind)

    def _find_slots(self) -> list[int]:
        """The indexes of the entries among the pairs or items of the servers."""
        servers = self._servers
        if servers is None:
            return []
        if servers.kind == SEQUENCE:
            return list(range(len(servers.items)))
        return [at for at, (key, _) in enumerate(servers.pairs) if not is_merge(key)]

    @property
    def _servers(self) -> YamlNode | None:
        """The node of the servers; None if it does not exist, or is null."""
        return None if self._missing or is_null(self._way[-1]) else self._way[-1]

    def _entry(self, slot: int, meanings: ValueReader) -> ServerEntry:
        node = self._value(slot)
        value = meanings.of(node)
        settings = value if isinstance(value, dict) else None
        if self._name_key is None:
            return ServerEntry(name_of(self._way[-1].items[2 * slot]), settings)
        if settings is None:
            return ServerEntry("", None)
        name = [name_of(value) for key, value in referent(node).pairs if name_of(key) == self._name_key]
        return ServerEntry(name[-1] if name else "", settings)

    def _value(self, slot: int) -> YamlNode:
        servers = self._way[-1]
        return servers.items[2 * slot + 1 if servers.kind == MAPPING else slot]

    # Changing

    def _with_entry(self, name: str, settings: dict[str, object]) -> YamlDocument:
        entry: object = {self._name_key: name, **settings} if self._name_key else settings
        value: object = [entry] if self._name_key else {name: entry}
        for key in reversed(self._missing[1:]):
            value = {key: value}
        if self._stream.top is None:
            return self._with_first_pair(self._missing[0], value)
        node = self._way[-1]
        if is_null(node) or (len(self._way) > 1 and yaml_splices.is_empty(self._text, node)):
            filling = {self._missing[0]: value} if self._missing else value
            return self._with_value(self._way[:-1], self._positions[-1], filling)
        if self._missing:
            return self._with_pair(self._way, self._missing[0], value)
        if node.kind == MAPPING:
            return self._with_pair(self._way, name, entry)
        return self._with_item(node, entry)

    def _with_settings(self, at: int, name: str, settings: dict[str, object], drop: list[str]) -> YamlDocument:
        slot = self._slots[at]
        node = self._value(slot)
        if node.kind == ALIAS:
            raise self._unsafe()
        if node.kind != MAPPING or yaml_splices.is_empty(self._text, node):
            if self._name_key is None:
                return self._with_value(self._way, slot, settings)
            return self._with_replaced_item(slot, {self._name_key: name, **settings})
        document = self
        for key, value in settings.items():
            document = document._with_setting(slot, key, value)
        for key in drop:
            document = document._without_setting(slot, key)
        return document

    def _with_setting(self, slot: int, key: str, value: object) -> YamlDocument:
        node = self._value(slot)
        found = _positions_of(node, key)
        if not found:
            return self._with_pair([*self._way, node], key, value)
        if same_value(ValueReader().of(node.pairs[found[-1]][1]), value):
            return self
        return self._with_value([*self._way, node], found[-1], value)

    def _without_setting(self, slot: int, key: str) -> YamlDocument:
        document = self
        for position in reversed(_positions_of(self._value(slot), key)):
            node = document._value(slot)
            document = document._without_pair([*document._way, node], position)
        return document

    def _without_entry(self, index: int) -> YamlDocument:
        slot, servers = self._slots[index], self._way[-1]
        gone = servers.pairs[slot] if servers.kind == MAPPING else (servers.items[slot],)
        if servers.flow or len(servers.items) > len(gone):
            splices = yaml_splices.without(self._text, servers, slot)
        else:
            colon = after_colon(self._text, self._way[-2].pairs[self._positions[-1]][0])
            if colon is None:
                raise self._unsafe()
            behind = colon if servers.is_bare else after_properties(self._text, servers)
            splices = yaml_splices.emptied(self._text, servers, behind)
        return self._changed(splices, self._way, gone, _lost(servers, gone))

    # Steps. Each changes the last node of the way.

    def _with_first_pair(self, key: str, value: object) -> YamlDocument:
        document = self._again(yaml_splices.added_at_end(self._text, self._stream.end, 0, key, value, self._style))
        top = document._stream.top
        if top is None or not same_value(ValueReader().of(top), {key: value}):
            raise self._unsafe()
        return document

    def _with_pair(self, way: list[YamlNode], key: str, value: object) -> YamlDocument:
        text, node = self._text, way[-1]
        if len(way) == 1 and not node.flow and not lacks_line_break(text, node):
            column = column_of(text, content(text, node))
            splices = yaml_splices.added_at_end(text, self._stream.end, column, key, value, self._style)
        else:
            splices = yaml_splices.added_pair(text, node, key, value, self._style)
        return self._changed(splices, way, (), self._gained(node, key, value))

    def _with_item(self, node: YamlNode, value: object) -> YamlDocument:
        splices = yaml_splices.added_item(self._text, node, value, self._style)
        return self._changed(splices, self._way, (), self._gained(node, value))

    def _with_value(self, way: list[YamlNode], position: int, value: object) -> YamlDocument:
        splices = yaml_splices.replaced_value(self._text, way[-1], position, value, self._style)
        old = way[-1].pairs[position][1]
        return self._changed(splices, way, (old,), _means(value), old)

    def _with_replaced_item(self, position: int, value: object) -> YamlDocument:
        servers = self._way[-1]
        splices = yaml_splices.replaced_item(self._text, servers, position, value, self._style)
        old = servers.items[position]
        return self._changed(splices, self._way, (old,), _means(value), old)

    def _without_pair(self, way: list[YamlNode], position: int) -> YamlDocument:
        node = way[-1]
        gone = node.pairs[position]
        return self._changed(yaml_splices.without(self._text, node, position), way, gone, _lost(node, gone))

    @property
    def _style(self) -> YamlStyle:
        """The style of the servers, or of the whole file where the servers do not show it."""
        return style_of(self._text, *self._way[-1:], *self._way[:1])

    def _changed(
        self,
        splices: list[Splice],
        way: list[YamlNode],
        gone: tuple[YamlNode, ...],
        fits: Check,
        changed: YamlNode | None = None,
    ) -> YamlDocument:
        """Apply the splices, which change the last node on the way, or `changed` below it, to what `fits` accepts."""
        document = self._again(splices)
        top = document._stream.top
        if _is_referred_to(self._way[0], way, gone):
            raise self._unsafe()
        if top is None or not _same_node(self._way[0], top, changed or way[-1], fits):
            raise self._unsafe()
        return document

    def _gained(self, node: YamlNode, *values: object) -> Check:
        """A check whether a node has its old items, and these values after them, or before the last pair or item."""
        at = len(node.items) - (len(values) if lacks_line_break(self._text, node) else 0)

        def fits(new: YamlNode) -> bool:
            kept = (*new.items[:at], *new.items[at + len(values) :])
            added = [ValueReader().of(one) for one in new.items[at : at + len(values)]]
            return _same_properties(node, new) and _same_nodes(node.items, kept) and same_value(added, list(values))

        return fits

    def _again(self, splices: list[Splice]) -> YamlDocument:
        try:
            return YamlDocument(spliced(self._text, splices), self._root, self._name_key)
        except EditProblem as problem:
            raise self._unsafe() from problem

    def _unsafe(self) -> EditProblem:
        return unsafe(self._text, self._way[-1].begin if self._way else 0)


def _positions_of(node: YamlNode, key: str) -> list[int]:
    return [at for at, (name, _) in enumerate(node.pairs) if name_of(name) == key]


def _lost(node: YamlNode, gone: tuple[YamlNode, ...]) -> Check:
    kept = tuple(item for item in node.items if not any(item is one for one in gone))
    return lambda new: _same_properties(node, new) and _same_nodes(kept, new.items)


def _means(value: object) -> Check:
    return lambda new: new.is_bare and same_value(ValueReader().of(new), value)


def _same_node(old: YamlNode, new: YamlNode, changed: YamlNode | None = None, fits: Check = bool) -> bool:
    """Whether the nodes mean the same, except that `changed` has become something that `fits` accepts."""
    if old is changed:
        return fits(new)
    return _same_properties(old, new) and _same_nodes(old.items, new.items, changed, fits)


def _same_nodes(
    old: tuple[YamlNode, ...], new: tuple[YamlNode, ...], changed: YamlNode | None = None, fits: Check = bool
) -> bool:
    pairs = zip(old, new, strict=False)
    return len(old) == len(new) and all(_same_node(one, other, changed, fits) for one, other in pairs)


def _same_properties(old: YamlNode, new: YamlNode) -> bool:
    """Whether the nodes are the same apart from their items."""
    return (old.kind, old.tag, old.anchor, old.value) == (new.kind, new.tag, new.anchor, new.value) and (
        bool(old.style) == bool(new.style)
    )


def _is_referred_to(top: YamlNode, above: Iterable[YamlNode], gone: Iterable[YamlNode]) -> bool:
    """Whether a remaining alias refers to a node that contains the change, or that is removed."""
    leaving = {id(inner) for node in gone for inner in walk(node)}
    touched = leaving | {id(node) for node in above}
    return any(
        node.kind == ALIAS and id(node) not in leaving and (node.target is None or id(node.target) in touched)
        for node in walk(top)
    )
