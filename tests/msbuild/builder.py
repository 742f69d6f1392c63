"""Project files on disk, and what an evaluator makes of them."""

from __future__ import annotations

import os
from collections.abc import Mapping
from pathlib import Path

from support.files import write_all
from uno_devserver.msbuild.evaluation import Evaluation, Evaluator, Item
from uno_devserver.msbuild.problems import EvaluationProblem


class Package:
    """A folder `pkg` with project files, beside a folder `proj` with the (absent) project."""

    def __init__(self, root: Path) -> None:
        self.folder = root / "pkg"
        self.project = root / "proj" / "App.csproj"
        self.project.parent.mkdir(parents=True)
        self.folder.mkdir()

    def write(self, files: Mapping[str, str | bytes]) -> None:
        write_all(self.folder, files)

    def path(self, name: str) -> str:
        return os.path.join(self.folder, name)

    def evaluate(
        self,
        content: str,
        *more: str,
        plain: bool = False,
        properties: Mapping[str, str] | None = None,
        global_properties: Mapping[str, str] | None = None,
        environment: Mapping[str, str] | None = None,
    ) -> Evaluation:
        """What the body of a.targets (and of further files b, c, ...) says; `plain` is MSBuild in two values."""
        names = [f"{letter}.targets" for letter in "abcdefgh"[: 1 + len(more)]]
        self.write({name: f"<Project>{body}</Project>" for name, body in zip(names, (content, *more), strict=True)})
        evaluator = Evaluator(
            str(self.project),
            properties=properties,
            global_properties=global_properties,
            environment=environment,
            undefined_is_unknown=not plain,
        )
        return evaluator.evaluate([self.path(name) for name in names])

    def items(self, content: str, *more: str, plain: bool = False) -> list[Item]:
        return self.evaluate(content, *more, plain=plain).items("X")

    def identities(self, content: str, plain: bool = False) -> list[str]:
        """The items X inside an ItemGroup; an uncertain one ends in '?'."""
        found = self.items(f"<ItemGroup>{content}</ItemGroup>", plain=plain)
        return [item.identity if item.certain else item.identity + "?" for item in found]

    def code(self, content: str, plain: bool = True) -> str:
        """The error code of a file that cannot be evaluated."""
        try:
            self.evaluate(content, plain=plain)
        except EvaluationProblem as problem:
            return problem.code
        return ""
