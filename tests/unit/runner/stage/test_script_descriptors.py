"""Benchmark AI descriptors as they run here, and what went wrong where they came from."""

from __future__ import annotations

import sys

import pytest

from prony.errors import RecipeError
from prony.kinds.script.summary import summarise_script as summarise
from prony.model.result import ResultState
from prony.recipe import loads
from prony.store.folder import read_folder

from .staged_runs import Runs, why

HEAD = """
spec_version = "0.1.0"
[info]
description = "a test"
[hardware]
instance_type = "local"
strategy = "STRATEGY"
[env]
docker_image = "python:3"
"""


def descriptor(code: str = "", rest: str = "", strategy: str = "single_node") -> str:
    """Return a descriptor of a script; `code` is what stands under [ml], unless it is run plainly."""
    head = HEAD.replace("STRATEGY", strategy)
    command = code or f'benchmark_code = "{sys.executable} $(BAI_SCRIPTS_PATH)/run.py"'
    return f'{head}[ml]\n{command}\n[ml.script]\nscript = "scripts.tar"\n{rest}'


def script(runs: Runs, text: str) -> None:
    runs.write("scripts/run.py", text)


def test_a_benchmark_that_fails_is_run_once_and_not_again_in_silence(runs: Runs) -> None:
    mark = runs.base / "marks"
    script(runs, f"open({str(mark)!r}, 'a').write('x')\nraise SystemExit(3)\n")
    result = runs.run_descriptor(descriptor())
    assert (result.state, why(result).code) == (ResultState.FAILED, "script_exit")
    assert mark.read_text() == "x"


def test_emit_needs_no_output_section(runs: Runs) -> None:
    script(runs, "from benchmarkai import emit\nemit({'loss': '0.25', 'batch': 3})\n")
    result = runs.run_descriptor(descriptor())
    assert result.state is ResultState.COMPLETE, result.failure
    assert (runs.told()["loss"], runs.told()["batch"]) == ([0.25], [3])


def test_metrics_of_one_process_after_another_all_arrive(runs: Runs) -> None:
    script(runs, "from benchmarkai import emit\nimport sys\nemit({'x': int(sys.argv[1])})\n")
    code = f"benchmark_code = \"sh -c '{sys.executable} run.py 1; {sys.executable} run.py 2'\""
    assert runs.run_descriptor(descriptor(code)).state is ResultState.COMPLETE
    assert runs.told()["x"] == [1, 2]


def test_a_pattern_without_a_group_finds_the_number_in_its_match(runs: Runs) -> None:
    script(runs, "print('accuracy=0.97')\n")
    metric = "[[output.metrics]]\nname = 'accuracy'\nunits = 'share'\npattern = 'accuracy=[0-9\\.]+'\n"
    assert runs.run_descriptor(descriptor(rest=metric)).state is ResultState.COMPLETE
    assert runs.told()["accuracy"] == [0.97]


def test_patterns_look_at_both_streams_and_their_units_are_kept(runs: Runs) -> None:
    script(runs, "import sys\nsys.stderr.write('elapsed: 12.5\\n')\nprint('elapsed: 13.5')\n")
    metric = "[[output.metrics]]\nname = 'elapsed'\nunits = 'ms'\npattern = 'elapsed: ([0-9.]+)'\n"
    runs.run_descriptor(descriptor(rest=metric), "workload.reduce=max")
    assert sorted(runs.told()["elapsed"]) == [12.5, 13.5]
    kept = read_folder(runs.folder)
    assert kept.samples is not None
    summary = summarise(kept.job, kept.result, kept.samples)
    assert (summary.estimates["elapsed.p50"].value, summary.estimates["elapsed.p50"].unit) == (13.5, "ms")


def test_the_whole_output_is_kept_and_not_its_first_lines(runs: Runs) -> None:
    script(runs, "for line in range(5000): print('line', line)\n")
    runs.run_descriptor(descriptor())
    assert len(runs.log("run-0000.out").splitlines()) == 5000


def test_a_distributed_run_ends_with_the_state_of_its_ranks(runs: Runs) -> None:
    script(runs, "import os\nfrom benchmarkai import emit\nemit({'rank': os.environ['RANK']})\n")
    result = runs.run_descriptor(descriptor(strategy="horovod"))
    assert result.state is ResultState.COMPLETE, result.failure
    assert sorted(runs.told()["rank"]) == [0, 1]
    script(runs, "import os, time\nif os.environ['RANK'] == '1': raise SystemExit('no data for me')\ntime.sleep(600)\n")
    result = runs.run_descriptor(descriptor(strategy="horovod"))
    assert (result.state, why(result).code) == (ResultState.FAILED, "script_exit")
    assert "rank 1 of 2" in why(result).message
    assert "no data for me" in why(result).detail


def test_the_code_of_a_distributed_run_is_shell_and_its_arguments_are_words_of_their_own(runs: Runs) -> None:
    script(runs, "import sys\nfrom benchmarkai import emit\nemit({'words': len(sys.argv)})\n")
    code = f'benchmark_code = """\n#!/bin/sh\nset -e\n{sys.executable} run.py"""\nargs = "a b"'
    result = runs.run_descriptor(descriptor(code, strategy="horovod"))
    assert result.state is ResultState.COMPLETE, result.failure
    assert runs.told()["words"] == [3, 3]


def test_variables_are_filled_in_by_no_shell(runs: Runs) -> None:
    script(runs, "import sys\nfrom benchmarkai import emit\nemit({'n': float(sys.argv[1]), 'raw': len(sys.argv[2])})\n")
    code = f"benchmark_code = \"{sys.executable} run.py $(N) '${{N}}'\""
    result = runs.run_descriptor(descriptor(code).replace("[ml]\n", 'vars = {N = "7"}\n[ml]\n'))
    assert result.state is ResultState.COMPLETE, result.failure
    assert (runs.told()["n"], runs.told()["raw"]) == ([7], [4])


def test_two_sources_for_one_path_are_refused() -> None:
    both = "[[data.sources]]\nsrc = '/a'\npath = '/data'\n[[data.sources]]\nsrc = '/b'\npath = '/data'\n"
    with pytest.raises(RecipeError, match="more than one source has the path '/data'"):
        loads(descriptor(rest=both), "toml")
