"""Hold what Prony says of a language model against loops written by hand, in turns in the same process.

    python benchmarks/llm.py overhead
    PYTHONPATH=src python benchmarks/llm.py llamacpp MODEL.gguf        # a python that has xllamacpp
    PYTHONPATH=src python benchmarks/llm.py transformers FOLDER        # a python that has transformers

`overhead`: what a stamp adds to a token of the null engine, against the same loop that calls nothing. `llamacpp`:
tokens a second of Prony's session against llama.cpp's own server in the process. `transformers`: the same against a
plain loop over the model. Each takes turns with the other, on one thread. Tokens a second of CPU time decide; those of
the wall clock stand beside them, with the time that was spent waiting for a CPU. On a busy machine the two loops wait
unlike: a server's threads sleep between tokens, and Linux runs a thread that wakes up before one that never slept.
"""

from __future__ import annotations

import argparse
import statistics
import sys
import time
from collections.abc import Callable
from pathlib import Path
from typing import Any

import numpy as np

from prony.kinds.llm.child.suite import stamper
from prony.ports.llm import LlmOptions, LlmSession

_TOKENS = 16
_TURNS = 60
# Tokens a second of CPU time and of the wall clock, and how long threads waited for a CPU, as a share of it.
Rates = tuple[float, float, float]
# Of each turn, ours and theirs.
Turns = list[tuple[Rates, Rates]]


def main() -> int:
    """Run one check; return 1 where it misses its mark."""
    parser = argparse.ArgumentParser(description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter)
    parser.add_argument("check", choices=("overhead", "llamacpp", "transformers"))
    parser.add_argument("model", nargs="?", type=Path, help="of llamacpp: a GGUF file; of transformers: a folder")
    parser.add_argument("--turns", type=int, default=_TURNS)
    parser.add_argument("--tokens", type=int, default=_TOKENS)
    options = parser.parse_args()
    if options.check == "overhead":
        return _check_overhead(10 * options.turns)
    if options.model is None:
        parser.error(f"{options.check} needs a model")
    compare = _compare_llamacpp if options.check == "llamacpp" else _compare_transformers
    return _tell(options.check, compare(options.model, options.turns, options.tokens))


def _check_overhead(turns: int) -> int:
    """Compare a loop that stamps with one that calls nothing, token by token."""
    from prony.plugins.engines.null import Null

    session, count = Null().load_llm("llm-0us-0us.null", LlmOptions()), 2_000
    first = session.prefill(np.array([[5]], np.int32))
    stamped, bare = [], []
    for _ in range(turns):
        _, stamp = stamper()
        stamped.append(_each_ns(lambda stamp=stamp: session.generate(first, count, stamp), count))  # type: ignore[misc]
        bare.append(_each_ns(lambda: session.generate(first, count, int), count))
    call = min(_each_ns(lambda: [int() for _ in range(count)], count) for _ in range(turns))  # noqa: UP018 - it is timed
    added = min(stamped) - min(bare) + call
    print(
        f"a token of the null engine: {min(bare):.0f} ns, with its stamp {min(stamped):.0f} ns; best of {turns} turns"
    )
    print(f"a stamp costs {added:.0f} ns, with its call; the mark is 1000 ns")
    return 0 if added <= 1000 else 1


def _each_ns(call: Callable[[], object], count: int) -> float:
    begin_ns = time.perf_counter_ns()
    call()
    return (time.perf_counter_ns() - begin_ns) / count


def _time(write: Callable[[], object], tokens: int) -> Rates:
    waited_ns, cpu_ns, begin_ns = _waited_ns(), time.process_time_ns(), time.perf_counter_ns()
    write()
    taken_ns, used_ns = time.perf_counter_ns() - begin_ns, time.process_time_ns() - cpu_ns
    return tokens * 1e9 / used_ns, tokens * 1e9 / taken_ns, (_waited_ns() - waited_ns) / taken_ns


def _waited_ns() -> int:
    """Return how long this process's threads could have run and had no CPU; 0 on systems that do not tell."""
    return sum(int(one.read_text().split()[1]) for one in Path("/proc/self/task").glob("*/schedstat"))


def _write_ours(session: LlmSession, tokens: int) -> Rates:
    """Write tokens as the suite does."""
    session.reset()
    last = session.prefill(np.array([[5]], np.int32))
    return _time(lambda: session.generate(last, tokens, stamper()[1]), tokens)


def _compare_llamacpp(model: Path, turns: int, tokens: int) -> Turns:
    import xllamacpp

    from prony.plugins.engines.llamacpp import Llamacpp

    session = Llamacpp().load_llm(str(model), LlmOptions(context=tokens + 2))
    wanted = xllamacpp.CommonParams()
    wanted.model.path, wanted.n_ctx, wanted.n_parallel = str(model), 512, 1
    wanted.cpuparams.n_threads = wanted.cpuparams_batch.n_threads = 1
    server = xllamacpp.Server(wanted)
    asked = {
        "prompt": [5], "n_predict": tokens, "ignore_eos": True, "cache_prompt": False, "temperature": 0,
        "samplers": ["temperature"], "stream": False,
    }  # fmt: skip
    return [
        (_write_ours(session, tokens), _time(lambda: server.handle_completions(asked), tokens)) for _ in range(turns)
    ]


def _compare_transformers(model: Path, turns: int, tokens: int) -> Turns:
    import torch
    from transformers import DynamicCache

    from prony.plugins.engines.transformers import Transformers

    session = Transformers().load_llm(str(model), LlmOptions(context=tokens + 2))
    network: Any = session._model

    def write_plainly() -> Rates:
        with torch.inference_mode():
            cache = DynamicCache(config=network.config)
            first = network(torch.tensor([[5]]), past_key_values=cache, use_cache=True, logits_to_keep=1)
            return _time(lambda: _loop(network, cache, first.logits[:, -1:].argmax(-1), tokens), tokens)

    return [(_write_ours(session, tokens), write_plainly()) for _ in range(turns)]


def _loop(network: Any, cache: Any, last: Any, tokens: int) -> None:
    for _ in range(tokens):
        last = network(last, past_key_values=cache, use_cache=True, logits_to_keep=1).logits[:, -1:].argmax(-1)
        last.tolist()


def _tell(name: str, turns: Turns) -> int:
    (ours, theirs), (our_wall, their_wall), (our_wait, their_wait) = (
        [statistics.median(one[side][clock] for one in turns) for side in (0, 1)] for clock in (0, 1, 2)
    )
    ratio = statistics.median(one[0][0] / one[1][0] for one in turns)
    print(
        f"{name}, {len(turns)} turns, tokens a second of CPU time: {ours:.1f} by Prony, {theirs:.1f} by the other loop"
    )
    print(f"median ratio {ratio:.4f}, the mark is 0.98 or more")
    print(f"by the wall clock {our_wall:.1f} and {their_wall:.1f}; waited for a CPU: {our_wait:.0%}, {their_wait:.0%}")
    return 0 if ratio >= 0.98 else 1


if __name__ == "__main__":
    sys.exit(main())
