"""The pytest plug-in: the fixture `prony_bench`, and options that keep its numbers and compare them.

pytest imports this module in every session, so it imports nothing but pytest: what measures, stores and compares is
imported when the fixture or one of the options is used.
"""

from __future__ import annotations

from argparse import SUPPRESS
from collections.abc import Callable, Generator
from pathlib import Path
from typing import TYPE_CHECKING, Any

import pytest

if TYPE_CHECKING:
    from prony.api.pytest_session import BenchSession

FIXTURE = "prony_bench"
_NOTE = "prony"
_SESSION: pytest.StashKey[BenchSession] = pytest.StashKey()
# Of a fresh process: the tests that are measured on whichever side has them.
_WANTED: pytest.StashKey[tuple[str, ...]] = pytest.StashKey()


def pytest_addoption(parser: pytest.Parser) -> None:
    """Add the options and the setting of pytest's configuration file."""
    group = parser.getgroup("prony", "benchmarks (Prony)")
    group.addoption(
        "--prony-save", nargs="?", const="", metavar="NAME",
        help="measure the tests that use prony_bench in fresh processes and keep the numbers as an experiment of this "
        "name (pytest-FOLDER); write --prony-save=NAME",
    )  # fmt: skip
    group.addoption(
        "--prony-compare", metavar="BASELINE",
        help="measure them in fresh processes, and fail those that are slower than in this experiment: its id or "
        "saved name",
    )  # fmt: skip
    group.addoption(
        "--prony-duet", metavar="FOLDER",
        help="run them here and in another checkout alternately, and fail those that are slower here",
    )  # fmt: skip
    group.addoption(
        "--prony-processes", type=int, metavar="N", help="fresh processes (5; with --prony-duet 10 on each side)"
    )
    group.addoption("--prony-time", default="1s", metavar="TIME", help="how long to call each function (1s)")
    group.addoption("--prony-threshold", default="3%", metavar="SHARE", help="the smallest change that matters (3%%)")
    group.addoption(
        "--prony-gate", action="append", default=[], metavar="GATE",
        help="what must hold, as 'test_speed_ms.p50 <= 5'; repeatable",
    )  # fmt: skip
    group.addoption(
        "--prony-path", action="append", metavar="FOLDER",
        help="with --prony-duet: folder of each checkout to import from first (. and src); repeatable",
    )  # fmt: skip
    group.addoption(
        "--prony-github-summary",
        action="store_true",
        help="add the results to the file that GITHUB_STEP_SUMMARY names",
    )
    # A fresh process, which calls each function for so many nanoseconds and tells the durations.
    group.addoption("--prony-child", type=int, metavar="NS", help=SUPPRESS)
    parser.addini("prony_gates", type="linelist", help="gates of benchmarks, as --prony-gate writes them")


def pytest_configure(config: pytest.Config) -> None:
    """Say what is wrong with the options before anything is collected."""
    if config.option.prony_child:
        # Tests that another version lacks are left out one by one, not refused.
        wanted = list(dict.fromkeys(one.partition("::")[0] for one in config.args))
        config.stash[_WANTED] = tuple(config.args)
        config.args = [one for one in wanted if (config.rootpath / one).exists()]
        if not config.args:
            pytest.exit("none of these tests exists here", returncode=0)
    elif is_measured_apart(config):
        _check_options(config)


def is_measured_apart(config: pytest.Config) -> bool:
    """Are tests measured in fresh processes, because their numbers are kept, compared or held against gates?"""
    option = config.option
    wanted = (option.prony_compare, option.prony_duet, option.prony_gate, option.prony_github_summary)
    return option.prony_save is not None or any(wanted)


def _check_options(config: pytest.Config) -> None:
    option = config.option
    if option.prony_compare and option.prony_duet:
        raise pytest.UsageError("--prony-compare and --prony-duet exclude each other: give one of them")
    if option.prony_save and Path(option.prony_save).exists():
        raise pytest.UsageError(
            f"--prony-save {option.prony_save}: this is a file or a folder, so it would not be tested: write "
            f"--prony-save=NAME {option.prony_save}"
        )
    if getattr(option, "numprocesses", None) or getattr(option, "dist", "no") != "no":
        raise pytest.UsageError("benchmarks take turns and xdist runs tests at once: leave out -n, or write -n 0")


def pytest_collection_modifyitems(config: pytest.Config, items: list[pytest.Item]) -> None:
    """In a fresh process, keep only what is measured."""
    if config.option.prony_child:
        wanted = config.stash[_WANTED]
        items[:] = [item for item in items if item.nodeid in wanted]


@pytest.hookimpl(wrapper=True, tryfirst=True)
def pytest_runtestloop(session: pytest.Session) -> Generator[None, object, object]:
    """Measure in fresh processes before the first test: each test then fails by its own number."""
    config = session.config
    items = [item for item in session.items if FIXTURE in getattr(item, "fixturenames", ())]
    if items and is_measured_apart(config) and not config.option.collectonly and not session.testsfailed:
        from prony.api.pytest_session import measure_apart
        from prony.errors import PronyError

        try:
            config.stash[_SESSION] = measure_apart(config, [item.nodeid for item in items])
        except PronyError as exc:
            raise pytest.UsageError(f"prony: {exc.message}" + (f"\n hint: {exc.hint}" if exc.hint else "")) from exc
    return (yield)


@pytest.fixture
def prony_bench(request: pytest.FixtureRequest) -> Callable[..., Any]:
    """Measure a function: `prony_bench(function, *args, **kwargs)` returns what the function returns."""
    config, nodeid = request.config, request.node.nodeid
    if config.option.prony_child:
        from prony.api.pytest_child import ChildBench, metrics_by_test

        wanted: tuple[str, ...] = config.stash[_WANTED]
        return ChildBench(metrics_by_test(wanted)[nodeid], config.option.prony_child)
    from prony.api.pytest_session import BenchSession, TestBench, read_time_ns

    if _SESSION not in config.stash:
        config.stash[_SESSION] = BenchSession(read_time_ns(config))
    # Kept with the report of the test, which also comes from the workers of xdist.
    return TestBench(config.stash[_SESSION], nodeid, lambda text: request.node.user_properties.append((_NOTE, text)))


def pytest_sessionfinish(session: pytest.Session) -> None:
    """Fail the session where a gate that belongs to no single test failed."""
    config: Any = session.config
    if config.option.prony_child and session.exitstatus == pytest.ExitCode.NO_TESTS_COLLECTED:
        session.exitstatus = pytest.ExitCode.OK
    elif _SESSION in config.stash and config.stash[_SESSION].fails and session.exitstatus == pytest.ExitCode.OK:
        session.exitstatus = pytest.ExitCode.TESTS_FAILED


def pytest_terminal_summary(terminalreporter: pytest.TerminalReporter, config: pytest.Config) -> None:
    """Show the numbers, the comparison and the gates."""
    if config.option.prony_child:
        return
    reports = [one for state in ("passed", "failed") for one in terminalreporter.getreports(state)]
    noted = [text for one in reports for name, text in getattr(one, "user_properties", ()) if name == _NOTE]
    lines = [line for text in noted for line in text.splitlines()]
    lines += config.stash[_SESSION].lines() if _SESSION in config.stash else []
    if lines:
        terminalreporter.section("prony")
    for line in lines:
        terminalreporter.write_line(line)
