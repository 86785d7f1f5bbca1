"""Move modules, or merge several into one: `python -m tools.move_modules PLAN [--write]`.

A line of the plan is `old.module new.module`; where several lines name one new module, or the new one exists and stays,
their code is joined there: what another one imports comes first, else the order of the lines, an existing module first.
A line that begins with a tab is the first line of the docstring of the new module named last; without it each module's
docstring is kept as a paragraph. A definition that two modules have word for word is kept once. Imports, entry points,
strings and documents that name the old module by its dotted name name the new one afterwards. What cannot be done by
rule (two definitions of one name) is printed, and nothing is written.
"""

from __future__ import annotations

import ast
import io
import re
import shutil
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
        plan.order[new] = sort_by_imports(olds, modules)
    return plan


def sort_by_imports(names: list[str], modules: dict[str, Module]) -> list[str]:
    """Return the modules with those first that others import, and otherwise in the order given."""
    found: list[str] = []

    def place(name: str, waiting: tuple[str, ...]) -> None:
        needed = imported_modules(modules[name])
        for other in names:
            if other in needed and other not in found and other not in waiting:
                place(other, (*waiting, other))
        if name not in found:
            found.append(name)

    for name in names:
        place(name, (name,))
    return found


def imported_modules(module: Module) -> set[str]:
    """Return the dotted names that the module's imports at its top may mean."""
    found: set[str] = set()
    for node in module.tree.body:
        if isinstance(node, ast.ImportFrom):
            source = module.resolve(node)
            found |= {source, *(f"{source}.{alias.name}" for alias in node.names)}
    return found


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
        fields = {id(node) for node in ast.walk(self.module.tree) if isinstance(getattr(node, "ctx", None), ast.Store)}
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
            if isinstance(node, ast.Name) and node.id in self.bare and id(node) not in inside | fields:
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


def join(texts: list[str], doc: str, main: int = 0) -> str:
    """Put modules one after the other, with one docstring and all imports at the top."""
    parts = [split_module(text) for text in texts]
    imports: list[str] = []
    checking: list[str] = []
    for _, lines, _ in parts:
        for line in lines:
            if line.startswith("if TYPE_CHECKING"):
                checking += line.splitlines(keepends=True)[1:]
            elif line not in imports and "from __future__" not in line:
                imports.append(line)
    heading = join_docstrings([parts[main][0], *(part[0] for part in parts[:main] + parts[main + 1 :])], doc)
    head = f"{heading}\n\nfrom __future__ import annotations\n\n{''.join(imports)}"
    checking = [line for line in dict.fromkeys(checking) if line.strip() not in ("", "pass")]
    if checking:
        head += "\nif TYPE_CHECKING:\n" + "".join(checking)
    bodies = keep_once([body for _, _, body in parts])
    return head + "\n\n" + "\n\n\n".join(body for body in bodies if body) + "\n"


def join_docstrings(docs: list[str], first: str) -> str:
    """Return one docstring of several: the given first line and what the others say besides, or all one by one."""
    texts = [doc.removeprefix('"""').removesuffix('"""').strip() for doc in docs]
    if first:
        texts = [first, *(text.partition("\n")[2].strip() for text in texts)]
    texts = [text for text in texts if text]
    return f'"""{texts[0]}"""' if texts == texts[:1] and "\n" not in texts[0] else '"""' + "\n\n".join(texts) + '\n"""'


def keep_once(bodies: list[str]) -> list[str]:
    """Drop the definitions that an earlier body has word for word."""
    seen: set[str] = set()
    kept = []
    for body in bodies:
        edits = Edits(body)
        for node in ast.parse(body).body:
            text = ast.get_source_segment(body, node) or ""
            if text in seen:
                edits.replace_node(node, "")
            seen.add(text)
        kept.append((edits.apply() if edits else body).strip("\n"))
    return kept


def new_path(module: Module, new: str) -> Path:
    """Return the file of the new module, below the same root as the old one."""
    depth = len(module.name.split(".")) + (module.path.name == "__init__.py")
    base = module.path.parents[depth - 1]
    return base.joinpath(*new.split(".")).with_suffix(".py")


def check_clashes(plan: Plan, modules: dict[str, Module]) -> list[str]:
    """Return the names that two joined modules both define, or that one defines and another imports."""
    problems = []
    for new, olds in plan.order.items():
        seen: dict[str, tuple[str, str]] = {}
        for old in olds:
            for name, text in definitions(modules[old], olds).items():
                if seen.setdefault(name, (old, text))[1] != text:
                    problems.append(f"{new}: {name} is not the same in {seen[name][0]} and in {old}")
    return problems


def definitions(module: Module, joined: list[str]) -> dict[str, str]:
    """Return what each name at the top of a module means: the text of its definition, or where it is imported from."""
    found = {}
    for node in module.tree.body:
        for name in top_names(ast.Module([node], [])):
            found[name] = ast.get_source_segment(module.text, node) or ""
        if isinstance(node, ast.ImportFrom) and module.resolve(node) not in joined:
            found.update({a.asname or a.name: f"{module.resolve(node)}.{a.name}" for a in node.names})
    return {name: text for name, text in found.items() if text not in joined}


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
            join([texts[old] for old in olds], plan.docs.get(new, ""), olds.index(new) if new in olds else 0)
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
    close_packages({modules[old].path.parent for old in plan.moves})


def close_packages(folders: set[Path]) -> None:
    """Make a module of each package that has nothing left but its own file, and remove those that are empty."""
    for folder in sorted(folders, reverse=True):
        first = folder / "__init__.py"
        if first.exists() and {path.name for path in folder.iterdir()} <= {"__init__.py", "__pycache__"}:
            if split_module(first.read_text(encoding="utf-8"))[2]:
                first.rename(folder.with_suffix(".py"))
            first.unlink(missing_ok=True)
            shutil.rmtree(folder)


if __name__ == "__main__":
    sys.exit(main())
