"""What `prony doctor` prints: whole words at 80 columns, and commands that can be copied."""

from __future__ import annotations

import sys

import pytest

from prony.cli.commands.engines import show_engines
from prony.cli.device import show_conditions
from prony.model.device import Condition, EngineReport, EngineUnit


@pytest.fixture(autouse=True)
def _at_80_columns(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setenv("COLUMNS", "80")


def test_engines_that_cannot_run_are_named_with_their_formats_and_what_to_do(
    capsys: pytest.CaptureFixture[str],
) -> None:
    unit = EngineUnit(engine="openvino", unit="cpu", description="", precisions=("default", "fp32", "fp16", "int8"))
    formats = (".onnx", ".xml", ".tflite")
    ready = EngineReport(name="openvino", python=sys.executable, state="ready", version="2026.4.1-21-abc",
                         formats=formats, units=(unit,))  # fmt: skip
    missing = EngineReport(name="onnxruntime-genai", python="/opt/python", state="missing", formats=("genai-folder",),
                           reason="no module", hint="prony engines add onnxruntime-genai")  # fmt: skip
    show_engines([ready, missing])
    out = capsys.readouterr().out
    assert set(formats) | {"default", "fp32", "2026.4.1", "interpreter"} <= set(out.split())
    assert out.splitlines()[-2:] == [
        "onnxruntime-genai (genai-folder; interpreter: /opt/python) is missing: no module",
        "  prony engines add onnxruntime-genai",
    ]


def test_a_condition_has_its_command_on_one_line(capsys: pytest.CaptureFixture[str]) -> None:
    command = "ps -eo pcpu,pid,user,comm --sort=-pcpu | head"
    busy = Condition(code="a", title="CPU used by others", status="block", value="98.9% of the machine",
                     hint=f"stop other programs that nobody needs; to find them: {command}")  # fmt: skip
    quiet = Condition(code="b", title="Swap", status="pass", value="none", hint="not shown")
    show_conditions([quiet, busy])
    assert capsys.readouterr().out.splitlines() == [
        "✖  CPU used by others  98.9% of the machine",
        f"   stop other programs that nobody needs; to find them: {command}",
        "●  Swap                none",
    ]
