"""A saved run has its rows, commit, machine and time; its report goes to the pages that have a place for it."""

from __future__ import annotations

import json
from pathlib import Path

import pytest
from benchmarks import figures


def test_a_record_tells_commit_machine_and_date_and_takes_the_place_of_the_last_report(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    # given
    begin, end = "before\n<!-- soak figures: written with --save -->\n", "<!-- end of soak figures -->\nbehind\n"
    page, other = tmp_path / "proof.md", tmp_path / "README.md"
    page.write_text(f"{begin}old\n{end}", "utf-8")
    other.write_text("no marks\n", "utf-8")
    monkeypatch.setattr(figures, "RESULTS", tmp_path / "results")
    monkeypatch.setattr(figures, "PAGES", (page, other))

    # when
    figures.save("soak", 1, [{"seed": 7}], "new\n")

    # then
    kept = json.loads((tmp_path / "results" / "soak.json").read_text("utf-8"))
    assert kept["rows"] == [{"seed": 7}]
    assert f"{kept['cores']} cores, {kept['system']}, Python {kept['python']}, {kept['date']}" == figures.machine()
    assert figures.machine_and_commit().endswith(f", commit {kept['commit']}")
    assert page.read_text("utf-8") == f"{begin}new\n{end}"
    assert other.read_text("utf-8") == "no marks\n"
