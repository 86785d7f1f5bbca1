"""What a person writes in, the id that they mean out: a whole id, the beginning of one, `last`, or an agent's name."""

from __future__ import annotations

from collections.abc import Callable, Iterator, Sequence
from typing import Protocol, TypeVar

from prony.client.api import Client
from prony.errors import InputError, NotFoundError
from prony.model.history import Series
from prony.model.queue import Page

T = TypeVar("T")

LARGEST_PAGE = 500
_MOST_SHOWN = 8


class Pages(Protocol[T]):
    def __call__(self, *, limit: int, cursor: str | None) -> Page[T]: ...


def iterate_pages(ask: Pages[T], limit: int | None = None) -> Iterator[T]:
    """Yield the first `limit` things of a list, or all of them, page after page."""
    left, cursor = limit, None
    while left is None or left > 0:
        page = ask(limit=LARGEST_PAGE if left is None else min(left, LARGEST_PAGE), cursor=cursor)
        yield from page.items
        if page.next is None:
            return
        cursor = page.next
        left = None if left is None else left - len(page.items)


def experiment_named(client: Client, text: str) -> str:
    """Return the experiment that a person means by a full id, the beginning of one, or `last`."""
    if text == "last":
        newest = client.experiments(limit=1).items
        if not newest:
            raise NotFoundError("there is no experiment yet", hint="`prony run RECIPE --server URL` makes one")
        return newest[0].experiment.id
    if _exists(client.experiment, text):
        return text
    ids = [view.experiment.id for view in iterate_pages(client.experiments)]
    return _only([one for one in ids if text and one.startswith(text)], text, "experiment", "prony list")


def job_named(client: Client, text: str) -> str:
    """Return the job that a person means; of its id, the experiment's part may be abbreviated."""
    if _exists(client.job, text):
        return text
    begin, dash, number = text.rpartition("-")
    if dash and begin:
        wanted = f"{experiment_named(client, begin)}-{number}"
        if _exists(client.job, wanted):
            return wanted
        raise NotFoundError(f"no job {wanted!r}", hint=f"`prony jobs --experiment {begin}` lists them")
    return _job_of(client, experiment_named(client, text))


def _job_of(client: Client, experiment_id: str) -> str:
    """Return the only job of an experiment."""
    found = client.jobs(experiment=experiment_id, limit=2)
    if len(found.items) == 1:
        return found.items[0].id
    hint = f"`prony jobs --experiment {experiment_id}` lists them"
    raise InputError(f"experiment {experiment_id} has not one job but several, or none", hint=hint)


def agent_named(client: Client, text: str) -> str:
    """Return the agent that a person means by its id, its name, or the beginning of either."""
    agents = list(iterate_pages(client.agents))
    for matches in (
        [one.id for one in agents if one.id == text],
        [one.id for one in agents if one.name == text],
        [one.id for one in agents if text and (one.id.startswith(text) or one.name.startswith(text))],
    ):
        if matches:
            return _only(matches, text, "agent", "prony agents")
    return _only([], text, "agent", "prony agents")


def series_named(client: Client, text: str) -> Series:
    """Return the series that a person means by its id, or the beginning of one."""
    found = [one for one in iterate_pages(client.series) if text and one.id.startswith(text)]
    series_id = _only([one.id for one in found], text, "series", "prony history")
    return next(one for one in found if one.id == series_id)


def change_named(client: Client, text: str) -> str:
    """Return the change that a person means by its id, or the beginning of one."""
    if _exists(client.change, text):
        return text
    ids = [one.id for one in iterate_pages(client.changes)]
    return _only([one for one in ids if text and one.startswith(text)], text, "change", "prony watch-regressions")


def _exists(ask: Callable[[str], object], identity: str) -> bool:
    try:
        ask(identity)
    except NotFoundError:
        return False
    return True


def _only(matches: Sequence[str], text: str, noun: str, lister: str) -> str:
    if len(matches) == 1:
        return matches[0]
    if not matches:
        raise NotFoundError(f"no {noun} {text!r}", hint=f"`{lister}` shows what is there")
    shown = ", ".join(matches[:_MOST_SHOWN]) + (", ..." if len(matches) > _MOST_SHOWN else "")
    hint = "write more of it" if len(set(matches)) > 1 else ""
    raise InputError(f"{text!r} may be any of {len(matches)} {noun}s: {shown}", hint=hint, code="ambiguous")
