"""Format the costs of an experiment's jobs: sentences, table rows and the source of the prices."""

from __future__ import annotations

from prony.model.estimate import Grade
from prony.model.experiment_data import AnalysedExperiment
from prony.model.matrix import Worth
from prony.report import entry_fields, matrix_tables, number
from prony.report.load_tables import FigureLine


def sentences(analysis: AnalysedExperiment) -> list[str]:
    """Name the job that costs least, and call it the cheapest only where intervals lie apart; never a void one."""
    told = []
    void = {entry_fields.label(entry) for entry in analysis.entries if entry.summary.verdict.grade is Grade.VOID}
    worths = [(name, worth) for name, worth in _worths(analysis) if name not in void]
    for things in dict.fromkeys(worth.things for _, worth in worths):
        rated = [(worth.per_million, name) for name, worth in worths
                 if worth.things == things and worth.per_million is not None]  # fmt: skip
        if not rated:
            continue
        ranked = sorted(rated, key=lambda pair: pair[0].value)
        best, name = ranked[0]
        ours = number.interval_of(best)
        ends = [number.interval_of(one) for one, _ in ranked[1:]]
        apart = ours is not None and all(end is not None and end[0] > ours[1] for end in ends)
        if len(ranked) == 1:
            told.append(f"A million {things} cost {matrix_tables.money(best)}.")
        elif apart:
            told.append(f"{name} is the cheapest: a million {things} cost {matrix_tables.money(best)}.")
        else:
            told.append(
                f"A million {things} cost least with {name}, {matrix_tables.money(best)}; intervals overlap, so it "
                "may not be the cheapest."
            )
    return told


def lines(analysis: AnalysedExperiment) -> list[FigureLine]:
    """Return a line for each job and what it brings about; nothing where neither a price nor energy is known."""
    found = [matrix_tables.worth_line(name, worth) for name, worth in _worths(analysis)]
    return [line for line in found if line is not None]


def remarks(analysis: AnalysedExperiment) -> list[str]:
    """Return who named the prices, and what is missing."""
    worths = [worth for _, worth in _worths(analysis)]
    missing = dict.fromkeys(f"{worth.note}." for worth in worths if worth.note)
    return [*matrix_tables.sources_of(worths), *(text[0].upper() + text[1:] for text in missing)]


def _worths(analysis: AnalysedExperiment) -> list[tuple[str, Worth]]:
    return [
        (entry_fields.label(entry), worth)
        for entry in analysis.entries
        for worth in analysis.worths.get(entry.job.id, ())
    ]
