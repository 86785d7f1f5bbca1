"""What to ask of a mock in; what guidellm, AIPerf and inference-perf made of it out: reports and costs.

Each is asked to trust the server's token counts where it can, and to write no more than its summary.
"""

from __future__ import annotations

import json
import shutil
from collections.abc import Mapping, Sequence
from pathlib import Path
from typing import Any

from benchmarks.load_install import TOKENIZER, folder, is_ready
from benchmarks.load_tools import LIMIT_S, MODEL, PROMPT_WORDS, Ask, Told, Tool
from benchmarks.load_tree import FailedError, Spent, run

_OFFLINE = {"HF_HUB_OFFLINE": "1", "TRANSFORMERS_OFFLINE": "1", "NO_PROXY": "127.0.0.1", "DO_NOT_TRACK": "1"}


class Peer:
    """A load generator for LLMs in an environment of its own."""

    name = ""
    is_prony = False
    streams = True
    words: Mapping[str, str] = _OFFLINE

    def absent(self) -> str:
        return "" if is_ready(self.name) else "not installed (`make bench-peers` does, or says why it cannot)"

    def load(self, ask: Ask) -> Told:
        out = ask.folder / "out"
        shutil.rmtree(out, ignore_errors=True)
        out.mkdir()
        program = str(folder(self.name).resolve() / "bin" / self.name)
        spent = run(
            [program, *self.arguments(ask, out)],
            ask.url,
            limit_s=LIMIT_S,
            asked=ask.requests,
            words=self.words,
            cwd=ask.folder,
        )
        return self.told(spent, out)

    def arguments(self, ask: Ask, out: Path) -> Sequence[str]:
        raise NotImplementedError

    def told(self, spent: Spent, out: Path) -> Told:
        raise NotImplementedError


def _document(spent: Spent, out: Path, name: str) -> Any:
    """Return the report of that name; one that is missing has its reason in what was printed."""
    found = next(iter(out.rglob(name)), None)
    if found is None:
        raise FailedError(f"no {name} was written: {spent.output.strip()[-300:]}")
    return json.loads(found.read_text())


def _spread(reported: Mapping[str, Mapping[str, Any]], names: Mapping[str, str], unit: float) -> dict[str, float]:
    """Return medians and p99s in milliseconds by our names."""
    found = {}
    for theirs, ours in names.items():
        spread = reported.get(theirs) or {}
        for statistic, keys in {"p50": ("p50", "median"), "p99": ("p99",)}.items():
            value = next((spread[key] for key in keys if spread.get(key) is not None), None)
            if value is not None:
                found[f"{ours}.{statistic}"] = float(value) * unit
    return found


class AiPerf(Peer):
    name = "aiperf"
    # Its tokenizer is not found by a path when the hub is said to be away.
    words: Mapping[str, str] = {"NO_PROXY": "127.0.0.1", "DO_NOT_TRACK": "1"}

    def arguments(self, ask: Ask, out: Path) -> Sequence[str]:
        way = ["--request-rate", f"{ask.rate:g}", "--arrival-pattern", "constant"] if ask.rate else []
        way += [] if ask.rate else ["--concurrency", str(ask.concurrency)]
        return [
            *("profile", "--model", MODEL, "--url", ask.url, "--endpoint-type", "chat"),
            *(["--streaming"] if ask.streams else []),
            *("--request-count", str(ask.requests), *way),
            *("--isl", str(PROMPT_WORDS), "--osl", str(ask.tokens), "--tokenizer", str(TOKENIZER)),
            *("--use-server-token-count", "--no-server-metrics", "--no-gpu-telemetry", "--ui", "none"),
            *("--export-level", "summary", "--artifact-dir", str(out)),
        ]

    def told(self, spent: Spent, out: Path) -> Told:
        found = _document(spent, out, "profile_export_aiperf.json")
        names = {"time_to_first_token": "ttft", "inter_token_latency": "itl", "request_latency": "e2e"}
        real = (found.get("inter_chunk_latency") or {}).get("p99")
        about = {} if real is None else {"also inter_chunk_latency p99": real}
        rate = (found.get("request_throughput") or {}).get("avg")
        return Told(spent, _spread(found, names, 1.0) | ({"rate.mean": rate} if rate else {}), about)


class InferencePerf(Peer):
    name = "inference-perf"

    def arguments(self, ask: Ask, out: Path) -> Sequence[str]:
        file = ask.folder / "config.json"
        file.write_text(json.dumps(self._config(ask, out)))
        return ["--config_file", str(file)]

    @staticmethod
    def _config(ask: Ask, out: Path) -> dict[str, Any]:
        stage: dict[str, Any] = {"num_requests": ask.requests, "concurrency_level": ask.concurrency}
        if ask.rate:
            stage = {"rate": ask.rate, "duration": round(ask.seconds)}

        def length(tokens: int) -> dict[str, Any]:
            span = {"min": tokens, "max": tokens, "mean": tokens, "std_dev": 0}
            return {"type": "fixed", "total_count": ask.requests, **span}

        return {
            # Its random prompts are for completions only; what is streamed back is the same.
            "api": {"type": "completion", "streaming": ask.streams},
            "data": {
                "type": "random",
                "input_distribution": length(PROMPT_WORDS),
                "output_distribution": length(ask.tokens),
            },
            "load": {
                "type": "constant" if ask.rate else "concurrent",
                "interval": 0,
                "stages": [stage],
                "worker_max_concurrency": 1000,
            },
            "server": {"type": "vllm", "model_name": MODEL, "base_url": ask.url},
            "tokenizer": {"pretrained_model_name_or_path": str(TOKENIZER)},
            "report": {
                "request_lifecycle": {"per_stage": False, "per_adapter": False, "use_server_output_tokens": True},
                "prometheus": None,
            },
            "storage": {"local_storage": {"path": str(out)}},
        }

    def told(self, spent: Spent, out: Path) -> Told:
        found = _document(spent, out, "summary_lifecycle_metrics.json")["successes"]
        if not found["count"]:
            raise FailedError("no request of it succeeded")
        names = {"time_to_first_token": "ttft", "inter_token_latency": "itl", "request_latency": "e2e"}
        rate = {"rate.mean": float(found["throughput"]["requests_per_sec"])}
        return Told(spent, _spread(found["latency"], names, 1e3) | rate)


class GuideLlm(Peer):
    name = "guidellm"

    def arguments(self, ask: Ask, out: Path) -> Sequence[str]:
        way = f"kind=constant,rate={ask.rate:g}" if ask.rate else f"kind=concurrent,streams={ask.concurrency}"
        stream = "true" if ask.streams else "false"
        return [
            *("run", "--backend", f"kind=openai_http,target={ask.url},model={MODEL},stream={stream}"),
            *("--profile", way, "--constraint", f"kind=max_requests,count={ask.requests}"),
            *("--tokenizer", f"kind=huggingface_auto,model={TOKENIZER}"),
            *("--data", f"kind=synthetic_text,prompt_tokens={PROMPT_WORDS},output_tokens={ask.tokens}"),
            *("--output", f"kind=json,path={out / 'report.json'}", "--disable-console"),
        ]

    def told(self, spent: Spent, out: Path) -> Told:
        found = _document(spent, out, "report.json")["benchmarks"][0]["metrics"]
        names = {"time_to_first_token_ms": "ttft", "inter_token_latency_ms": "itl"}
        spreads = {name: found[name]["successful"]["percentiles"] or {} for name in names}
        rate = {"rate.mean": float(found["requests_per_second"]["successful"]["mean"])}
        return Told(spent, _spread(spreads, names, 1.0) | rate)


PEERS: tuple[Tool, ...] = (GuideLlm(), AiPerf(), InferencePerf())
