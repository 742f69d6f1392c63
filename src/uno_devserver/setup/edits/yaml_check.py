"""Whether a changed YAML text still means what it meant, but for the change.

Tags, anchors, texts and the order of everything are compared, and nobody may refer to what was changed: an alias
elsewhere would change with it.
"""

from __future__ import annotations

from .yaml_nodes import ALIAS, Node, walk

TYPE_CHECKING = False
if TYPE_CHECKING:
    from collections.abc import Callable, Iterable


def same(old: Node, new: Node, changed: Node | None = None, fits: Callable[[Node], bool] | None = None) -> bool:
    """The nodes mean the same; where `changed` was, stands what `fits`."""
    if old is changed and fits is not None:
        return fits(new)
    return alike(old, new) and same_items(old.items, new.items, changed, fits)


def same_items(
    old: tuple[Node, ...],
    new: tuple[Node, ...],
    changed: Node | None = None,
    fits: Callable[[Node], bool] | None = None,
) -> bool:
    return len(old) == len(new) and all(same(one, other, changed, fits) for one, other in zip(old, new, strict=True))


def alike(old: Node, new: Node) -> bool:
    """The same, apart from what they hold."""
    return (old.kind, old.tag, old.anchor, old.value) == (new.kind, new.tag, new.anchor, new.value) and (
        bool(old.style) == bool(new.style)
    )


def is_referred_to(top: Node, above: Iterable[Node], gone: Iterable[Node]) -> bool:
    """An alias that stays leads to a node that is changed: one that holds the change, or is in what goes."""
    leaving = {id(inner) for node in gone for inner in walk(node)}
    touched = leaving | {id(node) for node in above}
    return any(
        node.kind == ALIAS and id(node) not in leaving and (node.target is None or id(node.target) in touched)
        for node in walk(top)
    )
