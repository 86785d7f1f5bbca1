"""Write the requests of an experiment's loads: as JSON lines, CSV, HDR, MLPerf, or by an exporter that is installed."""

from __future__ import annotations

from collections.abc import Callable
from difflib import get_close_matches
from importlib import import_module
from pathlib import Path

from prony.errors import InputError
from prony.model.experiment_data import Entry, ExperimentData
from prony.ports import plugins
from prony.ports.exporter import ExportedLoad, Exporter
from prony.report import entry_fields

# What a person writes after --format, and the module whose `write` makes it; imported only when it is asked for.
EXPORTS: dict[str, str] = {
    "requests-jsonl": "prony.report.exports.requests_jsonl",
    "csv": "prony.report.exports.requests_csv",
    "hdr": "prony.report.exports.hdr",
    "mlperf": "prony.report.exports.mlperf",
}


def _known_formats() -> tuple[str, ...]:
    """Return the names of all formats, those of exporters that are installed last."""
    return (*EXPORTS, *plugins.find_plugins(plugins.EXPORTERS))


def check_format(written: str) -> str:
    """Return the name of a format as it is known here."""
    name = written.lower()
    known = _known_formats()
    if name not in known:
        near = get_close_matches(name, known, n=1)
        hint = f"did you mean {near[0]}?" if near else f"there are {', '.join(known)}"
        raise InputError(f"requests cannot be exported as {written!r}", hint=hint, code="unknown_format")
    return name


def export_requests(
    data: ExperimentData,
    format: str,  # noqa: A002 - the word that people write
    to: Path,
    complete: Callable[[Entry], ExportedLoad] = ExportedLoad,
) -> tuple[Path, ...]:
    """Write the requests of every load into a folder, and return the files; those of these names are replaced.

    `complete` adds to an entry what only some formats have room for."""
    name = check_format(format)
    write = _load_exporter(name)
    takes_all = getattr(write, "takes_every_kind", False)
    loads = [entry for entry in data.entries if takes_all or entry_fields.is_load(entry)]
    if not loads:
        hint = "a load is a job whose workload is of kind service"
        raise InputError("no job of this experiment is a load, so there are no requests", hint=hint)
    to.mkdir(parents=True, exist_ok=True)
    return tuple(path for entry in loads for path in write(complete(entry), to))


def _load_exporter(name: str) -> Exporter:
    if name not in EXPORTS:
        exporter: Exporter = plugins.load_plugin(plugins.EXPORTERS, name)
        return exporter
    own: Exporter = import_module(EXPORTS[name]).write
    return own
