from __future__ import annotations

import sys
from pathlib import Path

from prony.app.abilities import inspect_version
from prony.runner import engines
from prony.store.home import Home


def test_an_interpreter_with_another_version_than_it_was_given_for_is_broken(tmp_path: Path) -> None:
    home = Home(tmp_path)
    engines.add_engine("null", home.engines, version="9.9", python=sys.executable)
    report = inspect_version(home, "null", "9.9")
    assert (report.name, report.state) == ("null@9.9", "broken")
    assert report.reason.startswith("the recipe needs null 9.9, but ")
    assert "prony engines add null --version 9.9" in report.hint
