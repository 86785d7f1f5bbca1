"""Read the Python sources of a tree as modules with names, and edit them by position."""

from __future__ import annotations

import ast
import re
from collections.abc import Iterable, Iterator
from dataclasses import dataclass, field
from functools import cache
from pathlib import Path

# Where modules live, and from where their names count: tests import each other by their folder's name.
ROOTS = ("src", "tests/unit", "tests", ".")
FOLDERS = ("src", "tests", "benchmarks", "tools")
TEXTS = ("*.md", "*.toml", "Makefile", "*.yaml", "*.yml", "*.ts", "*.tsx", "*.ini", "run", "*.cfg")


@dataclass
class Module:
    """One file of Python: its path, its dotted name, its text and its tree."""

    path: Path
    name: str
    text: str
    tree: ast.Module = field(repr=False)

    @property
    def package(self) -> str:
        """The dotted name that its relative imports count from."""
        return self.name if self.path.name == "__init__.py" else self.name.rpartition(".")[0]

    def resolve(self, node: ast.ImportFrom) -> str:
        """Return the absolute dotted name of the module that an import names."""
        if not node.level:
            return node.module or ""
        base = self.package.split(".")
        base = base[: len(base) - node.level + 1]
        return ".".join([*base, *([node.module] if node.module else [])])


@cache
def parse_source(text: str) -> ast.Module:
    """Return the tree of a text; whoever asks for the same text gets the same tree, so nobody may change it."""
    return ast.parse(text)


def module_name(root: Path, path: Path) -> str:
    """Return the dotted name by which other modules import the file."""
    for place in ROOTS:
        if (root / place) in path.parents:
            parts = list(path.relative_to(root / place).with_suffix("").parts)
            return ".".join(parts[:-1] if parts[-1] == "__init__" else parts)
    raise ValueError(f"{path} lies outside {root}")


def read_modules(root: Path, folders: Iterable[str] = FOLDERS) -> dict[str, Module]:
    """Return every module below the folders by its dotted name."""
    found: dict[str, Module] = {}
    for path in python_files(root, folders):
        text = path.read_text(encoding="utf-8")
        module = Module(path, module_name(root, path), text, parse_source(text))
        found[module.name] = module
    return found


def statements(tree: ast.AST, *, with_types: bool = True) -> Iterator[ast.AST]:
    """Yield a node and all statements and handlers inside of it, without their expressions, which are many.

    Without `with_types`, what is only there for the type checker is left out.
    """
    waiting = [tree]
    while waiting:
        node = waiting.pop()
        yield node
        if not with_types and isinstance(node, ast.If) and getattr(node.test, "id", "") == "TYPE_CHECKING":
            continue
        for part in ("body", "orelse", "finalbody", "handlers", "cases"):
            waiting += getattr(node, part, ())


def python_files(root: Path, folders: Iterable[str] = FOLDERS) -> Iterator[Path]:
    """Yield the files of Python, without links to other folders."""
    for folder in folders:
        for path in sorted((root / folder).rglob("*.py")):
            if not any(part.is_symlink() for part in [path, *path.parents]):
                yield path


class Edits:
    """Replacements in one text, by line and column, applied together."""

    def __init__(self, text: str) -> None:
        self._lines = text.splitlines(keepends=True)
        self._starts = [0]
        for line in self._lines:
            self._starts.append(self._starts[-1] + len(line))
        self._text = text
        self._edits: dict[tuple[int, int], str] = {}

    def offset(self, line: int, column: int) -> int:
        """Return the place in the text of a syntax tree's line and column, which counts bytes."""
        head = self._lines[line - 1].encode()[:column].decode()
        return self._starts[line - 1] + len(head)

    def place(self, line: int, column: int) -> int:
        """Return the place in the text of a token's line and column, which counts characters."""
        return self._starts[line - 1] + column

    def replace(self, start: int, end: int, new: str) -> None:
        """Plan to put `new` in place of the text between two offsets."""
        self._edits[(start, end)] = new

    def replace_node(self, node: ast.expr | ast.stmt | ast.alias, new: str) -> None:
        """Plan to put `new` in place of a node."""
        assert node.end_lineno is not None
        assert node.end_col_offset is not None
        self.replace(self.offset(node.lineno, node.col_offset), self.offset(node.end_lineno, node.end_col_offset), new)

    def replace_word(self, end: int, word: str, new: str) -> None:
        """Plan to put `new` in place of the word that ends at an offset."""
        if self._text[end - len(word) : end] == word:
            self.replace(end - len(word), end, new)

    def find(self, word: str, start: int) -> int:
        """Return where an identifier stands first at or after an offset."""
        match = re.compile(rf"\b{re.escape(word)}\b").search(self._text, start)
        assert match, f"{word} not found"
        return match.start()

    def __bool__(self) -> bool:
        return bool(self._edits)

    def apply(self) -> str:
        """Return the text with every planned change."""
        text = self._text
        for (start, end), new in sorted(self._edits.items(), reverse=True):
            text = text[:start] + new + text[end:]
        return text


def shadowed(tree: ast.Module, names: set[str]) -> dict[str, list[ast.AST]]:
    """Return the functions in which a name is an argument or a local variable of its own."""
    found: dict[str, list[ast.AST]] = {name: [] for name in names}
    for node in ast.walk(tree):
        if isinstance(node, ast.FunctionDef | ast.AsyncFunctionDef | ast.Lambda):
            bound = {arg.arg for arg in ast.walk(node.args) if isinstance(arg, ast.arg)}
            if not isinstance(node, ast.Lambda):
                bound |= {
                    inner.id
                    for inner in ast.walk(node)
                    if isinstance(inner, ast.Name) and isinstance(inner.ctx, ast.Store)
                }
            for name in bound & names:
                found[name].append(node)
    return found
