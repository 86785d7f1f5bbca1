"""`prony agent`: run this device as an agent of a server, or inspect, validate and test it."""

from __future__ import annotations

import os
from argparse import ArgumentParser, Namespace
from pathlib import Path
from typing import TYPE_CHECKING

from prony.cli.arguments import add_json, add_server
from prony.errors import InputError
from prony.ports import plugins
from prony.ports.agent_link import AgentLink, CommandAnswer

if TYPE_CHECKING:
    from prony.agent.agent import AgentOwner
    from prony.agent.logs import AgentLog
    from prony.agent.settings import AgentSettings
    from prony.model.target import Target

_LEVELS = ("debug", "info", "warning", "error")


def arguments(parser: ArgumentParser) -> None:
    """Run an agent on this device: it takes jobs from a server. All connections are outgoing."""
    actions = parser.add_subparsers(dest="action", metavar="ACTION", required=True)
    start = actions.add_parser("start", help="run an agent until it is stopped", allow_abbrev=False)
    _add_identity(start)
    _add_links(start)
    _add_device(start)
    _add_policy(start)
    start.add_argument(
        "--drain-timeout", metavar="TIME", default="60s", help="how long a job may continue after SIGTERM (60s)"
    )
    start.add_argument(
        "--metrics-port", metavar="PORT", type=int, help="serve Prometheus metrics on this port; 0: any free port"
    )
    start.add_argument(
        "--metrics-host", metavar="HOST", default="127.0.0.1", help="address for the metrics (127.0.0.1)"
    )
    start.add_argument(
        "--address",
        metavar="HOST",
        help="address under which other agents reach this machine (default: the one that reaches the server)",
    )
    start.add_argument(
        "--on", metavar="TARGET", help="run jobs on a target instead of on this device (see prony targets)"
    )
    start.add_argument(
        "--slots", metavar="N", type=int, help="with --on: most jobs on the target at once, up to 500 (20)"
    )
    _add_logs(start)
    info = actions.add_parser("info", help="describe this device as a server sees it", allow_abbrev=False)
    _add_device(info)
    _add_policy(info)
    for link in _links():
        link.add_info_options(info)
    add_json(info)
    validate = actions.add_parser("validate", help="check everything that an agent needs", allow_abbrev=False)
    _add_identity(validate)
    _add_links(validate)
    add_json(validate)
    test = actions.add_parser("test", help="measure the connection to the server", allow_abbrev=False)
    _add_identity(test)
    _add_links(test)
    add_json(test)
    enroll = actions.add_parser(
        "enroll", help="enrol this device and save its token, without starting an agent", allow_abbrev=False
    )
    _add_identity(enroll)
    _add_links(enroll)
    _add_device(enroll)
    _add_policy(enroll)
    add_json(enroll)


def _add_identity(parser: ArgumentParser) -> None:
    add_server(parser)
    parser.add_argument("--name", help="the agent's name; each name is a separate agent")


def _add_links(parser: ArgumentParser) -> None:
    for link in _links():
        link.add_options(parser)


def _links() -> list[AgentLink]:
    """Load every link to another program's orchestrator."""
    return list(plugins.create_all(plugins.AGENT_LINKS).values())


def _chosen_link(options: Namespace) -> AgentLink | None:
    return next((link for link in _links() if link.is_chosen(options)), None)


def _add_device(parser: ArgumentParser) -> None:
    parser.add_argument("--device-name", metavar="NAME", help="name of the device (default: the host name)")
    parser.add_argument(
        "--label", action="append", default=[], metavar="KEY=VALUE", help="a label, for place.where; repeatable"
    )
    parser.add_argument(
        "--share-device",
        action="store_true",
        help="allow other agents on this device at the same time; they disturb each other",
    )


def _add_policy(parser: ArgumentParser) -> None:
    parser.add_argument("--kinds", metavar="KINDS", help="kinds of workload that may run here (model)")
    parser.add_argument("--model-schemes", metavar="SCHEMES", help="allowed model sources (zoo,https)")
    parser.add_argument(
        "--model-private",
        choices=("refuse", "allow", "plain"),
        help="whether a URL may lead into a private network (refuse); plain: by plain http too",
    )
    parser.add_argument("--model-max-bytes", metavar="SIZE", help="largest allowed model (20GiB)")
    parser.add_argument(
        "--model-folders",
        action="append",
        default=[],
        metavar="FOLDER",
        type=Path,
        help="jobs may use models and files in this folder; repeatable",
    )


def _add_logs(parser: ArgumentParser) -> None:
    parser.add_argument("--log-level", type=str.lower, choices=_LEVELS, default="info", help="log level (info)")
    parser.add_argument("--log-format", choices=("console", "json"), default="console", help="log format (console)")


def command(options: Namespace) -> int:
    return {"start": _start, "info": _info, "validate": _validate, "test": _test, "enroll": _enroll}[options.action](
        options
    )


def _start(options: Namespace) -> int:
    from prony.agent.agent import live

    live(_owner(options), _log(options))
    return 0


def _info(options: Namespace) -> int:
    from prony.agent.capabilities import CapabilityScanner
    from prony.cli.output import print_json, print_text
    from prony.store.home import home

    place = home().create()
    offered = CapabilityScanner(place, _settings(options)).look()
    for link in _links():
        answer = link.describe_device(options, offered)
        if answer is not None:
            return _print_answer(answer, as_json=options.json)
    units = [unit for report in offered.engines for unit in report.units if unit.engine != "null"]
    if options.json:
        document = offered.model_dump(mode="json")
        document["compute_units"] = [unit.model_dump(mode="json") for unit in units]
        print_json(document | {"home": str(place.root)})
        return 0
    from prony.cli.device import show_abilities, show_device, show_facts

    if offered.device is not None:
        show_device(offered.device, units, str(place.root))
    print_text("\nServices, container engines, launchers and probes:")
    show_abilities(offered.abilities)
    print_text("\nFacts for place.where:")
    show_facts(offered.facts)
    return 0


def _validate(options: Namespace) -> int:
    from dataclasses import asdict

    from prony.agent.checks import validate
    from prony.cli.output import print_json, print_text

    checks = validate(_owner(options))
    if options.json:
        print_json([asdict(check) for check in checks])
    else:
        width = max(len(check.name) for check in checks)
        for check in checks:
            print_text(f"{'ok  ' if check.ok else 'FAIL'}  {check.name:<{width}}  {check.detail}")
            if not check.ok and check.hint:
                print_text(f"{'':{width + 8}}hint: {check.hint}")
    return 0 if all(check.ok for check in checks) else 1


def _test(options: Namespace) -> int:
    from dataclasses import asdict

    from prony.agent.checks import connection
    from prony.cli.output import print_json, print_text

    owner = _owner(options)
    if owner.settings.other_server is not None:
        return _print_answer(owner.settings.other_server.test(), as_json=options.json)
    found = connection(owner)
    if options.json:
        print_json(asdict(found) | {"healthy": found.is_healthy})
    else:
        print_text(f"server      {found.server} (Prony {found.version or 'of unknown version'})")
        print_text(f"health      {'good' if found.is_healthy else f'bad: status {found.status}'}")
        print_text(f"round trip  {found.round_trip_ms:.1f} ms")
        offset = "unknown: the server does not send its time"
        if found.offset_s is not None:
            offset = f"its clock is {found.offset_s:+.1f} s off ours (give or take {found.uncertainty_s:.1f} s)"
        print_text(f"time        {offset}")
    return 0 if found.is_healthy else 1


def _print_answer(answer: CommandAnswer, *, as_json: bool) -> int:
    from prony.cli.output import print_json, print_text

    if as_json:
        print_json(dict(answer.document))
    else:
        for line in answer.lines:
            print_text(line)
    return answer.exit_code


def _enroll(options: Namespace) -> int:
    from prony.agent.agent import enroll
    from prony.agent.logs import AgentLog
    from prony.cli.output import print_json, print_text

    owner = _owner(options)
    slot, enrolled = enroll(owner, AgentLog(level="warning"))
    if options.json:
        print_json({"agent": enrolled.agent.model_dump(mode="json"), "slot": slot.name, "kept_in": str(slot.file)})
        return 0
    kept = "with a token of its own, " if enrolled.token else ""
    print_text(f"enrolled as {enrolled.agent.id} at {owner.server_of(slot)}, {kept}kept in {slot.file}")
    return 0


def _owner(options: Namespace) -> AgentOwner:
    from prony.agent.agent import AgentOwner
    from prony.agent.settings import token_from
    from prony.store.home import home

    link = _chosen_link(options)
    if link is not None and (options.server or options.token_file):
        raise InputError(
            f"{link.option} cannot be used with --server or --token-file", hint="an agent connects to one of the two"
        )
    server = options.server or os.environ.get("PRONY_SERVER") or None
    token = None if link is not None else token_from(options.token_file)
    return AgentOwner(home(), _settings(options), server=server, token=token)


def _settings(options: Namespace) -> AgentSettings:
    from prony.agent.capabilities import labels_of
    from prony.agent.settings import AgentSettings, model_policy
    from prony.ports.workload import default_kinds

    given = vars(options)
    link = _chosen_link(options)
    most = given.get("model_max_bytes")
    policy = model_policy(
        os.environ,
        schemes=given.get("model_schemes"),
        private=given.get("model_private"),
        max_bytes=None if most is None else _quantity(most, "--model-max-bytes", "size"),
        folders=given.get("model_folders", ()),
    )
    port = given.get("metrics_port")
    if port is not None and not 0 <= port <= 65535:
        raise InputError(f"{port} is not a port", hint="a port is a number from 0 to 65535")
    target, slots = _target(options)
    return AgentSettings(
        name=given.get("name") or (target.name if target else None),
        address=given.get("address"),
        device_name=given.get("device_name"),
        labels=labels_of(given.get("label", [])),
        share_device=given.get("share_device", False),
        drain_timeout_s=_quantity(given.get("drain_timeout", "60s"), "--drain-timeout", "duration") / 10**9,
        metrics_host=given.get("metrics_host", "127.0.0.1"),
        metrics_port=port,
        models=policy,
        kinds=default_kinds() if (kinds := given.get("kinds")) is None else tuple(filter(None, kinds.split(","))),
        other_server=None if link is None else link.read_options(options),
        target=target,
        slots=slots,
        otlp_url=os.environ.get("PRONY_OTLP_URL", ""),
    )


def _target(options: Namespace) -> tuple[Target | None, int]:
    """Return the target that the agent stands in for, if it does, and how many jobs it may have there."""
    from prony.agent.settings import DEFAULT_SLOTS
    from prony.app.targets import find_target
    from prony.model.target import MOST_SLOTS
    from prony.store.home import home

    name, slots = getattr(options, "on", None), getattr(options, "slots", None)
    if name is None:
        if slots is not None:
            raise InputError("--slots needs --on", hint="a device runs one job at a time")
        return None, DEFAULT_SLOTS
    if _chosen_link(options) is not None:
        raise InputError("--on works only with a Prony server", hint="remove --on, or use --server URL")
    if slots is not None and not 1 <= slots <= MOST_SLOTS:
        raise InputError(f"--slots {slots} is outside 1 to {MOST_SLOTS}", hint="one slot measures one job at a time")
    return find_target(home(), name), slots or DEFAULT_SLOTS


def _quantity(text: str, option: str, kind: str) -> int:
    """Read a size in bytes or a duration in nanoseconds as recipes write them."""
    from pydantic import TypeAdapter, ValidationError

    from prony.model.quantity import DurationNs, SizeBytes
    from prony.model.validation_words import describe_invalid

    try:
        return TypeAdapter[int](DurationNs if kind == "duration" else SizeBytes).validate_python(text)
    except ValidationError as exc:
        raise InputError(f"{option}: {describe_invalid(exc)}", hint="for example 60s or 20GiB") from exc


def _log(options: Namespace) -> AgentLog:
    from prony.agent.logs import AgentLog

    return AgentLog(level=options.log_level, form=options.log_format)
