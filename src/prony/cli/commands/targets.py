"""`prony targets`: machines that Prony goes to: list, add, check, install, show, clean and remove them."""

from __future__ import annotations

from argparse import ArgumentParser, Namespace
from typing import TYPE_CHECKING

from prony.cli.arguments import add_json, add_server

if TYPE_CHECKING:
    from prony.client import Client
    from prony.model.target import CheckLine, OptionValue, Placement, PlacementView, ServedTarget
    from prony.store.home import Home

_ACTIONS = {
    "list": "list the targets and their jobs",
    "add": "add a target to targets.toml",
    "show": "show a target's options and its jobs",
    "check": "check what a target offers and what is missing, and run an empty test job",
    "install": "install Prony on the target; the target needs no network",
    "clean": "fetch what has ended, and stop and remove what no experiment of this home needs",
    "remove": "remove a target from targets.toml",
}
_NAMED = ("kind", "ssh", "prefix", "python", "partition", "account", "context", "namespace", "image")
# What a server can be asked too: where its stand-in agents go.
_SERVED = ("list", "show")
SERVED = ("NAME", "KIND", "AGENT", "STATE", "SLOTS", "THERE NOW")
PLACED_JOB = ("JOB", "TRY", "PHASE", "ID THERE", "NODES", "SUBMITTED", "WAITED", "WHY")
PLACEMENT = ("EXPERIMENT", "TRY", "PHASE", "ID THERE", "NODES", "SUBMITTED", "WHY")


def arguments(parser: ArgumentParser) -> None:
    """Manage remote machines, reached by ssh, Slurm or Kubernetes: `prony run RECIPE --on NAME` runs there."""
    actions = parser.add_subparsers(dest="action", metavar="ACTION", required=True)
    for name, text in _ACTIONS.items():
        action = actions.add_parser(name, help=text, description=text, allow_abbrev=False)
        if name != "list":
            action.add_argument(
                "name", metavar="NAME", help="the target" + (", or ssh:HOST" if name == "check" else "")
            )
        if name == "add":
            _add_options(action)
        if name == "install":
            action.add_argument(
                "--extra",
                action="append",
                default=[],
                metavar="NAME",
                help="extra packages, for example onnx; repeatable",
            )
        if name == "check":
            action.add_argument("--no-job", action="store_true", help="check only; submit no job")
        if name in _SERVED:
            add_server(action)
        add_json(action)


def _add_options(parser: ArgumentParser) -> None:
    parser.add_argument("--kind", required=True, metavar="KIND", help="kind of target: local, ssh, slurm or kubernetes")
    parser.add_argument("--ssh", metavar="HOST", help="a host from ~/.ssh/config, or user@host")
    parser.add_argument("--prefix", metavar="DIR", help="Prony's folder on the target (~/prony)")
    parser.add_argument(
        "--python", metavar="PATH", help="Python with Prony on the target (default: the one that install made)"
    )
    parser.add_argument("--partition", metavar="NAME", help="Slurm partition")
    parser.add_argument("--account", metavar="NAME", help="Slurm account")
    parser.add_argument("--context", metavar="NAME", help="kubeconfig context (default: the current one)")
    parser.add_argument("--namespace", metavar="NAME", help="Kubernetes namespace (default)")
    parser.add_argument("--image", metavar="IMAGE", help="for Kubernetes: an image that contains Prony")
    parser.add_argument(
        "--set", action="append", default=[], metavar="OPTION=VALUE", help="any other option of this kind; repeatable"
    )


def command(options: Namespace) -> int:
    from prony.cli.remote import connect_server, server_address
    from prony.store.home import home

    if options.action in _SERVED and server_address(options):
        with connect_server(options) as client:
            return (_list_served if options.action == "list" else _show_served)(client, options)
    actions = {
        "list": _list, "add": _add, "show": _show, "check": _check, "install": _install, "clean": _clean,
        "remove": _remove,
    }  # fmt: skip
    return actions[options.action](options, home())


def _list_served(client: Client, options: Namespace) -> int:
    from prony.cli.output import print_listed
    from prony.ports.use_cases import iterate_pages

    none = "no agent for targets is enrolled; start one with: prony agent start --on TARGET"
    found = list(iterate_pages(client.targets.page))
    return print_listed(found, SERVED, _served_cells, none=none, as_json=options.json)


def _served_cells(target: ServedTarget) -> tuple[str, ...]:
    there = ", ".join(f"{count} {phase}" for phase, count in target.placed.items())
    return target.name, target.kind, target.agent_id, target.agent_state, str(target.slots), there or "-"


def _show_served(client: Client, options: Namespace) -> int:
    from functools import partial

    from prony.cli.output import print_listed
    from prony.ports.use_cases import iterate_pages

    found = list(iterate_pages(partial(client.targets.placements, options.name)))
    none = "no jobs were placed there by an agent of this server"
    return print_listed(found, PLACED_JOB, _placed_job_cells, none=none, as_json=options.json)


def _placed_job_cells(view: PlacementView) -> tuple[str, ...]:
    from prony.report.escaping import one_line

    note = view.note
    at = f"{note.submitted_at:%Y-%m-%d %H:%M:%S}" if note.submitted_at else "-"
    waited = "-" if note.waits_s is None else f"{note.waits_s:.0f} s"
    cells = (view.job_id, str(view.attempt), note.phase, note.native_id or "-", ",".join(note.nodes) or "-", at, waited,
             note.reason or note.ending or "-")  # fmt: skip
    return tuple(one_line(str(cell)) for cell in cells)


def _list(options: Namespace, home: Home) -> int:
    from prony.app.targets import read_targets, targets_path
    from prony.cli.output import print_columns, print_json, print_note
    from prony.store.placements import Placements

    found = read_targets(home)
    counts = dict.fromkeys(found, 0)
    kept = Placements(home)
    for placement in (*kept.open(), *kept.of_agents()):
        counts[placement.target.name] = counts.get(placement.target.name, 0) + 1
    if options.json:
        print_json([one.model_dump(mode="json") | {"placed": counts[one.name]} for one in found.values()])
    elif found:
        rows = [(one.name, one.kind, _where(one.options), str(counts[one.name])) for one in found.values()]
        print_columns(("NAME", "KIND", "WHERE", "PLACED"), rows)
    else:
        print_note(f"no targets yet; prony targets add NAME --kind ssh --ssh HOST writes {targets_path(home)}")
    return 0


def _where(options: dict[str, OptionValue]) -> str:
    words = [str(options[name]) for name in ("ssh", "partition", "prefix", "context", "namespace") if options.get(name)]
    return " ".join(words) or "this machine"


def _add(options: Namespace, home: Home) -> int:
    from prony.app.targets import add_target, targets_path
    from prony.cli.output import print_answer

    named = {name: getattr(options, name) for name in _NAMED}
    written = {name: value for name, value in named.items() if value is not None} | _settings(options.set)
    target = add_target(home, options.name, written)
    next_step = f"prony targets check {target.name} checks it"
    return print_answer(target, f"{target.name} is in {targets_path(home)}; {next_step}", as_json=options.json)


def _settings(words: list[str]) -> dict[str, OptionValue]:
    """Return options as they are written in TOML; a word that is no TOML is text."""
    import tomllib

    from prony.errors import InputError

    found: dict[str, OptionValue] = {}
    for word in words:
        name, equals, text = word.partition("=")
        if not equals or not name.isidentifier():
            raise InputError(f"--set {word}: not OPTION=VALUE", hint="for example --set minutes=30")
        try:
            found[name] = tomllib.loads(f"value = {text}")["value"]
        except tomllib.TOMLDecodeError:
            found[name] = text
    return found


def _show(options: Namespace, home: Home) -> int:
    from prony.app.targets import find_target
    from prony.cli.output import print_columns, print_json, print_text
    from prony.store.placements import Placements

    target = find_target(home, options.name)
    kept = Placements(home)
    placed = [one for one in (*kept.all(), *kept.of_agents()) if one.target.name == target.name]
    if options.json:
        print_json(target.model_dump(mode="json") | {"placements": [one.model_dump(mode="json") for one in placed]})
        return 0
    print_columns(("OPTION", "VALUE"), [("kind", target.kind), *((k, str(v)) for k, v in target.options.items())])
    print_text("")
    if placed:
        print_columns(PLACEMENT, [_placement_cells(one) for one in placed])
    else:
        print_text("no jobs were placed there")
    return 0


def _placement_cells(placement: Placement) -> tuple[str, ...]:
    from prony.report.escaping import one_line

    native = placement.handle.native_id if placement.handle else ""
    at = f"{placement.submitted_at:%Y-%m-%d %H:%M:%S}" if placement.submitted_at else "-"
    why = placement.reason or (placement.ending or "")
    cells = (placement.experiment_id, str(placement.attempt), placement.phase, native or "-",
             ",".join(placement.nodes) or "-", at, why or "-")  # fmt: skip
    return tuple(one_line(str(cell)) for cell in cells)


def _check(options: Namespace, home: Home) -> int:
    from prony.app.maintain_targets import check_target_lines
    from prony.app.targets import find_target
    from prony.cli.output import print_columns, print_json, print_note, print_text

    lines = check_target_lines(find_target(home, options.name), home, submits=not options.no_job)
    is_fit = all(line.status != "failed" for line in lines)
    if options.json:
        print_json({"fit": is_fit, "lines": [line.model_dump(mode="json") for line in lines]})
    else:
        print_columns(("WHAT", "STATUS", "FOUND"), [_check_cells(line) for line in lines])
        for line in lines:
            if line.hint:
                print_note(f" hint: {line.hint.replace('NAME', options.name)}")
        print_text("" if is_fit else "not ready")
    return 0 if is_fit else 3


def _check_cells(line: CheckLine) -> tuple[str, ...]:
    from prony.report.escaping import one_line

    return line.title, line.status, one_line(line.value)


def _install(options: Namespace, home: Home) -> int:
    from prony.app.maintain_targets import install_prony
    from prony.app.targets import find_target
    from prony.cli.output import print_answer, print_note

    folder = install_prony(find_target(home, options.name), home, extras=options.extra, say=print_note)
    return print_answer({"folder": folder}, f"Prony is in {folder}", as_json=options.json)


def _clean(options: Namespace, home: Home) -> int:
    from prony.app.bench import Bench
    from prony.app.maintain_targets import clean_target
    from prony.app.targets import find_target
    from prony.cli.output import print_answer

    with Bench.open(home) as bench:
        cleaned = clean_target(find_target(home, options.name), bench.store)
    found = ((cleaned.removed, "removed"), (cleaned.fetched, "fetched and removed"), (cleaned.left, "still in use"))
    told = [f"{len(keys)} {what}: {', '.join(keys)}" for keys, what in found if keys]
    return print_answer(cleaned, "\n".join(told) or "nothing was left there", as_json=options.json)


def _remove(options: Namespace, home: Home) -> int:
    from prony.app.targets import remove_target
    from prony.cli.output import print_answer

    remove_target(home, options.name)
    return print_answer({"removed": options.name}, f"{options.name} is removed", as_json=options.json)
