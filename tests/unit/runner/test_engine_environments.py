"""An engine's own environment: the one that works is kept until another one is whole."""

from __future__ import annotations

import sys
from collections.abc import Callable
from pathlib import Path

import pytest

from prony.errors import CapacityError, InputError
from prony.ports import plugins
from prony.ports.engine import gpu_build_command
from prony.runner import engines
from prony.runner.host import EngineHost


def calls(monkeypatch: pytest.MonkeyPatch, *, fail_at: str = "") -> list[list[str]]:
    """Stand in for venv and pip: make the interpreter's file, or fail."""
    made: list[list[str]] = []

    def run(command: list[str], say: Callable[[str], None] = lambda _: None) -> None:
        made.append(command)
        if fail_at in command:
            raise CapacityError("no index", code="install_failed")
        if "venv" in command:
            python = Path(command[-1]) / ("Scripts/python.exe" if sys.platform == "win32" else "bin/python")
            python.parent.mkdir(parents=True)
            python.touch()

    def install(python: Path, words: list[str], say: Callable[[str], None]) -> None:
        run([str(python), "-m", "pip", *words])

    monkeypatch.setattr(engines, "run_command", run)
    monkeypatch.setattr(engines, "install_packages", install)
    return made


def test_the_environment_of_an_engine_is_used_from_then_on(monkeypatch: pytest.MonkeyPatch, tmp_path: Path) -> None:
    made = calls(monkeypatch)
    python = engines.add_engine("null", tmp_path, requirements=["thing==1"])
    assert engines.interpreter("null", tmp_path) == python
    assert made[1][-2:] == ["numpy", "thing==1"]


def test_a_new_environment_replaces_the_earlier_one(monkeypatch: pytest.MonkeyPatch, tmp_path: Path) -> None:
    calls(monkeypatch)
    first = engines.add_engine("null", tmp_path)
    second = engines.add_engine("null", tmp_path)
    assert not Path(first).exists()
    assert engines.interpreter("null", tmp_path) == second


def test_a_build_for_gpus_is_installed_for_its_engine(monkeypatch: pytest.MonkeyPatch, tmp_path: Path) -> None:
    made = calls(monkeypatch)
    monkeypatch.setattr(engines, "check_build", lambda *_: None)
    python = engines.add_engine("tensorrt", tmp_path)
    assert engines.interpreter("onnxruntime", tmp_path) == python
    assert made[1][-3:] == ["numpy", "onnxruntime-gpu[cuda,cudnn]", "tensorrt-cu13>=10,<11"]
    engines.add_engine("onnxruntime-gpu", tmp_path, version="1.20")
    assert made[-1][-1] == "onnxruntime-gpu[cuda,cudnn]==1.20.*"


@pytest.mark.parametrize(
    ("name", "cuda", "system", "machine", "words"),
    [
        ("onnxruntime-gpu", "13.1", "linux", "x86_64", ""),
        ("onnxruntime-gpu", "13.1", "win32", "AMD64", ""),
        ("torch-cuda", "13.0", "linux", "aarch64", ""),
        ("onnxruntime-directml", None, "win32", "AMD64", ""),
        ("onnxruntime-genai-cuda", "13.0", "linux", "x86_64", ""),
        ("onnxruntime-genai-directml", None, "linux", "x86_64", "runs on Windows, but this is Linux"),
        ("torch-cuda", None, "linux", "x86_64", "needs NVIDIA's driver for CUDA 13.0 or newer, but there is none"),
        ("tensorrt", "12.8", "linux", "x86_64", "but the installed one is for CUDA 12.8"),
        ("onnxruntime-gpu", "12.4", "linux", "arm64", "is built for x86_64, but this is aarch64"),
        ("onnxruntime-directml", None, "linux", "x86_64", "runs on Windows, but this is Linux"),
        ("torch-cuda", None, "darwin", "arm64", "runs on Linux and Windows, but this is macOS"),
    ],
)
def test_what_a_build_needs_is_checked_before(
    name: str, cuda: str | None, system: str, machine: str, words: str
) -> None:
    _, build = engines.find_build(name)
    assert build is not None
    if not words:
        engines.check_build(build, cuda, system, machine)
        return
    with pytest.raises(CapacityError, match=words) as caught:
        engines.check_build(build, cuda, system, machine)
    assert caught.value.code == "engine_unsupported"


def test_vllm_without_a_gpu_is_added_from_named_packages_alone(monkeypatch: pytest.MonkeyPatch, tmp_path: Path) -> None:
    made = calls(monkeypatch)
    monkeypatch.setattr(engines, "driver_cuda", lambda: None)
    with pytest.raises(CapacityError, match=r"vllm (needs|runs on|is built for)") as caught:
        engines.add_engine("vllm", tmp_path)
    assert "wheel for CPUs" in str(caught.value.hint)
    assert made == []
    python = engines.add_engine("vllm", tmp_path, requirements=["vllm-of-the-user"])
    assert made[1][-2:] == ["numpy", "vllm-of-the-user"]
    assert engines.interpreter("vllm", tmp_path) == python


@pytest.mark.parametrize(
    ("engine", "unit", "command"),
    [
        ("torch", "cuda:GPU-1", "prony engines add torch-cuda"),
        ("onnxruntime", "cuda-1", "prony engines add onnxruntime-gpu"),
        ("onnxruntime", "tensorrt", "prony engines add tensorrt"),
        ("onnxruntime", "directml", "prony engines add onnxruntime-directml"),
        ("onnxruntime-genai", "cuda", "prony engines add onnxruntime-genai-cuda"),
        ("onnxruntime-genai", "dml", "prony engines add onnxruntime-genai-directml"),
        ("torch", "mps", ""),
        ("litert", "cuda", ""),
    ],
)
def test_the_hint_for_a_missing_unit_is_the_command_that_adds_it(engine: str, unit: str, command: str) -> None:
    assert gpu_build_command(plugins.load_plugin(plugins.ENGINES, engine), unit) == command


@pytest.mark.parametrize("step", ["venv", "pip"])
def test_an_installation_that_fails_leaves_the_earlier_one_as_it_was(
    monkeypatch: pytest.MonkeyPatch, tmp_path: Path, step: str
) -> None:
    calls(monkeypatch)
    first = engines.add_engine("null", tmp_path)
    calls(monkeypatch, fail_at=step)
    with pytest.raises(CapacityError):
        engines.add_engine("null", tmp_path)
    assert engines.interpreter("null", tmp_path) == first
    assert len(list((tmp_path / "null").glob("environment*"))) == 1


def test_an_interpreter_is_found_from_any_folder_and_a_link_stays_a_link(
    monkeypatch: pytest.MonkeyPatch, tmp_path: Path
) -> None:
    (tmp_path / "python").symlink_to(sys.executable)
    monkeypatch.chdir(tmp_path)
    engines.add_engine("null", tmp_path / "engines", python="./python")
    monkeypatch.chdir("/")
    assert engines.interpreter("null", tmp_path / "engines") == str(tmp_path / "python")


def test_an_interpreter_that_is_not_there_is_refused_and_nothing_is_made(tmp_path: Path) -> None:
    with pytest.raises(InputError, match="interpreter not found"):
        engines.add_engine("null", tmp_path, python=str(tmp_path / "none"))
    assert not list(tmp_path.iterdir())


def test_what_is_missing_is_to_be_installed_where_the_engine_lives(tmp_path: Path) -> None:
    python = tmp_path / "python"
    python.write_text("#!/bin/sh\nexit 1\n")
    python.chmod(0o755)
    with pytest.raises(CapacityError) as caught, EngineHost("litert", str(python), tmp_path / "log"):
        pass
    assert caught.value.hint.startswith(f"{python} -m pip install numpy ai-edge-litert")


def test_a_version_stands_beside_the_usual_one_and_is_found_only_by_who_asks_for_it(
    monkeypatch: pytest.MonkeyPatch, tmp_path: Path
) -> None:
    made = calls(monkeypatch)
    python = engines.add_engine("onnxruntime", tmp_path, version="1.20")
    assert made[1][-2:] == ["numpy", "onnxruntime==1.20.*"]
    assert engines.interpreter("onnxruntime", tmp_path, "1.20") == python
    assert engines.interpreter("onnxruntime", tmp_path) == sys.executable
    assert engines.interpreter("onnxruntime", tmp_path, "1.21") == sys.executable
    assert engines.versions(tmp_path) == [("onnxruntime", "1.20")]


@pytest.mark.parametrize(("wanted", "found"), [("1.20", "1.20.1"), ("1.20.1", "1.20.1"), ("2.7", "2.7.0+cpu"),
                                               ("2025.1", "2025.1.0-18503-abc"), (None, "3")])  # fmt: skip
def test_the_beginning_of_a_version_is_enough(wanted: str | None, found: str) -> None:
    engines.check_engine_version("any", wanted, found)


@pytest.mark.parametrize(("wanted", "found"), [("1.2", "1.20.1"), ("1.20.1", "1.20"), ("1.21", "1.20.1")])
def test_another_version_is_refused_with_the_way_to_get_the_right_one(wanted: str, found: str) -> None:
    with pytest.raises(CapacityError) as caught:
        engines.check_engine_version("onnxruntime", wanted, found)
    assert caught.value.code == "engine_version"
    assert caught.value.hint == f"prony engines add onnxruntime --version {wanted}"


def test_an_engine_of_our_own_has_no_versions(tmp_path: Path) -> None:
    with pytest.raises(InputError, match="no version"):
        engines.add_engine("null", tmp_path, version="1")
