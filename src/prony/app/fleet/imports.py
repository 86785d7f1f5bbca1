"""Take experiments that were measured elsewhere, as `prony export` writes them."""

from __future__ import annotations

import asyncio
import shutil
import uuid
from collections.abc import AsyncIterator
from dataclasses import replace

from prony.app.fleet import uploads
from prony.app.fleet.context import FleetContext
from prony.app.fleet.unpack_bundle import BundleOrder, UnpackedBundle
from prony.errors import InputError, NotFoundError
from prony.model.access import Principal
from prony.model.experiment import Experiment
from prony.model.queue import ExperimentView
from prony.model.states import OVER
from prony.store import experiments, transfer


class Imports:
    """Keep experiments that somebody sends, each whole or not at all."""

    def __init__(self, context: FleetContext) -> None:
        self._context = context

    async def add(self, sha256: str, chunks: AsyncIterator[bytes], *, who: Principal) -> ExperimentView:
        """Take the tar of an export or of result folders; the same again changes nothing.

        Raises:
            InputError: It is no experiment, or one that has not ended.
            ConflictError: A different experiment of the same id is here.
        """
        place = self._context.store.home.uploads / f"import-{uuid.uuid4().hex}"
        tar = place.with_suffix(".tar")
        try:
            await uploads.save(chunks, tar, most=self._context.settings.max_upload_bytes)
        except BaseException:
            tar.unlink(missing_ok=True)
            raise
        # From here on it is carried out, even where whoever sent it goes away.
        return await self._context.through(self._take(BundleOrder(tar, place, sha256), who))

    async def _take(self, order: BundleOrder, who: Principal) -> ExperimentView:
        try:
            found = await self._context.bundle_openers.do(order)
            kept = await asyncio.to_thread(self._keep, found, who.name)
        finally:
            order.tar.unlink(missing_ok=True)
            await asyncio.to_thread(shutil.rmtree, order.folder, ignore_errors=True)
        self._context.hook("imported", experiment=kept.id, who=who.name)
        await self._context.write(lambda transaction: transaction.publish("job", f"{kept.id}/"))
        return await self._context.read(lambda connection: experiments.view_of(connection, kept.id))

    def _keep(self, found: UnpackedBundle, who: str) -> Experiment:
        sent = found.bundle.experiment
        if sent.state not in OVER:
            raise InputError(f"experiment {sent.id} is {sent.state}", hint="send it when it has ended")
        # Whoever brought it first stays the one who did.
        named = sent.model_copy(update={"submitted_by": self._first_sender(sent.id) or who})
        return transfer.keep_bundle(
            self._context.store, replace(found.bundle, experiment=named), lambda: list(found.summaries)
        )

    def _first_sender(self, experiment_id: str) -> str:
        try:
            return self._context.store.experiment(experiment_id).submitted_by
        except NotFoundError:
            return ""
