"""One target under atheris, in a process of its own: libFuzzer ends the process that it runs in.

`python child.py <module> <target> <folder for findings> <libFuzzer's arguments>`. An input that breaks the promise is
written down, once per place in the code, and fuzzing goes on; a hang, or memory without end, ends the process as
libFuzzer does it, which leaves the input in the same folder.
"""

from __future__ import annotations

import hashlib
import json
import sys
import traceback
from importlib import import_module
from pathlib import Path

import atheris

sys.path.insert(0, str(Path(__file__).parents[1]))

with atheris.instrument_imports(include=["uno_devserver"]):
    from fuzz.target import Target, attempt

    # Only the module of the target: what is imported is instrumented, which takes its time.
    targets = import_module(sys.argv[1]).TARGETS


def main() -> None:
    name, findings, *arguments = sys.argv[2:]
    target = next(one for one in targets if one.name == name)
    known: set[str] = set()
    folder = Path(findings)

    def one_input(data: bytes) -> None:
        try:
            attempt(target, data)
        except Exception as error:
            place = place_of(error)
            if place not in known:
                known.add(place)
                record(folder, target, data, error, place)

    atheris.Setup([sys.argv[0], *arguments], one_input)
    atheris.Fuzz()


def place_of(error: Exception) -> str:
    """Where it was raised, as far as that is ours: the same defect is told once."""
    frames = traceback.extract_tb(error.__traceback__)
    ours = [frame for frame in frames if "uno_devserver" in frame.filename] or frames
    return f"{type(error).__name__} in {Path(ours[-1].filename).name}:{ours[-1].lineno}"


def record(folder: Path, target: Target, data: bytes, error: Exception, place: str) -> None:
    path = folder / f"crash-{hashlib.sha256(place.encode()).hexdigest()[:16]}"  # the same in each round
    path.write_bytes(data)
    trace = "".join(traceback.format_exception(error))
    about = {"target": target.name, "place": place, "error": f"{type(error).__name__}: {error}"[:500], "trace": trace}
    path.with_suffix(".json").write_text(json.dumps(about, indent=2), "utf-8")


if __name__ == "__main__":
    main()
