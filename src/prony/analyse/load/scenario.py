"""Judge one run of an MLPerf scenario by MLPerf's own rules."""

from __future__ import annotations

import numpy as np

from prony.instruments.columns import Requests
from prony.instruments.within_limit import JUDGED
from prony.load.mlperf import FAILED, Limit, MlperfOutcome, judge, query_latencies, rules
from prony.model.load import Load, Mlperf
from prony.model.metric import key_of


def outcome_of(run: Requests, mlperf: Mlperf, load: Load) -> MlperfOutcome:
    """Judge all requests of a run; of the server scenario, the limits are those of the recipe's `slo`."""
    begins, ends = run.numbers["begin_ns"], run.numbers["end_ns"]
    if mlperf.scenario == "offline":
        latencies = np.where(run.successes, ends - begins, FAILED)
    else:
        latencies = query_latencies(begins, ends, run.successes, rules(mlperf).samples_per_query)
    # A stream ends when its client sees that the time is over, which is a little after its last reply came.
    lasted = int(begins.max()) - int(begins.min()) if mlperf.scenario == "server" else run.window.length_ns
    return judge(mlperf, latencies, lasted_ns=lasted, limits=_limits(run, load))


def _limits(run: Requests, load: Load) -> list[Limit]:
    known = {key_of(key).metric: limit for key, limit in load.slo.items()}
    return [
        Limit(metric, limit, np.where(run.successes, JUDGED[metric](run), np.inf))
        for metric, limit in known.items()
        if metric in JUDGED
    ]
