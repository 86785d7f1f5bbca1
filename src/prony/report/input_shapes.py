"""Tell which input sizes Prony chose because the model leaves them open, and how to change them."""

from __future__ import annotations

from prony.model.experiment_data import Entry
from prony.model.result import InputFacts
from prony.ports.engine import shape_flag

_MOST_SHOWN = 2


def format_chosen_shapes(entry: Entry) -> str:
    """Return the shapes with a size that Prony chose, as a table shows them: `image 1×3×224×224`; empty if none."""
    chosen = [one for one in entry.result.inputs if one.chosen_axes or one.read_beside]
    shown = ", ".join(f"{one.name} {'×'.join(map(str, one.shape))}" for one in chosen[:_MOST_SHOWN])
    more = f" and {len(chosen) - _MOST_SHOWN} more" if len(chosen) > _MOST_SHOWN else ""
    is_guess = any(one.chosen_axes for one in chosen)
    return f"{shown}{more}{' (guess)' if is_guess else ''}"


def describe_chosen_shapes(entry: Entry) -> str | None:
    """Return the sentence that marks every guess and names what changes it; None where nothing was guessed."""
    chosen = _list_chosen(entry)
    if not chosen:
        return None
    axes = dict.fromkeys(axis for one in chosen for axis in one.chosen_axes)
    flags = " ".join(shape_flag(one.name, one.shape) for one in chosen)
    paths = "workload.inputs.axes or workload.inputs.shapes"
    return (
        f"Guessed, because the model does not fix it: {', '.join(axes)}. Other sizes change the times. "
        f"To change them: {paths} in a recipe, or prony bench {flags}."
    )


def _list_chosen(entry: Entry) -> list[InputFacts]:
    return [one for one in entry.result.inputs if one.chosen_axes]
