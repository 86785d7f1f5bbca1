"""The kinds of tokenizer that models have, small, trained here: what the tests count tokens with."""

from __future__ import annotations

from collections.abc import Sequence
from pathlib import Path

import pytest

from prony.plugins.tasks.synthetic import WORDS

tokenizers = pytest.importorskip("tokenizers")
from tokenizers import Tokenizer, decoders, models, pre_tokenizers, trainers  # noqa: E402

KINDS = ("byte-level", "metaspace", "word-piece")


def write_tokenizer(path: Path, kind: str, words: Sequence[str] = WORDS[:300]) -> Path:
    """Train one on these words, and return where it lies."""
    trainer: trainers.Trainer
    if kind == "byte-level":
        made = Tokenizer(models.BPE())
        made.pre_tokenizer = pre_tokenizers.ByteLevel(add_prefix_space=False)
        made.decoder = decoders.ByteLevel()
        alphabet = pre_tokenizers.ByteLevel.alphabet()
        trainer = trainers.BpeTrainer(vocab_size=1500, initial_alphabet=alphabet, special_tokens=["<s>"])
    elif kind == "metaspace":
        made = Tokenizer(models.BPE(unk_token="<unk>"))
        made.pre_tokenizer = pre_tokenizers.Metaspace()
        made.decoder = decoders.Metaspace()
        trainer = trainers.BpeTrainer(vocab_size=1500, special_tokens=["<unk>", "<s>"])
    else:
        made = Tokenizer(models.WordPiece(unk_token="[UNK]"))
        made.pre_tokenizer = pre_tokenizers.Whitespace()
        made.decoder = decoders.WordPiece()
        trainer = trainers.WordPieceTrainer(vocab_size=1500, special_tokens=["[UNK]"])
    made.train_from_iterator([" ".join(words)] * 3 + list(words), trainer)
    made.save(str(path))
    return path
