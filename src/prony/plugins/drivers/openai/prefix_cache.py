"""Empty and read the prefix cache of servers that speak OpenAI's API: vLLM, SGLang and llama.cpp."""

from __future__ import annotations

from collections.abc import Iterable, Mapping
from dataclasses import replace

from prony.errors import PronyError, SutError
from prony.plugins.drivers.http.session import HttpSession
from prony.ports.driver import CacheCounts, Endpoint
from prony.runner.load_telemetry import parse_metrics

# Of each server: the counter of tokens that it had in its cache, and those that are all tokens together.
_COUNTERS: tuple[tuple[str, str, tuple[str, ...]], ...] = (
    ("vLLM", "vllm:prefix_cache_hits_total", ("vllm:prefix_cache_queries_total",)),
    ("vLLM", "vllm:gpu_prefix_cache_hits_total", ("vllm:gpu_prefix_cache_queries_total",)),
    ("SGLang", "sglang:cached_tokens_total", ("sglang:prompt_tokens_total",)),
    (
        "llama.cpp",
        "llamacpp:prompt_tokens_cached_total",
        ("llamacpp:prompt_tokens_total", "llamacpp:prompt_tokens_cached_total"),
    ),
)
_NOT_THERE = (404, 405)
_NONE_OFFERED = (
    "the server cannot empty its cache: vLLM can if started with VLLM_SERVER_DEV_MODE=1, SGLang "
    "always, llama.cpp with --slot-save-path"
)


class ServerCache:
    """The prefix cache of one server."""

    def __init__(self, endpoint: Endpoint, headers: Mapping[str, str]) -> None:
        base, _, last = endpoint.base.rstrip("/").rpartition("/")
        is_version = last[:1] == "v" and last[1:2].isdigit()
        self._endpoint = replace(endpoint, base=base if is_version else endpoint.base, query="")
        self._headers = {name: value for name, value in headers.items() if name != "Content-Type"}
        self._tells = True

    def reset(self) -> str:
        """Empty it; return what was asked for it."""
        with HttpSession(self._endpoint, self._headers) as session:
            for path in ("/reset_prefix_cache", "/flush_cache"):
                answer = session.ask("POST", path, good=_NOT_THERE)
                if answer.status_code not in _NOT_THERE:
                    return f"POST {path}"
            return self._erase_slots(session)

    def _erase_slots(self, session: HttpSession) -> str:
        """Erase every slot of a llama.cpp server."""
        listed = session.ask("GET", "/slots", good=(*_NOT_THERE, 501))
        slots = listed.json() if listed.status_code == 200 else []
        numbers = [slot.get("id") for slot in slots if isinstance(slot, dict)] if isinstance(slots, list) else []
        if not numbers:
            raise SutError(_NONE_OFFERED, hint="or use load.cache: as-is")
        for number in numbers:
            answer = session.ask("POST", f"/slots/{number}?action=erase", good=(*_NOT_THERE, 501))
            if answer.status_code != 200:
                raise SutError(_NONE_OFFERED, hint="or use load.cache: as-is")
        return "POST /slots/N?action=erase"

    def read_counts(self) -> CacheCounts | None:
        """Return the server's counters; one that has none is not asked again."""
        if not self._tells:
            return None
        try:
            with HttpSession(self._endpoint, self._headers) as session:
                found = counts_in(parse_metrics(session.ask("GET", "/metrics").text))
        except PronyError:  # a server without such a page is as good as any
            found = None
        self._tells = found is not None
        return found


def counts_in(numbers: Mapping[str, float]) -> CacheCounts | None:
    """Find the counters of a cache among the numbers of a Prometheus page."""
    for server, hit, queried in _COUNTERS:
        if _total(numbers, [hit]) is not None and (asked := _total(numbers, queried)) is not None:
            return CacheCounts(server, asked, _total(numbers, [hit]) or 0.0)
    return None


def _total(numbers: Mapping[str, float], names: Iterable[str]) -> float | None:
    """Return the sum over all labels of all names; None where one of them is not there."""
    total = 0.0
    for name in names:
        values = [value for key, value in numbers.items() if key.partition("{")[0] == name]
        if not values:
            return None
        total += sum(values)
    return total
