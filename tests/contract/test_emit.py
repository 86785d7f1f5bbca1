"""What `prony.emit` and the benchmarkai shim promise to every script: whole lines, numbers alone, never an error."""

from __future__ import annotations

import importlib.util
import json
import os
import shutil
import signal
import struct
import subprocess
import sys
from datetime import UTC, datetime
from decimal import Decimal
from pathlib import Path
from typing import Any

import numpy as np
import pytest

from prony import emit
from prony.kinds.script.runner.reading import Reading
from prony.runner.script_folders import offer
from servers.needs import lack


@pytest.fixture
def file(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> Path:
    path = tmp_path / "emitted"
    path.touch()
    monkeypatch.setenv("PRONY_EMIT_FILE", str(path))
    return path


def records(path: Path) -> list[dict[str, Any]]:
    """Return the lines, each of which is whole; numbers that are written as bits are numbers."""
    told = [json.loads(line) for line in path.read_text().splitlines() if line]
    for record in told:
        if "doubles" in record:
            values = struct.unpack(f"<{len(record['names'])}d", bytes.fromhex(record.pop("doubles")))
            record["metrics"] = dict(zip(record.pop("names"), values, strict=True))
    return told


def read(path: Path) -> Reading:
    """Return what Prony reads in the file."""
    reading = Reading(())
    reading.follow_emitted(path).follow(is_last=True)
    return reading


def script(folder: Path, text: str, file: Path, python: str = sys.executable) -> subprocess.Popen[str]:
    """Start a script that sees nothing of Prony but what every script is offered."""
    (folder / "script.py").write_text(text)
    environment = os.environ | {"PYTHONPATH": str(offer(folder / "python")), "PRONY_EMIT_FILE": str(file)}
    return subprocess.Popen(
        [python, "script.py"], cwd=folder, env=environment, text=True, stdout=subprocess.PIPE, stderr=subprocess.PIPE
    )


def test_a_call_is_one_record_with_everything_that_was_told(file: Path) -> None:
    at = datetime(2026, 1, 2, tzinfo=UTC)
    emit({"loss": 0.5, "n": 3}, step=7, unit={"loss": "nat"}, labels={"split": "test", "fold": 1}, timestamp=at)
    (record,) = records(file)
    assert record.pop("at_ns") > 0
    assert record == {
        "metrics": {"loss": 0.5, "n": 3.0}, "step": 7.0, "unit": {"loss": "nat"},
        "labels": {"split": "test", "fold": "1"}, "timestamp": at.timestamp(),
    }  # fmt: skip


def test_numbers_of_other_libraries_are_numbers(file: Path) -> None:
    emit({"a": np.float32(0.5), "b": np.int64(3), "c": Decimal("1.5"), "d": np.array(2.0)})
    assert records(file)[0]["metrics"] == {"a": 0.5, "b": 3.0, "c": 1.5, "d": 2.0}


@pytest.mark.parametrize(
    ("value", "reason"),
    [
        (float("nan"), "is NaN"), (float("inf"), "is infinite"), ("0.5", "is text"), ([1, 2], "is a list"),
        ({"a": 1}, "is a map"), (True, "is true or false"), (None, "is nothing"), (10**400, "is a int"),
        (np.array([1.0, 2.0]), "is a ndarray"), (object(), "is a object"), (1j, "is a complex"),
    ],
)  # fmt: skip
def test_what_is_no_number_is_refused_by_name_and_the_rest_is_kept(file: Path, value: object, reason: str) -> None:
    emit({"bad": value, "good": 1})
    reading = read(file)
    assert [(row.name, row.value) for row in reading.rows] == [("good", 1.0)]
    assert reading.refused == {("bad", reason): 1}


def test_every_bit_of_a_number_is_kept(file: Path) -> None:
    told = {"third": 1 / 3, "least": 5e-324, "most": sys.float_info.max, "minus": -0.0, 'na"me\n\u00e9': 2**53 + 0.0}
    for _ in range(2):
        emit(told)
    assert [(row.name, repr(row.value)) for row in read(file).rows] == [(n, repr(v)) for n, v in told.items()] * 2


def test_bits_that_are_no_numbers_harm_no_others(file: Path) -> None:
    file.write_text('{"names":["a"],"doubles":"00"}\n{"names":7,"doubles":"00"}\n{"doubles":7}\n')
    emit({"b": 1.0})
    assert [row.name for row in read(file).rows] == ["b"]
    assert read(file).refused == {("(a record)", "is incomplete or not a record"): 3}


def test_nothing_that_is_handed_to_it_fails_the_script(file: Path) -> None:
    class Hostile:
        def __float__(self) -> float:
            raise RuntimeError("the device is gone")

    wrong: Any = emit
    wrong({"x": Hostile()}, step="three", unit=7, labels=5, timestamp="yesterday")
    wrong([1, 2])
    wrong({})
    wrong({7: 1.0, "": 2.0, "n" * 300: 3.0})
    told = [record["refused"] for record in records(file)]
    assert told[0].keys() == {"x", "(step)", "(unit)", "(labels)", "(timestamp)"}
    assert told[1] == {"(all)": "is a list instead of a map of names to numbers"}
    assert told[2] == {"(all)": "is empty"}
    assert len(told[3]) == 3


def test_a_file_that_is_gone_or_closed_under_it_is_no_error(file: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    emit({"a": 1})
    file.unlink()
    emit({"a": 2})
    monkeypatch.setenv("PRONY_EMIT_FILE", str(file / "nowhere"))
    emit({"a": 3})
    assert not (file / "nowhere").exists()


def test_a_script_that_closes_all_its_files_goes_on_emitting_and_writes_into_no_other(tmp_path: Path) -> None:
    file, other = tmp_path / "emitted", tmp_path / "other"
    file.touch()
    text = (
        "import os, prony\nprony.emit({'a': 1})\nos.closerange(3, 100)\n"
        "fds = [os.open('other', os.O_CREAT | os.O_WRONLY) for _ in range(5)]\nprony.emit({'a': 2})\n"
    )
    running = script(tmp_path, text, file)
    assert running.wait(120) == 0
    assert [record["metrics"]["a"] for record in records(file)] == [1.0, 2.0]
    assert other.read_bytes() == b""


def test_many_names_are_told_in_several_short_records(file: Path) -> None:
    emit({f"m{number}": number for number in range(250)})
    assert [len(record["metrics"]) for record in records(file)] == [100, 100, 50]


def test_outside_of_prony_it_prints_json(capsys: pytest.CaptureFixture[str], monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.delenv("PRONY_EMIT_FILE", raising=False)
    emit({"loss": 0.5})
    emit({"loss": 0.25}, step=2, labels={"a": "b"})
    lines = [json.loads(line) for line in capsys.readouterr().out.splitlines()]
    assert lines == [{"loss": 0.5}, {"metrics": {"loss": 0.25}, "step": 2.0, "labels": {"a": "b"}}]


def test_several_processes_and_threads_emit_at_once_without_tearing_a_line(tmp_path: Path) -> None:
    file = tmp_path / "emitted"
    file.touch()
    text = """
import multiprocessing, threading, prony
def work(which):
    def tell(thread):
        for step in range(200):
            prony.emit({"value": step, "name" * 20: 0.5}, step=step, labels={"who": "%d/%d" % (which, thread)})
    threads = [threading.Thread(target=tell, args=(n,)) for n in range(2)]
    [one.start() for one in threads]; [one.join() for one in threads]
if __name__ == "__main__":
    with multiprocessing.get_context("fork").Pool(4) as pool:
        pool.map(work, range(4), chunksize=1)
"""
    assert script(tmp_path, text, file).wait(120) == 0
    told = records(file)
    assert len(told) == 4 * 2 * 200
    by_who: dict[str, list[float]] = {}
    for record in told:
        by_who.setdefault(record["labels"]["who"], []).append(record["metrics"]["value"])
    assert list(by_who.values()) == [[float(step) for step in range(200)]] * 8


def test_a_script_killed_while_it_emits_leaves_every_whole_record(tmp_path: Path) -> None:
    file = tmp_path / "emitted"
    file.touch()
    running = script(tmp_path, "import prony\nprint('ready', flush=True)\nwhile True: prony.emit({'a': 1})", file)
    assert running.stdout is not None
    assert running.stdout.readline() == "ready\n"
    while file.stat().st_size < 100_000:
        assert running.poll() is None
    running.send_signal(signal.SIGKILL)
    running.wait()
    reading = read(file)
    assert len(reading.rows) > 500
    assert sum(reading.refused.values()) <= 1


def test_a_record_that_was_cut_off_harms_none_after_it(file: Path) -> None:
    with file.open("ab") as half:
        half.write(b'\n{"metrics":{"lo')
    emit({"loss": 1})
    reading = read(file)
    assert [(row.name, row.value) for row in reading.rows] == [("loss", 1.0)]
    assert reading.refused == {("(a record)", "is incomplete or not a record"): 1}


def test_the_rank_of_a_forked_worker_is_its_own(tmp_path: Path) -> None:
    file = tmp_path / "emitted"
    file.touch()
    text = """
import os, prony
prony.emit({"a": 0})
for rank in (0, 1):
    if os.fork() == 0:
        os.environ["RANK"] = str(rank)
        prony.emit({"a": 1})
        os._exit(0)
    os.wait()
"""
    assert script(tmp_path, text, file).wait(120) == 0
    assert [record.get("rank") for record in records(file)] == [None, 0, 1]


# Benchmark AI's client library


def test_benchmarkai_needs_no_installation_and_takes_numbers_as_text(tmp_path: Path) -> None:
    file = tmp_path / "emitted"
    file.touch()
    text = (
        "from benchmarkai import emit\n"
        "emit({'batch': '3', 'train_loss': '0.123456', 'accuracy': 0.5, 'bad': 'high', 'worse': [1], 'nan': 'nan'})\n"
        "for wrong in ([1], {}):\n"
        "    try: emit(wrong)\n"
        "    except (TypeError, ValueError) as exc: print(type(exc).__name__)\n"
    )
    running = script(tmp_path, text, file)
    out, err = running.communicate(timeout=120)
    (record,) = records(file)
    assert (out, err) == ("TypeError\nValueError\n", "")
    assert record["metrics"] == {"batch": 3.0, "train_loss": 0.123456, "accuracy": 0.5}
    assert record["refused"] == {"bad": "is text", "worse": "is a list", "nan": "is NaN"}


def shim(monkeypatch: pytest.MonkeyPatch, **environment: str) -> Any:
    """Import the shim as it is outside of Prony."""
    for name in ("PRONY_EMIT_FILE", "BENCHMARK_AI"):
        monkeypatch.delenv(name, raising=False)
    for name, value in environment.items():
        monkeypatch.setenv(name, value)
    spec = importlib.util.find_spec("prony.compat.benchmark_ai.shim")
    assert spec is not None
    assert spec.loader is not None
    module = importlib.util.module_from_spec(spec)
    spec.loader.exec_module(module)
    return module


def test_benchmarkai_prints_outside_of_prony(
    monkeypatch: pytest.MonkeyPatch, capsys: pytest.CaptureFixture[str]
) -> None:
    shim(monkeypatch).emit({"loss": 0.5})
    assert capsys.readouterr().out == '{"loss": 0.5}\n'


def test_benchmarkai_writes_to_its_pipe_where_it_is_told_so(monkeypatch: pytest.MonkeyPatch, tmp_path: Path) -> None:
    pipe = tmp_path / "fifo"
    variables = {"BENCHMARK_AI": "fifo", "BENCHMARK_AI_FIFO_FILEPATH": str(pipe)}
    late = shim(monkeypatch, **variables, BENCHMARK_AI_FIFO_MAX_WAIT_TIME="0")
    with pytest.raises(late.FifoNotCreatedInTimeError):
        late.emit({"loss": 0.5})
    os.mkfifo(pipe)
    reader = os.open(pipe, os.O_RDONLY | os.O_NONBLOCK)
    shim(monkeypatch, **variables).emit({"loss": 0.5})
    assert os.read(reader, 100) == b'{"loss": 0.5}\n'
    os.close(reader)


def test_benchmarkai_refuses_a_target_that_it_does_not_know(monkeypatch: pytest.MonkeyPatch) -> None:
    with pytest.raises(ValueError, match="stdout or fifo"):
        shim(monkeypatch, BENCHMARK_AI="carrier pigeon")


@pytest.mark.parametrize("python", ["python2.7", "python3.8"])
def test_old_interpreters_can_use_it_too(tmp_path: Path, python: str) -> None:
    program = shutil.which(python)
    if program is None or subprocess.run([program, "-V"], capture_output=True, check=False).returncode:
        lack(python, f"no {python} on the PATH that starts")
    file = tmp_path / "emitted"
    file.touch()
    own = "import prony\nprony.emit({'b': 2})\n" if python.startswith("python3") else ""
    assert script(tmp_path, f"from benchmarkai import emit\nemit({{'a': 1}})\n{own}", file, program).wait(120) == 0
    assert records(file)[0]["metrics"] == {"a": 1.0}
