"""A value is declared and behaves like a frozen dataclass, for none of its import time."""

from __future__ import annotations

import copy
import dataclasses
import pickle
from typing import Any

import pytest

from uno_devserver.system.values import Value, field_names


class Package(Value):
    name: str
    version: str
    source: str = "restore"

    @property
    def key(self) -> str:
        return f"{self.name}/{self.version}".lower()


class Signed(Package):
    signer: str = "nobody"


class Empty(Value):
    pass


@dataclasses.dataclass(frozen=True)
class Twin:
    """The dataclass that `Package` stands for."""

    name: str
    version: str
    source: str = "restore"


def make(*args: Any, **kwargs: Any) -> Package:
    """For calls that the type checker would rightly refuse."""
    return Package(*args, **kwargs)


@pytest.mark.parametrize(
    ("args", "kwargs"),
    [
        (("Acme", "1.0"), {}),
        (("Acme", "1.0", "sdk"), {}),
        (("Acme",), {"version": "1.0"}),
        ((), {"version": "1.0", "name": "Acme"}),
        ((), {"source": "sdk", "version": "1.0", "name": "Acme"}),
    ],
)
def test_fields_are_given_by_position_or_by_name_and_defaults_fill_the_rest(
    args: tuple[str, ...], kwargs: dict[str, str]
) -> None:
    package, twin = make(*args, **kwargs), Twin(*args, **kwargs)

    assert (package.name, package.version, package.source) == (twin.name, twin.version, twin.source)


@pytest.mark.parametrize(
    ("args", "kwargs"),
    [
        ((), {}),
        (("Acme",), {}),
        (("Acme", "1.0", "sdk", "too many"), {}),
        (("Acme", "1.0"), {"colour": "red"}),
        (("Acme",), {"colour": "red"}),
        ((), {"name": "Acme", "colour": "red", "source": "sdk"}),
        (("Acme", "1.0"), {"name": "Twice"}),
        (("Acme",), {"name": "Twice"}),
    ],
    ids=[
        "none",
        "missing",
        "too many",
        "unknown",
        "enough, one unknown",
        "by name",
        "twice",
        "twice, short",
    ],
)
def test_wrong_fields_are_refused_where_a_dataclass_refuses_them(args: tuple[str, ...], kwargs: dict[str, str]) -> None:
    with pytest.raises(TypeError):
        Twin(*args, **kwargs)

    with pytest.raises(TypeError, match="Package"):
        make(*args, **kwargs)


def test_the_refusal_names_the_fields_at_fault() -> None:
    with pytest.raises(TypeError, match=r"\['colour', 'version'\]"):
        make("Acme", colour="red")


def test_a_subclass_adds_its_fields_behind_those_of_its_base() -> None:
    signed = Signed("Acme", "1.0", "sdk", "Contoso")

    assert field_names(Signed) == ("name", "version", "source", "signer")
    assert (signed.source, signed.signer) == ("sdk", "Contoso")
    assert Signed("Acme", "1.0").signer == "nobody"
    assert field_names(Package) == ("name", "version", "source")


def test_a_subclass_can_give_a_field_of_its_base_another_default() -> None:
    class Local(Package):
        source: str = "disk"

    assert field_names(Local) == ("name", "version", "source")
    assert Local("Acme", "1.0").source == "disk"
    assert Package("Acme", "1.0").source == "restore"


def test_a_value_without_fields_takes_none() -> None:
    assert Empty() == Empty()
    with pytest.raises(TypeError):
        Empty(1)  # type: ignore[call-arg]


def test_values_are_equal_when_type_and_fields_are() -> None:
    package = Package("Acme", "1.0")

    assert package == Package("Acme", "1.0", "restore")
    assert package != Package("Acme", "1.1")
    assert package != Signed("Acme", "1.0")
    other: object = ("Acme", "1.0", "restore")
    assert package != other


def test_equal_values_are_one_key_however_they_were_made() -> None:
    keys = {Package("Acme", "1.0"), make(version="1.0", name="Acme"), Package("Acme", "1.0").replace(source="restore")}

    assert len(keys) == 1


def test_a_value_that_holds_a_list_cannot_be_a_key() -> None:
    with pytest.raises(TypeError, match="unhashable"):
        hash(make(["Acme"], "1.0"))


def test_the_text_form_is_the_dataclass_form() -> None:
    assert repr(Package("Ac'me", "1.0")) == repr(Twin("Ac'me", "1.0")).replace("Twin", "Package")
    assert repr(make(version="1.0", source="sdk", name="Acme")) == "Package(name='Acme', version='1.0', source='sdk')"


def test_replace_gives_a_changed_copy_of_the_same_type() -> None:
    signed = Signed("Acme", "1.0", signer="Contoso")

    newer = signed.replace(version="2.0")

    assert newer == Signed("Acme", "2.0", "restore", "Contoso")
    assert signed.version == "1.0"
    with pytest.raises(TypeError):
        signed.replace(colour="red")


def test_no_field_can_be_set_added_or_deleted() -> None:
    package = Package("Acme", "1.0")

    with pytest.raises(AttributeError, match="replace"):
        package.version = "2.0"  # type: ignore[misc]
    with pytest.raises(AttributeError):
        package.colour = "red"
    with pytest.raises(AttributeError):
        del package.version

    assert package == Package("Acme", "1.0")


def test_properties_and_copies_work_as_usual() -> None:
    package = Package("Acme", "1.0")

    assert package.key == "acme/1.0"
    assert copy.copy(package) == package
    assert copy.deepcopy(package) == package
    assert pickle.loads(pickle.dumps(package)) == package
