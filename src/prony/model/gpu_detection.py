"""What each way of asking says of the GPUs of a machine, and where they disagree."""

from __future__ import annotations

from typing import Literal

from prony.model.base import Noun

FactValue = str | int | float | bool
GpuFields = dict[str, FactValue]


class LayerAnswer(Noun):
    """What one layer (NVML, nvidia-smi, an engine, another vendor's library) saw; `note` says why it saw nothing."""

    layer: str
    state: Literal["asked", "absent", "failed"]
    cards: tuple[GpuFields, ...] = ()
    # Of the layer as a whole: versions, the cards that it was told to leave out.
    about: GpuFields = {}
    note: str = ""


class ProductTrial(Noun):
    """A product of two matrices in one number format, really computed: what came of it."""

    format: str
    worked: bool
    text: str = ""


class DetectedGpu(Noun):
    """One card. `facts` has the word of the first layer that tells; `seen_by` that of each."""

    facts: GpuFields
    layers: tuple[str, ...]
    seen_by: dict[str, GpuFields] = {}
    disagreements: tuple[str, ...] = ()
    # By its compute capability: what its tensor cores have, which no software needs to reach.
    tensor_generation: int | None = None
    tensor_formats: tuple[str, ...] = ()
    trials: tuple[ProductTrial, ...] = ()
    notes: tuple[str, ...] = ()


class GpuDetection(Noun):
    """Every card once, and what each layer answered."""

    cards: tuple[DetectedGpu, ...] = ()
    layers: tuple[LayerAnswer, ...] = ()
    # What was computed on the CPU, where products were tried.
    cpu_trials: tuple[ProductTrial, ...] = ()
