"""Choose the results that a run is judged against: those at its branch's fork point, or those before it."""

from __future__ import annotations

from collections.abc import Callable, Sequence
from dataclasses import dataclass
from datetime import datetime
from typing import Generic, TypeVar

from prony.model.git import Git, is_before_fork, is_on_branch, order_by_commit

T = TypeVar("T")
_SHORT = 12


@dataclass(frozen=True)
class RankedReferences(Generic[T]):
    """What a run may be judged against, the best first; `note` says why these are not known to be at the fork point."""

    items: tuple[T, ...]
    note: str = ""


def rank_fork_results(of: Git, on_base: Sequence[T], git_of: Callable[[T], Git | None]) -> RankedReferences[T]:
    """Rank the results of the base of a branch, which are in their order.

    The latest at or before the fork point comes first; where none is known to be, the latest of all.
    """
    newest_first = tuple(reversed(on_base))
    before = [one for one in newest_first if is_before_fork(git_of(one), of)]
    if before:
        # Sorting keeps the order of equals: the newest at the fork point itself, then the newest before it.
        return RankedReferences(tuple(sorted(before, key=lambda one: not _is_at(git_of(one), of.fork_point))))
    if of.fork_point is None:
        why = f"the commit at which {of.branch or 'this commit'} forked from {of.base} is not known (a shallow clone?)"
    else:
        why = f"no result of {of.base} is known to be at or before the fork point {of.fork_point[:_SHORT]}"
    return RankedReferences(newest_first, f"{why}, so this is the latest of {of.base}")


def rank_earlier(
    mine: T, earlier: Sequence[T], git_of: Callable[[T], Git | None], at: Callable[[T], datetime]
) -> RankedReferences[T]:
    """Rank earlier results, the oldest first, for one of the default branch, or for one of another branch."""
    git = git_of(mine)
    if git is not None and git.base is not None:
        base = git.base
        on_base = [one for one in earlier if is_on_branch(git_of(one), base, git.default_branch)]
        return rank_fork_results(git, order_by_commit(on_base, git_of, at), git_of)
    same = [one for one in earlier if (other := git_of(one)) is None or not other.is_apart]
    ordered = order_by_commit([*same, mine], git_of, at)
    place = next(place for place, one in enumerate(ordered) if one is mine)
    return RankedReferences(tuple(reversed(ordered[:place])))


def _is_at(git: Git | None, commit: str | None) -> bool:
    return git is not None and git.commit == commit


def describe_reference(mine: Git, name: str, other: Git | None, note: str) -> str:
    """Say in a sentence which result a run was judged against, and where that comes from."""
    commit = "an unknown commit" if other is None else other.commit[:_SHORT] + (" with changes" if other.dirty else "")
    if mine.base is None:
        return f"Compared with {name}, at {commit}."
    place = "the fork point" if _is_at(other, mine.fork_point) else "before the fork point"
    return f"Compared with {name}, {mine.base} at {commit}: {note or place}."
