"""What is imported is bound by the limits of what is submitted."""

from __future__ import annotations

from datetime import UTC, datetime
from pathlib import Path

import pytest

from prony.cli.main import main
from prony.model.experiment import Experiment, ExperimentState
from prony.recipe import loads

GOOD = {
    "yaml": 'name: small\nworkload: {kind: model, model: "zoo:noop", engine: "null"}\n',
    "toml": '# a comment\n\nname = "small"\n[workload]\nkind = "model"\nmodel = "zoo:noop"\nengine = "null"\n',
    "json": '{"name": "small", "workload": {"kind": "model", "model": "zoo:noop", "engine": "null"}}',
}
BAD = {
    "deep toml": (".".join(["a"] * 250_000) + " = 1", "is nested too deeply"),
    "deep yaml": ("a: " + "[" * 250_000, "is nested too deeply"),
    "full yaml": ("".join(f"a{n}: 1\n" for n in range(60_000)), "holds too many values"),
    "large": ("a: " + "x" * 2**20, "is too large for a recipe"),
}
AT = datetime(2026, 1, 1, tzinfo=UTC)


def write_export(folder: Path, text: str) -> Path:
    """Write what another program might hand on as an export."""
    made = Experiment(
        id="abc123def", name="small", recipe=loads(GOOD["yaml"]).recipe, recipe_text=text,
        state=ExperimentState.COMPLETE, created_at=AT, ended_at=AT, job_count=0,
    )  # fmt: skip
    folder.mkdir()
    (folder / "experiment.json").write_text(made.model_dump_json())
    return folder


@pytest.mark.parametrize("what", list(BAD))
def test_an_import_whose_recipe_is_over_a_limit_is_refused(
    what: str, tmp_path: Path, capsys: pytest.CaptureFixture[str]
) -> None:
    text, reason = BAD[what]
    folder = write_export(tmp_path / "bad", text)
    assert main(["import", str(folder)]) == 2
    said = capsys.readouterr().err
    assert reason in said
    assert str(folder / "experiment.json") in said
    assert main(["list", "--json"]) == 0
    assert capsys.readouterr().out.strip() == "[]"


@pytest.mark.parametrize("form", list(GOOD))
def test_a_recipe_keeps_its_format_through_import_and_export(form: str, tmp_path: Path) -> None:
    assert main(["import", str(write_export(tmp_path / "in", GOOD[form]))]) == 0
    assert main(["export", "abc123def", "--to", str(tmp_path / "out")]) == 0
    name = "recipe.toml" if form == "toml" else "recipe.yaml"
    assert (tmp_path / "out" / name).read_text() == GOOD[form]
