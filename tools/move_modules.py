"""Move modules, or merge several into one: `python -m tools.move_modules PLAN [--write]`.

A line of the plan is `old.module new.module`; where several lines name one new module, or the new one exists and stays,
their code is joined there in the order of the lines, an existing module first (a line `x.y x.y` places it elsewhere in
the order). A line that begins with a tab is the docstring of the new module named last. Imports, entry points, strings
and documents that name the old module by its dotted name name the new one afterwards. What cannot be done by rule
(two definitions of one name) is printed, and nothing is written.
"""

from __future__ import annotations

import ast
import io
import re
import subprocess
import sys
import tokenize
from collections.abc import Callable
from dataclasses import dataclass, field
from pathlib import Path

from tools.sources import TEXTS, Edits, Module, read_modules, shadowed


@dataclass
class Plan:
    """Where each module goes, and what the new modules say of themselves."""

    moves: dict[str, str] = field(default_factory=dict)
    order: dict[str, list[str]] = field(default_factory=dict)
    docs: dict[str, str] = field(default_factory=dict)

    def target(self, module: str) -> str:
        """Return the module's new name."""
        return self.moves.get(module, module)


def read_plan(text: str, modules: dict[str, Module]) -> Plan:
    """Read the lines of a plan."""
    plan = Plan()
    new = ""
    for line in text.splitlines():
        if line.startswith("\t"):
            plan.docs[new] = line.strip()
        elif line.split("#")[0].strip():
            old, new = line.split("#")[0].split()
            assert old in modules, f"no module {old}"
            plan.moves[old] = new
            plan.order.setdefault(new, []).append(old)
    for new, olds in plan.order.items():
        if new in modules and new not in plan.moves:
            olds.insert(0, new)
            plan.moves[new] = new
    return plan


def top_names(tree: ast.Module) -> set[str]:
    """Return what a module defines at its top, without what it imports."""
    found = set()
    for node in tree.body:
        if isinstance(node, ast.FunctionDef | ast.AsyncFunctionDef | ast.ClassDef):
            found.add(node.name)
        elif isinstance(node, ast.Assign | ast.AnnAssign):
            for target in node.targets if isinstance(node, ast.Assign) else [node.target]:
                found |= {inner.id for inner in ast.walk(target) if isinstance(inner, ast.Name)}
    return found


def import_line(source: str, aliases: list[ast.alias]) -> str:
    """Write one import."""
    return f"from {source} import {', '.join(a.name + (f' as {a.asname}' if a.asname else '') for a in aliases)}"


class Rewriter:
    """Rewrite one module's imports after the plan."""

    def __init__(self, module: Module, plan: Plan, modules: dict[str, Module]) -> None:
        self.module, self.plan, self.modules = module, plan, modules
        self.home = plan.target(module.name)
        self.edits = Edits(module.text)
        self.problems: list[str] = []
        self.bare: dict[str, str] = {}
        self.taken = {node.id for node in ast.walk(module.tree) if isinstance(node, ast.Name)}
        self.taken |= {node.arg for node in ast.walk(module.tree) if isinstance(node, ast.arg)}

    def rewrite(self) -> str:
        """Return the text with its imports put right."""
        for parent in ast.walk(self.module.tree):
            for name in ("body", "orelse", "finalbody"):
                for node in getattr(parent, name, []) if not isinstance(parent, ast.Lambda | ast.IfExp) else []:
                    if isinstance(node, ast.ImportFrom):
                        self._from(node, getattr(parent, name))
                    elif isinstance(node, ast.Import):
                        self._import(node)
        self._uses()
        return self.edits.apply() if self.edits else self.module.text

    def _from(self, node: ast.ImportFrom, suite: list[ast.stmt]) -> None:
        source = self.module.resolve(node)
        kept, lines = self._sort_out(node, source)
        target = self.plan.target(source)
        if kept and target == self.home and source in self.modules and source != self.module.name:
            lines += [f"{alias.asname} = {alias.name}" for alias in kept if alias.asname]
            kept = []
        stays = target == source and (not node.level or self.home == self.module.name)
        if stays and len(kept) == len(node.names):
            return
        if kept:
            lines.insert(0, import_line(target, kept))
        new = f"\n{' ' * node.col_offset}".join(lines)
        if not new and all(isinstance(line, ast.Import | ast.ImportFrom) for line in suite):
            new = "pass"
        self.edits.replace_node(node, new)

    def _sort_out(self, node: ast.ImportFrom, source: str) -> tuple[list[ast.alias], list[str]]:
        """Return the names that are imported as before, and new lines for those that are modules which move."""
        kept: list[ast.alias] = []
        lines: list[str] = []
        for alias in node.names:
            inner = f"{source}.{alias.name}"
            line = self._module_import(inner, alias) if inner in self.modules else None
            if line is None:
                kept.append(alias)
            elif line:
                lines.append(line)
        return kept, lines

    def _module_import(self, inner: str, alias: ast.alias) -> str | None:
        """Return the new line for an import of a module itself; None leaves it, empty drops it."""
        target = self.plan.target(inner)
        if target == inner and inner != self.home:
            return None
        local = alias.asname or alias.name
        if target == self.home:
            self.bare[local] = ""
            return ""
        package, _, base = target.rpartition(".")
        # Where the new name means something else already, the module keeps the name that it had in this file.
        if local != base and (alias.asname or base in self.taken or base in self.bare.values()):
            return f"from {package} import {base} as {local}"
        self.bare[local] = base
        return f"from {package} import {base}"

    def _import(self, node: ast.Import) -> None:
        for alias in node.names:
            target = self.plan.target(alias.name)
            if target != alias.name and alias.name in self.modules:
                self.edits.replace_node(alias, target + (f" as {alias.asname}" if alias.asname else ""))
                if not alias.asname:
                    self.problems.append(f"{self.module.path}:{node.lineno}: import {alias.name} without `as`")

    def _uses(self) -> None:
        inside = {
            id(node)
            for name, functions in shadowed(self.module.tree, set(self.bare)).items()
            for function in functions
            for node in ast.walk(function)
            if isinstance(node, ast.Name) and node.id == name
        }
        for node in ast.walk(self.module.tree):
            if isinstance(node, ast.Attribute) and isinstance(node.value, ast.Name) and node.value.id in self.bare:
                if id(node.value) in inside:
                    continue
                new = self.bare[node.value.id]
                self.edits.replace_node(node, f"{new}.{node.attr}" if new else node.attr)
                inside.add(id(node.value))
        for node in ast.walk(self.module.tree):
            if isinstance(node, ast.Name) and node.id in self.bare and id(node) not in inside:
                if self.bare[node.id]:
                    self.edits.replace_node(node, self.bare[node.id])
                else:
                    self.problems.append(f"{self.module.path}:{node.lineno}: {node.id} is this module itself now")


def split_module(text: str) -> tuple[str, list[str], str]:
    """Return a module's docstring, its imports at the top and the rest."""
    tree = ast.parse(text)
    lines = text.splitlines(keepends=True)
    doc, imports, first = "", [], 0
    for node in tree.body:
        if isinstance(node, ast.Expr) and isinstance(node.value, ast.Constant) and not first:
            doc = ast.get_source_segment(text, node) or ""
        elif isinstance(node, ast.Import | ast.ImportFrom) or (
            isinstance(node, ast.If) and isinstance(node.test, ast.Name) and node.test.id == "TYPE_CHECKING"
        ):
            imports.append("".join(lines[node.lineno - 1 : node.end_lineno]))
        else:
            break
        first = node.end_lineno or 0
    return doc, imports, "".join(lines[first:]).strip("\n")


def join(texts: list[str], doc: str) -> str:
    """Put modules one after the other, with one docstring and all imports at the top."""
    parts = [split_module(text) for text in texts]
    heading = f'"""{doc}"""' if doc else parts[0][0]
    imports: list[str] = []
    checking: list[str] = []
    for _, lines, _ in parts:
        for line in lines:
            if line.startswith("if TYPE_CHECKING"):
                checking += line.splitlines(keepends=True)[1:]
            elif line not in imports and "from __future__" not in line:
                imports.append(line)
    head = f"{heading}\n\nfrom __future__ import annotations\n\n{''.join(imports)}"
    if checking:
        head += "\nif TYPE_CHECKING:\n" + "".join(dict.fromkeys(checking))
    return head + "\n\n" + "\n\n\n".join(body for _, _, body in parts if body) + "\n"


def new_path(module: Module, new: str) -> Path:
    """Return the file of the new module, below the same root as the old one."""
    depth = len(module.name.split(".")) + (module.path.name == "__init__.py")
    base = module.path.parents[depth - 1]
    return base.joinpath(*new.split(".")).with_suffix(".py")


def check_clashes(plan: Plan, modules: dict[str, Module]) -> list[str]:
    """Return the names that two joined modules both define or import differently."""
    problems = []
    for new, olds in plan.order.items():
        seen: dict[str, str] = {}
        for old in olds:
            for name in top_names(modules[old].tree):
                if name in seen:
                    problems.append(f"{new}: {name} is defined in {seen[name]} and in {old}")
                seen[name] = old
    return problems


def rename_texts(root: Path, plan: Plan) -> list[tuple[Path, str]]:
    """Return documents, settings and strings that named an old module, with the new name."""
    moved = {old: new for old, new in plan.moves.items() if old != new}
    slashed = {old.replace(".", "/") + ".py": new.replace(".", "/") + ".py" for old, new in moved.items()}
    dotted = re.compile(rf"(?<![\w.])({one_of(moved)})(?!\w)")
    paths = re.compile(rf"(?<!\w)({one_of(slashed)})")
    created = set(moved.values())

    def rename(text: str) -> str:
        def new_name(match: re.Match[str]) -> str:
            following = re.match(r"\.\w+", text[match.end() :])
            # A module that became a package: what follows is a module of the new package already.
            return match[1] if following and match[1] + following[0] in created else moved[match[1]]

        return paths.sub(lambda match: slashed[match[1]], dotted.sub(new_name, text))

    tracked = subprocess.run(["git", "ls-files", *TEXTS, "*.py"], cwd=root, capture_output=True, text=True, check=True)
    changed = []
    for path in (root / line for line in tracked.stdout.split()):
        if path.is_file() and not path.is_symlink():
            text = path.read_text(encoding="utf-8")
            new = rename_in_strings(text, rename) if path.suffix == ".py" else rename(text)
            changed += [(path, new)] if new != text else []
    return changed


def one_of(words: dict[str, str]) -> str:
    """Return a pattern for any of the words, longest first."""
    return "|".join(sorted(map(re.escape, words), key=len, reverse=True))


def rename_in_strings(text: str, rename: Callable[[str], str]) -> str:
    """Rename in the strings and comments of a program, not in its code."""
    edits = Edits(text)
    for token in tokenize.generate_tokens(io.StringIO(text).readline):
        if token.type in (tokenize.STRING, tokenize.COMMENT) and rename(token.string) != token.string:
            start, end = (edits.place(*at) for at in (token.start, token.end))
            edits.replace(start, end, rename(token.string))
    return edits.apply()


def main() -> int:
    root = Path.cwd()
    modules = read_modules(root)
    plan = read_plan(Path(sys.argv[1]).read_text(encoding="utf-8"), modules)
    problems = check_clashes(plan, modules)
    texts: dict[str, str] = {}
    for module in modules.values():
        rewriter = Rewriter(module, plan, modules)
        texts[module.name] = rewriter.rewrite()
        problems += rewriter.problems
    print("\n".join(problems))
    if "--write" not in sys.argv:
        return 0
    if problems:
        return 1
    write(root, plan, modules, texts)
    for path, text in rename_texts(root, plan):
        path.write_text(text, encoding="utf-8")
    return 0


def write(root: Path, plan: Plan, modules: dict[str, Module], texts: dict[str, str]) -> None:
    """Write the changed modules and take the old ones away."""
    for name, module in modules.items():
        if name not in plan.moves and texts[name] != module.text:
            module.path.write_text(texts[name], encoding="utf-8")
    for new, olds in plan.order.items():
        path = modules[new].path if new in modules else new_path(modules[olds[0]], new)
        joined = (
            join([texts[old] for old in olds], plan.docs.get(new, ""))
            if len(olds) > 1 or new in plan.docs
            else texts[olds[0]]
        )
        if len(olds) == 1:
            joined = texts[olds[0]]
        path.parent.mkdir(parents=True, exist_ok=True)
        package = path.parent / "__init__.py"
        if not package.exists() and "src" in path.parts:
            package.write_text("", encoding="utf-8")
        if olds[0] != new and new not in modules:
            subprocess.run(["git", "mv", "-k", modules[olds[0]].path, path], cwd=root, check=True)
        path.write_text(joined, encoding="utf-8")
        for old in olds:
            if old != new and modules[old].path.exists() and modules[old].path != path:
                modules[old].path.unlink()


if __name__ == "__main__":
    sys.exit(main())
