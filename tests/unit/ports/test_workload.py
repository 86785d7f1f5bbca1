"""What holds for a kind of workload that overrides nothing, and for one that is not installed here."""

from __future__ import annotations

from collections.abc import Sequence
from pathlib import Path
from types import SimpleNamespace
from typing import Any

import polars as pl
import pytest

from prony.errors import InputError, NotFoundError, PronyError
from prony.model.job import Job
from prony.model.result import Result
from prony.model.workload import MissingWorkload
from prony.ports.workload import (
    InstalledKind,
    MissingKind,
    Prepare,
    Report,
    Run,
    Summarise,
    find_kind,
    kind_names,
    load_parts,
    shown_kind,
)
from prony.recipe import loads

RECIPE = "name: small\nworkload: {kind: model, model: zoo:noop, engine: onnxruntime}\n"


class PlainRun(Run):
    def run(self, jobs: Sequence[Job], folders: Sequence[Path], context: Any) -> list[Result]:
        del jobs, folders, context
        return []


class PlainSummary(Summarise):
    def summarise(self, job: Job, result: Result, samples: pl.DataFrame, *, environment: Any = None) -> Any:
        del job, result, environment
        return samples.height


@pytest.fixture
def job() -> Job:
    return loads(RECIPE, name="small.yaml").jobs("e1")[0]


def test_a_plain_kind_needs_nothing_and_refuses_nothing(job: Job, tmp_path: Path) -> None:
    plain = Prepare()
    assert plain.needs(job.workload) == {}
    assert plain.refusals_here([job]) == ()
    assert plain.key_behind(InputError("wrong")) == "workload"
    assert plain.notes([job], "this machine") == ()
    assert plain.expected_seconds(job) is None
    assert plain.engine_version(job.workload) is None
    assert plain.access((), ()) == ()
    assert plain.service_images(job) == ()
    context: Any = None
    assert plain.try_once(job, context) == ()
    assert list(plain.named_options(job)) == []
    assert plain.make_paths_absolute(job, tmp_path) is job


def test_a_plain_kind_is_run_by_one_agent(job: Job) -> None:
    with pytest.raises(InputError, match="cannot run on several agents"):
        PlainRun().merge_parts((), job)
    assert PlainRun().first_failure(()) is None


def test_a_plain_kind_has_nothing_to_draw_and_reads_all_its_samples() -> None:
    plain: Any = PlainSummary()
    asked: list[object] = []

    def read(columns: Sequence[str] | None) -> pl.DataFrame:
        asked.append(columns)
        return pl.DataFrame({"value": [1, 2, 3]})

    assert plain.summarise_stored(None, None, read) == 3
    assert asked == [None]
    assert plain.drawn_metrics(None, None) == ()
    assert plain.sample_values(None, None, None, "x_ms") == {}
    assert plain.tracks(None, None, None) == []


def test_a_plain_kind_is_told_apart_by_its_subject_and_names_no_program(job: Job) -> None:
    plain: Any = PlainSummary()
    assert plain.work(SimpleNamespace(job=job), "x_ms.p50") == job.workload.subject
    entry: Any = None
    assert Report().programs(entry) == ()


def test_a_part_of_every_installed_kind_can_be_loaded_ahead() -> None:
    load_parts("summary")
    for name in kind_names():
        found = find_kind(name)
        assert isinstance(found, InstalledKind)
        assert found.schema.model_fields["kind"].annotation is not None
        assert "summary" in vars(found)


def test_a_kind_that_is_not_installed_is_shown_but_never_run() -> None:
    missing = shown_kind("no-such-kind")
    assert isinstance(missing, MissingKind)
    assert missing.schema is MissingWorkload
    for part in ("prepare", "run"):
        with pytest.raises(NotFoundError, match="no-such-kind"):
            getattr(missing, part)
    plain: Any = missing.summary
    assert plain.drawn_metrics(None, None) == ()


def test_a_job_of_a_missing_kind_cannot_be_summarised(job: Job) -> None:
    workload = MissingWorkload.model_construct(kind="no-such-kind")
    stranger: Any = job.model_copy(update={"workload": workload})
    summary: Any = shown_kind("no-such-kind").summary
    with pytest.raises(PronyError, match="no-such-kind"):
        summary.summarise(stranger, None, None)
