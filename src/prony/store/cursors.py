"""Where a page of a list goes on: what it last showed, as a text that its reader gives back."""

from __future__ import annotations

import base64
import binascii
import re
from datetime import datetime

from prony.errors import InputError

_NAME = re.compile(r"[A-Za-z0-9._-]{0,128}")
# What a database's numbers can hold.
_MOST_DIGITS = 18


def bad_cursor(cursor: str) -> InputError:
    """Return the error of a cursor that no page gave."""
    hint = "use the `next` of an earlier page of the same list and sort"
    return InputError(f"{cursor[:80]!r} is not a valid cursor", hint=hint, code="bad_cursor")


def read_number_cursor(cursor: str) -> int:
    """Return the number that a page goes on from."""
    if not (cursor.isascii() and cursor.isdigit() and len(cursor) <= _MOST_DIGITS):
        raise bad_cursor(cursor)
    return int(cursor)


def write_time_cursor(at: datetime, last: str = "") -> str:
    """Return the cursor of a list that is sorted by time, and, of one time, by the name of what was shown last."""
    return base64.urlsafe_b64encode(f"{at.isoformat()} {last}".encode()).decode()


def read_time_cursor(cursor: str) -> tuple[datetime, str]:
    """Return the time and the name that a page goes on from."""
    try:
        told, _, last = base64.urlsafe_b64decode(cursor.encode()).decode().partition(" ")
        at = datetime.fromisoformat(told)
    except (ValueError, binascii.Error) as exc:
        raise bad_cursor(cursor) from exc
    if at.tzinfo is None or not _NAME.fullmatch(last):
        raise bad_cursor(cursor)
    return at, last
