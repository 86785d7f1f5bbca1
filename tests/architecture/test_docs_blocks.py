"""Every code block on a page is checked by what it is, or is text, which is output.

The commands in console blocks are parsed by another test, and those of the start pages are really typed.
"""

from __future__ import annotations

import ast
import importlib
import json
import re
import subprocess
import sys
import textwrap
import time
import tomllib
from collections.abc import Callable, Iterator
from typing import Any, NamedTuple

import pytest

import prony
from prony.app.notify import signature
from prony.cli.option_settings import list_settings
from prony.recipe import loads
from prony.recipe.formats import parse_document

from .house import ROOT, page, pages

BLOCK = re.compile(
    r"(?:^<!-- (?P<mark>[^>]+) -->\n)?^(?P<indent> *)```(?P<form>\S*)\n(?P<text>.*?)^(?P=indent)```$",
    re.DOTALL | re.MULTILINE,
)
# Where blocks come from that stand for other programs' files.
PROXIES = {"nginx": "nginx.conf"}
# What a part of a recipe needs around it.
SERVICE = {"kind": "service", "driver": "http", "endpoint": "http://127.0.0.1:8000/"}
SCRIPT = {"kind": "script", "command": "python train.py"}


class Block(NamedTuple):
    page: str
    form: str
    text: str
    mark: str


def blocks() -> Iterator[Block]:
    for path in pages():
        if path.parent in (ROOT, ROOT / "docs"):
            for found in BLOCK.finditer(path.read_text()):
                yield Block(path.name, found["form"], textwrap.dedent(found["text"]), found["mark"] or "")


def blocks_of(*forms: str) -> list[Block]:
    return [one for one in blocks() if one.form in forms and one.mark != "output"]


def check_recipe(document: dict[Any, Any]) -> None:
    """Load a recipe; one that only has a part of one gets the rest."""
    if document.keys() & {"launch", "sources", "server"}:
        document = {"workload": SCRIPT | document}
    whole = {"name": "example", "workload": SERVICE} | document
    assert loads(json.dumps(whole), "json").jobs("x")


def read_yaml(text: str) -> Any:
    """Read as recipes are: `on` is a key there, and no truth value."""
    return parse_document(text, "yaml", "<page>").document


def check_data(block: Block) -> None:
    # A page writes three dots where the reader puts the digits of a checksum.
    document: Any = READERS[block.form](block.text.replace("sha256:...", f"sha256:{'0' * 64}"))
    assert document
    if block.form == "yaml" and "jobs" not in document:  # GitHub's workflows have jobs
        check_recipe(document)


READERS: dict[str, Callable[[str], Any]] = {"yaml": read_yaml, "toml": tomllib.loads, "json": json.loads}


def test_every_block_has_a_form_that_a_test_knows() -> None:
    known = {"console", "text", "python", "sh", "bash", *READERS, *PROXIES}
    assert [(one.page, one.form) for one in blocks() if one.form not in known] == []
    # No block is overlooked: each has two fences.
    for path in (ROOT / "docs").glob("*.md"):
        assert len(re.findall(r"^ *```", path.read_text(), re.MULTILINE)) == 2 * len(BLOCK.findall(path.read_text()))


@pytest.mark.parametrize("block", blocks_of(*READERS), ids=lambda one: f"{one.page}-{one.form}")
def test_data_on_a_page_is_valid_and_recipes_load(block: Block) -> None:
    if not block.mark.startswith("wrong:"):  # what is said of a wrong recipe has its own test
        check_data(block)


@pytest.mark.parametrize("block", blocks_of("sh", "bash"), ids=lambda one: one.page)
def test_a_shell_can_read_what_a_page_shows(block: Block) -> None:
    found = subprocess.run(["bash", "-n"], input=block.text, capture_output=True, text=True, check=False)
    assert (found.returncode, found.stderr) == (0, "")


def test_commands_on_a_page_are_not_marked_as_output() -> None:
    programs = re.compile(
        r"(?:sudo |\$ )?(?:\./\S+|sh|tar|pip|python3?|helm|kubectl|docker|podman|git|make|curl|ssh) \S"
    )
    assert [(one.page, one.text) for one in blocks_of("text") if programs.match(one.text)] == []


@pytest.mark.parametrize("block", blocks_of("python"), ids=lambda one: one.page)
def test_python_on_a_page_compiles_and_uses_names_that_are_there(block: Block) -> None:
    for node in ast.walk(ast.parse(block.text)):
        if isinstance(node, ast.ImportFrom) and str(node.module).startswith("prony"):
            module = importlib.import_module(str(node.module))
            assert [one.name for one in node.names if not hasattr(module, one.name)] == []
        if isinstance(node, ast.Attribute) and isinstance(node.value, ast.Name) and node.value.id == "prony":
            assert hasattr(prony, node.attr), node.attr


@pytest.mark.parametrize("block", blocks_of(*PROXIES), ids=lambda one: one.form)
def test_the_configuration_of_a_proxy_is_the_file_that_is_tested(block: Block) -> None:
    assert block.text == (ROOT / "docs" / "proxies" / PROXIES[block.form]).read_text()


def test_the_file_of_settings_on_its_page_has_only_settings_that_exist() -> None:
    (block,) = (one for one in blocks_of("toml") if one.page == "settings.md")
    found = tomllib.loads(block.text)
    keys = {f"{name}.{key}" for name, part in found.items() if isinstance(part, dict) for key in part}
    assert keys - {one.key for one in list_settings()} == set()


def test_a_receiver_of_alarms_accepts_what_prony_signs_and_nothing_else() -> None:
    (block,) = (one for one in blocks_of("python") if one.page == "alarms.md")
    names: dict[str, Any] = {}
    exec(compile(block.text, "alarms.md", "exec"), names)
    sent = str(int(time.time()))
    headers = {"Prony-Timestamp": sent, "Prony-Signature": signature("secret", sent, b"{}")}
    assert names["is_ours"]("secret", headers, b"{}")
    assert not names["is_ours"]("secret", headers, b"[]")
    assert not names["is_ours"]("secret", headers | {"Prony-Timestamp": "1"}, b"{}")


def test_the_scorers_on_the_page_score() -> None:
    program, function = (one.text for one in blocks_of("python") if one.page == "quality.md")
    answer = {"id": "a", "output": "because of b"}
    names: dict[str, Any] = {}
    exec(compile(function, "quality.md", "exec"), names)
    assert names["score"](answer) == 1.0
    line = json.dumps(answer) + "\n"
    found = subprocess.run([sys.executable, "-c", program], input=line, capture_output=True, text=True, check=True)
    assert json.loads(found.stdout) == {"id": "a", "score": 1.0}
    assert "score(answer)" in page("quality")
