"""What one repetition keeps for those who come after it."""

from __future__ import annotations

from pathlib import Path

import numpy as np

from prony.run.child.repetition import _plain


def test_text_that_an_engine_returns_can_be_read_again_without_unpickling(tmp_path: Path) -> None:
    outputs = {"label": np.array(["cat", "dog"], dtype=object), "score": np.ones(2)}
    np.savez(tmp_path / "outputs.npz", **_plain(outputs))  # type: ignore[arg-type]
    with np.load(tmp_path / "outputs.npz") as kept:
        assert kept["label"].tolist() == ["cat", "dog"]
