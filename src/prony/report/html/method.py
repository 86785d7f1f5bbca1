"""Render the method section of an HTML page: how it was measured, where, and how to repeat it."""

from __future__ import annotations

from prony.model.device import Environment
from prony.model.experiment_data import AnalysedExperiment, ExperimentData
from prony.model.metric import metric_of
from prony.model.quantity import duration_text, size_text
from prony.ports.metric_titles import metric_title
from prony.ports.workload import shown_kind
from prony.report import entry_fields, number
from prony.report.escaping import unknown
from prony.report.html.tags import Html, fold, grid, join_html, pairs, section, tag
from prony.report.method_sentences import decision_sentences, placement_sentences
from prony.report.notes import instrument

HOW = (
    "Each repetition is a fresh process of the engine. A run's own number (its median, say) is one observation; "
    "intervals come from the spread between runs, because samples of one process are more alike than processes are. "
    "Where an interval was made otherwise, the method beside the number says so.",
    "Loading and the first inference are reported separately from warm ones. Percentiles appear only where there "
    "are enough "
    "samples; outliers are labelled and kept. Effective settings were read from the engine after loading.",
    "Two jobs are called different only if their intervals do not overlap.",
)

HOW_LOAD = (
    "Each run is one whole load. Its own number (its median, say) is one observation, and intervals come from the "
    "spread between runs; latencies of different runs are never mixed. The window begins when throughput and latency "
    "are steady and every user had a first answer, and ends when nothing more is sent.",
    "Latency begins when a request was due under an open load, and when it was sent under a closed one; it is that of "
    "successes that began in the window. Throughput counts successes that ended in it. Failed requests are counted by "
    "cause, and are in neither. Bytes are stamped by the kernel where it can; the report says how late the "
    "client read them.",
)


def method_section(data: AnalysedExperiment) -> Html:
    """Return methods and environment; machines that are the same are told once."""
    unlike = _environments(data)
    loaded = any(map(entry_fields.is_load, data.entries))
    kinds = dict.fromkeys(entry.job.workload.kind for entry in data.entries)
    how = dict.fromkeys(text for kind in kinds for text in shown_kind(kind).report.method) or HOW
    others = not loaded or not all(map(entry_fields.is_load, data.entries))
    blocks: list[Html | None] = [tag("p", text) for text in (*how, *decision_sentences(data))]
    blocks += [
        _protocol(data) if others else _load_protocol(data),
        tag("h4", "The instrument"),
        _instrument(data),
    ]
    for environment in unlike:
        blocks += _machine(environment)
    blocks += [tag("p", text) for text in placement_sentences(data)]
    blocks.append(tag("h4", "The recipe"))
    blocks.append(
        tag("pre", tag("code", data.experiment.recipe_text or data.experiment.recipe.model_dump_json(indent=2)))
    )
    blocks.append(_repeat(data))
    return section("method", "Method and environment", *blocks)


def _environments(data: ExperimentData) -> list[Environment]:
    unlike: dict[tuple[str, str], Environment] = {}
    for entry in data.entries:
        device = entry.environment.device
        unlike.setdefault((device.hardware_id, device.software_id), entry.environment)
    return list(unlike.values())


def _protocol(data: ExperimentData) -> Html:
    measure, limits = data.experiment.recipe.measure, data.experiment.recipe.limits
    until = (
        "no"
        if measure.until is None
        else f"interval within ±{number.format_share(measure.until.ci)}, at most {measure.until.max_repeats} runs"
    )
    counted = str(measure.least_runs)
    if measure.most_runs > measure.least_runs:
        counted += f", up to {measure.most_runs} if they are fast"
    return pairs([
        ("repetitions (fresh processes)", str(measure.repeats)), ("warm inferences in each", counted),
        ("warm-up", str(measure.warmup)), ("cold starts", str(measure.cold_starts or measure.repeats)),
        ("until", until), ("page cache", measure.page_cache), ("isolation", measure.isolation),
        ("cap on measuring", duration_text(measure.max_time)), ("timeout", duration_text(limits.timeout)),
        ("memory limit", "none" if limits.memory is None else size_text(limits.memory)),
    ])  # fmt: skip


def _load_protocol(data: ExperimentData) -> Html:
    load = data.experiment.recipe.load
    limits = ", ".join(f"{metric_title(key)} {limit:g}" for key, limit in load.slo.items())
    lasting = "set by the load" if load.duration_ns is None else duration_text(load.duration_ns)
    warmup = load.warmup if isinstance(load.warmup, str) else duration_text(load.warmup)
    asked = load.asked_requests
    return pairs([
        ("load", load.way), ("lasting", lasting), ("requests", None if asked is None else str(asked)),
        ("runs", str(load.repeats)), ("warm-up", warmup), ("drain", duration_text(load.drain)),
        ("timeout of a request", duration_text(load.timeout)), ("limits", limits or "none"),
        ("seeds", f"arrivals {load.seeds.arrivals}, prompts {load.seeds.prompts}, lengths {load.seeds.lengths}"),
    ])  # fmt: skip


def _instrument(data: ExperimentData) -> Html:
    line = tag("p", f"{instrument(data.calibration)}.")
    if data.calibration is None:
        return line
    rows = []
    for name, figure in data.calibration.figures.items():
        shown = number.format_share(figure.value) if figure.unit == "1" else number.format_number(figure)
        rows.append([name, shown, number.footnote(figure), _meaning(name)])
    notes = [tag("p", note) for note in data.calibration.notes]
    return join_html((line, grid(["figure", "value", "method", "meaning"], rows), *notes))


def _meaning(name: str) -> str:
    try:
        return metric_of(name).meaning
    except KeyError:
        return "unknown to this version"


def _machine(environment: Environment) -> list[Html]:
    device, state = environment.device, environment.state
    conditions = [[one.title, one.status, one.value, one.hint] for one in state.conditions]
    seen = [(name, None if value is None else str(value)) for name, value in state.values.items()]
    return [
        tag("h4", f"The machine: {device.name}"),
        _hardware(environment),
        fold("Conditions when the run began", grid(["condition", "status", "seen", "hint"], conditions), pairs(seen)),
        fold("Software", _software(environment)),
    ]


def _hardware(environment: Environment) -> Html:
    device, cpu = environment.device, environment.device.hardware.cpu
    hardware, git = device.hardware, environment.git
    changed = " with changes" if git is not None and git.dirty else ""
    gpus = "; ".join(f"{one.name} ({one.driver or 'driver unknown'})" for one in hardware.gpus)
    allowed, logical = unknown(cpu.allowed_cores), unknown(cpu.logical_cores)
    cores = f"{allowed} allowed of {logical} logical, {unknown(cpu.physical_cores)} physical"
    return pairs([
        ("CPU", cpu.model), ("architecture", cpu.architecture), ("cores", cores),
        ("CPU quota", "none" if cpu.quota_cores is None else f"{cpu.quota_cores:g} cores"),
        ("memory", None if hardware.memory_mib is None else number.format_observed(hardware.memory_mib, "MiB")),
        ("GPUs", gpus or "none found"),
        ("virtualization", hardware.virtualization), ("machine", hardware.machine),
        ("hardware id", device.hardware_id), ("software id", device.software_id),
        ("clock", ", ".join(f"{name} {value}" for name, value in environment.clock.items()) or None),
        ("git", None if git is None else f"{git.commit[:12]}{changed} ({git.branch or 'no branch'})"),
    ])  # fmt: skip


def _software(environment: Environment) -> Html:
    software = environment.device.software
    told: list[tuple[str, str | None]] = [
        ("system", f"{software.os} {software.os_version or ''}".strip()), ("kernel", software.kernel),
        ("libc", software.libc), ("microcode", software.microcode), ("Python", software.python),
        ("Prony", software.prony), ("GPU driver", software.gpu_driver),
    ]  # fmt: skip
    told += [(f"package {name}", version) for name, version in software.packages.items()]
    told += [(f"variable {name}", value) for name, value in software.environment.items()]
    told += [(f"mitigation {name}", value) for name, value in software.mitigations.items()]
    return pairs(told)


def _repeat(data: ExperimentData) -> Html:
    models = {one.result.model.sha256: one.result.model for one in data.entries if one.result.model is not None}
    sums = {name: value for entry in data.entries for name, value in entry.environment.checksums.items()}
    rows = [
        [model.source, number.format_observed(model.size_bytes, "B"), f"sha256:{digest}"]
        for digest, model in models.items()
    ]
    rows += [[name, number.DASH, value] for name, value in sums.items()]
    command = tag("p", "Repeat it here with ", tag("code", f"prony rerun {data.experiment.id}"),
                  ", or anywhere by saving the recipe above and running it.")  # fmt: skip
    return join_html((tag("h4", "Checksums"), grid(["file", "size", "checksum"], rows) if rows else None, command))
