"""What a comparison is asked for and how it is shown, for every command that makes one."""

from __future__ import annotations

from argparse import Namespace
from typing import TYPE_CHECKING

from prony.cli.output import print_json, print_text, terminal

if TYPE_CHECKING:
    from prony.model.comparison import Comparison, Terms


def show_comparison(found: Comparison, *, as_json: bool, markdown: bool = False) -> None:
    """Print it for a person, or as JSON, or as Markdown."""
    if as_json:
        print_json(found.model_dump(mode="json"))
    elif markdown:
        from prony.report.markdown import comparison

        print_text(comparison.render(found))
    else:
        from prony.report.terminal import comparison as comparison_terminal

        comparison_terminal.print_comparison(found, terminal())


def terms_of(options: Namespace) -> Terms:
    from pydantic import ValidationError

    from prony.errors import InputError
    from prony.model.comparison import Terms

    try:
        return Terms.read(
            {"threshold": options.threshold, "metrics": tuple(options.metric)}
            | {name: vars(options)[name] for name in ("anyway", "rule") if name in options}
            | {"across": tuple(vars(options).get("across", ()))}
        )
    except ValidationError as exc:
        said = str(exc.errors()[0]["msg"]).removeprefix("Value error, ")
        raise InputError(f"--threshold: {said}") from None
