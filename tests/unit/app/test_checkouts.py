"""One recipe with the files of two checkouts."""

from __future__ import annotations

from pathlib import Path

import pytest

from prony.app.checkouts import checkout_sides
from prony.errors import InputError
from prony.recipe import LoadedRecipe, load


def write_recipe(folder: Path, text: str) -> LoadedRecipe:
    folder.mkdir(parents=True, exist_ok=True)
    path = folder / "recipe.yaml"
    path.write_text(f"name: x\n{text}")
    return load(path)


@pytest.fixture
def here(tmp_path: Path) -> Path:
    """A checkout beside another one."""
    (tmp_path / "here" / ".git").mkdir(parents=True)
    (tmp_path / "there" / "src").mkdir(parents=True)
    return tmp_path / "here"


def test_a_model_is_taken_from_each_checkout(here: Path) -> None:
    loaded = write_recipe(here / "speed", "workload: {kind: model, model: ../models/a.onnx, engine: onnxruntime}\n")
    there = here.parent / "there"
    assert checkout_sides(loaded, here / "speed", there) == {
        "a": {"workload.model": str(there / "models/a.onnx")},
        "b": {"workload.model": str(here / "models/a.onnx")},
    }


def test_a_script_imports_the_code_of_its_own_checkout(here: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setenv("PYTHONPATH", "/elsewhere")
    # A program of the checkout is no file that is measured: both sides have the same.
    command = f'"{here}/.venv/bin/python bench.py"'
    loaded = write_recipe(here / "speed", f"workload: {{kind: script, directory: ., command: {command}}}\n")
    there = here.parent / "there"
    assert checkout_sides(loaded, here / "speed", there) == {
        "a": {
            "workload.directory": str(there / "speed"),
            "workload.environment.PYTHONPATH": f"{there}:{there / 'src'}:/elsewhere",
        },
        "b": {"workload.directory": str(here / "speed"), "workload.environment.PYTHONPATH": f"{here}:/elsewhere"},
    }


@pytest.mark.parametrize(
    ("workload", "other", "message"),
    [
        ("{kind: model, model: 'zoo:tiny', engine: onnxruntime}", "there", "uses no file of this checkout"),
        ("{kind: model, model: a.onnx, engine: onnxruntime}", "nowhere", "is not a folder"),
        ("{kind: model, model: a.onnx, engine: onnxruntime}", "here", "is this checkout itself"),
        (
            "{kind: model, engine: onnxruntime}\nmatrix: {workload.model: [a.onnx, b.onnx]}", "there",
            "the matrix varies files",
        ),
    ],
)  # fmt: skip
def test_what_cannot_be_compared_is_refused(here: Path, workload: str, other: str, message: str) -> None:
    loaded = write_recipe(here, f"workload: {workload}\n")
    with pytest.raises(InputError, match=message) as caught:
        checkout_sides(loaded, here, here.parent / other)
    assert caught.value.hint
