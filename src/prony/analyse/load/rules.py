"""Rules on a load: did the client do what was asked, was it long enough, and how much of it failed?

A run of an MLPerf scenario is judged by MLPerf's own rules.
"""

from __future__ import annotations

from collections.abc import Iterator

import numpy as np

from prony.analyse.load.evidence import LoadEvidence
from prony.analyse.load.rates import request_limits
from prony.analyse.verdict import note, percent, runs_text, suspect, void
from prony.analyse.wording import plain_quantity
from prony.error_codes import SEE_LOG
from prony.instruments.columns import UNKNOWN, Requests
from prony.instruments.requests import CAUSES
from prony.instruments.window import is_open
from prony.instruments.within_limit import JUDGED
from prony.load.mlperf import FAILED, MlperfLimit, MlperfOutcome, judge_scenario, query_latencies, rules
from prony.model.clients import ClientSide
from prony.model.estimate import Reason
from prony.model.load import Load, Mlperf
from prony.model.metric import METRICS, key_of
from prony.ports.driver import Cause
from prony.ports.metric_titles import metric_title
from prony.stats.spread import FEWEST_RUNS


def _outcome_of(run: Requests, mlperf: Mlperf, load: Load) -> MlperfOutcome:
    """Judge all requests of a run; of the server scenario, the limits are those of the recipe's `slo`."""
    begins, ends = run.numbers["begin_ns"], run.numbers["end_ns"]
    if mlperf.scenario == "offline":
        latencies = np.where(run.successes, ends - begins, FAILED)
    else:
        latencies = query_latencies(begins, ends, run.successes, rules(mlperf).samples_per_query)
    # A stream ends when its client sees that the time is over, which is a little after its last reply came.
    lasted = int(begins.max()) - int(begins.min()) if mlperf.scenario == "server" else run.window.length_ns
    return judge_scenario(mlperf, latencies, lasted_ns=lasted, limits=_limits(run, load))


def _limits(run: Requests, load: Load) -> list[MlperfLimit]:
    known = {key_of(key).metric: limit for key, limit in load.slo.items()}
    return [
        MlperfLimit(metric, limit, np.where(run.successes, JUDGED[metric](run), np.inf))
        for metric, limit in known.items()
        if metric in JUDGED
    ]


# A rate that did not come about was another experiment; users who wait for their own client still measure a service.
_DELIVERED_SUSPECT, _RATE_VOID, _USERS_VOID = 0.98, 0.90, 0.50
_LAG_SUSPECT, _LAG_VOID = 0.05, 0.50
_LAG_MS, _LAG_MATTERS = 1.0, 0.01
_BUSIEST = 0.85
_ERRORS = 0.01
_FEWEST_RUNS = 3
_SHORTEST_S, _FEWEST_REQUESTS, _FEWEST_LATENCIES = 2.0, 30, 5


def all_failed(evidence: LoadEvidence) -> Iterator[Reason]:
    """Nothing was answered well: there is no latency to quote."""
    sent = sum(run.count for run in evidence.all_runs)
    if sent and not any(run.successes.any() for run in evidence.all_runs):
        yield void(
            "all_failed",
            f"None of {sent} requests succeeded: {_causes(evidence)}. Check the address; if Prony "
            f"started the service, {SEE_LOG}.",
        )


def errors(evidence: LoadEvidence) -> Iterator[Reason]:
    """A server that refuses is not fast."""
    rate = evidence.estimates.get("error_rate.mean")
    if rate is None or rate.value >= 1 or not evidence.used:
        return
    if rate.value > _ERRORS:
        lost = "" if evidence.value("e2e_with_failures_ms.p99") is not None else _never_ended(evidence)
        yield suspect(
            "errors",
            f"{percent(rate.value)} of the requests failed ({_causes(evidence)}): latencies include only the "
            "others, and a server "
            f"that rejects requests looks faster than it is.{lost}",
        )
    elif any((~run.successes).any() for run in evidence.all_runs):
        yield note("some_errors", f"Some requests failed and are not in the latencies: {_causes(evidence)}.")


def cut_requests(evidence: LoadEvidence) -> Iterator[Reason]:
    """The slowest requests were given up: the tail that is reported is too short."""
    cut = sum(int(np.count_nonzero(run.cause == Cause.CUT)) for run in evidence.all_runs)
    if cut:
        yield suspect(
            "cut",
            f"{_requests(cut)} still in flight when the drain ended: the slowest are missing "
            "from every percentile. Raise load.drain, or lower the load.",
        )


def not_delivered(evidence: LoadEvidence) -> Iterator[Reason]:
    """What was asked of the clients did not come about, so the server was under less load than the recipe says."""
    shares = [share for side in evidence.used_sides if (share := side.delivered_share) is not None]
    if _is_offline(evidence) or not shares or min(shares) >= _DELIVERED_SUSPECT:
        return
    is_rate = evidence.used_sides[0].asked_rate_per_s is not None
    asked, least = ("rate", _RATE_VOID) if is_rate else ("concurrency", _USERS_VOID)
    text = (
        f"The clients delivered {percent(min(shares))} of the {asked} requested: the load was lower than in the "
        "recipe. Use more "
        "load.clients.processes or a machine with more cores, or a lower load."
    )
    yield void("client_bound", text) if min(shares) < least else suspect("client_bound", text)


def late_client(evidence: LoadEvidence) -> Iterator[Reason]:
    """The clients' event loops were late to read: they, and not the server, may be what is measured."""
    median, worst = evidence.value("e2e_ms.p50"), max((_lag_ms(side) for side in evidence.used_sides), default=0.0)
    if not median:
        return
    share = worst / median
    size = f"{percent(share)} of" if share < 2 else f"{share:.0f} times"
    if all(side.kernel_lag_p99_ms is not None for side in evidence.used_sides):
        if share > _LAG_VOID and not is_open(evidence.load):
            yield suspect(
                "client_late",
                f"The clients read replies up to {worst:.3g} ms late (99th percentile), which is {size} the median "
                f"latency of {median:.3g} ms. Latencies use kernel timestamps and do not include this delay, but "
                "the next request of each user waited for it: the client limits part of the throughput. Use more "
                "load.clients.processes.",
            )
        return
    if share <= _LAG_SUSPECT and not (worst > _LAG_MS and share > _LAG_MATTERS):
        return
    text = (
        f"The clients read replies up to {worst:.3g} ms late (99th percentile), which is {size} the median latency "
        f"of {median:.3g} ms: the client is part of what was measured. Use more load.clients.processes, "
        "or run them on another machine."
    )
    yield void("client_late", text) if share > _LAG_VOID else suspect("client_late", text)


def sent_late(evidence: LoadEvidence) -> Iterator[Reason]:
    """Requests left after they were due: their latency, which begins then, holds the client's own delay."""
    median = evidence.value("e2e_ms.p50")
    late = [side.sent_late_p99_ms for side in evidence.used_sides if side.sent_late_p99_ms is not None]
    if not median or not late or _is_offline(evidence):
        return
    worst = max(late)
    if worst > _LAG_MS or worst > _LAG_SUSPECT * median:
        yield suspect(
            "sent_late",
            f"Requests were sent up to {worst:.3g} ms after they were due (99th percentile; the median latency is "
            f"{median:.3g} ms): the client caused this delay. Use more load.clients.processes, "
            "or a lower rate; service_ms starts when a request is sent.",
        )


def busy_client(evidence: LoadEvidence) -> Iterator[Reason]:
    """A client process without a spare moment is late for something."""
    busiest = max((share for side in evidence.used_sides for share in side.cpu_shares), default=0.0)
    if busiest > _BUSIEST:
        yield suspect(
            "client_busy",
            f"A client process used {percent(busiest)} of a core: above {percent(_BUSIEST)} the client may be the "
            "limit, not the "
            "server. Use more load.clients.processes.",
        )


def unwatched_client(evidence: LoadEvidence) -> Iterator[Reason]:
    """Nobody can say whether the client was the limit."""
    if evidence.used and len(evidence.used_sides) < len(evidence.used):
        yield suspect("client_unknown", "The clients of some runs were not monitored: they may have been the limit.")


def fewer_connections(evidence: LoadEvidence) -> Iterator[Reason]:
    """Connections that could not be made are users who were not there."""
    for side in evidence.used_sides:
        asked, opened = side.connections_asked, side.connections_opened
        if asked is not None and opened is not None and opened < asked:
            yield suspect("connections", f"Only {opened} of {asked} connections were opened in a run that counts.")
            return


def asked_again(evidence: LoadEvidence) -> Iterator[Reason]:
    """Some were sent twice: what a server does to the connections that it promised to keep."""
    count = sum(side.asked_again for side in evidence.used_sides)
    if count:
        yield note(
            "asked_again",
            f"{_requests(count)} sent a second time, on a new connection: the server "
            "had closed the old one after its last reply.",
        )


def no_steady_state(evidence: LoadEvidence) -> Iterator[Reason]:
    """Throughput or latency still changes near the end."""
    restless = sum(run.window.steady is False for run in evidence.used)
    if restless:
        behind = " If latency only grows, the server cannot keep up with this rate." if is_open(evidence.load) else ""
        yield suspect(
            "no_steady_state",
            f"No steady state in {restless} of {runs_text(len(evidence.used))}: throughput or latency still changes "
            f"near the end, so everything after the first requests counts. {_lengthen(evidence)}{behind}",
        )


def few_runs(evidence: LoadEvidence) -> Iterator[Reason]:
    """An interval over runs needs runs."""
    clean = len(evidence.used) - len(evidence.selection.contaminated)
    if evidence.searched is not None or evidence.load.mlperf is not None:
        return  # a probe and a scenario are judged by the requests of one run, by rules of their own
    if len(evidence.used) == 1:
        yield suspect(
            "one_run",
            "One run cannot show run-to-run spread, and requests of one run depend on each other: its intervals "
            "are too "
            f"narrow. Use load.repeats: {FEWEST_RUNS} or more to compare results.",
        )
    elif evidence.used and clean < _FEWEST_RUNS:
        there = f"Only {runs_text(clean, 'undisturbed')}" if clean else "No undisturbed run"
        text = f"{there} for these numbers, but they need {_FEWEST_RUNS}: make more runs, or use a quieter machine."
        yield suspect("few_runs", text)


def partial_result(evidence: LoadEvidence) -> Iterator[Reason]:
    """The job was stopped before its end."""
    if evidence.result.state == "partial":
        planned = evidence.load.repeats
        yield suspect("partial", f"The job was stopped early: {runs_text(len(evidence.used))} of {planned} planned.")


def too_short(evidence: LoadEvidence) -> Iterator[Reason]:
    """In a short window the edges weigh more than what lies between them."""
    if not evidence.used:
        return
    shortest_s = min(run.window.length_ns for run in evidence.used) / 1e9
    fewest = min(int(np.count_nonzero(run.latency_rows)) for run in evidence.used)
    median_s = (evidence.value("e2e_ms.p50") or 0.0) / 1000
    if fewest < _FEWEST_REQUESTS:
        why = f"only {fewest} requests of a run count, fewer than {_FEWEST_REQUESTS}"
    elif shortest_s < _SHORTEST_S:
        why = f"the window of a run is {int(shortest_s * 100) / 100:g} s long, and {_SHORTEST_S:g} s are needed"
    elif shortest_s < _FEWEST_LATENCIES * median_s:
        why = f"the window of a run is {shortest_s:.3g} s long, and a request takes {median_s:.3g} s at the median"
    else:
        return
    yield suspect("too_short", f"The load was too short: {why}. {_lengthen(evidence)}")


def tokens_uncounted(evidence: LoadEvidence) -> Iterator[Reason]:
    """Pieces came, and nobody said how many tokens they hold; pieces are not tokens."""
    for run in evidence.used:
        streamed = run.latency_rows & (run.pieces > 0)
        if np.any(run.numbers["output_tokens"][streamed] == UNKNOWN):
            yield note(
                "tokens_uncounted",
                "Tokens of some replies were counted neither by the server nor by a tokenizer, and pieces are not "
                "tokens: token rates and the time per token are missing or only cover the rest.",
            )
            return


def limits_of_requests(evidence: LoadEvidence) -> Iterator[Reason]:
    """A limit on something that no request has is met by none."""
    for metric in request_limits(evidence.load.slo):
        reading = JUDGED[metric]
        if evidence.used and not any(np.isfinite(reading(run)[run.latency_rows]).any() for run in evidence.used):
            text = f"{metric_title(metric)} was not measured, so no request meets its limit."
            yield suspect("slo_unjudged", f"{text} Remove it from load.slo, or use a driver that measures it.")


def limits_of_runs(evidence: LoadEvidence) -> Iterator[Reason]:
    """Say of each limit of a run whether it held; a number that misses a limit is a good measurement all the same."""
    for key, limit in evidence.load.slo.items():
        if "." not in key or not evidence.used:
            continue
        found, metric = evidence.value(key), METRICS.get(key_of(key).metric)
        if found is None or metric is None:
            yield suspect("slo_unjudged", f"The limit on {metric_title(key)} was not checked: the metric is missing.")
            continue
        held = found >= limit if metric.better == "higher" else found <= limit
        text = f"{plain_quantity(found, metric.unit)} against {plain_quantity(limit, metric.unit)}"
        if held:
            yield note("slo_held", f"The limit on {metric_title(key)} was held: {text}.")
        else:
            yield note("slo_missed", f"The limit on {metric_title(key)} was missed: {text}.")


def found_by_search(evidence: LoadEvidence) -> Iterator[Reason]:
    """Say what a search found, and everything that speaks against it."""
    if evidence.searched is None:
        return
    found, noun = evidence.searched.found, evidence.searched.noun
    if found.highest_held is None:
        lowest = f": {found.lowest_not_held:g} {noun}" if found.lowest_not_held is not None else ""
        yield suspect("search_empty", f"No load met the SLO, not even the lowest of the search{lowest}.")
        return
    beyond = f"; {found.lowest_not_held:g} did not" if found.lowest_not_held is not None else ""
    notes = "".join(f" {text[0].upper()}{text[1:]}." for text in found.notes)
    yield note("search_found", f"{found.highest_held:g} {noun} held the SLO{beyond}.{notes}")


def rules_of_mlperf(evidence: LoadEvidence) -> Iterator[Reason]:
    """What MLPerf's own rules say of the runs of a scenario."""
    mlperf = evidence.load.mlperf
    if mlperf is None:
        return
    outcomes = [_outcome_of(run, mlperf, evidence.load) for run in evidence.all_runs if run.count]
    broken = list(dict.fromkeys(text for outcome in outcomes for text in outcome.reasons))
    if broken:
        yield suspect("mlperf_invalid", f"By MLPerf's rules of {mlperf.scenario} it is INVALID: {'; '.join(broken)}.")
    others = list(dict.fromkeys(text for outcome in outcomes for text in outcome.notes))
    if others:
        yield note("mlperf_otherwise", f"Differs from MLPerf's rules: {'; '.join(others)}.")


def _lag_ms(side: ClientSide) -> float:
    """Return how late a client was: by the kernel's stamps where it has them, else by its loop's own."""
    return side.kernel_lag_p99_ms if side.kernel_lag_p99_ms is not None else side.loop_lag_p99_ms or 0.0


def _lengthen(evidence: LoadEvidence) -> str:
    """Say which key of the recipe makes the load longer: the one that ended it."""
    load, keys = evidence.load, {"search": "load.search.probe", "mlperf": "load.mlperf.min_duration"}
    is_cut = any(one.stopped_by == "time" for one in evidence.selection.used)
    if load.asked_requests is not None and not is_cut:
        return f"Raise {'load.closed.requests' if load.users.requests is not None else 'load.requests'}."
    return f"Make {(keys | {'stages': 'load.stages'}).get(load.way, 'load.duration')} longer."


def _is_offline(evidence: LoadEvidence) -> bool:
    """Is everything due at once? Then it is late by design, and there is no rate to deliver."""
    return evidence.load.mlperf is not None and evidence.load.mlperf.scenario == "offline"


def _causes(evidence: LoadEvidence) -> str:
    counts = sum((np.bincount(run.cause, minlength=len(CAUSES)) for run in evidence.all_runs), np.zeros(len(CAUSES)))
    order = sorted(range(1, len(CAUSES)), key=lambda code: -counts[code])
    return ", ".join(f"{int(counts[code])} {CAUSES[code]}" for code in order if counts[code])


def _never_ended(evidence: LoadEvidence) -> str:
    known = evidence.value("e2e_ms.p99")
    return " They count as requests that never end, so the 99th percentile is unknown." if known is not None else ""


def _requests(count: int) -> str:
    return f"{count} request was" if count == 1 else f"{count} requests were"
