"""Read prompts and write tokens under a clock, in the engine's child."""

from __future__ import annotations

import time
from array import array
from collections.abc import Callable, Iterator, Mapping
from typing import Any

import numpy as np

from prony.errors import CapacityError, InputError, SutError
from prony.kinds.llm.child.progress import ProgressNote
from prony.kinds.llm.child.speculate import (
    LOOKUP,
    NO_DRAFT,
    Drafter,
    DraftModel,
    PromptLookup,
    require_verifier,
    speculate,
)
from prony.ports.engine import Array, Engine, TracksDeviceMemory
from prony.ports.llm import LlmEngine, LlmOptions, LlmSession, cache_not_empty, empty_cache
from prony.runner.child.loop import Stop
from prony.runner.child.readings import SuiteTest

_WARM_TOKENS = 8
# Other prompts are seeded from here on; so many of them must be slower than the known one, by as much as this.
_OTHER_SEEDS = 10**6
_OTHERS, _FAR_FASTER, _NOTICED_NS = 2, 3, 10**6
_SPECIAL = 3  # ids below are often marks of begin, end and padding


class LlmSuite:
    """One configuration: so long a prompt, so many tokens, so many sequences, behind so many tokens in the cache."""

    def __init__(self, options: Mapping[str, Any], engine: Engine) -> None:
        self.asked = options
        self.session = load_session(options, engine)
        self.device_id = self.session.device_id
        # Who says how long to warm up does not want to wait for a card's clock as well.
        self.settles = self.device_id is not None and bool(options.get("settles", True))
        self.drafter = load_drafter(options, engine, self.session)
        about = self.session.facts()
        check_context(options["context"], about.context)
        self.kv_peak = self.tokens = self.others = 0
        self.vocabulary = about.vocabulary
        self.progress = ProgressNote(options.get("progress", ""))
        self.steps: list[tuple[int, int, int]] = []
        batch, depth = options["batch"], options["depth"]
        self.prompt = make_ids(about.vocabulary, batch, options["prompt"], options["seed"])
        # What is generated follows at least one token.
        self.before = make_ids(about.vocabulary, batch, max(1, depth) if options["generate"] else depth, 1)

    def tests(self) -> Iterator[SuiteTest]:
        """Return the one test; a sample of it is a pass with few tokens, for the warm-up."""
        yield SuiteTest("tokens", "", self._warm, float, read=self._read)

    def facts(self) -> dict[str, Any]:
        """Return what was used and what the model is."""
        return describe_session(self.session, {
            "prompt ids sha256": hash_ids(self.prompt), "ids": "seeded, uniform over the vocabulary",
            "sampling": "greedy; end tokens are ignored", "kv_peak_bytes": str(self.kv_peak),
            "measured tokens": str(self.tokens),
        })  # fmt: skip

    def close(self) -> None:
        """Let go of the model."""
        del self.session

    def _warm(self, count: int) -> list[int]:
        taken = []
        for _ in range(count):
            begin_ns = time.perf_counter_ns()
            if self.prompt.size:
                self._time_prompt(self._other_prompt())
            if self.asked["generate"]:
                self._decode(min(_WARM_TOKENS, self.asked["generate"]))
            taken.append(time.perf_counter_ns() - begin_ns)
        return taken

    def _read(self, stop: Stop) -> list[dict[str, Any]]:
        reset_memory_peak(self.session)
        passes: list[dict[str, Any]] = []
        while len(passes) < self.asked["passes"] and not (stop.asked and passes):
            passes.append(self._pass())
        self._check_reuse([one["prefill"] for one in passes if one["prefill"] is not None])
        return passes

    def _check_reuse(self, spans: list[tuple[int, int]]) -> None:
        """Fail where the same ids were read far faster again than at first, and than other ids are: the engine kept
        what it had read. The warm-up reads other ids, so that the first pass is really the first."""
        if len(spans) < 2:
            return
        first_ns, *later_ns = (end_ns - begin_ns for begin_ns, end_ns in spans)
        again_ns = max(later_ns)
        for _ in range(_OTHERS):
            if first_ns < max(_FAR_FASTER * again_ns, again_ns + _NOTICED_NS):
                return
            begin_ns, end_ns = self._time_prompt(self._other_prompt())
            first_ns = min(first_ns, end_ns - begin_ns)
        if first_ns >= max(_FAR_FASTER * again_ns, again_ns + _NOTICED_NS):
            raise cache_not_empty(
                f"the prompt was read in {again_ns / 1e6:.3g} ms at most the second time, but in "
                f"{first_ns / 1e6:.3g} ms the first time: the engine kept tokens of the prompt in its cache"
            )

    def _other_prompt(self) -> Array:
        """Return ids that were not read before, as many as the prompt has."""
        self.others += 1
        batch, length = self.prompt.shape
        return make_ids(self.vocabulary, batch, length, self.asked["seed"] + _OTHER_SEEDS + self.others)

    def _pass(self) -> dict[str, Any]:
        """Read the prompt and write tokens, each into a cache that was emptied and filled to its depth before."""
        prefill = self._prefill() if self.prompt.size else None
        begin_ns, stamps = self._decode(self.asked["generate"]) if self.asked["generate"] else (0, array("q"))
        written = len(stamps) * self.asked["batch"]
        self.tokens += self.prompt.size + written
        if stamps:
            self.progress.add(written, stamps[-1] - begin_ns)
        elif prefill is not None:
            self.progress.add(self.prompt.size, prefill[1] - prefill[0])
        return {"prefill": prefill, "decode_begin_ns": begin_ns, "stamps": stamps.tolist(), "steps": self.steps}

    def _time_prompt(self, ids: Array) -> tuple[int, int]:
        empty_cache(self.session)
        if self.asked["depth"]:
            self.session.prefill(self.before)
        begin_ns = time.perf_counter_ns()
        self.session.prefill(ids)
        return begin_ns, time.perf_counter_ns()

    def _prefill(self) -> tuple[int, int]:
        begin_ns, end_ns = self._time_prompt(self.prompt)
        self.kv_peak = max(self.kv_peak, self.session.kv_bytes())
        return begin_ns, end_ns

    def _decode(self, count: int) -> tuple[int, array[int]]:
        empty_cache(self.session)
        last = self.session.prefill(self.before)
        if self.drafter is not None:
            return self._speculate(self.drafter, [*self.before[0].tolist(), int(last[0])], count)
        stamps, stamp = stamper()
        begin_ns = time.perf_counter_ns()
        written = self.session.generate(last, count, stamp)
        check_count(written, stamps, (self.asked["batch"], count))
        self.kv_peak = max(self.kv_peak, self.session.kv_bytes())
        return begin_ns, stamps

    def _speculate(self, drafter: Drafter, text: list[int], count: int) -> tuple[int, array[int]]:
        """Write tokens by guesses; all tokens of a step have its stamp."""
        clock, stamps, self.steps = time.perf_counter_ns, array("q"), []
        drafter.begin(text)
        begin_ns = clock()
        for step in speculate(self.session, drafter, text, count, self.asked["draft_tokens"]):
            at_ns = clock()
            stamps.extend([at_ns] * len(step.tokens))
            self.steps.append((at_ns, len(step.tokens), step.drafted))
        check_count(np.asarray([text[-count:]]), stamps, (1, count))
        self.kv_peak = max(self.kv_peak, self.session.kv_bytes())
        return begin_ns, stamps


def reset_memory_peak(session: LlmSession) -> None:
    """Forget the highest device memory so far, where the engine counts it."""
    if isinstance(session, TracksDeviceMemory):
        session.reset_memory_peak()


def load_session(options: Mapping[str, Any], engine: Engine) -> LlmSession:
    """Load the model that the options name."""
    if not isinstance(engine, LlmEngine):
        raise InputError(
            f"{engine.name} does not run language models",
            code="no_llm_engine",
            hint="choose an engine for language models, such as llamacpp",
        )
    asked = LlmOptions(
        unit=options["unit"], threads=options["threads"], precision=options["precision"], batch=options["batch"],
        context=options["context"], kv_type=options.get("kv_type", "default"), options=options["options"],
        cache=options.get("cache", ""),
    )  # fmt: skip
    check_kv_type(engine, asked.kv_type)
    return engine.load_llm(options["model"], asked)


def check_context(wanted: int, most: int) -> None:
    """Refuse more tokens than the model was made for; 0: any."""
    if most and wanted > most:
        raise InputError(
            f"the recipe needs {wanted} tokens of context, but the model has {most}",
            hint="lower workload.prompt, workload.generate or workload.depth",
            code="context_exceeded",
        )


def check_kv_type(engine: Any, kv_type: str) -> None:
    """Refuse a type of the cache that an engine does not have."""
    known: tuple[str, ...] = getattr(engine, "kv_types", ())
    if kv_type not in ("default", *known):
        hint = f"supported: {', '.join(known)}" if known else "llamacpp supports f16, q8_0, q4_0 and others"
        raise CapacityError(
            f"{engine.name} does not support a cache of type {kv_type}", hint=hint, code="kv_type_unavailable"
        )


def load_drafter(options: Mapping[str, Any], engine: Engine, session: LlmSession) -> Drafter | None:
    """Return what guesses for a model, as its job asks; None where nothing does.

    Raises:
        InputError: The draft model has another vocabulary.
        CapacityError: The engine cannot check several tokens in one step.
    """
    asked = options.get("draft", NO_DRAFT)
    if asked == NO_DRAFT:
        return None
    require_verifier(session, engine.name)
    if asked == LOOKUP:
        return PromptLookup()
    draft = load_session({**options, "model": options["draft_model"]}, engine)
    mine, other = session.facts(), draft.facts()
    if (mine.vocabulary, mine.tokenizer_sha256) != (other.vocabulary, other.tokenizer_sha256):
        raise InputError(
            f"the draft model has another vocabulary ({other.vocabulary} tokens) than the model ({mine.vocabulary})",
            hint="use a smaller model of the same family, or draft: lookup", code="draft_mismatch",
        )  # fmt: skip
    return DraftModel(draft)


def describe_session(session: LlmSession, more: Mapping[str, str]) -> dict[str, Any]:
    """Return what was used and what the model is, with `more` that a suite knows.

    No token was cached: `empty_cache` asked the engine before each prompt, or else the run has failed.
    """
    effect, about = session.effect(), session.facts()
    memory = session.device_memory() if isinstance(session, TracksDeviceMemory) else None
    return {
        "device": effect.device, "precision": effect.precision, "threads": effect.threads,
        "details": {
            **effect.details, "architecture": about.architecture, "vocabulary": str(about.vocabulary),
            "context of the model": str(about.context), "tokenizer sha256": about.tokenizer_sha256 or "none",
            "chat template sha256": about.template_sha256 or "none", "cached tokens": "0",
            "weights_bytes": str(about.weights_bytes), "kv_token_bytes": str(about.kv_token_bytes),
            "parameters": str(about.parameters or ""),
            "vram_peak_bytes": "" if memory is None else str(memory.allocated_peak), **more,
        },
    }  # fmt: skip


def make_ids(vocabulary: int, batch: int, length: int, seed: int) -> Array:
    """Return ids that are the same for every engine: seeded, uniform over the vocabulary, other ones in every row."""
    low = min(_SPECIAL, vocabulary - 1)
    return np.random.Generator(np.random.PCG64(seed)).integers(low, vocabulary, (batch, length), dtype=np.int32)


def hash_ids(ids: Array) -> str:
    """Return the SHA-256 of ids."""
    import hashlib

    return hashlib.sha256(np.ascontiguousarray(ids, np.int32).tobytes()).hexdigest()


def stamper() -> tuple[array[int], Callable[[], None]]:
    """Return an array and what adds the time to it, and does nothing else."""
    stamps: array[int] = array("q")
    add, clock = stamps.append, time.perf_counter_ns

    def stamp() -> None:
        add(clock())

    return stamps, stamp


def check_count(written: Array, stamps: array[int], wanted: tuple[int, int]) -> None:
    """Fail a run that did not write exactly what it was asked for: its rate would be of something else."""
    if written.shape != wanted or len(stamps) != wanted[1]:
        raise SutError(
            f"{wanted[0]} sequences of {wanted[1]} tokens were requested, but {list(written.shape)} came with "
            f"{len(stamps)} timestamps",
            hint="this is a fault in the engine: token rates would be wrong",
            code="token_count",
        )
