"""`prony doctor`: what can run here, what is missing with the command that adds it, and what would disturb."""

from __future__ import annotations

from argparse import ArgumentParser, Namespace
from collections.abc import Sequence
from typing import TYPE_CHECKING

from prony.cli.arguments import add_json

if TYPE_CHECKING:
    from prony.instruments.platform_limits import PlatformLimit


def arguments(parser: ArgumentParser) -> None:
    """Check the engines and everything that makes measurements noisy. Exits 1 if no engine can run."""
    parser.add_argument(
        "--store", action="store_true", help="check the stored results instead: are all samples intact?"
    )
    add_json(parser)


def command(options: Namespace) -> int:
    from prony.app.bench import Bench
    from prony.cli.output import print_json, print_text
    from prony.instruments.platform_limits import list_limits

    if options.store:
        return _look_at_store(as_json=options.json)
    with Bench.open() as bench:
        # Conditions first and alone: probing engines would be the very load that is looked for.
        state = bench.conditions()
        reports = bench.engines()
    ready = [report for report in reports if report.state == "ready" and report.name != "null"]
    if options.json:
        engines = [report.model_dump(mode="json") for report in reports]
        limits = [limit.model_dump() for limit in list_limits()]
        conditions = state.model_dump(mode="json")["conditions"]
        print_json({"engines": engines, "conditions": conditions, "not_promised": limits})
    else:
        from prony.cli.commands.engines import show_engines
        from prony.cli.device import show_conditions

        show_engines([report for report in reports if report.name != "null"])
        print_text("\nis this machine quiet enough to measure?")
        show_conditions(state.conditions)
        _show_limits(list_limits())
    return 0 if ready else 1


def _look_at_store(*, as_json: bool) -> int:
    """Hold every sample file against its checksum; return 3 where one is damaged."""
    from prony.app.bench import Bench
    from prony.app.results import check_store
    from prony.cli.finish_run import report_damages
    from prony.cli.output import print_json, print_text

    with Bench.open() as bench:
        damages = check_store(bench.store).damages
    if as_json:
        print_json({"damages": [damage.model_dump(mode="json") for damage in damages]})
    elif not damages:
        print_text("all stored samples are intact")
    return report_damages(damages)


def _show_limits(limits: Sequence[PlatformLimit]) -> None:
    """Say what this system cannot do as well as others."""
    from prony.cli.output import print_text

    if limits:
        print_text("\nlimits of this system")
        for limit in limits:
            print_text(f"  {limit.title}: {limit.text}")
