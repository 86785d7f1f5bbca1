"""The files for OpenTofu and Terraform: they are valid where a program can check them, and start what Prony takes."""

from __future__ import annotations

import os
import re
import shutil
import subprocess
from importlib import import_module
from importlib.util import find_spec
from pathlib import Path
from typing import Any

import pytest
import yaml

from prony.cli.main import COMMANDS
from prony.cli.option_settings import list_settings
from prony.cli.parsers import build_parser
from servers.needs import lack

TOFU = Path(__file__).parents[2] / "deploy" / "tofu"
TEMPLATES = ("server", "agent")


def read_all() -> str:
    return "".join(path.read_text() for path in sorted(TOFU.glob("*.tf")))


def render(name: str) -> dict[str, Any]:
    """Return a template with a word for each of its values, as cloud-init reads it."""
    text = (TOFU / f"{name}.yaml.tftpl").read_text()
    assert text.startswith("#cloud-config\n")
    return dict(yaml.safe_load(re.sub(r"\$\{\w+\}", "http://server.example:7337", text)))


def test_a_parser_takes_every_file() -> None:
    if find_spec("hcl2") is None:
        lack("hcl2", "no parser of HCL is installed")
    parse = import_module("hcl2").loads
    parsed = {path.stem: parse(path.read_text()) for path in TOFU.glob("*.tf")}
    assert {"main", "variables", "outputs"} == set(parsed)
    assert len(parsed["main"]["resource"]) == 4
    assert len(parsed["outputs"]["output"]) == 2


def test_the_program_itself_finds_every_file_valid_and_formatted(tmp_path: Path) -> None:
    program = shutil.which("terraform") or shutil.which("tofu")
    if program is None:
        lack("terraform", "neither terraform nor tofu is on the PATH")
    plugins = os.environ.get("PRONY_TEST_TF_PLUGINS", "")
    if not plugins and not os.environ.get("TF_CLI_ARGS_init"):  # noqa: SIM112 - Terraform's own name
        lack("terraform", "no folder has the provider: set PRONY_TEST_TF_PLUGINS or TF_CLI_ARGS_init")
    folder = tmp_path / "tofu"
    shutil.copytree(TOFU, folder)
    init = ["init", "-backend=false", "-input=false", "-no-color", *([f"-plugin-dir={plugins}"] if plugins else [])]
    for words in (init, ["validate", "-no-color"], ["fmt", "-check", "-diff"]):
        done = subprocess.run(
            [program, *words],
            cwd=folder, stdin=subprocess.DEVNULL, capture_output=True, text=True, check=False, timeout=300,
        )  # fmt: skip
        assert done.returncode == 0, f"{' '.join(words)}: {done.stdout}{done.stderr}"


def test_every_variable_is_declared_and_used() -> None:
    declared = re.findall(r'^variable "(\w+)"', read_all(), re.MULTILINE)
    assert len(declared) == len(set(declared))
    assert set(re.findall(r"\bvar\.(\w+)", read_all())) == set(declared)


def test_every_reference_leads_to_something() -> None:
    text = read_all()
    made = {f"{kind}.{name}" for kind, name in re.findall(r'^resource "(\w+)" "(\w+)"', text, re.MULTILINE)}
    assert set(re.findall(r"(?<![\w.\"])(aws_\w+\.\w+)", text)) <= made | {"aws_subnet.fleet"}


@pytest.mark.parametrize("name", TEMPLATES)
def test_a_template_gets_exactly_the_values_that_it_names(name: str) -> None:
    wanted = set(re.findall(r"\$\{(\w+)\}", (TOFU / f"{name}.yaml.tftpl").read_text()))
    (given,) = re.findall(rf'{name}\.yaml\.tftpl", \{{(.*?)\}}\)', read_all(), re.DOTALL)
    assert set(re.findall(r"(\w+)\s+= ", given)) == wanted


@pytest.mark.parametrize("name", TEMPLATES)
def test_a_machine_starts_a_service_that_prony_takes(name: str) -> None:
    document = render(name)
    (words,) = [command for command in document["runcmd"] if command[0].endswith("/prony")]
    assert words[1] in COMMANDS
    options = build_parser(words[1]).parse_args(words[2:])
    assert options.program == name
    program = {"server": ["server"], "agent": ["agent", "start"]}[name]
    build_parser(program[0]).parse_args([*program[1:], *words[words.index("--") + 1 :]])
    known = {one.variable for one in list_settings()}
    written = [file["content"] for file in document.get("write_files", ())]
    assert set(re.findall(r"^(PRONY_\w+)=", "".join(written), re.MULTILINE)) <= known


def test_only_agents_reach_the_server_and_no_network_is_open_by_default() -> None:
    rules = re.findall(r"ingress \{(.*?)\n  \}", read_all(), re.DOTALL)
    assert len(rules) == 3
    assert all(("security_groups" in rule) or ("var.ssh_from" in rule) for rule in rules)
    (ssh_from,) = re.findall(r'variable "ssh_from" \{(.*?)\n\}', read_all(), re.DOTALL)
    assert re.search(r"default\s+= \[\]", ssh_from)
