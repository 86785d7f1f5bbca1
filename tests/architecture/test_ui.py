"""The web pages belong to this server: their types are made from its document, their packages come from anywhere."""

from __future__ import annotations

import shutil
import subprocess
from pathlib import Path

from servers.needs import lack
from tools.openapi import main as write_document

UI = Path(__file__).parents[2] / "ui"
TYPES = UI / "src" / "api" / "schema.d.ts"
MAKER = UI / "node_modules" / ".bin" / "openapi-typescript"


def test_the_pages_types_are_made_from_the_servers_own_document(tmp_path: Path) -> None:
    if not MAKER.exists() or shutil.which("node") is None:
        lack("node", "the pages' tools are not installed: `make ui`")
    shutil.copy(UI / "package.json", tmp_path / "package.json")
    write_document(tmp_path / "schema.json")
    made = tmp_path / "schema.d.ts"
    options = ["--alphabetize", "--root-types", "--root-types-no-schema-prefix"]
    subprocess.run([MAKER, tmp_path / "schema.json", "--output", made, *options], check=True, capture_output=True)
    assert made.read_text() == TYPES.read_text(), "the API has changed: `make ui-types`"


def test_the_list_of_packages_names_no_registry() -> None:
    assert '"resolved"' not in (UI / "package-lock.json").read_text()
