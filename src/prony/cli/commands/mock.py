"""`prony mock`: serve a mock API whose timing is known exactly, until it is stopped."""

from __future__ import annotations

from argparse import ArgumentParser, Namespace
from typing import Any

from prony.cli.arguments import add_json
from prony.errors import CapacityError, InputError

_TIMES = {"ttft": "ttft_ns", "itl": "itl_ns", "stall": "stall_ns"}
_SHARES = ("errors", "reset", "truncate", "garbage", "refuse")
_AS_THEY_ARE = (
    "tokens", "tokens_per_chunk", "reasoning", "tools", "early_headers", "split", "prefix_cache", "lead", "seed",
    "model", "host", "port", "unix",
)  # fmt: skip


def arguments(parser: ArgumentParser) -> None:
    """Serve OpenAI's and Ollama's API, and plain HTTP, with exactly known response times, listed at GET /truth."""
    parser.add_argument("--ttft", metavar="TIME", default="50ms", help="time to first token (50ms)")
    parser.add_argument("--itl", metavar="TIME", default="10ms", help="time between chunks (10ms)")
    parser.add_argument("--tokens", metavar="N", type=int, default=128, help="most tokens in a response (128)")
    parser.add_argument("--tokens-per-chunk", metavar="N", type=int, default=1, help="tokens in a chunk (1)")
    parser.add_argument("--stall", metavar="TIME", default="0", help="a pause in the middle of each stream (0)")
    parser.add_argument("--reasoning", metavar="N", type=int, default=0, help="number of reasoning tokens (0)")
    parser.add_argument("--tools", action="store_true", help="answer chats with a tool call")
    parser.add_argument("--early-headers", action="store_true", help="send response headers before the first token")
    parser.add_argument("--split", action="store_true", help="send each event in two parts, split inside a character")
    _add_faults(parser)
    parser.add_argument(
        "--prefix-cache", metavar="N", type=int, default=0,
        help="prefix cache in blocks of N words: cached words take no time (0: no cache)",
    )  # fmt: skip
    parser.add_argument(
        "--lead", action="store_true", help="answer with the start of the given text, as a simple summary"
    )
    parser.add_argument("--seed", metavar="N", type=int, default=1, help="random seed for the faults (1)")
    parser.add_argument("--model", metavar="NAME", default="mock", help="name of the model (mock)")
    parser.add_argument("--host", default="127.0.0.1", help="the address to listen on (127.0.0.1)")
    parser.add_argument("--port", type=int, default=0, help="the port (0: any free port)")
    parser.add_argument("--unix", metavar="PATH", default="", help="listen on a unix socket, not on a port")
    add_json(parser)


def _add_faults(parser: ArgumentParser) -> None:
    parser.add_argument("--errors", metavar="SHARE", default="0%", help="share of requests that get status 500 (0%%)")
    parser.add_argument(
        "--reset", metavar="SHARE", default="0%", help="share of connections that break mid-stream (0%%)"
    )
    parser.add_argument("--truncate", metavar="SHARE", default="0%", help="share of streams without a terminator (0%%)")
    parser.add_argument(
        "--garbage", metavar="SHARE", default="0%", help="share of streams with an invalid JSON chunk (0%%)"
    )
    parser.add_argument(
        "--refuse",
        metavar="SHARE",
        nargs="?",
        const="100%",
        default="0%",
        help="share of connections closed at once (0%%); without a value: all",
    )


def command(options: Namespace) -> int:
    try:
        from prony.load.mock import server
    except ModuleNotFoundError as exc:
        raise CapacityError(f"{exc.name} is not installed", hint=f"pip install {exc.name}") from exc
    from prony.load.mock.start import MockOptions

    asked = MockOptions(**_read(options))
    return server.run_mock(asked, _say_json if options.json else _say)


def _read(options: Namespace) -> dict[str, Any]:
    from prony.load.mock.start import duration_ns, parse_share

    given = vars(options)
    found = {name: given[name] for name in _AS_THEY_ARE}
    found |= {field: _read_one(name, given[name], duration_ns) for name, field in _TIMES.items()}
    return found | {name: _read_one(name, given[name], parse_share) for name in _SHARES}


def _read_one(name: str, text: str, read: Any) -> Any:
    try:
        return read(text)
    except InputError as exc:
        raise InputError(f"--{name}: {exc.message}", hint=exc.hint) from exc


def _say(url: str) -> None:
    import sys

    from prony.cli.output import print_text

    print_text(f"mock at {url}")
    print_text(f"  truth  {url}/truth")
    sys.stdout.flush()


def _say_json(url: str) -> None:
    import json
    import sys

    from prony.load.mock.server import ready_message

    # One line, because whoever started this waits for just that.
    sys.stdout.write(json.dumps(ready_message(url)) + "\n")
    sys.stdout.flush()
