"""The entry of a process under an engine's interpreter: `<any python> <this file> MODULE:CLASS` hosts the engine.

`<any python> <this file> --call MODULE:FUNCTION WORDS` calls another function of Prony there, with the words.

It runs where Prony is not installed, so the package is found by this file's own place and nothing else of that place
becomes importable. Orders come as JSON lines on standard input, answers go to a private copy of standard output;
what the engine prints goes to the log.
"""

import importlib
import importlib.util
import os
import sys


def _adopt_prony() -> None:
    here = os.path.dirname(os.path.abspath(__file__))  # noqa: PTH100, PTH120 - before anything else is imported
    root = os.path.dirname(os.path.dirname(here))  # noqa: PTH120
    if sys.path and os.path.abspath(sys.path[0]) == here:  # noqa: PTH100
        del sys.path[0]
    init = os.path.join(root, "__init__.py")  # noqa: PTH118
    spec = importlib.util.spec_from_file_location("prony", init, submodule_search_locations=[root])
    if spec is None or spec.loader is None:
        raise ImportError(f"no Prony at {root}")
    module = importlib.util.module_from_spec(spec)
    sys.modules["prony"] = module
    spec.loader.exec_module(module)


if __name__ == "__main__":
    _adopt_prony()
    if sys.argv[1:2] == ["--call"]:
        module, _, name = sys.argv[2].partition(":")
        sys.exit(getattr(importlib.import_module(module), name)(sys.argv[3:]))
    from prony.runner.child.spawner import main

    sys.exit(main(sys.argv[1:]))
