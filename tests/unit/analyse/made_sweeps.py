"""Results of loads and models made from numbers of single runs, for tests of what is said of several together."""

from __future__ import annotations

from collections.abc import Callable, Mapping, Sequence
from datetime import UTC, datetime
from pathlib import Path

import numpy as np

from prony.analyse.estimates import across_runs
from prony.analyse.sweep.curves import LoadedJob
from prony.kinds.model.schema import ModelWorkload
from prony.kinds.service.schema import ServiceWorkload
from prony.model.clients import ClientSide, ServiceFacts
from prony.model.device import Cpu, Device, Environment, Hardware, Software, State
from prony.model.estimate import Grade, Reason, Summary, Verdict
from prony.model.experiment_data import Entry
from prony.model.job import Job
from prony.model.load import Load
from prony.model.metric import METRICS, key_of
from prony.model.result import Noise, Phase, Repetition, Result, ResultState

AT = datetime(2026, 11, 1, tzinfo=UTC)
S = 1_000_000_000


def environment(name: str = "vm", labels: Mapping[str, str] | None = None, cores: int = 4) -> Environment:
    cpu = Cpu(architecture="x86_64", logical_cores=cores, allowed_cores=cores)
    device = Device(
        name=name, hardware_id=f"hw-{name}", software_id="sw", hardware=Hardware(cpu=cpu, memory_mib=8192),
        software=Software(os="linux", kernel="6.1", python="3.11", prony="0.1.0"),
    )  # fmt: skip
    return Environment(device=device, state=State(taken_at=AT), clock={}, labels=dict(labels or {}))


def summary(job: Job, runs: Mapping[str, Sequence[float]], grade: Grade = Grade.VALID) -> Summary:
    """Return one whose estimates are made of these numbers of single runs, as analysis makes them."""
    estimates = {key: across_runs(np.array(v), METRICS[key_of(key).metric].unit, "runs") for key, v in runs.items()}
    count = max((len(values) for values in runs.values()), default=0)
    reasons = (Reason(code="x", text="It was disturbed.", grade=grade),) if grade is not Grade.VALID else ()
    return Summary(
        job_id=job.id, title=job.title, cell=job.cell, estimates=estimates, used=tuple(range(count)),
        runs={key: tuple(values) for key, values in runs.items()}, verdict=Verdict(grade=grade, reasons=reasons),
    )  # fmt: skip


def load_entry(
    level: float, runs: Mapping[str, Sequence[float]], *, grade: Grade = Grade.VALID, side: ClientSide | None = None,
    noise: Noise | None = None, service: ServiceFacts | None = None, experiment: str = "e1",
) -> Entry:  # fmt: skip
    """Return a load of so many users with these numbers a run."""
    job = Job(
        id=f"{experiment}-{level:g}", experiment_id=experiment, name="sweep",
        cell={"load.closed.concurrency": int(level)},
        workload=ServiceWorkload(kind="service", service="redis"),
        load=Load.model_validate({"closed": {"concurrency": int(level)}}),
    )  # fmt: skip
    told = summary(job, runs, grade)
    repetitions = tuple(
        Repetition(
            index=index, started_at=AT, phases={"measure": Phase(begin_ns=0, end_ns=10 * S, cpu_ns=1)},
            client=side or ClientSide(cpu_shares=(0.3,), asked_concurrency=int(level), delivered_concurrency=level),
            noise=noise or Noise(foreign_cpu=0.01, pressure_io=0.0, pressure_memory=0.0),
        )
        for index in told.used
    )  # fmt: skip
    result = Result(
        prony_version="0.1.0", job_id=job.id, experiment_id=experiment, state=ResultState.COMPLETE, started_at=AT,
        repetitions=repetitions, service=service or ServiceFacts(name="redis", pid=7),
    )  # fmt: skip
    return Entry(job=job, result=result, summary=told, environment=environment(), folder=Path("/nowhere"))


def sweep(
    levels: Sequence[float], through: Callable[[float], float], *, noise: float = 0.01, runs: int = 3, seed: int = 1
) -> list[LoadedJob]:
    """Return a sweep whose throughput follows a rule, with so much relative noise between runs."""
    rng = np.random.default_rng(seed)
    made = []
    for level in levels:
        rates = through(level) * np.exp(rng.normal(0, noise, runs))
        took = level / rates * 1000
        told = {"throughput_per_s.p50": rates, "e2e_ms.p50": took, "e2e_ms.p99": took * 3}
        made.append(LoadedJob(load_entry(level, {key: values.tolist() for key, values in told.items()})))
    return made


def model_entry(
    number: int, runs: Mapping[str, Sequence[float]], *, engine: str = "a", batch: int = 1, device: str = "vm",
    labels: Mapping[str, str] | None = None, energy: float | None = None, grade: Grade = Grade.VALID,
) -> Entry:  # fmt: skip
    """Return a model's job with these numbers a run; `energy`: joules of each run of one second."""
    job = Job(
        id=f"m-{number}", experiment_id="m", name="models", cell={"workload.engine": engine},
        workload=ModelWorkload(kind="model", model="zoo:tiny", engine=engine, batch_size=batch),
    )  # fmt: skip
    told = summary(job, runs, grade)
    repetitions = tuple(
        Repetition(
            index=index, started_at=AT, phases={"measure": Phase(begin_ns=0, end_ns=S, cpu_ns=1, count=10)},
            energy_j={} if energy is None else {"package_0": energy},
        )
        for index in told.used
    )  # fmt: skip
    result = Result(
        prony_version="0.1.0", job_id=job.id, experiment_id="m", state=ResultState.COMPLETE, started_at=AT,
        repetitions=repetitions,
    )  # fmt: skip
    where = environment(device, labels)
    return Entry(job=job, result=result, summary=told, environment=where, folder=Path("/nowhere"))
