"""Models that leave their sizes open run at once, or after one hint that was printed for them."""

from __future__ import annotations

import json
import shlex
import subprocess
from collections.abc import Callable
from pathlib import Path

import pytest

from lanes import only_slowly
from prony.ports.engine import shape_flag
from prony.runner.graph_sizes import suggest_sizes
from prony.runner.onnx_file import read_graph
from servers import pattern_models as patterns
from servers.commands import call_prony as prony

QUICK = ("--runs", "2", "--repeats", "1", "--set", "measure.warmup=0", "--set", "measure.check=false", "--no-report")

AUDIO = """
import sys, torch
class Audio(torch.nn.Module):
    def __init__(self):
        super().__init__()
        self.layer = torch.nn.Conv1d(1, 4, 400, stride=160)
    def forward(self, waveform: torch.Tensor, sr: int):
        assert waveform.dim() == 2 and sr == 16000
        return self.layer(waveform.unsqueeze(1)).mean(2)
torch.jit.script(Audio()).save(sys.argv[1])
"""


def printed_flags(said: str) -> list[str]:
    """Return the options of the hint, as a shell would read them."""
    return shlex.split(said.partition("or with prony bench: ")[2].partition("\n")[0])


@pytest.mark.parametrize(
    ("save", "flags"),
    [
        (patterns.save_voice_detector, "--shape input=1x512"),
        (patterns.save_text_recogniser, "--shape x=1x3x48x320"),
        (lambda path: patterns.save_detector(path, 736), "--shape x=1x3x736x736"),
        *only_slowly(
            (patterns.save_text_detector, "--shape x=1x3x224x224"),
            (patterns.save_voice, "--shape input=1x128"),
            (patterns.save_waveform, "--shape waveform=1x16000"),
            (patterns.save_digits, "--shape x=1x1x28x28"),
            (lambda path: patterns.save_patches(path, 384), "--shape x=1x3x384x384"),
        ),
    ],
)
def test_a_model_runs_after_the_one_hint_that_was_printed(
    tmp_path: Path, save: Callable[[Path], Path], flags: str
) -> None:
    model = save(tmp_path / "net.onnx")
    said = prony("recipe", model, code=2).stderr  # which runs it once, as bench does before it measures
    assert "it runs at these sizes" in said
    assert shlex.join(printed_flags(said)) == flags
    prony("recipe", model, *printed_flags(said))


@pytest.mark.slow  # PyTorch is imported five times; a waveform of unknown rank is among those above
def test_an_audio_model_of_unknown_rank_runs_after_one_hint(tmp_path: Path, torch_python: str) -> None:
    model = tmp_path / "audio.pt"
    (tmp_path / "audio.py").write_text(AUDIO)
    subprocess.run([torch_python, "-W", "ignore", str(tmp_path / "audio.py"), str(model)], check=True)
    prony("engines", "add", "torch", "--python", torch_python)
    said = prony("recipe", model, code=2).stderr
    assert printed_flags(said) == ["--shape", "waveform=1x16000"]
    prony("recipe", model, *printed_flags(said))


@pytest.mark.parametrize(
    ("name", "content", "told"),
    [
        ("preprocessor_config.json", {"size": {"shortest_edge": 288}, "crop_size": {"height": 256, "width": 192}},
         ("1x3x256x192", "preprocessor_config.json, crop_size")),
        ("preprocessor_config.json", {"size": 96}, ("1x3x96x96", "preprocessor_config.json, size")),
        ("config.json", {"vision_config": {"image_size": 64}}, ("1x3x64x64", "config.json, image_size")),
    ],
)  # fmt: skip
def test_a_picture_has_the_size_that_a_file_beside_the_model_says(
    tmp_path: Path, name: str, content: dict[str, object], told: tuple[str, str]
) -> None:
    model = patterns.save_text_detector(tmp_path / "onnx" / "net.onnx")
    (tmp_path / name).write_text(json.dumps(content))
    text = " ".join(prony("recipe", model).stdout.split())
    assert f"Assumed: input x is {told[0]}: it is read from {told[1]}" in text


def test_tokens_and_metadata_suggest_sizes_too(tmp_path: Path) -> None:
    model = patterns.save_voice(tmp_path / "net.onnx")
    (tmp_path / "tokenizer.json").write_text(json.dumps({"padding": {"strategy": {"Fixed": 48}}}))
    done = prony("bench", model, *QUICK)
    assert "input input is 1x48: it is read from tokenizer.json" in done.stderr
    assert "input 1×48" in done.stdout
    assert "guess" not in done.stdout + done.stderr
    (tmp_path / "tokenizer.json").write_text(json.dumps({"truncation": {"max_length": 512}}))  # more than is usual
    (tmp_path / "config.json").write_text(json.dumps({"max_position_embeddings": 77}))
    assert "input input is 1x77" in prony("recipe", model).stdout
    (tmp_path / "config.json").write_text("[not what it should be")
    prony("recipe", model, code=2)
    yolo = patterns.save_detection(tmp_path / "yolo.onnx", (64, 96))
    assert "input images is 1x3x64x96: it is read from the model's metadata" in prony("recipe", yolo).stdout


def test_a_graph_says_what_it_was_made_for(tmp_path: Path) -> None:
    found = {
        "digits": suggest_sizes(read_graph(patterns.save_digits(tmp_path / "a.onnx"))).sides,
        "patches": suggest_sizes(read_graph(patterns.save_patches(tmp_path / "b.onnx", 224))).sides,
        "anchors": suggest_sizes(read_graph(patterns.save_detector(tmp_path / "c.onnx", 640))).sides,
    }
    assert {name: sizes[0] for name, sizes in found.items()} == {"digits": 28, "patches": 224, "anchors": 640}
    assert {256, 512} <= set(suggest_sizes(read_graph(patterns.save_voice_detector(tmp_path / "d.onnx"))).lengths)


def test_a_hint_can_be_pasted_whatever_an_input_is_called() -> None:
    assert shape_flag("x", (1, 3)) == "--shape x=1x3"
    assert shlex.split(shape_flag("a b;c", ())) == ["--shape", "a b;c=scalar"]
