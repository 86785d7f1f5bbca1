"""`prony server`: serve experiments to agents and clients until it is stopped."""

from __future__ import annotations

import atexit
import os
from argparse import ArgumentParser, Namespace
from collections.abc import Callable, Iterator
from pathlib import Path
from typing import TYPE_CHECKING

from prony.cli.arguments import add_json, add_server
from prony.errors import CapacityError, InputError
from prony.ports import plugins
from prony.ports.face import Face

if TYPE_CHECKING:
    from prony.server.serve import Serving


def arguments(parser: ArgumentParser) -> None:
    """Start a server for agents and people; only for this machine, unless --host is given."""
    parser.add_argument(
        "--demo", action="store_true",
        help="a demo: recorded experiments and an agent on this machine, in a home that is deleted at the end",
    )  # fmt: skip
    parser.add_argument("--demo-home", metavar="FOLDER", type=Path, help="with --demo: use this home and keep it")
    parser.add_argument("--host", default="127.0.0.1", help="the address to listen on (127.0.0.1)")
    parser.add_argument("--port", type=int, default=7337, help="the port (7337); 0: any free port")
    parser.add_argument(
        "--database", metavar="URL", default="", help="use this PostgreSQL database instead of the home's SQLite"
    )
    parser.add_argument(
        "--lease-ttl",
        metavar="TIME",
        default="30s",
        help="time until a job of a silent agent goes back to the queue, 1s to 1h (30s)",
    )
    parser.add_argument(
        "--alarm-window", metavar="TIME", default="10s", help="events within this time become one alarm message (10s)"
    )
    parser.add_argument("--url", default="", help="public URL of this server, for its links")
    parser.add_argument(
        "--no-auth",
        action="store_true",
        help="no authentication: every user is an admin; only on loopback",
    )
    parser.add_argument(
        "--trusted-proxy", metavar="ADDRESS", action="append", default=[],
        help="trusted proxy, or network of proxies: its X-Forwarded-For is used; repeatable (none)",
    )  # fmt: skip
    for face in _faces():
        face.add_options(parser)
    parser.add_argument("--log-format", choices=("console", "json"), default="console", help="log format (console)")
    parser.add_argument(
        "--log-level",
        choices=("debug", "info", "warning", "error"),
        default="info",
        help="log level (info)",
    )
    actions = parser.add_subparsers(dest="action", metavar="ACTION")
    link = actions.add_parser(
        "link", help="print a one-time link that logs a browser in to a running server", allow_abbrev=False
    )
    add_json(link)
    add_server(link)


def command(options: Namespace) -> int:
    if options.action == "link":
        return _link(options)
    if options.demo_home and not options.demo:
        raise InputError("--demo-home needs --demo", hint="add --demo, or leave it out")
    ending: list[int] = []
    atexit.register(_leave, ending)  # the first to be registered is the last to be called
    ending.append(_serve_demo(options) if options.demo else _serve(options, _say))
    return ending[0]


def _leave(ending: list[int]) -> None:
    """End a process that has closed everything: freeing its objects one by one can outlast the time for its end."""
    if ending:
        os._exit(ending[0])


def _serve_demo(options: Namespace) -> int:
    from prony.cli.demo import DemoAgent, open_demo_home
    from prony.store.home import Home
    from prony.store.owner_token import owner_token_file

    if options.database:
        raise InputError("--demo uses its own database", hint="leave out --database, or use --database ''")
    agent = DemoAgent()

    def begin(serving: Serving) -> None:
        _say(serving)
        agent.start(serving.url, None if serving.is_open else owner_token_file(Home(serving.home)))

    with open_demo_home(options.demo_home):
        try:
            return _serve(options, begin)
        finally:
            agent.stop()


def _link(options: Namespace) -> int:
    from prony.cli.output import print_json, print_text
    from prony.cli.remote import connect_server

    with connect_server(options) as client:
        made = client.server.login_link()
        url = made.at(client.url)
    if options.json:
        print_json({"url": url, "expires_at": made.expires_at.isoformat()})
    else:
        print_text(url)
    return 0


def _serve(options: Namespace, say: Callable[[Serving], None]) -> int:
    from prony.model.quantity import read_seconds

    if not 0 <= options.port <= 65535:
        raise InputError(f"{options.port} is not a port", hint="a port is a number from 0 to 65535")
    ttl_s = read_seconds(options.lease_ttl, "--lease-ttl", "30s")
    if not 1 <= ttl_s <= 3600:
        hint = "choose 1s to 1h; below 1s, one late heartbeat would lose the job"
        raise InputError(f"--lease-ttl {options.lease_ttl} is out of range", hint=hint)
    window_s = read_seconds(options.alarm_window, "--alarm-window", "10s")
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
        faces=tuple(asked for face in _faces() if (asked := face.read_options(options)) is not None),
        prometheus=_page("PRONY_PROMETHEUS_URL"),
        grafana=_page("PRONY_GRAFANA_URL"),
        otlp_url=_page("PRONY_OTLP_URL"),
        export_to=_destinations(),
    )
    return serve.serve(asked, say)


def _faces() -> list[Face]:
    """Load every face of another program that can be served beside the server's own."""
    return list(plugins.create_all(plugins.FACES).values())


def _runs_per_day() -> int:
    """Return how many runs a day may confirm what histories suspect."""
    text = os.environ.get("PRONY_CONFIRM_RUNS_PER_DAY", "100")
    if not text.isascii() or not text.isdigit():
        hint = "set a whole number of runs, for example 100; 0 means none"
        raise InputError(f"PRONY_CONFIRM_RUNS_PER_DAY is {text[:40]!r}", hint=hint)
    return int(text)


def _scripts_quota() -> int:
    """Return how many bytes the folders of scripts may take together."""
    from pydantic import TypeAdapter, ValidationError

    from prony.model.quantity import SizeBytes

    text = os.environ.get("PRONY_SCRIPTS_QUOTA", "20GiB")
    try:
        return TypeAdapter[int](SizeBytes).validate_python(text)
    except ValidationError as exc:
        raise InputError(f"PRONY_SCRIPTS_QUOTA is {text[:40]!r}", hint="set a size, for example 20GiB") from exc


def _destinations() -> tuple[str, ...]:
    """Return where ended experiments are sent."""
    from prony.app.destinations import EXPORT_TO, read_addresses

    return read_addresses(os.environ.get(EXPORT_TO, ""))


def _page(name: str) -> str:
    """Return an address that a setting holds; empty where it is not set."""
    text = os.environ.get(name, "")
    if text and not text.startswith(("http://", "https://")):
        raise InputError(f"{name} is {text[:80]!r}", hint="must begin with http:// or https://")
    return text


def _say(serving: Serving) -> None:
    import sys

    from prony.cli.output import print_text
    from prony.server.web import has_site

    print_text(f"serving at {serving.url}")
    print_text(f"  home    {serving.home}")
    print_text(f"  API     {serving.url}/docs")
    if not has_site():
        print_text("  pages   not built in this checkout: `make ui` builds them (Node.js 20.19 or newer); then reload")
    for line in _access(serving):
        print_text(line)
    sys.stdout.flush()


def _access(serving: Serving) -> Iterator[str]:
    """Say who may do what."""
    from prony.app.login import LINK_S
    from prony.store.home import Home
    from prony.store.owner_token import owner_token_file

    if serving.trusted_proxies:
        yield f"  proxies X-Forwarded-For is trusted from {', '.join(map(str, serving.trusted_proxies))}"
    yield from serving.face_lines
    reach = "only this machine can connect" if serving.is_local else "other machines can connect"
    if serving.is_open:
        yield f"  access  {reach}; --no-auth: everyone who connects is an admin, also through a proxy"
    else:
        yield f"  access  {reach}; every request needs a token or a browser login"
        yield f"  owner   {owner_token_file(Home(serving.home))} holds an admin's token"
        yield "          commands and agents with this home use it automatically"
        yield f"  log in  {serving.login_link}"
        yield f"          works once, within {LINK_S // 60} minutes; `prony server link` prints another"
