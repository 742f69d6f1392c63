from __future__ import annotations

import argparse
import os
import signal

import pytest

from support.long_runs import interruptible, positive, positive_count


@pytest.mark.parametrize("text", ["0", "-1", "nan", "inf", "1e999", "", "ten"])
def test_a_run_of_nothing_is_refused(text: str) -> None:
    with pytest.raises(argparse.ArgumentTypeError, match="no number above 0"):
        positive(text)
    with pytest.raises(argparse.ArgumentTypeError, match="no number above 0"):
        positive_count(text)


def test_numbers_above_zero_are_taken_and_counts_are_whole() -> None:
    assert positive("0.5") == 0.5
    assert positive_count("1e6") == 1_000_000
    with pytest.raises(argparse.ArgumentTypeError, match="no whole number"):
        positive_count("1.5")


@pytest.mark.parametrize(("number", "code"), [(signal.SIGINT, 130), (signal.SIGTERM, 143)])
def test_who_ends_a_run_gets_one_line_and_what_it_made_is_cleared(
    number: int, code: int, capsys: pytest.CaptureFixture[str]
) -> None:
    cleared = []
    before = signal.getsignal(number)

    def run() -> None:
        with interruptible("seed 7"):
            try:
                os.kill(os.getpid(), number)
            finally:
                cleared.append(True)

    with pytest.raises(SystemExit) as ended:
        run()

    assert ended.value.code == code
    assert cleared
    assert capsys.readouterr().err == "Interrupted; seed 7\n"
    assert signal.getsignal(number) is before
