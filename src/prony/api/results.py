"""What `prony.bench` and `prony.run_recipe` return: results that show themselves as text and in a notebook."""

from __future__ import annotations

from collections.abc import Callable, Iterator, Sequence
from contextlib import contextmanager
from dataclasses import dataclass
from io import StringIO
from pathlib import Path
from typing import TYPE_CHECKING, Any, Literal

from prony.api.hints import add_hints
from prony.errors import CapacityError, InputError

if TYPE_CHECKING:
    import polars as pl
    from rich.console import Console

    from prony.api.time_function import CallTimes
    from prony.app.bench import Bench
    from prony.model.assumption import Assumption
    from prony.model.comparison import Comparison, Conclusion
    from prony.model.estimate import Estimate, Verdict
    from prony.model.experiment_data import ExperimentData
    from prony.model.result import Noise

Library = Literal["polars", "pandas"]
_WIDTH = 120
_THRESHOLD = "3%"


@contextmanager
def open_home() -> Iterator[Bench]:
    """Open the home that counts here, under the settings that files and the environment give: as a command does."""
    from prony.app.bench import Bench
    from prony.cli.option_settings import use_settings

    with use_settings("bench"), Bench.open() as bench:
        yield bench


class ExperimentResult:
    """An experiment that was run: its numbers, samples and reports.

    `data` has everything that a report is written from; `assumptions` what had to be assumed for it, and `winner` a
    sentence for each comparison of its jobs. `is_kept` says whether it is stored: only then it can be compared later.
    """

    def __init__(
        self,
        data: ExperimentData,
        *,
        assumptions: Sequence[Assumption] = (),
        winner: Sequence[str] = (),
        frame: pl.DataFrame | None = None,
    ) -> None:
        self.data = data
        self.assumptions = tuple(assumptions)
        self.winner = tuple(winner)
        self.is_kept = frame is None
        self._frame = frame

    @property
    def id(self) -> str:
        """The id of the experiment, as `prony show` takes it."""
        return self.data.experiment.id

    @property
    def verdicts(self) -> dict[str, Verdict]:
        """Whether the numbers may be quoted, by the title of the job."""
        return {entry.summary.title: entry.summary.verdict for entry in self.data.entries}

    def estimate(self, key: str = "") -> Estimate:
        """Return one number of an experiment with one job: its headline, or what `key` names (`inference_ms.p99`).

        Raises:
            InputError: There are several jobs, or there is no such number.
        """
        from prony.model.estimate import headline_of

        if len(self.data.entries) != 1:
            count = len(self.data.entries)
            hint = "result.data.entries has one for each job" if count else f"`prony show {self.id}` shows its jobs"
            raise InputError(f"{self.id} has {count or 'no'} jobs with results, not one", hint=hint)
        entry = self.data.entries[0]
        wanted = key or headline_of(entry.summary, entry.job.workload.kind) or ""
        if wanted not in entry.summary.estimates:
            hint = f"there are {', '.join(entry.summary.estimates) or 'no numbers at all'}"
            raise InputError(f"{self.id} has no number {wanted!r}", hint=hint)
        return entry.summary.estimates[wanted]

    def frame(self, library: Library = "polars") -> Any:
        """Return every sample as a data frame of polars, or of pandas where that is installed.

        A row is a sample, with the columns of `samples.parquet`; `job` says whose it is, and each path of the matrix
        has a column.
        """
        found = read_samples(self.data) if self._frame is None else self._frame
        return convert_frame(found, library)

    def compare(
        self,
        baseline: ExperimentResult | str,
        *,
        threshold: str | None = None,
        metrics: Sequence[str] = (),
        across: Sequence[str] = (),
    ) -> ComparisonResult:
        """Say how this result stands against an earlier one, as `prony compare` does.

        Args:
            baseline: The earlier result itself, or its id.
            threshold: The smallest change that matters; by default the setting `cli.threshold`, 3 %.
            metrics: What decides; by default the headlines of the workload.
            across: Settings that may differ, such as `engine`.

        Raises:
            InputError: One of them was not kept, or they are not comparable.
        """
        from prony.app.bench import Bench
        from prony.cli.option_settings import use_settings
        from prony.model.comparison import Terms

        with add_hints(), use_settings("compare") as chosen, Bench.open() as bench:
            first = baseline if isinstance(baseline, str) else baseline._kept_id("compared")
            usual = chosen["cli.threshold"].value if chosen else None
            smallest = threshold or usual or _THRESHOLD
            terms = Terms.read({"threshold": smallest, "metrics": tuple(metrics), "across": tuple(across)})
            return ComparisonResult(bench.analyses.compare([first, self._kept_id("compared")], terms))

    def report(self, path: str | Path | None = None) -> Path:
        """Write a report and return where it is: by the file's name HTML, Markdown, JSON, CSV or JUnit.

        Without a path it is the HTML report beside the results.

        Raises:
            InputError: The name tells no format, or the result was not kept.
            CapacityError: HTML is asked for, and what draws it (the extra `report`) is not installed.
        """
        from prony.report import format_of_path

        with add_hints(), open_home() as bench:
            known = self._kept_id("reported")
            if path is None:
                return bench.experiments.keep_report(known)
            target = Path(path)
            content = bench.experiments.report(known, format_of_path(target))
        target.parent.mkdir(parents=True, exist_ok=True)
        target.write_bytes(content)
        return target

    def _kept_id(self, what: str) -> str:
        if not self.is_kept:
            raise InputError(f"{self.id} was not kept, so it cannot be {what}", hint="leave out save=False")
        return self.id

    def __repr__(self) -> str:
        from prony.report.terminal.experiment import print_experiment

        assumed = [f"assumed: {'guess: ' if one.is_guess else ''}{one.what}" for one in self.assumptions]
        shown = _print_to_text(lambda console: print_experiment(self.data, console))
        return "\n".join((*assumed, shown, *self.winner))

    def _repr_html_(self) -> str:
        from prony.report.html.notebook import render_experiment
        from prony.report.html.tags import join_html, tag

        assumed = [f"{'guess: ' if one.is_guess else ''}{one.what}" for one in self.assumptions]
        told = tag("p", f"assumed: {'; '.join(assumed)}") if assumed else None
        return join_html((told, *(tag("p", text) for text in self.winner))) + render_experiment(self.data)


class ComparisonResult:
    """How one result stands against another; `comparison` has every number behind it."""

    def __init__(self, comparison: Comparison) -> None:
        self.comparison = comparison

    @property
    def conclusion(self) -> Conclusion:
        """What came out: `regression`, `improvement`, `equivalent`, `inconclusive` and so on."""
        return self.comparison.conclusion

    @property
    def sentence(self) -> str:
        """The conclusion in words."""
        return self.comparison.sentence

    @property
    def has_regressed(self) -> bool:
        """Is a regression confirmed? `prony compare` exits with 1 then."""
        from prony.model.comparison import Conclusion

        return self.comparison.fails(Conclusion.REGRESSION)

    def __repr__(self) -> str:
        from prony.report.terminal.comparison import print_comparison

        return _print_to_text(lambda console: print_comparison(self.comparison, console))

    def _repr_html_(self) -> str:
        from prony.report.html.tags import tag

        return tag("pre", repr(self))


@dataclass(frozen=True, repr=False)
class FunctionResult:
    """A function that was called in this process alone: nothing of it is stored.

    `p50` is the median of a call in milliseconds with its interval. Of a quick function `calls_per_sample` is more than
    1: each of `samples_ms` is then the mean of so many calls.
    """

    name: str
    p50: Estimate
    verdict: Verdict
    samples_ms: tuple[float, ...]
    calls_per_sample: int
    warm_up_calls: int

    @classmethod
    def of(cls, name: str, times: CallTimes, noise: Noise) -> FunctionResult:
        """Summarise the calls that were timed while the machine did `noise` besides."""
        import numpy as np

        from prony.analyse.one_process import summarise_calls

        found = summarise_calls(np.array(times.durations_ms, dtype=np.float64), noise)
        used = tuple(found.used.tolist())
        return cls(name, found.p50, found.verdict, used, times.calls, times.warm_up_calls)

    def frame(self, library: Library = "polars") -> Any:
        """Return the samples that count as a data frame: `index` and `call_ms`."""
        import polars as pl

        found = pl.DataFrame({"index": range(len(self.samples_ms)), "call_ms": self.samples_ms})
        return convert_frame(found, library)

    def __repr__(self) -> str:
        from prony.report.number import format_number

        lines = [f"{self.name}: {format_number(self.p50)} a call, {self.verdict.grade}"]
        lines += [f"  {name}: {text}" for name, text in self._facts()]
        return "\n".join((*lines, *(f"  · {one.text}" for one in self.verdict.reasons)))

    def _repr_html_(self) -> str:
        from prony.report.html.notebook import PlotRow, render_calls

        facts = [("verdict", str(self.verdict.grade)), *self._facts()]
        return render_calls(
            PlotRow(self.name, self.samples_ms, self.p50), facts, [one.text for one in self.verdict.reasons]
        )

    def _facts(self) -> list[tuple[str, str]]:
        from prony.report.number import format_observed

        ends = [format_observed(value, "ms") for value in (min(self.samples_ms), max(self.samples_ms))]
        each = f" of {self.calls_per_sample:,} calls each" if self.calls_per_sample > 1 else ""
        interval = "" if self.p50.confidence is None else f"{self.p50.confidence * 100:.1f} %, {self.p50.method}"
        return [
            ("interval", interval or self.p50.method),
            ("fastest and slowest", " and ".join(ends)),
            ("samples", f"{len(self.samples_ms):,}{each}, after {self.warm_up_calls:,} calls to warm up"),
        ]


def read_samples(data: ExperimentData) -> pl.DataFrame:
    """Return the samples of all jobs in one frame; what only some of them have is null in the others."""
    import polars as pl

    from prony.instruments.samples import SAMPLES, read_frame

    frames = []
    for entry in data.entries:
        told = {"job": entry.summary.title, **{path: str(value) for path, value in entry.job.cell.items()}}
        columns = [pl.lit(value).alias(name) for name, value in told.items()]
        frames.append(read_frame(entry.folder, SAMPLES).select(*columns, pl.all()))
    return pl.concat(frames, how="diagonal_relaxed") if frames else pl.DataFrame({"job": []})


def convert_frame(frame: pl.DataFrame, library: Library) -> Any:
    """Return the frame as it is, or as one of pandas.

    Raises:
        InputError: It is to be a frame of another library.
        CapacityError: pandas is not installed.
    """
    if library == "polars":
        return frame
    if library != "pandas":
        raise InputError(f"unknown library {library!r}", hint="use 'polars' or 'pandas'")
    try:
        import pandas as pd
    except ModuleNotFoundError as exc:
        raise CapacityError("pandas is not installed", hint="pip install pandas, or use frame('polars')") from exc
    return pd.DataFrame(frame.to_dict(as_series=False))


def _print_to_text(show: Callable[[Console], None]) -> str:
    from rich.console import Console

    console = Console(file=StringIO(), width=_WIDTH, color_system=None)
    with console.capture() as captured:
        show(console)
    return captured.get().rstrip()
