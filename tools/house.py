"""Measure the house: how many rooms, how long, how many names, and which habits are broken.

`python -m tools.house` prints one line a figure; `--list KEY` prints what a figure counts; `--before COMMIT` adds a
first column with the figures of that commit.
"""

from __future__ import annotations

import argparse
import ast
import re
import statistics
import subprocess
from collections import Counter, defaultdict
from collections.abc import Callable, Iterator
from pathlib import Path
from tempfile import TemporaryDirectory

from tools.sources import Module, read_modules, statements

ROOT = Path(__file__).parents[1]
PARTICIPLES = re.compile(r"_?([a-z]+ed|told|said|known|shown|given|taken|made|kept|sent|held|found|begun|read_out)$")
# Words that end like participles and are none, or are adjectives that name a thing.
NO_PARTICIPLES = {"seed", "need", "feed", "speed", "embed", "proceed", "exceed", "red", "bed", "shed", "need_"}
FORMULA = re.compile(r"[^.]*\bin[,;:][^.]*\bout\b")
Definition = ast.FunctionDef | ast.AsyncFunctionDef | ast.ClassDef


class House:
    """The modules of the package, read once, and what is counted in them."""

    def __init__(self, root: Path = ROOT) -> None:
        self.modules = read_modules(root, ["src"])

    def sizes(self) -> list[int]:
        """Return the lines of each file."""
        return [module.text.count("\n") for module in self.modules.values()]

    def functions(self) -> Iterator[tuple[Module, ast.FunctionDef | ast.AsyncFunctionDef]]:
        """Yield every function and method."""
        for module in self.modules.values():
            for node in statements(module.tree):
                if isinstance(node, ast.FunctionDef | ast.AsyncFunctionDef):
                    yield module, node

    def public_names(self) -> list[tuple[str, str]]:
        """Return (module, name) of what a module offers: no underscore, or imported although it has one."""
        private = self._imported_private()
        found = []
        for module in self.modules.values():
            for node in module.tree.body:
                if isinstance(node, Definition) and (node.name[0] != "_" or (module.name, node.name) in private):
                    found.append((module.name, node.name))
        return found

    def _imported_private(self) -> set[tuple[str, str]]:
        return {
            (module.resolve(node), alias.name)
            for module in self.modules.values()
            for node in statements(module.tree)
            if isinstance(node, ast.ImportFrom)
            for alias in node.names
            if alias.name.startswith("_")
        }

    def shared_names(self) -> list[str]:
        """Return the public names that several modules define."""
        places = defaultdict(list)
        for module, name in self.public_names():
            places[name].append(module)
        return [f"{name}: {', '.join(where)}" for name, where in sorted(places.items()) if len(where) > 1]

    def shared_files(self) -> list[str]:
        """Return the file names that several folders have."""
        names = Counter(module.path.name for module in self.modules.values() if module.path.name != "__init__.py")
        return [f"{name} x{count}" for name, count in names.most_common() if count > 1]

    def participles(self) -> list[str]:
        """Return the functions whose name is a participle."""
        return [
            f"{module.name}:{node.lineno} {node.name}"
            for module, node in self.functions()
            if PARTICIPLES.fullmatch(node.name) and node.name.strip("_") not in NO_PARTICIPLES
        ]

    def formulas(self) -> list[str]:
        """Return the modules that open with "X in, Y out"."""
        return [
            f"{module.name}: {first}"
            for module in self.modules.values()
            if FORMULA.match(first := (ast.get_docstring(module.tree) or "").split("\n")[0])
        ]

    def importers(self) -> dict[str, set[str]]:
        """Return for each module those of the package that import it when they run."""
        found: dict[str, set[str]] = {name: set() for name in self.modules}
        for module in self.modules.values():
            for node in statements(module.tree, with_types=False):
                for name in imported(module, node):
                    owner = self._owner(name)
                    if owner and owner != module.name:
                        found[owner].add(module.name)
        return found

    def _owner(self, name: str) -> str:
        """Return the module of the package in which a dotted name is found."""
        while name and name not in self.modules:
            name = name.rpartition(".")[0]
        return name

    def one_importer(self) -> list[str]:
        """Return the modules that exactly one other imports."""
        return [f"{n} < {next(iter(who))}" for n, who in sorted(self.importers().items()) if len(who) == 1]

    def circles(self) -> list[str]:
        """Return the groups of modules that import each other in a circle."""
        return [" <-> ".join(sorted(group)) for group in strong_groups(self.importers()) if len(group) > 1]

    def towers(self, most: int = 300) -> list[str]:
        """Return the classes over so many lines, counted with their bases inside the package."""
        classes = {
            (module.name, node.name): (module, node)
            for module in self.modules.values()
            for node in module.tree.body
            if isinstance(node, ast.ClassDef)
        }
        rows = []
        for key in classes:
            size = sum(length(classes[one][1]) for one in ancestry(key, classes))
            if size > most:
                rows.append((size, f"{key[0]}.{key[1]} {size}"))
        return [row for _, row in sorted(rows, reverse=True)]

    def hooks(self) -> list[str]:
        """Return the methods that only raise NotImplementedError."""
        return [
            f"{module.name}:{node.lineno} {node.name}"
            for module, node in self.functions()
            if isinstance(node.body[-1], ast.Raise) and "NotImplementedError" in ast.dump(node.body[-1])
        ]

    def kind_tests(self) -> list[str]:
        """Return where code outside `kinds/` asks for the kind of a workload."""
        pattern = re.compile(r"isinstance\([^)]*Workload\b|\.kind (==|!=|in|is) |case \w*Workload\(")
        return [
            f"{module.name}:{number} {line.strip()[:100]}"
            for module in self.modules.values()
            if ".kinds." not in f"{module.name}."
            for number, line in enumerate(module.text.splitlines(), 1)
            if pattern.search(line)
        ]

    def sql(self) -> list[str]:
        """Return the modules outside `store/` that import SQLAlchemy."""
        return [
            module.name
            for module in self.modules.values()
            if not module.name.startswith("prony.store")
            and any(
                name.split(".")[0] == "sqlalchemy"
                for node in statements(module.tree)
                for name in imported(module, node)
            )
        ]

    def broad_excepts(self) -> list[str]:
        """Return the handlers that take every error."""
        return [
            f"{module.name}:{node.lineno}"
            for module in self.modules.values()
            for node in statements(module.tree)
            if isinstance(node, ast.ExceptHandler)
            and (node.type is None or getattr(node.type, "id", "") in ("Exception", "BaseException"))
        ]

    def small(self) -> list[str]:
        """Return the modules under 40 lines."""
        return [m.name for m in self.modules.values() if m.path.name != "__init__.py" and m.text.count("\n") < 40]


def imported(module: Module, node: ast.AST) -> Iterator[str]:
    """Yield the dotted names that an import may mean."""
    if isinstance(node, ast.Import):
        yield from (alias.name for alias in node.names)
    elif isinstance(node, ast.ImportFrom):
        source = module.resolve(node)
        yield from (f"{source}.{alias.name}" for alias in node.names)


def length(node: Definition) -> int:
    """Return how many lines a definition has."""
    return (node.end_lineno or node.lineno) - node.lineno + 1


def ancestry(key: tuple[str, str], classes: dict[tuple[str, str], tuple[Module, ast.ClassDef]]) -> set[tuple[str, str]]:
    """Return a class and all its bases inside the package."""
    module, node = classes[key]
    found = {key}
    if not node.bases:
        return found
    sources = {
        alias.asname or alias.name: (module.resolve(line), alias.name)
        for line in statements(module.tree)
        if isinstance(line, ast.ImportFrom)
        for alias in line.names
    }
    for base in node.bases:
        name = base.value if isinstance(base, ast.Subscript) else base
        if isinstance(name, ast.Name):
            parent = sources.get(name.id, (module.name, name.id))
            if parent in classes and parent not in found:
                found |= ancestry(parent, classes)
    return found


def strong_groups(arrows: dict[str, set[str]]) -> list[set[str]]:
    """Return the strongly connected groups of a graph (Tarjan's way)."""
    index: dict[str, int] = {}
    low: dict[str, int] = {}
    stack: list[str] = []
    groups: list[set[str]] = []

    def visit(one: str) -> None:
        index[one] = low[one] = len(index)
        stack.append(one)
        for other in arrows[one]:
            if other not in index:
                visit(other)
                low[one] = min(low[one], low[other])
            elif other in stack:
                low[one] = min(low[one], index[other])
        if low[one] == index[one]:
            at = stack.index(one)
            groups.append(set(stack[at:]))
            del stack[at:]

    for one in arrows:
        if one not in index:
            visit(one)
    return groups


LISTS: dict[str, Callable[[House], list[str]]] = {
    "shared_names": House.shared_names,
    "shared_files": House.shared_files,
    "participles": House.participles,
    "formulas": House.formulas,
    "one_importer": House.one_importer,
    "circles": House.circles,
    "towers": House.towers,
    "hooks": House.hooks,
    "kind_tests": House.kind_tests,
    "sql": House.sql,
    "broad_excepts": House.broad_excepts,
    "small": House.small,
}


def figures(house: House) -> dict[str, float]:
    """Return every figure by its name."""
    sizes, names, broad = house.sizes(), house.public_names(), house.broad_excepts()
    lengths = sorted(length(node) for _, node in house.functions())
    found: dict[str, float] = {
        "files": len(sizes),
        "lines": sum(sizes),
        "public_names": len(names),
        "lines_a_name": round(sum(sizes) / len(names), 1),
        "file_median": statistics.median(sizes),
        "file_largest": max(sizes),
        "function_median": statistics.median(lengths),
        "function_p90": lengths[int(len(lengths) * 0.9)],
        "broad_per_1000": round(1000 * len(broad) / sum(sizes), 2),
    }
    return found | {key: len(count(house)) for key, count in LISTS.items()}


def figures_at(commit: str, root: Path = ROOT) -> dict[str, float]:
    """Return every figure of the package as it was at a commit."""
    with TemporaryDirectory() as folder:
        archive = subprocess.run(["git", "-C", str(root), "archive", commit, "src"], stdout=subprocess.PIPE, check=True)
        subprocess.run(["tar", "x", "-C", folder], input=archive.stdout, check=True)
        return figures(House(Path(folder)))


def main() -> None:
    parser = argparse.ArgumentParser(description=__doc__)
    which = parser.add_mutually_exclusive_group()
    which.add_argument("--list", choices=LISTS, help="print what this figure counts")
    which.add_argument("--before", metavar="COMMIT", help="print the figures of this commit beside those of now")
    options = parser.parse_args()
    house = House()
    if options.list:
        print("\n".join(LISTS[options.list](house)))
        return
    columns = [figures_at(options.before)] if options.before else []
    columns.append(figures(house))
    for key in columns[-1]:
        print(f"{key:16}", *(f"{one[key]:>8.7g}" for one in columns))


if __name__ == "__main__":
    main()
