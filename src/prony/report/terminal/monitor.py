"""Show what a machine does now: its cores, memory, busiest processes and cards."""

from __future__ import annotations

from collections.abc import Sequence
from typing import TYPE_CHECKING

from prony.model.monitor import CardMoment, MachineMoment, ProcessMoment
from prony.report.escaping import one_line
from prony.report.number import DASH

if TYPE_CHECKING:
    from rich.console import Group, RenderableType
    from rich.table import Table
    from rich.text import Text

_BAR = 10
_CELL = 22  # a core's number, bar and percentage
_MANY_CORES = 64
_HOT, _WARM = 90.0, 60.0


def render_machine(moment: MachineMoment, width: int) -> Group:
    """Return one reading as it is drawn in a terminal this wide."""
    from rich.console import Group
    from rich.text import Text

    parts: list[RenderableType] = [Text(_head(moment), style="bold"), *_cores(moment, width)]
    parts += [Text(line) for line in (_memory(moment), _pressure(moment)) if line]
    parts += [Text(""), _processes(moment.processes, "CPU"), Text("")]
    parts += [one for card in moment.cards for one in _card(card)] or [Text(moment.cards_note, style="dim")]
    return Group(*parts)


def _head(moment: MachineMoment) -> str:
    load = " ".join(f"{one:.2f}" for one in moment.load_average)
    words = [
        f"{moment.taken_at:%H:%M:%S}",
        f"CPU {_percent(moment.cpu_percent)} of {len(moment.core_percents)} cores",
        f"load {load}" if load else "",
        f"{moment.clock_mhz:.0f} MHz" if moment.clock_mhz else "",
        f"{moment.temperature_c:.0f} °C" if moment.temperature_c else "",
    ]
    return "   ".join(word for word in words if word)


def _cores(moment: MachineMoment, width: int) -> list[Text]:
    """Return a bar for each core, as many in a line as there is room for; of very many cores, a digit each."""
    from rich.text import Text

    cores = list(moment.core_percents.items())
    if len(cores) > _MANY_CORES:
        tenths = "".join(str(min(9, int(percent // 10))) for _, percent in cores)
        return [Text(f"tenths by core  {tenths}")]
    each = max(1, width // _CELL)
    lines = []
    for begin in range(0, len(cores), each):
        line = Text()
        for cpu, percent in cores[begin : begin + each]:
            line.append(f"{cpu:>3} ").append(_bar(percent), style=_style(percent)).append(f" {percent:>3.0f} %  ")
        lines.append(line)
    return lines


def _bar(percent: float) -> str:
    full = round(percent / 100 * _BAR)
    return "█" * full + "░" * (_BAR - full)


def _style(percent: float) -> str:
    return "red" if percent >= _HOT else "yellow" if percent >= _WARM else "green"


def _memory(moment: MachineMoment) -> str:
    swap = f"   swap {_gib(moment.swap_used_mib, moment.swap_total_mib)}" if moment.swap_total_mib else ""
    return f"memory {_gib(moment.memory_used_mib, moment.memory_total_mib)}{swap}"


def _gib(used_mib: float | None, total_mib: float | None) -> str:
    known = [DASH if mib is None else f"{mib / 1024:.1f}" for mib in (used_mib, total_mib)]
    return f"{known[0]} of {known[1]} GiB"


def _pressure(moment: MachineMoment) -> str:
    told = ", ".join(f"{name} {percent:.0f} %" for name, percent in moment.pressure_percents.items())
    return f"tasks waited for: {told}" if told else ""


def _processes(processes: Sequence[ProcessMoment], used: str) -> Table:
    from rich.table import Table
    from rich.text import Text

    grid = Table(box=None, pad_edge=False, header_style="bold")
    for heading, side in (("PID", "right"), (f"{used} %", "right"), ("MiB", "right"), ("PROCESS", "left")):
        grid.add_column(heading, justify="right" if side == "right" else "left", no_wrap=True)
    for one in processes:
        size = DASH if one.memory_mib is None else f"{one.memory_mib:.0f}"
        share = DASH if one.cpu_percent is None else f"{one.cpu_percent:.0f}"
        grid.add_row(str(one.pid), share, size, Text(one_line(one.name)))
    return grid


def _card(card: CardMoment) -> list[Text]:
    """Return a card in three lines: what it does, what it has, and who uses it."""
    from rich.text import Text

    clock = (
        f"{_number(card.clock_mhz)} of {_number(card.max_clock_mhz)} MHz, memory {_number(card.memory_clock_mhz)} MHz"
    )
    power = f"{_number(card.power_w)} of {_number(card.power_limit_w)} W, {_number(card.temperature_c)} °C"
    busy = f"busy {_percent(card.busy_percent)}, memory busy {_percent(card.memory_busy_percent)}"
    held = f"   clock throttled by: {', '.join(card.held_by)}" if card.held_by else ""
    return [
        Text(f"GPU {card.index}  {one_line(card.name)}", style="bold"),
        Text(f"  {busy}   {_gib(card.memory_used_mib, card.memory_total_mib)}   {power}"),
        Text.assemble(f"  {clock}", (held, "red")),
        Text(f"  used by: {one_line(_users(card))}"),
    ]


def _users(card: CardMoment) -> str:
    if card.processes is None:
        return "unknown to the driver"
    told = [f"{one.pid} {one.name} {'' if one.memory_mib is None else f'{one.memory_mib:.0f} MiB'}".strip()
            for one in card.processes]  # fmt: skip
    return ", ".join(told) or "nobody"


def _percent(value: float | None) -> str:
    return DASH if value is None else f"{value:.0f} %"


def _number(value: float | None) -> str:
    return DASH if value is None else f"{value:.0f}"
