"""Small projects by chance: names, patterns and imports that the rules are full of."""

from __future__ import annotations

import json
from pathlib import Path
from random import Random

FOLDERS = ("src", "src/lib", "src/a", "src/a/b", "test", ".hidden", "src/.deep", "node_modules/p", "dist", "src/dist",
           "bower_components", "a.b", "lib", "src/node_modules/q", "Src")  # fmt: skip
FILES = ("a.ts", "b.ts", "index.ts", "a.d.ts", "a.js", "b.tsx", "c.mts", "c.d.mts", "d.cts", "a.test.ts", "x.min.js",
         "min.js", "data.json", "e.jsx", "f.mjs", ".hide.ts", "node_modules.ts", "g.d.ts", "g.js", "ab.ts", "B.ts",
         "c.mjs", "d.cjs", "d.d.cts", "package.json")  # fmt: skip
PATTERNS = ("**/*", "src", "src/*", "src/**/*", "**/*.ts", "*.ts", "src/a?.ts", "?.ts", "src/**/a*", "test", "lib/",
            "./src/lib", "src/*/b", "**/a/**/*", "*/lib/*", "**/*.json", "src/data.json", "**/.hidden/*", "src/.deep",
            ".hidden/**/*", "node_modules", "node_modules/**/*", "**/node_modules/*", "a.b", "a.b/*", "**", "src/**",
            "../*", "src/../lib/*", "**/../x", "**/?.d.ts", "**/*.min.js", "src/x.min.js", "**/min.js", "*", "?rc/*",
            "s*c/**/*.ts", "**/dist", "dist", "src/a.ts", "src/a.js", "**/*test*", "**/*.test.ts", "src/a/b/index.ts",
            "**/b/", "**/b/*", ".", "./", "*.d.ts", "src/*.mts", "lib/**", "**/a.*", "src\\lib")  # fmt: skip
MODULES = (None, None, "nodenext", "commonjs", "esnext", "preserve", "node16")


def make_project(folder: Path, random: Random) -> None:
    """Lay out a project with a tsconfig.json in an empty folder."""
    files = _lay_out_files(folder, random)
    for path in files:
        if path.suffix != ".json":
            path.write_text(_statements(path, files, random))
    (folder / "tsconfig.json").write_text(json.dumps(_config(files, folder, random)))


def _lay_out_files(folder: Path, random: Random) -> list[Path]:
    files = []
    for name in ("", *random.sample(FOLDERS, random.randint(3, 9))):
        for file in random.sample(FILES, random.randint(1, 7)):
            path = folder / name / file
            if path == folder / "package.json" and random.random() < 0.5:
                continue
            path.parent.mkdir(parents=True, exist_ok=True)
            path.write_text(
                json.dumps({"type": random.choice(("module", "commonjs"))}) if path.suffix == ".json" else ""
            )
            files.append(path)
    if random.random() < 0.3:
        (folder / "src" / "linked").parent.mkdir(exist_ok=True)
        (folder / "src" / "linked").symlink_to(random.choice((folder, folder / "lib", folder / "src")))
    return files


def _statements(path: Path, files: list[Path], random: Random) -> str:
    lines = ["export {}"]
    for _ in range(random.choice((0, 0, 0, 1, 2))):
        target = random.choice(files)
        name = "./" + _relative(target, path.parent)
        stem = name.rsplit(".", 1)[0]
        spelled = random.choice((name, stem, stem + ".js", name.rsplit("/", 1)[0]))
        form = random.choice(
            ('import "{}"', 'export * from "{}"', 'import x = require("{}")', 'const y = import("{}")', 'require("{}")')
        )
        lines.append(form.format(spelled))
    return "\n".join(lines)


def _relative(target: Path, folder: Path) -> str:
    up = 0
    while not target.is_relative_to(folder):
        folder = folder.parent
        up += 1
    return "../" * up + target.relative_to(folder).as_posix()


def _config(files: list[Path], folder: Path, random: Random) -> dict[str, object]:
    options: dict[str, object] = {}
    module = random.choice(MODULES)
    if module:
        options["module"] = module
    for name, likely in (("allowJs", 0.4), ("resolveJsonModule", 0.3), ("noResolve", 0.1)):
        if random.random() < likely:
            options[name] = random.random() < 0.8
    if random.random() < 0.3:
        options["outDir"] = random.choice(("dist", "./lib", "src/dist"))
    if random.random() < 0.5:
        options["jsx"] = "preserve"
    config: dict[str, object] = {"compilerOptions": options}
    if random.random() < 0.3:
        config["files"] = [_relative(path, folder) for path in random.sample(files, min(2, len(files)))]
    if random.random() < 0.75:
        config["include"] = random.sample(PATTERNS, random.randint(1, 4))
    if random.random() < 0.5:
        config["exclude"] = random.sample(PATTERNS, random.randint(0, 3))
    return config
