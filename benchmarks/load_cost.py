"""Tools in; how many short requests and streamed tokens each gets from a second of CPU, how fast it starts, and how
much memory it takes, out.

CPU seconds are of all processes of a tool. `all-in` is from its start to its end, with reading the answers and
summarising them; `sending` is from its first request to its last answer.
"""

from __future__ import annotations

import json
from statistics import median

from benchmarks.load_ground import FAST, Bound, Ground, nowhere, number, ratio_bound
from benchmarks.load_tools import Ask, Prony, Told, Tool, Wrk, body
from benchmarks.load_tree import Spent

_SHORT_TOKENS = 4
_BURST_TOKENS = 128
_IN_FLIGHT = 64
_FEW, _MANY = 200, 100_000
_HEAD = (
    f"{'':18}{'count':>10}{'a second':>10}{'CPU us, all-in':>16}{'sending':>9}{'a CPU s, all-in':>17}{'sending':>10}"
)


class PlainProny(Prony):
    """Prony by its driver for any HTTP, which looks into answers as little as wrk does."""

    name = "prony http"
    is_prony = False
    streams = False

    def load(self, ask: Ask) -> Told:
        return self.plain(ask, json.dumps(body(ask.tokens)))


def short(ground: Ground) -> list[Bound]:
    """Chats of a few tokens, not streamed, 64 in flight, answered at once."""
    print(_HEAD + f"{'first s':>9}{'RSS MiB':>9}{'PSS MiB':>9}", flush=True)
    all_in: dict[str, float] = {}
    sending: dict[str, float] = {}
    costs: dict[str, Spent] = {}
    url, folder = nowhere()
    for tool in (*ground.tools, PlainProny()):
        count = ground.size.short if tool.name.startswith("prony") else ground.size.short_peers
        ask = Ask(url, folder, False, _SHORT_TOKENS, count, _IN_FLIGHT, seconds=ground.size.seconds)
        found = ground.load(tool, FAST, ask)
        if found is None:
            continue
        (told, truth), spent = found, found[0].spent
        came = truth["requests"]
        costs[tool.name] = spent
        all_in[tool.name], sending[tool.name] = came / spent.cpu_s, came / max(spent.phase_cpu_s, 1e-9)
        ground.short_per_s[tool.name] = told.reported.get("rate.mean") or came / max(spent.phase_s, 1e-9)
        memory = number(spent.first_s, 9, 2) + number(spent.rss_mib, 9, 0) + number(spent.pss_mib, 9, 0)
        print(_row(tool, came, spent, ground.short_per_s[tool.name]) + memory, flush=True)
    return [*_short_bounds(all_in, sending), *_others(ground, costs)]


def _row(tool: Tool, count: int, spent: Spent, rate: float) -> str:
    micro = 1e6 / count if count else 0.0
    return (
        f"{tool.name:18}{count:10,}{number(rate, 10, 0)}"
        f"{number(spent.cpu_s * micro, 16)}{number(spent.phase_cpu_s * micro)}"
        f"{number(count / spent.cpu_s, 17, 0)}{number(count / max(spent.phase_cpu_s, 1e-9), 10, 0)}"
    )


def _short_bounds(all_in: dict[str, float], sending: dict[str, float]) -> list[Bound]:
    bounds = []
    for word, found in (("all-in", all_in), ("sending", sending)):
        peers = {name: rate for name, rate in found.items() if name not in (Prony.name, PlainProny.name, Wrk.name)}
        if Prony.name in found:
            bounds.append(ratio_bound(f"short requests a CPU second, {word}, 30 times", found[Prony.name], peers, 30))
    text = "short requests a CPU second, sending, within 3 times of wrk"
    if Wrk.name not in sending or PlainProny.name not in sending:
        return [*bounds, Bound(text, None, "wrk or Prony gave no figure")]
    times = {name: sending[Wrk.name] / sending[name] for name in (PlainProny.name, Prony.name) if name in sending}
    told = ", ".join(f"{name} {value:.2f} times" for name, value in times.items())
    beyond = all_in[Wrk.name] / all_in[PlainProny.name]
    return [*bounds, Bound(text, times[PlainProny.name] <= 3, f"{told}; all-in {beyond:.2f} times")]


def _others(ground: Ground, costs: dict[str, Spent]) -> list[Bound]:
    """Judge the start, of a few requests and several times, and the memory of 100,000 requests."""
    starts = []
    url, folder = nowhere()
    for _ in range(ground.size.starts):  # its home is there already, as it is for whoever has run it once
        found = ground.load(ground.prony, FAST, Ask(url, folder, False, _SHORT_TOKENS, _FEW, 8))
        if found and found[0].spent.first_s is not None:
            starts.append((found[0].spent.first_s, found[0].spent.start_cpu_s))
    peers = {name: spent for name, spent in costs.items() if not name.startswith("prony")}
    beside = ", ".join(f"{name} {number(one.first_s, 0, 1)}" for name, one in peers.items())
    found_s, cpu_s = (median(values) for values in zip(*starts, strict=True)) if starts else (None, None)
    held = None if found_s is None else found_s < 1
    told = f"{number(found_s, 0, 2)} s, CPU {number(cpu_s, 0, 2)} s ({beside})"
    bounds = [Bound("start to first request under 1 s", held, told)]
    ours = costs.get(Prony.name)
    if ground.size.short != _MANY:
        found = ground.load(ground.prony, FAST, Ask(url, folder, False, _SHORT_TOKENS, _MANY, _IN_FLIGHT))
        ours = found[0].spent if found else None
    most = f"{ours.rss_mib:.0f} MiB, {ours.pss_mib:.0f} with what processes share counted once" if ours else "-"
    beside = ", ".join(f"{name} {one.rss_mib:,.0f}" for name, one in peers.items())
    text = f"peak memory under 150 MB for {_MANY:,} requests"
    held = None if ours is None else ours.rss_mib * 1.048576 < 150
    bounds.append(Bound(text, held, f"{most} ({beside} MiB)"))
    return bounds


def bursts(ground: Ground) -> list[Bound]:
    """Streams of 128 tokens that come at once, 64 in flight: what reading a token costs."""
    print(_HEAD, flush=True)
    all_in: dict[str, float] = {}
    sending: dict[str, float] = {}
    url, folder = nowhere()
    for tool in ground.streaming():
        count = ground.size.bursts if tool.is_prony else ground.size.bursts_peers
        found = ground.load(tool, FAST, Ask(url, folder, True, _BURST_TOKENS, count, _IN_FLIGHT))
        if found is None:
            continue
        spent, tokens = found[0].spent, found[1]["tokens"]
        all_in[tool.name], sending[tool.name] = tokens / spent.cpu_s, tokens / max(spent.phase_cpu_s, 1e-9)
        print(_row(tool, tokens, spent, tokens / max(spent.phase_s, 1e-9)), flush=True)
    bounds = []
    for word, rates in (("all-in", all_in), ("sending", sending)):
        ours = rates.pop(Prony.name, 0.0)
        bounds.append(ratio_bound(f"streamed tokens a CPU second, {word}, 8 times", ours, rates, 8))
    return bounds
