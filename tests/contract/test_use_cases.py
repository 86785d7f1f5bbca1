"""The same questions to this machine's bench and to a server on the same home, and the same answers."""

from __future__ import annotations

import hashlib
import io
import tarfile
import tempfile
from collections.abc import Callable, Iterator
from dataclasses import dataclass
from functools import partial
from pathlib import Path
from typing import Any

import pytest
from pydantic import BaseModel
from server.house import served
from store.histories import fill, numbers

from prony.app.bench import Bench
from prony.client import Client
from prony.errors import PronyError
from prony.model.alarm import NewAlarm
from prony.model.comparison import Terms
from prony.model.history import Acknowledgement, NewBaseline
from prony.model.matrix import MatrixTerms
from prony.model.queue import Submission
from prony.model.schedule import NewSchedule
from prony.ports.use_cases import UseCases, iterate_pages
from prony.recipe import loads
from prony.store.home import Home

RECIPE = """
name: both
workload: {kind: model, model: "zoo:tiny", engine: onnxruntime}
matrix: {workload.batch_size: [1, 2]}
measure: {runs: 5, repeats: 2, isolation: fork}
gates: ["verdict != void", "inference_ms.p50 <= 1000"]
"""


@dataclass(frozen=True)
class Benches:
    """Both implementations over one home, and a finished experiment in it."""

    here: Bench
    there: Client
    experiment: str

    def ask(self, question: Callable[[UseCases, str], Any]) -> tuple[Any, Any]:
        return plain(question(self.here, self.experiment)), plain(question(self.there, self.experiment))


@pytest.fixture(scope="module")
def benches(tmp_path_factory: pytest.TempPathFactory) -> Iterator[Benches]:
    folder = tmp_path_factory.mktemp("home")
    with Bench.open(Home(folder)) as here:
        fill(here.store, numbers(30, change=24))
        here.histories.judge()
        ran = here.run(loads(RECIPE), on_start=lambda *_: None, on_event=lambda _: None)
        with served(folder, sweep_s=0.05) as house, Client(house.url) as there:
            yield Benches(here, there, ran.experiment.id)


def plain(answer: Any) -> Any:
    """Return an answer as it would be written, so that a path that only one of them has does not count."""
    if isinstance(answer, BaseModel):
        return answer.model_dump_json()
    return [plain(one) for one in answer] if isinstance(answer, list | tuple) else answer


def fetched(bench: UseCases, job_id: str, name: str) -> bytes:
    """Return a file of a result, as it is written."""
    with tempfile.TemporaryDirectory() as folder:
        return bench.files.fetch(job_id, name, Path(folder) / "file").read_bytes()


def series(bench: UseCases) -> str:
    return bench.histories.find("quick")[0].id


QUESTIONS: dict[str, Callable[[UseCases, str], Any]] = {
    "an id by the beginning of it": lambda bench, one: bench.experiments.find(one[:-1]),
    "an id by itself": lambda bench, one: bench.experiments.find(one),
    "results": lambda bench, one: bench.experiments.results(one),
    "a report in Markdown": lambda bench, one: bench.experiments.report(one, "md"),
    "a report in CSV": lambda bench, one: bench.experiments.report(one, "csv"),
    "a report in JSON": lambda bench, one: bench.experiments.report(one, "json"),
    "a strict report for JUnit": lambda bench, one: bench.experiments.report(one, "junit", strict=True),
    "gates": lambda bench, one: bench.analyses.gates(one),
    "more gates, strict": lambda bench, one: bench.analyses.gates(one, strict=True, more=["load_ms <= 1"]),
    "a comparison of jobs": lambda bench, one: bench.analyses.compare([f"{one}-001", f"{one}-002"], Terms(anyway=True)),
    "a comparison": lambda bench, _: bench.analyses.compare(["run0001b1", "run0029b1"], Terms()),
    "a matrix": lambda bench, one: bench.analyses.matrix([one], MatrixTerms(rows="batch", columns="engine")),
    "series of a name": lambda bench, _: bench.histories.find("quick"),
    "a series by its id": lambda bench, _: bench.histories.find(series(bench)),
    "files of a job": lambda bench, one: bench.files.listing(bench.files.find(f"{one}-001")),
    "a file as text": lambda bench, one: bench.files.text(f"{one}-002", "logs/job.log")._asdict(),
    "a piece of a file": lambda bench, one: bench.files.text(f"{one}-002", "result.json", offset=7)._asdict(),
    "a file": lambda bench, one: fetched(bench, f"{one}-001", "samples.parquet"),
    "every series": lambda bench, _: list(iterate_pages(bench.histories.page)),
    "the first page of series": lambda bench, _: bench.histories.page(limit=1),
    "a history": lambda bench, _: bench.histories.get(series(bench)),
    "open changes": lambda bench, _: list(iterate_pages(bench.histories.changes)),
    "a change by the beginning of its id": lambda bench, _: bench.histories.find_change(
        bench.histories.changes().items[0].id[:8]
    ),
}
REFUSED: dict[str, Callable[[UseCases, str], Any]] = {
    "an experiment that nobody knows": lambda bench, _: bench.experiments.find("nope"),
    "an ambiguous beginning": lambda bench, _: bench.experiments.find("run00"),
    "results that are not there": lambda bench, _: bench.experiments.results("nope"),
    "a report in no format": lambda bench, one: bench.experiments.report(one, "papyrus"),
    "requests in no format": lambda bench, one: bench.experiments.export_requests(one, "papyrus", Path("nowhere")),
    "a gate on no metric": lambda bench, one: bench.analyses.gates(one, more=["nothing <= 3"]),
    "a sweep of models": lambda bench, one: bench.analyses.sweep([one]),
    "a limit that is no number": lambda bench, one: bench.analyses.sweep([one], slo=["ttft_ms.p99=soon"]),
    "a matrix of nothing": lambda bench, one: bench.analyses.matrix([one], MatrixTerms(rows="colour")),
    "a comparison with itself": lambda bench, one: bench.analyses.compare([one, one], Terms()),
    "files of a job that nobody knows": lambda bench, _: bench.files.find("nope"),
    "files of several jobs": lambda bench, one: bench.files.find(one),
    "a file outside the result": lambda bench, one: bench.files.text(f"{one}-001", "../../prony.db"),
    "a file that is a folder": lambda bench, one: fetched(bench, f"{one}-001", "logs"),
    "a text that is none": lambda bench, one: bench.files.text(f"{one}-001", "samples.parquet"),
    "a history that nobody knows": lambda bench, _: bench.histories.get("nope"),
    "a metric that a history has not": lambda bench, _: bench.histories.get(series(bench), metric="load_ms.p99"),
    "a baseline that nobody pinned": lambda bench, _: bench.histories.baseline(series(bench)),
    "a schedule that nobody knows": lambda bench, _: bench.schedules.get("nope"),
    "an alarm that nobody knows": lambda bench, _: bench.alarms.get("nope"),
    "deleting what nobody knows": lambda bench, _: bench.experiments.delete("nope"),
}
# What both refuse, each with a code of its own, and why.
OTHER_CODES = {"a report in no format": "the server checks the words of a request before it looks at the experiment"}


@pytest.mark.parametrize("question", QUESTIONS)
def test_both_answer_the_same(benches: Benches, question: str) -> None:
    here, there = benches.ask(QUESTIONS[question])
    assert here == there
    assert here


@pytest.mark.parametrize("question", REFUSED)
def test_both_refuse_the_same_for_the_same_reason(benches: Benches, question: str) -> None:
    reasons = []
    for bench in (benches.here, benches.there):
        with pytest.raises(PronyError) as caught:
            REFUSED[question](bench, benches.experiment)
        reasons.append((type(caught.value), caught.value.code))
    assert reasons[0][0] is reasons[1][0]
    assert (reasons[0] == reasons[1]) is (question not in OTHER_CODES)


def test_both_export_the_same_folder(benches: Benches, tmp_path: Path) -> None:
    folders = [
        bench.experiments.export(benches.experiment, tmp_path / name)
        for name, bench in (("here", benches.here), ("there", benches.there))
    ]
    files = [{str(path.relative_to(folder)): path.read_bytes() for path in folder.rglob("*") if path.is_file()}
             for folder in folders]  # fmt: skip
    assert files[0].keys() == files[1].keys()
    assert {name for name, content in files[0].items() if content != files[1][name]} <= {"manifest.json"}


def test_both_keep_a_report_in_this_home(benches: Benches, monkeypatch: pytest.MonkeyPatch, tmp_path: Path) -> None:
    monkeypatch.setenv("PRONY_HOME", str(tmp_path))
    here = benches.here.experiments.keep_report(benches.experiment)
    there = benches.there.experiments.keep_report(benches.experiment)
    assert here.is_relative_to(benches.here.home.root)
    assert there.is_relative_to(tmp_path)
    assert here.read_bytes() == there.read_bytes()


@pytest.mark.parametrize("turned", [False, True])
def test_a_schedule_that_one_makes_the_other_moves(benches: Benches, turned: bool) -> None:
    one, other = pair(benches, turned=turned)
    made = one.schedules.add(NewSchedule(submission=Submission(text=RECIPE), cron="0 3 * * *", name="nightly"))
    assert other.schedules.get("nightly") == made
    assert [plain(found) for found in iterate_pages(other.schedules.page)] == [plain(made)]
    assert other.schedules.pause(made.id).state == "paused"
    assert one.schedules.get(made.id).state == "paused"
    assert other.schedules.resume("nightly").state == one.schedules.get("nightly").state == "active"
    fire = other.schedules.run("nightly")
    fires = list(iterate_pages(partial(one.schedules.fires, "nightly")))
    assert [found.experiment_id for found in fires] == [fire.experiment_id]
    other.schedules.remove("nightly")
    assert list(iterate_pages(one.schedules.page)) == []


@pytest.mark.parametrize("turned", [False, True])
def test_an_alarm_that_one_makes_the_other_tries_out_and_removes(benches: Benches, turned: bool) -> None:
    one, other = pair(benches, turned=turned)
    made = one.alarms.add(NewAlarm(name="ops", when="agent lost"))
    assert made.secret
    assert other.alarms.get("ops") == made.alarm
    assert list(iterate_pages(other.alarms.page)) == [made.alarm]
    assert other.alarms.test("ops").deliveries == one.alarms.deliveries("ops").items == ()
    assert other.alarms.incidents("ops") == one.alarms.incidents("ops")
    other.alarms.remove("ops")
    assert list(iterate_pages(one.alarms.page)) == []


@pytest.mark.parametrize("turned", [False, True])
def test_a_baseline_that_one_pins_the_other_clears(benches: Benches, turned: bool) -> None:
    one, other = pair(benches, turned=turned)
    wanted = series(one)
    pinned = one.histories.set_baseline(wanted, NewBaseline(job_id=None, reason="good"))
    assert other.histories.baseline(wanted) == pinned
    other.histories.clear_baseline(wanted)
    with pytest.raises(PronyError):
        one.histories.baseline(wanted)


@pytest.mark.parametrize("turned", [False, True])
def test_scripts_are_kept_once_under_their_checksum(benches: Benches, turned: bool, tmp_path: Path) -> None:
    one, other = pair(benches, turned=turned)
    content = tar_of("run.sh", f"echo {turned}".encode())
    sha256 = hashlib.sha256(content).hexdigest()
    for bench in (one, other):
        bench.scripts.keep(sha256, [content])
    assert benches.there.scripts.fetch(sha256, tmp_path / "back.tar").read_bytes() == content


def test_a_change_that_one_acknowledges_is_open_to_neither(benches: Benches) -> None:
    (change,) = benches.there.histories.changes().items
    said = benches.there.histories.ack(change.id, Acknowledgement(reason="known"))
    assert said.acknowledgement is not None
    assert said.acknowledgement.reason == "known"
    assert benches.here.histories.changes().items == benches.there.histories.changes().items == ()


def test_what_one_deletes_is_gone_for_both(benches: Benches) -> None:
    benches.here.experiments.delete("run0000b1")
    benches.there.experiments.delete("run0001b1")
    for bench in (benches.here, benches.there):
        for gone in ("run0000b1", "run0001b1"):
            with pytest.raises(PronyError):
                bench.experiments.find(gone)


def pair(benches: Benches, *, turned: bool) -> tuple[UseCases, UseCases]:
    return (benches.there, benches.here) if turned else (benches.here, benches.there)


def tar_of(name: str, content: bytes) -> bytes:
    buffer = io.BytesIO()
    with tarfile.open(fileobj=buffer, mode="w") as archive:
        info = tarfile.TarInfo(name)
        info.size = len(content)
        archive.addfile(info, io.BytesIO(content))
    return buffer.getvalue()
