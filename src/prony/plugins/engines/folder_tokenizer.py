"""The tokenizer of a model in Hugging Face's layout, by transformers' AutoTokenizer."""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from pathlib import Path
from typing import Any

from prony.errors import InputError
from prony.ports.llm import (
    CHAT_TEMPLATE,
    NO_TEMPLATE,
    EncodedPrompt,
    describe_template_failure,
    hash_words,
    join_messages,
)

_FILES = ("tokenizer.json", "tokenizer.model", "vocab.json")


class FolderTokenizer:
    """Texts to ids and back; a folder without a tokenizer is told to those alone who tokenise."""

    def __init__(self, tokenizer: Any) -> None:
        self._tokenizer = tokenizer

    @classmethod
    def load(cls, path: Path) -> FolderTokenizer:
        """Load that of a folder, or of a GGUF file."""
        from transformers import AutoTokenizer

        if path.is_file():
            return cls(AutoTokenizer.from_pretrained(str(path.parent), gguf_file=path.name))
        if not any((path / name).is_file() for name in _FILES):
            return cls(None)
        return cls(AutoTokenizer.from_pretrained(str(path), local_files_only=True))

    @property
    def words_sha256(self) -> str:
        if self._tokenizer is None:
            return ""
        known = self._tokenizer.get_vocab()
        return hash_words(sorted(known, key=known.__getitem__)) if known else ""

    @property
    def template_sha256(self) -> str:
        template = getattr(self._tokenizer, "chat_template", None)
        return hash_words([template]) if isinstance(template, str) else ""

    @property
    def end_id(self) -> int | None:
        """The mark with which a text ends; None where there is none."""
        return getattr(self._tokenizer, "eos_token_id", None)

    def tokenize(self, text: str, *, with_marks: bool = False) -> list[int]:
        if self._tokenizer is None:
            raise InputError(
                "the model's folder has no tokenizer",
                hint="put tokenizer.json next to config.json",
                code="no_tokenizer",
            )
        return [int(one) for one in self._tokenizer(text, add_special_tokens=with_marks)["input_ids"]]

    def encode_prompt(self, messages: Sequence[Mapping[str, str]]) -> EncodedPrompt:
        from jinja2 import TemplateError

        if not getattr(self._tokenizer, "chat_template", None):
            return EncodedPrompt(self.tokenize(join_messages(messages), with_marks=True), NO_TEMPLATE)
        try:
            found = self._tokenizer.apply_chat_template(
                [dict(one) for one in messages], add_generation_prompt=True, tokenize=True, return_dict=False
            )
        # A template is a small program: its expressions raise Python's errors too.
        except (TemplateError, TypeError, ValueError, LookupError, ArithmeticError, AttributeError) as exc:
            raise describe_template_failure(str(exc) or type(exc).__name__) from exc
        return EncodedPrompt([int(one) for one in found], CHAT_TEMPLATE)

    def detokenize(self, ids: Sequence[int]) -> str:
        return str(self._tokenizer.decode(list(ids), skip_special_tokens=True))


class FolderTexts:
    """The methods of an `LlmSession` about texts, for sessions whose model has a `FolderTokenizer`."""

    _tokenizer: FolderTokenizer

    def tokenize(self, text: str) -> list[int]:
        return self._tokenizer.tokenize(text)

    def encode_prompt(self, messages: Sequence[Mapping[str, str]]) -> EncodedPrompt:
        return self._tokenizer.encode_prompt(messages)

    def detokenize(self, ids: Sequence[int]) -> str:
        return self._tokenizer.detokenize(ids)

    def _join_ends(self, told: int | Sequence[int] | None) -> frozenset[int]:
        """Return the end marks that the model's configuration tells, with that of the tokenizer."""
        ends = told if isinstance(told, Sequence) else [told]
        return frozenset(int(one) for one in (*ends, self._tokenizer.end_id) if one is not None)
