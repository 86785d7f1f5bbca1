"""What a running load reports is kept second by second: once, in order, within bounds, and over a restart."""

from __future__ import annotations

from pathlib import Path

import pytest

from prony.app.fleet import live_series
from prony.app.fleet.live_series import LiveSeries, read_live_series
from prony.model.event import Live


def live(at_s: float, *, run: int = 0, failed: int = 0) -> Live:
    return Live(
        run=run,
        elapsed_s=at_s,
        sent=9,
        done=8,
        failed=failed,
        in_flight=4,
        rate_per_s=at_s * 10,
        p50_ms=1.5,
        p99_ms=3.0,
    )


def test_four_reports_a_second_are_one_point_and_a_repeated_call_none(tmp_path: Path) -> None:
    path = tmp_path / "e1" / "e1-001.1.load.jsonl"
    reports = [live(quarter / 4, failed=quarter) for quarter in range(1, 17)]
    kept = LiveSeries()
    for begin, end in [(0, 8), (0, 8), (4, 16), (8, 16)]:
        kept.keep(path, reports[begin:end])
    (run,) = read_live_series(path, 100)
    assert run.at_s == (0.25, 1.25, 2.25, 3.25)
    assert run.rate_per_s == (2.5, 12.5, 22.5, 32.5)
    assert run.failed_per_s == (4.0, 4.0, 4.0, 4.0)
    assert (run.in_flight[0], run.p50_ms[0], run.p99_ms[0]) == (4.0, 1.5, 3.0)


def test_a_server_that_starts_again_goes_on_where_the_file_ends(tmp_path: Path) -> None:
    path = tmp_path / "load.jsonl"
    LiveSeries().keep(path, [live(1), live(2), live(1, run=1)])
    with path.open("a") as file:
        file.write('{"elapsed_s": 2, "se')
    with path.open("a") as file:
        file.write("\n")
    LiveSeries().keep(path, [live(2), live(1, run=1), live(2, run=1)])
    assert [(one.repetition, one.at_s) for one in read_live_series(path, 100)] == [(0, (1.0, 2.0)), (1, (1.0, 2.0))]


def test_a_long_load_is_kept_in_ever_longer_steps(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(live_series, "_MOST", 10)
    path = tmp_path / "load.jsonl"
    LiveSeries().keep(path, [live(second) for second in range(1, 1001)])
    (run,) = read_live_series(path, 1000)
    assert len(run.at_s) < 80
    assert run.at_s[:10] == tuple(range(1, 11))
    (thinned,) = read_live_series(path, 20)
    assert len(thinned.at_s) <= 20
    assert read_live_series(tmp_path / "none", 20) == ()


def test_only_the_newest_files_are_in_mind(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(live_series, "_MOST_FILES", 2)
    kept = LiveSeries()
    for round_ in (1, 2):
        for number in range(4):
            kept.keep(tmp_path / f"{number}", [live(1), live(round_)])
    assert [read_live_series(tmp_path / f"{number}", 9)[0].at_s for number in range(4)] == [(1.0, 2.0)] * 4
