"""What every test may ask for: a home of its own, an engine that misbehaves on order, and real databases.

`postgres` is the server that all tests of a session share, `postgres_url` a fresh database on it that has Prony's
tables, `empty_postgres_url` one that has none, `private_postgres` a server that a test may kill. `database_url` runs
the test twice: on the home's SQLite file (the empty URL), and on PostgreSQL. `migrated_file` is an SQLite database to
be copied into a home.
"""

from __future__ import annotations

import gc
import logging
import os
import re
import shutil
import signal
import sys
from collections.abc import Callable, Generator, Iterator
from contextlib import ExitStack, nullcontext
from functools import cache
from importlib.util import find_spec
from pathlib import Path
from typing import Any

import httpx
import pytest
from hypothesis import HealthCheck, settings

from lanes import count_examples
from prony.model.entry_points import forget_entry_points
from servers.binaries import AbsentError
from servers.forked import fork_commands, plain_processes
from servers.needs import count_missing, lack
from servers.postgres import Postgres
from servers.quiet_machine import QUIET_ROOT, make_quiet_root
from servers.shared import Shared, shared, wait_ended

# A library that the tests import and fork reports to its maker by a thread and open files, which no fork survives.
os.environ.setdefault("ORT_DISABLE_TELEMETRY", "1")
# What one process has compiled the next one reads, whatever the surroundings say: the tests start thousands.
os.environ.pop("PYTHONDONTWRITEBYTECODE", None)
sys.dont_write_bytecode = False
# The name of the command has pytest take this package for a plug-in's, and rewrite its asserts: a thousand modules.
for _finder in sys.meta_path:
    getattr(_finder, "_must_rewrite", set()).discard("prony")
# A question that names no limit of its own waits as long as a busy machine needs; httpx would give up after 5 s.
for _part in ("connect", "read", "write", "pool"):
    setattr(httpx._config.DEFAULT_TIMEOUT_CONFIG, _part, 60.0)
# A client reads the certificates of the world when it is made, in 40 ms and more, and the tests make thousands.
_read_certificates = cache(httpx.create_ssl_context)


def _certificates(verify: Any, cert: Any, trust_env: bool) -> Any:
    own = cert is not None or os.environ.get("SSL_CERT_FILE") or os.environ.get("SSL_CERT_DIR")
    return (httpx.create_ssl_context if own else _read_certificates)(verify, cert, trust_env)


vars(httpx._transports.default)["create_ssl_context"] = _certificates
# Collecting makes many objects that live to the end, and Python would look for garbage among them all the time.
gc.disable()
_OBJECTS_UNTIL_COLLECTION = 20_000
# Hypothesis times examples against limits that a busy machine does not keep; what a test finds does not depend on them.
# The examples are the same in every run: one that fails fails again.
settings.register_profile(
    "busy",
    deadline=None,
    suppress_health_check=[HealthCheck.too_slow],
    max_examples=count_examples(100),
    derandomize=True,
)
settings.load_profile("busy")
# A shell that starts the tests in the background has them ignore interrupts, and what they start inherits that.
if signal.getsignal(signal.SIGINT) is signal.SIG_IGN:
    signal.signal(signal.SIGINT, signal.default_int_handler)
# What is written for a test is gone with it: memory keeps it as well as a disk, and no test waits until it is flushed.
_MEMORY, _ROOM = Path("/dev/shm"), 6 * 2**30
if (
    "PYTEST_DEBUG_TEMPROOT" not in os.environ
    and os.access(_MEMORY, os.W_OK | os.X_OK)
    and not os.statvfs(_MEMORY).f_flag & os.ST_NOEXEC
    and shutil.disk_usage(_MEMORY).free > _ROOM
):
    os.environ["PYTEST_DEBUG_TEMPROOT"] = str(_MEMORY)
# The examples are run as on the default branch, whichever branch is checked out here.
os.environ |= {"PRONY_BRANCH": "main", "PRONY_DEFAULT_BRANCH": "main"}
FAULTY = Path(__file__).parent / "faulty"
# What `make servers` installed is found by whoever looks for a server's program; last, for it has a python too.
os.environ["PATH"] = f"{os.environ.get('PATH', '')}{os.pathsep}{Path(__file__).parents[1] / '.venv-servers' / 'bin'}"

# The files and folders that take longest, longest first, and the browsers apart: begun late, one of them would keep a
# worker busy when the others are done. What is new and slow belongs here too; `--durations` tells.
LONGEST_FIRST = (
    "integration/test_podman.py",
    "fault/test_kills.py",
    "integration/test_agent.py",
    "integration/test_sark.py",
    "ui/test_run_and_fleet.py",
    "integration/test_server.py",
    "e2e/test_fleet_commands.py",
    "ui/test_accessibility.py",
    "architecture",
    "fault/test_fuzz.py",
    "contract/test_sark_leases.py",
    "contract/test_executors.py",
    "integration/test_prometheus.py",
    "ui/test_experiment_pages.py",
    "unit/agent/test_agent.py",
    "fault",
    "e2e",
    "ui/test_analysis_pages.py",
    "integration",
    "dumont",
    "ui",
    "unit/app/fleet",
    "unit/load",
    "unit/plugins/drivers",
    "unit/agent",
    "unit/server",
    "unit/cli",
    "contract",
)

# Patterns of files that one worker runs, one after the other.
SHARING = ("tests/architecture/", "tests/ui/test_(recorded_kinds|shapes)")


def pytest_collection_finish() -> None:
    """Look for garbage again, and only in what tests make."""
    gc.freeze()
    gc.set_threshold(_OBJECTS_UNTIL_COLLECTION)
    gc.enable()


def pytest_collection_modifyitems(items: list[pytest.Item]) -> None:
    items.sort(key=_turn)


@pytest.hookimpl(optionalhook=True)
def pytest_xdist_make_scheduler(config: pytest.Config, log: Any) -> Any:
    """Have one worker run the files that share what is made once: parsed sources, a server with recorded results."""
    if config.getoption("dist") != "loadfile":
        return None
    from xdist.scheduler import LoadFileScheduling  # type: ignore[import-untyped]

    class Scheduling(LoadFileScheduling):  # type: ignore[misc]
        def _split_scope(self, nodeid: str) -> str:
            return next((one for one in SHARING if re.match(one, nodeid)), super()._split_scope(nodeid))

    return Scheduling(config, log)


@pytest.hookimpl(wrapper=True, tryfirst=True)
def pytest_terminal_summary(terminalreporter: pytest.TerminalReporter) -> Generator[None]:
    """Say last, in a line for each thing that was missing, how many tests it cost and how to bring it."""
    yield
    skipped = terminalreporter.getreports("skipped")
    reasons = [report.longrepr[2] for report in skipped if isinstance(report.longrepr, tuple)]
    for line in count_missing(reasons):
        terminalreporter.write_line(line)


def _turn(item: pytest.Item) -> int:
    return _turn_of_file(item.path)


@cache
def _turn_of_file(path: Path) -> int:
    """Return the place of a file among those that begin first; ten thousand tests ask, of some hundred files."""
    place = path.relative_to(Path(__file__).parent).as_posix()
    return next((at for at, part in enumerate(LONGEST_FIRST) if place.startswith(part)), len(LONGEST_FIRST))


@pytest.fixture(scope="session", autouse=True)
def forked_commands() -> Iterator[None]:
    """Fork the commands that tests start from a process that has imported what they need, unless it is refused."""
    with fork_commands() if os.environ.get("PRONY_TEST_FORKED") != "0" else nullcontext():
        yield


@pytest.fixture(scope="module", autouse=True)
def found_machine(request: pytest.FixtureRequest, tmp_path_factory: pytest.TempPathFactory) -> Iterator[None]:
    """Have the commands that tests start find the machine quiet: others run too, and disturbed runs are repeated."""
    is_subject = request.node.get_closest_marker("busy_machine") is not None
    with pytest.MonkeyPatch.context() as patch:
        if Path("/proc/stat").exists() and not is_subject:
            patch.setenv(QUIET_ROOT, str(make_quiet_root(tmp_path_factory.getbasetemp())))
        yield


@pytest.fixture
def new_interpreters() -> Iterator[None]:
    """Start every command of a test as a new interpreter, as a person's shell does."""
    with plain_processes():
        yield


@pytest.fixture(scope="session")
def torch_python() -> str:
    """Return an interpreter that has PyTorch; without one the test is skipped, or fails where it must be there."""
    made = Path(__file__).parents[1] / ".venv-torch"
    found = os.environ.get("PRONY_TEST_TORCH_PYTHON") or (sys.executable if find_spec("torch") else "")
    if not found and not (made / ".ready").exists():
        lack("torch", f"neither here nor in {made.name}, and PRONY_TEST_TORCH_PYTHON names no interpreter that has it")
    return found or str(made / "bin" / "python")


def _servers(factory: pytest.TempPathFactory) -> Path:
    """Return the folder that all workers of this session share; each has its own below."""
    base = factory.getbasetemp()
    return (base.parent if "PYTEST_XDIST_WORKER" in os.environ else base) / "servers"


@pytest.fixture(scope="session")
def postgres(tmp_path_factory: pytest.TempPathFactory) -> Iterator[Shared]:
    """The real PostgreSQL that all tests of this session share."""
    block = ExitStack()
    try:
        server = block.enter_context(shared(_servers(tmp_path_factory)))
    except AbsentError as exc:
        lack("postgres", str(exc))
    with block:
        yield server


def pytest_unconfigure(config: pytest.Config) -> None:
    """See the shared server end, so that no process is left when the command returns."""
    factory = getattr(config, "_tmp_path_factory", None)
    if factory is not None and "PYTEST_XDIST_WORKER" not in os.environ:
        place = _servers(factory)
        assert not place.exists() or wait_ended(place), f"a PostgreSQL is left behind: see {place}"


@pytest.fixture
def postgres_url(postgres: Shared) -> Iterator[str]:
    """A database of this test's own, with Prony's tables and nothing in them."""
    name = postgres.create_migrated()
    yield postgres.url_of(name)
    postgres.drop(name)


@pytest.fixture
def empty_postgres_url(postgres: Shared) -> Iterator[str]:
    """A database of this test's own that Prony has never seen."""
    name = postgres.create()
    yield postgres.url_of(name)
    postgres.drop(name)


@pytest.fixture
def private_postgres(postgres: Shared) -> Iterator[Postgres]:
    """A running server of this test's own, to be killed and started again; its `url` is an empty database."""
    with Postgres(postgres.programs, inside=postgres.folder) as server:
        yield server


@pytest.fixture(scope="session")
def migrated_file(tmp_path_factory: pytest.TempPathFactory) -> Path:
    """An SQLite database with Prony's tables, to be copied: making it takes longer than most tests."""
    from prony.store.home import Home
    from prony.store.store import Store

    home = Home(tmp_path_factory.mktemp("migrated"))
    Store.open(home).close()
    return home.database


@pytest.fixture(params=["sqlite", "postgres"])
def database_url(request: pytest.FixtureRequest) -> str:
    """The URL to open a store with: of the home's own file, and of a fresh database on PostgreSQL."""
    return "" if request.param == "sqlite" else str(request.getfixturevalue("postgres_url"))


@pytest.fixture(autouse=True)
def prony_home(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> Path:
    """Keep every test away from the person's own results."""
    home = tmp_path / "home"
    monkeypatch.setenv("PRONY_HOME", str(home))
    return home


@pytest.fixture(autouse=True)
def root_logging() -> Iterator[None]:
    """Take back what a test changed of the root logger: a handler that writes to a captured stream outlives it."""
    root = logging.getLogger()
    handlers, level = list(root.handlers), root.level
    yield
    for handler in [one for one in root.handlers if one not in handlers]:
        root.removeHandler(handler)
    root.setLevel(level)


@pytest.fixture
def faulty(monkeypatch: pytest.MonkeyPatch, tmp_path: Path) -> Iterator[Callable[[str], Path]]:
    """Register the faulty engine, here and in child processes; return a maker of model files for it."""
    monkeypatch.syspath_prepend(str(FAULTY))
    monkeypatch.setenv("PYTHONPATH", os.pathsep.join([str(FAULTY), os.environ.get("PYTHONPATH", "")]))
    forget_entry_points()

    def model(plan: str) -> Path:
        path = tmp_path / "model.faulty"
        path.write_text(plan)
        return path

    yield model
    forget_entry_points()
