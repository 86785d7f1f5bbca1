"""Prony: one recipe in, numbers you can defend out."""

from prony.emit import emit as emit  # a script calls `prony.emit`

__version__ = "0.1.0"
