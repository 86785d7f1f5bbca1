"""What a person reads when a recipe is wrong, and what comes of one that is right."""

# ruff: noqa: E501 (a table of messages reads best with one message a line)

from __future__ import annotations

from pathlib import Path

import pytest

from prony.errors import InputError, NotFoundError, RecipeError, exit_code
from prony.kinds.model.schema import ModelWorkload
from prony.recipe import load, loads
from prony.recipe.formats import format_of
from prony.recipe.problems import OPTIONS

GOOD = """\
name: a
workload:
  kind: model
  model: zoo:tiny
  engine: onnxruntime
"""


def refusal(text: str, *overrides: str) -> RecipeError:
    with pytest.raises(RecipeError) as caught:
        loads(text, name="r.yaml", overrides=overrides)
    return caught.value


def test_a_small_recipe_loads_with_defaults_and_keeps_its_text(tmp_path: Path) -> None:
    path = tmp_path / "r.yaml"
    path.write_text(GOOD)
    loaded = load(path)
    assert loaded.recipe.work(ModelWorkload).model == "zoo:tiny"
    assert loaded.recipe.measure.repeats == 5
    assert (loaded.text, loaded.path) == (GOOD, path)
    assert loaded.document["workload"]["engine"] == "onnxruntime"


@pytest.mark.parametrize(
    ("line", "message", "hint"),
    [
        ("  bach_size: 8", "workload.bach_size: unknown key", "did you mean batch_size?"),
        ("  runs: 8", "workload.runs: unknown key", "it belongs in measure: measure.runs"),
        ("  batch_size: '8'", "workload.batch_size: must be a whole number, 1 or more, not '8'", "remove the quotes"),
        ("  batch_size: 1e1", "workload.batch_size: must be a whole number, 1 or more, not 10.0", "write 10"),
        ("  batch_size: 0", "workload.batch_size: must be a whole number, 1 or more, not 0", ""),
        ("  batch_size: true", "workload.batch_size: must be a whole number, 1 or more, not true", ""),
        (
            "  precision: FP16",
            "workload.precision: must be one of default, fp32, fp16, bf16, int8, not 'FP16'",
            "did you mean fp16?",
        ),
        ("  unit: 7", "workload.unit: must be text that is not empty, not 7", "put it in quotes"),
        ("  inputs: 7", "workload.inputs: must be a map, not 7", ""),
        ("  options: {a: [1]}", "workload.options.a: must be text, a number or true or false, not a list", ""),
        ("  inputs: {axes: {n: -1}}", "workload.inputs.axes.n: must be a whole number, 0 or more, not -1", ""),
        ("  inputs: {values: {x: {low: 1}}}", "workload.inputs.values.x: set both low and high, or neither", ""),
        (
            "  inputs: {values: {x: {constant: 1, file: a.npy}}}",
            "workload.inputs.values.x: choose exactly one of constant, low with high, and file",
            "",
        ),
        ("  inputs: {values: {x: {constant: .nan}}}", "workload.inputs.values.x.constant: must be a finite number, not nan", "write it as text, in quotes"),
        ("  options: {a: 99999999999999999999}", "workload.options.a: is a whole number beyond 64 bits", "write it as text, in quotes"),
        (
            "  checksum: md5:0",
            "workload.checksum: must be sha256: and the 64 hexadecimal digits of the model file, not 'md5:0'",
            "",
        ),
    ],
)  # fmt: skip
def test_a_mistake_in_the_workload_is_told_with_its_line_and_what_to_do(line: str, message: str, hint: str) -> None:
    error = refusal(GOOD + line + "\n")
    assert error.message == f"r.yaml:6: {message}"
    assert hint in error.hint
    assert bool(error.hint) == bool(hint) or "checksum" in line


@pytest.mark.parametrize(
    ("section", "message"),
    [
        ("measure: {max_time: 60}", "measure.max_time: a duration needs a unit (ns, us, ms, s, m, h, d): write 60s, not 60"),
        ("limits: {memory: 512}", "limits.memory: a size needs a unit (B, KB, MB, GB, TB, KiB, MiB, GiB, TiB): write 512MiB, not 512"),
        ("measure: {until: {ci: 0.02}}", "measure.until.ci: a share is a percentage: write 2%, not 0.02"),
        ("measure: {until: {ci: 100%}}", "measure.until.ci: a share lies between 0% and 100%, both excluded: not 100%"),
        ("measure: {max_time: 10 sec}", "measure.max_time: a duration needs a unit (ns, us, ms, s, m, h, d): write 10s, not 10 sec"),
        ("measure: {max_time: 10 min}", "measure.max_time: a duration needs a unit (ns, us, ms, s, m, h, d): write 60s, not 10 min"),
        ("limits: {memory: 8 gb}", "limits.memory: a size needs a unit (B, KB, MB, GB, TB, KiB, MiB, GiB, TiB): write 60MiB, not 8 gb"),
        ("measure: {max_time: 10:00:00}", "measure.max_time: a duration needs a unit (ns, us, ms, s, m, h, d): write 60s, not 10:00:00"),
        ("measure: {repeats: 8, until: {ci: 2%, max_repeats: 6}}", "measure: until.max_repeats (6) is less than repeats (8)"),
        ("measure: {warmup: -1}", "measure.warmup: must be auto or a whole number, 0 or more, not -1"),
        ("measure: {check: yes}", "measure.check: must be true or false, not 'yes'"),
        ("measure:", "measure: must be a map, not empty"),
        ("labels: {build: 7}", "labels.build: must be text, not 7"),
        ("matrix: {workload.threads: 7}", "matrix.workload.threads: must be a list with at least one value, not 7"),
        ("matrix: {workload.threads: []}", "matrix.workload.threads: must be a list with at least one value, not an empty list"),
        ("matrix: {workload.threads: [[1]]}", "matrix.workload.threads[0]: must be text, a number or true or false, not a list"),
    ],
)  # fmt: skip
def test_a_mistake_elsewhere_is_told_in_a_sentence(section: str, message: str) -> None:
    assert refusal(GOOD + section).message == f"r.yaml:6: {message}"


@pytest.mark.parametrize(
    ("section", "hint"),
    [
        ("matrix: {batch: [1, 2]}", "did you mean workload.batch or workload.batch_size?"),
        ("load: {closed: {users: 4}}", "known here: concurrency,"),
        ("gates: [p50 <= 20]", "did you mean inference_ms.p50 or e2e_ms.p50?"),
        ("\tmeasure: {repeats: 1}", "indent with spaces, never with tabs"),
        ("gates: [inference_ms.p50 <= 20", "check the brackets"),
    ],
)
def test_a_common_mistake_is_told_with_what_to_write(section: str, hint: str) -> None:
    error = refusal(GOOD + section)
    assert hint in error.message + error.hint


def test_a_number_that_must_be_positive_says_so_and_options_have_no_lines() -> None:
    text = '{"name": "a", "workload": {"kind": "service", "endpoint": "http://h/"}, "load": {"open": {"rate": -3}}}'
    with pytest.raises(RecipeError) as caught:
        loads(text, "json", OPTIONS)
    assert "the options: load.open.rate: must be a number, more than 0, not -3" in caught.value.message


def test_a_model_in_place_of_a_recipe_names_the_command_that_takes_it() -> None:
    with pytest.raises(InputError) as caught:
        format_of(Path("model.onnx"))
    assert "prony bench model.onnx" in caught.value.hint


def test_a_missing_kind_says_what_to_write() -> None:
    error = refusal("name: a\nworkload: {model: m, engine: e}\n")
    assert error.message == "r.yaml:2: workload.kind: is missing: which kind of workload this is"
    assert error.hint == "for example kind: model"


def test_an_unknown_kind_names_the_known_ones() -> None:
    error = refusal("name: a\nworkload: {kind: quantum, model: m, engine: e}\n")
    assert error.message == "r.yaml:2: workload.kind: no kind of workload is called 'quantum'"
    assert error.hint == "known: model"


def test_a_missing_engine_says_what_it_is() -> None:
    error = refusal("name: a\nworkload: {kind: model, model: m}\n")
    assert error.message.startswith("r.yaml:2: workload.engine: is missing: the engine that runs the model")
    assert error.hint == "for example engine: onnxruntime"


def test_what_the_matrix_supplies_is_not_missing() -> None:
    loaded = loads("name: a\nworkload: {kind: model}\nmatrix: {workload.model: [m, n], workload.engine: [e]}\n")
    assert [job.work(ModelWorkload).model for job in loaded.jobs("x")] == ["m", "n"]


def test_a_misspelt_key_is_not_told_a_second_time_as_missing() -> None:
    error = refusal("name: a\nworkload: {kind: model, model: m, engin: e}\n")
    assert [problem["path"] for problem in error.problems] == ["workload.engin"]


def test_every_problem_is_told_at_once_in_the_order_of_the_text() -> None:
    text = "name: a b\nworkload:\n  kind: model\n  model: m\n  engine: e\n  bach_size: 1\nmatrix: {workload.thread: [1]}\nmeasur: {}\n"
    error = refusal(text, "measure.runs=none")
    assert error.message.splitlines()[0].startswith("r.yaml:1: name: must be text like yolo-here, not 'a b'")
    assert [(problem["line"], problem["column"], problem["path"]) for problem in error.problems] == [
        (1, 1, "name"),
        (6, 3, "workload.bach_size"),
        (7, 10, "matrix.workload.thread"),
        (8, 1, "measur"),
        (None, None, "measure.runs"),
    ]


def test_the_error_is_one_of_input_with_problems_for_programs() -> None:
    error = refusal(GOOD + "  bach_size: 8\n")
    assert exit_code(error) == 2
    assert error.to_dict() == {
        "code": "recipe",
        "message": "r.yaml:6: workload.bach_size: unknown key",
        "hint": "did you mean batch_size?",
        "problems": [
            {
                "path": "workload.bach_size",
                "message": "unknown key",
                "hint": "did you mean batch_size?",
                "source": "r.yaml",
                "line": 6,
                "column": 3,
            }
        ],
    }


def test_many_problems_are_cut_in_the_message_and_whole_in_the_list() -> None:
    text = GOOD + "labels:\n" + "".join(f"  a{n}: {n}\n" for n in range(100))
    error = refusal(text)
    assert error.message.endswith("and 60 more problems")
    assert len(error.problems) == 100


@pytest.mark.parametrize("text", ["", "# nothing\n", "---\n"])
def test_an_empty_recipe_is_called_empty(text: str) -> None:
    assert refusal(text).message == "r.yaml: is empty"


def test_a_list_is_no_recipe() -> None:
    assert refusal("- a\n").message == "r.yaml: is not a map of keys and values"


def test_a_giant_is_refused_before_it_is_parsed(tmp_path: Path) -> None:
    path = tmp_path / "r.yaml"
    path.write_text("a" * (2**20 + 1))
    with pytest.raises(RecipeError, match="the most is 1 MiB"):
        load(path)


def test_a_nest_is_refused_in_every_format() -> None:
    with pytest.raises(RecipeError, match="nested too deeply"):
        loads('{"a":' + "[" * 100 + "]" * 100 + "}", "json")
    with pytest.raises(RecipeError, match="nested too deeply"):
        loads("a = " + "[" * 100 + "]" * 100, "toml")


def test_a_missing_file_names_the_one_beside_it(tmp_path: Path) -> None:
    (tmp_path / "quickstart.yaml").write_text(GOOD)
    with pytest.raises(NotFoundError, match="no recipe at") as caught:
        load(tmp_path / "quikstart.yaml")
    assert caught.value.hint.endswith("quickstart.yaml?")


def test_a_folder_and_a_file_that_is_no_text_are_input_errors(tmp_path: Path) -> None:
    (tmp_path / "folder.yaml").mkdir()
    with pytest.raises(InputError, match="cannot be read"):
        load(tmp_path / "folder.yaml")
    (tmp_path / "bytes.yaml").write_bytes(b"\xff\xfe\x00")
    with pytest.raises(InputError, match="not text in UTF-8"):
        load(tmp_path / "bytes.yaml")


def test_an_unknown_suffix_says_which_are_known(tmp_path: Path) -> None:
    with pytest.raises(InputError) as caught:
        load(tmp_path / "recipe.txt")
    assert ".yaml" in caught.value.hint


def test_a_byte_order_mark_does_no_harm(tmp_path: Path) -> None:
    path = tmp_path / "r.json"
    path.write_text('\ufeff{"name": "a", "workload": {"kind": "model", "model": "m", "engine": "e"}}')
    assert load(path).recipe.name == "a"


def test_an_unknown_format_names_the_known_ones() -> None:
    with pytest.raises(InputError) as caught:
        loads(GOOD, "xml")  # type: ignore[arg-type]
    assert caught.value.hint == "one of json, toml, yaml"


@pytest.mark.parametrize(
    ("name", "told"),
    [("train.py", "prony bench --command 'python train.py'"), ("run.sh", "prony bench --command 'sh run.sh'")],
)
def test_a_script_in_place_of_a_recipe_is_told_how_it_runs(name: str, told: str) -> None:
    with pytest.raises(InputError) as caught:
        format_of(Path(name))
    assert told in caught.value.hint


def test_both_ends_of_an_open_range_are_told() -> None:
    error = refusal("name: a\nworkload: {kind: service, endpoint: 'http://h/'}\nload: {search: {precision: 1.5}}\n")
    assert "must be a number, more than 0 and less than 1, not 1.5" in error.message
