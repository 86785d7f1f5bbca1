"""A public name means one thing in the whole package, but where folders are alike on purpose."""

from __future__ import annotations

from collections import defaultdict
from functools import cache

from tools.house import House

# Folders whose modules answer the same questions, each for its own noun: there the same name is the same idea.
ALIKE = {
    "a command each": ("prony.cli.commands.",),
    "a kind of workload each": ("prony.kinds.",),
    "a destination each": ("prony.plugins.destinations.",),
    "a driver each": ("prony.plugins.drivers.",),
    "an engine each": ("prony.plugins.engines.",),
    "an executor each": ("prony.plugins.executors.",),
    "a source of models each": ("prony.plugins.models.",),
    "a probe each": ("prony.plugins.probes.",),
    "a service each": ("prony.plugins.services.",),
    "a task each": ("prony.plugins.tasks.",),
    "the rows of a noun each, and the steps that made their tables": ("prony.store.",),
    "a document each": (
        "prony.report.exports.", "prony.report.html.", "prony.report.markdown.", "prony.report.plots.",
        "prony.report.terminal.", "prony.report",
    ),
    "the lines of one analysis each": (
        "prony.report.comparison", "prony.report.cost_tables", "prony.report.gate_tables",
        "prony.report.history_tables", "prony.report.load_tables", "prony.report.matrix_tables",
        "prony.report.sweep_tables",
    ),
    "an operating system or a vendor each": ("prony.instruments.device.",),
    "a format of recipes each": ("prony.recipe.json_text", "prony.recipe.toml_text", "prony.recipe.yaml_text"),
}  # fmt: skip
# An operation of the API is called like the use case behind it, and other programs have their own words.
NOT_COUNTED = ("prony.server.routes.", "prony.compat.")
# Programs that Prony starts and also sends requests to, or runs as a library: recipes name both by the program.
OPTIONS = ("ChromaOptions", "CommandOptions", "OllamaOptions", "PostgresOptions", "QdrantOptions", "RedisOptions")
PROGRAMS = dict.fromkeys((*OPTIONS, "Ollama"), "a driver and a service of one program") | dict.fromkeys(
    ("Llamacpp", "Transformers"), "an engine and a service of one library"
)
EXCEPTIONS = PROGRAMS | {
    "Effect": "an engine's port and a comparison both speak of effects; engines outside the tree import the first",
    "Start": "a service's port and the picture of cold starts; services outside the tree import the first",
    "die_with_parent": "the engine's child runs under other interpreters and brings its own",
    "few_runs": "a load's rule gives the same reason as the rule of every kind",
    "main": "a process begins there",
    "no_steady_state": "a load's rule gives the same reason as the rule of every kind",
    "partial_result": "a load's rule gives the same reason as the rule of every kind",
    "serve": "the server serves its API, and the web application's files",
}
MOST_EXCEPTIONS = 40


def place(module: str) -> str:
    """Return what stands for the module: the folders that are alike, or the module itself."""
    for why, places in ALIKE.items():
        if any(module == one or (one.endswith(".") and module.startswith(one)) for one in places):
            return why
    return module


@cache
def shared() -> dict[str, list[str]]:
    """Return the public names that mean more than one thing, with the modules that define them."""
    found = defaultdict(list)
    for module, name in House().public_names():
        if not module.startswith(NOT_COUNTED):
            found[name].append(module)
    return {name: modules for name, modules in found.items() if len({place(module) for module in modules}) > 1}


def test_a_public_name_means_one_thing() -> None:
    assert {name: where for name, where in shared().items() if name not in EXCEPTIONS} == {}


def test_every_exception_is_needed_and_they_are_few() -> None:
    assert EXCEPTIONS.keys() - shared().keys() == set()
    assert len(EXCEPTIONS) <= MOST_EXCEPTIONS
