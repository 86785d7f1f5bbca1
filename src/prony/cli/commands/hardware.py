"""`prony hardware`: measure what this machine's hardware does without a model."""

from __future__ import annotations

from argparse import ArgumentParser, Namespace
from collections.abc import Sequence

from prony.app.hardware_recipe import COLLECTIVE_TEST, GPU_TESTS, UNIT_TESTS, HardwareRequest, draft_hardware_recipe
from prony.cli.arguments import add_recipe_run

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
        choices=(*UNIT_TESTS["cpu"], "disk", *GPU_TESTS, COLLECTIVE_TEST),
        help="only this test of the unit; repeatable",
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
    written = draft_hardware_recipe(request_hardware(options, units, library))
    return run_written(written, options, is_remote=is_remote)


def request_hardware(options: Namespace, units: Sequence[str], library: str) -> HardwareRequest:
    """Return what these options ask for."""
    return HardwareRequest(
        units=tuple(units), tests=tuple(options.test), library=library, shapes=options.shapes,
        layers=tuple(options.layer), size=options.size, path=options.path, repeats=options.repeats,
    )  # fmt: skip


def _choose_there(options: Namespace) -> tuple[list[str], str]:
    """Return what the agents of a server are asked for; what they have is not known here."""
    return options.unit or [*UNIT_TESTS], options.library or "numpy"


def _choose_here(options: Namespace) -> tuple[list[str], str]:
    """Return the units to test on this machine, and what multiplies on its CPU; say plainly that there is no GPU."""
    from prony.app.bench import Bench
    from prony.cli.output import print_note
    from prony.errors import CapacityError

    units: list[str] = options.unit
    if units and all(unit in UNIT_TESTS for unit in units) and (options.library or "cpu" not in units):
        return units, options.library or "numpy"
    with Bench.open() as bench:
        (torch,) = bench.engines(["torch"])
    found = [unit.unit for unit in torch.units if unit.unit.startswith("cuda")]
    reason = "" if found else _why_no_gpu(torch.state == "ready", torch.reason)
    if units and not found and any(unit not in UNIT_TESTS for unit in units):
        raise CapacityError(reason, hint=torch.hint or "run `prony info` to list the hardware", code="unit_unavailable")
    if not units and not found:
        print_note(f"GPU tests skipped: {reason}")
    library = options.library or ("torch" if torch.state == "ready" else "numpy")
    return units or [*UNIT_TESTS, *found], library


def _why_no_gpu(has_torch: bool, reason: str) -> str:
    from prony.instruments.device import detect

    gpus = detect().hardware.gpus
    if not gpus:
        return "no NVIDIA driver on this machine"
    named = ", ".join(gpu.name for gpu in gpus)
    why = "PyTorch sees no CUDA device" if has_torch else f"GPU tests need PyTorch: {reason}"
    return f"{named} found, but {why}"
