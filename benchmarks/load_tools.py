"""What to ask of a mock in; what Prony or wrk made of it out: what they reported, and what they cost."""

from __future__ import annotations

import json
import re
import shutil
import sys
from collections.abc import Mapping
from dataclasses import dataclass, field
from pathlib import Path
from typing import Any, Protocol

from benchmarks.load_tree import FailedError, Spent, run

Numbers = Mapping[str, float]
LIMIT_S = 420.0
MODEL = "mock"
PROMPT_WORDS = 16


@dataclass(frozen=True)
class Ask:
    """One load: `requests` of so many in flight, or `rate` a second for `seconds`. Answers are streamed or whole."""

    url: str
    folder: Path
    streams: bool
    tokens: int
    requests: int
    concurrency: int = 1
    rate: float = 0.0
    seconds: float = 0.0


@dataclass(frozen=True)
class Told:
    """What a tool reported, in milliseconds (`ttft.p50`, `itl.p99` ...), with remarks that belong to it."""

    spent: Spent
    reported: Numbers
    about: Mapping[str, Any] = field(default_factory=dict)


class Tool(Protocol):
    """Whoever loads the mock. `is_prony` has to hold the bounds; `streams`: can it read a stream?"""

    name: str
    is_prony: bool
    streams: bool

    def absent(self) -> str:
        """Return why it cannot run here; nothing where it can."""

    def load(self, ask: Ask) -> Told: ...


class Prony:
    """The command line as a person types it: every process of it counts, and the result folder is written."""

    name = "prony"
    is_prony = True
    streams = True

    def absent(self) -> str:
        return ""

    def load(self, ask: Ask) -> Told:
        workload = {
            "kind": "service",
            "endpoint": ask.url,
            "driver": "openai-chat",
            "options": {"model": MODEL, "stream": ask.streams},
            "prompts": {"input_words": PROMPT_WORDS, "output_tokens": ask.tokens},
        }
        recipe = {"name": "bench", "workload": workload, "load": _load(ask)}
        return self.run(recipe, ask.folder, mock=ask.url, asked=ask.requests)

    def plain(self, ask: Ask, body: str) -> Told:
        """The same request by the driver that knows nothing of LLMs, as wrk sends it."""
        options = {"method": "POST", "body": body, "headers": {"Content-Type": "application/json"}}
        endpoint = f"{ask.url}/v1/chat/completions"
        workload = {"kind": "service", "endpoint": endpoint, "driver": "http", "options": options}
        recipe = {"name": "bench", "workload": workload, "load": _load(ask)}
        return self.run(recipe, ask.folder, mock=ask.url, asked=ask.requests)

    def run(self, recipe: Mapping[str, Any], folder: Path, *, mock: str = "", asked: int = 0) -> Told:
        """Run a recipe; `mock` is whose counters are watched meanwhile."""
        file = folder / "bench.json"
        file.write_text(json.dumps(recipe))
        home = folder / "home"
        command = [str(Path(sys.executable).with_name("prony")), "run", str(file), "--json", "--no-report"]
        spent = run(command, mock, limit_s=LIMIT_S, asked=asked, words={"PRONY_HOME": str(home)})
        said = json.loads(spent.output[spent.output.index("{\n") : spent.output.rindex("}") + 1])
        job, results = said["jobs"][0], home / "results" / said["experiment"]["id"]
        reported, stored = _estimates(job["estimates"]), _from_samples(results)
        shutil.rmtree(results)
        about = dict(job["result"]["repetitions"][0]["client"])
        about["from_samples"] = [name for name in stored if name not in reported]
        return Told(spent, stored | reported, about)


def _load(ask: Ask) -> dict[str, Any]:
    # Nothing is left out at the beginning, because the mock's truth and the peers' figures leave nothing out.
    common = {"repeats": 1, "warmup": "none"}
    if ask.rate:
        way = {"rate": ask.rate, "arrivals": "constant"}
        return {"open": way, "duration": f"{ask.seconds:g}s", **common}
    return {"closed": {"concurrency": ask.concurrency}, "requests": ask.requests, **common}


_NAMES = {"ttft_ms": "ttft", "itl_ms": "itl", "e2e_ms": "e2e", "throughput_per_s": "rate"}


def _estimates(found: Mapping[str, Mapping[str, Any]]) -> dict[str, float]:
    named = {}
    for key, estimate in found.items():
        metric, _, statistic = key.partition(".")
        if metric in _NAMES and estimate["value"] is not None:
            named[f"{_NAMES[metric]}.{statistic}"] = float(estimate["value"])
    return named


def _from_samples(results: Path) -> dict[str, float]:
    """Return the p99 of TTFT from the stored samples: Prony itself reports none of so few requests."""
    import polars as pl

    frame = pl.concat([pl.read_parquet(path) for path in results.rglob("samples.parquet")])
    first = pl.col("token_ns").list.first() - pl.col("begin_ns")
    p99 = frame.filter(pl.col("cause") == "ok").select(first.quantile(0.99, "linear")).item()
    return {} if p99 is None else {"ttft.p99": p99 / 1e6}


class Wrk:
    """The ceiling: C, one thread, and nothing kept of an answer."""

    name = "wrk"
    is_prony = False
    streams = False

    def absent(self) -> str:
        return "" if shutil.which("wrk") else "not installed (Debian's package is called wrk)"

    def load(self, ask: Ask) -> Told:
        script = ask.folder / "post.lua"
        said = json.dumps(body(ask.tokens))
        script.write_text(
            f'wrk.method = "POST"\nwrk.body = [[{said}]]\nwrk.headers["Content-Type"] = "application/json"\n'
        )
        words = ["wrk", "-t", "1", "-c", str(ask.concurrency), "-d", f"{max(1, round(ask.seconds))}s", "--latency"]
        spent = run([*words, "-s", str(script), f"{ask.url}/v1/chat/completions"], ask.url, limit_s=LIMIT_S)
        return Told(spent, _wrk_says(spent.output))


def body(tokens: int) -> dict[str, Any]:
    """Return one short chat, not streamed."""
    text = " ".join(["brake"] * PROMPT_WORDS)
    return {"model": MODEL, "messages": [{"role": "user", "content": text}], "max_tokens": tokens, "stream": False}


def _wrk_says(output: str) -> dict[str, float]:
    units = {"us": 1e-3, "ms": 1.0, "s": 1e3}
    found = {
        f"e2e.p{share}": float(value) * units[unit]
        for share, value, unit in re.findall(r"^\s+(50|99)%\s+([\d.]+)(us|ms|s)$", output, re.MULTILINE)
    }
    rate = re.search(r"Requests/sec:\s+([\d.]+)", output)
    if rate is None:
        raise FailedError("wrk reported no rate")
    return found | {"rate.mean": float(rate[1])}
