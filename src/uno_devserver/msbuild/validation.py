"""Validates the elements and attributes of a project file before it is evaluated.

Like MSBuild, `validate` rejects a whole file even if a false condition would skip the invalid part. The content of
targets is not checked, because it is not evaluated.
"""

from __future__ import annotations

from .problems import EvaluationProblem, quoted, shortened
from .xml import Comment, Element


def words(text: str) -> frozenset[str]:
    """The words of a text, as a set."""
    return frozenset(text.split())


NAMESPACE = "http://schemas.microsoft.com/developer/msbuild/2003"

# MSBuild's own limit, which also limits the recursion here and in the evaluation.
MAX_CHOOSE_DEPTH = 50

# Built-in metadata, which files can read but not set.
BUILT_IN_METADATA = words(
    "accessedtime createdtime definingprojectdirectory definingprojectextension definingprojectfullpath "
    "definingprojectname directory extension filename fullpath identity modifiedtime recursivedir relativedir "
    "rootdir"
)

RESERVED_PROPERTIES = words(
    "msbuildassemblyversion msbuildbinpath msbuilddisablefeaturesfromversion msbuildfileversion msbuildinteractive "
    "msbuildlasttaskresult msbuildnodecount msbuildprogramfiles32 msbuildprojectdefaulttargets msbuildprojectdirectory "
    "msbuildprojectdirectorynoroot msbuildprojectextension msbuildprojectfile msbuildprojectfullpath "
    "msbuildprojectname msbuildruntimetype msbuildsemanticversion msbuildstartupdirectory msbuildthisfile "
    "msbuildthisfiledirectory msbuildthisfiledirectorynoroot msbuildthisfileextension msbuildthisfilefullpath "
    "msbuildthisfilename msbuildtoolspath msbuildtoolsversion msbuildversion"
)
_RESERVED_NAMES = words(
    "Choose ItemGroup OnError Otherwise Output ProjectExtensions PropertyGroup Target UsingTask VisualStudioProject "
    "When"
)
_CONDITION_AND_LABEL = frozenset(("Condition", "Label"))
_IMPORT_ATTRIBUTES = words("Condition Label MinimumVersion Project Sdk Version")
_ITEM_ATTRIBUTES = words(
    "Condition Exclude Include KeepDuplicates KeepMetadata Label MatchOnMetadata MatchOnMetadataOptions Remove "
    "RemoveMetadata Update"
)
_ITEM_ATTRIBUTES_IN_ANY_CASE = frozenset(name.lower() for name in _ITEM_ATTRIBUTES)
_IGNORED_SECTIONS = words("ProjectExtensions Sdk Target UsingTask")


class DefinedNames:
    """The properties and item types that a file can define, in lower case."""

    __slots__ = ("items", "properties")

    def __init__(self) -> None:
        self.properties: set[str] = set()
        self.items: set[str] = set()


def validate(root: Element) -> DefinedNames:
    """The names that the file can define; raises EvaluationProblem if MSBuild would reject the file."""
    local_name = root.name.rpartition(":")[2]
    if local_name != "Project":
        raise EvaluationProblem("MSB4068", f"the root element is <{root.name}>; it must be <Project>")
    if ":" in root.name or root.attributes.get("xmlns", NAMESPACE) not in (NAMESPACE, ""):
        raise EvaluationProblem("MSB4041", "the namespace of <Project> must be MSBuild's, or none")
    names = DefinedNames()
    for section in _children(root):
        if section.name == "Import":
            _check_import(section)
        elif section.name == "ImportGroup":
            _check_import_group(section)
        elif section.name not in _IGNORED_SECTIONS:
            _check_section(section, root, names, 0)
    return names


def metadata_attributes(element: Element) -> list[tuple[str, str]]:
    """The attributes of an item that are metadata, in order."""
    return [pair for pair in element.attributes.items() if pair[0] not in _ITEM_ATTRIBUTES]


def is_valid_name(name: str) -> bool:
    """Whether this is a valid name of a property, item type or metadata."""
    # An ASCII identifier that may contain dashes.
    return name.isascii() and name[:1] != "-" and name.replace("-", "_").isidentifier()


def _check_section(section: Element, parent: Element, names: DefinedNames, depth: int) -> None:
    if section.name == "PropertyGroup":
        _check_property_group(section, names)
    elif section.name == "ItemGroup":
        _check_attributes(section, _CONDITION_AND_LABEL)
        for item in _children(section):
            _check_item(item)
            names.items.add(item.name.lower())
    elif section.name == "ItemDefinitionGroup":
        _check_attributes(section, _CONDITION_AND_LABEL)
        for definition in _children(section):
            _check_metadata_attributes(definition, _CONDITION_AND_LABEL)
            for metadata in _children(definition):
                _check_metadata(metadata)
    elif section.name == "Choose":
        _check_choose(section, names, depth + 1)
    else:
        raise _misplaced(section.name, parent)


def _check_property_group(group: Element, names: DefinedNames) -> None:
    _check_attributes(group, _CONDITION_AND_LABEL)
    for element in _children(group):
        _check_attributes(element, _CONDITION_AND_LABEL)
        _check_name(element)
        if element.name in _RESERVED_NAMES or element.name.lower() in RESERVED_PROPERTIES:
            raise EvaluationProblem("MSB4004", f"the property {element.name} is reserved and cannot be set")
        names.properties.add(element.name.lower())


def _check_item(item: Element) -> None:
    attributes = item.attributes
    operations = [name for name in ("Include", "Remove", "Update") if name in attributes]
    if len(operations) > 1:
        raise EvaluationProblem("MSB4111", f"<{item.name}> has {' and '.join(operations)}; only one is allowed")
    if not operations:
        raise EvaluationProblem("MSB4232", f"<{item.name}> has neither Include nor Remove nor Update")
    if attributes.get("Exclude") and not attributes.get("Include"):
        raise EvaluationProblem("MSB4066", f"<{item.name}> has an Exclude without an Include")
    if not attributes[operations[0]]:
        raise EvaluationProblem("MSB4035", f"the attribute {operations[0]} of <{item.name}> is empty")
    _check_name(item)
    if item.name in _RESERVED_NAMES:
        raise EvaluationProblem("MSB4117", f"the item name {item.name} is reserved")
    if len(attributes) > 1:
        _check_metadata_attributes(item, _ITEM_ATTRIBUTES)
    if item.children:
        for metadata in _children(item):
            if "Remove" in attributes:
                raise EvaluationProblem("MSB4162", f"<{metadata.name}> stands below a Remove of <{item.name}>")
            _check_metadata(metadata)


def _check_metadata_attributes(element: Element, allowed: frozenset[str]) -> None:
    for name in element.attributes:
        if name in allowed:
            continue
        key = name.lower()
        reserved = key in _ITEM_ATTRIBUTES_IN_ANY_CASE or key in BUILT_IN_METADATA or name in _RESERVED_NAMES
        # MSBuild reserves attributes with a leading underscore.
        if reserved or name[0] == "_" or not is_valid_name(name):
            raise EvaluationProblem("MSB4066", f"<{shortened(element.name)}> cannot have the attribute {quoted(name)}")


def _check_metadata(metadata: Element) -> None:
    _check_attributes(metadata, _CONDITION_AND_LABEL)
    _check_name(metadata)
    if metadata.name.lower() in BUILT_IN_METADATA:
        raise EvaluationProblem("MSB4033", f"the metadata {metadata.name} is built in and cannot be set")
    if metadata.name in _RESERVED_NAMES:
        raise EvaluationProblem("MSB4118", f"the metadata name {metadata.name} is reserved")


def _check_choose(choose: Element, names: DefinedNames, depth: int) -> None:
    if depth > MAX_CHOOSE_DEPTH:
        raise EvaluationProblem("MSB4114", f"<Choose> is nested more than {MAX_CHOOSE_DEPTH} deep")
    _check_attributes(choose, frozenset())
    branches = _children(choose)
    for place, branch in enumerate(branches):
        if branch.name == "When":
            if not branch.attributes.get("Condition"):
                raise EvaluationProblem("MSB4035", "<When> has no condition")
        elif branch.name == "Otherwise":
            _check_attributes(branch, frozenset())
            if place + 1 < len(branches):
                code = "MSB4084" if branches[place + 1].name == "When" else "MSB4082"
                raise EvaluationProblem(code, "<Otherwise> must be the last branch of <Choose>")
        else:
            raise _misplaced(branch.name, choose)
        for section in _children(branch):
            _check_section(section, branch, names, depth)
    if not branches or branches[0].name != "When":
        raise EvaluationProblem("MSB4085", "<Choose> has no <When>")


def _check_import_group(group: Element) -> None:
    _check_attributes(group, _CONDITION_AND_LABEL)
    for element in _children(group):
        if element.name != "Import":
            raise _misplaced(element.name, group)
        _check_import(element)


def _check_import(element: Element) -> None:
    _check_attributes(element, _IMPORT_ATTRIBUTES)
    if not element.attributes.get("Project"):
        raise EvaluationProblem("MSB4035", "<Import> has no Project")
    for child in _children(element):
        raise _misplaced(child.name, element)


def _check_attributes(element: Element, allowed: frozenset[str]) -> None:
    for name in element.attributes:
        if name not in allowed:
            raise EvaluationProblem("MSB4066", f"<{shortened(element.name)}> cannot have the attribute {quoted(name)}")


def _check_name(element: Element) -> None:
    if not is_valid_name(element.name):
        raise EvaluationProblem("MSB5016", f"<{shortened(element.name)}> is not a valid name")


def _children(element: Element) -> list[Element]:
    """The child elements of an element that may contain only elements and comments."""
    found = []
    for child in element.children:
        if isinstance(child, Element):
            found.append(child)
        elif type(child) is not Comment:
            raise _misplaced(child[:40].strip(), element)
    return found


def _misplaced(what: str, parent: Element) -> EvaluationProblem:
    return EvaluationProblem(
        "MSB4067", f"{quoted(what)} is not allowed below <{shortened(parent.name)}> (line {parent.line})"
    )
