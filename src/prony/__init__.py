"""Prony: run benchmark recipes and report numbers with intervals and verdicts."""

from prony.emit import emit as emit  # a script calls `prony.emit`

__version__ = "0.1.0"
