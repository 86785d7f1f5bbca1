"""Open the bench that a command's options mean: this machine's home, or a server.

Standard library only until one is opened: every command that has --server passes through here first.
"""

from __future__ import annotations

import os
from argparse import Namespace
from collections.abc import Iterator
from contextlib import contextmanager
from pathlib import Path
from typing import TYPE_CHECKING

from prony.errors import InputError

if TYPE_CHECKING:
    from prony.client import Client
    from prony.ports.use_cases import UseCases
    from prony.store.home import Home


def server_address(options: Namespace) -> str | None:
    """Return the server that was named: by --server, else by PRONY_SERVER; None where everything happens here."""
    return options.server or os.environ.get("PRONY_SERVER") or None


def connect_server(options: Namespace, *, attempts: int = 4) -> Client:
    """Return a client of the server that was named, or else of the one that runs on this machine in the same home."""
    from prony.client import Client
    from prony.client.owner import find_owner_token
    from prony.ports.tracing import set_trace
    from prony.store.home import home

    set_trace(os.environ.get("TRACEPARENT", ""))  # the name by which programs hand a trace on to those they start
    url = server_address(options) or _server_here(home())
    token = named_token(options) or find_owner_token(url, home(), attempts=attempts)
    return Client(url, token, attempts=attempts)


def _server_here(home: Home) -> str:
    from prony.store.home import read_server_note, server_file

    note = read_server_note(home)
    if note is None:
        raise InputError(
            "no server given, and none runs here",
            hint="use --server URL or set PRONY_SERVER; `prony server` starts one",
        )
    if note.is_stale:
        process = f", process {note.process.pid}," if note.process else ""
        raise InputError(
            f"no server runs here: the one at {note.url}{process} was killed and left {server_file(home)} behind",
            hint="`prony server` starts it again; or use --server URL or PRONY_SERVER for another one",
        )
    return note.url


@contextmanager
def open_bench(options: Namespace) -> Iterator[UseCases]:
    """Open the server that was named, or else this machine's own home; both have the same use cases."""
    if server_address(options):
        with connect_server(options) as client:
            yield client
    else:
        from prony.app.bench import Bench

        with Bench.open() as bench:
            yield bench


def is_served() -> bool:
    """Does a server run in this home, as far as the file that it leaves there tells?"""
    from prony.store.home import home, running_server

    return running_server(home()) is not None


def note_unserved(options: Namespace) -> None:
    """Say what is needed besides, where something was written into a home in which no server runs."""
    from prony.cli.output import print_note

    if not server_address(options) and not is_served():
        print_note("no server runs in this home, so it does not start yet; start one with `prony server`")


def again(options: Namespace) -> str:
    """Return what must be added to a command that is to reach the same server."""
    return f" --server {options.server}" if options.server else ""


def named_token(options: Namespace) -> str | None:
    """Return the token that was named: by --token-file, PRONY_TOKEN or PRONY_TOKEN_FILE; None where none was."""
    named = os.environ.get("PRONY_TOKEN_FILE", "")
    if options.token_file is None and (os.environ.get("PRONY_TOKEN") or not named):
        return os.environ.get("PRONY_TOKEN") or None
    path: Path = options.token_file or Path(named)
    try:
        token = path.read_text(encoding="utf-8").strip()
    except (OSError, UnicodeDecodeError) as exc:
        reason = exc.strerror if isinstance(exc, OSError) else "it is not text"
        hint = "give the file with the output of `prony tokens add`: --token-file PATH"
        raise InputError(f"cannot read a token from {path}: {reason}", hint=hint) from exc
    if not token:
        raise InputError(f"{path} holds no token", hint="put only the output of `prony tokens add` into it")
    return token
