"""Set a recipe's options on ONNX Runtime's session and execution provider."""

from __future__ import annotations

import difflib
from collections.abc import Mapping
from typing import Any

from prony.errors import InputError

Scalar = str | int | float | bool
PROVIDER_PREFIX = "provider."
# Configuration entries that ONNX Runtime takes by name; it ignores the ones that it does not know.
_ENTRY_PREFIXES = ("session.", "optimization.", "mlas.", "memory.", "ep.")
_LEVELS = {
    "disable": "ORT_DISABLE_ALL",
    "basic": "ORT_ENABLE_BASIC",
    "extended": "ORT_ENABLE_EXTENDED",
    "layout": "ORT_ENABLE_LAYOUT",
    "all": "ORT_ENABLE_ALL",
}
_MODES = {"sequential": "ORT_SEQUENTIAL", "parallel": "ORT_PARALLEL"}
_PLAIN: dict[str, type] = {
    "inter_op_num_threads": int,
    "enable_mem_pattern": bool,
    "enable_mem_reuse": bool,
    "enable_cpu_mem_arena": bool,
    "use_deterministic_compute": bool,
}
_KNOWN = ("graph_optimization_level", "execution_mode", *_PLAIN)


def apply_options(vendor: Any, session_options: Any, options: Mapping[str, Scalar]) -> dict[str, str]:
    """Set every option on the session and return the provider's, without their prefix."""
    provider: dict[str, str] = {}
    for key, value in options.items():
        if key.startswith(PROVIDER_PREFIX):
            provider[key.removeprefix(PROVIDER_PREFIX)] = _text(value)
        elif key.startswith(_ENTRY_PREFIXES):
            session_options.add_session_config_entry(key, _text(value))
        elif key == "graph_optimization_level":
            session_options.graph_optimization_level = _chosen(vendor.GraphOptimizationLevel, _LEVELS, key, value)
        elif key == "execution_mode":
            session_options.execution_mode = _chosen(vendor.ExecutionMode, _MODES, key, value)
        else:
            _set_plain(session_options, key, value)
    return provider


def _set_plain(session_options: Any, key: str, value: Scalar) -> None:
    if key not in _PLAIN:
        near = difflib.get_close_matches(key, _KNOWN, n=1)
        known = f"{', '.join(_KNOWN)}, and names that begin with {', '.join((*_ENTRY_PREFIXES, PROVIDER_PREFIX))}"
        raise InputError(
            f"onnxruntime has no option {key!r}", hint=f"did you mean {near[0]}?" if near else f"known: {known}"
        )
    if not isinstance(value, _PLAIN[key]):
        raise InputError(f"option {key} takes {_PLAIN[key].__name__}, not {value!r}")
    setattr(session_options, key, value)


def _chosen(enumeration: Any, names: Mapping[str, str], key: str, value: Scalar) -> Any:
    if value not in names:
        raise InputError(f"option {key} is {value!r}", hint=f"one of {', '.join(names)}")
    return getattr(enumeration, names[str(value)])


def _text(value: Scalar) -> str:
    return str(int(value)) if isinstance(value, bool) else str(value)
