"""What every test of the agent may ask for: a home, a server that misbehaves on order, a lease, a finished folder."""

from __future__ import annotations

import io
from collections.abc import Callable, Iterator
from pathlib import Path

import pytest

from prony.agent.identity import Slot
from prony.agent.logs import AgentLog
from prony.agent.metrics import AgentMetrics
from prony.agent.spool import Spool
from prony.kinds.model.schema import ModelWorkload
from prony.model.job import Job
from prony.model.lease import Lease
from prony.model.recipe import Measure
from prony.store.home import Home
from servers.ports import free_port

from .small_server import SmallServer, small_server

MakeLease = Callable[..., Lease]


@pytest.fixture
def home(prony_home: Path) -> Home:
    return Home(prony_home).create()


@pytest.fixture
def slot(home: Home) -> Slot:
    made = Slot("1", home.root / "agents" / "1")
    made.path.mkdir(parents=True)
    return made


@pytest.fixture
def spool(slot: Slot) -> Spool:
    return Spool(slot.spool, least_free_bytes=0)


@pytest.fixture
def server() -> Iterator[SmallServer]:
    # Not one of the system's: a server that is started again must find its port free.
    with small_server(free_port()) as running:
        yield running


@pytest.fixture
def said() -> io.StringIO:
    return io.StringIO()


@pytest.fixture
def log(said: io.StringIO) -> AgentLog:
    return AgentLog(level="debug", form="json", out=said)


@pytest.fixture
def metrics() -> AgentMetrics:
    return AgentMetrics()


@pytest.fixture
def a_lease() -> MakeLease:
    def make(number: int = 1, *, attempt: int = 1, model: str = "zoo:tiny", engine: str = "null") -> Lease:
        job = Job(
            id=f"e1-{number:03d}",
            experiment_id="e1",
            name="small",
            workload=ModelWorkload(kind="model", model=model, engine=engine),
            measure=Measure(runs=5, warmup=1, repeats=1, check=False),
        )
        return Lease(id=f"lease-{number}-{attempt}", job=job, attempt=attempt, ttl_s=6)

    return make
