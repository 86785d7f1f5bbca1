"""What every program in compat/ promises: its plug-ins are found by entry point and are what their ports say."""

from __future__ import annotations

import json
import os
import subprocess
import sys
from argparse import ArgumentParser
from pathlib import Path

import pytest

from prony.agent.server_client import ServerClient
from prony.compat.ai_factory.comparison_rule import fixed_limits
from prony.compat.ai_factory.dialect import AiFactoryDialect
from prony.compat.ai_factory.exporter import write
from prony.compat.ai_factory.importer import AiFactoryImporter
from prony.compat.benchmark_ai.dialect import BenchmarkAiDialect
from prony.compat.ruckus.dialect import RuckusDialect
from prony.compat.ruckus.exporter import WRITER
from prony.compat.sark.agent.agent_link import SarkAgentLink
from prony.compat.sark.agent.link import SarkLink
from prony.compat.sark.agent.server import SarkServer
from prony.compat.sark.face.options import SarkFace
from prony.compat.sark.face.server import SarkOptions
from prony.ports import plugins
from prony.ports.agent_link import AgentLink, OtherServer, ServerLink
from prony.ports.comparison_rule import ComparisonRule
from prony.ports.dialect import Dialect
from prony.ports.exporter import Exporter
from prony.ports.face import Face, FaceOptions
from prony.ports.importer import Importer

# The type checker reads these: whoever leaves out a verb of a port is told.
DIALECTS: tuple[Dialect, ...] = (AiFactoryDialect(), BenchmarkAiDialect(), RuckusDialect())
IMPORTERS: tuple[Importer, ...] = (AiFactoryImporter(),)
EXPORTERS: tuple[Exporter, ...] = (write, WRITER)
RULES: tuple[ComparisonRule, ...] = (fixed_limits,)
FACES: tuple[Face, ...] = (SarkFace(),)
FACE_OPTIONS: tuple[FaceOptions, ...] = (SarkOptions(),)
LINKS: tuple[AgentLink, ...] = (SarkAgentLink(),)
OTHER_SERVERS: tuple[OtherServer, ...] = (SarkServer("http://localhost:5000", "localhost"),)
SERVER_LINKS: tuple[type[ServerLink], ...] = (ServerClient, SarkLink)

PLUGIN = """
class Notes:
    title = "a lab note"
    keeps_folder_name = False

    def fits(self, document):
        return "subject" in document

    def translate(self, parsed):
        from prony.recipe.dialects.translated_document import Draft

        draft = Draft(parsed)
        draft.set("name", "noted")
        draft.set("workload.kind", "model", ("subject",))
        draft.set("workload.model", parsed.document["subject"], ("subject",))
        draft.set("workload.engine", "onnxruntime")
        return draft.translation()


class Bell:
    def add_options(self, parser):
        parser.add_argument("--bell", action="store_true", help="ring a bell too")

    def read_options(self, options):
        return None
"""
ENTRY_POINTS = "[prony.dialects]\nlab-note = labnotes:Notes\n\n[prony.faces]\nbell = labnotes:Bell\n"


@pytest.mark.parametrize(
    ("group", "shipped"),
    [
        (plugins.DIALECTS, DIALECTS),
        (plugins.IMPORTERS, IMPORTERS),
        (plugins.FACES, FACES),
        (plugins.AGENT_LINKS, LINKS),
    ],
)
def test_each_class_behind_an_entry_point_is_one_that_the_type_checker_has_seen(
    group: str, shipped: tuple[object, ...]
) -> None:
    assert {type(one) for one in plugins.create_all(group).values()} == {type(one) for one in shipped}


def test_each_function_behind_an_entry_point_is_one_that_the_type_checker_has_seen() -> None:
    for group, shipped in ((plugins.EXPORTERS, EXPORTERS), (plugins.COMPARISON_RULES, RULES)):
        assert tuple(plugins.load_plugin(group, name) for name in plugins.find_plugins(group)) == shipped


def test_the_options_of_a_face_that_nobody_asks_for_serve_nothing() -> None:
    for face in FACES:
        parser = ArgumentParser()
        face.add_options(parser)
        assert face.read_options(parser.parse_args([])) is None


def test_a_package_outside_of_the_tree_brings_a_dialect_and_a_face(tmp_path: Path, prony_home: Path) -> None:
    (tmp_path / "labnotes.py").write_text(PLUGIN)
    about = tmp_path / "labnotes-1.0.dist-info"
    about.mkdir()
    (about / "METADATA").write_text("Metadata-Version: 2.1\nName: labnotes\nVersion: 1.0\n")
    (about / "entry_points.txt").write_text(ENTRY_POINTS)
    (tmp_path / "note.yaml").write_text("subject: zoo:tiny\n")
    environment = os.environ | {"PYTHONPATH": str(tmp_path), "PRONY_HOME": str(prony_home)}

    def prony(*arguments: str) -> str:
        command = [sys.executable, "-m", "prony", *arguments]
        return subprocess.run(
            command, capture_output=True, text=True, check=True, env=environment, cwd=tmp_path, timeout=300
        ).stdout

    assert json.loads(prony("check", "note.yaml", "--json"))["dialect"] == "lab-note"
    assert "ring a bell too" in prony("server", "--help")
