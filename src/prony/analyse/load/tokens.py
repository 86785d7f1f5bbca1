"""Compute token metrics of one run: first token, gaps between tokens and token rates."""

from __future__ import annotations

import numpy as np

from prony.analyse.load.latency import Values
from prony.analyse.runs import NS_PER_MS
from prony.instruments.columns import UNKNOWN, Requests
from prony.instruments.within_limit import tpot_ns
from prony.stats.quantiles import Array

_NS_PER_S = 1e9


def token_latencies(requests: Requests) -> dict[str, Values]:
    """Return the metrics of replies that came in pieces with tokens; none of replies that did not."""
    streamed = requests.latency_rows & (requests.pieces > 0)
    if not streamed.any():
        return {}
    begins = requests.numbers["begin_ns"]
    found = {
        "ttft_ms": Values((requests.first_stamps - begins)[streamed] / NS_PER_MS),
        "itl_ms": Values(gaps_ns(requests, streamed) / NS_PER_MS),
    }
    content = requests.numbers["content_ns"]
    answered = streamed & (content > 0)
    found["ttft_content_ms"] = Values((content - begins)[answered] / NS_PER_MS)
    pace = tpot_ns(requests)[streamed]
    pace = pace[np.isfinite(pace)]
    found["tpot_ms"] = Values(pace / NS_PER_MS)
    found["tokens_per_s_per_user"] = Values(_NS_PER_S / pace[pace > 0])
    return found


def gaps_ns(requests: Requests, rows: Array) -> Array:
    """Return the real gaps between the pieces with tokens of these requests."""
    whole = np.repeat(rows, requests.pieces)
    owner = np.repeat(np.arange(requests.count), requests.pieces)[whole]
    gaps: Array = np.diff(requests.stamps[whole])[owner[1:] == owner[:-1]]
    return gaps


def token_counts(requests: Requests) -> dict[str, int]:
    """Return the tokens of the successes that ended in the window; a count that any of them lacks is left out."""
    found = {}
    for name in ("input_tokens", "output_tokens"):
        tokens = requests.numbers[name][requests.throughput_rows]
        if tokens.size and not np.any(tokens == UNKNOWN):
            found[name] = int(tokens.sum())
    return found
