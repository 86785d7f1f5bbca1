"""Measure the tests that use `prony_bench`, and say which of them fail by their numbers."""

from __future__ import annotations

from collections.abc import Callable, Mapping, Sequence
from dataclasses import dataclass, field
from functools import partial
from pathlib import Path
from typing import Any

import pytest

from prony.api.functions import check_not_stopped
from prony.api.pytest_child import metrics_by_test, name_metrics
from prony.api.pytest_recipe import TestRecipe, default_name
from prony.api.results import FunctionResult, open_home
from prony.api.time_function import time_function
from prony.app.bench import Bench
from prony.app.run_bench import delete_afterwards
from prony.errors import NotFoundError
from prony.model.comparison import Comparison, Conclusion, Contrast, Terms
from prony.model.experiment import ExperimentState
from prony.model.experiment_data import Entry, ExperimentData
from prony.model.gate import GateOutcome, GateState, parse_gate
from prony.model.quantity import read_seconds
from prony.model.result import ResultState
from prony.ports.metric_titles import metric_title
from prony.report.gate_tables import summarise_gates
from prony.report.number import format_number
from prony.runner.watch_machine import MachineWatch

# What a line says by itself.
_PLAIN = (Conclusion.EQUIVALENT, Conclusion.IMPROVEMENT)
# What may differ between two sessions that are compared: which tests there are, and where the checkout lies.
_ACROSS = ("workload.command", "workload.metrics", "workload.directory")


@dataclass
class BenchSession:
    """The numbers of a session that fresh processes gave; without `data`, tests are measured where they run.

    `names` has the metric of each test that was measured in fresh processes.
    """

    time_ns: int
    names: Mapping[str, str] = field(default_factory=dict)
    data: ExperimentData | None = None
    comparison: Comparison | None = None
    kept: str = ""

    @property
    def entry(self) -> Entry | None:
        """The job of this checkout, where there are numbers of fresh processes: of a duet its second side."""
        return self.data.entries[-1] if self.data is not None and self.data.entries else None

    @property
    def fails(self) -> bool:
        """Did a gate fail?"""
        return any(one.state is GateState.FAILED for one in (self.data.gates if self.data is not None else ()))

    def describe_failure(self, nodeid: str) -> str:
        """Return why the test fails by its numbers; empty where it does not."""
        if self.data is None:
            return ""
        if self.entry is None or self.entry.result.state is ResultState.FAILED:
            return f"it failed in a fresh process: prony logs {self.data.experiment.id}"
        contrast = self._contrast(nodeid)
        if contrast is not None and contrast.conclusion is Conclusion.REGRESSION and not contrast.doubt:
            return f"slower than before: {_shorten(contrast)}"
        failed = [one for one in self._gates_of(nodeid) if one.state is GateState.FAILED]
        return "; ".join(f"gate {one.gate} failed: {one.text}" for one in failed)

    def lines(self) -> list[str]:
        """Return what the end of the session says."""
        if self.data is None:
            return []
        found = [line for nodeid in self.names for line in self._describe(nodeid)]
        if self.entry is not None:
            verdict = self.entry.summary.verdict
            found += [f"verdict: {verdict.grade}", *(f"· {one.text}" for one in verdict.reasons)]
        if self.comparison is not None:
            found += ["", self.comparison.sentence]
        if self.data.gates:
            found += ["", summarise_gates(self.data.gates)]
            found += [f"{one.state.word}: {one.gate}: {one.text}" for one in self.data.gates]
        return [*found, "", self.kept]

    def _describe(self, nodeid: str) -> list[str]:
        contrast, key = self._contrast(nodeid), f"{self.names[nodeid]}.p50"
        estimate = None if self.entry is None else self.entry.summary.estimates.get(key)
        text = f"{nodeid}: {'no number' if estimate is None else format_number(estimate)}"
        if contrast is None:
            return [text]
        effect = contrast.effect
        change = "" if effect is None else f", {effect.change} {effect.interval}".rstrip()
        why = [] if contrast.conclusion in _PLAIN else [f"  · {_shorten(contrast)}"]
        doubt = [f"  · in doubt, so the test does not fail: {contrast.doubt}"] if contrast.doubt else []
        return [f"{text}{change}, {contrast.conclusion}", *why, *doubt]

    def _contrast(self, nodeid: str) -> Contrast | None:
        found = self.comparison.headlines if self.comparison is not None else []
        return next((one for one in found if one.key == f"{self.names.get(nodeid)}.p50"), None)

    def _gates_of(self, nodeid: str) -> list[GateOutcome]:
        if self.data is None or self.entry is None:
            return []
        units = self.entry.job.workload.metric_units
        mine = f"{self.names.get(nodeid)}."
        return [one for one in self.data.gates if parse_gate(one.gate, units).key.startswith(mine)]


class TestBench:
    """What the fixture gives: call it with a function and its arguments."""

    __test__ = False  # pytest would look for tests in it

    def __init__(self, session: BenchSession, nodeid: str, note: Callable[[str], None]) -> None:
        self._session, self._nodeid, self._note = session, nodeid, note
        self._is_called = False

    def __call__(self, function: Callable[..., Any], /, *args: Any, **kwargs: Any) -> Any:
        """Measure the function and return what it returned; the test fails where its numbers say so."""
        if self._is_called:
            pytest.fail("prony_bench was called twice in one test: call it once per test", pytrace=False)
        self._is_called = True
        call, session = partial(function, *args, **kwargs), self._session
        if session.data is None:
            return self._time_here(call)
        found = call()
        if problem := session.describe_failure(self._nodeid):
            pytest.fail(problem, pytrace=False)
        return found

    def _time_here(self, call: Callable[[], Any]) -> Any:
        watch = MachineWatch()
        watch.begin()
        times = time_function(call, runs=None, time_ns=self._session.time_ns)
        self._note("\n".join(_describe_here(FunctionResult.of(self._nodeid, times, watch.end()))))
        return times.first_result


def _shorten(contrast: Contrast) -> str:
    """Return the sentence without the titles of both jobs, which are long and the same for every test."""
    _, name, rest = contrast.sentence.partition(metric_title(contrast.key))
    return name + rest if name else contrast.sentence


def measure_apart(config: pytest.Config, nodeids: Sequence[str]) -> BenchSession:
    """Measure tests in fresh processes of pytest, as an experiment; compare it as the options say.

    Raises:
        InputError: An option, a gate or the baseline is wrong.
    """
    option, metrics = config.option, name_metrics(nodeids)
    recipe = _recipe_of(config, metrics)
    keys = tuple(f"{metric}.p50" for metric in metrics)
    terms = Terms.read({"threshold": option.prony_threshold, "metrics": keys})
    found = BenchSession(read_time_ns(config), names=metrics_by_test(nodeids))
    loaded = recipe.load()
    with open_home() as bench, delete_afterwards(bench, is_wanted=option.prony_save is None) as note:
        baseline = _find_baseline(bench, option.prony_compare) if option.prony_compare else None
        found.data = bench.run(loaded, base=config.rootpath, on_start=note(lambda *_: None), on_event=lambda _: None)
        check_not_stopped(found.data, is_kept=option.prony_save is not None)
        if found.data.entries and (baseline or recipe.other):
            names = [found.data.experiment.id] if baseline is None else [baseline, found.data.experiment.id]
            across = terms.model_copy(update={"across": _ACROSS}) if baseline else terms
            found.comparison = bench.analyses.compare(names, across)
    found.kept = _describe_kept(found.data, is_kept=option.prony_save is not None)
    if option.prony_github_summary:
        _add_github_summary(found)
    return found


def _recipe_of(config: pytest.Config, metrics: Mapping[str, str]) -> TestRecipe:
    option, root = config.option, config.rootpath
    gates = [*config.getini("prony_gates"), *option.prony_gate]
    return TestRecipe(
        root, metrics, option.prony_save or default_name(root), _plain_words(config), option.prony_processes,
        read_time_ns(config), gates, Path(option.prony_duet).resolve() if option.prony_duet else None,
        option.prony_path or (),
    )  # fmt: skip


def _plain_words(config: pytest.Config) -> list[str]:
    """Return what keeps a fresh process to its tests: no parallel workers, no measurement of coverage, no cache."""
    words = ["-q", "-p", "no:cacheprovider", "--rootdir=."]
    if config.inipath is not None and config.inipath.is_relative_to(config.rootpath):
        words += ["-c", str(config.inipath.relative_to(config.rootpath))]
    words += ["-n0"] if config.pluginmanager.hasplugin("xdist") else []
    return [*words, *(["--no-cov"] if config.pluginmanager.hasplugin("_cov") else [])]


def _find_baseline(bench: Bench, text: str) -> str:
    """Return the newest whole experiment of this name, or else the one of this id."""
    named = bench.store.experiments(1, name=text, state=ExperimentState.COMPLETE)
    if named:
        return named[0].id
    try:
        return bench.experiments.find(text)
    except NotFoundError as exc:
        hint = f"save one first: pytest --prony-save={text}"
        raise NotFoundError(f"--prony-compare: no experiment has the name or id {text!r}", hint=hint) from exc


def read_time_ns(config: pytest.Config) -> int:
    """Return how long each function is called."""
    return round(read_seconds(config.option.prony_time, "--prony-time", "1s") * 10**9)


def _describe_kept(data: ExperimentData, *, is_kept: bool) -> str:
    one = data.experiment
    if not is_kept:
        return "these numbers are not kept: --prony-save keeps them"
    history = f"prony history {one.name} --metric METRIC"
    return f"kept: prony show {one.id}; {history}; pytest --prony-compare={one.name}"


def _describe_here(one: FunctionResult) -> list[str]:
    text = f"{one.name}: {format_number(one.p50)} a call in one process, {one.verdict.grade}"
    return [text, *(f"  · {reason.text}" for reason in one.verdict.reasons if reason.code != "one_run")]


def _add_github_summary(found: BenchSession) -> None:
    from prony.cli.finish_run import add_summary
    from prony.report import render
    from prony.report.markdown import comparison as comparison_page

    if found.comparison is not None:
        add_summary(comparison_page.render(found.comparison))
    if found.data is not None:
        add_summary(render(found.data, "github"))
