"""AI Factory's results and reports: every shape of them comes in with the numbers of its own summary, and goes out."""

from __future__ import annotations

import json
import math
from collections.abc import Iterator
from datetime import UTC, datetime
from pathlib import Path
from typing import Any

import numpy as np
import pytest

from prony.app.bench import Bench
from prony.app.experiment_data import resolve_reference
from prony.app.interchange import bring_in
from prony.compat.ai_factory.importer import read_benchmark
from prony.compat.ai_factory.request_summary import summary_of
from prony.errors import InputError
from prony.kinds.service.schema import ServiceWorkload
from prony.model.estimate import Grade
from prony.model.experiment import Experiment
from prony.model.experiment_data import Entry
from prony.store.home import Home

EPOCH = 1_767_000_000
REDIS = {
    "configuration": {"target": "meluxina"},
    "service": {"type": "redis", "name": "redis-stress", "partition": "cpu"},
    "client": {"type": "redis_stress", "settings": {"num_requests": 200}},
    "benchmarks": {"num_clients": 2},
}


@pytest.fixture
def bench(tmp_path: Path) -> Iterator[Bench]:
    with Bench.open(Home(tmp_path / "home")) as found:
        yield found


def rows(count: int, *, kind: str = "redis", failing: int = 0, **more: Any) -> list[dict[str, Any]]:
    """Return requests as its clients write them: whole seconds, a latency apart, failures with a latency of 0."""
    rng = np.random.default_rng(7)
    told = []
    for number in range(count):
        begin = EPOCH + number // 10
        fails = number % 50 < failing
        latency = 0 if fails else round(float(rng.lognormal(-1.2, 0.3)), 9)
        one = {"timestamp_start": begin, "timestamp_end": begin + (number % 10 == 9), "latency_s": latency,
               "success": not fails, "service_type": kind, "request_id": number}  # fmt: skip
        told.append(one | ({"error": "set_failed"} if fails else {}) | more)
    return told


def benchmark(folder: Path, lines: list[dict[str, Any]], *, name: str = "requests.jsonl", **run: Any) -> Path:
    folder.mkdir(parents=True, exist_ok=True)
    header = {"benchmark_id": folder.name, "service_type": "redis", "test_start": "2026-01-09T10:00:00Z"}
    (folder / name).write_text("".join(json.dumps(one) + "\n" for one in (header, *lines)))
    document = {
        "benchmark_id": folder.name, "created_at": "2026-01-09T10:00:00Z", "ended_at": None, "git_commit": None,
        "recipe": {"configuration": {}, "service": {}, "client": {}, "benchmarks": {}, "raw_data": REDIS},
        "target": "meluxina", "service": {"name": "redis-stress", "type": "redis", "hostname": "mel0042"},
        "clients": [{"name": f"client-redis-stress-{n}"} for n in (1, 2)],
        "environment": {"target": "meluxina", "framework_version": "1.0.0"},
    }  # fmt: skip
    (folder / "run.json").write_text(json.dumps(document | run))
    (folder / "logs").mkdir(exist_ok=True)
    (folder / "logs" / "redis-stress_service.out").write_text("Ready to accept connections\n")
    return folder


def by_its_rules(lines: list[dict[str, Any]]) -> dict[str, Any]:
    """Compute its summary as the facts of its format say, without any code of ours."""
    good = [one for one in lines if one["success"]]
    latencies = [one["latency_s"] for one in good if one["latency_s"] > 0]
    begin, end = min(one["timestamp_start"] for one in lines), max(one["timestamp_end"] for one in lines)
    seconds = max(end - begin, max(latencies, default=0))
    told = {f"p{q}": float(np.percentile(latencies, q)) for q in (50, 90, 95, 99)} if latencies else {}
    if latencies:
        told |= {"avg": float(np.mean(latencies)), "min": min(latencies), "max": max(latencies)}
        told["std"] = float(np.std(latencies, ddof=1))
    return {
        "total_requests": len(lines), "successful_requests": len(good), "failed_requests": len(lines) - len(good),
        "success_rate": 100 * len(good) / len(lines), "requests_per_second": len(lines) / seconds, "latency_s": told,
    }  # fmt: skip


def imported(bench: Bench, path: Path) -> tuple[Experiment, Entry]:
    (experiment,) = bring_in(bench.store, path)
    (entry,) = bench.experiments.results(experiment.id).entries
    return experiment, entry


def codes(entry: Entry) -> set[str]:
    return {reason.code for reason in entry.summary.verdict.reasons}


# In


@pytest.mark.parametrize("failing", [0, 5])
def test_requests_come_in_with_the_numbers_of_its_own_summary(bench: Bench, tmp_path: Path, failing: int) -> None:
    lines = rows(400, failing=failing)
    truth = by_its_rules(lines)
    folder = benchmark(tmp_path / "BM-20260109-001", lines)
    (folder / "summary.json").write_text(json.dumps(truth))
    _, entry = imported(bench, folder)
    value = {key: one.value for key, one in entry.summary.estimates.items()}
    for ours, theirs in (("p50", "p50"), ("mean", "avg"), ("max", "max"), ("sd", "std")):
        assert value[f"e2e_ms.{ours}"] == pytest.approx(truth["latency_s"][theirs] * 1000, rel=1e-9)
    for tail in ("p90", "p95"):  # ours are median-unbiased: between its interpolation and the next request above
        assert truth["latency_s"][tail] * 1000 <= value[f"e2e_ms.{tail}"] <= truth["latency_s"][tail] * 1010
    assert value["error_rate.mean"] == pytest.approx(1 - truth["success_rate"] / 100)
    share = truth["successful_requests"] / truth["total_requests"]
    assert value["throughput_per_s.p50"] == pytest.approx(truth["requests_per_second"] * share, rel=1e-9)
    assert "summary_differs" not in codes(entry)
    assert "bytes_per_s.p50" not in value
    assert entry.summary.verdict.grade is Grade.SUSPECT


def test_what_its_data_cannot_say_is_said(bench: Bench, tmp_path: Path) -> None:
    experiment, entry = imported(bench, benchmark(tmp_path / "BM-20260109-001", rows(400)))
    expected = {"brought_in", "process_each", "coarse_stamps", "client_unknown", "one_run"}
    assert codes(entry) >= expected
    assert experiment.id.startswith("bm-20260109-001-")
    assert entry.job.labels["benchmark_id"] == "BM-20260109-001"
    assert entry.environment.device.name == "mel0042"
    assert entry.environment.device.hardware.cpu.logical_cores is None
    assert (entry.job.work(ServiceWorkload).service, entry.job.load.users.concurrency) == ("redis", 2)


def test_the_same_again_changes_nothing_and_the_same_id_of_another_is_another(bench: Bench, tmp_path: Path) -> None:
    first = benchmark(tmp_path / "a" / "BM-1", rows(50))
    other = benchmark(tmp_path / "b" / "BM-1", rows(60))
    one, again, two = (bring_in(bench.store, path)[0].id for path in (first, first, other))
    assert one == again
    assert one != two
    assert bench.experiments.results(one).experiment.id == one
    assert resolve_reference(bench.store, "bm-1-" + one.rpartition("-")[2][:4]) == (one, None)
    assert resolve_reference(bench.store, f"{one}-001") == (one, f"{one}-001")


def test_logs_of_clients_that_were_never_merged_are_read(bench: Bench, tmp_path: Path) -> None:
    folder = benchmark(tmp_path / "BM-2", rows(40), name="requests_client-1.jsonl")
    benchmark(folder, rows(60), name="requests_client-2.jsonl")
    _, entry = imported(bench, folder)
    assert entry.result.repetitions[0].phases["measure"].count == 100
    import polars as pl

    samples = pl.read_parquet(entry.folder / "samples.parquet")
    assert dict(samples["client"].value_counts().iter_rows()) == {0: 40, 1: 60}


def test_both_words_for_an_operation_are_one(bench: Bench, tmp_path: Path) -> None:
    lines = rows(100, operation="SET") + rows(100, operation_type="GET")
    _, entry = imported(bench, benchmark(tmp_path / "BM-3", lines))
    assert "e2e_ms/SET.p50" in entry.summary.estimates
    assert "e2e_ms/GET.p50" in entry.summary.estimates


def test_a_whole_results_folder_comes_in_at_once(bench: Bench, tmp_path: Path) -> None:
    for number in range(3):
        benchmark(tmp_path / "site" / "results" / f"BM-{number}", rows(30 + number))
    (tmp_path / "site" / "reports").mkdir()
    (tmp_path / "site" / "results" / ".gitkeep").write_text("")
    assert len(bring_in(bench.store, tmp_path / "site")) == 3
    assert len(bring_in(bench.store, tmp_path / "site" / "results")) == 3


def test_a_summary_without_its_requests_is_kept_as_told_and_never_vouched_for(bench: Bench, tmp_path: Path) -> None:
    folder = benchmark(tmp_path / "BM-4", [])
    (folder / "requests.jsonl").unlink()
    truth = by_its_rules(rows(400, failing=5))
    (folder / "summary.json").write_text(json.dumps(truth))
    _, entry = imported(bench, folder)
    value = {key: one.value for key, one in entry.summary.estimates.items()}
    assert value["e2e_ms.p50"] == pytest.approx(truth["latency_s"]["p50"] * 1000)
    assert value["error_rate.mean"] == pytest.approx(0.1)
    assert entry.summary.estimates["e2e_ms.p50"].low is None
    assert entry.summary.verdict.grade is Grade.SUSPECT
    assert "reported" in codes(entry)


def test_a_run_without_requests_and_summary_is_kept_and_gives_no_number(bench: Bench, tmp_path: Path) -> None:
    folder = benchmark(tmp_path / "BM-4", [])
    (folder / "requests.jsonl").unlink()
    _, entry = imported(bench, folder)
    assert entry.summary.estimates == {}
    assert entry.summary.verdict.grade is Grade.VOID
    assert entry.result.failure is not None
    assert entry.result.failure.code == "no_requests"


def test_benchmarks_of_different_numbers_of_clients_are_a_sweep(bench: Bench, tmp_path: Path) -> None:
    for clients in (1, 2, 4):
        names = [{"name": f"client-{number}"} for number in range(clients)]
        benchmark(tmp_path / "results" / f"BM-{clients}", rows(100 * clients), clients=names)
    found = bench.analyses.sweep([one.id for one in bring_in(bench.store, tmp_path)])
    (curve,) = found.curves
    assert [level.load for level in curve.levels] == [1, 2, 4]


def test_torn_lines_are_counted_and_told(bench: Bench, tmp_path: Path) -> None:
    folder = benchmark(tmp_path / "BM-5", rows(60))
    with (folder / "requests.jsonl").open("a") as file:
        file.write('{"request_id": 7, "timestamp_st{"request_id": 8}\n')
    _, entry = imported(bench, folder)
    assert "unread_lines" in codes(entry)


def test_a_summary_that_is_not_of_its_requests_is_told(bench: Bench, tmp_path: Path) -> None:
    folder = benchmark(tmp_path / "BM-6", rows(60))
    (folder / "summary.json").write_text(json.dumps({"requests_per_second": 14_200.0}))
    _, entry = imported(bench, folder)
    (told,) = [one.text for one in entry.summary.verdict.reasons if one.code == "summary_differs"]
    assert "requests_per_second is 14200 in its summary" in told


def test_a_hundred_requests_within_one_second_have_no_rate_of_a_million(bench: Bench, tmp_path: Path) -> None:
    lines = [one | {"timestamp_start": EPOCH, "timestamp_end": EPOCH, "latency_s": 0.0001} for one in rows(100)]
    _, entry = imported(bench, benchmark(tmp_path / "BM-7", lines))
    assert entry.summary.verdict.grade is Grade.VOID
    assert "coarse_stamps" in codes(entry)


def test_a_run_in_which_all_failed_is_no_throughput(bench: Bench, tmp_path: Path) -> None:
    lines = [one | {"success": False, "latency_s": 0, "error": "connection_failed"} for one in rows(50)]
    _, entry = imported(bench, benchmark(tmp_path / "BM-8", lines))
    assert entry.summary.verdict.grade is Grade.VOID
    assert (
        "throughput_per_s.p50" not in entry.summary.estimates
        or entry.summary.estimates["throughput_per_s.p50"].value == 0
    )


def test_tokens_that_nobody_counted_are_left_out(bench: Bench, tmp_path: Path) -> None:
    lines = rows(60, kind="vllm", input_tokens=5, output_tokens=64)
    _, entry = imported(bench, benchmark(tmp_path / "BM-9", lines))
    assert "output_tokens_per_s.p50" in entry.summary.estimates
    assert "input_tokens_per_s.p50" not in entry.summary.estimates
    assert "made_up" in codes(entry)


def test_the_recipe_of_a_rerun_is_the_one_that_was_first_written(bench: Bench, tmp_path: Path) -> None:
    nested: dict[str, Any] = {"raw_data": REDIS}
    for _ in range(3):
        nested = {"configuration": {}, "service": {}, "raw_data": nested}
    experiment, _ = imported(bench, benchmark(tmp_path / "BM-10", rows(60), recipe=nested))
    assert experiment.dialect == "ai-factory"
    assert experiment.name == "redis-stress"


def test_a_recipe_that_cannot_be_read_is_no_reason_to_lose_the_numbers(bench: Bench, tmp_path: Path) -> None:
    folder = benchmark(tmp_path / "BM-11", rows(60), recipe={"service": {"type": "mongodb"}, "client": {}})
    experiment, entry = imported(bench, folder)
    assert entry.summary.estimates
    assert "cannot be read" in experiment.notes[0]


@pytest.mark.parametrize(("name", "text"), [("run.json", "{"), ("summary.json", "[1]")])
def test_a_file_that_is_damaged_is_told_and_nothing_is_kept(bench: Bench, tmp_path: Path, name: str, text: str) -> None:
    folder = benchmark(tmp_path / "BM-12", rows(60))
    (folder / name).write_text(text)
    with pytest.raises(InputError, match=name):
        bring_in(bench.store, folder)
    assert not bench.store.experiments()


def test_a_folder_that_holds_nothing_of_it_is_refused_as_before(bench: Bench, tmp_path: Path) -> None:
    (tmp_path / "empty").mkdir()
    with pytest.raises(InputError, match="neither an export nor a result folder"):
        bring_in(bench.store, tmp_path / "empty")


# Out


def test_what_came_in_goes_out_byte_for_byte(bench: Bench, tmp_path: Path) -> None:
    folder = benchmark(tmp_path / "BM-13", rows(100))
    (folder / "summary.json").write_text(json.dumps(by_its_rules(rows(100))))
    experiment, _ = imported(bench, folder)
    bench.experiments.export_requests(experiment.id, "ai-factory", tmp_path / "out")
    out = tmp_path / "out" / "results" / "BM-13"
    for path in (one for one in folder.rglob("*") if one.is_file()):
        assert (out / path.relative_to(folder)).read_bytes() == path.read_bytes()
    theirs = by_its_rules(rows(100))
    ours = json.loads((tmp_path / "out" / "reports" / "BM-13" / "report.json").read_text())["summary"]
    assert all(
        math.isclose(ours["latency_s"][name], value, rel_tol=1e-9) for name, value in theirs["latency_s"].items()
    )
    assert ours["requests_per_second"] == pytest.approx(theirs["requests_per_second"])
    report = tmp_path / "out" / "reports" / "BM-13"
    assert (report / "report.md").read_text().startswith("# Benchmark BM-13\n")
    assert json.loads((report / "report.json").read_text())["run_metadata"]["target"] == "meluxina"
    drawn = {path.name for path in (report / "plots").iterdir()}
    assert drawn >= {"latency_percentiles.png", "throughput_timeline.png", "success_rate.png"}


def test_its_metrics_are_read_by_prometheus_and_its_logs_are_counted(bench: Bench, tmp_path: Path) -> None:
    from prometheus_client.parser import text_string_to_metric_families

    lines = rows(100, failing=5, operation="GET") + rows(50, operation="SET")
    folder = benchmark(tmp_path / "BM-14", lines)
    (folder / "logs" / "client.out").write_text(
        "Selects: 500\n2026 ERROR no route\nTraceback (most recent call last):\n"
    )
    experiment, _ = imported(bench, folder)
    bench.experiments.export_requests(experiment.id, "ai-factory", tmp_path / "out")
    report = tmp_path / "out" / "reports" / "BM-14"
    families = list(text_string_to_metric_families((report / "metrics.txt").read_text()))
    assert len({one.name for one in families}) == len(families)
    told = {
        (one.name, one.labels.get("quantile") or one.labels.get("operation") or one.labels.get("error_type")): one.value
        for family in families
        for one in family.samples
    }
    theirs = by_its_rules(lines)
    assert told["benchmark_requests_total", None] == 150
    assert told["benchmark_latency_seconds", "0.95"] == pytest.approx(theirs["latency_s"]["p95"])
    assert told["benchmark_throughput_rps", None] == pytest.approx(theirs["requests_per_second"])
    assert told["benchmark_db_operation_count", "SET"] == 50
    assert told["benchmark_errors_by_type", "set_failed"] == 10
    assert told["benchmark_client_count", None] == 2
    logs = json.loads((report / "logs_summary.json").read_text())
    assert logs["total_errors"] == logs["files"]["client.out"]["errors"] == 2
    assert logs["files"]["client.out"]["lines"] == 3


def test_an_id_that_is_no_name_leads_nowhere_else(bench: Bench, tmp_path: Path) -> None:
    folder = benchmark(tmp_path / "in" / "BM-16", rows(30), benchmark_id="../../../elsewhere/BM")
    experiment, _ = imported(bench, folder)
    made = bench.experiments.export_requests(experiment.id, "ai-factory", tmp_path / "out")
    assert all(path.resolve().is_relative_to(tmp_path / "out") for path in made)


def test_the_summary_of_an_operation_holds_no_raw_latencies(tmp_path: Path) -> None:
    lines = rows(20, kind="postgres", operation_type="insert") + rows(20, kind="postgres", operation_type="select")
    told = summary_of(read_benchmark(benchmark(tmp_path / "BM-15", lines)).log)
    assert set(told["operations"]) == {"insert", "select"}
    for one in told["operations"].values():
        assert one["count"] == 20
        assert all(isinstance(value, int | float) for value in one.values())
    assert told["transactions_per_second"] == told["requests_per_second"]


def test_the_summary_has_no_percentile_of_nothing(tmp_path: Path) -> None:
    folder = benchmark(tmp_path / "BM-14", [one | {"success": False} for one in rows(5)])
    told = summary_of(read_benchmark(folder).log)
    assert set(told["latency_s"].values()) == {None}
    assert told["error_summary"] == {"unknown": 5}
    assert datetime.fromtimestamp(told["test_start_time"], UTC).year == 2025
