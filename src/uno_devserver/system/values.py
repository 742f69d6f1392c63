"""Frozen records that take no time to import.

`dataclasses` imports `inspect` (10 ms, as long as a bare interpreter start) and compiles a constructor per class, which
is too slow before the first answer. A value is declared like a dataclass and checked like one by mypy, but its methods
are shared and not generated:

    class Package(Value):
        name: str
        version: str
        source: str = "restore"
"""

from __future__ import annotations

TYPE_CHECKING = False
if TYPE_CHECKING:
    from typing import Any, NoReturn, Self, dataclass_transform
else:

    def dataclass_transform(**_):
        return lambda cls: cls


@dataclass_transform(frozen_default=True, eq_default=True)
class Value:
    """Base of all records: positional or keyword fields, defaults, equality by fields, no assignment."""

    if not TYPE_CHECKING:
        _fields = ()
        _defaults = {}

        def __init_subclass__(cls):
            own = tuple(cls.__annotations__) if "__annotations__" in cls.__dict__ else ()
            cls._fields = tuple(dict.fromkeys(cls._fields + own))  # a field that is declared again keeps its position
            cls._names = frozenset(cls._fields)
            cls._defaults = {
                **cls._defaults,
                **{name: cls.__dict__[name] for name in own if name in cls.__dict__},
            }

        def __init__(self, *args, **kwargs):
            fields = self._fields
            if len(args) == len(fields) and not kwargs:  # the most frequent case needs no checks
                self.__dict__.update(zip(fields, args))  # noqa: B905  # strict= would take a third longer
                return
            if len(args) > len(fields):
                raise TypeError(f"{type(self).__name__} takes {len(fields)} fields, got {len(args)}")
            if kwargs and args and not kwargs.keys().isdisjoint(fields[: len(args)]):
                twice = sorted(kwargs.keys() & set(fields[: len(args)]))
                raise TypeError(f"{type(self).__name__}: fields {twice} are given twice")
            values = self.__dict__
            values.update(self._defaults)
            values.update(zip(fields, args, strict=False))
            values.update(kwargs)
            if values.keys() != self._names:
                wrong = self._names.symmetric_difference(values)
                raise TypeError(f"{type(self).__name__}: missing or unknown fields {sorted(wrong)}")

    def __setattr__(self, name: str, value: object) -> NoReturn:
        raise AttributeError(f"{type(self).__name__} is frozen; use replace({name}=...)")

    def __delattr__(self, name: str) -> NoReturn:
        raise AttributeError(f"{type(self).__name__} is frozen")

    def __eq__(self, other: object) -> bool:
        return type(other) is type(self) and other.__dict__ == self.__dict__

    def __hash__(self) -> int:
        return hash(tuple(self.__dict__[name] for name in field_names(type(self))))

    def __repr__(self) -> str:
        inside = ", ".join(f"{name}={self.__dict__[name]!r}" for name in field_names(type(self)))
        return f"{type(self).__name__}({inside})"

    def replace(self, **changes: Any) -> Self:
        return type(self)(**{**self.__dict__, **changes})


def field_names(cls: type[Value]) -> tuple[str, ...]:
    """The fields of a value class, in the order of declaration."""
    names: tuple[str, ...] = cls._fields  # type: ignore[attr-defined]  # set at run time, hidden from mypy above
    return names
