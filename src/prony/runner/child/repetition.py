"""Run one repetition in this process: load, feed, time and check a model, or run a suite of tests."""

from __future__ import annotations

import faulthandler
import gc
import importlib
import os
import signal
import time
import traceback
from array import array
from collections.abc import Callable, Iterable, Mapping, Sequence
from contextlib import closing, suppress
from dataclasses import asdict
from functools import partial
from itertools import chain
from pathlib import Path
from statistics import median
from typing import Any, TypeVar

import numpy as np

from prony.errors import PronyError, StoreError, whose_move
from prony.instruments.memory import read_memory, reset_peak
from prony.ports.engine import (
    MEMORY_HINT,
    CardCall,
    CompiledCall,
    DeviceCall,
    Engine,
    HasCanary,
    LoadOptions,
    SeesCards,
    Session,
    TensorSpec,
    is_memory_shortage,
    shape_flag,
)
from prony.runner.child import compare as outputs_file
from prony.runner.child.device_passes import judge_canary, run_back_to_back, time_by_marks, time_copies
from prony.runner.child.inputs import MadeInput, make_inputs
from prony.runner.child.loop import Call, Stamps, Stop, measure, time_calls, warm_up
from prony.runner.child.readings import SuiteTest, TestSuite, take_readings
from prony.runner.child.sizes_beside import suggest_from_files
from prony.runner.child.wire import PHASE_BYTES, ChildOrder, MessageWire

T = TypeVar("T")
_WARM_STEP_NS = 500_000_000
_NO_LIMIT = 2**62
_CALLS_AFTER_CANARY = 2


def perform(engine: Engine, order: ChildOrder, wire: MessageWire, *, gate: int) -> int:
    """Carry out one order and say how it ended; the exit status of this process."""
    faulthandler.enable()
    child = Child(engine, order, wire, gate)
    try:
        wire.send("done", **child.obey())
    except PronyError as exc:
        wire.send("failure", phase=child.phase, whose=whose_move(exc), **exc.to_dict())
        return 1
    except MemoryError:
        wire.send("failure", phase=child.phase, code="out_of_memory", message="out of memory", hint=MEMORY_HINT)
        return 1
    except Exception as exc:  # noqa: BLE001 - the edge of this process: whatever an engine raises is the result
        message = f"{type(exc).__name__}: {exc}"
        said = {"phase": child.phase, "message": message, "detail": traceback.format_exc(limit=-6)}
        if is_memory_shortage(message):
            wire.send("failure", code="out_of_memory", hint=MEMORY_HINT, **said)
        else:
            wire.send("failure", code="engine_error", hint=child.advice(), **said)
        return 1
    return 0


class Child:
    """A fresh process with an engine in it."""

    def __init__(self, engine: Engine, order: ChildOrder, wire: MessageWire, gate: int) -> None:
        self.engine = engine
        self.order = order
        self.wire = wire
        self.gate = gate
        self.phase = "start"
        self.phases: dict[str, dict[str, int | None]] = {}
        self.stamps: dict[str, Stamps] = {}
        self.made: list[MadeInput] = []
        self.stop = Stop()
        self.device: dict[str, Any] = {}
        self.canary: dict[str, dict[str, float]] = {}
        # A polite stop: the inference that runs is finished and everything measured is handed over.
        signal.signal(signal.SIGTERM, lambda *_: setattr(self.stop, "asked", True))
        self.note = os.open(order.phase, os.O_WRONLY | os.O_CREAT, 0o600) if order.phase else None
        self.baseline_kib = read_memory().now_kib

    def obey(self) -> dict[str, Any]:
        work: dict[str, Callable[[], dict[str, Any]]] = {
            "probe": self._probe,
            "cards": self._describe_cards,
            "signature": self._signature_only,
            "load": self._load_only,
            "outputs": self._outputs_only,
            "measure": self._measure,
            "tests": self._run_tests,
        }
        answer = work[self.order.op]()
        return answer | {"phases": self.phases, "baseline_kib": self.baseline_kib, "canary": self.canary}

    def advice(self) -> str:
        """Return what may help against an error of the engine: the sizes are wrong more often than the engine is."""
        return _advise_sizes(self.made) if self.phase in ("prepare", "first") else ""

    def _probe(self) -> dict[str, Any]:
        self.phase = "probe"
        return {"info": asdict(self.engine.probe())}

    def _describe_cards(self) -> dict[str, Any]:
        self.phase = "cards"
        seeing = self.engine if isinstance(self.engine, SeesCards) else None
        return {"seen": None if seeing is None else seeing.describe_cards(tries_products=self.order.profile)}

    def _signature_only(self) -> dict[str, Any]:
        return {"specs": [asdict(spec) for spec in self._inputs(self._load())]}

    def _load_only(self) -> dict[str, Any]:
        _, made, call = self._ready_to_run()
        self._during("first", call, stamped=True)
        self._keep_stages(call)
        return self._samples() | {"inputs": _facts(made)}

    def _outputs_only(self) -> dict[str, Any]:
        session, made, call = self._ready_to_run()
        raw = self._during("check", call)
        return self._check_outputs(session, raw) | {"inputs": _facts(made)}

    def _measure(self) -> dict[str, Any]:
        session, made, call = self._ready_to_run()
        self._during("first", call, stamped=True)
        warm = self._warm_up(call)
        if not self.stop.asked:
            settle = self.order.warmup is None
            about = {"device": call.device_id, "settle": settle} if isinstance(call, CardCall) else {}
            self._wait_for_go(call, about)
        if self.stop.asked:  # a few inferences of a model that is not warm would be a run like any other
            return {"inputs": _facts(made), "warm": warm, "stopped": True} | self._samples()
        stopped_by = self._time_runs(call)
        if isinstance(call, DeviceCall):
            self._keep_memory(call)
        if isinstance(call, CardCall):
            self._read_canary("after", call)
            self._time_device(call)
        self._keep_stages(call)
        raw = self._during("check", call)
        checked = self._check_outputs(session, raw)
        answer = {"inputs": _facts(made), "warm": warm, "stopped_by": stopped_by, "stopped": self.stop.asked}
        return answer | {"device": self.device} | checked | self._samples()

    def _run_tests(self) -> dict[str, Any]:
        """Run a suite of tests instead of a model; the first of them warms the device up."""
        suite = self._during("load", lambda: _load_suite(self.order, self.engine))
        with closing(suite):
            tests = suite.tests()
            first = self._during("prepare", lambda: next(tests))
            warm = self._warm_up(partial(first.sample, 1))
            if not self.stop.asked:
                about = {} if suite.device_id is None else {"device": suite.device_id, "settle": suite.settles}
                self._wait_for_go(partial(first.sample, 1), about)
            readings = [] if self.stop.asked else self._read_tests(chain((first,), tests), suite.device_id)
            if suite.device_id is not None and not self.stop.asked:
                self._read_canary("after", partial(first.sample, 1))
            return {"readings": readings, "facts": dict(suite.facts()), "warm": warm, "stopped": self.stop.asked}

    def _read_tests(self, tests: Iterable[SuiteTest], device_id: str | None) -> list[dict[str, Any]]:
        before_ns, time_ns = _children_cpu_ns(), self.order.max_time_ns
        if device_id is not None:  # the card is metered until another phase begins
            self.wire.send("phase", name="sustained")
        readings = self._during(
            "measure", lambda: [one for test in tests for one in take_readings(test, time_ns, self.stop)]
        )
        cpu_ns = (self.phases["measure"]["cpu_ns"] or 0) + _children_cpu_ns() - before_ns
        self.phases["measure"] |= {"cpu_ns": cpu_ns, "count": len(readings)}
        since_ns = time.process_time_ns() - self.cpu_before_warmup_ns + _children_cpu_ns()
        self.wire.send("measured", cpu_ns=cpu_ns, cpu_since_warmup_ns=since_ns, count=len(readings))
        if device_id is not None:
            self.wire.send("phase", name="copies")
        return readings

    def _load(self) -> Session:
        options = _load_options(self.order)
        return self._during("load", lambda: self.engine.load(self.order.model, options), stamped=True)

    def _inputs(self, session: Session) -> list[TensorSpec]:
        return suggest_from_files(session.signature(), self.order.model)

    def _ready_to_run(self) -> tuple[Session, list[MadeInput], Call]:
        session = self._load()
        made, call = self._during("prepare", lambda: self._prepare(session))
        return session, made, call

    def _prepare(self, session: Session) -> tuple[list[MadeInput], Call]:
        order = self.order
        self.made = made = make_inputs(
            self._inputs(session),
            batch_size=order.batch_size,
            axes=order.axes,
            shapes={name: tuple(shape) for name, shape in order.shapes.items()},
            values=order.values,
            seed=order.seed,
        )
        return made, session.bind({item.name: item.array for item in made})

    def _warm_up(self, call: Call) -> bool | None:
        stamps = self.stamps.setdefault("warmup", Stamps())
        self.cpu_before_warmup_ns = time.process_time_ns()
        return self._during("warmup", lambda: warm_up(call, stamps, self.order.warmup, self.stop))

    def _wait_for_go(self, call: Call, about: Mapping[str, Any]) -> None:
        # Python's collector is none of the engine's business: it works before the window and rests inside it.
        gc.collect()
        gc.disable()
        # The runner reads the machine's counters now, so that they cover the measured window and nothing else.
        before = self.stamps["warmup"] or self.stamps.get("first") or Stamps()
        each_ns = before.durations()[-1] if len(before) else 0
        while True:
            if "device" in about:
                self._read_canary("before", call)
            self.wire.send("ready", inference_ns=each_ns, **about)
            if os.read(self.gate, 1) != b"m" or self.stop.asked:
                return
            self._warm_longer(call)

    def _warm_longer(self, call: Call) -> None:
        """Go on warming up, because the device's clock, power or heat still change."""
        stamps, phase, cpu_ns = self.stamps["warmup"], self.phases["warmup"], time.process_time_ns()
        time_calls(call, stamps, _NO_LIMIT, time.perf_counter_ns() + _WARM_STEP_NS, self.stop)
        added_ns = time.process_time_ns() - cpu_ns
        phase |= {"end_ns": time.perf_counter_ns(), "count": len(stamps), "cpu_ns": (phase["cpu_ns"] or 0) + added_ns}

    def _time_runs(self, call: Call) -> str:
        order = self.order
        stamps = self.stamps.setdefault("measure", Stamps())
        queued: array[int] | None = array("q") if isinstance(call, DeviceCall) else None
        compiled = _count_compilations(call)
        if isinstance(call, DeviceCall):
            call.reset_memory_peak()

        def run() -> str:
            return measure(
                call,
                stamps,
                runs=order.runs,
                most_runs=order.most_runs,
                max_time_ns=order.max_time_ns,
                ci=order.ci,
                stop=self.stop,
                queued=queued,
            )

        stopped_by = self._during("measure", run)
        gc.enable()
        since_warmup_ns = time.process_time_ns() - self.cpu_before_warmup_ns
        self.wire.send(
            "measured",
            cpu_ns=self.phases["measure"]["cpu_ns"],
            cpu_since_warmup_ns=since_warmup_ns,
            count=len(stamps),
        )
        self.device["recompilations"] = _count_compilations(call) - compiled
        if queued is not None:
            self._keep("launch", Stamps(stamps.begins, queued))
        return stopped_by

    def _keep_memory(self, call: DeviceCall) -> None:
        memory = call.device_memory()
        if memory is not None:
            self.device["memory"] = asdict(memory)

    def _read_canary(self, when: str, call: Call) -> None:
        """Time fixed work on the device beside what is measured, then let the own work find its memory again."""
        spans = self.engine.time_canary(self.order.unit) if isinstance(self.engine, HasCanary) else {}
        if spans:
            self.canary[when] = judge_canary(spans)
            for _ in range(_CALLS_AFTER_CANARY):
                call()

    def _time_device(self, call: CardCall) -> None:
        """Time the same work by the device's own marks, back to back, and with the copies from and to the host; of a
        call that cannot be queued, back to back alone."""
        calls = self.stamps["measure"]
        if isinstance(call, DeviceCall):
            self._time_marked(call)
        least, each_ns = min(self.order.runs, len(calls)), int(median(calls.durations()))
        least_ns = min(self.order.sustained_ns, self.order.max_time_ns)
        begin_ns, end_ns, count = self._during(
            "sustained",
            lambda: run_back_to_back(call, least=least, least_ns=least_ns, each_ns=each_ns, stop=self.stop),
        )
        self.phases["sustained"] |= {"begin_ns": begin_ns, "end_ns": end_ns, "count": count}
        self.wire.send("phase", name="copies")  # nothing is metered any more
        if isinstance(call, DeviceCall):
            self._time_copies(call)

    def _time_marked(self, call: DeviceCall) -> None:
        marked = Stamps()
        self._during("device", lambda: time_by_marks(call, marked, self.order.runs, self.stop))
        self._keep("device", marked)

    def _time_copies(self, call: DeviceCall) -> None:
        copies = call.host_copies()
        self.device |= {"bytes_in": copies.bytes_in, "bytes_out": copies.bytes_out, "host_memory": copies.memory}
        for name, stamps in time_copies(call, copies, self.stop).items():
            self._keep(name, stamps)

    def _keep_stages(self, call: Call) -> None:
        """Keep what compiling and capturing took, inside the first inference."""
        stages: Mapping[str, tuple[int, int]] = call.stages() if isinstance(call, CompiledCall) else {}
        for name, (begin_ns, end_ns) in stages.items():
            self._keep(name, Stamps(array("q", [begin_ns]), array("q", [end_ns])))

    def _keep(self, name: str, stamps: Stamps) -> None:
        """Keep samples that were not taken as a phase of their own."""
        if not len(stamps):
            return
        self.stamps[name] = stamps
        told: dict[str, int | None] = {"begin_ns": stamps.begins[0], "end_ns": stamps.ends[-1], "cpu_ns": 0}
        self.phases[name] = told | self.phases.get(name, {}) | {"count": len(stamps)}

    def _check_outputs(self, session: Session, raw: Any) -> dict[str, Any]:
        outputs = session.outputs(raw)
        finite = all(bool(np.isfinite(array).all()) for array in outputs.values() if array.dtype.kind in "fc")
        if self.order.outputs:
            outputs_file.save_outputs(self.order.outputs, outputs)
        return {"finite": finite, "outputs": len(outputs), "effect": asdict(session.effect())}

    def _during(self, name: str, work: Callable[[], T], *, stamped: bool = False) -> T:
        """Do one phase with its own clock, CPU time and memory mark."""
        self._enter(name)
        reset_peak()
        stamps = Stamps()
        cpu_ns = time.process_time_ns()
        begin_ns = time.perf_counter_ns()
        result = work()
        end_ns = time.perf_counter_ns()
        cpu_ns = time.process_time_ns() - cpu_ns
        memory = read_memory()
        if stamped:
            stamps.begins.append(begin_ns)
            stamps.ends.append(end_ns)
            self.stamps[name] = stamps
        self.phases[name] = {
            "begin_ns": begin_ns,
            "end_ns": end_ns,
            "cpu_ns": cpu_ns,
            "count": len(self.stamps.get(name, ())),
            "rss_peak_kib": memory.peak_kib,
            "rss_anon_kib": memory.anon_kib,
            "rss_file_kib": memory.file_kib,
        }
        return result

    def _enter(self, name: str) -> None:
        """Say which phase this is; aloud only where the runner's waking up disturbs nothing that is timed closely."""
        self.phase = name
        if self.note is not None:
            os.pwrite(self.note, name.encode().ljust(PHASE_BYTES), 0)
        if name in ("load", "warmup", "sustained"):
            self.wire.send("phase", name=name)

    def _samples(self) -> dict[str, Any]:
        """Write the samples as raw int64, all begins of a phase and then all its ends; return how many of each."""
        counts = {name: len(stamps) for name, stamps in self.stamps.items()}
        if self.order.samples:
            blocks = (block for stamps in self.stamps.values() for block in (stamps.begins, stamps.ends))
            _write_blocks(Path(self.order.samples), blocks)
        return {"counts": counts}


def _advise_sizes(made: Sequence[MadeInput]) -> str:
    """Say which sizes were guessed, and how they are set; empty where none was."""
    guessed = [item for item in made if "rule:" in item.shape_source]
    if not guessed:
        return ""
    fed = ", ".join(f"{item.name} {list(item.array.shape)} ({item.shape_source})" for item in guessed)
    flags = " ".join(shape_flag(item.name, item.array.shape) for item in guessed)
    return (
        f"it got {fed}: if a size is wrong, set it in workload.inputs.axes or .shapes; "
        f"with prony bench: {flags}, with the right sizes"
    )


def _load_options(order: ChildOrder) -> LoadOptions:
    return LoadOptions(
        unit=order.unit,
        threads=order.threads,
        precision=order.precision,
        batch_size=order.batch_size,
        shapes={name: tuple(shape) for name, shape in order.shapes.items()},
        options=order.options,
        profile=order.profile,
        inputs_at=order.inputs_at,
        outputs_at=order.outputs_at,
    )


def _load_suite(order: ChildOrder, engine: Engine) -> TestSuite:
    module, _, name = order.suite.partition(":")
    suite: TestSuite = getattr(importlib.import_module(module), name)(order.options, engine)
    return suite


def _children_cpu_ns() -> int:
    """Return the CPU time of the processes that this one started and that have ended."""
    times = os.times()
    return int((times.children_user + times.children_system) * 1e9)


def _write_blocks(path: Path, blocks: Iterable[array[int]]) -> None:
    unfinished = path.with_suffix(".tmp")
    try:
        with unfinished.open("wb") as file:
            for block in blocks:
                block.tofile(file)
        unfinished.replace(path)
    except OSError as exc:  # not the engine's fault
        with suppress(OSError):
            unfinished.unlink(missing_ok=True)
        raise StoreError(
            f"cannot write {path}: {exc.strerror}", hint="check whether the disk is full or read-only"
        ) from exc


def _count_compilations(call: Call) -> int:
    return call.count_compilations() if isinstance(call, CompiledCall) else 0


def _facts(made: list[MadeInput]) -> list[dict[str, Any]]:
    return [
        {
            "name": item.name,
            "dtype": str(item.array.dtype),
            "shape": list(item.array.shape),
            "shape_source": item.shape_source,
            "values_source": item.values_source,
            "sha256": item.sha256,
        }
        for item in made
    ]
