"""Run language models: bring engine and model together, and keep the stamps of every token."""

from __future__ import annotations

from collections.abc import Callable, Sequence
from dataclasses import dataclass, replace
from pathlib import Path

from prony.errors import InputError
from prony.kinds.llm.runner.answers import ANSWERS, AskedPrompts, encode_prompts, keep_answers
from prony.kinds.llm.runner.live import ProgressReader
from prony.kinds.llm.runner.quality import Predictions, Predictor, QualityFound, reference_of
from prony.kinds.llm.schema import LlmWorkload
from prony.kinds.llm.tokens import TokenTimes, token_frame
from prony.model.event import Live
from prony.model.job import Job
from prony.model.result import Effective, Repetition
from prony.ports import plugins
from prony.ports.models import FOLDER_MARKS, FetchOptions, find_folder_formats, scheme_of
from prony.runner.child.wire import ChildOrder, Message
from prony.runner.context import RunContext
from prony.runner.folder import ResultFolder, write_frame
from prony.runner.host import EngineHost
from prony.runner.models import fetch
from prony.runner.scorer import score_by_recipe
from prony.runner.suites import SuiteJob, SuiteRunner

_SUITE = "prony.kinds.llm.child.suite:LlmSuite"
# A cache that grows and kernels that are chosen by shape are warm after the second time.
_WARM_PASSES = 2
_GIVEN = {
    "unit", "prompt", "generate", "batch", "depth", "precision", "kv_type", "passes", "seed", "options", "draft",
    "draft_tokens",
}  # fmt: skip


@dataclass
class LlmJob(SuiteJob):
    """One configuration's way through the runner."""

    model: Path = Path()
    draft_model: Path = Path()
    cache: Path = Path()
    threads: int = 1
    quality: QualityFound | None = None
    asked: AskedPrompts | None = None
    scratch: Path = Path()
    reader: ProgressReader | None = None

    def order(self) -> ChildOrder:
        measure = self.job.measure
        warmup = _WARM_PASSES if measure.warmup == "auto" else int(measure.warmup)
        index = len(self.repetitions)
        progress = self.scratch / f"progress-{self.job.id}-{index}"
        self.reader = ProgressReader(progress, index)
        options = self.options() | {"progress": str(progress)}
        return ChildOrder(op="tests", suite=self.suite, options=options, warmup=warmup)

    def read_live(self) -> Live | None:
        return None if self.reader is None else self.reader.read()

    def options(self) -> Message:
        """Return what the child needs to know."""
        work = self.job.work(LlmWorkload)
        given = work.model_dump(mode="json", include=_GIVEN) | {
            "model": str(self.model), "draft_model": str(self.draft_model), "threads": self.threads,
            "context": work.context, "settles": self.job.measure.warmup == "auto", "cache": str(self.cache),
        }  # fmt: skip
        if self.asked is not None:
            given |= {"context": self.asked.context, "prompts_file": str(self.asked.file)}
        return given

    def keep(self, repetition: Repetition, readings: Sequence[Message]) -> list[float]:
        work, is_first = self.job.work(LlmWorkload), self.folder.result.effective is None
        quality = self.quality.values if self.quality is not None and is_first else None
        frame = token_frame(repetition.index, readings, quality)
        if self.asked is not None:
            keep_answers(self.folder, self.asked, repetition.index, readings)
        write_frame(self.folder.requests_part(repetition.index), frame)
        found = TokenTimes(frame).numbers(prompt=work.prompt, batch=work.batch)
        return [found["decode_tok_s" if "decode_tok_s" in found else "prefill_tok_s"]]

    def effective(self, host: EngineHost, facts: Message) -> Effective:
        details = facts["details"] | ({} if self.quality is None else {"reference": self.quality.reference})
        details |= {} if self.asked is None else self.asked.notes
        return Effective(
            engine=host.name, engine_version=host.hello["version"], python=host.hello["python_version"],
            device=facts["device"], precision=facts["precision"], threads=facts["threads"], details=details,
        )  # fmt: skip

    def score(self, say: Callable[[str], None]) -> None:
        effective = self.folder.result.effective
        if self.asked is None or effective is None:
            return
        if trouble := score_by_recipe(self.folder.path, self.asked.options, self.job.limits.memory, say):
            told = effective.model_copy(update={"details": effective.details | {"scorer": trouble}})
            self.folder.update(effective=told)


class LlmMaker:
    """Makes what runs a job: its engine is started, its model fetched, its predictions compared."""

    def __init__(self, around: RunContext) -> None:
        self.around = around
        self._predictions: Predictions | None = None

    def __call__(self, folder: ResultFolder, runner: SuiteRunner) -> LlmJob:
        job = folder.job
        work = job.work(LlmWorkload)
        host = runner.host(work.engine)
        files, facts = fetch(
            work.model, self._fetching(job, work.model, host), self.around.tell_fetching(job, work.model)
        )
        folder.update(model=facts)
        draft = Path()
        if work.draft_model is not None:
            progress = self.around.tell_fetching(job, work.draft_model)
            draft = fetch(work.draft_model, self._fetching(job, work.draft_model, host), progress)[0].path
        cpus = runner.environment.device.hardware.cpu.usable_cores
        threads = work.threads or max(1, int(cpus or 1))
        cache = self.around.cache / "converted"
        mine = Predictor(host, files.path, work.unit, work.precision, threads, dict(work.options), work.kv_type, cache)
        asked = encode_prompts(mine, job, runner.scratch) if work.task is not None else None
        quality = self._compare(job, runner, mine) if work.quality else None
        suite = _SUITE if asked is None else ANSWERS
        return LlmJob(
            folder,
            work.engine,
            suite,
            model=files.path,
            draft_model=draft,
            cache=cache,
            threads=threads,
            quality=quality,
            asked=asked,
            scratch=runner.scratch,
        )

    def _compare(self, job: Job, runner: SuiteRunner, mine: Predictor) -> QualityFound:
        work = job.work(LlmWorkload)
        if self._predictions is None:
            self._predictions = Predictions(runner.scratch, job)
        model = None
        if work.reference is not None:
            host = runner.host(work.reference_engine or work.engine)
            progress = self.around.tell_fetching(job, work.reference)
            model = fetch(work.reference, self._fetching(job, work.reference, host), progress)[0].path
        return self._predictions.compare(mine, reference_of(mine, work, runner.host, model))

    def _fetching(self, job: Job, model: str, host: EngineHost) -> FetchOptions:
        return replace(find_fetch_options(job, model, host.name, self.around), python=host.python)


def find_fetch_options(job: Job, model: str, engine: str, context: RunContext) -> FetchOptions:
    """Return how a model of a job is fetched for an engine.

    Raises:
        InputError: It is a folder that the engine does not load.
    """
    work = job.work(LlmWorkload)
    formats: tuple[str, ...] = plugins.load_plugin(plugins.ENGINES, engine).formats
    folder = context.base / Path(model.removeprefix("file:"))
    if scheme_of(model) == "file" and folder.is_dir():
        check_folder(folder, engine, formats)
        formats = ()
    return FetchOptions(
        cache=context.cache, formats=formats, checksum=work.checksum if model == work.model else None,
        base=context.base, policy=context.policy,
    )  # fmt: skip


def check_folder(folder: Path, engine: str, formats: Sequence[str]) -> None:
    """Refuse a folder that the engine does not load.

    Raises:
        InputError: It loads no folders, or others, with the code `format_unavailable`.
    """
    loaded = [one for one in formats if one in FOLDER_MARKS]
    if not loaded:
        raise InputError(
            f"{folder.name} is a folder, but {engine} loads {', '.join(formats)}",
            hint="name a file in it, or choose another engine", code="format_unavailable",
        )  # fmt: skip
    found = find_folder_formats({one.name for one in folder.iterdir()})
    if not set(loaded) & set(found):
        marks = " or ".join(FOLDER_MARKS[one] for one in loaded)
        raise InputError(
            f"{folder.name} has no {marks}, which {engine} needs",
            hint="`prony docs llm` lists the formats of each engine", code="format_unavailable",
        )  # fmt: skip
