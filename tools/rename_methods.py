"""Rename methods and properties in the whole tree: `python -m tools.rename_methods MAPPING`.

Each line of the mapping is `dotted.module:Class.name new_name`; a class and what takes its place (bases, subclasses,
other implementations of a Protocol) need a line each. Definitions are renamed first, private names within their module.
Then mypy says where the old name is missed, with the place of each use; these are renamed until it misses none.
"""

from __future__ import annotations

import ast
import re
import subprocess
import sys
from collections import defaultdict
from pathlib import Path

from tools.sources import Edits, Module, read_modules

MISSED = re.compile(
    r'^(?P<path>[^:]+):\d+:\d+:(?P<line>\d+):(?P<column>\d+): error: .*?"(type\[)?(?P<owner>\w+)[^"]*"'
    r'( of "[^"]*")? has no attribute "(?P<name>\w+)"',
    re.MULTILINE,
)


def read_methods(text: str) -> dict[tuple[str, str, str], str]:
    """Return what becomes what: (module, class, old name) to the new name."""
    mapping = {}
    for line in text.splitlines():
        words = line.split("#")[0].split()
        if words and "." in words[0].split(":")[1]:
            module, _, qualified = words[0].partition(":")
            owner, _, old = qualified.rpartition(".")
            mapping[module, owner, old] = words[1]
    return mapping


def rename_definitions(module: Module, wanted: dict[tuple[str, str], str]) -> str:
    """Return the module's text with the methods renamed, and the uses of private ones in it."""
    edits = Edits(module.text)
    private = {old: new for (_, old), new in wanted.items() if old.startswith("_")}
    for node in ast.walk(module.tree):
        if isinstance(node, ast.ClassDef):
            for item in node.body:
                new = wanted.get((node.name, getattr(item, "name", "")))
                if new and isinstance(item, ast.FunctionDef | ast.AsyncFunctionDef):
                    start = edits.find(item.name, edits.offset(item.lineno, item.col_offset))
                    edits.replace(start, start + len(item.name), new)
        elif isinstance(node, ast.Attribute) and node.attr in private:
            assert node.end_lineno is not None
            assert node.end_col_offset is not None
            end = edits.offset(node.end_lineno, node.end_col_offset)
            edits.replace(end - len(node.attr), end, private[node.attr])
    return edits.apply() if edits else module.text


def rename_missed(root: Path, names: dict[tuple[str, str], str]) -> int:
    """Ask mypy which attributes it misses, rename those; return how many."""
    command = [sys.executable, "-m", "mypy", "--show-column-numbers", "--show-error-end", "--no-pretty"]
    said = subprocess.run(command, cwd=root, capture_output=True, text=True, check=False).stdout
    places = defaultdict(set)
    for match in MISSED.finditer(said):
        new = names.get((match["owner"], match["name"])) or names.get(("", match["name"]))
        if new:
            places[match["path"]].add((int(match["line"]), int(match["column"]), match["name"], new))
    for path, found in places.items():
        file = root / path
        edits = Edits(file.read_text(encoding="utf-8"))
        for line, column, name, new in found:
            edits.replace_word(edits.place(line, column), name, new)
        file.write_text(edits.apply(), encoding="utf-8")
    return sum(map(len, places.values()))


def names_by_class(mapping: dict[tuple[str, str, str], str]) -> dict[tuple[str, str], str]:
    """Return the new name by class and old name; under no class what is the same for all, which serves subclasses."""
    found = {(owner, old): new for (_, owner, old), new in mapping.items()}
    for (_, _, old), new in mapping.items():
        if all(other == new for (_, _, name), other in mapping.items() if name == old):
            found["", old] = new
    return found


def main() -> int:
    root = Path.cwd()
    mapping = read_methods(Path(sys.argv[1]).read_text(encoding="utf-8"))
    modules = read_modules(root)
    by_module: dict[str, dict[tuple[str, str], str]] = defaultdict(dict)
    for (name, owner, old), new in mapping.items():
        by_module[name][owner, old] = new
    for name, wanted in by_module.items():
        module = modules.get(name)
        if module is None:
            print(f"no module {name}")
        else:
            module.path.write_text(rename_definitions(module, wanted), encoding="utf-8")
    while renamed := rename_missed(root, names_by_class(mapping)):
        print(f"{renamed} uses renamed")
    return 0


if __name__ == "__main__":
    sys.exit(main())
