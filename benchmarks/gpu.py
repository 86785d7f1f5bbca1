"""Hold what Prony says of a GPU against loops written by hand, in the same minutes on the same card.

    python benchmarks/gpu.py [CHECK ...]

Needs a CUDA device and PyTorch. The checks, by name: `mlp` (four layers of 8192 x 8192 in bf16: inference, device time
and energy against a loop with events and a loop with a wait after each call), `small` (twenty narrow layers at batch 1:
launch-bound, and how much a graph saves), `copies` (outputs on the host in pinned memory), `foreign` (a second process
on the card is noticed), `same` (two runs agree; with --folder the first is kept there, and a later call makes the
second, on the same card), `hardware` (the memory's bandwidth and a bf16
product against plain loops of PyTorch), `canary` (how steady the fixed work is on a quiet card, and that it alone
notices a second process), `idle` (10 s of an idle card: its energy counter against the power of each instant),
`zeros` (a product of zeros is faster than one of normal data, which is why Prony multiplies normal data),
`onnxruntime` (ResNet-50 at batch 32 on its CUDA provider against a loop with bound inputs and outputs; needs
onnxruntime-gpu and onnx), `bottleneck` (loads on a served model whose limit is known; with --out the counters are
kept as JSON). Without names all of them are run.
"""

from __future__ import annotations

import argparse
import json
import os
import re
import statistics
import subprocess
import sys
import tempfile
import time
from collections.abc import Callable
from functools import partial
from importlib.util import find_spec
from pathlib import Path
from typing import Any

_LAYERS, _WIDTH = 4, 8192
_CALLS = 200


def main() -> int:
    """Run the checks that are named; return 1 where one of them failed."""
    parser = argparse.ArgumentParser(description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter)
    parser.add_argument("checks", nargs="*", choices=[*CHECKS, []], metavar="CHECK", help=", ".join(CHECKS))
    parser.add_argument("--folder", type=Path, help="where the models are kept for another time; else nowhere")
    parser.add_argument("--out", type=Path, default=None, help="where `bottleneck` keeps what it recorded")
    options = parser.parse_args()
    names: list[str] = options.checks
    if find_spec("torch") is None:
        print("no PyTorch here: nothing to check")
        return 0
    import torch

    if not torch.cuda.is_available():
        print("no CUDA device here: nothing to check")
        return 0
    print(f"{torch.cuda.get_device_name()}, PyTorch {torch.__version__}")
    with tempfile.TemporaryDirectory(prefix="prony-gpu-") as scratch:
        folder = options.folder or Path(scratch)
        os.environ.setdefault("PRONY_HOME", str(Path(scratch) / "home"))
        same = partial(check_same, later=options.folder is not None)
        checks = CHECKS | {"bottleneck": partial(check_bottleneck, out=options.out), "same": same}
        outcomes = [checks[name](torch, folder) for name in names or checks]
    return 0 if all(outcomes) else 1


def _export(torch: Any, folder: Path, width: int, layers: int, batch: int, *, relu: bool) -> Path:
    """Write a chain of linear layers as an exported program."""
    torch.manual_seed(7)
    parts = [part for _ in range(layers) for part in (torch.nn.Linear(width, width), torch.nn.ReLU())]
    module = torch.nn.Sequential(*(part for part in parts if relu or not isinstance(part, torch.nn.ReLU))).eval()
    path = folder / f"chain-{width}-{layers}-{batch}.pt2"
    if not path.exists():
        torch.export.save(torch.export.export(module, (torch.randn(batch, width),)), path)
    return path


def _run_prony(recipe: dict[str, Any], folder: Path) -> dict[str, dict[str, Any]]:
    """Run a recipe as a person does; return by job title what its report says."""
    path = folder / f"{recipe['name']}.json"
    path.write_text(json.dumps(recipe))
    prony = [sys.executable, "-m", "prony"]
    done = subprocess.run([*prony, "run", str(path), "--no-report"], check=False)
    if done.returncode not in (0, 1):
        raise SystemExit(f"prony run ended with {done.returncode}")
    return {job["title"]: job for job in _show_last()["jobs"]}


def _show_last() -> dict[str, Any]:
    command = [sys.executable, "-m", "prony", "show", "last", "--json"]
    shown: dict[str, Any] = json.loads(subprocess.run(command, capture_output=True, text=True, check=True).stdout)
    return shown


def _recipe(name: str, model: Path, **more: Any) -> dict[str, Any]:
    workload = {"kind": "model", "model": str(model), "engine": "torch", "unit": "cuda", "precision": "bf16"}
    measure = {"runs": _CALLS, "repeats": 5, "check": False}
    return {
        "name": name, "workload": workload | more.pop("workload", {}), "measure": measure | more.pop("measure", {}),
    } | more  # fmt: skip


def _value(job: dict[str, Any], key: str) -> float:
    return float(job["estimates"][key]["value"])


def _read_input(torch: Any, shape: tuple[int, ...]) -> Any:
    return torch.randn(*shape, device="cuda", dtype=torch.bfloat16)


def _load_by_hand(torch: Any, path: Path) -> Any:
    from torch.export.passes import move_to_device_pass

    return move_to_device_pass(torch.export.load(path), "cuda:0").module().to(torch.bfloat16)


def _time_by_hand(torch: Any, run: Callable[[], Any], calls: int = _CALLS) -> tuple[float, float]:
    """Return the median of a loop with a wait after each call, and of one with events around each call, in ms."""
    end = time.perf_counter() + 3
    while time.perf_counter() < end:
        for _ in range(20):
            run()
        torch.cuda.synchronize()
    walls, spans = [], []
    for _ in range(calls):
        begin = time.perf_counter_ns()
        run()
        torch.cuda.synchronize()
        walls.append((time.perf_counter_ns() - begin) / 1e6)
    for _ in range(calls):
        first, last = torch.cuda.Event(enable_timing=True), torch.cuda.Event(enable_timing=True)
        first.record()
        run()
        last.record()
        torch.cuda.synchronize()
        spans.append(first.elapsed_time(last))
    return statistics.median(walls), statistics.median(spans)


def _hand_loops(model: Path, shape: tuple[int, ...]) -> tuple[float, float]:
    """Time by hand in a fresh process, as Prony does."""
    code = (
        "import json, sys; sys.path.insert(0, sys.argv[1]); import gpu, torch; from pathlib import Path;"
        "torch.inference_mode().__enter__();"
        "module = gpu._load_by_hand(torch, Path(sys.argv[2]));"
        "x = gpu._read_input(torch, tuple(json.loads(sys.argv[3])));"
        "print(json.dumps(gpu._time_by_hand(torch, lambda: module(x))))"
    )
    command = [sys.executable, "-W", "ignore", "-c", code, str(Path(__file__).parent), str(model), json.dumps(shape)]
    wall, device = json.loads(subprocess.run(command, capture_output=True, text=True, check=True).stdout)
    return wall, device


def _say(what: str, *, is_good: bool) -> bool:
    print(f"{'PASS' if is_good else 'FAIL'}  {what}", flush=True)
    return is_good


def _near(name: str, ours: float, truth: float, most: float, by: str = "by hand") -> bool:
    off = ours / truth - 1
    return _say(
        f"{name}: {ours:.4f} against {truth:.4f} {by}, {off:+.2%} (at most {most:.1%})", is_good=abs(off) <= most
    )


def check_mlp(torch: Any, folder: Path) -> bool:
    """Inference, device time and energy of a model that is bound by the device."""
    model, shape = _export(torch, folder, _WIDTH, _LAYERS, _WIDTH, relu=False), (_WIDTH, _WIDTH)
    before = _hand_loops(model, shape)
    (job,) = _run_prony(_recipe("mlp", model, measure={"energy_window": "10s"}), folder).values()
    after = _hand_loops(model, shape)
    wall, device = ((one + other) / 2 for one, other in zip(before, after, strict=True))
    print(f"by hand before and after: wall {before[0]:.4f} {after[0]:.4f} ms, events {before[1]:.4f} {after[1]:.4f} ms")
    found = job["estimates"]["inference_ms.p50"]
    width = (found["high"] - found["low"]) / 2 / found["value"]
    joules, reasons = _value(job, "energy_j.p50"), {one["code"]: one["text"] for one in job["verdict"]["reasons"]}
    for name in ("launch_ms", "hot_ms", "copy_in_ms", "copy_out_ms", "copy_out_gb_s", "roundtrip_ms", "power_w",
                 "idle_power_w", "energy_net_j", "gpu_clock_mhz", "gpu_temperature_c", "gpu_held_power",
                 "gpu_held_thermal", "vram_weights_mib", "vram_run_peak_mib", "vram_reserved_mib", "vram_peak_mib",
                 "vram_device_mib"):  # fmt: skip
        print(
            f"      {name} {_value(job, f'{name}.p50'):.4f}" if f"{name}.p50" in job["estimates"] else f"      {name} -"
        )
    print("\n".join(f"      {code}: {text}" for code, text in reasons.items()))
    apart = _value(job, "vram_peak_mib.p50") - _value(job, "vram_reserved_mib.p50")
    return all([
        _near("inference_ms", found["value"], wall, 0.01),
        _near("device_ms", _value(job, "device_ms.p50"), device, 0.01),
        _say(f"interval of five runs +-{width:.2%} (at most 2 %)", is_good=width <= 0.02),
        _say(f"energy {joules:.3f} J an inference (3 to 5)", is_good=3 <= joules <= 5),
        _say("called device-bound", is_good="device_bound" in reasons),
        _say(f"verdict {job['verdict']['grade']}", is_good=job["verdict"]["grade"] == "valid"),
        _say(f"roundtrip {_value(job, 'roundtrip_ms.p50'):.2f} ms (at most 12)",
             is_good=_value(job, "roundtrip_ms.p50") <= 12),
        _say(f"process less allocator {apart:.0f} MiB (300 to 900)", is_good=300 <= apart <= 900),
    ])  # fmt: skip


def check_small(torch: Any, folder: Path) -> bool:
    """A model that is bound by its launches, eager and captured."""
    model = _export(torch, folder, 256, 20, 1, relu=True)
    wall, _ = _hand_loops(model, (1, 256))
    modes = ["eager", "graph", "compile", "max-autotune"]
    jobs = _run_prony(_recipe("small", model, matrix={"workload.options.mode": modes}, measure={"repeats": 2}), folder)
    by_mode = {job["cell"]["workload.options.mode"]: job for job in jobs.values()}
    for mode, job in by_mode.items():
        keys = [
            f"{name}.p50" for name in ("inference_ms", "launch_ms", "device_ms", "hot_ms", "compile_ms", "capture_ms")
        ]
        print(f"      {mode}", {key: round(_value(job, key), 4) for key in keys if key in job["estimates"]})
    reasons = {one["code"] for one in by_mode["eager"]["verdict"]["reasons"]}
    gain = _value(by_mode["eager"], "inference_ms.p50") / _value(by_mode["graph"], "inference_ms.p50")
    return all([
        _near("inference_ms of small calls", _value(by_mode["eager"], "inference_ms.p50"), wall, 0.10),
        _say("called launch-bound", is_good="launch_bound" in reasons),
        _say(f"a graph is {gain:.1f} times as fast (at least 3)", is_good=gain >= 3),
    ])  # fmt: skip


def check_copies(torch: Any, folder: Path) -> bool:
    """Outputs and inputs on the host, in pinned memory."""
    model = _export(torch, folder, _WIDTH, _LAYERS, _WIDTH, relu=False)
    recipe = _recipe(
        "copies", model, workload={"inputs": "host", "outputs": "host"}, measure={"repeats": 3, "runs": 50}
    )
    (job,) = _run_prony(recipe, folder).values()
    took, roundtrip = _value(job, "inference_ms.p50"), _value(job, "roundtrip_ms.p50")
    rate = _value(job, "copy_out_gb_s.p50")
    return all([
        _say(f"host to host {took:.2f} ms, roundtrip {roundtrip:.2f} ms (at most 12)",
             is_good=max(took, roundtrip) <= 12),
        _say(f"copy out {rate:.1f} GB/s (at least 20)", is_good=rate >= 20),
    ])  # fmt: skip


_BUSY = (
    "import torch; x = torch.randn(4096, 4096, device='cuda', dtype=torch.bfloat16)\n"
    "while True:\n for _ in range(50): x @ x\n torch.cuda.synchronize()\n"
)


def check_foreign(torch: Any, folder: Path) -> bool:
    """A second process on the card is noticed."""
    model = _export(torch, folder, _WIDTH, _LAYERS, _WIDTH, relu=False)
    other = subprocess.Popen([sys.executable, "-c", _BUSY])
    try:
        recipe = _recipe("foreign", model, measure={"repeats": 10, "runs": 50, "warmup": 20})
        (job,) = _run_prony(recipe, folder).values()
    finally:
        other.kill()
        other.wait()
    repetitions = job["result"]["repetitions"]
    disturbed = [one for one in repetitions if any(text.startswith("foreign_gpu") for text in one["contamination"])]
    made = len(repetitions)
    return _say(
        f"{len(disturbed)} of {made} repetitions were called disturbed (9 of 10)", is_good=len(disturbed) >= 0.9 * made
    )


def check_same(torch: Any, folder: Path, *, later: bool = False) -> bool:
    """Two runs agree: one after the other, or this one and the one that an earlier call kept in the folder."""
    kept = folder / "same.json"
    if not kept.exists():
        kept.write_text(json.dumps(_read_same(torch, folder, "first")))
        if later:
            return _say(f"the first of two runs is kept in {kept}; call again for the second", is_good=True)
    first, second = json.loads(kept.read_text()), _read_same(torch, folder, "second")
    if first["card"] != second["card"]:
        return _say(f"the first run was on {first['card']}, this one on {second['card']}", is_good=False)
    apart_min = (second["at_s"] - first["at_s"]) / 60
    print(f"      {apart_min:.1f} minutes apart on {first['card']}: {first['interval']} and {second['interval']} ms")
    off = second["inference_ms"] / first["inference_ms"] - 1
    return _say(f"the second run is off by {off:+.2%} (at most 1.5 %)", is_good=abs(off) <= 0.015)


def _read_same(torch: Any, folder: Path, turn: str) -> dict[str, Any]:
    """Measure the model of `mlp` once; return its number, the card's UUID and the time."""
    model = _export(torch, folder, _WIDTH, _LAYERS, _WIDTH, relu=False)
    (job,) = _run_prony(_recipe(f"same-{turn}", model), folder).values()
    found = job["estimates"]["inference_ms.p50"]
    return {
        "at_s": time.time(), "card": str(torch.cuda.get_device_properties(0).uuid), "inference_ms": found["value"],
        "interval": f"{found['value']:.4f} [{found['low']:.4f}, {found['high']:.4f}]",
    }  # fmt: skip


_PLAIN_LOOPS = """
import json, time, torch
def rate(run, amount, calls=200):
    end = time.perf_counter() + 3
    while time.perf_counter() < end:
        for _ in range(20): run()
        torch.cuda.synchronize()
    first, last = torch.cuda.Event(enable_timing=True), torch.cuda.Event(enable_timing=True)
    first.record()
    for _ in range(calls): run()
    last.record()
    torch.cuda.synchronize()
    return amount * calls / first.elapsed_time(last) / 1e6
b = torch.randn(2**29, device="cuda"); a = torch.empty_like(b)
copy = rate(lambda: a.copy_(b), 8 * 2**29)
x, y = (torch.randn(8192, 8192, device="cuda").bfloat16() for _ in range(2)); z = torch.empty_like(x)
print(json.dumps([copy, rate(lambda: torch.mm(x, y, out=z), 2 * 8192**3) / 1e3]))
"""


def check_hardware(torch: Any, folder: Path) -> bool:
    """Memory and a product without a model, against plain loops in fresh processes before and after."""
    del torch

    def by_hand() -> list[float]:
        done = subprocess.run([sys.executable, "-c", _PLAIN_LOOPS], capture_output=True, text=True, check=True)
        return [float(one) for one in json.loads(done.stdout)]

    before = by_hand()
    workload = {"kind": "hardware", "shapes": "model", "layers": ["8192x8192x8192"], "precisions": ["bf16"]}
    recipe = {"name": "hardware", "workload": workload, "matrix": {"workload.test": ["gpu-memory", "gpu-gemm"]}}
    jobs = {job["cell"]["workload.test"]: job for job in _run_prony(recipe, folder).values()}
    after = by_hand()
    print(f"by hand before and after: copy {before[0]:.0f} {after[0]:.0f} GB/s, "
          f"bf16 {before[1]:.1f} {after[1]:.1f} TFLOP/s")  # fmt: skip
    copy, product = ((one + other) / 2 for one, other in zip(before, after, strict=True))
    found_copy = _value(jobs["gpu-memory"], "copy_gb_s.p50")
    found_product = _value(jobs["gpu-gemm"], "gemm_bf16_tflops.p50")
    return all([
        _near("copy_gb_s", found_copy, copy, 0.03),
        _near("gemm_bf16_tflops", found_product, product, 0.03),
        _say(f"copy {found_copy:.0f} GB/s (at least 4200)", is_good=found_copy >= 4200),
        _say(f"bf16 {found_product:.1f} TFLOP/s (at least 750)", is_good=found_product >= 750),
    ])  # fmt: skip


_BOUND_LOOP = """
import json, statistics, sys, time, numpy, onnxruntime as ort
ort.preload_dlls()
session = ort.InferenceSession(sys.argv[1], providers=["CUDAExecutionProvider"])
given, made = session.get_inputs()[0], session.get_outputs()[0]
shape = [32, *given.shape[1:]]
there = ort.OrtValue.ortvalue_from_numpy(numpy.random.default_rng(7).standard_normal(shape, "float32"), "cuda", 0)
binding = session.io_binding()
binding.bind_ortvalue_input(given.name, there)
binding.bind_output(made.name, "cuda", 0)
def run():
    begin = time.perf_counter_ns()
    session.run_with_iobinding(binding)
    binding.synchronize_outputs()
    return (time.perf_counter_ns() - begin) / 1e6
end = time.perf_counter() + 3
while time.perf_counter() < end: run()
print(json.dumps(statistics.median(run() for _ in range(200))))
"""


def check_onnxruntime(torch: Any, folder: Path) -> bool:
    """A network of convolutions on onnxruntime's CUDA provider, with outputs on the device and on the host."""
    del torch
    workload = {"model": "zoo:resnet-50", "engine": "onnxruntime", "batch": 32, "precision": "default"}
    recipe = _recipe("onnxruntime", Path(), workload=workload, matrix={"workload.outputs": ["device", "host"]})
    jobs = {job["cell"]["workload.outputs"]: job for job in _run_prony(recipe, folder).values()}
    model = next((Path(os.environ["PRONY_HOME"]) / "cache" / "zoo").glob("resnet-50*.onnx"))
    done = subprocess.run([sys.executable, "-c", _BOUND_LOOP, str(model)], capture_output=True, text=True, check=True)
    by_hand = float(json.loads(done.stdout))
    for outputs, job in jobs.items():
        print(f"      {outputs}", {key: round(found["value"], 4) for key, found in job["estimates"].items()})
    there, here = (_value(jobs[outputs], "inference_ms.p50") for outputs in ("device", "host"))
    return all([
        _near("inference_ms on onnxruntime", there, by_hand, 0.03),
        _say(f"with outputs on the host {here:.4f} ms, on the device {there:.4f} ms", is_good=here > there * 0.97),
    ])  # fmt: skip


def check_canary(torch: Any, folder: Path) -> bool:
    """Fixed work on the card takes the same time beside each run, and waits where another process uses the card."""
    model = _export(torch, folder, _WIDTH, _LAYERS, _WIDTH, relu=False)
    recipe = _recipe("canary", model, measure={"repeats": 5, "runs": 50})
    (quiet,) = _run_prony(recipe, folder).values()
    other = subprocess.Popen([sys.executable, "-c", _BUSY])
    try:
        recipe = _recipe("canary-shared", model, measure={"repeats": 4, "runs": 50, "warmup": 20})
        (shared,) = _run_prony(recipe, folder).values()
    finally:
        other.kill()
        other.wait()
    alone, together = (_canary_readings(job) for job in (quiet, shared))
    spreads = []
    for name in ("gpu_compute_ms", "gpu_memory_ms"):
        values = [one[name] for one in alone]
        spreads.append(max(values) / min(values) - 1)
        print(f"      {name} {' '.join(f'{value:.4f}' for value in values)}; beside another process "
              f"{' '.join(f'{one[name]:.4f}' for one in together)}")  # fmt: skip
    held = [[one["gpu_held_up"] for one in readings] for readings in (alone, together)]
    print(f"      gpu_held_up alone {' '.join(f'{one:.3f}' for one in held[0])}; shared "
          f"{' '.join(f'{one:.3f}' for one in held[1])}")  # fmt: skip
    noticed = [max(pair) > 0.1 for pair in zip(held[1][::2], held[1][1::2], strict=True)]
    return all([
        _say(f"fixed work varies by {max(spreads):.2%} on a quiet card (at most 3 %)", is_good=max(spreads) <= 0.03),
        _say(f"alone it waits for {max(held[0]):.1%} at most (10 %)", is_good=max(held[0]) <= 0.1),
        _say(f"by it alone, {sum(noticed)} of {len(noticed)} repetitions beside another process are noticed (9 of 10)",
             is_good=sum(noticed) >= 0.9 * len(noticed)),
    ])  # fmt: skip


def check_idle(torch: Any, folder: Path) -> bool:
    """On an idle card the energy counter and the power of each instant tell the same watts."""
    del folder
    from prony.plugins.probes.nvidia import NvidiaProbe

    probe = NvidiaProbe()
    card = probe.find_card(f"GPU-{torch.cuda.get_device_properties(0).uuid}")
    if card is None or probe.read_energy_uj(card) is None:
        return _say("the driver has no energy counter of this card", is_good=False)
    time.sleep(_SETTLE_S)
    try:
        counted_w, instant_w = compare_power(probe, card, _IDLE_S)
    except TimeoutError as exc:
        return _say(str(exc), is_good=False)
    return _near("idle power in W, by the energy counter", counted_w, instant_w, 0.05, "by instant power")


_SETTLE_S, _IDLE_S, _STEP_S = 5.0, 10.0, 0.02


def compare_power(
    probe: Any, card: str, window_s: float, clock: Callable[[], float] = time.perf_counter,
    sleep: Callable[[float], None] = time.sleep,
) -> tuple[float, float]:  # fmt: skip
    """Return the mean power of a window in W, by the energy counter and by readings of this instant.

    The counter moves in steps, so the window begins and ends with a step.

    Raises:
        TimeoutError: The counter stands still.
    """
    begin_s, begin_uj, _ = _wait_for_step(probe, card, clock, sleep)
    watts: list[float] = []
    while True:
        end_s, end_uj, more = _wait_for_step(probe, card, clock, sleep)
        watts += more
        if end_s - begin_s >= window_s:
            return (end_uj - begin_uj) / 1e6 / (end_s - begin_s), statistics.fmean(watts)


def _wait_for_step(
    probe: Any, card: str, clock: Callable[[], float], sleep: Callable[[float], None]
) -> tuple[float, float, list[float]]:
    """Return when the counter next moved, to what, and the power read until then."""
    first_uj, watts, until_s = probe.read_energy_uj(card), [], clock() + 2
    while clock() < until_s:
        sleep(_STEP_S)
        watts.append(float(probe.read()[f"{card}_power_w"]))
        now_s, now_uj = clock(), probe.read_energy_uj(card)
        if now_uj != first_uj:
            return now_s, now_uj, watts
    raise TimeoutError("the energy counter did not move for 2 s")


def check_zeros(torch: Any, folder: Path) -> bool:
    """Zeros draw less power than numbers do, so under a power limit their product is faster."""
    del folder
    shape = (_WIDTH, _WIDTH)
    normal, zeros = (make(*shape, device="cuda", dtype=torch.bfloat16) for make in (torch.randn, torch.zeros))
    out = torch.empty_like(normal)
    turns = [[_rate_product(torch, one, out) for one in (normal, zeros)] for _ in range(4)]
    print("      bf16, TFLOP/s of normal data and of zeros: " + ", ".join(f"{a:.0f} {b:.0f}" for a, b in turns))
    gain = statistics.median(b / a for a, b in turns) - 1
    return _say(f"zeros are {gain:+.1%} faster than normal data (at least 8 %)", is_good=gain >= 0.08)


def _rate_product(torch: Any, factor: Any, out: Any, turn_s: float = 3.0) -> float:
    """Return the TFLOP/s of the second half of a turn, when the clock has followed the power."""
    spans, end_s = [], time.perf_counter() + turn_s
    while time.perf_counter() < end_s:
        first, last = torch.cuda.Event(enable_timing=True), torch.cuda.Event(enable_timing=True)
        first.record()
        for _ in range(20):
            torch.mm(factor, factor, out=out)
        last.record()
        torch.cuda.synchronize()
        spans.append(first.elapsed_time(last) / 20)
    return float(2 * factor.shape[0] ** 3 / statistics.median(spans[len(spans) // 2 :]) / 1e9)


def _canary_readings(job: dict[str, Any]) -> list[dict[str, float]]:
    """Return the readings before and after each repetition, in turn."""
    return [one[when] for one in job["result"]["repetitions"] for when in ("canary_before", "canary_after")]


# By what a served model does: the limit that must be told at the highest load.
_LIMITS = {
    "compute": ("server", "gpu compute"), "memory": ("server", "gpu bandwidth"), "queue": ("server", "queue"),
    "client": ("client", "cpu"),
}  # fmt: skip
_USERS = (1, 4, 16)
_KEPT = re.compile(
    r"gpu\d+_(busy|memory_busy|memory_used_mib|\w+_share|power_w|sm_mhz)|service_\w+|requests_waiting|"
    r"cpu_busy_s_total|memory_available_mib"
)


def check_bottleneck(torch: Any, folder: Path, out: Path | None = None) -> bool:
    """Loads on a served model whose limit is known."""
    outcomes = []
    for mode, limit in _LIMITS.items():
        _run_prony(_served_recipe(mode), folder)
        shown = _show_last()
        levels = shown["sweep"]["curves"][0]["levels"]
        for level in levels:
            found = level["bottleneck"]
            print(f"      {mode}, {level['load']:g} users, {level['throughput']['value']:.1f}/s: {found['text']}")
        found = levels[-1]["bottleneck"]
        outcomes.append(_say(f"{mode}: the limit at {_USERS[-1]} users is {found['where']}: {found['what']}",
                             is_good=(found["where"], found["what"]) == limit))  # fmt: skip
        if out is not None:
            _keep_recording(torch, mode, shown, out)
    return all(outcomes)


def _served_recipe(mode: str) -> dict[str, Any]:
    here = "http://127.0.0.1:{port}"
    server = Path(__file__).with_name("gpu_server.py")
    settings = {
        "command": [sys.executable, str(server.absolute()), "--port", "{port}", "--mode", mode],
        "endpoint": f"{here}/", "ready": f"{here}/ready", "metrics_url": f"{here}/metrics",
    }  # fmt: skip
    # With one process for each few users, the clients of this machine would read as much as the server can send.
    clients = {"clients": {"processes": 1}} if mode == "client" else {}
    return {
        "name": f"served-{mode}", "workload": {"kind": "service", "service": "command", "settings": settings},
        "load": {"closed": {"concurrency": 1}, "duration": "6s", "repeats": 2} | clients,
        "matrix": {"load.closed.concurrency": list(_USERS)},
    }  # fmt: skip


def _keep_recording(torch: Any, mode: str, shown: dict[str, Any], out: Path) -> None:
    """Write what the tests of bottlenecks need of a sweep: each run's clients, and the counters beside it."""
    import polars as pl

    levels = []
    for job in shown["jobs"]:
        path = Path(os.environ["PRONY_HOME"], "results", shown["experiment"]["id"], job["job_id"], "telemetry.parquet")
        rows = pl.read_parquet(path).rows()
        runs = [_compact_run(one, rows) for one in job["result"]["repetitions"]]
        numbers = {key: job["runs"][key] for key in ("e2e_ms.p50", "throughput_per_s.p50") if key in job["runs"]}
        levels.append({"users": job["cell"]["load.closed.concurrency"], "numbers": numbers, "runs": runs})
    out.mkdir(parents=True, exist_ok=True)
    told = {"card": torch.cuda.get_device_name(), "mode": mode, "cores": os.cpu_count(), "levels": levels}
    (out / f"bottleneck-{mode}.json").write_text(json.dumps(told, separators=(",", ":")))


def _compact_run(run: dict[str, Any], rows: list[Any]) -> dict[str, Any]:
    """Return a run with its counters as pairs of milliseconds since its beginning and a value."""
    phase = run["phases"]["measure"]
    counters: dict[str, list[list[float]]] = {}
    for repetition, at_ns, _, counter, value in rows:
        if repetition == run["index"] and _KEPT.fullmatch(counter):
            at_ms = (at_ns - phase["begin_ns"]) // 10**6
            counters.setdefault(counter, []).append([at_ms, float(f"{value:.7g}")])
    lasted_ms = (phase["end_ns"] - phase["begin_ns"]) // 10**6
    return {"lasted_ms": lasted_ms, "noise": run["noise"], "client": run["client"], "counters": counters}


CHECKS: dict[str, Callable[[Any, Path], bool]] = {
    "mlp": check_mlp, "small": check_small, "copies": check_copies, "foreign": check_foreign, "same": check_same,
    "hardware": check_hardware, "canary": check_canary, "bottleneck": check_bottleneck,
    "onnxruntime": check_onnxruntime, "idle": check_idle, "zeros": check_zeros,
}  # fmt: skip

if __name__ == "__main__":
    sys.exit(main())
