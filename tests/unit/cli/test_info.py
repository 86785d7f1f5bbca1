"""What `prony info` prints of GPUs: each way of asking, who tells what, and where they disagree."""

from __future__ import annotations

import pytest

from prony.cli.device import show_detection
from prony.instruments.device.gpu_layers import add_trials, join_layers
from prony.model.gpu_detection import LayerAnswer, ProductTrial

UUID = "GPU-9292ab31-0000-1111-2222-333344445555"
TRIALS = (
    ProductTrial(format="bf16", worked=True, text="error 0.004"),
    ProductTrial(format="fp4", worked=False, text="no product\nof it"),
)


def test_a_card_stands_with_the_layers_that_tell_each_fact(capsys: pytest.CaptureFixture[str]) -> None:
    nvml = {"name": "NVIDIA H200", "uuid": UUID, "compute_capability": "9.0", "memory_mib": 143771, "mig": "off"}
    torch = {"name": "NVIDIA H200", "uuid": UUID, "memory_mib": 70000, "l2_mib": 60}
    answers = [
        LayerAnswer(layer="nvml", state="asked", cards=(nvml,)),
        LayerAnswer(layer="nvidia-smi", state="absent", note="nvidia-smi not found on PATH"),
        LayerAnswer(layer="torch", state="asked", cards=(torch,), about={"runtime": "13.0"}),
    ]
    show_detection(add_trials(join_layers(answers), "torch", {UUID: TRIALS, "cpu": TRIALS[:1]}))
    lines = [" ".join(line.split()) for line in capsys.readouterr().out.splitlines()]
    assert "- nvml: 1 card" in lines
    assert "- nvidia-smi: absent: nvidia-smi not found on PATH" in lines
    assert "NVIDIA H200 (reported by nvml, torch)" in lines
    assert "unit cuda:GPU-9292ab31" in lines
    assert "memory mib 143771 nvml, torch" in lines
    assert "l2 mib 60 torch" in lines
    assert "tensor cores generation 4, by its compute capability: bf16 fp16 fp64 fp8 int8 tf32" in lines
    assert "products bf16 computed; not fp4: no product of it" in lines
    assert "disagreement: memory_mib: nvml says 143771, torch says 70000" in lines
    assert "products on the CPU: bf16 computed" in lines
