"""One load as it is handed to whoever writes it in a format of other programs."""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import dataclass, field
from typing import Any

from prony.model.experiment_data import Entry
from prony.model.sweep import Bottleneck


@dataclass(frozen=True)
class ExportedLoad:
    """`written` is a recipe in another program's dialect as its author wrote it, empty where it is Prony's own;
    `bottleneck` is what limited the load, where that was looked for."""

    entry: Entry
    written: Mapping[str, Any] = field(default_factory=dict)
    bottleneck: Bottleneck | None = None
    dialect: str = ""
