"""What a request costs the server by Prony's own way to an operation, beside FastAPI's.

Prony's own routing, binding and answers (`server/operation.py`, `router.py`, `query_params.py`, `body.py`) beside
FastAPI's: its routes, typed parameters, dependencies for principal and role, and its answers by `response_model`; and
a third way, which FastAPI finds and binds and which writes its answers as Prony does. All in one process over one store
(`benchmarks/server_ways.py`), with the same edge before them, asked in turns over HTTP.

Bound: an operation that agents call all the time (the heartbeat) costs at most two thirds of FastAPI's CPU time.
"""

from __future__ import annotations

import asyncio
import json
import sys
import time
from collections.abc import Sequence
from dataclasses import dataclass
from statistics import median

from benchmarks.agents_simulated import Agent, Results, Wire, offer_of_this_machine
from benchmarks.bench import describe, in_turns, ratio_text, scratch
from benchmarks.fleet_ground import Serving, recipe, run_loop, say_machine, server_process
from benchmarks.server_ways import NOUNS, OURS, RESPONSES, WAYS

ROUNDS = 9
REQUESTS = 400
TOGETHER = 4
JOBS = 60
BOUND = 2 / 3
HOT = "heartbeat"


@dataclass(frozen=True)
class Question:
    name: str
    method: str
    path: str
    body: bytes = b""


@dataclass(frozen=True)
class Round:
    """What so many requests took, by one way."""

    cpu_us: float
    latency_ms: float


async def prepare(serving: Serving, results: Results, offer: dict[str, object]) -> list[Question]:
    """Fill the store a little; return what is asked."""
    agent = await Agent.enrolled(serving.url, "agent", offer, results)
    view = await agent.wire.good("POST", "experiments", recipe("waiting", JOBS))
    experiment_id = view["experiment"]["id"]
    (first, *_) = (await agent.wire.good("GET", f"jobs?experiment={experiment_id}&limit=1"))["items"]
    agent.wire.close()
    nothing_failed = {"action": "retry", "experiment": experiment_id, "state": "failed"}
    return [
        Question(HOT, "POST", f"agents/{agent.id}/heartbeat", json.dumps({"incarnation": "one"}).encode()),
        Question("list 50 jobs", "GET", f"jobs?experiment={experiment_id}"),
        Question("get one job", "GET", f"jobs/{first['job']['id'] if 'job' in first else first['id']}"),
        Question("retry a batch", "POST", "jobs/batch", json.dumps(nothing_failed).encode()),
    ]


async def ask_many(serving: Serving, question: Question, way: str, count: int) -> Round:
    """Ask the same again and again over a few connections."""
    wires = [await Wire.open(serving.url) for _ in range(TOGETHER)]
    extra = f"Prony-Way: {way}\r\n"
    taken_s: list[float] = []

    async def one_connection(wire: Wire) -> None:
        for _ in range(count // TOGETHER):
            begin = time.perf_counter()
            said = await wire.ask(question.method, question.path, question.body, extra=extra)
            taken_s.append(time.perf_counter() - begin)
            if said.status != 200:
                raise RuntimeError(f"{question.name} by {way}: {said.status} {said.body[:500]!r}")

    before_s = serving.cpu_s()
    await asyncio.gather(*map(one_connection, wires))
    cpu_s = serving.cpu_s() - before_s
    for wire in wires:
        wire.close()
    return Round(cpu_s / len(taken_s) * 1e6, median(taken_s) * 1e3)


def measure(serving: Serving, question: Question, rounds: int, count: int) -> dict[str, list[Round]]:
    """Return what each way took, round by round, in turns."""
    found: dict[str, list[Round]] = {way: [] for way in WAYS}

    def one_round(way: str) -> float:
        found[way].append(run_loop(lambda: ask_many(serving, question, way, count)))
        return found[way][-1].cpu_us

    for way in WAYS:
        run_loop(lambda way=way: ask_many(serving, question, way, 10 * TOGETHER))  # type: ignore[misc]
    in_turns(rounds, *(lambda way=way: one_round(way) for way in WAYS))
    return found


def show(name: str, found: dict[str, list[Round]]) -> None:
    ours = [one.cpu_us for one in found[OURS]]
    for way, rounds in found.items():
        costs = [one.cpu_us for one in rounds]
        rates = sorted(1e6 / cost for cost in costs)
        print(
            f"{name:15}{_SAID[way]:26}{median(rates):9,.0f}{f'{rates[0]:,.0f} to {rates[-1]:,.0f}':>18}"
            f"{median(costs):9.0f}{median(one.latency_ms for one in rounds):8.2f}   {ratio_text(costs, ours)}",
            flush=True,
        )
        name = ""


_SAID = {OURS: "Prony's own", NOUNS: "FastAPI", RESPONSES: "FastAPI, own answers"}


def check_same(answers: Sequence[bytes]) -> None:
    first, *others = (json.loads(one) for one in answers)
    if any(one != first for one in others):
        raise RuntimeError("the three ways do not answer the same")


async def compare_answers(serving: Serving, questions: Sequence[Question]) -> None:
    """Refuse to measure ways that do not do the same."""
    wire = await Wire.open(serving.url)
    for one in questions[1:]:  # what a heartbeat answers tells the time
        check_same([
            (await wire.ask(one.method, one.path, one.body, extra=f"Prony-Way: {way}\r\n")).body for way in WAYS
        ])  # fmt: skip
    wire.close()


def main() -> int:
    parser = describe(__doc__)
    parser.add_argument("--rounds", type=int, default=ROUNDS)
    parser.add_argument("--requests", type=int, default=REQUESTS, help="in each round")
    parser.add_argument("--only", default="", help=f"operations whose name holds this, and the {HOT}")
    parser.add_argument("--few-routes", action="store_true", help="FastAPI searches these four alone, not all of them")
    options = parser.parse_args()
    say_machine()
    with scratch() as folder:
        home = folder / "home"
        results, offer = Results.made(folder), offer_of_this_machine(folder)
        command = [sys.executable, "-m", "benchmarks.server_ways", str(home), *["few"] * options.few_routes]
        with server_process(command, home) as serving:
            questions = run_loop(lambda: prepare(serving, results, offer))
            run_loop(lambda: compare_answers(serving, questions))
            print(f"{'':41}{'requests a CPU s':>27}{'CPU us':>9}{'ms':>8}   CPU time, ratio to Prony's own")
            for question in [one for one in questions if options.only in one.name or one.name == HOT]:
                found = measure(serving, question, options.rounds, options.requests)
                show(question.name, found)
                if question.name == HOT:
                    hot = median(one.cpu_us for one in found[OURS]) / median(one.cpu_us for one in found[NOUNS])
    print(f"\nbound: a {HOT} costs at most {BOUND:.2f} of FastAPI's CPU time; it costs {hot:.2f}")
    return int(hot > BOUND)


if __name__ == "__main__":
    sys.exit(main())
