"""Options of the torch engine: how a module is run, checked and set before it is loaded."""

from __future__ import annotations

import difflib
import os
from collections.abc import Mapping
from dataclasses import dataclass
from typing import Any

from prony.errors import InputError
from prony.plugins.engines.torch_calls import MODES
from prony.ports.engine import LoadOptions

_ATTENTION = {"flash": "flash_sdp", "efficient": "mem_efficient_sdp", "cudnn": "cudnn_sdp", "math": "math_sdp"}
_KNOWN = ("mode", "attention", "channels_last", "deterministic")


@dataclass(frozen=True)
class TorchOptions:
    """`attention` is a back-end of scaled dot products; `auto` leaves the choice to PyTorch."""

    mode: str = "eager"
    attention: str = "auto"
    channels_last: bool = False
    deterministic: bool = False

    def details(self) -> dict[str, str]:
        """Return what was chosen, for the result."""
        told = {"mode": self.mode}
        told |= {"attention": self.attention} if self.attention != "auto" else {}
        told |= {"channels_last": "True"} if self.channels_last else {}
        return told | ({"deterministic": "True"} if self.deterministic else {})


def read_options(options: LoadOptions, device: str) -> TorchOptions:
    """Return the options of a recipe.

    Raises:
        InputError: One is not known, has a wrong value, or cannot be had on this device.
    """
    asked = options.options
    for name in asked:
        if name not in _KNOWN:
            near = difflib.get_close_matches(name, _KNOWN, n=1)
            hint = f"did you mean {near[0]}?" if near else f"it takes {', '.join(_KNOWN)}"
            raise InputError(f"torch has no option {name!r}", hint=hint)
    found = TorchOptions(
        mode=_choose("mode", asked, MODES),
        attention=_choose("attention", asked, ("auto", *_ATTENTION)),
        channels_last=read_switch("channels_last", asked),
        deterministic=read_switch("deterministic", asked),
    )
    _check_device(found, device)
    return found


def _choose(name: str, asked: Mapping[str, Any], choices: tuple[str, ...]) -> str:
    value = asked.get(name, choices[0])
    if value not in choices:
        raise InputError(f"option {name} has the unknown value {value!r}", hint=f"use one of {', '.join(choices)}")
    return str(value)


def read_switch(name: str, asked: Mapping[str, Any]) -> bool:
    """Return an option that is on or off; off where it is not given."""
    value = asked.get(name, False)
    if not isinstance(value, bool):
        raise InputError(
            f"option {name} takes true or false, not {value!r}",
            hint=f"write workload.options.{name}: true or false, without quotes",
        )
    return value


def _check_device(found: TorchOptions, device: str) -> None:
    kind = device.split(":", 1)[0]
    if kind != "cuda" and found.mode == "graph":
        raise InputError("mode: graph needs a CUDA device", hint="use mode: eager or compile, or unit: cuda")
    if kind != "cuda" and found.attention != "auto":
        raise InputError("attention needs a CUDA device", hint="remove it, or use unit: cuda")
    if kind == "cuda" and os.environ.get("CUDA_LAUNCH_BLOCKING", "0") not in ("", "0"):
        raise InputError(
            "CUDA_LAUNCH_BLOCKING is set, which makes the times wrong",
            hint="unset CUDA_LAUNCH_BLOCKING and run again",
        )


def apply_torch_options(torch: Any, found: TorchOptions) -> None:
    """Set what holds for the whole process."""
    if found.deterministic:
        os.environ.setdefault("CUBLAS_WORKSPACE_CONFIG", ":4096:8")  # cuBLAS asks for it, before its first use
        torch.use_deterministic_algorithms(True)
    if found.attention != "auto":
        for name, setting in _ATTENTION.items():
            switch = getattr(torch.backends.cuda, f"enable_{setting}", None)
            if switch is not None:
                switch(name == found.attention)
