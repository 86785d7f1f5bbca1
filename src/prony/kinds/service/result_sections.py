"""Tabulate one load: its latencies and figures, how requests ended, the clients, and the service itself."""

from __future__ import annotations

from prony.model.clients import ClientSide
from prony.model.experiment_data import Entry
from prony.model.section import Fact, Section, SectionTable
from prony.report import load_tables, number
from prony.report.load_tables import FigureLine

_CLIENTS = ("run", "asked", "delivered", "sent late p99, max", "read late p99", "loop late p99", "CPU of each",
            "connections")  # fmt: skip


def result_sections(entry: Entry) -> tuple[Section, ...]:
    """Return what was measured of one load; latencies and figures stand open."""
    made = (_latencies(entry), _figures(entry), _causes(entry), _clients(entry), _members(entry), _service(entry))
    return tuple(one for one in made if one is not None)


def _latencies(entry: Entry) -> Section | None:
    headings, rows = ("metric", *load_tables.PERCENTILES), _rows(load_tables.latency_lines(entry))
    table = SectionTable(headings=headings, rows=rows, numeric=tuple(range(1, len(headings))))
    return Section(title="Latency, ms", tables=(table,), is_open=True) if rows else None


def _figures(entry: Entry) -> Section | None:
    rows = tuple((line.name, *line.cells, line.note) for line in load_tables.figure_lines(entry))
    table = SectionTable(headings=("metric", "value", "interval", "method"), rows=rows, numeric=(1, 2))
    return Section(title="Load metrics", tables=(table,), is_open=True) if rows else None


def _causes(entry: Entry) -> Section | None:
    names, rows = load_tables.cause_names(entry), _rows(load_tables.cause_lines(entry))
    table = SectionTable(headings=("run", *names), rows=rows, numeric=tuple(range(1, len(names) + 1)))
    return Section(title="How requests ended", tables=(table,)) if rows else None


def _clients(entry: Entry) -> Section:
    sides = [(one.index, one.client) for one in entry.result.repetitions if one.client is not None]
    rows = tuple((str(index), *_client(side)) for index, side in sides)
    if not rows:
        return Section(title="The clients", note="The clients were not monitored.")
    return Section(title="The clients", tables=(SectionTable(headings=_CLIENTS, rows=rows, numeric=(0,)),))


def _members(entry: Entry) -> Section | None:
    rows = _rows(load_tables.member_lines(entry))
    table = SectionTable(headings=load_tables.MEMBERS, rows=rows, numeric=(1, 2))
    return Section(title="Agents that sent the load", tables=(table,)) if rows else None


def _service(entry: Entry) -> Section | None:
    found = entry.result.service
    if found is None:
        return None
    facts: list[Fact] = [
        ("service", found.name or None), ("version", found.version or None), ("endpoint", found.endpoint or None),
        ("command", " ".join(found.command) or None), ("started", _describe_starts(entry)),
    ]  # fmt: skip
    facts += [(f"setting {name}", value) for name, value in found.settings.items()]
    facts += list(found.notes.items())
    return Section(title="The service, as it reports itself", facts=tuple(facts))


def _describe_starts(entry: Entry) -> str | None:
    """Say when Prony started the service and what that took; None where it did not, or where nothing is kept."""
    found = entry.result.service
    if found is None or found.restart is None:
        return None
    when = "before each run, with fresh data" if found.restart == "each-run" else "once for all runs"
    took = [one.service_start_ms for one in entry.result.repetitions if one.service_start_ms is not None]
    each = ", ".join(number.format_observed(one, "ms") for one in took)
    whole = "" if found.ready_s is None else f"; {found.ready_s:.2g} s including its data, the first time"
    return f"{when}; the program was ready after {each}{whole}" if took else when


def _rows(lines: list[FigureLine]) -> tuple[tuple[str, ...], ...]:
    return tuple((line.name, *line.cells) for line in lines)


def _client(side: ClientSide) -> tuple[str, ...]:
    rate, users = side.asked_rate_per_s, side.asked_concurrency
    asked = f"{rate:.4g} /s" if rate is not None else (number.DASH if users is None else f"{users} users")
    got, flying = side.delivered_rate_per_s, side.delivered_concurrency
    delivered = f"{got:.4g} /s" if got is not None else (number.DASH if flying is None else f"{flying:.4g} in flight")
    opened = f"{side.connections_opened} of {side.connections_asked}" if side.connections_asked is not None else ""
    return (
        asked, delivered, f"{_ms(side.sent_late_p99_ms)}, {_ms(side.sent_late_max_ms)}", _ms(side.kernel_lag_p99_ms),
        _ms(side.loop_lag_p99_ms), ", ".join(number.format_share(one) for one in side.cpu_shares) or number.DASH,
        opened or number.DASH,
    )  # fmt: skip


def _ms(value: float | None) -> str:
    return number.DASH if value is None else number.format_observed(value, "ms")
