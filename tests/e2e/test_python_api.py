"""`prony.bench` and `prony.run_recipe` as a program calls them."""

from __future__ import annotations

import json
import signal
import subprocess
import sys
import time
from pathlib import Path

import pytest

import prony
from prony.api.functions import BenchOptions, parse_bench_options
from prony.api.results import ExperimentResult
from prony.cli.bench_options import request_of
from prony.errors import CapacityError, InputError
from servers.commands import call_prony
from servers.waiting import wait_for

# As little as can be measured: what these tests look at is not how fast it is.
SPIN = """
import time

def spin():
    end_ns = time.perf_counter_ns() + 2_000_000
    while time.perf_counter_ns() < end_ns:
        pass
"""
RECIPE = """
name: {name}
workload:
  kind: script
  command: ["{python}", "-c", "import prony; prony.emit({{'loss': {answer}}})"]
  metrics: [{{name: loss, better: lower}}]
measure: {{repeats: 2}}
"""


def spin() -> None:
    end_ns = time.perf_counter_ns() + 2_000_000
    while time.perf_counter_ns() < end_ns:
        pass


def write_recipe(path: Path, answer: float, name: str = "told") -> Path:
    path.write_text(RECIPE.format(name=name, python=sys.executable, answer=answer))
    return path


def run_script(path: Path, code: int = 0) -> subprocess.CompletedProcess[str]:
    done = subprocess.run([sys.executable, path], capture_output=True, text=True, check=False, cwd=path.parent)
    assert done.returncode == code, done.stdout + done.stderr
    return done


@pytest.fixture(scope="module")
def tiny(tmp_path_factory: pytest.TempPathFactory) -> ExperimentResult:
    """One small run of a model that several tests look at."""
    with pytest.MonkeyPatch.context() as patch:
        patch.setenv("PRONY_HOME", str(tmp_path_factory.mktemp("home")))
        return prony.bench(
            "zoo:tiny", unit="cpu", batch=8, runs=3, repeats=1, save=False,
            set={"measure.warmup": 0, "measure.check": False},
        )  # fmt: skip


def test_a_model_is_measured_as_by_the_command(tiny: ExperimentResult) -> None:
    assert len(tiny.data.entries) == 1
    assert tiny.data.experiment.recipe.workload.model_dump()["batch_size"] == 8
    assert tiny.estimate().value == tiny.estimate("inference_ms.p50").value > 0
    whats = [one.what for one in tiny.assumptions]
    assert not any(what.startswith(("unit", "batch")) for what in whats)
    assert any(what.startswith("engine") for what in whats)


def test_a_result_shows_itself_as_text_and_in_a_notebook(tiny: ExperimentResult) -> None:
    assert "tiny" in repr(tiny)
    assert "assumed: engine" in repr(tiny)
    assert "<table" in tiny._repr_html_()
    assert "<svg" in tiny._repr_html_()


def test_samples_are_a_frame_of_polars_or_of_pandas(tiny: ExperimentResult) -> None:
    frame = tiny.frame()
    assert set(frame.filter(frame["phase"] == "measure").group_by("repetition").len()["len"]) == {3}
    assert set(frame["job"]) == {"tiny"}
    try:
        import pandas as pd
    except ModuleNotFoundError:
        with pytest.raises(CapacityError, match="pandas is not installed"):
            tiny.frame("pandas")
    else:
        assert isinstance(tiny.frame("pandas"), pd.DataFrame)
    with pytest.raises(InputError, match="unknown library 'arrow'"):
        tiny.frame("arrow")  # type: ignore[arg-type]


def test_what_was_not_kept_says_so(tiny: ExperimentResult, tmp_path: Path) -> None:
    assert not tiny.is_kept
    with pytest.raises(InputError, match="was not kept"):
        tiny.report(tmp_path / "x.html")
    assert json.loads(call_prony("list", "--json").stdout) == []


def test_keywords_mean_what_the_options_of_the_command_mean() -> None:
    given = parse_bench_options(
        ["m.onnx"],
        {"engines": ["onnxruntime", "openvino"], "batch": [1, 8], "threads": 2, "shape": {"x": (1, 3)}, "time": 1.5},
    )
    request = request_of(given)
    assert vars(request) == vars(request) | {
        "models": ("m.onnx",), "engines": ("onnxruntime", "openvino"), "batch_sizes": (1, 8), "threads": (2,),
        "shapes": {"x": (1, 3)}, "time_ns": 1_500_000_000,
    }  # fmt: skip
    known = vars(parse_bench_options([], {}))
    assert BenchOptions.__annotations__.keys() - known.keys() == set()


@pytest.mark.parametrize(
    ("keywords", "message"),
    [
        ({"batch": "many"}, "'many' is not a whole number"),
        ({"precision": "fp7"}, "invalid choice: 'fp7'"),
        ({"processes": 3}, "processes= is for functions"),
        ({"command": "true"}, "both a model and a command were given"),
    ],
)
def test_a_wrong_value_is_told_with_a_hint(keywords: dict[str, object], message: str) -> None:
    with pytest.raises(InputError, match=message) as caught:
        prony.bench("zoo:tiny", **keywords)  # type: ignore[call-overload]
    assert caught.value.__notes__[0].startswith("hint: ")


def test_a_keyword_that_no_option_has_is_a_type_error() -> None:
    with pytest.raises(TypeError, match="unexpected keyword argument 'bach'"):
        prony.bench("zoo:tiny", bach=8)  # type: ignore[call-overload]


def test_a_recipe_is_run_kept_reported_and_compared(tmp_path: Path) -> None:
    first = prony.run_recipe(write_recipe(tmp_path / "a.yaml", 10.0), set={"measure.repeats": 5})
    second = prony.run_recipe(write_recipe(tmp_path / "b.yaml", 20.0), set={"measure.repeats": 5})
    assert [one.estimate().value for one in (first, second)] == [10.0, 20.0]
    assert json.loads(call_prony("show", first.id, "--json").stdout)["experiment"]["id"] == first.id
    with pytest.raises(InputError, match=r"not comparable: settings: workload\.command"):
        second.compare(first)
    found = second.compare(first, across=["workload.command"])
    assert found.conclusion == "regression"
    assert "+100 %" in found.sentence + repr(found)
    assert found.has_regressed
    assert "<pre>" in found._repr_html_()
    better = first.compare(second.id, across=["workload.command"])
    assert better.conclusion == "improvement"
    assert not better.has_regressed
    written = second.report(tmp_path / "deep" / "report.md")
    assert "loss" in written.read_text()
    with pytest.raises(InputError, match="unknown format"):
        second.report(tmp_path / "report.docx")


def test_a_function_is_measured_in_this_process_and_nothing_is_kept() -> None:
    found = prony.bench(spin, runs=20, time=60)
    assert min(found.samples_ms) >= 2.0
    assert found.p50.value >= 2.0
    assert "One process only" in repr(found)
    assert json.loads(call_prony("list", "--json").stdout) == []


def test_a_function_is_measured_in_fresh_processes_as_an_experiment(tmp_path: Path) -> None:
    """The function stands in the script itself, which no process may run a second time."""
    script = tmp_path / "speed.py"
    script.write_text(f"""{SPIN}
import json, os, prony
print("begun")
if __name__ == "__main__":
    found = prony.bench(spin, processes=2, time=0.02)
    rows = found.frame()
    print(json.dumps({{"id": found.id, "ms": found.estimate().value, "runs": len(set(rows["repetition"]))}}))
""")
    begun, told = run_script(script).stdout.splitlines()
    report = json.loads(told)
    assert begun == "begun"
    assert report["ms"] >= 2.0
    assert report["runs"] == 2
    shown = json.loads(call_prony("show", report["id"], "--json").stdout)
    assert shown["experiment"]["name"] == "speed.py.spin"


@pytest.mark.slow
def test_a_script_that_begins_again_in_each_process_is_told_how_to_write_it(tmp_path: Path) -> None:
    script = tmp_path / "speed.py"
    script.write_text(f"{SPIN}\nimport prony\nprint(prony.bench(spin, processes=2, time=0.02))\n")
    assert "failed" in run_script(script).stdout
    assert "call prony.bench below: if __name__" in call_prony("logs", "last").stdout


@pytest.mark.slow
def test_ctrl_c_ends_the_program_and_keeps_what_was_measured(tmp_path: Path) -> None:
    """The second execution never ends by itself, so it is running when it is stopped."""
    script, begun = tmp_path / "stopped.py", tmp_path / "begun"
    command = f"sh -c 'if mkdir {tmp_path}/first; then exit 0; fi; echo > {begun}; exec sleep 600'"
    script.write_text(f"import prony\nprint('went on', prony.bench(command={command!r}, runs=3))\n")
    with subprocess.Popen(
        [sys.executable, script], stdout=subprocess.PIPE, stderr=subprocess.PIPE, text=True
    ) as process:
        try:
            wait_for(begun.exists, "the second execution")
            process.send_signal(signal.SIGINT)
            said, wrong = process.communicate(timeout=120)
        finally:
            process.kill()
    assert "KeyboardInterrupt: stopped early; completed measurements are kept: prony show" in wrong
    assert "went on" not in said
    (kept,) = json.loads(call_prony("list", "--json").stdout)
    assert kept["state"] == "partial"


@pytest.mark.parametrize("function", [lambda: 1, sum([1]).__add__])
def test_a_function_that_no_other_process_can_import_is_refused(function: object) -> None:
    with pytest.raises(InputError, match="cannot be imported by another process") as caught:
        prony.bench(function, processes=2)  # type: ignore[call-overload]
    assert "top level of a module" in caught.value.hint


def test_options_of_models_are_refused_of_a_function() -> None:
    with pytest.raises(InputError, match="of a function does not take engine="):
        prony.bench(spin, engine="onnxruntime")


def test_a_script_that_prony_runs_has_the_timer_too(tmp_path: Path) -> None:
    (tmp_path / "x.py").write_text(
        "import prony\nwith prony.timer('block'):\n    pass\nprony.emit({'runs': prony.timer.summary()[0].runs})\n"
    )
    found = prony.bench(command=f"{sys.executable} {tmp_path / 'x.py'}", runs=1)
    assert found.estimate("runs.p50").value == 1


def test_importing_prony_and_timing_a_block_imports_nothing_slow() -> None:
    program = "import sys, prony\nwith prony.timer('x'): pass\nprint(*sorted(sys.modules))"
    done = subprocess.run([sys.executable, "-c", program], capture_output=True, text=True, check=True)
    slow = {"numpy", "pydantic", "sqlalchemy", "rich", "polars", "scipy", "matplotlib", "httpx", "yaml", "argparse"}
    assert slow & set(done.stdout.split()) == set()
