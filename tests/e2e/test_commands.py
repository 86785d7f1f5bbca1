"""The commands as a person types them, in a home of their own, on real engines."""

from __future__ import annotations

import json
import os
import re
import signal
import subprocess
import sys
from collections.abc import Callable
from pathlib import Path
from xml.etree import ElementTree

import psutil
import pytest

from lanes import only_slowly
from servers.commands import call_prony as prony
from servers.forked import plain_processes
from servers.process import wait_all_gone

RECIPE = """
name: small
workload: {kind: model, model: "zoo:tiny", engine: onnxruntime}
matrix:
  workload.engine: [onnxruntime, openvino]
measure: {runs: 20, repeats: 2, warmup: 5}
"""


@pytest.fixture(scope="module")
def home(tmp_path_factory: pytest.TempPathFactory) -> Path:
    """One experiment, run once for all tests that only look at it."""
    folder = tmp_path_factory.mktemp("prony")
    (folder / "small.yaml").write_text(RECIPE)
    environment = os.environ | {"PRONY_HOME": str(folder / "home")}
    command = [sys.executable, "-m", "prony", "run", str(folder / "small.yaml")]
    with plain_processes():
        done = subprocess.run(command, capture_output=True, text=True, check=False, env=environment)
    assert done.returncode == 0, done.stdout + done.stderr
    assert "onnxruntime" in done.stdout
    report = Path(done.stderr.rpartition("report: ")[2].partition("\n")[0])
    assert report.is_file()
    return folder


@pytest.fixture(autouse=True)
def at_home(home: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setenv("PRONY_HOME", str(home / "home"))


def test_a_run_is_listed_and_shown_with_intervals_and_verdicts() -> None:
    rows = json.loads(prony("list", "--json").stdout)
    assert rows[-1]["name"] == "small"
    assert rows[-1]["state"] == "complete"
    shown = json.loads(prony("show", rows[-1]["id"][:7], "--json").stdout)
    assert len(shown["jobs"]) == 2
    for job in shown["jobs"]:
        estimate = job["estimates"]["inference_ms.p50"]
        # On a busy machine one of the two runs may be left out, and one alone has no interval.
        if estimate["low"] is None:
            assert "no interval" in estimate["method"]
        else:
            assert estimate["low"] <= estimate["value"] <= estimate["high"]
        assert job["verdict"]["grade"] in ("valid", "suspect", "void")


@pytest.mark.parametrize(
    ("form", "sign"), [("html", "<!doctype html>"), ("md", "# small"), ("json", '"version"'), ("csv", "job_id")]
)
def test_reports_come_in_every_format(form: str, sign: str, tmp_path: Path) -> None:
    target, by_name = tmp_path / f"report.{form}", tmp_path / f"again.{form}"
    prony("report", "last", "--format", form, "--out", target)
    assert sign.lower() in target.read_text().lower()
    prony("report", "last", "--out", by_name)
    assert by_name.read_text() == target.read_text()


def test_a_name_that_tells_no_format_is_refused(tmp_path: Path) -> None:
    done = prony("report", "last", "--out", tmp_path / "report.docx", code=2)
    assert "unknown format" in done.stderr
    assert ".pdf" in done.stderr
    assert not list(tmp_path.iterdir())


def test_the_junit_report_has_a_case_for_each_job() -> None:
    suite = ElementTree.fromstring(prony("report", "--format", "junit").stdout).find("testsuite")
    assert suite is not None
    assert suite.get("tests") == "2"


def test_an_experiment_travels_to_an_empty_store_and_gives_the_same_report(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    here = json.loads(prony("show", "--json").stdout)
    prony("export", "last", "--to", tmp_path / "out")
    monkeypatch.setenv("PRONY_HOME", str(tmp_path / "elsewhere"))
    assert json.loads(prony("list", "--json").stdout) == []
    prony("import", tmp_path / "out")
    there = json.loads(prony("show", "--json").stdout)
    assert there["jobs"] == here["jobs"]


def test_one_result_folder_is_enough_to_import(home: Path, tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    folder = next(path.parent for path in (home / "home/results").rglob("result.json"))
    monkeypatch.setenv("PRONY_HOME", str(tmp_path / "elsewhere"))
    prony("import", folder)
    assert len(json.loads(prony("show", "--json").stdout)["jobs"]) == 1


def test_a_rerun_uses_the_recipe_as_it_was_and_can_be_deleted() -> None:
    first = json.loads(prony("list", "--json").stdout)[-1]["id"]
    again = json.loads(prony("rerun", first, "--json", "--no-report").stdout)
    assert len(again["jobs"]) == 2
    newest = json.loads(prony("list", "--json").stdout)[0]["id"]
    assert newest != first
    assert json.loads(prony("delete", newest, "--json").stdout) == {"deleted": newest}
    assert [row["id"] for row in json.loads(prony("list", "--json").stdout)] == [first]


def test_an_override_changes_one_key(home: Path) -> None:
    settings = ["--set", "matrix.workload.engine=[onnxruntime]", "--set", "workload.batch_size=4"]
    done = prony("run", home / "small.yaml", *settings, "--json", "--no-report")
    (job,) = json.loads(done.stdout)["jobs"]
    assert job["result"]["inputs"][0]["shape"][0] == 4
    prony("delete", "last")


def test_a_wrong_key_is_named_with_its_line_and_the_right_one(tmp_path: Path) -> None:
    wrong = tmp_path / "wrong.yaml"
    wrong.write_text("name: x\nworkload: {kind: model, model: zoo:tiny, engine: onnxruntime}\nmeasure:\n  run: 3\n")
    done = prony("run", wrong, code=2)
    assert f"{wrong}:4" in done.stderr
    assert "did you mean runs?" in done.stderr


def test_an_unknown_model_fails_its_job_and_names_the_nearest(tmp_path: Path) -> None:
    recipe = tmp_path / "r.yaml"
    recipe.write_text("name: x\nworkload: {kind: model, model: 'zoo:tinny', engine: onnxruntime}\n")
    done = prony("run", recipe, "--no-report", code=1)
    assert "did you mean" in done.stdout
    prony("delete", "last")


@pytest.mark.parametrize(
    ("key", "value", "told"),
    [
        ("engine", "onnxruntim", "no engine is called 'onnxruntim'\n hint: did you mean onnxruntime?"),
        ("model", "cloud:tiny", "no source of models is called 'cloud'\n hint: known: file, ftp, hf, https, s3, zoo"),
    ],
)
def test_a_name_that_nobody_has_is_refused_before_anything_is_stored(
    home: Path, key: str, value: str, told: str
) -> None:
    before = prony("list", "--json").stdout
    done = prony("run", home / "small.yaml", "--set", "matrix={}", "--set", f"workload.{key}={value}", code=2)
    assert told in done.stderr
    assert prony("list", "--json").stdout == before


def test_a_gpu_that_is_not_there_fails_and_never_falls_back(tmp_path: Path) -> None:
    recipe = tmp_path / "r.yaml"
    recipe.write_text("name: x\nworkload: {kind: model, model: 'zoo:tiny', engine: onnxruntime, unit: directml}\n")
    done = prony("run", recipe, "--no-report", "--json", code=1)
    (job,) = json.loads(done.stdout)["jobs"]
    assert job["state"] == "failed"
    assert "unit_unavailable" in done.stdout
    prony("delete", "last")


def test_info_names_the_compute_units_as_the_seeds_do() -> None:
    document = json.loads(prony("info", "--json").stdout)
    assert "CPU (ONNX)" in {unit["seed_name"] for unit in document["compute_units"]}
    assert document["hardware"]["cpu"]["logical_cores"] >= 1


def test_the_doctor_lists_engines_and_conditions() -> None:
    document = json.loads(prony("doctor", "--json").stdout)
    states = {engine["name"]: engine["state"] for engine in document["engines"]}
    assert states["onnxruntime"] == "ready"
    assert {"pass", "warn", "block", "unknown"} >= {item["status"] for item in document["conditions"]}


def test_calibration_is_stored_and_quoted_by_every_later_report(home: Path) -> None:
    figures = json.loads(prony("calibrate", "--repeats", "6", "--json").stdout)["figures"]
    assert 0 < figures["harness_overhead_us"]["value"] < 100
    assert "not calibrated when this was measured" in prony("show").stdout
    prony("run", home / "small.yaml", "--set", "matrix={}", "--no-report")
    assert "harness overhead" in prony("show").stdout


def test_the_schema_is_printed_as_json() -> None:
    assert "workload" in json.loads(prony("schema").stdout)["properties"]


def test_the_zoo_is_listed() -> None:
    names = {card["name"] for card in json.loads(prony("zoo", "--json").stdout)}
    assert {"tiny-yolov2", "mobilenet-v2", "resnet-50", "bert-mini", "bert-base", "gpt-step", "mlp"} <= names


def test_an_unknown_command_and_an_unknown_id_are_the_caller_s_move() -> None:
    assert "did you mean prony list?" in prony("lits", code=2).stderr
    assert "no experiment" in prony("show", "zzzz", code=2).stderr


def start_long_run(faulty: Callable[[str], Path], folder: Path) -> subprocess.Popen[str]:
    model = faulty("check:fine")
    recipe = folder / "long.yaml"
    recipe.write_text(
        f"name: long\nworkload: {{kind: model, model: {model}, engine: faulty}}\n"
        "measure: {runs: 20, repeats: 500, warmup: 2, check: false, isolation: fork}\n"
    )
    command = [sys.executable, "-m", "prony", "run", str(recipe), "--no-report"]
    run = subprocess.Popen(command, stdout=subprocess.PIPE, stderr=subprocess.PIPE, text=True)
    assert run.stderr is not None
    for line in run.stderr:
        if "repetition 3 of" in line:
            return run
    raise AssertionError("it never measured")


def test_ctrl_c_keeps_what_was_measured_and_says_partial(
    faulty: Callable[[str], Path], tmp_path: Path, prony_home: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setenv("PRONY_HOME", str(prony_home))
    run = start_long_run(faulty, tmp_path)
    family = psutil.Process(run.pid).children(recursive=True)
    run.send_signal(signal.SIGINT)
    out, err = run.communicate(timeout=90)
    assert run.returncode == 130
    assert "completed measurements are kept" in err
    assert "long" in out
    assert wait_all_gone(family) == []
    (row,) = json.loads(prony("list", "--json").stdout)
    assert row["state"] == "partial"
    (job,) = json.loads(prony("show", "--json").stdout)["jobs"]
    assert job["estimates"]["inference_ms.p50"]["count"] >= 3


def test_a_killed_run_leaves_no_orphan_and_its_repetitions_are_found_again(
    faulty: Callable[[str], Path], tmp_path: Path, prony_home: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setenv("PRONY_HOME", str(prony_home))
    run = start_long_run(faulty, tmp_path)
    family = psutil.Process(run.pid).children(recursive=True)
    run.kill()
    run.communicate(timeout=90)
    assert wait_all_gone(family) == []
    (row,) = json.loads(prony("list", "--json").stdout)
    assert row["state"] == "partial"
    (job,) = json.loads(prony("show", "--json").stdout)["jobs"]
    assert job["estimates"]["inference_ms.p50"]["count"] >= 2


def test_a_run_whose_listener_goes_away_keeps_what_was_measured(
    faulty: Callable[[str], Path], tmp_path: Path, prony_home: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setenv("PRONY_HOME", str(prony_home))
    run = start_long_run(faulty, tmp_path)
    assert run.stderr is not None
    run.stderr.close()
    assert run.wait(timeout=90) == 130
    (job,) = json.loads(prony("show", "--json").stdout)["jobs"]
    assert job["state"] == "partial"
    assert job["estimates"]["inference_ms.p50"]["count"] >= 3


def test_a_reader_who_goes_away_changes_nothing_about_how_the_run_ended(home: Path) -> None:
    settings = ["--set", "matrix.workload.engine=[onnxruntime]", "--set", "measure.repeats=1", "--no-report"]
    command = [sys.executable, "-m", "prony", "run", str(home / "small.yaml"), *settings]
    run = subprocess.Popen(command, stdout=subprocess.PIPE, stderr=subprocess.PIPE, text=True)
    assert run.stdout is not None
    run.stdout.close()
    assert run.stderr is not None
    said = run.stderr.read()
    assert run.wait(timeout=60) == 0, said
    assert "Traceback" not in said
    prony("delete", "last")


@pytest.mark.parametrize("closing", [*only_slowly("<&-", ">&-", "2>&-"), "<&- >&- 2>&-"])
def test_a_command_works_with_streams_that_its_caller_closed(closing: str) -> None:
    for command, code in (("list", 0), ("show", 0), ("show nobody --json", 2), ("--help", 0)):
        line = f'exec "{sys.executable}" -P -m prony {command} {closing}'
        done = subprocess.run(["sh", "-c", line], capture_output=True, text=True, check=False)
        assert done.returncode == code, done.stdout + done.stderr
        assert "Traceback" not in done.stderr


def test_a_terminal_that_lacks_a_letter_gets_the_rest(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setenv("PYTHONIOENCODING", "ascii")
    assert "verdict" in prony("show").stdout


@pytest.mark.skipif(not Path("/dev/full").exists(), reason="this system has no /dev/full")
@pytest.mark.parametrize("command", ["list", "show", "show --json", "report --format csv", "schema", "zoo"])
def test_an_answer_that_could_not_be_written_is_no_success(command: str) -> None:
    with Path("/dev/full").open("w") as full:
        line = [sys.executable, "-P", "-m", "prony", *command.split()]
        done = subprocess.run(line, stdout=full, stderr=subprocess.PIPE, text=True, check=False)
    assert done.returncode == 3, done.stderr
    assert "Traceback" not in done.stderr


def test_a_run_that_is_stopped_before_it_began_is_no_success(
    faulty: Callable[[str], Path], tmp_path: Path, prony_home: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setenv("PRONY_HOME", str(prony_home))
    recipe = tmp_path / "r.yaml"
    recipe.write_text(f"name: x\nworkload: {{kind: model, model: {faulty('check:fine')}, engine: faulty}}\n")
    command = [sys.executable, "-m", "prony", "run", str(recipe), "--no-report"]
    run = subprocess.Popen(command, stdout=subprocess.PIPE, stderr=subprocess.PIPE, text=True)
    assert run.stderr is not None
    run.stderr.readline()  # the experiment is known, its runner is not
    run.send_signal(signal.SIGINT)
    run.communicate(timeout=90)
    assert run.returncode != 0


def test_files_in_the_current_folder_are_not_taken_for_modules(home: Path, tmp_path: Path) -> None:
    (tmp_path / "polars.py").write_text("raise RuntimeError('not this one')")
    settings = ["--set", "matrix.workload.engine=[onnxruntime]", "--no-report"]
    command = [sys.executable, "-P", "-m", "prony", "run", str(home / "small.yaml"), *settings]
    done = subprocess.run(command, capture_output=True, text=True, check=False, cwd=tmp_path)
    assert done.returncode == 0, done.stdout + done.stderr
    assert "complete" in done.stdout
    prony("delete", "last")


def test_a_path_that_nobody_can_read_fails_its_own_job_and_no_other(home: Path, tmp_path: Path) -> None:
    (tmp_path / "m.onnx").write_bytes(next((home / "home/cache/zoo").glob("tiny*.onnx")).read_bytes())
    models = ["a\0b.onnx", "~nobody-has-this-name/m.onnx", "x" * 300 + ".onnx", "file:m.onnx", "m.onnx"]
    recipe = {
        "name": "paths",
        "workload": {"kind": "model", "engine": "onnxruntime"},
        "matrix": {"workload.model": models},
        "measure": {"runs": 3, "repeats": 1},
    }
    (tmp_path / "paths.json").write_text(json.dumps(recipe))
    done = prony("run", tmp_path / "paths.json", "--json", "--no-report", code=1)
    states = [job["state"] for job in json.loads(done.stdout)["jobs"]]
    assert states == ["failed", "failed", "failed", "complete", "complete"]


def test_two_experiments_are_compared_and_too_few_runs_are_told_to_be(tmp_path: Path) -> None:
    first = json.loads(prony("list", "--json").stdout)[-1]["id"]
    prony("rerun", first, "--no-report")
    found = json.loads(prony("compare", first, "last", "--json").stdout)
    assert found["conclusion"] == "insufficient"
    assert {match["title"] for match in found["matches"]} == {"engine=onnxruntime", "engine=openvino"}
    prony("compare", first, "last", "--fail-on", "insufficient", code=1)
    said = prony("compare", first, "last", "--markdown", "--html", tmp_path / "page.html")
    assert said.stdout.startswith("### ")
    assert "<!doctype html>" in (tmp_path / "page.html").read_text()


def test_engines_of_one_experiment_are_compared_only_where_one_asks_for_it() -> None:
    first = json.loads(prony("list", "--json").stdout)[-1]["id"]
    refused = prony("compare", f"{first}-001", f"{first}-002", code=2).stderr
    assert "settings: workload.engine is onnxruntime and openvino" in refused
    found = json.loads(prony("compare", first, "--across", "engine", "--anyway", "--json").stdout)
    (match,) = found["matches"]
    assert match["interleaved"]
    assert "engine was allowed to differ." in found["notes"]


def test_a_duet_runs_both_sides_in_turns_and_compares_them_pair_by_pair(home: Path) -> None:
    small = ("--set", "matrix={}", "--set", "measure.runs=20", "--set", "measure.warmup=2")
    done = subprocess.run(
        [sys.executable, "-m", "prony", "duet", str(home / "small.yaml"), *small,
         "--a", "threads=1", "--b", "threads=2", "--pairs", "8", "--json"],
        capture_output=True, text=True, check=False,
    )  # fmt: skip
    assert done.returncode in (0, 1), done.stderr  # whether two threads are worse is for the machine to say
    found = json.loads(done.stdout)
    (match,) = found["matches"]
    assert match["interleaved"]
    assert {one["path"] for one in match["differences"] if one["kind"] == "settings"} >= {"workload.threads"}
    assert found["terms"]["across"] == ["workload.threads"]
    again = json.loads(prony("compare", match["baseline"]["experiment_id"], "--json", "--fail-on", "never").stdout)
    assert again["matches"] == found["matches"]


def test_a_duet_of_which_a_gate_fails_shows_its_comparison_too(home: Path) -> None:
    small = ("--set", "matrix={}", "--set", "measure.runs=20", "--set", "measure.warmup=2", "--pairs", "5")
    grades = ["verdict == valid", "verdict == void"]  # one of them fails, however busy the machine is
    gated = (*small, "--set", f"gates={grades}", "--a", "threads=1", "--b", "threads=2", "--no-report")
    done = prony("duet", home / "small.yaml", *gated, code=1)
    assert re.search(r"Gates: \d failed", done.stderr)
    assert "side b: threads=2 against side a: threads=1" in done.stdout
    found = json.loads(prony("duet", home / "small.yaml", *gated[:-1], "--json", code=1).stdout)
    assert found["matches"][0]["interleaved"]


def test_a_duet_of_which_a_side_fails_says_why_it_compares_nothing(
    faulty: Callable[[str], Path], tmp_path: Path
) -> None:
    fine = faulty("check:fine").rename(tmp_path / "fine.faulty")
    recipe = tmp_path / "sides.yaml"
    recipe.write_text(
        f"name: sides\nworkload: {{kind: model, model: {fine}, engine: faulty}}\n"
        "measure: {runs: 20, warmup: 2, check: false}\n"
    )
    duet = ("duet", recipe, "--b", f"model={faulty('load:raise')}", "--pairs", "5")
    done = prony(*duet, "--no-report", code=1)
    assert "not compared: " in done.stderr
    told = json.loads(prony(*duet, "--json", code=1).stdout)["error"]
    assert f"not compared: {told['message']}" in done.stderr


def test_a_duet_of_one_side_says_what_to_give(home: Path) -> None:
    done = prony("duet", home / "small.yaml", code=2)
    assert "--a threads=1 --b threads=2" in done.stderr


def test_a_version_that_is_not_here_is_refused_with_the_way_to_get_it(home: Path) -> None:
    settings = ("--set", "matrix={}", "--set", "workload.engine_version=0.0.1")
    done = prony("run", home / "small.yaml", *settings, "--no-report", code=1)
    assert "prony engines add onnxruntime --version 0.0.1" in done.stdout
