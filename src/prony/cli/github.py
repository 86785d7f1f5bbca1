"""A summary in, the page of a GitHub job with it out; only where somebody asks for it."""

from __future__ import annotations

import os
from argparse import Namespace
from pathlib import Path

from prony.errors import InputError


def check_summary(options: Namespace) -> None:
    """Refuse --github-summary where there is no place for one, before anything is measured."""
    if options.github_summary and not os.environ.get("GITHUB_STEP_SUMMARY"):
        hint = "GitHub sets it in its jobs; elsewhere use prony report --format github"
        raise InputError("--github-summary: GITHUB_STEP_SUMMARY names no file", hint=hint)


def add_summary(document: str | bytes) -> None:
    """Add to what other steps wrote there."""
    data = document if isinstance(document, bytes) else document.encode()
    with Path(os.environ["GITHUB_STEP_SUMMARY"]).open("ab") as file:
        file.write(data + b"\n")
