"""Bring in folders of results, and write requests in the formats of other programs."""

from __future__ import annotations

from collections.abc import Mapping
from pathlib import Path
from typing import Any

from prony.app import results
from prony.errors import RecipeError
from prony.model.experiment import Experiment
from prony.model.experiment_data import Entry, ExperimentData
from prony.ports import plugins
from prony.ports.exporter import ExportedLoad
from prony.ports.importer import Importer
from prony.recipe.formats import parse_any
from prony.report.exports.formats import export_requests
from prony.store import transfer
from prony.store.folder import check_damage
from prony.store.home import Home
from prony.store.store import Store


def bring_in(store: Store, path: Path) -> tuple[Experiment, ...]:
    """Keep what a folder holds: an export or a result of ours, or whatever an importer finds in it."""
    importer = next((one for one in _known_importers() if one.fits(path)), None)
    if importer is not None:
        return importer.bring_in(store, path)
    return (import_folder(store, path),)


def export_found(path: Path, scratch: Path) -> list[Path]:
    """Return folders of ours that hold what `path` means, made below `scratch` where there are none yet.

    Args:
        path: A folder of ours, one that an importer reads, or the id of an experiment of this home.
        scratch: A folder that is gone afterwards.

    Raises:
        NotFoundError: It is neither a folder nor an experiment.
    """
    if not path.exists():
        with Store.open() as store:
            return [transfer.export(store, store.resolve_id(str(path)), scratch / "export")]
    importer = next((one for one in _known_importers() if one.fits(path)), None)
    if importer is None:
        return [path]
    with Store.open(Home(scratch / "home")) as store:
        return [transfer.export(store, one.id, scratch / one.id) for one in importer.bring_in(store, path)]


def import_folder(store: Store, path: Path) -> Experiment:
    """Keep an export or a result folder of ours; the limits of a recipe that is submitted hold for its text too."""
    return transfer.import_(store, path, summarise=results.summary_of, check_recipe=_check_text)


def _check_text(text: str, name: str) -> None:
    parse_any(text, name)


def _known_importers() -> list[Importer]:
    """Load every importer."""
    return list(plugins.create_all(plugins.IMPORTERS).values())


def export_loads(data: ExperimentData, export_format: str, to: Path) -> tuple[Path, ...]:
    """Write every load of an experiment into a folder; return the files. Damaged samples are an error first."""
    for entry in data.entries:
        check_damage(entry.folder, entry.job, entry.result)
    written = _written_recipe(data.experiment)
    return export_requests(data, export_format, to, lambda entry: _read_load(entry, written, data.experiment.dialect))


def _written_recipe(experiment: Experiment) -> Mapping[str, Any]:
    """Return the document of a recipe in another program's dialect as it was written; empty where it is Prony's."""
    if not experiment.dialect:
        return {}
    try:
        return dict(parse_any(experiment.recipe_text, experiment.name).document)
    except RecipeError:
        return {}


def _read_load(entry: Entry, written: Mapping[str, Any], dialect: str) -> ExportedLoad:
    if entry.job.workload.section != "load":
        return ExportedLoad(entry, written, None, dialect)
    from prony.analyse.bottleneck import bottleneck_of
    from prony.app.sweeps import load_entry

    job = load_entry(entry, {})
    return ExportedLoad(entry, written, bottleneck_of([(job.entry, job.telemetry)]), dialect)
