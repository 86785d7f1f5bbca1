"""Resolve what a person writes for an id: the whole of it, its beginning, or a name."""

from __future__ import annotations

from collections.abc import Callable, Sequence

from prony.errors import InputError, NotFoundError

_MOST_SHOWN = 8


def exists(get: Callable[[str], object], identity: str) -> bool:
    """Whether the server has something of exactly this id."""
    try:
        get(identity)
    except NotFoundError:
        return False
    return True


def only_match(matches: Sequence[str], text: str, noun: str, lister: str) -> str:
    """Return the one id that matches what a person wrote.

    Args:
        matches: The ids that the text may stand for.
        text: What the person wrote.
        noun: What is looked for, as the message calls it.
        lister: The command that lists what is there.

    Raises:
        NotFoundError: Nothing matches.
        InputError: Several match, with the code `ambiguous`.
    """
    if len(matches) == 1:
        return matches[0]
    if not matches:
        raise NotFoundError(f"no {noun} {text!r}", hint=f"`{lister}` shows what is there")
    shown = ", ".join(matches[:_MOST_SHOWN]) + (", ..." if len(matches) > _MOST_SHOWN else "")
    several = noun if noun.endswith("s") else f"{noun}s"
    # Not "type more of it": several may have just this name.
    hint = f"use the id of one of them; `{lister}` lists them"
    raise InputError(f"{text!r} matches {len(matches)} {several}: {shown}", hint=hint, code="ambiguous")
