"""Files of a result folder: what there is, and a piece of one as text."""

from __future__ import annotations

from datetime import datetime

from prony.model.base import Noun


class ResultFile(Noun):
    """`name` is the path in the folder, with slashes; `is_text`: it can be shown."""

    name: str
    size_bytes: int
    modified_at: datetime
    is_text: bool


class ResultFiles(Noun):
    """All files of a result, by name; `left_out` counts those beyond what one answer holds."""

    job_id: str
    files: tuple[ResultFile, ...]
    left_out: int = 0
