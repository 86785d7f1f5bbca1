"""`prony.bench` and `prony.run_recipe`: what the commands `prony bench` and `prony run` do, for a program."""

from __future__ import annotations

import os
import sys
import threading
from argparse import ArgumentParser, Namespace
from collections.abc import Callable, Iterator, Mapping, Sequence
from contextlib import contextmanager
from pathlib import Path
from typing import TYPE_CHECKING, Any, NoReturn, TypedDict, Unpack, overload

from prony.api.call_function import is_timing_process
from prony.api.hints import add_hints
from prony.api.results import ExperimentResult, FunctionResult, open_home, read_samples
from prony.errors import InputError

if TYPE_CHECKING:
    from prony.app.bench import Bench
    from prony.app.run_bench import BeginRun
    from prony.model.assumption import Assumption
    from prony.model.event import Event
    from prony.model.experiment_data import ExperimentData
    from prony.recipe import LoadedRecipe

Function = Callable[[], Any]
_ONE_PROCESS_S, _EACH_PROCESS_S = 3.0, 1.0
_OF_FUNCTIONS = frozenset(("runs", "time"))


class BenchOptions(TypedDict, total=False):
    """What `prony bench` may be told besides; each is the option of that name."""

    engine: str
    engines: str | Sequence[str]
    unit: str
    batch: int | Sequence[int]
    threads: int | Sequence[int]
    precision: str
    shape: Mapping[str, Sequence[int]]
    runs: int
    time: str | float
    repeats: int
    warmup: int
    parameter_list: Mapping[str, Sequence[Any]]
    command: str | Sequence[str]
    set: Mapping[str, Any]


@overload
def bench(
    subject: Function, /, *, processes: None = None, save: bool = True, **options: Unpack[BenchOptions]
) -> FunctionResult: ...
@overload
def bench(
    subject: Function, /, *, processes: int, save: bool = True, **options: Unpack[BenchOptions]
) -> ExperimentResult: ...
@overload
def bench(
    *subjects: str | os.PathLike[str], processes: None = None, save: bool = True, **options: Unpack[BenchOptions]
) -> ExperimentResult: ...
def bench(
    *subjects: Any, processes: int | None = None, save: bool = True, **options: Unpack[BenchOptions]
) -> ExperimentResult | FunctionResult:
    """Measure models as `prony bench` does, or a function.

    Args:
        subjects: Models as the command takes them (two take turns), or one function that is called without arguments.
        processes: Of a function: time it in so many fresh processes, which must be able to import it. Without it the
            function is timed in this process, and nothing is stored.
        save: Keep what came out as an experiment.
        options: The options of the command; of a function `runs` (samples at most) and `time` (of each process).

    Raises:
        InputError: Something that was named is not there or does not fit together; the hint says what to do.
        CapacityError: Something that is needed is missing here.
        SutError: What was to be measured failed.
    """
    with add_hints():
        if any(callable(one) for one in subjects):
            if len(subjects) != 1:
                raise InputError("prony.bench takes one function", hint="as in prony.bench(lambda: model(x))")
            return _bench_function(subjects[0], processes, options, save=save)
        if processes is not None:
            raise InputError(
                "processes= is for functions", hint="for models, use repeats= for the number of fresh processes"
            )
        return _bench_models([os.fspath(one) for one in subjects], options, save=save)


def run_recipe(recipe: str | os.PathLike[str], *, set: Mapping[str, Any] | None = None) -> ExperimentResult:  # noqa: A002 - the word of the command
    """Run a recipe on this machine, as `prony run` does, and return what came out. It is kept.

    Args:
        recipe: The path of a recipe.
        set: Keys of the recipe that shall have other values: `{"measure.repeats": 3}`.

    Raises:
        RecipeError: The recipe is wrong; the message has each problem with its place.
    """
    from prony.recipe import load
    from prony.recipe.overrides import anchor_overrides

    with add_hints():
        loaded = load(Path(recipe), anchor_overrides(_write_overrides(set or {}), Path.cwd()))
        with _open_bench() as bench, _follow() as (begin, follow):
            data = bench.run(loaded, on_start=begin, on_event=follow)
        check_not_stopped(data)
        return ExperimentResult(data)


def _bench_models(models: Sequence[str], options: Mapping[str, Any], *, save: bool) -> ExperimentResult:
    from prony.app.plan_bench import plan_bench
    from prony.cli.bench_options import request_of

    given = parse_bench_options(models, options)
    request = request_of(given)
    with _open_bench() as bench:
        quick, loaded = plan_bench(bench, request, base=Path.cwd(), overrides=given.set)
        return _run_planned(bench, loaded, quick.assumptions, save=save)


def _bench_function(
    function: Function, processes: int | None, options: Mapping[str, Any], *, save: bool
) -> ExperimentResult | FunctionResult:
    foreign = next((name for name in options if name not in _OF_FUNCTIONS), None)
    if foreign is not None:
        raise InputError(
            f"prony.bench of a function does not take {foreign}=",
            hint=f"it takes {' and '.join(sorted(_OF_FUNCTIONS))}",
        )
    time_ns = _read_time_ns(options.get("time"), _ONE_PROCESS_S if processes is None else _EACH_PROCESS_S)
    if processes is None:
        return _time_here(function, options.get("runs"), time_ns)
    if is_timing_process():
        hint = 'call prony.bench below: if __name__ == "__main__"'
        raise InputError("this process was itself started to time a function", hint=hint)
    from prony.api.function_recipe import draft_function_recipe
    from prony.recipe import loads

    quick = draft_function_recipe(function, processes=processes, time_ns=time_ns, runs=options.get("runs"))
    with _open_bench() as bench:
        return _run_planned(bench, loads(quick.text, name="prony.bench"), (), save=save)


def _time_here(function: Function, runs: int | None, time_ns: int) -> FunctionResult:
    from prony.api.time_function import time_function
    from prony.runner.watch_machine import MachineWatch

    watch = MachineWatch()
    watch.begin()
    times = time_function(function, runs=runs, time_ns=time_ns)
    return FunctionResult.of(getattr(function, "__qualname__", type(function).__name__), times, watch.end())


def _run_planned(
    bench: Bench, loaded: LoadedRecipe, assumptions: Sequence[Assumption], *, save: bool
) -> ExperimentResult:
    from prony.app.run_bench import delete_afterwards, name_winners

    with delete_afterwards(bench, is_wanted=not save) as note:
        with _follow() as (begin, follow):
            data = bench.run(loaded, base=Path.cwd(), on_start=note(begin), on_event=follow)
        check_not_stopped(data, is_kept=save)
        _, winner = name_winners(bench, data)
        frame = None if save else read_samples(data)
    return ExperimentResult(data, assumptions=assumptions, winner=winner, frame=frame)


def check_not_stopped(data: ExperimentData, *, is_kept: bool = True) -> None:
    """Pass on the Ctrl-C that ended an experiment early.

    Raises:
        KeyboardInterrupt: It was stopped; the message says where to find what was measured.
    """
    from prony.model.experiment import ExperimentState

    if data.experiment.state in (ExperimentState.PARTIAL, ExperimentState.CANCELLED):
        kept = f"completed measurements are kept: prony show {data.experiment.id}" if is_kept else "nothing is kept"
        raise KeyboardInterrupt(f"stopped early; {kept}")


class _Words(ArgumentParser):
    """Reads options as the command does; what is wrong is raised instead of ending the process."""

    def error(self, message: str) -> NoReturn:
        raise InputError(message.removeprefix("argument "), hint="prony bench --help lists all options")


def parse_bench_options(models: Sequence[str], options: Mapping[str, Any]) -> Namespace:
    """Return the options of `prony bench` that keyword arguments stand for, read and checked as the command does.

    Raises:
        InputError: A value is none that the command would take.
    """
    from prony.cli.bench_options import add_bench_options

    unknown = next((name for name in options if name not in BenchOptions.__annotations__), None)
    if unknown is not None:
        raise TypeError(f"bench() got an unexpected keyword argument {unknown!r}")
    parser = _Words(prog="prony.bench", allow_abbrev=False)
    add_bench_options(parser)
    words = [word for name, value in options.items() if value is not None for word in _write_option(name, value)]
    return parser.parse_args([*words, "--", *models])


def _write_option(name: str, value: Any) -> list[str]:
    """Return the words of a command line that a keyword argument stands for."""
    flag = f"--{name.replace('_', '-')}"
    if name == "set":
        return [word for text in _write_overrides(value) for word in (flag, text)]
    if name == "shape":
        return [word for one, sizes in value.items() for word in (flag, f"{one}={'x'.join(map(str, sizes))}")]
    if name == "parameter_list":
        return [word for one, values in value.items() for word in (flag, one, ",".join(map(str, values)))]
    if name == "command":
        return [word for one in ([value] if isinstance(value, str) else value) for word in (flag, str(one))]
    if name == "time" and not isinstance(value, str):
        return [flag, f"{value}s"]
    return [flag, str(value) if isinstance(value, str | int) else ",".join(map(str, value))]


def _write_overrides(values: Mapping[str, Any]) -> list[str]:
    import json

    return [f"{path}={value if isinstance(value, str) else json.dumps(value)}" for path, value in values.items()]


def _read_time_ns(value: str | float | None, default_s: float) -> int:
    from prony.model.quantity import read_seconds

    seconds = default_s if value is None else read_seconds(value, "time", "30s") if isinstance(value, str) else value
    if seconds <= 0:
        raise InputError(f"time={value!r} is not a valid time", hint="as in time=5 or time='30s'")
    return round(seconds * 10**9)


@contextmanager
def _open_bench() -> Iterator[Bench]:
    if threading.current_thread() is not threading.main_thread():
        hint = "call it in the main thread, or start prony as a command of its own"
        raise InputError("only the main thread of a program can run an experiment", hint=hint)
    with open_home() as found:
        yield found


@contextmanager
def _follow() -> Iterator[tuple[BeginRun, Callable[[Event], None]]]:
    """Show progress where somebody looks at a terminal, and nothing elsewhere."""
    if sys.stderr is None or not sys.stderr.isatty():
        yield (lambda *_: None, lambda _: None)
        return
    from prony.cli.progress import following

    with following() as follower:
        yield follower.start, follower.event
