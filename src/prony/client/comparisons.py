"""The operation that sets experiments or jobs against each other."""

from __future__ import annotations

from collections.abc import Sequence

from prony.client.request_shapes import Asking
from prony.model.comparison import Comparison, Terms
from prony.model.quantity import share_text


class Comparisons(Asking):
    def comparison(self, of: Sequence[str], terms: Terms | None = None) -> Comparison:
        """Say how experiments or jobs, by their ids, stand against the first of them."""
        asked = terms or Terms()
        return self._get(
            Comparison, "comparison", of=",".join(of), threshold=share_text(asked.threshold),
            metric=",".join(asked.metrics) or None, across=",".join(asked.across) or None,
            anyway=asked.anyway, rule=asked.rule,
        )  # fmt: skip
