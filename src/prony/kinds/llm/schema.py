"""What a recipe says of a language model that an engine hosts."""

from __future__ import annotations

from collections.abc import Mapping
from typing import ClassVar, Literal, Self

from pydantic import Field, model_validator

from prony.kinds.llm.tokens import METRIC_UNITS
from prony.model.metric import QUALITY_FAMILIES
from prony.model.workload import Option, Scalar, Workload

LlmPrecision = Literal["default", "fp32", "fp16", "bf16", "int8"]
KvType = Literal["default", "f32", "f16", "bf16", "q8_0", "q5_1", "q5_0", "q4_1", "q4_0"]


class LlmWorkload(Workload):
    """A language model on an engine, in its own process: how fast it reads prompts and writes tokens."""

    headline: ClassVar[str | None] = None
    later_keys: ClassVar[Mapping[str, Scalar]] = {"draft": "none", "draft_tokens": 4}
    families: ClassVar[Mapping[str, tuple[str, tuple[str, ...]]]] = {
        "decode": ("decode_tok_s.p50", ("decode_tok_s", "itl_ms", "tpot_ms", "mbu")),
        "prefill": ("prefill_tok_s.p50", ("prefill_tok_s", "ttft_ms", "mfu")),
        "memory": ("rss_peak_mib.p50", ("rss_peak_mib", "vram_run_peak_mib")),
        **QUALITY_FAMILIES,
    }
    measure_keys: ClassVar[tuple[str, ...] | None] = ("repeats", "warmup", "until")
    wrong_section: ClassVar[str] = "`load` is for services; for a language model, use `measure`"
    wrong_measure_key: ClassVar[str] = (
        "measure.{} is for models; for a language model, set measure.repeats (fresh processes) and workload.passes "
        "(passes in each process)"
    )
    sample_noun: ClassVar[str] = "token"
    unit_noun: ClassVar[str] = "tokens"
    sample_columns: ClassVar[tuple[str, ...]] = ("at_ns", "name", "value")
    named_fields: ClassVar[Mapping[str, str]] = {"engine": "engines", "task": "tasks"}

    kind: Literal["llm"] = Field(description="which kind of workload this is")
    model: str = Field(
        min_length=1,
        description="a GGUF file, a Hugging Face folder, hf:ORG/NAME@REVISION, zoo:llm-NAME, https:// or s3://",
        examples=["zoo:llm-1m", "models/mine.gguf"],
        json_schema_extra={"path": "reference"},
    )
    checksum: str | None = Field(
        default=None,
        pattern=r"^sha256:[0-9a-f]{64}$",
        description="sha256: and the 64 hexadecimal digits of the model",
    )
    engine: str = Field(
        min_length=1,
        description="the engine that runs the model; `prony engines` lists them",
        examples=["llamacpp", "transformers"],
    )
    unit: str = Field(default="cpu", min_length=1, description="compute unit: cpu, cuda, cuda-1, ...")
    prompt: int = Field(default=512, ge=0, description="prompt tokens to read; 0: none")
    generate: int = Field(default=128, ge=0, description="tokens to write; 0: none, else at least 2")
    batch: int = Field(default=1, ge=1, le=4096, description="sequences at once")
    depth: int = Field(default=0, ge=0, description="tokens in the cache before the prompt")
    threads: int | None = Field(
        default=None, ge=1, le=4096, description="engine threads; default: every CPU that this process may use"
    )
    precision: LlmPrecision = Field(
        default="default", description="precision to compute in; `default` is that of the weights"
    )
    kv_type: KvType = Field(default="default", description="type of the key-value cache; `default` is the engine's own")
    draft: str = Field(
        default="none",
        min_length=1,
        description="speculative decoding: none, lookup (guess from the text itself), or a smaller model that guesses",
        examples=["lookup"],
        json_schema_extra={"path": "reference"},
    )
    draft_tokens: int = Field(default=4, ge=1, le=64, description="for `draft`: the most tokens to guess for a step")
    passes: int = Field(default=3, ge=1, le=1000, description="passes per process: each reads the prompt and generates")
    seed: int = Field(default=0, ge=0, description="seed of the prompts' token ids")
    quality: bool = Field(
        default=False,
        description="also compare predictions with those of a reference, on a text that comes with Prony",
    )
    reference: str | None = Field(
        default=None,
        min_length=1,
        description="for `quality`: the model to compare with; default: the same model in fp32",
        json_schema_extra={"path": "reference"},
    )
    reference_engine: str | None = Field(
        default=None, min_length=1, description="for `quality`: the engine of the reference; default: the same engine"
    )
    task: str | None = Field(
        default=None,
        min_length=1,
        description="ask in words instead of random ids: summarize, qa, classify, perplexity, ...",
        examples=["summarize"],
    )
    prompts: dict[str, Option] = Field(
        default={}, description="options of the task: data set, lengths, what to do with long texts"
    )
    options: dict[str, Scalar] = Field(
        default={},
        description="engine options: text, numbers, true or false, by name",
        json_schema_extra={"path": "words"},
    )

    @property
    def draft_model(self) -> str | None:
        """The smaller model that guesses, where one does."""
        return self.draft if self.draft not in ("none", "lookup") else None

    @property
    def subject(self) -> str:
        """What is measured, in one word."""
        return self.model

    @property
    def tool(self) -> str:
        """By what."""
        return self.engine

    @property
    def variant(self) -> str:
        return f" with {self.batch} sequences" if self.batch > 1 else ""

    @property
    def context(self) -> int:
        """The most tokens that one sequence holds."""
        return self.depth + max(self.prompt, self.generate) + 2

    @property
    def has_own_command(self) -> bool:
        """Whether it names a scorer, which is a command."""
        return self.prompts.get("scorer") is not None

    @property
    def metric_units(self) -> Mapping[str, str]:
        return METRIC_UNITS

    @model_validator(mode="after")
    def _does_something(self) -> Self:
        if not self.prompt and not self.generate:
            raise ValueError("prompt and generate are both 0: there is nothing to measure")
        if self.generate == 1:
            raise ValueError("generate is 1, but a token rate needs at least 2")
        if self.draft != "none" and self.batch > 1:
            raise ValueError("draft works with one sequence: set batch to 1, or remove draft")
        return self

    @model_validator(mode="after")
    def _asks_or_reads_ids(self) -> Self:
        if self.task is None and self.prompts:
            raise ValueError("prompts needs a task, for example task: summarize")
        fields = type(self).model_fields
        strange = [name for name in ("prompt", "batch", "depth") if getattr(self, name) != fields[name].default]
        if self.task is not None and strange:
            raise ValueError(f"{strange[0]} is only for seeded ids: remove it, or remove task")
        return self


SCHEMA = LlmWorkload
