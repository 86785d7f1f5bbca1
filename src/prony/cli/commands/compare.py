"""`prony compare`: compare experiments or jobs with a baseline; exit code 1 if something got worse."""

from __future__ import annotations

from argparse import ArgumentParser, Namespace
from collections.abc import Sequence
from pathlib import Path

from prony.cli.arguments import add_json, add_server
from prony.ports.plugins import COMPARISON_RULES, find_plugins

_FAILING = ("regression", "inconclusive", "insufficient", "different")


def arguments(parser: ArgumentParser) -> None:
    """Compare experiments or jobs with the first one named: the difference, its interval, and what to do if it
    is unclear. Exit code 1 on a regression."""
    parser.add_argument("names", metavar="ID", nargs="+", help="experiments or jobs; the first is the baseline")
    parser.add_argument("--threshold", metavar="SHARE", default="3%", help="the smallest change that matters (3%%)")
    parser.add_argument(
        "--metric", metavar="KEY", action="append", default=[],
        help="metric that decides, for example e2e_ms.p99; `prony docs metrics` lists the keys; repeatable (default: "
        "the headline metrics)",
    )  # fmt: skip
    parser.add_argument(
        "--across", metavar="NAME", action="append", default=[],
        help="a setting that may differ, for example engine; repeatable",
    )  # fmt: skip
    parser.add_argument("--anyway", action="store_true", help="compare even if the results are not comparable")
    rules = ("prony", *find_plugins(COMPARISON_RULES))
    parser.add_argument("--rule", choices=rules, default="prony", help="decision rule (prony)")
    parser.add_argument(
        "--fail-on", action="append", choices=(*_FAILING, "suspect", "never"),
        help="conclusion of a headline metric that gives exit code 1 (regression); replaces the default; suspect: "
        "also if the machine of a side was disturbed or not monitored; repeatable",
    )  # fmt: skip
    parser.add_argument("--markdown", action="store_true", help="print Markdown, for example for a pull request")
    parser.add_argument("--html", metavar="PATH", type=Path, help="also write a page with plots")
    add_json(parser)
    add_server(parser)


def command(options: Namespace) -> int:
    from prony.cli.documents import show_comparison, terms_of
    from prony.cli.output import print_note
    from prony.cli.remote import open_bench
    from prony.model.comparison import Conclusion
    from prony.report.html import comparison

    terms = terms_of(options)
    _refuse_files(options.names)
    with open_bench(options) as bench:
        found = bench.analyses.compare(options.names, terms)
    if options.html is not None:
        options.html.parent.mkdir(parents=True, exist_ok=True)
        options.html.write_text(comparison.render(found), encoding="utf-8")
        print_note(f"page: {options.html}")
    show_comparison(found, as_json=options.json, markdown=options.markdown)
    words = options.fail_on or ["regression"]
    failing = [Conclusion(word) for word in words if word not in ("never", "suspect")]
    if words == ["suspect"]:
        failing = [Conclusion.REGRESSION]
    return 1 if found.fails(*failing, doubtful="suspect" in words) else 0


def _refuse_files(names: Sequence[str]) -> None:
    """Say how two models are compared to one who names their files: results are compared here."""
    from prony.errors import InputError

    for name in names:
        if Path(name).is_file():
            raise InputError(
                f"{name} is a file, and compare takes experiments or jobs",
                hint="`prony bench A B` measures two models and compares them; `prony list` shows the experiments",
            )
