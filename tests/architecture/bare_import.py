"""Import modules where only the standard library, numpy and Prony exist."""

from __future__ import annotations

import importlib
import sys
from importlib.machinery import ModuleSpec

ALLOWED = {"numpy", "prony"} | sys.stdlib_module_names


class Refusal:
    """Asked before every other finder: a package that the engine's child may not need does not exist."""

    @staticmethod
    def find_spec(name: str, *_: object) -> ModuleSpec | None:
        if name.partition(".")[0] in ALLOWED:
            return None
        raise ModuleNotFoundError(f"{name} does not exist where an engine's child may run", name=name)


if __name__ == "__main__":
    # What the interpreter itself imported at its start (an editable install, for one) proves nothing.
    before = {name.partition(".")[0] for name in sys.modules}
    sys.meta_path.insert(0, Refusal)
    for module in sys.argv[1:]:
        importlib.import_module(module)
    # Compiled parts of numpy register the runtime they share under names of their own; no file is behind them.
    made_up = {name for name, module in sys.modules.items() if "cython" in name and not hasattr(module, "__file__")}
    strangers = {name.partition(".")[0] for name in sys.modules} - before - ALLOWED - made_up
    sys.exit(f"imported all the same: {sorted(strangers)}" if strangers else 0)
