"""What changes anywhere, over HTTP."""

from __future__ import annotations

import json
from collections.abc import Iterator

import httpx

from .house import House


def test_a_page_that_listens_hears_of_what_others_do_and_goes_on_where_it_was_cut_off(house: House) -> None:
    with house.client.stream("GET", "/api/v1/events") as first:
        blocks = _blocks(first)
        assert "event: anew" in next(blocks)
        experiment_id = house.experiment()
        heard = next(blocks)
    assert experiment_id in json.loads(_field(heard, "data"))["experiments"]
    later = house.experiment()
    with house.client.stream("GET", "/api/v1/events", headers={"Last-Event-ID": _field(heard, "id")}) as second:
        missed = next(_blocks(second))
    assert later in json.loads(_field(missed, "data"))["experiments"]
    assert "event: changed" in missed


def _blocks(response: httpx.Response) -> Iterator[str]:
    text = ""
    for piece in response.iter_text():
        text += piece
        while "\n\n" in text:
            block, _, text = text.partition("\n\n")
            yield block


def _field(block: str, name: str) -> str:
    return next(line.partition(": ")[2] for line in block.split("\n") if line.startswith(f"{name}: "))
