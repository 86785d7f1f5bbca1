"""What every engine plug-in must do, asked of each one that is registered."""

from __future__ import annotations

import json
import os
import subprocess
import sys
from collections.abc import Mapping
from importlib.util import find_spec
from pathlib import Path
from typing import Any

import numpy as np
import pytest
from engines_models import dense, dense_onnx, dense_tflite, encoder_onnx, identity_onnx, save_onnx

from prony.errors import CapacityError, InputError, NotFoundError, PronyError
from prony.ports import plugins
from prony.ports.engine import Array, Effect, Engine, LoadOptions, Session, TensorSpec, find_unsupported_reason
from prony.ports.models import FOLDER_MARKS
from prony.runner.child.bits import from_bfloat16
from prony.runner.child.compare import compare_outputs
from prony.runner.child.inputs import make_inputs

VENDORS = {
    "onnxruntime": "onnxruntime",
    "openvino": "openvino",
    "litert": "ai_edge_litert",
    "torch": "torch",
    "coreml": "coremltools",
}
HERE = tuple(name for name in ("onnxruntime", "openvino", "litert") if find_spec(VENDORS[name]))
ENDINGS = {"onnxruntime": ".onnx", "openvino": ".onnx", "litert": ".tflite"}


def engine_of(name: str) -> Engine:
    made: Engine = plugins.load_plugin(plugins.ENGINES, name)()
    return made


def dense_model(engine: str, folder: Path, batch: int | None = None) -> str:
    if ENDINGS[engine] == ".tflite":
        return str(dense_tflite(folder / "dense.tflite", -1 if batch is None else batch))
    return str(dense_onnx(folder / "dense.onnx", "batch" if batch is None else batch))


def fed(session: Session, **given: Any) -> dict[str, Array]:
    recipe: dict[str, Any] = {"batch_size": 1, "axes": {}, "shapes": {}, "values": {}, "seed": 0} | given
    return {item.name: item.array for item in make_inputs(session.signature(), **recipe)}


def run(session: Session, inputs: Mapping[str, Array]) -> dict[str, Array]:
    call = session.bind(inputs)
    first = session.outputs(call())
    again = session.outputs(call())
    for name, array in first.items():
        np.testing.assert_array_equal(array, again[name])
    return again


@pytest.fixture(params=sorted(plugins.find_plugins(plugins.ENGINES)))
def registered(request: pytest.FixtureRequest) -> str:
    name: str = request.param
    return name


@pytest.fixture(params=HERE)
def ready(request: pytest.FixtureRequest) -> str:
    name: str = request.param
    return name


class TestEveryEngine:
    def test_says_what_it_is(self, registered: str) -> None:
        engine = engine_of(registered)
        assert isinstance(engine, Engine)
        assert engine.name == registered
        assert all(ending.startswith(".") or ending in FOLDER_MARKS for ending in engine.formats)
        assert isinstance(engine.requirements, tuple)
        assert isinstance(engine.extra, str)

    def test_says_whether_this_system_can_run_it_at_all(self, registered: str) -> None:
        reason = find_unsupported_reason(engine_of(registered))
        assert reason is None or reason.endswith(sys.platform)

    def test_core_ml_needs_macos(self) -> None:
        reason = find_unsupported_reason(engine_of("coreml"))
        assert (reason is None) == (sys.platform == "darwin")

    def test_is_imported_with_nothing_but_numpy(self, registered: str) -> None:
        module = plugins.target(plugins.ENGINES, registered).split(":", 1)[0]
        script = (
            f"import sys; import {module}; "
            "print(*{name.split('.', 1)[0] for name in sys.modules} - sys.stdlib_module_names)"
        )
        done = subprocess.run(
            [sys.executable, "-S", "-c", script], env=_bare(), capture_output=True, text=True, check=True
        )
        assert set(done.stdout.split()) - {"__main__", "__mp_main__"} == {"numpy", "prony"}


def _bare() -> dict[str, str]:
    """Return an environment that sees our packages but runs no start-up file of theirs."""
    return os.environ | {"PYTHONPATH": os.pathsep.join(path for path in sys.path if path)}


class TestReadyEngine:
    def test_tells_its_version(self, ready: str) -> None:
        assert engine_of(ready).preload()[0].isdigit()

    def test_starts_no_thread_of_python_while_being_imported(self, ready: str) -> None:
        module, name = plugins.target(plugins.ENGINES, ready).split(":", 1)
        script = f"import threading; from {module} import {name}; {name}().preload(); print(threading.active_count())"
        done = subprocess.run([sys.executable, "-c", script], capture_output=True, text=True, check=True)
        assert done.stdout.strip() == "1"

    def test_finds_the_cpu_and_its_precisions(self, ready: str) -> None:
        info = engine_of(ready).probe()
        cpu = next(unit for unit in info.units if unit.name == "cpu")
        assert {"default", "fp32"} <= set(cpu.precisions)
        assert info.version == engine_of(ready).preload()

    def test_runs_a_model_and_gives_the_right_answer(self, ready: str, tmp_path: Path) -> None:
        options = LoadOptions("cpu", 1, precision="fp32", batch_size=3)
        session = engine_of(ready).load(dense_model(ready, tmp_path), options)
        [spec] = session.signature()
        assert (spec.name, spec.dtype, spec.shape[1]) == ("x", "float32", 4)
        inputs = fed(session, batch_size=3)
        assert inputs["x"].shape == (3, 4)
        outputs = run(session, inputs)
        assert list(outputs) == ["y"]
        np.testing.assert_allclose(outputs["y"], dense(inputs["x"]), atol=1e-5)

    def test_takes_the_shapes_that_are_known_beforehand(self, ready: str, tmp_path: Path) -> None:
        options = LoadOptions("cpu", 1, precision="fp32", batch_size=5, shapes={"x": (5, 4)})
        session = engine_of(ready).load(dense_model(ready, tmp_path), options)
        inputs = fed(session, batch_size=5, shapes={"x": (5, 4)})
        np.testing.assert_allclose(run(session, inputs)["y"], dense(inputs["x"]), atol=1e-5)

    def test_says_what_it_really_does(self, ready: str, tmp_path: Path) -> None:
        session = engine_of(ready).load(dense_model(ready, tmp_path), LoadOptions("cpu", 1, precision="fp32"))
        run(session, fed(session))
        effect = session.effect()
        assert isinstance(effect, Effect)
        assert effect.device.upper().startswith("CPU")
        assert effect.precision == "fp32"
        assert effect.threads in (1, None)
        assert sum(effect.coverage.values()) == pytest.approx(1)

    def test_a_model_with_a_fixed_batch_refuses_another(self, ready: str, tmp_path: Path) -> None:
        session = engine_of(ready).load(dense_model(ready, tmp_path, batch=1), LoadOptions("cpu", 1, batch_size=2))
        with pytest.raises(InputError, match="fixed batch"):
            fed(session, batch_size=2)

    def test_never_falls_back_to_another_unit(self, ready: str, tmp_path: Path) -> None:
        path = dense_model(ready, tmp_path)
        for unit in ("tensorrt", "neural-engine", "gpu.7", "nonsense"):
            with pytest.raises(CapacityError) as caught:
                engine_of(ready).load(path, LoadOptions(unit, 1))
            assert caught.value.code == "unit_unavailable"

    def test_a_damaged_file_is_an_error_of_ours(self, ready: str, tmp_path: Path) -> None:
        whole = Path(dense_model(ready, tmp_path)).read_bytes()
        for name, content in (("cut", whole[: len(whole) // 2]), ("page", b"<html>not found</html>"), ("empty", b"")):
            path = tmp_path / f"{name}{ENDINGS[ready]}"
            path.write_bytes(content)
            with pytest.raises(PronyError) as caught:
                engine_of(ready).load(str(path), LoadOptions("cpu", 1))
            assert caught.value.code in ("model_invalid", "load_failed"), name

    def test_a_missing_file_is_named(self, ready: str, tmp_path: Path) -> None:
        with pytest.raises(NotFoundError, match="missing"):
            engine_of(ready).load(str(tmp_path / f"missing{ENDINGS[ready]}"), LoadOptions("cpu", 1))

    def test_an_option_that_it_does_not_know_is_refused(self, ready: str, tmp_path: Path) -> None:
        options = LoadOptions("cpu", 1, options={"nonsense": 1})
        with pytest.raises(InputError, match="nonsense"):
            engine_of(ready).load(dense_model(ready, tmp_path), options)

    def test_a_precision_that_it_cannot_give_is_refused(self, ready: str, tmp_path: Path) -> None:
        with pytest.raises(PronyError) as caught:
            engine_of(ready).load(dense_model(ready, tmp_path), LoadOptions("cpu", 1, precision="int8")).signature()
        assert caught.value.code == "precision_unavailable"


@pytest.mark.skipif("onnxruntime" not in HERE, reason="onnxruntime is not installed")
class TestOnnxRuntime:
    def load(self, path: Path, **given: Any) -> Session:
        return engine_of("onnxruntime").load(str(path), LoadOptions("cpu", 1, **given))

    @pytest.mark.parametrize(
        "kind",
        [
            *("FLOAT", "FLOAT16", "DOUBLE", "BOOL", "STRING"),
            *("INT8", "INT16", "INT32", "INT64", "UINT8", "UINT16", "UINT32", "UINT64"),
        ],
    )
    @pytest.mark.parametrize("shape", [["N", 3], []], ids=["matrix", "scalar"])
    def test_every_type_goes_in_and_comes_out(self, kind: str, shape: list[Any], tmp_path: Path) -> None:
        from onnx import TensorProto

        session = self.load(identity_onnx(tmp_path / "identity.onnx", getattr(TensorProto, kind), shape))
        inputs = fed(session)
        [output] = run(session, inputs).values()
        assert output.shape == (1, 3)[: len(shape)]
        assert output.dtype.kind != "O"
        np.testing.assert_array_equal(output, inputs["x"].astype(output.dtype))

    @pytest.mark.parametrize("kind", ["BFLOAT16", "FLOAT8E4M3FN", "FLOAT8E5M2"])
    def test_types_that_numpy_lacks_go_in_as_bits(self, kind: str, tmp_path: Path) -> None:
        from onnx import TensorProto

        session = self.load(identity_onnx(tmp_path / "identity.onnx", getattr(TensorProto, kind), ["N", 3]))
        inputs = fed(session)
        [output] = run(session, inputs).values()
        expected = from_bfloat16(inputs["x"]) if kind == "BFLOAT16" else inputs["x"]
        np.testing.assert_array_equal(output, expected)

    def test_several_inputs_are_fed_with_what_fits_them(self, tmp_path: Path) -> None:
        session = self.load(encoder_onnx(tmp_path / "encoder.onnx"))
        inputs = fed(session, batch_size=2, axes={"sequence": 6}, values={"scale": {"constant": 0.5}})
        assert {name: array.shape for name, array in inputs.items()} == {
            "input_ids": (2, 6),
            "attention_mask": (2, 6),
            "scale": (),
        }
        assert session.signature()[0].below == 50
        table = np.arange(50 * 4).reshape(50, 4)
        np.testing.assert_allclose(run(session, inputs)["y"], table[inputs["input_ids"]].sum(1) * 0.5)

    def test_half_precision_is_seen_in_the_weights(self, tmp_path: Path) -> None:
        session = self.load(dense_onnx(tmp_path / "half.onnx", dtype=np.float16), precision="fp16")
        assert run(session, fed(session))["y"].dtype == np.float16
        assert session.effect().precision == "fp16"

    def test_a_profile_tells_where_nodes_ran_and_is_removed(
        self, tmp_path: Path, monkeypatch: pytest.MonkeyPatch
    ) -> None:
        scratch = tmp_path / "scratch"
        scratch.mkdir()
        monkeypatch.setattr("tempfile.tempdir", str(scratch))
        session = self.load(encoder_onnx(tmp_path / "encoder.onnx"), profile=True)
        assert list(scratch.iterdir())
        run(session, fed(session))
        assert session.effect().coverage == {"CPUExecutionProvider": 1.0}
        assert session.effect().coverage == {"CPUExecutionProvider": 1.0}
        assert not list(scratch.iterdir())

    def test_inputs_bound_beforehand_give_the_same_answer(self, tmp_path: Path) -> None:
        """Ask the CPU to take its inputs as a GPU does: everything but the device is the same."""
        import onnxruntime

        from prony.plugins.engines.onnxruntime import OnnxSession
        from prony.plugins.engines.onnxruntime_providers import CPU, ProviderUnit

        path = str(dense_onnx(tmp_path / "dense.onnx"))
        opened = onnxruntime.InferenceSession(path, providers=[CPU])
        session = OnnxSession(opened, path, ProviderUnit("cpu", CPU, "CPU", tensors="cpu"), LoadOptions("cpu", 1), None)
        inputs = fed(session, batch_size=3)
        np.testing.assert_allclose(run(session, inputs)["y"], dense(inputs["x"]), atol=1e-5)

    def test_threads_and_options_are_read_back(self, tmp_path: Path) -> None:
        path = dense_onnx(tmp_path / "dense.onnx")
        options: dict[str, str | bool] = {"graph_optimization_level": "basic", "session.intra_op.allow_spinning": False}
        session = engine_of("onnxruntime").load(str(path), LoadOptions("cpu", 2, options=options))
        effect = session.effect()
        assert effect.threads == 2
        assert effect.details["graph_optimization_level"] == "ORT_ENABLE_BASIC"
        with pytest.raises(InputError, match="graph_optimization_level has the unknown value 'most'") as caught:
            self.load(path, options={"graph_optimization_level": "most"})
        assert caught.value.hint.startswith("use one of disable, basic")

    def test_an_operator_that_does_not_exist_is_an_invalid_model(self, tmp_path: Path) -> None:
        from onnx import TensorProto, helper

        value = [helper.make_tensor_value_info(name, TensorProto.FLOAT, [1]) for name in ("x", "y")]
        path = save_onnx(
            tmp_path / "odd.onnx", [helper.make_node("Frobnicate", ["x"], ["y"])], value[:1], value[1:], {}
        )
        with pytest.raises(PronyError, match="Frobnicate"):
            self.load(path)

    def test_a_sequence_cannot_be_fed(self, tmp_path: Path) -> None:
        from onnx import TensorProto, helper

        item = helper.make_tensor_type_proto(TensorProto.FLOAT, [2])
        sequence = helper.make_value_info("x", helper.make_sequence_type_proto(item))
        length = helper.make_tensor_value_info("y", TensorProto.INT64, [])
        path = save_onnx(
            tmp_path / "seq.onnx", [helper.make_node("SequenceLength", ["x"], ["y"])], [sequence], [length], {}
        )
        with pytest.raises(InputError, match="supports only tensors"):
            self.load(path).signature()


@pytest.mark.skipif(not {"onnxruntime", "openvino"} <= set(HERE), reason="needs onnxruntime and openvino")
class TestOpenVino:
    def test_is_fed_the_same_as_onnxruntime_from_one_file(self, tmp_path: Path) -> None:
        path = str(encoder_onnx(tmp_path / "encoder.onnx"))
        specs: list[list[TensorSpec]] = []
        answers = []
        for name in ("openvino", "onnxruntime"):
            session = engine_of(name).load(path, LoadOptions("cpu", 1, precision="fp32"))
            specs.append(session.signature())
            answers.append(run(session, fed(session, batch_size=2)))
        assert specs[0] == specs[1]
        found = compare_outputs(*answers)
        assert found["compared"]
        assert found["max_error_of_range"] < 1e-5

    def test_what_it_silently_computes_in_is_visible(self, tmp_path: Path) -> None:
        path = str(dense_onnx(tmp_path / "dense.onnx"))
        session = engine_of("openvino").load(path, LoadOptions("cpu", 1))
        inputs = fed(session, batch_size=64)
        error = compare_outputs(run(session, inputs), {"y": dense(inputs["x"])})["max_abs_error"]
        effect = session.effect()
        assert effect.details["inference_precision_hint"] in ("f32", "f16", "bf16")
        assert (error > 1e-4) == (effect.precision != "fp32")

    def test_a_precision_that_the_cpu_takes_for_another_is_refused(self, tmp_path: Path) -> None:
        engine = engine_of("openvino")
        [cpu] = [unit for unit in engine.probe().units if unit.name == "cpu"]
        path = str(dense_onnx(tmp_path / "dense.onnx"))
        for precision in ("fp16", "bf16"):
            options = LoadOptions("cpu", 1, precision=precision)
            refused = ""
            try:
                used = engine.load(path, options).effect().details["inference_precision_hint"]
            except CapacityError as error:
                refused, used = error.code, ""
            # A CPU may also compute in one that it does not list as fast.
            assert used == precision.replace("fp", "f") or refused == "precision_unavailable"
            assert used or precision not in cpu.precisions

    @pytest.mark.skipif("litert" not in HERE, reason="needs litert")
    def test_reads_tflite_as_litert_does(self, tmp_path: Path) -> None:
        path = str(dense_tflite(tmp_path / "dense.tflite"))
        answers = []
        for name in ("openvino", "litert"):
            session = engine_of(name).load(path, LoadOptions("cpu", 1, precision="fp32"))
            answers.append(run(session, fed(session, batch_size=2)))
        assert compare_outputs(*answers)["max_abs_error"] < 1e-5


@pytest.mark.skipif("litert" not in HERE, reason="litert is not installed")
class TestLiteRt:
    def test_the_delegate_can_be_left_out_and_is_told(self, tmp_path: Path) -> None:
        path = str(dense_tflite(tmp_path / "dense.tflite"))
        for delegate, expected in (("xnnpack", {"XNNPACK": 1.0}), ("none", {"LiteRT": 1.0})):
            session = engine_of("litert").load(path, LoadOptions("cpu", 1, options={"delegate": delegate}))
            inputs = fed(session)
            np.testing.assert_allclose(run(session, inputs)["y"], dense(inputs["x"]), atol=1e-5)
            assert session.effect().coverage == expected


@pytest.fixture(scope="module")
def torch_saw(tmp_path_factory: pytest.TempPathFactory, torch_python: str) -> dict[str, Any]:
    script = Path(__file__).with_name("torch_session.py")
    environment = os.environ | {"PYTHONPATH": str(Path(__file__).parents[2] / "src")}
    command = [torch_python, "-W", "ignore", str(script), str(tmp_path_factory.mktemp("torch")), "cpu"]
    done = subprocess.run(command, env=environment, capture_output=True, text=True, check=False)
    assert done.returncode == 0, done.stderr
    seen: dict[str, Any] = json.loads(done.stdout.splitlines()[-1])
    return seen


@pytest.mark.needs_torch
class TestTorch:
    def test_finds_the_cpu(self, torch_saw: dict[str, Any]) -> None:
        assert {"default", "fp32", "bf16"} <= set(torch_saw["units"]["cpu"])

    @pytest.mark.parametrize(
        ("case", "tolerance", "precision"),
        [
            ("dense.pt2", 1e-5, "fp32"),
            ("dense.pt2 fp32", 1e-5, "fp32"),
            ("dense.pt2 fp16", 2e-2, "fp16"),
            ("dense.pt2 bf16", 1e-1, "bf16"),
            ("dense.pt shaped", 1e-5, "fp32"),
        ],
    )
    def test_runs_both_formats_in_the_asked_precision(
        self, torch_saw: dict[str, Any], case: str, tolerance: float, precision: str
    ) -> None:
        seen = torch_saw[case]
        np.testing.assert_allclose(seen["outputs"]["output"], dense(seen["fed"]["x"]), atol=tolerance)
        assert seen["effect"]["precision"] == precision
        assert seen["effect"]["threads"] == 1

    def test_no_gradients_are_recorded(self, torch_saw: dict[str, Any]) -> None:
        assert not torch_saw["dense.pt2"]["records_gradients"]

    def test_an_exported_program_tells_its_inputs(self, torch_saw: dict[str, Any]) -> None:
        seen = torch_saw["encoder.pt2"]
        assert [spec[0] for spec in seen["specs"]] == ["input_ids", "scale"]
        assert seen["specs"][0][3] == 50
        assert seen["shapes"] == {"input_ids": [3, 7], "scale": []}
        assert "the example it was exported with" in seen["sources"]["input_ids"]
        assert set(seen["outputs"]) == {"sum", "count"}

    def test_torchscript_does_not_record_shapes_and_says_how_to_give_them(self, torch_saw: dict[str, Any]) -> None:
        assert torch_saw["dense.pt"]["code"] == "unknown_size"
        assert "x: [3, 3, 224, 224]" in torch_saw["dense.pt"]["hint"]
        assert torch_saw["encoder.pt"]["specs"][0][1:] == ["int64", ["..."], 50]

    def test_torchscript_takes_plain_numbers(self, torch_saw: dict[str, Any]) -> None:
        seen = torch_saw["scaled.pt"]
        np.testing.assert_allclose(seen["outputs"]["output"], np.asarray(seen["fed"]["x"]) * 2.5 + 3, atol=1e-5)

    @pytest.mark.parametrize(
        ("case", "code"),
        [
            ("absent", "unit_unavailable"),
            ("weights.pt", "model_invalid"),
            ("broken.pt2", "model_invalid"),
            ("missing.pt2", "not_found"),
            ("dense.pt2 int8", "precision_unavailable"),
        ],
    )
    def test_what_cannot_be_is_refused(self, torch_saw: dict[str, Any], case: str, code: str) -> None:
        assert torch_saw[case]["code"] == code

    @pytest.mark.parametrize(
        ("case", "words"),
        [
            ("graph", "needs a CUDA device"),
            ("mode", "one of eager, graph, compile, max-autotune"),
            ("typo", "did you mean mode?"),
            ("attention", "needs a CUDA device"),
            ("switch", "takes true or false"),
        ],
    )
    def test_an_option_that_cannot_be_had_is_refused_with_what_can(
        self, torch_saw: dict[str, Any], case: str, words: str
    ) -> None:
        seen = torch_saw[case]
        assert words in f"{seen['message']} {seen['hint']}"

    def test_tells_which_options_it_ran_with(self, torch_saw: dict[str, Any]) -> None:
        assert torch_saw["dense.pt2"]["effect"]["details"]["mode"] == "eager"
        assert torch_saw["dense.pt2"]["effect"]["outputs_at"] is None
        assert torch_saw["dense.pt2"]["effect"]["gradients"] == "off"
        seen = torch_saw["chosen"]
        np.testing.assert_allclose(seen["outputs"]["output"], dense(seen["fed"]["x"]), atol=1e-5)
        assert seen["effect"]["details"]["deterministic"] == seen["effect"]["details"]["channels_last"] == "True"
