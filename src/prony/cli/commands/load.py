"""`prony load`: send load to an address and show its latencies, without a recipe."""

from __future__ import annotations

from argparse import ArgumentParser, Namespace
from pathlib import Path
from typing import Any

from prony.cli.arguments import RunOutput, add_json, add_report, add_set


def arguments(parser: ArgumentParser) -> None:
    """Load test a URL and watch it live. The result is stored like any other."""
    parser.add_argument("url", help="target URL: http://host/path, redis://host, postgresql://host/db, unix:///path")
    parser.add_argument(
        "-c", "--concurrency", type=int, metavar="N",
        help="requests in flight; with --rate the limit, above which requests are dropped and counted (10)",
    )  # fmt: skip
    parser.add_argument("-d", "--duration", metavar="TIME", help="duration, for example 30s or 5m (10s)")
    parser.add_argument("-n", "--requests", type=int, metavar="N", help="number of requests, instead of a duration")
    parser.add_argument(
        "--rate", type=float, metavar="R", help="open loop: requests per second, sent on time even if answers are late"
    )
    parser.add_argument(
        "--arrivals", choices=("constant", "poisson", "gamma"), help="with --rate: distribution of the gaps (poisson)"
    )
    parser.add_argument("-X", "--method", metavar="WORD", help="HTTP method (GET, or POST with a body)")
    parser.add_argument(
        "-H", "--header", action="append", default=[], metavar="NAME:VALUE", help="HTTP header; repeatable"
    )
    parser.add_argument("--body", metavar="TEXT", help="HTTP body; @FILE reads it from a file")
    parser.add_argument("--driver", metavar="NAME", help="driver (default: from the URL; see `prony drivers`)")
    parser.add_argument(
        "--option", action="append", default=[], metavar="NAME=VALUE", help="option of the driver; repeatable"
    )
    parser.add_argument("--timeout", metavar="TIME", help="timeout of one request (1m)")
    parser.add_argument(
        "--processes", type=int, metavar="N", help="number of client processes (default: as many as needed)"
    )
    parser.add_argument(
        "--repeats", type=int, default=1, metavar="N", help="repetitions of the whole load (1; use 5 for comparisons)"
    )
    add_set(parser)
    add_json(parser)
    add_report(parser)


def command(options: Namespace) -> int:
    from prony.cli.run_here import run_recipe_here
    from prony.cli.run_written import read_written

    return run_recipe_here(read_written(recipe(options), options), RunOutput.of(options), base=Path.cwd())


def recipe(options: Namespace) -> dict[str, Any]:
    """Return the recipe that these options mean."""
    workload: dict[str, Any] = {"kind": "service", "endpoint": options.url, "driver": options.driver}
    workload["driver"] = options.driver or _driver_of(options.url)
    workload["options"] = _http(options) if workload["driver"] == "http" else {}
    workload["options"] |= dict(_option(one) for one in options.option)
    load: dict[str, Any] = {"repeats": options.repeats, "clients": {}}
    for name in ("duration", "requests", "timeout"):
        if getattr(options, name) is not None:
            load[name] = getattr(options, name)
    if options.duration is None and options.requests is None:
        load["duration"] = "10s"
    if options.processes is not None:
        load["clients"]["processes"] = options.processes
    return {"name": "load", "workload": workload, "load": load | _way(options)}


def _way(options: Namespace) -> dict[str, Any]:
    from prony.errors import InputError

    if options.rate is None:
        if options.arrivals is not None:
            raise InputError("--arrivals needs --rate", hint="add --rate")
        return {"closed": {"concurrency": 10 if options.concurrency is None else options.concurrency}}
    most = {} if options.concurrency is None else {"most_in_flight": options.concurrency}
    return {"open": {"rate": options.rate, "arrivals": options.arrivals or "poisson"} | most}


def _driver_of(url: str) -> str:
    """Return the driver that an address means by its first word."""
    from prony.errors import InputError

    scheme = url.partition("://")[0]
    known = {"http": "http", "https": "http", "unix": "http", "redis": "redis", "rediss": "redis"}
    known |= {"postgresql": "postgres", "postgres": "postgres"}
    if scheme not in known:
        raise InputError(f"no driver for {url!r}", hint="for example http://host/path, or choose one with --driver")
    return known[scheme]


def _http(options: Namespace) -> dict[str, Any]:
    body = options.body
    if body is not None and body.startswith("@"):
        body = _content(Path(body[1:]))
    found: dict[str, Any] = {"method": options.method or ("GET" if body is None else "POST")}
    if body is not None:
        found["body"] = body
    if options.header:
        found["headers"] = dict(_header(one) for one in options.header)
    return found


def _content(path: Path) -> str:
    from prony.errors import InputError

    try:
        return path.read_text()
    except (OSError, UnicodeDecodeError) as exc:
        raise InputError(f"cannot read {path}: {exc}", hint="--body @FILE needs a readable text file") from exc


def _header(text: str) -> tuple[str, str]:
    from prony.errors import InputError

    name, colon, value = text.partition(":")
    if not colon:
        raise InputError(f"{text!r} is not a header", hint="for example -H 'Accept: text/plain'")
    return name.strip(), value.strip()


def _option(text: str) -> tuple[str, Any]:
    """Return an option; its value is read as YAML, as `--set` does."""
    import yaml

    from prony.errors import InputError

    name, equals, value = text.partition("=")
    if not equals:
        raise InputError(f"{text!r} is not NAME=VALUE", hint="for example --option value_size=100")
    try:
        return name, yaml.safe_load(value)
    except yaml.YAMLError as exc:
        raise InputError(f"{text!r}: {exc}", hint="put quotes around values with brackets") from exc
