"""Send an experiment's results and logs to another program, chosen by the name that its address begins with."""

from __future__ import annotations

import re
from collections.abc import Callable, Iterator, Sequence

from prony.app.printed_lines import JOB_LOG
from prony.errors import InputError, NotFoundError
from prony.model.experiment_data import ExperimentData
from prony.model.log import LogPiece
from prony.ports import plugins
from prony.ports.destination import Destination, ExportedJob

EXPORT_TO = "PRONY_EXPORT_TO"
# A longer log is sent from here on, counted from its end: what failed stands there.
LOG_BYTES = 2**20
_ADDRESS = re.compile(r"([a-z0-9-]+)\+(https?://\S+)", re.ASCII)

ReadText = Callable[[str, str, int], LogPiece]


def find_address(text: str, known: Sequence[str]) -> str | None:
    """Return the address of a destination, given as it is or by the name of one that is set; None where it is neither.

    Args:
        text: What a person gave: `mlflow`, or `mlflow+http://127.0.0.1:5000`.
        known: The addresses that are set.

    Raises:
        InputError: It is the name of a destination, and no address of it is set.
        NotFoundError: No destination has this name.
    """
    if _ADDRESS.fullmatch(text):
        plugins.target(plugins.DESTINATIONS, destination_name(text))
        return text
    if text not in plugins.find_plugins(plugins.DESTINATIONS):
        return None
    for address in known:
        if destination_name(address) == text:
            return address
    raise InputError(
        f"no address for {text} is set", hint=f"write --to {text}+http://HOST:PORT, or set {EXPORT_TO} to that address"
    )


def destination_name(address: str) -> str:
    """Return the name that an address begins with; the rest may hold a password and is not for people."""
    return address.partition("+")[0]


def read_addresses(text: str) -> tuple[str, ...]:
    """Return the addresses of a setting, each checked as far as that can be done without asking.

    Raises:
        InputError: One is no address, or lacks something.
        NotFoundError: No destination has the name that one begins with.
    """
    found = tuple(dict.fromkeys(filter(None, map(str.strip, text.split(",")))))
    for address in found:
        if not _ADDRESS.fullmatch(address):
            hint = "write NAME+http://HOST:PORT, for example mlflow+http://127.0.0.1:5000"
            raise InputError(f"{EXPORT_TO} is not a valid address", hint=hint)
        open_destination(address)
    return found


def open_destination(address: str) -> Destination:
    """Return the destination behind an address."""
    name, _, url = address.partition("+")
    made: Destination = plugins.load_plugin(plugins.DESTINATIONS, name)(url)
    return made


def send_experiment(address: str, data: ExperimentData, read_text: ReadText) -> str:
    """Send an experiment with the logs of its jobs; return where a person finds it there."""
    return open_destination(address).send(data.experiment, _read_jobs(data, read_text))


def _read_jobs(data: ExperimentData, read_text: ReadText) -> Iterator[ExportedJob]:
    """Yield one job after the other: the logs of all of them may be more than fits into memory."""
    for entry in data.entries:
        yield ExportedJob(entry, _log_of(entry.job.id, read_text))


def _log_of(job_id: str, read_text: ReadText) -> str:
    kept, offset = b"", 0
    try:
        while True:
            piece = read_text(job_id, f"logs/{JOB_LOG}", offset)
            if piece.next_offset == offset:
                return kept.decode(errors="replace")
            offset = piece.next_offset
            kept += piece.text
            if len(kept) > LOG_BYTES:
                kept = kept[-LOG_BYTES:].partition(b"\n")[2]
    except NotFoundError:  # results of `prony exec` have none
        return ""
