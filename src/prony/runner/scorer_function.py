"""Score answers with a Python function that the user wrote: `python <this file> FILE FUNCTION`.

It reads answers and writes their scores as JSON lines. It runs as a file, in a process that may be ended at any time,
so it imports nothing of Prony.
"""

import importlib.util
import json
import sys


def main(path: str, name: str) -> int:
    """Call the function with each answer; what it prints itself goes to where errors go."""
    out, sys.stdout = sys.stdout, sys.stderr
    spec = importlib.util.spec_from_file_location("scorer", path)
    if spec is None or spec.loader is None:
        sys.stderr.write(f"{path} is not a Python file\n")
        return 1
    module = importlib.util.module_from_spec(spec)
    sys.path[0] = path.rpartition("/")[0] or "."
    spec.loader.exec_module(module)
    function = getattr(module, name, None)
    if not callable(function):
        sys.stderr.write(f"{path} has no function {name}\n")
        return 1
    for line in sys.stdin:
        out.write(f"{json.dumps(function(json.loads(line)))}\n")
    out.flush()
    return 0


if __name__ == "__main__":
    sys.exit(main(sys.argv[1], sys.argv[2]))
