"""The log of a job has what happened and what was printed, in order, with time and source; it is read in pieces."""

from __future__ import annotations

import re
from pathlib import Path

import pytest

from prony.app import job_log, read_log
from prony.app.job_log import JobLog, RunLogs
from prony.app.printed_lines import PrintedEvents, PrintedFiles
from prony.app.read_log import read_piece
from prony.model.event import Event, Live
from prony.model.log import LogFilter
from prony.model.shown import plain_log

LINE = re.compile(r"\d{4}-\d\d-\d\dT\d\d:\d\d:\d\d\.\d{3}Z (\S+) (.*)\n")


@pytest.fixture
def folder(tmp_path: Path) -> Path:
    (tmp_path / "logs" / "part-1").mkdir(parents=True)
    return tmp_path / "logs"


@pytest.fixture
def log(folder: Path) -> JobLog:
    return JobLog(folder / "job.log", PrintedFiles(folder, folder.parent / "stderr"))


def lines(folder: Path) -> list[tuple[str, str]]:
    """Return source and text of every line; each must have its time, in UTC."""
    text = (folder / "job.log").read_text()
    found = [LINE.fullmatch(line) for line in text.splitlines(keepends=True)]
    return [(one[1], one[2]) for one in found if one is not None] if all(found) else [("?", text)]


def add(path: Path, text: str | bytes) -> None:
    with path.open("ab") as file:
        file.write(text if isinstance(text, bytes) else text.encode())


def test_what_was_printed_stands_before_the_end_that_is_told_after_it(folder: Path, log: JobLog) -> None:
    log.note_event(Event(kind="repetition", job_id="e-1", done=0, total=2))
    add(folder / "run-0000.out", "one\ntwo\n")
    add(folder / "part-1" / "run-0000.err", "from afar\n")
    add(folder / "run-0000.emit.jsonl", "{}\n")
    add(folder.parent / "stderr", "a complaint\n")
    log.note_event(Event(kind="repetition", job_id="e-1", done=1, total=2, state="ok"))
    assert lines(folder) == [
        ("prony", "repetition 0/2"),
        ("runner", "a complaint"),
        ("part-1/run-0000.err", "from afar"),
        ("run-0000.out", "one"),
        ("run-0000.out", "two"),
        ("prony", "repetition 1/2 ok"),
    ]


def test_half_a_line_waits_for_its_end_unless_it_stays_like_that(folder: Path, log: JobLog) -> None:
    out = folder / "run-0000.out"
    add(out, b"whole\nhal\xc3")
    log.gather()
    assert lines(folder) == [("run-0000.out", "whole")]
    add(out, b"\xa4f\nPassword: ")
    log.gather()
    assert lines(folder)[1:] == [("run-0000.out", "halä" + "f")]
    log.gather()
    assert lines(folder)[2:] == [("run-0000.out", "Password: ")]
    add(out, "last")
    log.gather(is_over=True)
    assert lines(folder)[3:] == [("run-0000.out", "last")]


def test_a_progress_bar_is_what_it_showed_last(folder: Path, log: JobLog) -> None:
    add(folder / "run-0000.err", "10 %\r20 %\r30 %\r\n40 %\r")
    log.gather()
    assert lines(folder) == [("run-0000.err", "30 %"), ("run-0000.err", "40 %")]


def test_figures_of_a_load_are_no_lines(folder: Path, log: JobLog) -> None:
    live = Live(elapsed_s=1, sent=1, done=1, failed=0, in_flight=1, rate_per_s=1)
    log.note_event(Event(kind="load", job_id="e-1", live=live))
    log.note("begun")
    assert lines(folder) == [("prony", "begun")]


def test_a_log_that_is_too_long_says_where_it_ends(folder: Path, log: JobLog, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(job_log, "MOST_BYTES", 2**20)
    add(folder / "run-0000.out", ("x" * 99 + "\n") * 30_000)
    log.gather(is_over=True)
    log.note("never seen")
    assert lines(folder)[-1][1].startswith("the log is cut here, after 1 MiB")
    assert (folder / "job.log").stat().st_size < 4 * 2**20


def test_links_in_the_folder_are_not_followed(folder: Path, log: JobLog, tmp_path: Path) -> None:
    (tmp_path / "secret").write_text("a secret\n")
    (folder / "run-0000.out").symlink_to(tmp_path / "secret")
    (folder / "more").symlink_to(tmp_path)
    log.note("begun")
    log.gather(is_over=True)
    assert lines(folder) == [("prony", "begun")]


def test_jobs_of_one_run_have_logs_of_their_own_once_their_folders_are_there(tmp_path: Path) -> None:
    folders = {name: tmp_path / name for name in ("e-1", "e-2")}
    logs = RunLogs(folders)
    logs.note_event(Event(kind="started", job_id="e-1"))
    for one in folders.values():
        (one / "logs").mkdir(parents=True)
    add(folders["e-2"] / "logs" / "run-0000.out", "of the second\n")
    logs.note_event(Event(kind="finished", job_id="e-1", state="complete"))
    logs.note_event(Event(kind="meet", job_id="nobody"))
    logs.close()
    assert lines(folders["e-1"] / "logs") == [("prony", "started"), ("prony", "finished complete")]
    assert lines(folders["e-2"] / "logs") == [("run-0000.out", "of the second")]


# Reading


def read_all(path: Path, wanted: LogFilter, *, is_over: bool = True) -> str:
    found, offset = b"", 0
    while not (piece := read_piece(path, offset, wanted, is_over=is_over)).ended and piece.next_offset > offset:
        found, offset = found + piece.text, piece.next_offset
    return found.decode()


@pytest.mark.parametrize("most", [1, 3, 7, 64, 4096])
def test_a_text_comes_whole_however_small_its_pieces_are(
    tmp_path: Path, most: int, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setattr(read_log, "MOST_BYTES", max(most, 4))
    text = "one\ntwä\n€𝄞 three\n\nrest"
    (tmp_path / "log").write_text(text)
    assert read_all(tmp_path / "log", LogFilter()) == text


def test_lines_are_found_by_text_and_source_beyond_the_first_piece(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setattr(read_log, "MOST_BYTES", 64)
    noise = [f"2026-11-18T07:00:00.000Z run-0000.out line {number}\n" for number in range(50)]
    found = "2026-11-18T07:00:00.000Z run-0000.err An ERROR\n"
    (tmp_path / "log").write_text("".join([*noise, found, *noise, "2026-11-18T07:00:00.000Z run-0000.err half"]))
    assert read_all(tmp_path / "log", LogFilter(search="error")) == found
    assert read_all(tmp_path / "log", LogFilter(source="run-0000.err"), is_over=False) == found
    assert read_all(tmp_path / "log", LogFilter("half", "run-0000.err")).endswith(" half")
    assert read_all(tmp_path / "log", LogFilter("error", "run-0000.out")) == ""


@pytest.mark.parametrize(
    ("printed", "shown"),
    [
        ("\x1b[1;31mred\x1b[0m", "red"),
        ("\x1b]0;title\x07text", "text"),
        ("\x1b]8;;http://evil\x1b\\link\x1b]8;;\x1b\\", "link"),
        ("\x9b31mred\x9d0;title\x9c", "red"),
        ("\x1bP$q\x1b\\\x1b(Bplain\x1bc", "plain"),
        ("a\x1b", "a"),
        ("\x1b[31", "31"),
        ("\u202eevil\x00\x07\b", "evil"),
        ("tab\tand\r\nend\n", "tab\tand\r\nend\n"),
    ],
)
def test_nothing_in_a_log_acts_on_a_terminal(printed: str, shown: str) -> None:
    assert plain_log(printed) == shown


def test_what_is_told_afar_has_a_limit_and_says_what_it_left_out() -> None:
    told: list[Event] = []
    times = iter([0.0, 0.0, 0.0, 2.0])
    events = PrintedEvents("e-1", told.append, now_s=lambda: next(times))
    events.tell("run-0000.out", ["first"])
    events.tell("run-0000.out", ["x" * 1023] * 200)
    events.tell("run-0000.out", ["last"])  # two seconds later
    assert max(len(event.message) for event in told) <= 16 * 1024
    assert sum(len(event.message) + 1 for event in told[:-2]) <= 128 * 1024
    lines = [line for event in told[1:-2] for line in event.message.split("\n")]
    assert told[0].message == "first"
    assert set(lines) == {"x" * 1023}
    left = 200 - len(lines)
    assert left > 0
    assert (told[-2].phase, told[-2].message.partition(" lines")[0]) == ("prony", str(left))
    assert (told[-1].phase, told[-1].message) == ("run-0000.out", "last")


def test_a_line_longer_than_an_event_may_be_is_told_in_several() -> None:
    told: list[Event] = []
    PrintedEvents("e-1", told.append, now_s=lambda: 0.0).tell("run-0000.out", ["", "y" * 40_000])
    assert [event.message for event in told] == ["", "y" * 16_384, "y" * 16_384, "y" * 7_232]


def test_lines_that_are_left_out_at_the_end_are_counted_too(folder: Path) -> None:
    told: list[Event] = []
    logs = RunLogs({"e-1": folder.parent}, emit=told.append)
    (folder / "run-0000.out").write_text("x\n" * 70_000)
    logs.close()
    assert told[-1].phase == "prony"
    shown = sum(len(event.message.split("\n")) for event in told[:-1])
    assert told[-1].message == f"{70_000 - shown} lines are not shown here; the files of the result have them"
