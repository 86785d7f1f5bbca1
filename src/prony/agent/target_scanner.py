"""Find out what the machines of a target can do: once, by a job there that describes its machine."""

from __future__ import annotations

import hashlib
import shutil
import tempfile
import threading
from pathlib import Path

from prony import __version__
from prony.agent.logs import AgentLog
from prony.agent.settings import AgentSettings
from prony.app.targets import open_executor
from prony.dispatch.facts import facts_of
from prony.dispatch.placing import next_look_s, placement_key
from prony.errors import CapacityError, NotFoundError, PronyError, StoreError, TransportError
from prony.model.agent import Capabilities, Fact
from prony.model.base import Noun
from prony.model.target import Handle, Payload, PlacePhase, Target, TargetOffer
from prony.ports.executor import Executor
from prony.runner.folder import write_noun
from prony.runner.job_folder import DESCRIPTION, RESULT, write_question
from prony.store.folder import read_noun
from prony.store.home import Home
from prony.store.placements import Placements

_FILE = "description.json"
_UNREACHED_S = 10.0


class TargetDescription(Noun):
    """What a machine of a target said of itself, and of which target and release that holds."""

    target: Target
    version: str
    described: Capabilities


class TargetScanner:
    """What a target's machines can do. Blocking: the first look waits for a job there; later ones ask nobody.

    The description is kept in `folder`, and holds until the target's options or Prony's version change.
    """

    def __init__(self, folder: Path, home: Home, settings: AgentSettings, target: Target, log: AgentLog) -> None:
        self.home = home
        self._file = folder / _FILE
        self._settings = settings
        self._target = target
        self._log = log
        self._given_up = threading.Event()

    @property
    def device_name(self) -> str:
        return self._target.name

    def close(self) -> None:
        """Wait no longer for the answer; the job stays, and the next life finds it."""
        self._given_up.set()

    def look(self) -> Capabilities:
        """Return what the target's machines offer, with what this agent's owner allows."""
        found = self._read_kept() or self._ask()
        labels = dict(self._settings.labels)
        offer = TargetOffer(name=self._target.name, kind=self._target.kind, slots=self._settings.slots)
        told: dict[str, Fact] = {"target": self._target.name, "target.kind": self._target.kind}
        facts = told
        if found.device is not None:
            facts = facts_of(
                found.device, found.engines, abilities=found.abilities, labels=labels, cached_models=(),
                policy={**self._settings.policy(), **told, "gpu.uuid": found.facts.get("gpu.uuid", ())},
            )  # fmt: skip
        return found.model_copy(update={"labels": labels, "facts": facts, "target": offer})

    def _read_kept(self) -> Capabilities | None:
        try:
            kept = read_noun(self._file, TargetDescription)
        except (NotFoundError, StoreError):  # never asked, or of a release that wrote it otherwise
            return None
        is_valid = kept.target == self._target and kept.version == __version__
        return kept.described if is_valid else None

    def _ask(self) -> Capabilities:
        """Have a job describe its machine. It has one key for one question, so that it is asked once."""
        question = hashlib.sha256(f"{self._target.model_dump_json()} {__version__}".encode()).hexdigest()[:12]
        key = placement_key(f"describe-{question}", 1, Placements(self.home).home_id())
        executor = open_executor(self._target, self.home)
        self._log.info("reading the hardware of the target's machines", target=self._target.name)
        with tempfile.TemporaryDirectory(prefix="prony-describe-") as scratch:
            handle = self._submit(executor, key, Path(scratch))
            reason = self._wait(executor, handle)
            described = self._fetch(executor, handle, Path(scratch, "in"), reason)
        write_noun(self._file, TargetDescription(target=self._target, version=__version__, described=described))
        return described

    def _submit(self, executor: Executor, key: str, scratch: Path) -> Handle:
        while True:
            folder = scratch / "out"
            shutil.rmtree(folder, ignore_errors=True)
            write_question(folder)
            try:
                return executor.submit(Payload(key=key, folder=str(folder)))
            except TransportError as exc:
                self._log.warning("the target cannot be reached", target=self._target.name, reason=exc.message)
                self._pause(_UNREACHED_S)

    def _wait(self, executor: Executor, handle: Handle) -> str:
        """Wait until the job has ended, however long that takes; return why it did, where it did not end well."""
        looks, told, phase = 0, "", PlacePhase.SUBMITTED
        while True:
            try:
                seen = executor.look([handle], {})[0]
            except TransportError as exc:
                self._log.warning("the target cannot be reached", target=self._target.name, reason=exc.message)
                self._pause(_UNREACHED_S)
                continue
            if seen.phase in (PlacePhase.ENDED, PlacePhase.LOST):
                return seen.reason
            if seen.reason and seen.reason != told:
                told = seen.reason
                self._log.info("waiting for the target's hardware description", phase=seen.phase.value, reason=told)
            looks = looks + 1 if seen.phase is phase else 0
            phase = seen.phase
            self._pause(next_look_s(phase, looks))

    def _fetch(self, executor: Executor, handle: Handle, into: Path, reason: str) -> Capabilities:
        try:
            executor.fetch(handle, into)
            return read_noun(into / RESULT / DESCRIPTION, Capabilities)
        except NotFoundError as exc:
            raise CapacityError(
                f"no machine of {self._target.name} reported its hardware: {reason or 'no report came'}",
                hint=f"run prony targets check {self._target.name}",
                code="target_not_described",
            ) from exc
        finally:
            executor.end([handle])

    def _pause(self, seconds: float) -> None:
        if self._given_up.wait(seconds):
            raise PronyError("stopped before the target's machines reported their hardware")
