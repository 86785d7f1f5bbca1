"""Everything that has a name stands on its page: metrics, fields, columns, plug-ins, variables, codes, rules."""

from __future__ import annotations

import ast
import re

import numpy as np
import pytest

from prony.error_codes import ERROR_CODES
from prony.errors import CapacityError
from prony.instruments.noise import LIMITS
from prony.instruments.samples import sample_frame, telemetry_frame
from prony.kinds.model.runner.check_outputs import reference_engines
from prony.model import result as results
from prony.model.base import Noun
from prony.model.device import Environment
from prony.model.estimate import Estimate, Grade
from prony.model.job import Job
from prony.model.metric import METRICS, STATISTICS
from prony.plugins.models.zoo.cards import ZOO
from prony.plugins.models.zoo.llm_cards import LLM_ZOO
from prony.stats.quantiles import least_count, median_ranks
from prony.stats.run_intervals import median_interval
from tools.reference.errors import MEANINGS, list_uses

from .house import PACKAGE, entry_points, files, nodes, page, project, rows, section, walk

# What the environment is called where it is read.
ENVIRONMENTS = ("environ", "os.environ", "environment")


def first_cells(text: str) -> set[str]:
    """Return the names that begin a table row, without their quotes."""
    return {row[0].strip("`") for row in rows(text) if row[0].startswith("`")}


# Metrics


def test_the_glossary_holds_every_metric_with_its_unit_and_direction() -> None:
    told = {row[0].strip("`"): tuple(row[2:4]) for row in rows(page("metrics").partition("## Statistics")[0])[1:]}
    told.pop("metric", None)
    assert told == {metric.name: (metric.unit, metric.better) for metric in METRICS.values()}


def test_the_glossary_holds_every_statistic() -> None:
    assert first_cells(section(page("metrics"), "## Statistics")) == set(STATISTICS)


def test_the_glossary_holds_every_field_of_an_estimate() -> None:
    assert first_cells(section(page("metrics"), "## What comes with every number")) == set(Estimate.model_fields)


@pytest.mark.parametrize("name", ["metrics", "measuring"])
def test_the_counts_that_percentiles_need_are_the_real_ones(name: str) -> None:
    for label, q in (("p90", 0.9), ("p95", 0.95), ("p99", 0.99), ("p99.9", 0.999)):
        row = next(row for row in rows(page(name)) if row[0] == f"`{label}`")
        assert re.search(rf"\b{least_count(q)}\b", row[1])


def test_the_confidences_on_the_page_are_the_real_ones() -> None:
    told = [row for row in rows(section(page("measuring"), "## From samples to numbers")) if row[0].isdigit()]
    counts = [int(row[0]) for row in told]
    assert counts[:6] == [1, 2, 3, 4, 5, 6]
    for row in told[1:]:
        count = int(row[0])
        ranks, independent = median_interval(np.arange(count) % 2), median_ranks(count)
        assert ranks is not None
        assert independent is not None
        assert float(row[2].removesuffix(" %")) == pytest.approx(ranks.confidence * 100, abs=0.005)
        assert float(row[3].removesuffix(" %")) == pytest.approx(independent.confidence * 100, abs=0.05)
        widest = ranks.low == 1
        assert row[1] == ("smallest to largest" if widest else f"{_nth(ranks.low)} to {_nth(ranks.high)}")


def _nth(rank: int) -> str:
    return f"{rank}{ {1: 'st', 2: 'nd', 3: 'rd'}.get(rank, 'th') }".replace(" ", "")


# The result folder


@pytest.mark.parametrize(
    "noun",
    [
        results.Result, results.ModelFacts, results.InputFacts, results.Effective, results.OutputCheck,
        results.Repetition, results.Phase, results.Noise, results.Failure, Environment,
    ],
)  # fmt: skip
def test_the_result_folder_page_has_a_table_of_exactly_these_fields(noun: type[Noun]) -> None:
    fields = set(noun.model_fields)
    tables = [first_cells(text) for text in re.split(r"\n(?!\|)", page("result-folder"))]
    nearest = max(tables, key=lambda names: len(names & fields) - len(names - fields))
    assert nearest == fields


def test_the_result_folder_page_names_every_column_of_the_sample_files() -> None:
    assert first_cells(section(page("result-folder"), "## samples.parquet")) == set(sample_frame([]).columns)
    assert first_cells(section(page("result-folder"), "## telemetry.parquet")) == set(telemetry_frame([]).columns)


def test_the_result_folder_page_names_every_field_of_a_job() -> None:
    text = section(page("result-folder"), "## job.json")
    assert [name for name in Job.model_fields if f"`{name}`" not in text] == []


# Plug-ins


@pytest.mark.parametrize(
    ("kind", "heading"),
    [
        ("prony.engines", "## Engines"),
        ("prony.models", "## Model sources"),
        ("prony.probes", "## Probes"),
        ("prony.drivers", "## Drivers"),
        ("prony.tasks", "## Tasks"),
        ("prony.services", "## Services"),
        ("prony.executors", "## Executors"),
        ("prony.dialects", "### Dialects"),
        ("prony.shims", "### Modules for scripts"),
        ("prony.exporters", "### Exporters"),
        ("prony.destinations", "### Destinations"),
        ("prony.importers", "### Importers"),
        ("prony.comparison_rules", "### Comparison rules"),
        ("prony.faces", "### Faces"),
        ("prony.agent_links", "### Agent links"),
    ],
)
def test_the_page_about_plugins_has_a_line_for_each(kind: str, heading: str) -> None:
    assert first_cells(section(page("plugins"), heading)) == set(entry_points(kind))


def test_the_page_about_plugins_tells_what_each_engine_loads_and_how_to_install_it() -> None:
    from prony.ports import plugins

    for name, *cells in (row for row in rows(section(page("plugins"), "## Engines"))[1:]):
        engine = plugins.load_plugin(plugins.ENGINES, name.strip("`"))
        assert cells[0] == " ".join(f"`{ending}`" for ending in engine.formats)
        assert engine.extra == "" or cells[2] == f"`prony[{engine.extra}]`"
        assert engine.extra == "" or engine.extra in project()["optional-dependencies"]


def test_the_engine_of_each_reference_is_told() -> None:
    text = section(page("measuring"), "## Are the answers right?")
    assert {ending: name for ending, name in reference_engines().items() if not is_told(name, ending, text)} == {}


def is_told(engine: str, ending: str, text: str) -> bool:
    """Does the text say that this engine is the reference of files of this ending?"""
    return re.search(rf"`{engine}`\s+for\s+(?:`[.\w]+`\s+and\s+)?`{re.escape(ending)}`", text) is not None


def test_the_page_about_commands_shows_the_zoo_as_it_is() -> None:
    assert re.findall(r"^zoo:(\S+)", page("commands"), re.MULTILINE) == [*ZOO, *LLM_ZOO]


# Settings


def told_variables() -> set[str]:
    own = {row[1].strip("`") for row in rows(section(page("settings"), "## Every setting"))[1:]}
    return own | first_cells(section(page("settings"), "## Environment variables"))


def test_the_page_has_every_setting_with_its_variable_option_and_default() -> None:
    from prony.cli.option_settings import list_settings

    told = [
        tuple(cell.strip("`") for cell in row[:5]) for row in rows(section(page("settings"), "## Every setting"))[1:]
    ]
    made = [
        (one.key, one.variable, one.option, " or ".join(one.choices) or one.kind, one.default)
        for one in list_settings()
    ]
    assert [(*row[:3], row[3].replace("`", ""), row[4]) for row in told] == made


def test_every_variable_with_a_name_of_its_own_is_told_twice() -> None:
    from prony.app.settings import SHARED_SETTINGS

    told = first_cells(section(page("settings"), "## Environment variables"))
    assert {one.variable for one in SHARED_SETTINGS if "__" not in one.variable} - told == set()


def test_every_environment_variable_that_is_read_is_told() -> None:
    told = told_variables()
    assert variables_read() - told == set()


def test_every_variable_of_prony_that_is_told_is_used_somewhere() -> None:
    told = told_variables()
    used = {name for path in files() if path.suffix != ".md" for name in _named(path.read_text(errors="replace"))}
    # Those with two underscores are made of the options of commands.
    assert {name for name in told if name.startswith("PRONY_") and "__" not in name} - used == set()
    assert used - told == set()


def _named(text: str) -> set[str]:
    return set(re.findall(r"\bPRONY_[A-Z_]+[A-Z]\b", text))


def variables_read() -> set[str]:
    """Return the names that are looked up in the environment, or handed to something that does."""
    found: set[str] = set()
    for node in nodes("environ", "getenv", "PRONY_"):
        if isinstance(node, ast.Call) and isinstance(node.func, ast.Attribute) and node.func.attr in ("get", "getenv"):
            where = ast.unparse(node.func.value)
            if where in ENVIRONMENTS or node.func.attr == "getenv":
                found |= _texts(node.args[:1])
        elif isinstance(node, ast.Compare) and ast.unparse(node.comparators[0]) in ENVIRONMENTS:
            found |= _texts([node.left])
        elif isinstance(node, ast.Constant) and isinstance(node.value, str):
            found |= {node.value} & _named(node.value)
    return found


def _texts(expressions: list[ast.expr]) -> set[str]:
    return {str(one.value) for one in expressions if isinstance(one, ast.Constant)}


# Errors


def test_every_code_is_on_the_page_about_errors_and_has_a_meaning() -> None:
    told = first_cells(page("errors"))
    assert told == set(list_uses())
    assert told == set(MEANINGS)


def test_the_page_has_the_kinds_of_each_code() -> None:
    told = {row[0].strip("`"): row[1:4] for row in rows(page("errors"))}
    assert told["engine_missing"] == ["`CapacityError`, `InputError`", "503, 422", "3, 2"]
    assert told["too_large"] == ["`InputError`", "413, 431", "2"]
    assert told["crash"] == ["`Failure`", "", "1"]


def test_an_error_without_a_hint_has_that_of_its_code() -> None:
    assert CapacityError("no device", code="no_device").hint == ERROR_CODES["no_device"].advice
    assert CapacityError("no device", hint="use this one", code="no_device").hint == "use this one"
    assert CapacityError("no device").hint == ""


# Verdicts and disturbance


def rules_in_source() -> set[tuple[str, str]]:
    """Return (code, grade) of every reason that a rule can give."""
    grades = {"void": str(Grade.VOID), "suspect": str(Grade.SUSPECT), "note": "note"}
    found = set()
    of_models = ("kinds/model/rules.py", "kinds/model/device_rules.py")
    for name in ("analyse/rules.py", "analyse/canaries.py", "analyse/external_results.py", *of_models):
        for node in walk(PACKAGE / name):
            if isinstance(node, ast.Call) and isinstance(node.func, ast.Name) and node.func.id in grades:
                assert isinstance(node.args[0], ast.Constant)
                found.add((str(node.args[0].value), grades[node.func.id]))
    return found


def test_every_reason_for_a_verdict_is_on_the_page_with_its_grade() -> None:
    told = {(row[0].strip("`"), row[1]) for row in rows(section(page("measuring"), "## The verdict"))[1:]}
    assert told == rules_in_source()


def test_every_limit_on_disturbance_is_on_the_page() -> None:
    told = first_cells(section(page("measuring"), "## Disturbance"))
    assert told == {limit.code for limit in LIMITS} | {"pressure_cpu"}


# Targets


@pytest.mark.parametrize(("kind", "name"), [("ssh", "ssh"), ("slurm", "slurm"), ("kubernetes", "kubernetes")])
def test_the_page_of_a_target_has_a_line_for_each_option(kind: str, name: str) -> None:
    from prony.ports import plugins

    options = plugins.load_plugin(plugins.EXECUTORS, kind).Options
    assert first_cells(section(page(name), "## Options")) == set(options.model_fields)
