"""Where a recipe comes from: the repository, branch and commit that it was submitted at."""

from __future__ import annotations

from collections import defaultdict
from collections.abc import Callable, Sequence
from datetime import datetime
from typing import Annotated, TypeVar

from pydantic import Field

from prony.model.base import Noun

T = TypeVar("T")
LONGEST_BRANCH = 255
Hash = Annotated[str, Field(max_length=64)]
BranchName = Annotated[str, Field(max_length=LONGEST_BRANCH)]


class Git(Noun):
    """The state of the repository that a recipe lies in, read where it was submitted.

    A place among commits is counted along first parents: `position` is how many commits lead from `root` to this one.
    Both are None where the history is not known whole, as in a shallow clone.
    """

    commit: Hash
    branch: BranchName | None = None
    dirty: bool
    # Host and path, without scheme or user: the same for everybody who cloned it.
    repository: Annotated[str, Field(max_length=500)] | None = None
    default_branch: BranchName | None = None
    # The branch that this one is judged against; None on the default branch, and where nobody knows which that is.
    base: BranchName | None = None
    # The newest commit of the base that this commit contains.
    fork_point: Hash | None = None
    fork_position: int | None = None
    position: int | None = None
    root: Hash | None = None

    @property
    def is_apart(self) -> bool:
        """Is it of a branch whose results have a history of their own?"""
        return self.base is not None


def branch_apart(git: Git | None) -> str:
    """Return the branch whose history a result belongs to; empty: the default branch's, or no repository's."""
    return "" if git is None or not git.is_apart else git.branch or "(detached)"


def order_by_commit(items: Sequence[T], git_of: Callable[[T], Git | None], at: Callable[[T], datetime]) -> list[T]:
    """Put results of the default branch in the order of their commits.

    `items` are in the order of time. Of those whose commits are comparable, each takes a place that one of them has;
    the others stay where they are. Results of another branch stay too: a branch is rebased and squashed, so that its
    commits need not follow each other.
    """
    placed: dict[str, list[int]] = defaultdict(list)
    for index, item in enumerate(items):
        git = git_of(item)
        if git is not None and not git.is_apart and git.root is not None and git.position is not None:
            placed[git.root].append(index)
    ordered = list(items)
    for places in placed.values():
        mine = sorted((items[place] for place in places), key=lambda item: (_position(git_of(item)), at(item)))
        for place, item in zip(places, mine, strict=True):
            ordered[place] = item
    return ordered


def _position(git: Git | None) -> int:
    return 0 if git is None or git.position is None else git.position


def is_on_branch(git: Git | None, branch: str, default_branch: str | None) -> bool:
    """Was a result measured on this branch? One without a repository counts as the default branch's."""
    if git is None or not git.is_apart:
        return branch == default_branch
    return git.branch == branch


def is_before_fork(git: Git | None, of: Git) -> bool:
    """Was a result of the base measured at or before the commit that the branch `of` forked at?"""
    if git is None:
        return False
    if git.commit == of.fork_point:
        return True
    known = git.position is not None and of.fork_position is not None
    return known and git.root == of.root and _position(git) <= (of.fork_position or 0)
