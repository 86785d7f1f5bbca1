"""Rename top-level definitions in the whole tree: `python -m tools.rename MAPPING [--write]`.

Each line of the mapping is `dotted.module:name new_name`. The definition, its uses in its module, every import of it
and its uses where it was imported are renamed; a file where the new name is taken already is reported and left.
Strings, comments and documents are reported only: what they mean, a script cannot know.
"""

from __future__ import annotations

import ast
import builtins
import re
import sys
from pathlib import Path

from tools.sources import Edits, Module, read_modules, shadowed


def read_mapping(text: str) -> dict[tuple[str, str], str]:
    """Return what becomes what: (module, old name) to the new name."""
    mapping = {}
    for line in text.splitlines():
        words = line.split("#")[0].split()
        if words and "." not in words[0].split(":")[1]:
            module, old = words[0].split(":")
            mapping[module, old] = words[1]
    return mapping


def rename_in(module: Module, mapping: dict[tuple[str, str], str], modules: dict[str, Module]) -> tuple[str, list[str]]:
    """Return the module's text with the new names, and what could not be renamed in it."""
    edits = Edits(module.text)
    problems: list[str] = []
    local = {old: new for (owner, old), new in mapping.items() if owner == module.name}
    through: dict[str, str] = {}
    for node in ast.walk(module.tree):
        if isinstance(node, ast.ImportFrom):
            source = module.resolve(node)
            for alias in node.names:
                new = mapping.get((source, alias.name))
                if new:
                    edits.replace_node(alias, new + (f" as {alias.asname}" if alias.asname else ""))
                    if not alias.asname:
                        local[alias.name] = new
                elif f"{source}.{alias.name}" in modules:
                    through[alias.asname or alias.name] = f"{source}.{alias.name}"
        elif isinstance(node, ast.Import):
            through.update({alias.asname: alias.name for alias in node.names if alias.asname})
    names = {node.id for node in ast.walk(module.tree) if isinstance(node, ast.Name)}
    names |= {node.arg for node in ast.walk(module.tree) if isinstance(node, ast.arg)}
    for old, new in list(local.items()):
        if new in names or new in dir(builtins):
            problems.append(f"{module.path}: {new} is taken; {old} was left")
            return module.text, problems
    shadows = shadowed(module.tree, set(local))
    rename_uses(module.tree, edits, local, shadows)
    rename_attributes(module.tree, edits, through, mapping)
    return edits.apply() if edits else module.text, problems


def rename_uses(tree: ast.Module, edits: Edits, local: dict[str, str], shadows: dict[str, list[ast.AST]]) -> None:
    """Rename definitions at the top and every use that means them."""
    inside = {name: {id(inner) for node in nodes for inner in ast.walk(node)} for name, nodes in shadows.items()}
    fields = class_fields(tree)
    for node in ast.walk(tree):
        if isinstance(node, ast.Name) and node.id in local and id(node) not in inside[node.id] | fields:
            edits.replace_node(node, local[node.id])
        elif isinstance(node, ast.Global):
            continue
    for node in tree.body:
        if isinstance(node, ast.FunctionDef | ast.AsyncFunctionDef | ast.ClassDef) and node.name in local:
            start = edits.find(node.name, edits.offset(node.lineno, node.col_offset))
            edits.replace(start, start + len(node.name), local[node.name])


def class_fields(tree: ast.Module) -> set[int]:
    """Return the names that stand for the fields of a class where it declares them."""
    return {
        id(target)
        for node in ast.walk(tree)
        if isinstance(node, ast.ClassDef)
        for item in node.body
        for target in (item.targets if isinstance(item, ast.Assign) else [getattr(item, "target", None)])
    }


def rename_attributes(
    tree: ast.Module, edits: Edits, through: dict[str, str], mapping: dict[tuple[str, str], str]
) -> None:
    """Rename `module.name` where the module itself was imported."""
    for node in ast.walk(tree):
        if isinstance(node, ast.Attribute) and isinstance(node.value, ast.Name) and node.value.id in through:
            new = mapping.get((through[node.value.id], node.attr))
            if new:
                edits.replace_node(node, f"{node.value.id}.{new}")


def main() -> int:
    root = Path.cwd()
    mapping = read_mapping(Path(sys.argv[1]).read_text(encoding="utf-8"))
    modules = read_modules(root)
    changed, problems = 0, [f"{m}:{n} does not exist" for m, n in mapping if not defines(modules.get(m), n)]
    for module in modules.values():
        text, found = rename_in(module, mapping, modules)
        problems += found
        if text != module.text:
            changed += 1
            if "--write" in sys.argv:
                module.path.write_text(text, encoding="utf-8")
    for (owner, old), _ in mapping.items():
        pattern = re.compile(rf"\b{re.escape(owner)}[.:]{re.escape(old)}\b|`{re.escape(old)}`")
        for path in [
            *root.glob("docs/**/*.md"),
            *root.glob("*.md"),
            root / "pyproject.toml",
            *root.glob("tests/**/*.py"),
        ]:
            for number, line in enumerate(path.read_text(encoding="utf-8").splitlines(), 1):
                if pattern.search(line):
                    problems.append(f"{path}:{number}: {line.strip()[:100]}")
    print(f"{changed} files change")
    print("\n".join(problems))
    return 0


def defines(module: Module | None, name: str) -> bool:
    """Tell whether a module defines the name at its top."""
    if module is None:
        return False
    for node in module.tree.body:
        if isinstance(node, ast.FunctionDef | ast.AsyncFunctionDef | ast.ClassDef) and node.name == name:
            return True
        targets = node.targets if isinstance(node, ast.Assign) else [getattr(node, "target", None)]
        if any(isinstance(target, ast.Name) and target.id == name for target in targets):
            return True
        if isinstance(node, ast.TypeAlias if hasattr(ast, "TypeAlias") else ()) and node.name.id == name:
            return True
    return False


if __name__ == "__main__":
    sys.exit(main())
