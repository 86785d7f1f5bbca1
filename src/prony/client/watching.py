"""Follow a server's event streams: an experiment to its end with reconnects, or all changes."""

from __future__ import annotations

from collections.abc import Callable, Iterator

from prony.client import wire
from prony.client.connection import ApiCall, ApiConnection
from prony.errors import InputError, PronyError, TransportError
from prony.model.base import Noun
from prony.model.event import Changed, Event
from prony.model.event_stream import StreamMessage, stream_messages
from prony.model.experiment import ExperimentState
from prony.model.queue import ExperimentView, QueuedJob

# The server sends something every ten seconds: three that did not come are a dead connection.
_SILENCE_S = 35.0


class Snapshot(Noun):
    """How everything stands."""

    experiment: ExperimentView
    jobs: tuple[QueuedJob, ...]


Update = Snapshot | QueuedJob | Event | ExperimentView

_NOUNS: dict[str, type[Snapshot] | type[QueuedJob] | type[Event] | type[ExperimentView]] = {
    "snapshot": Snapshot,
    "job": QueuedJob,
    "progress": Event,
    "experiment": ExperimentView,
}


def event_kind(update: Update) -> str:
    """Return what the stream calls this kind of update."""
    return next(name for name, noun in _NOUNS.items() if isinstance(update, noun))


def has_ended(view: ExperimentView) -> bool:
    """Whether nothing of an experiment waits or runs any more."""
    return view.experiment.state not in (ExperimentState.PENDING, ExperimentState.RUNNING)


def updates(
    connection: ApiConnection, experiment_id: str, on_lost: Callable[[PronyError, float], None]
) -> Iterator[Update]:
    """Yield what happens until the experiment has ended, however often the connection is lost."""
    ended = False
    pauses = wire.delays()
    while True:
        for update in _until_lost(connection, experiment_id):
            if not isinstance(update, PronyError):
                pauses = wire.delays()
                ended = _has_ended(update, ended)
                yield update
            elif ended:
                return
            else:
                pause_s = next(pauses)
                on_lost(update, pause_s)
                connection.sleep(pause_s)


def watch_changes(connection: ApiConnection) -> Iterator[Changed | None]:
    """Yield what changes anywhere, for as long as the connection holds; None: anything may have changed."""
    for message in _messages(connection, "events"):
        if message.event == "anew":
            yield None
        elif message.event == "changed":
            yield wire.read_answer(Changed, message.data, connection.base)


def _until_lost(connection: ApiConnection, experiment_id: str) -> Iterator[Update | PronyError]:
    """Yield what one connection brings, and last why it brings no more."""
    stream = _messages(connection, "experiments", experiment_id, "events")
    while True:
        try:
            message = next(stream, None)
        except InputError:  # gone, or not ours to see: no waiting helps
            raise
        except PronyError as exc:
            yield exc
            return
        if message is None:
            yield TransportError(f"{connection.base} closed the connection", hint=f"prony watch {experiment_id}")
            return
        update = _read(message, connection.base)
        if update is not None:
            yield update


def _has_ended(update: Update, before: bool) -> bool:
    match update:
        case Snapshot(experiment=view) | (ExperimentView() as view):
            return has_ended(view)
        case _:
            return before


def _messages(connection: ApiConnection, *path: str) -> Iterator[StreamMessage]:
    headers = {"Accept": "text/event-stream", "Accept-Encoding": "identity", "Cache-Control": "no-store"}
    call = ApiCall("GET", path, headers=headers)
    return stream_messages(connection.stream(call, silence_s=_SILENCE_S))


def _read(message: StreamMessage, where: str) -> Update | None:
    """Return the noun of a message, or None for one that only a newer server sends."""
    noun = _NOUNS.get(message.event)
    return None if noun is None else wire.read_answer(noun, message.data, where)
