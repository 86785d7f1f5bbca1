"""Rows are read back as they were written, while the file grows and after the writer is gone."""

from __future__ import annotations

from pathlib import Path
from typing import Any

import numpy as np

from prony.load import records, spool
from prony.load.live import LoadWatch
from prony.load.outcome import merge_rows
from prony.load.records import FIELDS, Records


def add(written: Records, index: int, *, latency_ns: int = 1_000_000, cause: int = 0) -> None:
    line: Any = type("Ended", (), dict.fromkeys(FIELDS, 0))()
    line.index, line.sent_ns, line.end_ns, line.cause = index, 10**9, 10**9 + latency_ns, cause
    written.add(line, -1)


def test_rows_can_be_read_while_the_file_grows(tmp_path: Path) -> None:
    path = tmp_path / "a"
    assert records.read_head(path)["rows"] == 0
    written = Records(path)
    for index in range(3):
        add(written, index)
    written.tell(5, 2, 1, 0)
    assert records.read_head(path) == {"rows": 3, "sent": 5, "in_flight": 2, "opened": 1, "failed": 0}
    assert records.read_rows(path, 1, 3)[:, 0].tolist() == [1, 2]
    written.close()


def test_rows_go_on_over_the_pieces_of_the_file(tmp_path: Path) -> None:
    written = Records(tmp_path / "a")
    for index in range(10_000):
        add(written, index)
    written.add_unsent(10_000, 0, 5, 6, 8)
    written.close()
    table = records.read_records(tmp_path / "a")
    assert table[:, 0].tolist() == list(range(10_001))
    assert table[-1].tolist() == [10_000, 0, 5, 6, 0, 6, 0, 8, 0, 0, 0, -1]


def test_rows_of_a_writer_that_died_are_all_there(tmp_path: Path) -> None:
    written = Records(tmp_path / "a")
    for index in range(5):
        add(written, index)
    # Nothing was told, nothing was closed.
    assert records.read_records(tmp_path / "a")[:, 0].tolist() == [0, 1, 2, 3, 4]
    written.close()


def test_rows_of_several_processes_are_merged_by_index(tmp_path: Path) -> None:
    for number, name in enumerate("ab"):
        written = Records(tmp_path / name)
        for index in range(number, 6, 2):
            add(written, index)
        written.close()
    columns = merge_rows([tmp_path / "a", tmp_path / "b", tmp_path / "absent"])
    assert columns["index"].tolist() == [0, 1, 2, 3, 4, 5]
    assert columns["client"].tolist() == [0, 1, 0, 1, 0, 1]


def test_live_figures_are_of_good_replies_and_of_the_last_second(tmp_path: Path) -> None:
    written = Records(tmp_path / "a")
    watch = LoadWatch([tmp_path / "a"], 10**9, is_open=False)
    assert watch.look(10**9).p50_ms is None
    for index in range(100):
        add(written, index, latency_ns=2_000_000)
    add(written, 100, latency_ns=10**9, cause=3)
    written.tell(103, 2, 1, 1)
    live = watch.look(2 * 10**9, total=202, duration_ns=10 * 10**9)
    assert (live.sent, live.done, live.failed, live.in_flight) == (103, 101, 1, 2)
    assert live.rate == 101
    assert np.isclose(live.p50_ms or 0, 2, rtol=0.02)
    assert np.isclose(live.left_s or 0, 1)
    later = watch.look(4 * 10**9)
    assert later.p50_ms_last is None
    assert np.isclose(later.p99_ms or 0, 2, rtol=0.02)
    written.close()


def test_kept_replies_are_read_back_with_their_stamps(tmp_path: Path) -> None:
    kept = spool.ReplySpool(tmp_path / "s")
    line: Any = type("Ended", (), {})()
    places = []
    for index in range(100):
        line.index, line.status, line.stamps, line.pieces = index, 200, [index, index + 1], [b"a" * index, b"xyz"]
        places.append(kept.add(line))
    line.pieces = []
    assert kept.add(line) == -1
    kept.close()
    read = spool.Kept(tmp_path / "s")
    reply = read.at(places[7])
    assert reply is not None
    assert (reply.status, reply.body, list(reply.sizes)) == (200, b"a" * 7 + b"xyz", [7, 3])
    assert reply.stamps_ns.tolist() == [7, 8]
    assert read.at(-1) is None
    assert read.at(10**9) is None
    read.close()


def test_a_reply_that_was_not_written_to_its_end_is_none(tmp_path: Path) -> None:
    kept = spool.ReplySpool(tmp_path / "s")
    line: Any = type("Ended", (), {"index": 1, "status": 200, "stamps": [1], "pieces": [b"body"]})()
    kept.add(line)
    kept.close()
    path = tmp_path / "s"
    path.write_bytes(path.read_bytes()[:-1])
    assert spool.Kept(path).at(0) is None
