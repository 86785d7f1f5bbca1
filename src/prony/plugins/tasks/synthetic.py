"""Task: prompts of random words, of exact token lengths where there is a tokenizer.

Where nobody counts tokens, the words are plain English ones.
"""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from pathlib import Path
from typing import Any, ClassVar, NamedTuple, Self

import numpy as np
from pydantic import Field, model_validator

from prony.errors import InputError
from prony.load.salts import SALT_WORDS, salt_in, salt_size, same_length
from prony.model.base import Noun
from prony.plugins.tasks.spread import Lengths, Spread, draw_lengths, lengths_or
from prony.plugins.tokenizer import Tokenizer, tokenizer_at
from prony.ports.driver import Prompt, Salt, Stamps

_TEXT = """
about above across after again against almost alone along already also always among another answer around asked
away back bank base bear beat became because become been before began behind being below best better between
beyond bird black blood blue board boat body book both bottom bread break bridge bright bring broad brother brown
build burn business cabin call came camp capital captain care carry case cat cause center certain chance change
chart chief child circle city class clean clear climb clock close cloth cloud coast cold color common complete
contain control cook cool copper corn corner cost cotton count country course cover create cross crowd current
dance dark daughter dead deal dear decide deep degree depend describe desert develop differ dinner direct discover
distant divide doctor dollar double down draw dream dress drive drop dry during each ear early earth east easy
edge effect egg eight either else end enemy energy engine enough enter equal even evening event ever every exact
example except excite exercise expect eye face fact fair fall family famous far farm fast father favor fear feed
feel feet fell felt few field fight figure fill final find fine finger finish fire first fish fit five flat floor
flow flower fly follow food foot force forest form forward found four free fresh friend front fruit full fun game
garden gas gather gave general gentle girl give glad glass gold gone good got govern grand grass gray great green
grew ground group grow guess guide hair half hand happen happy hard hat head hear heart heat heavy held help here
high hill history hold hole home hope horse hot hour house huge human hundred hunt hurry ice idea imagine inch
include increase indicate industry insect instant iron island job join joy jump just keep kept key kill kind king
knew know lady lake land language large last late laugh law lay lead learn least leave led left leg length less
letter level lie life lift light like line liquid list listen little live locate log lone long look lost lot loud
love low machine made magnet main major make man many map mark market mass master match material matter may mean
measure meat meet melody men metal method middle might mile milk million mind mine minute miss mix modern molecule
moment money month moon more morning most mother motion mount mountain mouth move much multiply music must name
nation natural nature near necessary neck need neighbor never new next night nine noise noon nor north nose note
nothing notice noun now number numeral object observe occur ocean off offer office often oil old once one only
open operate opposite orange order organ original other our out over own oxygen page paint pair paper paragraph
parent part particular party pass past path pattern pay people perhaps period person phrase pick picture piece
pitch place plain plan plane planet plant play please plural poem point poor populate port pose position possible
post pound power practice prepare present press pretty print probable problem process produce product proper
property protect prove provide pull push put quart question quick quiet quite quotient race radio rail rain raise
ran range rather reach read ready real reason receive record red region remember repeat reply represent require
rest result rich ride right ring rise river road rock roll room root rope rose round row rub rule run safe sail
salt same sand sat save saw say scale school science score sea search season seat second section see seed seem
segment select self sell send sense sent sentence separate serve set settle seven several shall shape share sharp
she sheet shell shine ship shoe shop shore short should shoulder shout show side sight sign silent silver similar
simple since sing single sister sit six size skill skin sky sleep slip slow small smell smile snow soft soil
soldier solution solve some son song soon sound south space speak special speech speed spell spend spoke spot
spread spring square stand star start state station stay stead steam steel step stick still stone stood stop store
story straight strange stream street stretch string strong student study subject substance subtract success such
sudden suffix sugar suggest suit summer sun supply support sure surface surprise swim syllable symbol system table
tail take talk tall teach team teeth tell temperature ten term test than thank that the their them then there
these they thick thin thing think third this those though thought thousand three through throw thus tie time tiny
tire together told tone too took tool top total touch toward town track trade train travel tree triangle trip
trouble truck true try tube turn twenty two type under unit until up usual valley value vary verb very view
village visit voice vowel wait walk wall want war warm was wash watch water wave way wear weather week weight well
went were west what wheel when where whether which while white who whole whose why wide wife wild will win wind
window wing winter wire wish with woman women wonder wood word work world would write written wrong yard year
yellow yes yet you young your
"""
WORDS = tuple(_TEXT.split())


_ENOUGH_WORDS = 100  # of everyday ones; else those of the tokenizer are taken, whatever they are
_ENOUGH_SALT_WORDS = 16
_MOST_WORDS = 4096
_TRIES = 8


class SyntheticOptions(Noun):
    """How long prompts and answers are."""

    input_tokens: Spread | None = Field(
        default=None,
        description="tokens of a prompt, including shared ones; needs a tokenizer; default with a tokenizer: 128",
    )
    input_words: Spread | None = Field(default=None, description="words of a prompt, without a tokenizer; default: 100")
    output_tokens: Spread = Field(default="128", description="tokens of an answer")
    exact: bool = Field(
        default=True, description="ask the server to continue until the answer has all its tokens, if it can"
    )
    shared_prefix_tokens: int = Field(
        default=0, ge=0, description="tokens at the start that all prompts share; needs a tokenizer"
    )
    shared_prefix_words: int = Field(
        default=0, ge=0, description="words at the start that all prompts share, without a tokenizer"
    )
    tokenizer: str | None = Field(
        default=None,
        min_length=1,
        description="a Hugging Face tokenizer.json: a path, relative to the recipe",
        json_schema_extra={"path": True},
    )

    @model_validator(mode="after")
    def _countable(self) -> Self:
        if self.tokenizer is None and (self.input_tokens is not None or self.shared_prefix_tokens):
            raise ValueError("token counts need a tokenizer: set one, or use input_words and shared_prefix_words")
        if self.tokenizer is not None and (self.input_words is not None or self.shared_prefix_words):
            raise ValueError("with a tokenizer, use input_tokens and shared_prefix_tokens")
        return self


class Synthetic:
    """Random words: nothing that a server could have cached, but for a prefix that is asked for."""

    name: ClassVar[str] = "synthetic"
    Options: ClassVar[type[Any]] = SyntheticOptions

    def prompts(
        self,
        options: SyntheticOptions,
        *,
        count: int,
        seeds: Mapping[str, int],
        base: Path,
        lengths: Stamps | None = None,
    ) -> Sequence[Prompt]:
        inputs, outputs = _lengths(options, count, seeds["lengths"], lengths)
        tokenizer = tokenizer_at(options.tokenizer, base)
        prefix = options.shared_prefix_tokens or options.shared_prefix_words
        if tokenizer is None:
            mixed = Mixture(WORDS, SALT_WORDS, seeds["prompts"], prefix).texts(inputs)
        else:
            mixed = _exact(tokenizer, seeds["prompts"], prefix, inputs)
        return [
            Prompt(
                messages=({"role": "user", "content": one.text},),
                max_tokens=int(output),
                exact_tokens=options.exact,
                input_tokens=None if tokenizer is None else int(size),
                salts=one.salts,
            )
            for one, size, output in zip(mixed, inputs, outputs, strict=True)
        ]


def _lengths(options: SyntheticOptions, count: int, seed: int, trace: Stamps | None) -> tuple[Lengths, Lengths]:
    """Return the lengths of prompts and answers, each drawn from a stream of its own."""
    spread = options.input_tokens or "128" if options.tokenizer is not None else options.input_words or "100"
    streams = [np.random.Generator(np.random.PCG64([seed, number])) for number in (0, 1)]
    inputs = lengths_or(trace, 0, draw_lengths(spread, count, streams[0]))
    return inputs, lengths_or(trace, 1, draw_lengths(options.output_tokens, count, streams[1]))


class MixedText(NamedTuple):
    """A text of random words, and those of them that a run may replace."""

    text: str
    salts: tuple[Salt, ...]


class Mixture:
    """Texts of random words, the first of which are the same in all; each part of a text begins with a salt."""

    def __init__(self, words: Sequence[str], salt_words: Sequence[str], seed: int, prefix: int) -> None:
        self._words = np.array(words)
        self._salt_words = salt_words
        self._salt_size = salt_size(salt_words)
        self._shared = self._drawn(np.random.Generator(np.random.PCG64([seed, 0])), prefix)
        self._rng = np.random.Generator(np.random.PCG64([seed, 1]))

    def _drawn(self, rng: np.random.Generator, count: int) -> list[str]:
        # First the salt, and always a whole one, so that the same words follow it however long the text is.
        salt = [self._salt_words[place] for place in rng.integers(len(self._salt_words), size=self._salt_size)]
        chosen: list[str] = self._words[rng.integers(len(self._words), size=max(count - len(salt), 0))].tolist()
        return salt[:count] + chosen

    def texts(self, sizes: Lengths) -> list[MixedText]:
        """Return a text of each size, in words."""
        return [self.text(int(size)) for size in sizes]

    def text(self, size: int) -> MixedText:
        shared, most = self._shared[:size], self._salt_size
        own = self._drawn(self._rng, size - len(shared))
        salts = salt_in(shared[:most], self._salt_words, is_shared=True) + salt_in(own[:most], self._salt_words)
        return MixedText(" ".join(shared + own), salts)


def _exact(tokenizer: Tokenizer, seed: int, prefix: int, sizes: Lengths) -> list[MixedText]:
    """Return texts of exactly so many tokens: what does not come out right is drawn again."""
    words = tokenizer.single(WORDS)
    if len(words) < _ENOUGH_WORDS:
        words = tokenizer.single(tokenizer.words(_MOST_WORDS)) or words
    if not words:
        raise InputError(
            "this tokenizer has no word that is exactly one token",
            hint="exact lengths need one; remove the tokenizer and use input_words",
        )
    everyday = tokenizer.single(SALT_WORDS)
    mixture = Mixture(words, everyday if len(everyday) >= _ENOUGH_SALT_WORDS else same_length(words), seed, prefix)
    texts = mixture.texts(sizes)
    for _ in range(_TRIES):
        counts = tokenizer.counts([one.text for one in texts])
        wrong = [index for index, count in enumerate(counts) if count != sizes[index]]
        if not wrong:
            return texts
        for index in wrong:
            texts[index] = mixture.text(int(sizes[index]))
    raise InputError(
        f"this tokenizer gives {counts[wrong[0]]} tokens for a prompt that should have {sizes[wrong[0]]}",
        hint="exact lengths are not possible with it; remove it and use input_words",
    )
