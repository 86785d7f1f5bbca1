"""What importing the analysis costs: nothing heavy before it is needed."""

from __future__ import annotations

import subprocess
import sys


def test_the_analysis_imports_nothing_heavy_until_it_works() -> None:
    program = "import sys, prony.kinds.model.summary; print(*sorted(m for m in sys.modules if m.count('.') == 0))"
    loaded = subprocess.run([sys.executable, "-c", program], capture_output=True, text=True, check=True).stdout.split()
    assert "prony" in loaded
    assert not {"scipy", "polars", "ruptures", "matplotlib", "sqlalchemy"} & set(loaded)


def test_the_rule_for_stopping_needs_only_numpy() -> None:
    program = "import sys, prony.stats.stopping as s; s.achieved_precision([1.0] * 9); print('scipy' in sys.modules)"
    shown = subprocess.run([sys.executable, "-c", program], capture_output=True, text=True, check=True).stdout
    assert shown.strip() == "False"
