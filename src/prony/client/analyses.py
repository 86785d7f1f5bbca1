"""What a server says of results together: comparisons, gates, sweeps over load, matrices of configurations."""

from __future__ import annotations

from collections.abc import Sequence

from prony.client.experiments import RemoteExperiments
from prony.client.request_shapes import ApiRequests
from prony.model.comparison import Comparison, Terms
from prony.model.gate_outcome import GateReport
from prony.model.matrix import MatrixReport, MatrixTerms
from prony.model.quantity import share_text
from prony.model.sweep import SweepReport


class RemoteAnalyses:
    """What analysis says of stored results. See `prony.ports.use_cases.AnalysisUseCases`."""

    def __init__(self, requests: ApiRequests, experiments: RemoteExperiments) -> None:
        self._requests = requests
        self._experiments = experiments

    def compare(self, names: Sequence[str], terms: Terms) -> Comparison:
        """Say how experiments or jobs stand against the first of them.

        Args:
            names: Experiments by their ids, the beginnings of them, or `last`; a job's id goes on with its number.
            terms: What decides, and the smallest change that matters.
        """
        return self.comparison([self._find_result(name) for name in names], terms)

    def _find_result(self, name: str) -> str:
        experiment, dash, number = name.rpartition("-")
        is_job = bool(dash) and number.isdigit()
        whole = self._experiments.find(experiment if is_job else name)
        return f"{whole}-{number}" if is_job else whole

    def comparison(self, of: Sequence[str], terms: Terms | None = None) -> Comparison:
        """Say how experiments or jobs, by their whole ids, stand against the first of them."""
        asked = terms or Terms()
        return self._requests.get(
            Comparison, "comparison", of=",".join(of), threshold=share_text(asked.threshold),
            metric=",".join(asked.metrics) or None, across=",".join(asked.across) or None,
            anyway=asked.anyway, rule=asked.rule,
        )  # fmt: skip

    def gates(self, experiment_id: str, *, strict: bool = False, more: Sequence[str] = ()) -> GateReport:
        """Judge the gates of an experiment's recipe, and `more` of them, written as in a recipe."""
        gate = "; ".join(more) or None
        return self._requests.get(GateReport, "experiments", experiment_id, "gates", strict=strict, gate=gate)

    def sweep(self, ids: Sequence[str], *, slo: Sequence[str] = ()) -> SweepReport:
        """Say what several loads show together; limits are written as `ttft_ms.p99=200`."""
        return self._requests.get(SweepReport, "sweep", ids=",".join(ids), slo=",".join(slo) or None)

    def matrix(self, ids: Sequence[str], terms: MatrixTerms) -> MatrixReport:
        """Compare the jobs of several experiments in rows and columns."""
        return self._requests.get(MatrixReport, "matrix", ids=",".join(ids), **terms.model_dump(mode="json"))
