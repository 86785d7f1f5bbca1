"""The root of every noun: frozen, strict for people, lenient for peers."""

from __future__ import annotations

from typing import Any, Self

from pydantic import BaseModel, ConfigDict

# The context of a validation that reads what another Prony wrote, rather than what a person writes.
FROM_PEER = {"from_peer": True}


class Noun(BaseModel):
    """A value that crosses a process, a disk or the network. Change is a new value."""

    model_config = ConfigDict(frozen=True, extra="forbid", ser_json_inf_nan="constants")

    @classmethod
    def read(cls, data: Any) -> Self:
        """Read what another Prony wrote: keys that only a newer one knows are passed over."""
        return cls.model_validate(data, extra="ignore", context=FROM_PEER)

    @classmethod
    def read_json(cls, text: str | bytes) -> Self:
        return cls.model_validate_json(text, extra="ignore", context=FROM_PEER)
