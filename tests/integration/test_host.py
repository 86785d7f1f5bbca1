"""The engine's process, with real processes: whatever happens in it comes back decoded, and nothing is left."""

from __future__ import annotations

import sys
import time
from collections.abc import Callable, Iterator
from contextlib import contextmanager
from pathlib import Path

import psutil
import pytest

from prony.errors import CapacityError
from prony.runner.child.wire import ChildOrder
from prony.runner.host import EngineAnswer, EngineHost, Watch
from servers.process import is_of_an_engine
from servers.waiting import wait_for

Model = Callable[[str], Path]
SECOND = 10**9


def is_gone(pid: int) -> bool:
    """Has the process ended? It may not have been reaped yet where nobody is there to do it."""
    try:
        process = psutil.Process(pid)
        gone, _ = psutil.wait_procs([process], timeout=60)
        return bool(gone) or process.status() == psutil.STATUS_ZOMBIE
    except psutil.NoSuchProcess:
        return True


@contextmanager
def spawner_of_a_new_host(log: Path) -> Iterator[tuple[EngineHost, psutil.Process]]:
    """A host with its spawner; other children of this process are servers, which come and go by themselves."""
    before = set(psutil.Process().children())
    with EngineHost("faulty", sys.executable, log) as host:
        (spawner,) = [one for one in set(psutil.Process().children()) - before if is_of_an_engine(one)]
        yield host, spawner


def engines_below() -> set[int]:
    """Return the engine's processes below this one; a zombie has no command, and is none of them."""
    return {one.pid for one in psutil.Process().children(recursive=True) if is_of_an_engine(one)}


@pytest.fixture
def perform(faulty: Model, tmp_path: Path) -> Iterator[Callable[..., EngineAnswer]]:
    """Have one child of the faulty engine carry out a plan; afterwards no process may be left."""
    before = engines_below()

    def run(plan: str, stop_in: str = "", **watch: object) -> EngineAnswer:
        order = ChildOrder(
            op="measure", model=str(faulty(plan)), runs=60, warmup=3, samples=str(tmp_path / "samples.i64")
        )
        with EngineHost("faulty", sys.executable, tmp_path / "log") as host:
            if stop_in:
                watch["stop_asked"] = lambda: host._phase() == stop_in
            return host.perform(order, Watch(**({"timeout_ns": 120 * SECOND} | watch)))  # type: ignore[arg-type]

    yield run
    wait_for(lambda: engines_below() <= before, "the end of every process of the engine")


@pytest.mark.parametrize(
    ("plan", "code", "phase", "said"),
    [
        ("load:segfault", "crash", "load", "segmentation fault"),
        ("first:illegal", "illegal_instruction", "first", "instruction that this CPU does not have"),
        ("measure:killed", "killed", "measure", "killed from outside"),
        ("load:exit", "engine_exit", "load", "exit code 7"),
        ("first:raise", "engine_error", "first", "the vendor is unhappy"),
        ("load:refuse", "input", "load", "not for me"),
        ("load:nounit", "unit_unavailable", "load", "no such unit"),
    ],
)
def test_a_fault_is_recorded_with_its_phase_and_decoded_reason(
    perform: Callable[..., EngineAnswer], plan: str, code: str, phase: str, said: str
) -> None:
    answer = perform(plan)
    assert answer.done is None
    assert answer.failure is not None
    assert (answer.failure.code, answer.failure.phase) == (code, phase)
    assert said in answer.failure.message


def test_a_hang_is_ended_by_the_time_limit_even_if_it_ignores_signals(perform: Callable[..., EngineAnswer]) -> None:
    answer = perform("first:hang", timeout_ns=5 * SECOND)
    assert answer.failure is not None
    assert (answer.failure.code, answer.failure.phase) == ("timeout", "first")


def test_the_memory_limit_is_enforced(perform: Callable[..., EngineAnswer]) -> None:
    answer = perform("load:memory", memory_bytes=300 * 2**20)
    assert answer.failure is not None
    assert (answer.failure.code, answer.failure.phase) == ("memory_limit", "load")
    assert "over the limit of 300 MiB" in answer.failure.message


def test_a_stop_hands_over_what_was_measured(perform: Callable[..., EngineAnswer]) -> None:
    answer = perform("check:fine", stop_in="measure")
    assert answer.failure is None
    assert answer.done is not None
    assert answer.done["counts"]["measure"] >= 1


def test_a_stop_waits_for_an_inference_that_takes_longer_than_the_grace(
    perform: Callable[..., EngineAnswer], monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setattr("prony.runner.host._GRACE_NS", SECOND * 4 // 10)  # an inference takes 0.5 s
    answer = perform("each:slow", stop_in="measure")
    assert answer.failure is None
    assert answer.done is not None
    assert 1 <= answer.done["counts"]["measure"] < 60


def test_a_stop_before_the_model_is_warm_measures_nothing(perform: Callable[..., EngineAnswer]) -> None:
    asked: list[str] = []
    answer = perform("first:slow", on_phase=asked.append, stop_asked=lambda: bool(asked))
    assert answer.failure is None
    assert answer.done is not None
    assert answer.done["stopped"]
    assert "measure" not in answer.done["counts"]


def test_a_stop_that_is_heard_late_is_heeded_before_the_child_may_go(perform: Callable[..., EngineAnswer]) -> None:
    asked: list[str] = []

    def hear_late(phase: str) -> None:
        time.sleep(1)  # meanwhile the child becomes warm and asks to go: one block tells of both
        if phase == "warmup":
            asked.append(phase)

    answer = perform("check:nothing", on_phase=hear_late, stop_asked=lambda: bool(asked))
    assert answer.done is not None
    assert answer.done["stopped"]
    assert "measure" not in answer.done["counts"]


def test_a_child_that_a_stop_killed_was_cancelled(perform: Callable[..., EngineAnswer]) -> None:
    asked: list[str] = []
    answer = perform("load:hang", on_phase=asked.append, stop_asked=lambda: bool(asked))
    assert answer.failure is not None
    assert (answer.failure.code, answer.failure.phase) == ("cancelled", "load")


def test_an_engine_that_floods_the_log_is_ended(
    perform: Callable[..., EngineAnswer], tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setattr("prony.runner.host._LOG_MOST", 2**20)
    answer = perform("load:flood")
    assert answer.failure is not None
    assert (answer.failure.code, answer.failure.phase) == ("log_limit", "load")
    assert len(answer.log) < 5000


def test_an_engine_that_babbles_on_the_wire_fails_its_repetition(perform: Callable[..., EngineAnswer]) -> None:
    answer = perform("load:babble first:hang")
    assert answer.failure is not None
    assert answer.failure.code == "unreadable_message"


def test_a_spawner_that_hangs_is_given_up_by_the_time_limit(faulty: Model, tmp_path: Path) -> None:
    with spawner_of_a_new_host(tmp_path / "log") as (host, spawner):
        spawner.suspend()
        order = ChildOrder(op="measure", model=str(faulty("check:fine")))
        answer = host.perform(order, Watch(timeout_ns=SECOND // 2))
        assert answer.failure is not None
        assert (answer.failure.code, answer.failure.phase) == ("timeout", "start")
        assert not host.is_alive


def test_a_grandchild_does_not_outlive_the_host(
    perform: Callable[..., EngineAnswer], tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    note = tmp_path / "grandchild"
    monkeypatch.setenv("FAULTY_GRANDCHILD", str(note))
    perform("load:grandchild first:hang", timeout_ns=5 * SECOND)
    assert is_gone(int(note.read_text()))


def test_a_grandchild_does_not_outlive_a_child_that_ends_well(
    perform: Callable[..., EngineAnswer], tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    note = tmp_path / "grandchild"
    monkeypatch.setenv("FAULTY_GRANDCHILD", str(note))
    assert perform("load:grandchild").done is not None
    assert is_gone(int(note.read_text()))


def test_answers_that_are_not_finite_are_seen(perform: Callable[..., EngineAnswer]) -> None:
    answer = perform("check:nan")
    assert answer.done is not None
    assert answer.done["finite"] is False


def test_the_baseline_is_all_that_the_import_had_in_memory(faulty: Model, tmp_path: Path) -> None:
    with spawner_of_a_new_host(tmp_path / "log") as (host, spawner):
        imported = spawner.memory_info()
        answer = host.perform(ChildOrder(op="load", model=str(faulty("check:fine"))), Watch(timeout_ns=120 * SECOND))
    assert answer.done is not None
    assert answer.done["baseline_kib"] * 1024 > 0.9 * imported.rss


def test_one_fault_touches_no_later_repetition(faulty: Model, tmp_path: Path) -> None:
    with EngineHost("faulty", sys.executable, tmp_path / "log") as host:
        crashed = host.perform(
            ChildOrder(op="measure", model=str(faulty("load:segfault"))), Watch(timeout_ns=120 * SECOND)
        )
        well = host.perform(
            ChildOrder(op="measure", model=str(faulty("check:fine")), runs=5), Watch(timeout_ns=120 * SECOND)
        )
    assert crashed.failure is not None
    assert well.done is not None


@pytest.mark.parametrize(
    ("variable", "value", "code"),
    [
        ("FAULTY_IMPORT", "raise", "engine_broken"),
        ("FAULTY_IMPORT", "segfault", "engine_broken"),
        ("FAULTY_UNSUPPORTED", "needs another planet", "engine_unsupported"),
    ],
)
def test_an_engine_that_cannot_start_says_why(
    faulty: Model, tmp_path: Path, monkeypatch: pytest.MonkeyPatch, variable: str, value: str, code: str
) -> None:
    monkeypatch.setenv(variable, value)
    with pytest.raises(CapacityError) as caught, EngineHost("faulty", sys.executable, tmp_path / "log"):
        pytest.fail("it started")
    assert caught.value.code == code


def test_samples_are_monotonic_and_complete(perform: Callable[..., EngineAnswer], tmp_path: Path) -> None:
    import numpy as np

    answer = perform("check:fine")
    assert answer.done is not None
    counts = answer.done["counts"]
    assert counts == {"load": 1, "first": 1, "warmup": 3, "measure": 60}
    stamps = np.fromfile(tmp_path / "samples.i64", dtype=np.int64)
    assert stamps.size == 2 * sum(counts.values())
    begins, ends = stamps[-120:-60], stamps[-60:]
    assert (ends >= begins).all()
    assert (begins[1:] >= ends[:-1]).all()
