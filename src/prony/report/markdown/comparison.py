"""Render a comparison as Markdown, short enough for a comment on a pull request."""

from __future__ import annotations

from prony.model.comparison import Comparison, Match
from prony.report import comparison as shown
from prony.report.markdown.text import escape_markdown


def render(comparison: Comparison) -> str:
    """Return the sentences and the headlines; what lies behind them is folded away."""
    lines = [f"### {escape_markdown(shown.title(comparison))}: {comparison.conclusion}", ""]
    forbidden = shown.unlike(comparison, allowed=False)
    if forbidden:
        lines += ["**Not comparable, compared anyway:**", ""]
        lines += [f"- {escape_markdown(shown.difference_text(one))}" for one in forbidden] + [""]
    lines += [escape_markdown(comparison.sentence), ""]
    lines += [*(f"- {escape_markdown(sentence)}" for sentence in shown.heads(comparison)), ""]
    for match in comparison.matches:
        lines += match_lines(match)
    lines += _fold(comparison)
    lines += [f"- {escape_markdown(one)}" for one in (*comparison.unmatched, *comparison.notes)]
    return "\n".join(lines).rstrip() + "\n"


def match_lines(match: Match) -> list[str]:
    """Return the headlines of one pair of jobs."""
    return [f"**{escape_markdown(match.title)}**", "", *_grid(match, supporting=False), ""]


def _fold(comparison: Comparison) -> list[str]:
    lines = ["<details><summary>Every metric, and what differs</summary>", ""]
    for match in comparison.matches:
        if any(one.role == "supporting" for one in match.contrasts):
            lines += [f"**{escape_markdown(match.title)}**", "", *_grid(match, supporting=True), ""]
    allowed = shown.unlike(comparison, allowed=True)
    lines += [f"- {escape_markdown(shown.difference_text(one))}" for one in allowed] or ["Nothing else differs."]
    return [*lines, "", "</details>", ""]


def _grid(match: Match, *, supporting: bool) -> list[str]:
    ruler = ["---", *(["---:"] * (len(shown.HEADINGS) - 2)), "---"]
    rows = [list(shown.HEADINGS), ruler]
    for line in shown.lines(match, supporting=supporting):
        ending = line.contrast.conclusion
        rows.append([*(escape_markdown(cell) for cell in line.cells), f"{shown.SYMBOLS[ending]} {ending}"])
    return [f"| {' | '.join(row)} |" for row in rows]
