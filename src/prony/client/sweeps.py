"""Operations that analyse results: gates, sweeps over load, and matrices of configurations."""

from __future__ import annotations

from collections.abc import Sequence

from prony.client.request_shapes import Asking
from prony.model.gate_outcome import GateReport
from prony.model.matrix import MatrixReport
from prony.model.sweep import SweepReport


class Sweeps(Asking):
    def gates(self, experiment_id: str, *, strict: bool = False, gate: Sequence[str] = ()) -> GateReport:
        """Judge the gates of an experiment's recipe, and more of them."""
        more = "; ".join(gate) or None
        return self._get(GateReport, "experiments", experiment_id, "gates", strict=strict, gate=more)

    def sweep_report(self, ids: Sequence[str], *, slo: Sequence[str] = ()) -> SweepReport:
        """Say what several loads show together; limits are written as `ttft_ms.p99=200`."""
        return self._get(SweepReport, "sweep", ids=",".join(ids), slo=",".join(slo) or None)

    def matrix(
        self, ids: Sequence[str], *, rows: str, columns: str, metric: str | None = None, against: str | None = None
    ) -> MatrixReport:
        """Compare the jobs of several experiments in rows and columns."""
        asked = {"rows": rows, "columns": columns, "metric": metric, "against": against}
        return self._get(MatrixReport, "matrix", ids=",".join(ids), **asked)
