"""Scripts that are really executed: how often, where, what is found of what they tell, and how each of them ends."""

from __future__ import annotations

import json
import signal
import subprocess
import sys
import time
from pathlib import Path
from typing import Any

import polars as pl
import pytest

from prony.app import pictures
from prony.app.pictures import picture_distribution
from prony.app.results import summary_of
from prony.errors import InputError
from prony.model.event import Event
from prony.model.experiment_data import Entry
from prony.model.result import ResultState
from servers.process import wait_gone

from .script_jobs import executed, job_of, samples, values

TELLS = """
import json, sys, prony
from benchmarkai import emit
prony.emit({"loss": 0.5}, step=1, unit="nat", labels={"split": "test"}, timestamp=1000.0)
emit({"accuracy": "0.9"})
print(json.dumps({"rate": 12.5, "word": "fast"}))
print('{"metrics": {"rate": 13.5}, "step": 2, "unit": "1/s"}')
print("epoch 3 took 0.25 s", file=sys.stderr)
print("a line of text { that is no JSON")
"""


def test_everything_that_is_told_is_kept_with_its_unit_step_labels_and_time(tmp_path: Path) -> None:
    job = job_of(tmp_path, TELLS, metrics=[{"name": "took", "pattern": r"took ([0-9.]+) s", "unit": "s"}])
    done = executed(job, tmp_path / "out")
    told = samples(done).filter(pl.col("origin") != "prony").sort("name", "step", nulls_last=True)
    assert told.select("name", "value", "unit", "step", "labels", "timestamp", "origin").rows() == [
        ("accuracy", 0.9, None, None, "", pytest.approx(time.time(), abs=300), "benchmarkai"),
        ("loss", 0.5, "nat", 1.0, '{"split":"test"}', 1000.0, "emit"),
        ("rate", 13.5, "1/s", 2.0, "", None, "json"),
        ("rate", 12.5, None, None, "", None, "json"),
        ("took", 0.25, "s", None, "", None, "pattern"),
    ]
    (repetition,) = done.result.repetitions
    assert [(one.name, one.reason) for one in repetition.refused] == [("word", "is text")]
    assert values(done, "wall_s")[0] > 0
    assert (done.path / "logs" / "run-0000.err").read_text() == "epoch 3 took 0.25 s\n"


def test_a_script_that_spins_uses_a_core_and_one_that_sleeps_does_not(tmp_path: Path) -> None:
    """How long it waits for a core is the machine's affair: what holds is CPU time by wall time."""
    spin = "import time\nend = time.process_time() + 0.4\nwhile time.process_time() < end: pass\n"
    found = {}
    for name, text in {"spin": spin, "sleep": "import time; time.sleep(0.4)\n"}.items():
        (tmp_path / name).mkdir()
        done = executed(job_of(tmp_path / name, text), tmp_path / name / "out")
        found[name] = {key: one.value for key, one in summary_of(done.path).estimates.items()}
    spun = found["spin"]
    assert spun["cpu_percent.p50"] == pytest.approx(100 * spun["cpu_s.p50"] / spun["wall_s.p50"])
    assert spun["cpu_s.p50"] >= 0.4
    assert spun["cpu_percent.p50"] > found["sleep"]["cpu_percent.p50"]
    assert spun["machine_cpu_percent.p50"] > 0


def test_each_run_is_a_whole_execution_in_a_fresh_copy_and_warm_ups_do_not_count(tmp_path: Path) -> None:
    text = "import os, prony\nprony.emit({'files': len(os.listdir('.'))})\nopen('left', 'w').close()\n"
    done = executed(job_of(tmp_path, text, {"repeats": 3, "warmup": 2}), tmp_path / "out")
    kinds = [one.kind for one in done.result.repetitions]
    summary = summary_of(done.path)
    assert done.result.state is ResultState.COMPLETE
    assert kinds == ["warmup", "warmup", "measure", "measure", "measure"]
    assert values(done, "files") == [1.0] * 5
    assert summary.used == (2, 3, 4)
    assert summary.runs["files.p50"] == (1.0, 1.0, 1.0)
    assert summary.excluded == {0: "warm-up", 1: "warm-up"}
    assert summary.headline == "files.p50"
    assert [path.name for path in (tmp_path / "scripts").iterdir()] == ["script.py"]
    assert done.environment.checksums["directory"].startswith("sha256:")


def test_a_script_that_fails_is_a_result_with_its_last_words_and_what_it_told(tmp_path: Path) -> None:
    text = "import prony, sys\nprony.emit({'loss': 1.5})\nprint('last', 'words', file=sys.stderr)\nsys.exit(3)"
    done = executed(job_of(tmp_path, text, {"repeats": 5}), tmp_path / "out")
    failure = done.result.failure
    assert failure is not None
    assert done.result.state is ResultState.FAILED
    assert [one.state for one in done.result.repetitions] == ["failed", "failed"]  # the third would say the same
    assert (failure.code, failure.message, failure.detail) == (
        "script_exit", "the script ended with exit code 3; its last output: last words", "last words",
    )  # fmt: skip
    assert values(done, "loss") == [1.5, 1.5]
    assert summary_of(done.path).estimates == {}


def test_a_crash_keeps_what_was_emitted_and_names_the_signal(tmp_path: Path) -> None:
    text = "import os, prony\nprony.emit({'loss': 1.5})\nos.kill(os.getpid(), 11)"
    done = executed(job_of(tmp_path, text), tmp_path / "out")
    (repetition,) = done.result.repetitions
    assert repetition.failure is not None
    assert (repetition.failure.code, repetition.failure.signal) == ("script_signal", "SIGSEGV")
    assert values(done, "loss") == [1.5]


def test_a_time_limit_ends_it_with_all_that_it_started(tmp_path: Path) -> None:
    text = (
        "import subprocess, sys, prony\n"
        "child = subprocess.Popen([sys.executable, '-c', 'import time; time.sleep(600)'], start_new_session=True)\n"
        "prony.emit({'pid': child.pid})\nchild.wait()\n"
    )
    done = executed(job_of(tmp_path, text, limits={"timeout": "10s"}), tmp_path / "out")
    (repetition,) = done.result.repetitions
    assert repetition.failure is not None
    assert repetition.failure.code == "timeout"
    assert wait_gone(int(values(done, "pid")[0]))


def test_a_memory_limit_ends_it(tmp_path: Path) -> None:
    text = "import time\nheld = bytearray(200 * 2**20)\ntime.sleep(600)"
    done = executed(job_of(tmp_path, text, limits={"memory": "100MiB"}), tmp_path / "out")
    (repetition,) = done.result.repetitions
    assert repetition.failure is not None
    assert repetition.failure.code == "memory_limit"


def test_processes_that_it_leaves_behind_are_ended_and_told(tmp_path: Path) -> None:
    text = (
        "import subprocess, sys, prony\n"
        "child = subprocess.Popen([sys.executable, '-c', 'import time; time.sleep(600)'], start_new_session=True)\n"
        "prony.emit({'pid': child.pid})\n"
    )
    done = executed(job_of(tmp_path, text), tmp_path / "out")
    (repetition,) = done.result.repetitions
    assert (repetition.state, repetition.strays) == ("ok", 1)
    assert wait_gone(int(values(done, "pid")[0]))
    assert "strays" in {one.code for one in summary_of(done.path).verdict.reasons}


def test_a_program_that_is_not_there_is_said_at_once(tmp_path: Path) -> None:
    done = executed(job_of(tmp_path, "", {"repeats": 5}, command="no-such-program --x"), tmp_path / "out")
    assert done.result.repetitions == ()
    assert done.result.failure is not None
    assert (done.result.failure.code, done.result.failure.whose) == ("no_script_program", "capacity")


def test_variables_are_filled_in_and_prony_keeps_its_secrets(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setenv("PRONY_TOKEN", "secret")
    text = "import json, os, sys\nprint(json.dumps([sys.argv[1:], os.environ['B'], 'PRONY_TOKEN' in os.environ]))"
    job = job_of(
        tmp_path, text, command=f'{sys.executable} script.py --x=$(A) "$(A) $(NOBODY)" $$(A)',
        environment={"A": "one", "B": "$(A)/two"},
    )  # fmt: skip
    done = executed(job, tmp_path / "out")
    told = json.loads((done.path / "logs" / "run-0000.out").read_text())
    assert told == [["--x=one", "one $(NOBODY)", "$(A)"], "one/two", False]


@pytest.mark.slow
def test_it_goes_on_until_the_interval_is_tight_enough(tmp_path: Path) -> None:
    text = "import prony\nprony.emit({'level': 5.0})"
    done = executed(job_of(tmp_path, text, {"repeats": 2, "until": {"ci": "2%"}}), tmp_path / "out")
    assert len(done.result.repetitions) == 10


def test_a_script_that_never_tells_what_the_recipe_names_is_suspect(tmp_path: Path) -> None:
    metrics = [{"name": "accuracy"}, {"name": "took", "pattern": "took ([0-9]+)"}]
    done = executed(job_of(tmp_path, "print('nothing')", metrics=metrics), tmp_path / "out")
    told = [one.text for one in summary_of(done.path).verdict.reasons if one.code == "untold"]
    assert told == ["accuracy is missing: the script did not report it.", "took is missing: its pattern did not match."]
    assert summary_of(done.path).headline == "wall_s.p50"


def test_a_runner_that_is_killed_takes_the_script_with_it(tmp_path: Path) -> None:
    text = "import os, time\nprint(os.getpid(), flush=True)\ntime.sleep(600)"
    job = job_of(tmp_path, text)
    (tmp_path / "job.json").write_text(job.model_dump_json())
    command = [sys.executable, "-m", "prony", "exec", str(tmp_path / "job.json"), "--out", str(tmp_path / "out")]
    runner = subprocess.Popen(command, stdout=subprocess.DEVNULL)
    log = tmp_path / "out" / "logs" / "run-0000.out"
    while not (log.exists() and log.read_text().endswith("\n")):
        assert runner.poll() is None
    script = int(log.read_text())
    runner.send_signal(signal.SIGKILL)
    runner.wait()
    assert wait_gone(script)


def test_being_stopped_keeps_what_was_told_and_says_partial(tmp_path: Path) -> None:
    text = "import prony, time\nprony.emit({'a': 1})\nprint('on', flush=True)\ntime.sleep(600)"
    job = job_of(tmp_path, text)
    (tmp_path / "job.json").write_text(job.model_dump_json())
    command = [sys.executable, "-m", "prony", "exec", str(tmp_path / "job.json"), "--out", str(tmp_path / "out")]
    runner = subprocess.Popen(command, stdout=subprocess.DEVNULL)
    log = tmp_path / "out" / "logs" / "run-0000.out"
    while not (log.exists() and log.read_text() == "on\n"):
        assert runner.poll() is None
    runner.send_signal(signal.SIGINT)
    assert runner.wait(120) == 1
    result = json.loads((tmp_path / "out" / "result.json").read_text())
    assert (result["state"], result["repetitions"][0]["state"]) == ("partial", "cancelled")
    assert pl.read_parquet(tmp_path / "out" / "samples.parquet")["name"].to_list() == ["a"]


def test_what_it_told_can_be_drawn(tmp_path: Path) -> None:
    text = "import prony\nfor n in range(4): prony.emit({'val/acc': n, 'inference_ms': 2.0 * n})"
    done = executed(job_of(tmp_path, text, {"repeats": 2}), tmp_path / "out")
    entry = Entry(
        job=done.job, result=done.result, summary=summary_of(done.path), environment=done.environment, folder=done.path
    )
    drawn, timeline = picture_distribution(entry, "inference_ms", 4), pictures.picture_timeline(entry, 10)
    assert (drawn.unit, drawn.counts, drawn.metrics[:2]) == ("ms", (2, 2, 2, 2), ("val_acc", "inference_ms"))
    assert (timeline.metric, len(timeline.runs)) == ("val_acc", 2)


def test_whoever_watches_hears_what_was_told_last(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr("prony.kinds.script.runner.script_job_run._GLANCE_S", 0.1)
    text = "import prony, time\nprony.emit({'loss': 0.25, 'rate': 12.0}, step=3)\ntime.sleep(3)"
    events: list[Event] = []
    executed(job_of(tmp_path, text), tmp_path / "out", events)
    assert [one.phase for one in events if one.kind == "phase"] == ["loss 0.25, rate 12 (step 3)"]


def test_without_a_copy_a_script_runs_in_its_folder_which_stays_as_it_left_it(tmp_path: Path) -> None:
    text = "from pathlib import Path\nprint(Path('seen').open('a').write('x'), Path.cwd())\n"
    job = job_of(tmp_path, text, {"repeats": 2}, copy_files=False)
    assert executed(job, tmp_path / "out").result.state is ResultState.COMPLETE
    assert (tmp_path / "scripts" / "seen").read_text() == "xx"
    assert (tmp_path / "scripts" / "script.py").read_text() == text


def test_a_folder_that_a_server_sent_is_never_run_in_itself(tmp_path: Path) -> None:
    job = job_of(tmp_path, "", directory=f"sha256:{'0' * 64}", copy_files=False)
    failure = executed(job, tmp_path / "out").result.failure
    assert failure is not None
    assert "came from a server" in failure.message


@pytest.mark.parametrize("more", [{"sources": [{"source": "x", "path": "y"}]}, {"image": "x"}, {"directory": None}])
def test_what_needs_a_copy_is_refused_without_one(tmp_path: Path, more: dict[str, Any]) -> None:
    with pytest.raises(InputError, match="copy_files: false"):
        job_of(tmp_path, "", copy_files=False, **more)
