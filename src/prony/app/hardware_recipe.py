"""Make a recipe that tests units of a machine: its CPU, its disk, its GPUs."""

from __future__ import annotations

from dataclasses import dataclass
from typing import Any

from prony.errors import InputError

# The tests of a unit; any other unit is a GPU.
UNIT_TESTS = {"cpu": ("cpu-memory", "cpu-gemm"), "disk": ("disk",)}
GPU_TESTS = ("gpu-memory", "gpu-gemm", "gpu-transfer", "gpu-launch")
COLLECTIVE_TEST = "gpu-collective"  # run once where there are two GPUs, or where it is asked for


@dataclass(frozen=True)
class HardwareRequest:
    """Units to test; without `tests`, every test that they have."""

    units: tuple[str, ...] = tuple(UNIT_TESTS)
    tests: tuple[str, ...] = ()
    library: str = "numpy"
    shapes: str = "quick"
    layers: tuple[str, ...] = ()
    size: str | None = None
    path: str | None = None
    repeats: int = 5


def draft_hardware_recipe(request: HardwareRequest) -> dict[str, Any]:
    """Return the recipe as a document.

    Raises:
        InputError: The units have none of the tests that were asked for.
    """
    units = tuple(dict.fromkeys(request.units))
    gpus = [unit for unit in units if unit not in UNIT_TESTS]
    tests = _choose_tests(request, units, gpus)
    workload: dict[str, Any] = {"kind": "hardware", "library": request.library, "shapes": request.shapes}
    workload |= {"shapes": "model", "layers": list(request.layers)} if request.layers else {}
    workload |= {key: value for key in ("size", "path") if (value := getattr(request, key)) is not None}
    workload |= {"unit": gpus[0]} if gpus else {}
    matrix: dict[str, Any] = {"workload.test": tests}
    if len(gpus) > 1:
        matrix["workload.unit"] = gpus
        # What is no GPU's is run once.
        others = [test for test in tests if test not in GPU_TESTS]
        matrix["exclude"] = [{"workload.test": test, "workload.unit": unit} for test in others for unit in gpus[1:]]
    return {"name": "hardware", "workload": workload, "matrix": matrix, "measure": {"repeats": request.repeats}}


def _choose_tests(request: HardwareRequest, units: tuple[str, ...], gpus: list[str]) -> list[str]:
    known = [test for unit in units for test in UNIT_TESTS.get(unit, ())] + list(GPU_TESTS if gpus else ())
    known += [COLLECTIVE_TEST] if len(gpus) > 1 or (gpus and COLLECTIVE_TEST in request.tests) else []
    tests = [test for test in known if not request.tests or test in request.tests]
    if not tests:
        raise InputError(f"{', '.join(units)} has none of these tests", hint=f"it has {', '.join(known)}")
    return tests
