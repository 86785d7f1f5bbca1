"""`prony recipe`: print the recipe that `prony bench` would run."""

from __future__ import annotations

from argparse import ArgumentParser, Namespace
from pathlib import Path

from prony.cli.bench_options import add_bench_options, request_of


def arguments(parser: ArgumentParser) -> None:
    """Print the recipe that prony bench would run, with its assumptions as comments: `prony recipe MODEL > my.yaml`.

    Each job is tried once, to find input sizes that work; nothing is measured or stored.
    """
    add_bench_options(parser)


def command(options: Namespace) -> int:
    from prony.app.bench import Bench
    from prony.app.plan_bench import plan_bench
    from prony.cli.output import print_text

    request = request_of(options)
    with Bench.open() as bench:
        quick, loaded = plan_bench(bench, request, base=Path.cwd(), overrides=options.set)
    if options.set:
        from prony.recipe import dump

        print_text(quick.comments + dump(loaded.recipe))
    else:
        print_text(quick.text)
    return 0
