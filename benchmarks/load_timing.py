"""Tools in; how far what each reports lies from the mock's truth out: first token, gaps, stalls, rates, concurrency."""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import dataclass, replace
from typing import Any

from benchmarks.load_ground import FAST, PACED, Bound, Ground, nowhere, number
from benchmarks.load_tools import Ask, Prony, Told

FIGURES = ("ttft.p50", "ttft.p99", "itl.p50", "itl.p99")
_MEDIAN_MS, _P99_MS = 0.2, 2.0
# Where nobody has CPU to spare, whoever's turn it is decides, and a miss says nothing about the client.
_LEAST_IDLE = 0.1
# Differences below this are not told apart: figures are rounded by some, and the clock's users differ by as much.
_SAME_MS = 0.05
_STALL_MS = 200


@dataclass(frozen=True)
class Errors:
    """How far each figure lies from the truth, in milliseconds; what was not reported is not there."""

    tool: str
    streams: int
    apart_ms: Mapping[str, float]
    idle: float


def timing(ground: Ground) -> list[Bound]:
    """First token after 50 ms, gaps of 10 ms, 64 tokens: reported by truth, and how many streams the mock saw."""
    print("reported / true, in ms (* from Prony's stored samples: too few for it to report that percentile)")
    names = "".join(f"{name:>21}" for name in ("TTFT p50", "TTFT p99", "ITL p50", "ITL p99"))
    print(f"{'streams':>7}  {'':16}{names}{'mean':>8}{'most':>6} in flight{'idle':>7}", flush=True)
    found: list[Errors] = []
    delivered: dict[str, tuple[float, int]] = {}
    url, folder = nowhere()
    for streams in ground.size.streams:
        size = ground.size
        count = max(size.least_streams, min(size.rounds * streams, size.most_streams))
        for tool in ground.streaming():
            ask = Ask(url, folder, True, PACED.tokens, count, streams)
            result = ground.load(tool, PACED, ask)
            if result is not None:
                found.append(_apart(tool.name, streams, *result))
                flight = result[1]["in_flight"]
                delivered[tool.name] = (flight["mean"], flight["max"])
                print(_timing_row(tool.name, streams, *result), flush=True)
    return [*_exact(found), *_smaller(found), _delivered(delivered, ground.size.streams[-1])]


def _truth_ms(truth: Mapping[str, Any], figure: str) -> float | None:
    metric, _, statistic = figure.partition(".")
    value = truth[f"{metric}_ms"][statistic]
    return None if value is None else float(value)


def _apart(tool: str, streams: int, told: Told, truth: Mapping[str, Any]) -> Errors:
    apart = {}
    for figure in FIGURES:
        true_ms = _truth_ms(truth, figure)
        if figure in told.reported and true_ms is not None:
            apart[figure] = abs(told.reported[figure] - true_ms)
    return Errors(tool, streams, apart, told.spent.phase_idle)


def _timing_row(tool: str, streams: int, told: Told, truth: Mapping[str, Any]) -> str:
    cells = ""
    for figure in FIGURES:
        mark = "*" if figure in told.about.get("from_samples", ()) else ""
        said = number(told.reported.get(figure), 0, 2).strip() + mark
        cells += f"{said + ' / ' + number(_truth_ms(truth, figure), 0, 2).strip():>21}"
    flight = truth["in_flight"]
    return f"{streams:7}  {tool:16}{cells}{flight['mean']:8.1f}{flight['max']:6}{told.spent.phase_idle:17.0%}"


def _exact(found: list[Errors]) -> list[Bound]:
    bounds = []
    for one in found:
        if one.tool != Prony.name:
            continue
        limits = {name: _MEDIAN_MS if name.endswith("p50") else _P99_MS for name in FIGURES}
        told = ", ".join(f"{name} {value:.3f}" for name, value in one.apart_ms.items())
        held = all(value < limits[name] for name, value in one.apart_ms.items()) if one.apart_ms else None
        text = f"error at {one.streams} streams under {_MEDIAN_MS} ms at the median, {_P99_MS:g} ms at p99"
        bounds.append(_spared(Bound(text, held, told), one.idle))
    return bounds


def _spared(bound: Bound, idle: float) -> Bound:
    """Take a miss back where the machine had no CPU to spare."""
    if bound.held is not False or idle >= _LEAST_IDLE:
        return bound
    return Bound(bound.text, None, f"{bound.found}; but only {idle:.0%} of the machine was idle")


def _smaller(found: list[Errors]) -> list[Bound]:
    bounds = []
    for ours in (one for one in found if one.tool == Prony.name):
        peers = [one for one in found if one.streams == ours.streams and one.tool != Prony.name]
        text = f"error at {ours.streams} streams smaller than every peer's"
        larger = [
            f"{name} {ours.apart_ms[name]:.2f} ms, {peer.tool} {value:.2f} ms"
            for peer in peers
            for name, value in peer.apart_ms.items()
            if name in ours.apart_ms and ours.apart_ms[name] > value + _SAME_MS
        ]
        if not peers:
            bounds.append(Bound(text, None, "no peer gave a figure"))
        else:
            bounds.append(Bound(text, not larger, "; ".join(larger) or f"than {', '.join(one.tool for one in peers)}"))
    return bounds


def _delivered(found: Mapping[str, tuple[float, int]], asked: int) -> Bound:
    text = f"{asked} streams asked for are in flight at the mock: all at once, and 95 % of them on average"
    told = ", ".join(f"{name} {mean:.0f} (most {most})" for name, (mean, most) in found.items())
    if Prony.name not in found:
        return Bound(text, None, told or "no figure")
    mean, most = found[Prony.name]
    return Bound(text, mean >= 0.95 * asked and most == asked, told)


def stall(ground: Ground) -> list[Bound]:
    """One pause of 200 ms in each stream of 32 tokens: it must be seen in the p99 of the gaps."""
    print(f"{'':18}{'ITL p99 reported':>17}{'true':>9}", flush=True)
    options = replace(PACED, tokens=32, stall_ns=_STALL_MS * 1_000_000)
    url, folder = nowhere()
    bounds: list[Bound] = []
    for tool in ground.streaming():
        found = ground.load(tool, options, Ask(url, folder, True, 32, ground.size.stalls, 8))
        if found is None:
            continue
        reported, true_ms = found[0].reported.get("itl.p99"), _truth_ms(found[1], "itl.p99")
        more = "".join(f"   {key} {value:.1f}" for key, value in found[0].about.items() if key.startswith("also"))
        print(f"{tool.name:18}{number(reported, 17)}{number(true_ms)}{more}", flush=True)
        if tool.is_prony:
            held = reported is not None and true_ms is not None and abs(reported - true_ms) < _P99_MS
            said = f"{number(reported, 0)} ms, true {number(true_ms, 0)}"
            bounds.append(Bound(f"a stall of {_STALL_MS} ms in each stream is in the p99 gap", held, said))
    return bounds


def open_loop(ground: Ground) -> list[Bound]:
    """A constant rate, half of the most that the tool reached: what came at the mock, and how late it was sent."""
    print(f"{'':18}{'asked/s':>9}{'came/s':>10}{'of asked':>10}{'gap p50 ms':>12}{'p99':>9}", end="")
    print(f"{'sent late p50':>15}{'p99 ms':>9}", flush=True)
    bounds: list[Bound] = []
    url, folder = nowhere()
    for tool in ground.tools:
        most = ground.short_per_s.get(tool.name)
        if tool.name == "wrk" or (most is None and not tool.is_prony):
            continue
        rate = float(round((most or _most(ground)) / 2))
        ask = Ask(url, folder, False, 4, round(rate * ground.size.seconds), 64, rate, ground.size.seconds)
        found = ground.load(tool, FAST, ask)
        if found is None:
            continue
        told, truth = found
        came = _came_per_s(truth, ask.requests)
        late = [told.about.get(f"sent_late_{name}_ms") for name in ("p50", "p99")]
        gaps = [truth["arrivals"]["gap_ns"][name] / 1e6 for name in ("p50", "p99")]
        print(
            f"{tool.name:18}{rate:9,.0f}{came:10,.1f}{came / rate:10.2%}{gaps[0]:12.3f}{gaps[1]:9.3f}"
            f"{number(late[0], 15, 3)}{number(late[1], 9, 3)}",
            flush=True,
        )
        if tool.is_prony:
            judged = _open_bounds(came / rate, truth["requests"] / ask.requests, late[1])
            first = "" if told.about.get("is_real_time") else "not "
            print(f"{'':18}its clients did {first}run before ordinary processes", flush=True)
            bounds += [_spared(bound, told.spent.phase_idle) for bound in judged]
    return bounds


def _came_per_s(truth: Mapping[str, Any], asked: int) -> float:
    """Return the rate at which requests came; one beyond those asked for came long before, and is left out."""
    gaps = truth["arrivals"]["gap_ns"]
    apart, count = gaps["mean"] * gaps["count"], gaps["count"]
    if truth["requests"] > asked:
        apart, count = apart - gaps["max"], count - 1
    return float(count / apart * 1e9)


def _most(ground: Ground) -> float:
    url, folder = nowhere()
    found = ground.load(ground.prony, FAST, Ask(url, folder, False, 4, 50_000, 64))
    return found[0].reported["rate.mean"] if found else 2000.0


def _open_bounds(of_rate: float, of_count: float, late_ms: float | None) -> list[Bound]:
    is_same = abs(of_rate - 1) < 0.005 and abs(of_count - 1) < 0.005
    same = f"{of_rate:.3%} of the rate, {of_count:.3%} of the requests"
    held, late = None if late_ms is None else late_ms < 0.3, f"{number(late_ms, 0, 3)} ms"
    return [
        Bound("open loop: achieved within 0.5 % of asked", is_same, same),
        Bound("open loop at half of the maximum: p99 of sent minus due under 0.3 ms", held, late),
    ]
