"""Options and the environment in, a client of the server that they mean out.

Standard library only until a client is made: commands that work without a server pass through here first.
"""

from __future__ import annotations

import os
from argparse import Namespace
from collections.abc import Callable, Iterator
from contextlib import AbstractContextManager, contextmanager
from pathlib import Path
from typing import TYPE_CHECKING, TypeVar

from prony.errors import InputError

if TYPE_CHECKING:
    from prony.client import Client

Local = TypeVar("Local")


def address(options: Namespace) -> str | None:
    """Return the server that was named: by --server, else by PRONY_SERVER; None where everything happens here."""
    return options.server or os.environ.get("PRONY_SERVER") or None


def connect(options: Namespace, *, attempts: int = 4) -> Client:
    """Return a client of the server that was named, or else of the one that runs on this machine in the same home."""
    from prony.client import Client
    from prony.client.owner import find_owner_token
    from prony.store.home import home
    from prony.store.serving import running_server

    url = address(options) or running_server(home())
    if url is None:
        raise InputError(
            "no server is named, and none runs here",
            hint="--server URL or PRONY_SERVER says where one is; `prony server` starts one",
        )
    token = _token(options) or find_owner_token(url, home(), attempts=attempts)
    return Client(url, token, attempts=attempts)


@contextmanager
def open_server_or_home(
    options: Namespace, here: Callable[[], AbstractContextManager[Local]]
) -> Iterator[Client | Local]:
    """Open what a server keeps: that of the server that was named, or `here` the home's own."""
    if address(options):
        with connect(options) as client:
            yield client
    else:
        with here() as local:
            yield local


def is_served() -> bool:
    """Does a server run in this home, as far as the file that it leaves there tells?"""
    from prony.store.home import home
    from prony.store.serving import running_server

    return running_server(home()) is not None


def note_unserved(options: Namespace) -> None:
    """Say what is needed besides, where something was written into a home in which no server runs."""
    from prony.cli.output import print_note

    if not address(options) and not is_served():
        print_note("no server runs in this home: it waits for one; `prony server` starts it")


def again(options: Namespace) -> str:
    """Return what must be added to a command that is to reach the same server."""
    return f" --server {options.server}" if options.server else ""


def _token(options: Namespace) -> str | None:
    if options.token_file is None:
        return os.environ.get("PRONY_TOKEN") or None
    path: Path = options.token_file
    try:
        token = path.read_text(encoding="utf-8").strip()
    except (OSError, UnicodeDecodeError) as exc:
        reason = exc.strerror if isinstance(exc, OSError) else "it is no text"
        raise InputError(f"cannot read a token from {path}: {reason}") from exc
    if not token:
        raise InputError(f"{path} holds no token", hint="put there what `prony tokens add` printed, and nothing else")
    return token


def keep_report(experiment_id: str, document: bytes) -> Path:
    """Put an HTML report of a server's experiment into this home; the server's own files may be out of reach."""
    from prony.store.home import home, safe_id

    path = home().root / "reports" / f"{safe_id(experiment_id)}.html"
    path.parent.mkdir(parents=True, exist_ok=True)
    path.write_bytes(document)
    return path
