"""Render an experiment as a CI summary in GitHub's Markdown: gates, findings and table."""

from __future__ import annotations

from prony.model.experiment_data import ExperimentData
from prony.model.gate import GateOutcome, GateState
from prony.report.findings import findings
from prony.report.gate_tables import HEADINGS, lines, summarise_gates
from prony.report.markdown.experiment import result_lines
from prony.report.markdown.text import escape_markdown, grid

_ALERTS = {GateState.FAILED: "CAUTION", GateState.CANNOT_TELL: "WARNING", GateState.PASSED: "TIP"}


def render(data: ExperimentData) -> str:
    """Return the document; the worst gate decides the colour of its first box."""
    one = data.experiment
    found = [f"## {escape_markdown(one.name)}", ""]
    found += _gate_lines(data.gates)
    found += [*(f"- {escape_markdown(sentence)}" for sentence in findings(data, gates=False)), ""]
    found += ["<details><summary>Numbers</summary>", "", *result_lines(data), "", "</details>", ""]
    return "\n".join([*found, escape_markdown(f"{one.id} · {one.created_at:%Y-%m-%d %H:%M} UTC · {one.state}")]) + "\n"


def _gate_lines(outcomes: tuple[GateOutcome, ...]) -> list[str]:
    """Return the gates in a box of the colour of the worst, and their table; nothing where there are none."""
    if not outcomes:
        return []
    worst = next(state for state in _ALERTS if any(one.state is state for one in outcomes))
    return [
        f"> [!{_ALERTS[worst]}]",
        f"> {escape_markdown(summarise_gates(outcomes))}",
        "",
        *grid(HEADINGS, lines(outcomes), numeric=False),
    ]
