"""The web pages draw any kind of workload from what the API says: their sources name no kind, and no other program."""

from __future__ import annotations

import re
from pathlib import Path

import pytest

from .house import entry_points
from .pages import SOURCES

KINDS = sorted(entry_points("prony.kinds"))
PROGRAMS = ("ai.?factory", "sark", "dumont", "benchmark.?ai")
# A field of an answer may have such a name (`cpu.model`, `demand.service`): what is read after a dot names no kind.
NAMED = re.compile(rf"(?<!\.)\b(?:{'|'.join(KINDS)})s?\b|{'|'.join(PROGRAMS)}", re.IGNORECASE)
# Words that are no kinds, and why.
ABILITY = "what an agent can start is called so in its reports, beside containers, launchers and probes"
DEVICE = "the API calls so what a device is made of, beside its software"
EXCEPTIONS = {
    ("features/experiment/Environments.tsx", "hardware"): DEVICE,
    ("features/run/run.test.ts", "hardware"): "a section in another program's format",
    ("features/fleet/abilities.ts", "service"): ABILITY,
    ("components/agentFacts.ts", "hardware"): DEVICE,
    ("features/device/AgentAbilities.tsx", "services"): ABILITY,
    ("features/device/Device.test.tsx", "service"): ABILITY,
    ("features/fleet/fleet.test.ts", "service"): ABILITY,
    ("features/reports/ReportFrame.tsx", "scripts"): "the word of the HTML standard for what a frame may run",
}


def sources() -> list[Path]:
    """Return everything that is written by hand: the types of the API are not."""
    found = [path for path in sorted(SOURCES.rglob("*")) if path.suffix in (".ts", ".tsx", ".css")]
    return [path for path in found if path.name != "schema.d.ts"]


def named_in(text: str) -> set[str]:
    return {found.group().lower() for found in NAMED.finditer(text)}


def test_no_source_of_the_pages_names_a_kind_or_another_program() -> None:
    places = {path.relative_to(SOURCES).as_posix(): path for path in sources()}
    named = {(place, word) for place, path in places.items() for word in named_in(path.read_text())}
    assert len(places) > 200
    assert named - EXCEPTIONS.keys() == set()


def test_every_exception_is_still_needed() -> None:
    assert {one for one in EXCEPTIONS if one[1] not in named_in((SOURCES / one[0]).read_text())} == set()


@pytest.mark.parametrize(
    "text",
    [
        'recipe.workload.kind === "service"',
        'const KINDS = ["model", "script"];',
        "// A script's numbers have names of its own.",
        "interface Form { model: string }",
        'rule?: "prony" | "ai-factory"',
        "the aiFactory rule",
    ],
)
def test_the_test_sees_what_is_named(text: str) -> None:
    assert named_in(text) != set()


def test_a_field_of_an_answer_is_no_kind() -> None:
    assert named_in("device.hardware.cpu.model ?? lot.demand.service; formatSuperscript(describe(text))") == set()
