"""The processes in which a server opens the results that agents bring."""

from __future__ import annotations

from prony.app.fleet.unpack_result import MergeOrder, UnpackedResult, UnpackOrder, carried_out
from prony.app.fleet.work_pool import Trade, WorkPool
from prony.errors import StoreError


def _lost() -> StoreError:
    return StoreError(
        "the process that opens results ended while it read this one",
        hint="does the system kill it for want of memory? see the server's log, and give it more",
        code="opener_lost",
    )


OPENING: Trade[UnpackOrder | MergeOrder, UnpackedResult] = Trade(
    "opens results", "prony.app.fleet.unpack_result", carried_out, on_loss=_lost, on_limit=_lost
)


class Openers(WorkPool[UnpackOrder | MergeOrder, UnpackedResult]):
    def __init__(self, most: int) -> None:
        super().__init__(OPENING, most)

    async def open(self, order: UnpackOrder | MergeOrder) -> UnpackedResult:
        return await self.do(order)
