"""Give every prompt of a run a beginning of its own, so that no run meets the text of another in a server's cache.

The words of a salt are of one length, so a request's bytes stay as many as they were; they follow from the salt of the
run and the request's place in the load, so that all client processes agree and a session keeps its own.
"""

from __future__ import annotations

import json
from array import array
from collections.abc import Callable, Sequence
from hashlib import blake2b
from pathlib import Path

from prony.errors import InputError
from prony.load.orders import ClientOrder, read_numbers
from prony.ports.driver import Request, Salt

_TEXT = """
also away back bank base bear beat been best bird blue boat body book both burn call came camp care case city cold cook
cool corn cost dark deal dear deep down draw drop each east easy edge else even ever face fact fair fall farm fast fear
feed feel feet fell felt fill find fine fire fish five flat flow food foot form four free full game gave girl give glad
gold gone good gray grew grow hair half hand hard head hear heat held help here high hill hold hole home hope hour huge
hunt idea inch iron join jump just keep kept kind king knew know lady lake land last late lead left less life lift like
line list live lone long look lost loud love made main make many mark mass mean meat meet mile milk mind mine miss moon
more most move much must name near neck need next nine noon nose note noun once only open over page pair part pass past
path pick plan play poem poor port pose pull push race rail rain read real rest rich ride ring rise road rock roll room
root rope rose rule safe sail salt same sand save seat seed seem self sell send sent ship shoe shop show side sign sing
size skin slip slow snow soft soil some song soon spot star stay step stop such suit sure swim tail take talk tall team
tell term test than that them then they thin this thus time tiny tire told tone took tool town tree trip tube turn unit
vary verb very view wait walk wall want warm wash wave wear week well went were west what when wide wife wild will wind
wing wire wish with wood word work yard year your
"""
# Everyday words of four letters, which nearly every tokenizer has as one token each.
SALT_WORDS = tuple(_TEXT.split())
_FEWEST_WORDS, _MOST_WORDS = 2, 12  # one word alone may stand elsewhere in a request
_ENOUGH = 2**32  # texts that a salt can be, so that two of a million prompts hardly ever begin alike
_SHARED = -1
_FILE = "requests.salts"
Place = tuple[int, int, int, int, bool]  # request, byte, how many words, which list of words, is it shared?


def salt_size(words: Sequence[str]) -> int:
    """Return how many of these words make a salt."""
    size = _FEWEST_WORDS
    while len(words) ** size < _ENOUGH and size < _MOST_WORDS:
        size += 1
    return size


def same_length(words: Sequence[str]) -> tuple[str, ...]:
    """Return the words that are as long as most of them are."""
    lengths = [len(word) for word in words]
    usual = max(sorted(set(lengths)), key=lengths.count, default=0)
    return tuple(word for word in words if len(word) == usual)


def salt_in(drawn: Sequence[str], words: Sequence[str], *, is_shared: bool = False) -> tuple[Salt, ...]:
    """Return the salt that these words of a prompt are; none where they are too few, or none others could be there."""
    if len(drawn) < _FEWEST_WORDS or len(words) < 2:
        return ()
    return (Salt(" ".join(drawn), words, is_shared=is_shared),)


def draw_words(words: Sequence[str], count: int, key: str) -> list[str]:
    """Return so many words; which ones, the key decides."""
    value = int.from_bytes(blake2b(key.encode(), digest_size=32).digest())
    found = []
    for _ in range(count):
        value, place = divmod(value, len(words))
        found.append(words[place])
    return found


def write_places(requests: Sequence[Request], folder: Path) -> None:
    """Write where the salts stand in the bytes of requests."""
    lists: dict[int, int] = {}
    kept: list[Sequence[str]] = []
    places: list[Place] = []
    for number, request in enumerate(requests):
        at = 0
        for salt in request.salts:
            at = request.content.find(salt.text.encode(), at)
            if at < 0:
                raise InputError(
                    f"the request does not contain {salt.text!r}, the start of its prompt",
                    hint="the driver changes the text of prompts: set load.same_text: true",
                )
            if id(salt.words) not in lists:
                lists[id(salt.words)] = len(kept)
                kept.append(list(salt.words))
            places.append((number, at, salt.text.count(" ") + 1, lists[id(salt.words)], salt.is_shared))
            at += len(salt.text)
    (folder / _FILE).write_text(json.dumps({"words": kept, "places": places}))


class SaltedContents:
    """The bytes of requests with the salts of one run; the first time that each is sent it is ready before the load."""

    def __init__(self, order: ClientOrder, content_of: Callable[[int], bytes], count: int) -> None:
        data = json.loads(order.shared_file(_FILE).read_text())
        self._words: list[list[str]] = data["words"]
        self._places: dict[int, list[Place]] = {}
        for place in data["places"]:
            self._places.setdefault(place[0], []).append(tuple(place))
        self._salt = order.salt
        self._content_of = content_of
        self._count = count
        self._roots = _roots(order, count)
        self._ready = [self._fill_in(number, number) for number in range(count)] if _is_small(order) else None

    def __call__(self, index: int, number: int) -> bytes:
        """Return what is sent as the request of this index, which is the prepared one of this number."""
        if index < self._count and self._ready is not None:
            return self._ready[number]
        return self._fill_in(index, number)

    def _fill_in(self, index: int, number: int) -> bytes:
        content = self._content_of(number)
        places = self._places.get(number)
        if not places:
            return content
        changed = bytearray(content)
        own = index // self._count * self._count + self._roots[number]
        for order, (_, at, size, which, is_shared) in enumerate(places):
            key = f"{self._salt} {_SHARED if is_shared else own} {order}"
            text = " ".join(draw_words(self._words[which], size, key)).encode()
            changed[at : at + len(text)] = text
        return bytes(changed)


def _roots(order: ClientOrder, count: int) -> Sequence[int]:
    """Return for each request the first one of its session: all turns of a session begin alike."""
    if not order.sessions:
        return range(count)
    after = read_numbers(order.shared_file("requests.after"))
    found: array[int] = array("q", range(count))
    for number, before in enumerate(after):
        if before >= 0:
            found[number] = found[before]
    return found


_MOST_READY_BYTES = 2**23


def _is_small(order: ClientOrder) -> bool:
    return order.shared_file("requests.bytes").stat().st_size <= _MOST_READY_BYTES
