"""YAML texts as people and programs write them, made at random: for tests that change them.

Block and flow style, any indentation, quotes, block scalars, comments and blank lines in odd places, both line endings.
"""

from __future__ import annotations

import random
from dataclasses import dataclass

from hypothesis import strategies as st

KEYS = ["name", "cmd", "args", "env", "url", "enabled", "timeout", "description", "1", "a b", "é", "\U0001f600x"]
WORDS = ["uvx", "--mcp-app", "a b", "it's", "http://localhost:1/mcp", "x:y", "a#b", "C:\\bin", "é", "\U0001f600", "-y"]
SPECIALS = ["yes", "null", "1", "1.5", "", "a: b", "a #b", "- x", "{x}", "[", "*a", "&a", "!t", "%", "@", "~", "'", '"']
PLAIN = ["1", "-0.5", "true", "null", "~", "yes", "0x1f", "1_000", "2001-12-14", "12:30", *WORDS]
BREAK = "\x00"  # within what is written as one line, until the line ending is known
COMMENTS = ["#", "# why", "# - name: UnoApp", "# a: {", "#: '", '# "', "#\té"]
VALUES = st.recursive(
    st.booleans() | st.integers(-9, 999) | st.none() | st.sampled_from([*WORDS, *SPECIALS]) | st.text(max_size=5),
    lambda inner: st.lists(inner, max_size=3) | st.dictionaries(st.sampled_from(KEYS), inner, max_size=3),
    max_leaves=5,
)
SETTINGS = st.dictionaries(st.sampled_from([key for key in KEYS if key != "name"]), VALUES, min_size=1, max_size=4)


@dataclass(frozen=True)
class YamlText:
    text: str
    root: str
    name_key: str | None  # None: the servers are a mapping
    names: tuple[str, ...]  # of the servers, in their order
    is_flow: bool  # the servers stand in brackets


def yaml_texts(min_servers: int = 0) -> st.SearchStrategy[YamlText]:
    return st.builds(_text, st.integers(0, 2**32), st.booleans(), st.integers(min_servers, 3))


def _text(seed: int, is_list: bool, servers: int) -> YamlText:
    return _Writer(random.Random(seed)).text(is_list, servers)


class _Writer:
    def __init__(self, chance: random.Random) -> None:
        self.chance = chance
        self.step = chance.choice([1, 2, 2, 4])
        self.dash = chance.choice([0, 2, self.step])
        self.gap = chance.choice([2, 2, 3, 4])
        self.noise = chance.choice([0, 0, 0.2, 0.5])
        self.flows = chance.choice([0, 0.2, 0.6])
        self.lines: list[str] = []

    def text(self, is_list: bool, servers: int) -> YamlText:
        root, chance = ("mcpServers" if is_list else "extensions"), self.chance
        names = tuple(chance.sample(["dev", "a b", "'q'", "é", "uno", "12"], servers))
        self.lines = chance.choice([[], [], ["---"], ["%YAML 1.1", "---"], ["# top", "--- # x"]])
        whole_in_flow = chance.random() < 0.1
        flow = whole_in_flow or chance.random() < 0.3
        if whole_in_flow:
            self.lines.append("{before: 1,")
            self.lines.append(f" {root}: " + self.servers_in_flow(is_list, names, " "))
            self.lines.append(chance.choice([", after: [x]", "", ", # c", "# c"]))
            self.lines.append("}")
        else:
            self.others(["model", "x y"])
            self.space(0)
            if flow or not names:
                flow = bool(names)
                brackets = self.servers_in_flow(is_list, names, " ")
                value = brackets if names else chance.choice(["", " ~", " []" if is_list else " {}"]).lstrip()
                self.emit(f"{root}: {value}".rstrip())
            else:
                self.emit(f"{root}:")
                self.servers(is_list, names)
            self.others(["last", "é"])
        if chance.random() < 0.2:
            self.lines.append("...")
        newline = chance.choice(["\n", "\n", "\r\n"])
        text = newline.join(self.lines)
        if chance.random() < 0.7:
            text += newline * chance.choice([1, 1, 2])
        return YamlText(text.replace(BREAK, newline), root, "name" if is_list else None, names, flow)

    def others(self, keys: list[str]) -> None:
        for key in keys:
            if self.chance.random() < 0.5:
                self.space(0)
                self.pair(0, key, 0)
        self.space(0)

    def servers(self, is_list: bool, names: tuple[str, ...]) -> None:
        column = self.dash if is_list else self.step
        for name in names:
            self.space(column)
            if not is_list:
                self.emit(" " * column + self.key(name) + ":", comment=True)
                self.pairs(column + self.step)
            elif self.chance.random() < 0.2:
                self.emit(" " * column + "-", comment=True)
                self.pairs(column + self.gap, name)
            else:
                here = len(self.lines)
                self.pairs(column + self.gap, name)
                self.lines[here] = " " * column + "-" + self.lines[here][column + 1 :]

    def pairs(self, column: int, name: str | None = None) -> None:
        keys = self.chance.sample(KEYS[1:], self.chance.randint(1, 4))
        if name is not None:
            at = self.chance.randint(0, len(keys))
            keys.insert(at, "name")
        for at, key in enumerate(keys):
            if at:
                self.space(column)
            if key == "name":
                self.emit(f"{' ' * column}name: {self.quoted(name or '')}", comment=True)
            else:
                self.pair(column, key, 1)

    def pair(self, column: int, key: str, depth: int) -> None:
        head = f"{' ' * column}{self.key(key)}:"
        kind = self.chance.random()
        if kind < 0.15 and depth < 3:
            self.emit(head, comment=True)
            self.pair(column + self.step, "inner", depth + 1)
        elif kind < 0.35:
            self.emit(head, comment=True)
            for _ in range(self.chance.randint(1, 3)):
                self.space(column + self.dash)
                self.emit(f"{' ' * (column + self.dash)}- {self.scalar()}".rstrip(), comment=True)
        elif kind < 0.35 + self.flows / 3:
            self.emit(f"{head} {self.value_in_flow(0)}", comment=True)
        elif kind < 0.75:
            self.emit(f"{head} {self.scalar()}".rstrip(), comment=True)
        elif kind < 0.85:
            self.block_scalar(head, column)
        else:
            quote = self.chance.choice(["", '"', "'"])
            self.emit(f"{head} {quote}one{BREAK}{' ' * (column + 3)}two{quote}", comment=True)

    def block_scalar(self, head: str, column: int) -> None:
        self.lines.append(f"{head} {self.chance.choice('|>')}{self.chance.choice(['', '-', '+'])}")
        self.lines += [
            " " * (column + 2) + line for line in self.chance.choice([["x"], ["# no", "  y"], ["a: b", "z"]])
        ]

    def emit(self, line: str, comment: bool = False) -> None:
        if comment and self.chance.random() < self.noise:
            line += self.chance.choice([" ", "  "]) + self.chance.choice(COMMENTS)
        self.lines.append(line)

    def space(self, column: int) -> None:
        while self.chance.random() < self.noise:
            indent = " " * self.chance.choice([0, column, column + 1])  # further in, block scalars would swallow it
            self.lines.append(self.chance.choice(["", indent + self.chance.choice(COMMENTS)]))

    def key(self, name: str) -> str:
        return self.quoted(name) if self.chance.random() < 0.3 or name[0] in "'1" else name

    def quoted(self, text: str) -> str:
        return self.chance.choice(['"' + text + '"', "'" + text.replace("'", "''") + "'"])

    def scalar(self) -> str:
        text = self.chance.choice(SPECIALS)
        return self.chance.choice(
            ["", self.chance.choice(PLAIN), "'" + text.replace("'", "''") + "'", '"x\\n\\"\\u00e9"']
        )

    def servers_in_flow(self, is_list: bool, names: tuple[str, ...], indent: str) -> str:
        blank = self.chance.choice(["", " ", f"{BREAK}{indent}  "])
        entries = []
        for name in names:
            value = self.mapping_in_flow(0, name if is_list else None)
            entries.append(value if is_list else f"{self.quoted(name)}: {value}")
        between = "," + (blank or " ")
        if blank.startswith(BREAK) and self.chance.random() < 0.3:
            between = f", # c{blank}"
        inner = between.join(entries) + self.chance.choice(["", ",", " "] if entries else [""])
        if blank.startswith(BREAK) and self.chance.random() < 0.3:
            inner += f" # last{BREAK}{indent}"
        elif blank.startswith(BREAK):
            inner += self.chance.choice(["", f"{BREAK}{indent}"])
        return f"[{blank}{inner}]" if is_list else f"{{{blank}{inner}}}"

    def value_in_flow(self, depth: int) -> str:
        kind = self.chance.random() if depth < 2 else 1.0
        if kind < 0.3:
            return "[" + ", ".join(self.value_in_flow(depth + 1) for _ in range(self.chance.randint(0, 3))) + "]"
        if kind < 0.6:
            return self.mapping_in_flow(depth + 1)
        return self.chance.choice(["1", "true", "~", "uvx", "--mcp-app", "'a, b'", '"{"', "'#'", "a b"])

    def mapping_in_flow(self, depth: int, name: str | None = None) -> str:
        keys = self.chance.sample(["cmd", "args", "'a b'", '"é"', "1"], self.chance.randint(0, 3))
        pairs = [f"{key}: {self.value_in_flow(depth + 1)}" for key in keys]
        if name is not None:
            pairs.insert(0, f"name: {self.quoted(name)}")
        return "{" + ", ".join(pairs) + "}"
