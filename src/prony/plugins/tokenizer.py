"""Count tokens with a Hugging Face `tokenizer.json`."""

from __future__ import annotations

from collections.abc import Sequence
from pathlib import Path
from typing import Any

from prony.errors import CapacityError, InputError, NotFoundError

_AT_ONCE = 256


class Tokenizer:
    """Counts tokens of plain text; what a chat template or the server adds is not in the count."""

    def __init__(self, path: Path) -> None:
        if path.is_dir():
            path = path / "tokenizer.json"
        if not path.is_file():
            raise NotFoundError(
                f"tokenizer not found: {path}", hint="let the key `tokenizer` name a tokenizer.json that exists"
            )
        try:
            import tokenizers
        except ImportError as exc:
            raise CapacityError(
                "counting tokens needs the package tokenizers",
                hint='pip install "prony[tokenizers]"',
                code="missing_package",
            ) from exc
        self._tokenizer = _open_tokenizer(tokenizers, path)
        self._tokenizer.no_truncation()
        self._tokenizer.no_padding()

    def count(self, text: str) -> int:
        return len(self._tokenizer.encode(text, add_special_tokens=False).ids)

    def counts(self, texts: Sequence[str]) -> list[int]:
        """Return the count of each text; many at once are faster, too many at once need much memory."""
        found: list[int] = []
        for begin in range(0, len(texts), _AT_ONCE):
            some = list(texts[begin : begin + _AT_ONCE])
            encodings = self._tokenizer.encode_batch_fast(some, add_special_tokens=False)
            found += [len(encoding) for encoding in encodings]
        return found

    def single(self, words: Sequence[str]) -> list[str]:
        """Return the words of which any number in a row, with a space between, has exactly as many tokens."""
        # In a pair, one word stands at the beginning and one after a space: the two places that it can have.
        pairs = self.counts([f"{word} {word}" for word in words])
        singles = self.counts(words)
        return [word for word, one, two in zip(words, singles, pairs, strict=True) if (one, two) == (1, 2)]

    def words(self, most: int) -> list[str]:
        """Return words of its own vocabulary, from its beginning, where the frequent ones are."""
        size = self._tokenizer.get_vocab_size(with_added_tokens=False)
        pieces = self._tokenizer.decode_batch([[number] for number in range(size)])
        words = (piece.strip() for piece in pieces)
        return list(dict.fromkeys(word for word in words if word.isascii() and word.isalpha()))[:most]


def _open_tokenizer(package: Any, path: Path) -> Any:
    try:
        return package.Tokenizer.from_file(str(path))
    except Exception as exc:  # noqa: BLE001 - the package raises nothing narrower for a file that it cannot read
        problem = exc
    raise InputError(
        f"{path} is not a tokenizer: {problem}", hint="it must be a Hugging Face tokenizer.json"
    ) from problem


def tokenizer_at(path: str | None, base: Path) -> Tokenizer | None:
    """Return the tokenizer that an option names, relative to the recipe's folder; None where none is named."""
    return None if path is None else Tokenizer(base / path)
