"""How fast the command line answers, beside an interpreter that does nothing.

Bound: `prony --help` and `prony list` under eight times `python -c pass`.
"""

from __future__ import annotations

import sys
from pathlib import Path

from benchmarks.bench import describe, in_turns, ratio_text, run, scratch

TURNS = 21
BOUND = 8.0


def main() -> int:
    describe(__doc__).parse_args()
    prony = str(Path(sys.executable).with_name("prony"))
    with scratch() as folder:
        home = str(folder / "home")
        # An experiment that fails at once is enough to have a database to list.
        recipe = folder / "none.yaml"
        recipe.write_text("name: none\nworkload: {kind: model, model: nowhere.onnx, engine: onnxruntime}\n")
        _record_one(prony, recipe, home)
        commands = {
            "python -c pass": [sys.executable, "-c", "pass"],
            "prony --help": [prony, "--help"],
            "prony list": [prony, "list"],
        }
        taken = in_turns(
            TURNS,
            *[lambda command=command: run(command, PRONY_HOME=home).wall_s for command in commands.values()],
        )
    print(f"{TURNS} turns; ratio as median [range]\n")
    print(f"{'':18}{'median ms':>10}   ratio (bound: under {BOUND:g})")
    missed = False
    for name, values in zip(commands, taken, strict=True):
        middle = sorted(values)[TURNS // 2]
        missed |= middle / sorted(taken[0])[TURNS // 2] >= BOUND
        print(f"{name:18}{middle * 1e3:10.1f}   {ratio_text(values, taken[0])}")
    return int(missed)


def _record_one(prony: str, recipe: Path, home: str) -> None:
    import os
    import subprocess

    subprocess.run(
        [prony, "run", str(recipe), "--no-report"],
        env=os.environ | {"PRONY_HOME": home},
        capture_output=True,
        check=False,
    )


if __name__ == "__main__":
    sys.exit(main())
