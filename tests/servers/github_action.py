"""Run the steps of a composite GitHub Action with bash, as a runner does."""

from __future__ import annotations

import os
import re
import subprocess
from collections.abc import Mapping
from pathlib import Path
from typing import Any

import yaml

_EXPRESSION = re.compile(r"\$\{\{(.+?)\}\}")


def run_action(
    action: Path, checkout: Path, inputs: Mapping[str, str], *, event: Mapping[str, str], environment: Mapping[str, str]
) -> tuple[int, str]:
    """Run each step until one fails, and those that always run; return the exit code and all that was said.

    `event` has values of the context `github` by their dotted names.
    """
    document = yaml.safe_load(action.read_text())
    given = {name: str(one.get("default", "")) for name, one in document["inputs"].items()} | dict(inputs)
    known = {f"inputs.{name}": value for name, value in given.items()} | {f"github.{k}": v for k, v in event.items()}
    code, said = 0, ""
    for step in document["runs"]["steps"]:
        if code and step.get("if") != "always()":
            continue
        done = _run_step(step, checkout, known, environment)
        said += f"--- {step['name']}\n{done.stdout}{done.stderr}"
        code = code or done.returncode
    return code, said


def _run_step(
    step: Mapping[str, Any], checkout: Path, known: Mapping[str, str], environment: Mapping[str, str]
) -> subprocess.CompletedProcess[str]:
    assert step["shell"] == "bash"
    # Whatever is written into the script itself could be a command of whoever opens a pull request.
    assert "${{" not in step["run"]
    own = {name: _EXPRESSION.sub(lambda match: _evaluate(match[1], known), str(text))
           for name, text in step.get("env", {}).items()}  # fmt: skip
    return subprocess.run(
        ["bash", "--noprofile", "--norc", "-eo", "pipefail", "-c", step["run"]],
        cwd=checkout, env={**os.environ, **environment, **own}, capture_output=True, text=True, check=False,
    )  # fmt: skip


def _evaluate(expression: str, known: Mapping[str, str]) -> str:
    """Return the first of the names between `||` that has a value."""
    return next((known[name] for one in expression.split("||") if known.get(name := one.strip())), "")
