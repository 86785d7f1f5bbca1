"""`prony service`: run an agent or a server in the background, from the start of the machine on."""

from __future__ import annotations

from argparse import ArgumentParser, Namespace
from pathlib import Path
from typing import TYPE_CHECKING, Any

from prony.cli.arguments import add_json

if TYPE_CHECKING:
    from prony.app.service_managers import ServiceManager, ServiceState
    from prony.app.service_units import ServicePlan

_ACTIONS = {
    "install": "write the unit, start the service now and at every boot",
    "status": "show whether the service runs",
    "remove": "stop the service and delete the unit; the home stays",
}
# The words that start each program.
_PROGRAMS = {"agent": ("agent", "start"), "server": ("server",)}
_USER = "prony"
_SYSTEM_HOME = Path("/var/lib/prony")


class _ActionParser(ArgumentParser):
    """Takes everything after `--` for the program; argparse would, only where no option stands before it."""

    def parse_known_args(self, args: Any = None, namespace: Any = None) -> tuple[Any, list[str]]:
        given = list(args or ())
        at = given.index("--") if "--" in given else len(given)
        found, unknown = super().parse_known_args(given[:at], namespace)
        after = given[at + 1 :]
        if not hasattr(found, "options"):
            return found, unknown + after
        found.options += after
        return found, unknown


def arguments(parser: ArgumentParser) -> None:
    """Run an agent or a server in the background with systemd (Linux) or launchd (macOS)."""
    actions = parser.add_subparsers(dest="action", metavar="ACTION", required=True, parser_class=_ActionParser)
    for name, text in _ACTIONS.items():
        action = actions.add_parser(name, help=text, description=f"{text[:1].upper()}{text[1:]}.", allow_abbrev=False)
        action.add_argument("program", choices=tuple(_PROGRAMS), metavar="PROGRAM", help="agent or server")
        if name == "install":
            _add_install(action)
        scope = action.add_mutually_exclusive_group()
        scope.add_argument("--user", action="store_true", help="a service of this user (default, unless root)")
        scope.add_argument("--system", action="store_true", help="a service of the machine (default for root)")
        action.add_argument(
            "--manager", choices=("systemd", "launchd"), help="service manager (default: this system's)"
        )
        if name != "install":
            add_json(action)


def _add_install(parser: ArgumentParser) -> None:
    parser.add_argument(
        "options", metavar="OPTION", nargs="*",
        help="options of prony agent start or prony server, after --, for example: -- --server URL",
    )  # fmt: skip
    parser.add_argument("--print", action="store_true", help="print the unit; install nothing")
    parser.add_argument("--run-as", metavar="USER", help="with --system: the user that it runs as (prony)")
    parser.add_argument("--home", metavar="FOLDER", type=Path, help="home of the service (--system: /var/lib/prony)")


def command(options: Namespace) -> int:
    return {"install": _install, "status": _status, "remove": _remove}[options.action](options)


def _install(options: Namespace) -> int:
    from prony.app.service_managers import check_account, manager_here
    from prony.cli.output import print_text

    manager, plan = _manager(options), _plan(options)
    if options.print:
        print_text(manager.text_of(plan))
        return 0
    manager.check()
    if plan.user:
        check_account(plan, options.manager or manager_here())
    path = manager.install(plan)
    print_text(f"{plan.name} is installed and started: {path}")
    print_text(f"look at it with: prony service status {plan.program}")
    return 0


def _status(options: Namespace) -> int:
    from prony.cli.output import print_json, print_text

    manager = _manager(options)
    manager.check()
    found = manager.look(options.program)
    if options.json:
        print_json(_document(found))
    else:
        print_text(f"{found.name}: {found.state}" + (f", process {found.process}" if found.process else ""))
        print_text(f"  file  {found.file}")
        print_text(f"  log   {found.log}")
    return 0 if found.is_running else 1


def _document(found: ServiceState) -> dict[str, object]:
    return {
        "name": found.name, "running": found.is_running, "state": found.state, "process": found.process,
        "file": str(found.file), "log": found.log,
    }  # fmt: skip


def _remove(options: Namespace) -> int:
    from prony.cli.output import print_answer

    manager = _manager(options)
    manager.check()
    path = manager.remove(options.program)
    return print_answer({"removed": str(path)}, f"stopped, and removed {path}", as_json=options.json)


def _manager(options: Namespace) -> ServiceManager:
    from prony.app.service_managers import manager_here, open_manager

    return open_manager(options.manager or manager_here(), is_user=not _is_system(options))


def _is_system(options: Namespace) -> bool:
    import os

    return bool(options.system or (not options.user and hasattr(os, "geteuid") and os.geteuid() == 0))


def _plan(options: Namespace) -> ServicePlan:
    """Return what to run; the options of the program are checked now, and not when it is started."""
    import sys

    from prony.app.service_units import ServicePlan
    from prony.errors import InputError
    from prony.store.home import home

    is_system = _is_system(options)
    if options.run_as and not is_system:
        raise InputError(
            "--run-as needs --system", hint="add --system, or leave out --run-as: a service of a user runs as that user"
        )
    words = _PROGRAMS[options.program]
    place = options.home or (_SYSTEM_HOME if is_system else home().root)
    return ServicePlan(
        program=options.program,
        command=(sys.executable, "-P", "-m", "prony", *words, *options.options),
        home=place.absolute(),
        user=(options.run_as or _USER) if is_system else "",
        environment_file=_environment_file(options.program, is_system=is_system),
        log_file=_log_file(options.program, is_system=is_system),
        stop_s=_stop_s(words, options.options),
    )


def _environment_file(program: str, *, is_system: bool) -> Path:
    folder = Path("/etc/prony") if is_system else Path.home() / ".config" / "prony"
    return folder / f"{program}.env"


def _log_file(program: str, *, is_system: bool) -> Path:
    folder = Path("/Library/Logs") if is_system else Path.home() / "Library" / "Logs"
    return folder / "Prony" / f"{program}.log"


def _stop_s(words: tuple[str, ...], given: list[str]) -> int:
    """Return how long the program may take to end: the job that it drains, and a minute for its result."""
    import math

    from prony.cli.parsers import build_parser
    from prony.model.quantity import read_seconds

    parsed = build_parser(words[0]).parse_args([*words[1:], *given])
    drain = getattr(parsed, "drain_timeout", None)
    return 60 + (60 if drain is None else math.ceil(read_seconds(drain, "--drain-timeout", "60s")))
