"""Salts: words of equal length that follow from the run and the request, and nothing else of a request changes."""

from __future__ import annotations

from pathlib import Path
from typing import Any

import pytest

from prony.errors import InputError
from prony.load.orders import ClientOrder, content_of, write_requests
from prony.load.salts import SALT_WORDS, SaltedContents, draw_words, salt_in, salt_size, same_length, write_places
from prony.ports.driver import Endpoint, Request


def order(folder: Path, salt: str, **more: Any) -> ClientOrder:
    return ClientOrder(
        Endpoint(), (0, ""), "", {}, True, 0, 1, str(folder), "client-0", is_open=False, salt=salt, **more
    )


def request(text: str, *, words: int = 4, is_shared: bool = False, after: int | None = None) -> Request:
    salts = salt_in(text.split()[:words], SALT_WORDS, is_shared=is_shared)
    return Request(b"POST / HTTP/1.1\r\n\r\n" + text.encode(), after=after, salts=salts)


def contents(folder: Path, requests: list[Request], salt: str = "one", **more: Any) -> SaltedContents:
    write_requests(requests, folder)
    write_places(requests, folder)
    return SaltedContents(order(folder, salt, **more), *content_of(folder))


def test_words_are_of_one_length_and_enough_for_millions_of_prompts() -> None:
    assert {len(word) for word in SALT_WORDS} == {4}
    assert len(set(SALT_WORDS)) == len(SALT_WORDS)
    assert len(SALT_WORDS) ** salt_size(SALT_WORDS) > 2**32
    assert same_length(["a", "bc", "de", "fgh"]) == ("bc", "de")


def test_a_salt_changes_its_words_alone_and_is_new_in_every_round_and_run(tmp_path: Path) -> None:
    text = "book lake ring hand and the rest of it"
    salted = contents(tmp_path, [request(text), request(text)])
    seen = {salted(index, index % 2) for index in range(100)}
    other = SaltedContents(order(tmp_path, "two"), *content_of(tmp_path))
    seen |= {other(index, index % 2) for index in range(100)}
    assert len(seen) == 200
    plain = content_of(tmp_path)[0](0)
    assert {len(one) for one in seen} == {len(plain)}
    assert {one.partition(b" and ")[2] for one in seen} == {b"the rest of it"}
    assert salted(7, 1) == salted(7, 1)


def test_turns_of_a_session_begin_alike_and_so_does_what_is_shared(tmp_path: Path) -> None:
    first = "book lake ring hand ask"
    turns = [request(first), request(f"{first} more", after=0), request(first)]
    salted = contents(tmp_path, turns, sessions=True)
    words = [salted(index, index % 3).split()[3:7] for index in range(6)]
    assert words[0] == words[1] != words[2]
    assert words[3] == words[4] not in (words[0], words[2])
    shared = contents(tmp_path, [request(first, is_shared=True) for _ in range(3)])
    assert len({shared(index, index % 3) for index in range(9)}) == 1


def test_a_driver_that_hides_the_words_is_told_what_to_write(tmp_path: Path) -> None:
    hidden = Request(b"aGVsbG8=", salts=salt_in(draw_words(SALT_WORDS, 4, "x"), SALT_WORDS))
    with pytest.raises(InputError, match="does not contain") as caught:
        write_places([hidden], tmp_path)
    assert "load.same_text" in caught.value.hint
