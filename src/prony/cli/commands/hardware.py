"""`prony hardware`: measure what this machine's hardware does without a model."""

from __future__ import annotations

from argparse import ArgumentParser, Namespace
from collections.abc import Sequence
from typing import Any

from prony.cli.arguments import add_recipe_run

# The tests of a unit; any other unit is a GPU.
_TESTS = {"cpu": ("cpu-memory", "cpu-gemm"), "disk": ("disk",)}
_GPU_TESTS = ("gpu-memory", "gpu-gemm", "gpu-transfer", "gpu-launch")
_OF_ALL_GPUS = "gpu-collective"  # run once where there are two, or where it is asked for
_SHAPES = ("quick", "search")


def arguments(parser: ArgumentParser) -> None:
    """Measure this machine: memory, matrix products by precision, disk, and each GPU against its published
    peak. The result is stored like any other experiment."""
    parser.add_argument(
        "--unit", action="append", default=[], metavar="NAME",
        help="cpu, disk, cuda, cuda-1, ...; repeatable (default: all units found; on a server cpu and disk)",
    )  # fmt: skip
    parser.add_argument(
        "--test", action="append", default=[],
        choices=(*_TESTS["cpu"], "disk", *_GPU_TESTS, _OF_ALL_GPUS), help="only this test of the unit; repeatable",
    )  # fmt: skip
    parser.add_argument(
        "--library", choices=("numpy", "torch"), help="for the CPU: library to use (torch if installed)"
    )
    parser.add_argument(
        "--shapes", choices=_SHAPES, default="quick", help="for matrix products: some squares (quick), or many shapes"
    )
    parser.add_argument(
        "--layer", action="append", default=[], metavar="MxNxK", help="for matrix products: a single size; repeatable"
    )
    parser.add_argument(
        "--size",
        metavar="BYTES",
        help="size of the array or the disk's file, for example 2GiB (default: from the free memory)",
    )
    parser.add_argument(
        "--path", metavar="FOLDER", help="for disk: folder of its file (default: that of temporary files)"
    )
    parser.add_argument("--repeats", type=int, default=5, metavar="N", help="fresh processes for each test (5)")
    add_recipe_run(parser)


def command(options: Namespace) -> int:
    from prony.cli.remote import server_address
    from prony.cli.run_written import run_written

    is_remote = server_address(options) is not None
    units, library = _choose_there(options) if is_remote else _choose_here(options)
    return run_written(recipe(options, units, library), options, is_remote=is_remote)


def recipe(options: Namespace, units: Sequence[str], library: str) -> dict[str, Any]:
    """Return the recipe that these options mean."""
    from prony.errors import InputError

    gpus = [unit for unit in units if unit not in _TESTS]
    known = [test for unit in dict.fromkeys(units) for test in _TESTS.get(unit, ())] + list(_GPU_TESTS if gpus else ())
    known += [_OF_ALL_GPUS] if len(gpus) > 1 or (gpus and _OF_ALL_GPUS in options.test) else []
    tests = [test for test in known if not options.test or test in options.test]
    if not tests:
        raise InputError(f"{', '.join(units)} has none of these tests", hint=f"it has {', '.join(known)}")
    workload: dict[str, Any] = {"kind": "hardware", "library": library, "shapes": options.shapes}
    workload |= {"shapes": "model", "layers": options.layer} if options.layer else {}
    workload |= {key: value for key in ("size", "path") if (value := getattr(options, key)) is not None}
    workload |= {"unit": gpus[0]} if gpus else {}
    matrix: dict[str, Any] = {"workload.test": tests}
    if len(gpus) > 1:
        matrix["workload.unit"] = gpus
        # What is no GPU's is run once.
        others = [test for test in tests if test not in _GPU_TESTS]
        matrix["exclude"] = [{"workload.test": test, "workload.unit": unit} for test in others for unit in gpus[1:]]
    return {"name": "hardware", "workload": workload, "matrix": matrix, "measure": {"repeats": options.repeats}}


def _choose_there(options: Namespace) -> tuple[list[str], str]:
    """Return what the agents of a server are asked for; what they have is not known here."""
    return options.unit or [*_TESTS], options.library or "numpy"


def _choose_here(options: Namespace) -> tuple[list[str], str]:
    """Return the units to test on this machine, and what multiplies on its CPU; say plainly that there is no GPU."""
    from prony.app.bench import Bench
    from prony.cli.output import print_note
    from prony.errors import CapacityError

    units: list[str] = options.unit
    if units and all(unit in _TESTS for unit in units) and (options.library or "cpu" not in units):
        return units, options.library or "numpy"
    with Bench.open() as bench:
        (torch,) = bench.engines(["torch"])
    found = [unit.unit for unit in torch.units if unit.unit.startswith("cuda")]
    reason = "" if found else _why_no_gpu(torch.state == "ready", torch.reason)
    if units and not found and any(unit not in _TESTS for unit in units):
        raise CapacityError(reason, hint=torch.hint or "run `prony info` to list the hardware", code="unit_unavailable")
    if not units and not found:
        print_note(f"GPU tests skipped: {reason}")
    library = options.library or ("torch" if torch.state == "ready" else "numpy")
    return units or [*_TESTS, *found], library


def _why_no_gpu(has_torch: bool, reason: str) -> str:
    from prony.instruments.device import detect

    gpus = detect().hardware.gpus
    if not gpus:
        return "no NVIDIA driver on this machine"
    named = ", ".join(gpu.name for gpu in gpus)
    why = "PyTorch sees no CUDA device" if has_torch else f"GPU tests need PyTorch: {reason}"
    return f"{named} found, but {why}"
