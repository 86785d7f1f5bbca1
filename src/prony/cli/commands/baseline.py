"""`prony baseline`: a series in, the result that it is held against set, shown or cleared."""

from __future__ import annotations

from argparse import ArgumentParser, Namespace

from prony.cli.arguments import add_json, add_server

_ACTIONS = {
    "set": "pin a result: the newest that may be quoted, or --job",
    "show": "show what is pinned",
    "clear": "pin nothing; the result itself stays",
}


def arguments(parser: ArgumentParser) -> None:
    """Pin a result of a series, to hold later ones against; show which it is, or clear it."""
    actions = parser.add_subparsers(dest="action", metavar="ACTION", required=True)
    for name, meaning in _ACTIONS.items():
        acting = actions.add_parser(name, help=meaning, allow_abbrev=False)
        acting.add_argument("name", metavar="NAME", help="a recipe's name, or a series' id or its beginning")
        if name == "set":
            acting.add_argument("--job", metavar="ID", help="the job whose result it is")
            acting.add_argument("--reason", default="", help="why, for whoever asks later")
        add_json(acting)
        add_server(acting)


def command(options: Namespace) -> int:
    from prony.cli.histories import histories, one_series
    from prony.cli.output import print_json, print_note, print_text
    from prony.model.history import NewBaseline

    with histories(options) as source:
        series = one_series(source, options.name)
        if options.action == "clear":
            source.clear_baseline(series.id)
            print_note(f"{series.id} has no baseline any more")
            return 0
        if options.action == "set":
            found = source.set_baseline(series.id, NewBaseline(job_id=options.job, reason=options.reason))
        else:
            found = source.baseline(series.id)
    if options.json:
        print_json(found.model_dump(mode="json"))
        return 0
    value = "-" if found.value is None else f"{found.value:.4g} {series.unit}"
    why = f" ({found.reason})" if found.reason else ""
    print_text(
        f"{series.id} {series.title}: job {found.job_id}, {series.metric} {value}, set {found.set_at:%Y-%m-%d}{why}"
    )
    return 0
