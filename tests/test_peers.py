"""The comparison with other proxies: the table, the picture, and rows in which ours is not ahead."""

from __future__ import annotations

import re
import subprocess
import sys
from collections.abc import Iterator
from contextlib import nullcontext
from pathlib import Path
from xml.etree import ElementTree

import psutil
import pytest
from benchmarks import plot
from benchmarks.conversations import NoAnswer
from benchmarks.peers import __main__ as comparison
from benchmarks.peers import reloaders
from benchmarks.peers.experiments import ROWS, Arena, Experiment, bound
from benchmarks.peers.installed import ALONE, OURS, Peer
from benchmarks.peers.report import Measured, behind, render, rows
from benchmarks.peers.sessions import OnPipes, Session, end, memory, opened, started_server
from benchmarks.reloads import PLAIN

THEIRS, UNABLE = "their-proxy", "another"
SVG = "{http://www.w3.org/2000/svg}"


def measured(**theirs: float) -> Measured:
    """Ours has 10 in each row, theirs 20 or what the test says; one can do nothing."""
    samples = {(row.key, name): [10.0, 10.0, 10.0] for row in ROWS for name in (OURS, ALONE)}
    for row in ROWS:
        usual = 5.0 if row.unit == "/s" else 20.0
        samples[row.key, THEIRS] = [0.1, theirs.get(row.key, usual), 9000.0]
    reasons = {(row.key, UNABLE): "it starts no <server>" for row in ROWS}
    del samples["added", ALONE]
    return Measured(3, {OURS: "1", THEIRS: "2", UNABLE: "3", ALONE: "4"}, [5.0, 4.0, 6.0], [0.3], samples, reasons)


def saved(told: Measured) -> dict[str, object]:
    return {
        "date": "2026-01-02",
        "cores": 2,
        "python": "3.11.7",
        "system": "Linux",
        "rounds": told.rounds,
        "rows": rows(told),
    }


def test_the_table_has_medians_and_bare_starts_and_says_no_where_one_cannot() -> None:
    # when
    lines = render(measured(first=30.0)).splitlines()

    # then
    table = {line.split("|")[1].strip(): [cell.strip() for cell in line.split("|")[2:-1]] for line in lines[5:]}
    assert table[""][0] == f"**{OURS}**"
    assert table["launch → first call, server running"] == ["**10 ms (2.0)**", "30 ms (6.0)", "no", "10 ms (2.0)"]
    assert table["calls with 32 in flight"] == ["**10/s**", "5/s", "no", "10/s"]
    assert table["added to a call"][-1] == "–", "without a proxy there is nothing to add"
    assert len(table) == len(ROWS) + 2


def test_ours_is_bold_only_where_no_column_is_better() -> None:
    # given
    told = measured(list=9.0, rate=11.0)
    told.samples["first", ALONE] = [9.0]  # type: ignore[index]

    # when
    bold = {line.split("|")[1].strip() for line in render(told).splitlines() if "| **10" in line}

    # then
    better = {"launch → `tools/list`", "calls with 32 in flight", "launch → first call, server running"}
    assert bold == {row.title for row in ROWS} - better


def test_a_busy_machine_has_longer_bounds_and_a_quick_one_no_shorter() -> None:
    assert bound(15.0, bare=0.010) == 15.0
    assert bound(15.0, bare=0.100) == 60.0


@pytest.mark.parametrize(
    ("arguments", "sentence"),
    [
        (["--rounds", "0"], "'0' is no whole number above 0"),
        (["--save", "--quick"], "figures of 2 rounds say too little to be kept"),
    ],
)
def test_a_comparison_that_says_nothing_is_refused(arguments: list[str], sentence: str) -> None:
    command = [sys.executable, "-m", "benchmarks.peers", *arguments]

    process = subprocess.run(command, cwd=Path(__file__).parents[1], capture_output=True, text=True)

    assert process.returncode == 2
    assert sentence in process.stderr


def test_a_proxy_that_dies_is_told_with_its_last_words_and_the_others_go_on(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch, capsys: pytest.CaptureFixture[str]
) -> None:
    # given
    dying = [sys.executable, "-c", "import sys; sys.exit('no such option')"]

    def asks(peer: Peer, _: Arena) -> dict[str, float]:
        if peer.name == UNABLE:
            with opened(OnPipes(dying, tmp_path)) as session:
                session.process.wait()
                session.ask("ping", {})
        return {"cold": 1.0}

    monkeypatch.setattr(comparison, "EXPERIMENTS", (Experiment(asks, ("cold",)),))
    monkeypatch.setattr(comparison, "running_host", lambda: nullcontext("http://127.0.0.1:1/mcp"))
    monkeypatch.setattr(Arena, "begin_round", lambda *_: None)
    peers = [Peer(name, "1", lambda _: []) for name in (UNABLE, THEIRS)]

    # when
    told = comparison.measure(peers, rounds=2)

    # then
    assert told.samples == {("cold", THEIRS): [1.0, 1.0]}
    assert told.reasons["cold", UNABLE].startswith("BrokenPipeError")
    assert told.reasons["cold", UNABLE].endswith("no such option")
    assert "another, cold: no: BrokenPipeError" in capsys.readouterr().err


def test_a_proxy_that_fails_in_a_later_round_is_shown_with_the_rounds_that_it_did() -> None:
    # given
    told = measured()
    told.samples["healed", THEIRS] = [20.0, 20.0]  # type: ignore[index]
    told.reasons["healed", THEIRS] = "nothing good within 15 s"  # type: ignore[index]

    # when
    line = next(line for line in render(told).splitlines() if "kill -9" in line)

    # then
    assert line.count("rounds") == 1
    assert "| 20 ms (4.0), in 2 of 3 rounds |" in line


def test_a_row_in_which_another_is_ahead_is_told_and_the_server_alone_is_no_rival() -> None:
    # given
    told = measured(healed=9.0, rate=11.0)
    told.samples["cold", ALONE] = [1.0]  # type: ignore[index]

    # when
    sentences = behind(told)

    # then
    assert sentences == [
        "calls with 32 in flight: their-proxy has 11/s, ours 10/s",
        "`kill -9` of its server → good call: their-proxy has 9.00 ms, ours 10 ms",
    ]


def test_every_sample_and_every_reason_is_kept() -> None:
    # when
    kept = {row["key"]: row["peers"] for row in rows(measured()) if "key" in row}

    # then
    assert kept["edit"][THEIRS] == {"version": "2", "median": 20.0, "ratioToBare": 4.0, "samples": [0.1, 20.0, 9000.0]}  # type: ignore[index]
    assert kept["edit"][UNABLE] == {"version": "3", "no": "it starts no <server>"}  # type: ignore[index]


def test_longer_bars_are_larger_values_and_every_panel_is_inside_the_picture() -> None:
    # when
    root = ElementTree.fromstring(plot.draw(saved(measured(list=1000.0))))

    # then
    panels = root.findall(f"{SVG}g")
    assert len(panels) == len(ROWS) - len(plot.LEFT_OUT)
    bars = [float(bar.attrib["width"]) for bar in panels[1].iter(f"{SVG}rect")]
    assert bars[0] < bars[1] <= plot.BARS + 1
    assert bars[0] == bars[2], "ours and the server alone have the same value"
    texts = ["".join(text.itertext()) for text in panels[1].iter(f"{SVG}text")]
    assert {"launch → tools/list", "10 ms", "1,000 ms", "100×", "no"} <= set(texts)
    right, bottom = (float(root.attrib[side]) for side in ("width", "height"))
    for panel in panels:
        x, y = map(float, re.findall(r"[\d.]+", panel.attrib["transform"]))
        assert x + plot.PANEL_WIDTH <= right
        assert all(y + float(text.attrib["y"]) < bottom for text in panel.iter(f"{SVG}text"))


@pytest.fixture
def session(tmp_path: Path) -> Iterator[Session]:
    """With a server below a shell that stays: as some proxies start theirs."""
    (tmp_path / "server.py").write_text(PLAIN, "utf-8")
    command = ["/bin/sh", "-c", f"{sys.executable} {tmp_path}/server.py; exit 3"]
    opened = OnPipes(command, tmp_path)
    yield opened
    end(opened)


def test_the_server_is_found_below_its_shell_and_its_end_is_told(session: Session, tmp_path: Path) -> None:
    # given
    session.shake_hands()

    # when
    server = started_server(session, [sys.executable, f"{tmp_path}/server.py"])

    # then
    assert server.pid != session.process.pid
    assert memory(session) > server.memory_info().rss
    server.kill()
    with pytest.raises(NoAnswer, match="ended"):
        session.until(lambda _: True, {"name": "revision"}, 10)


def test_a_session_that_ends_leaves_no_process(session: Session, tmp_path: Path) -> None:
    # given
    session.shake_hands()
    server = started_server(session, [sys.executable, f"{tmp_path}/server.py"])

    # when
    end(session)

    # then
    assert session.process.returncode is not None
    assert not psutil.pid_exists(server.pid)


def reloads(**taken: float) -> reloaders.Measured:
    """A server that starts in 100 ms; ours adds 50 by a restart and 15 by a swap, or what the test says."""
    usual = {reloaders.OWN: 100.0, reloaders.RESTART: 150.0, reloaders.SWAP: 115.0, "nodemon": 180.0}
    usual |= {reloaders.RESTART: taken.get("restart", 150.0), "nodemon": taken.get("nodemon", 180.0)}
    samples = {(server.name, name): [value] * 3 for server in reloaders.SERVERS for name, value in usual.items()}
    reasons = {(reloaders.SERVERS[0].name, "mcpmon"): "it ended"}
    return reloaders.Measured({"nodemon": "3"}, samples, reasons, 0.5)


def test_programs_that_reload_are_compared_with_the_servers_own_start() -> None:
    plain, other = reloaders.render(reloads())[-2:]

    assert plain == "| a plain Node server | 100 | 150 (+50, +50) | 115 (+15, +15) | – | 180 (+80, +80) | no | – |"
    assert other.startswith("| a server made with fastmcp | 100 |")


def test_a_reload_that_adds_too_much_or_is_not_the_fastest_is_told() -> None:
    assert reloaders.missed(reloads()) == []
    assert reloaders.missed(reloads(restart=161.0)) == [
        f"{server.name}: uno-devserver, restart adds 61 ms, not 60" for server in reloaders.SERVERS
    ]
    assert reloaders.missed(reloads(nodemon=110.0)) == [
        f"{server.name}: nodemon is faster" for server in reloaders.SERVERS
    ]
