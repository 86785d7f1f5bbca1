"""`prony server`: a home or a database in, a server for agents and clients out, until it is stopped."""

from __future__ import annotations

from argparse import ArgumentParser, Namespace
from collections.abc import Iterator
from typing import TYPE_CHECKING

from prony.cli.arguments import add_json, add_server
from prony.errors import CapacityError, InputError

if TYPE_CHECKING:
    from prony.server.sark.server import SarkOptions
    from prony.server.serve import Serving


def arguments(parser: ArgumentParser) -> None:
    """Serve experiments to agents and people; on this machine alone, unless --host says otherwise."""
    parser.add_argument("--host", default="127.0.0.1", help="the address to listen on (127.0.0.1)")
    parser.add_argument("--port", type=int, default=7337, help="the port (7337); 0 takes any that is free")
    parser.add_argument("--database", metavar="URL", default="", help="a PostgreSQL database, not the home's SQLite")
    parser.add_argument("--lease-ttl", metavar="TIME", default="30s", help="how long a silent agent keeps a job (30s)")
    parser.add_argument(
        "--alarm-window", metavar="TIME", default="10s", help="what happens within it, an alarm tells as one (10s)"
    )
    parser.add_argument("--url", default="", help="where people find this server, for links in messages of alarms")
    parser.add_argument(
        "--no-auth",
        action="store_true",
        help="ask nobody who they are; only on loopback, whose every user is an admin then",
    )
    parser.add_argument(
        "--trusted-proxy", metavar="ADDRESS", action="append", default=[],
        help="a proxy, or a network of them, whose X-Forwarded-For is believed; repeatable (none)",
    )  # fmt: skip
    sark = parser.add_argument_group("SARK's API, for Dumont workers and SARK's clients")
    sark.add_argument("--sark", action="store_true", help="serve it too, without tokens, on this machine alone")
    sark.add_argument("--sark-bind", metavar="ADDRESS", default="127.0.0.1", help="the address (127.0.0.1)")
    sark.add_argument("--sark-port", metavar="PORT", type=int, default=5000, help="the port (5000); 0: any free one")
    sark.add_argument("--redis", metavar="URL", default="", help="a Redis for the workers' lists; else its own")
    sark.add_argument(
        "--sark-redis-port",
        metavar="PORT",
        type=int,
        default=6379,
        help="without --redis: the port of its own lists (6379)",
    )
    sark.add_argument(
        "--sark-open-to-anyone", action="store_true",
        help="let others than this machine in: whoever reaches the port may delete, run and report whatever they like",
    )  # fmt: skip
    sark.add_argument(
        "--sark-claim-timeout", metavar="TIME", default="15s",
        help="a job that left its list, and that no worker is busy with by then, is put there again (15s)",
    )  # fmt: skip
    sark.add_argument(
        "--sark-job-timeout", metavar="TIME", default="1h", help="how long a worker may take for a job (1h)"
    )
    parser.add_argument("--log-format", choices=("console", "json"), default="console", help="how the log is written")
    parser.add_argument("--log-level", choices=("debug", "info", "warning", "error"), default="info", help="(info)")
    actions = parser.add_subparsers(dest="action", metavar="ACTION")
    link = actions.add_parser(
        "link", help="print a link that logs a browser in at a running server, one time", allow_abbrev=False
    )
    add_json(link)
    add_server(link)


def command(options: Namespace) -> int:
    return _link(options) if options.action == "link" else _serve(options)


def _link(options: Namespace) -> int:
    from prony.cli.output import print_json, print_text
    from prony.cli.remote import connect

    with connect(options) as client:
        made = client.server.login_link()
        url = client.url + made.path
    if options.json:
        print_json({"url": url, "expires_at": made.expires_at.isoformat()})
    else:
        print_text(url)
    return 0


def _serve(options: Namespace) -> int:
    if not 0 <= options.port <= 65535:
        raise InputError(f"{options.port} is no port", hint="a port is a number from 0 to 65535")
    ttl_s = _seconds(options.lease_ttl, "--lease-ttl", "30s")
    if not 1 <= ttl_s <= 3600:
        hint = "from 1s, so that a beat can be late, to 1h"
        raise InputError(f"--lease-ttl {options.lease_ttl} is out of range", hint=hint)
    window_s = _seconds(options.alarm_window, "--alarm-window", "10s")
    try:
        from prony.server import logs, serve
        from prony.server.forwarded import read_network
    except ModuleNotFoundError as exc:
        raise CapacityError(f"{exc.name} is not installed", hint="pip install 'prony[server]'") from exc
    logs.configure(options.log_format, options.log_level)
    asked = serve.Options(
        options.host,
        options.port,
        options.database,
        lease_ttl_s=ttl_s,
        no_auth=options.no_auth,
        trusted_proxies=tuple(map(read_network, options.trusted_proxy)),
        alarm_window_s=window_s,
        confirm_runs_per_day=_runs_per_day(),
        scripts_quota_bytes=_scripts_quota(),
        url=options.url.rstrip("/"),
        sark=_sark(options),
        prometheus=_page("PRONY_PROMETHEUS_URL"),
        grafana=_page("PRONY_GRAFANA_URL"),
    )
    return serve.serve(asked, _say)


def _sark(options: Namespace) -> SarkOptions | None:
    given = [name for name in ("redis", "sark_open_to_anyone") if getattr(options, name)]
    if not options.sark:
        if given:
            raise InputError(f"--{given[0].replace('_', '-')} goes with --sark", hint="add --sark, or leave it away")
        return None
    for port in (options.sark_port, options.sark_redis_port):
        if not 0 <= port <= 65535:
            raise InputError(f"{port} is no port", hint="a port is a number from 0 to 65535")
    from prony.app.sark import SarkSettings
    from prony.server.sark.server import SarkOptions

    claim_s = _seconds(options.sark_claim_timeout, "--sark-claim-timeout", "15s")
    settings = SarkSettings(
        claim_s=claim_s,
        report_s=min(claim_s, SarkSettings.report_s),
        job_s=_seconds(options.sark_job_timeout, "--sark-job-timeout", "1h"),
    )
    return SarkOptions(
        host=options.sark_bind,
        port=options.sark_port,
        redis=options.redis,
        lists_port=options.sark_redis_port,
        is_for_anyone=options.sark_open_to_anyone,
        settings=settings,
    )


def _runs_per_day() -> int:
    """Return how many runs a day may confirm what histories suspect."""
    import os

    text = os.environ.get("PRONY_CONFIRM_RUNS_PER_DAY", "100")
    if not text.isascii() or not text.isdigit():
        hint = "a whole number of runs, as 100; 0 is none"
        raise InputError(f"PRONY_CONFIRM_RUNS_PER_DAY is {text[:40]!r}", hint=hint)
    return int(text)


def _scripts_quota() -> int:
    """Return how many bytes the folders of scripts may take together."""
    import os

    from pydantic import TypeAdapter, ValidationError

    from prony.model.quantity import SizeBytes

    text = os.environ.get("PRONY_SCRIPTS_QUOTA", "20GiB")
    try:
        return TypeAdapter[int](SizeBytes).validate_python(text)
    except ValidationError as exc:
        raise InputError(f"PRONY_SCRIPTS_QUOTA is {text[:40]!r}", hint="write a size, as 20GiB") from exc


def _page(name: str) -> str:
    """Return the address of a page that people are sent to; empty where none is set."""
    import os

    text = os.environ.get(name, "")
    if text and not text.startswith(("http://", "https://")):
        raise InputError(f"{name} is {text[:80]!r}", hint="an address that begins with http:// or https://")
    return text


def _seconds(text: str, option: str, example: str) -> float:
    from pydantic import TypeAdapter, ValidationError

    from prony.model.quantity import DurationNs

    try:
        return TypeAdapter[int](DurationNs).validate_python(text) / 10**9
    except ValidationError as exc:
        reason = str(exc.errors()[0]["ctx"]["error"])
        raise InputError(f"{option}: {reason}", hint=f"as in {option} {example}") from exc


def _say(serving: Serving) -> None:
    import sys

    from prony.cli.output import print_text

    print_text(f"serving at {serving.url}")
    print_text(f"  home    {serving.home}")
    print_text(f"  API     {serving.url}/docs")
    for line in _access(serving):
        print_text(line)
    sys.stdout.flush()


def _access(serving: Serving) -> Iterator[str]:
    """Say who may do what."""
    from prony.app.login import LINK_S
    from prony.store.home import Home
    from prony.store.owner_token import owner_token_file

    if serving.trusted_proxies:
        yield f"  proxies X-Forwarded-For is believed from {', '.join(map(str, serving.trusted_proxies))}"
    if serving.sark_url:
        who = "anyone on this machine" if serving.sark_is_local else "ANYONE who reaches the port"
        yield f"  SARK    {serving.sark_url}/api: {who} may use it, no token is asked"
        yield f"          workers' lists at {serving.sark_lists}"
    reach = "only this machine can connect" if serving.is_local else "other machines can connect"
    if serving.is_open:
        yield f"  access  {reach}; --no-auth: whoever connects is an admin, whoever comes through a proxy too"
    else:
        yield f"  access  {reach}; every request needs a token or a browser that has logged in"
        yield f"  owner   {owner_token_file(Home(serving.home))} holds an admin's token"
        yield "          commands and agents with this home use it by themselves"
        yield f"  log in  {serving.login_link}"
        yield f"          works once, within {LINK_S // 60} minutes; `prony server link` prints another"
