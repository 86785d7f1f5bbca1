"""The last lines of a run: what is kept, and where to read more."""

from __future__ import annotations

from pathlib import Path

import pytest
from report import experiments

from prony.cli.arguments import RunOutput
from prony.cli.finish_run import finish


@pytest.mark.parametrize(("is_kept", "is_said"), [(False, True), (True, False)])
def test_a_failed_run_that_is_not_kept_says_that_it_has_no_log(
    tmp_path: Path, capsys: pytest.CaptureFixture[str], *, is_kept: bool, is_said: bool
) -> None:
    data = experiments.partial_experiment(tmp_path)
    done = data.model_copy(update={"experiment": data.experiment.model_copy(update={"state": "failed"})})
    finish(done, RunOutput(is_kept=is_kept), write_report=lambda _: tmp_path)
    assert ("repeat the command without --no-save" in capsys.readouterr().err) == is_said
