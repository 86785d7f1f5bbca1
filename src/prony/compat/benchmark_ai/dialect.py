"""Translate a Benchmark AI descriptor, in either of its forms, into the recipe of a script that does the same.

How many GPUs a machine has is looked up by its EC2 type.
"""

from __future__ import annotations

import re
from collections.abc import Mapping
from pathlib import PurePath
from typing import Any, ClassVar

from prony.compat.benchmark_ai.descriptor import Descriptor, Metric, Output, Probe, Server, Source
from prony.model.cron import parse_cron
from prony.recipe.dialects.translated_document import Draft, Translation, read_strictly
from prony.recipe.positions import Keys, Parsed, format_path, mark_of

# By family, then by size; a size that is not listed is not known.
_ONE = dict.fromkeys(("xlarge", "2xlarge", "4xlarge", "8xlarge", "16xlarge"), 1)
_FOUR = {"12xlarge": 4, "24xlarge": 4, "48xlarge": 8}
_GPUS: dict[str, dict[str, int]] = {
    "p2": {"xlarge": 1, "8xlarge": 8, "16xlarge": 16},
    "p3": {"2xlarge": 1, "8xlarge": 4, "16xlarge": 8},
    "p3dn": {"24xlarge": 8},
    "p4d": {"24xlarge": 8},
    "p4de": {"24xlarge": 8},
    "p5": {"4xlarge": 1, "48xlarge": 8},
    "p5e": {"48xlarge": 8},
    "p5en": {"48xlarge": 8},
    "g2": {"2xlarge": 1, "8xlarge": 4},
    "g3": {"4xlarge": 1, "8xlarge": 2, "16xlarge": 4},
    "g3s": {"xlarge": 1},
    "g4dn": _ONE | {"12xlarge": 4, "metal": 8},
    "g4ad": {"xlarge": 1, "2xlarge": 1, "4xlarge": 1, "8xlarge": 2, "16xlarge": 4},
    "g5": _ONE | _FOUR,
    "g6": _ONE | _FOUR,
    "g6e": _ONE | _FOUR,
}
# Families that have none, by the first letter of their names.
_WITHOUT = ("t", "m", "c", "r", "a", "x", "z", "i", "d", "h")


def _gpus_of(instance_type: str) -> int | None:
    """Return the number of GPUs; None where it is not known."""
    family, _, size = instance_type.lower().removeprefix("ml.").partition(".")
    if family in _GPUS:
        return _GPUS[family].get(size)
    is_named = bool(size) and any(letter.isdigit() for letter in family)
    return 0 if is_named and family.startswith(_WITHOUT) else None


SPEC_VERSION = "0.1.0"
# A job of theirs had no limit; one that hangs must end some day all the same.
TIMEOUT = "24h"
_HINTS = {
    "uri": "write src",
    "timout_seconds": "did you mean timeout_seconds?",
    "liveliness_probe": "Benchmark AI ignored it; write readiness_probe, a table with a path",
    "gpus_per_instance": 'write processes_per_instance = "gpus"',
}
_ONCE = "it runs once, as in Benchmark AI; with more runs numbers have intervals (--set measure.repeats=5)"
# Where the scripts of script mode lie: the folder that the command runs in.
_SCRIPTS = {"BAI_SCRIPTS_PATH": "$(PRONY_DIRECTORY)"}
_SHELL = re.compile(r"[\n|&;<>(){}$`*?~#\\]")


class BenchmarkAiDialect:
    """Descriptors of Benchmark AI."""

    title: ClassVar[str] = "a Benchmark AI descriptor"
    keeps_folder_name: ClassVar[bool] = True

    def fits(self, document: Mapping[str, Any]) -> bool:
        # Two of them, so that a descriptor which lacks one is still told what it lacks.
        return len({"spec_version", "info", "hardware", "env", "ml"} & document.keys()) > 1

    def translate(self, parsed: Parsed) -> Translation:
        return _translate(parsed, self.title)


def _translate(parsed: Parsed, title: str) -> Translation:
    """Return the recipe; whatever is wrong with the descriptor is raised at once, each with its line."""
    found = read_strictly(Descriptor, parsed, _HINTS, title)
    draft = Draft(parsed)
    _info(draft, found)
    _machine(draft, found)
    _command(draft, found)
    sources = found.data.sources or () if found.data is not None else ()
    draft.set("workload.sources", _sources(draft, sources, ("data", "sources"), ("workload",)), ("data",))
    draft.set("workload.metrics", _metrics(draft, found.output, ("output",), ("workload",)), ("output",))
    _server(draft, found)
    _note_unused(draft, found)
    draft.set("measure.repeats", 1)
    draft.set("limits.timeout", TIMEOUT)
    draft.note((), _ONCE)
    return draft.translation()


def _info(draft: Draft, found: Descriptor) -> None:
    info = found.info
    if found.spec_version != SPEC_VERSION:
        draft.note(("spec_version",), f"is read as {SPEC_VERSION}, the only version")
    if info.description is None and info.task_name is None:
        draft.refuse(("info", "description"), "is missing: write what this benchmark is for")
    name = info.labels.get("task_name") or info.task_name or ""
    origin: Keys = ("info", "labels", "task_name") if "task_name" in info.labels else ("info", "task_name")
    draft.set("name", _name(name, draft), origin)
    draft.set("description", " ".join((info.description or info.task_name or "").split()), ("info", "description"))
    own = {} if info.task_name is None else {"task_name": info.task_name}
    draft.set("labels", own | info.labels, ("info", "labels"))
    if info.scheduling != "single_run":
        _schedule(draft, info.scheduling)


def _name(task: str, draft: Draft) -> str:
    """Return a recipe's name: what the task is called, else the file."""
    stem = PurePath(mark_of(draft.origin.marks, ()).source).stem
    for text in (task, stem):
        if name := re.sub(r"[^A-Za-z0-9._-]+", "-", text).strip("-._")[:100]:
            return name
    return "descriptor"


def _schedule(draft: Draft, text: str) -> None:
    try:
        parse_cron(text)
    except ValueError as exc:
        draft.refuse(("info", "scheduling"), f'must be "single_run" or a cron expression: {exc}')
    else:
        draft.set("schedule.cron", text, ("info", "scheduling"))


def _machine(draft: Draft, found: Descriptor) -> None:
    hardware = found.hardware
    place = "it runs on this machine or on any agent; `--set place.where...` chooses agents"
    if hardware.instance_type != "local":
        draft.note(("hardware", "instance_type"), f"{hardware.instance_type} is not requested: {place}")
    for key in ("aws_zone_id", "availability_zone"):
        if getattr(hardware, key) is not None:
            draft.note(("hardware", key), "is ignored: there are no zones here")
    if found.info.execution_engine != "default":
        draft.note(("info", "execution_engine"), f"{found.info.execution_engine} is not used: {place}")
        if not found.ml.framework:
            draft.refuse(("ml", "framework"), f"is missing: {found.info.execution_engine} needs it")
    if hardware.strategy == "horovod":
        _translate_distribution(draft, found)
    elif hardware.distributed is not None:
        draft.note(("hardware", "distributed"), f"is ignored with strategy {hardware.strategy}")


def _translate_distribution(draft: Draft, found: Descriptor) -> None:
    """An instance is a node: an agent of a server. Without one all are this machine, and that is told."""
    own = found.hardware.distributed
    origin: Keys = ("hardware", "distributed")
    instances = own.num_instances if own is not None else 2
    each = _processes(draft, found)
    if each is None:
        return
    launch = {"kind": "mpirun", "processes": each, "nodes": instances, "spread": False, "fallback": "process"}
    draft.set("workload.launch", launch, origin)
    at: Keys = (*origin, "num_instances") if own is not None else ("hardware", "strategy")
    draft.note(
        at,
        f"{instances} instances become {instances} agents of a server or nodes of a Slurm target, else "
        f"{instances * each} processes on one machine",
    )


def _processes(draft: Draft, found: Descriptor) -> int | None:
    own = found.hardware.distributed
    written = own.processes_per_instance if own is not None else "1"
    if written != "gpus":
        return int(written)
    keys, kind = ("hardware", "distributed", "processes_per_instance"), found.hardware.instance_type
    gpus = _gpus_of(kind)
    if gpus is None:
        draft.refuse(keys, f"how many GPUs {kind} has is not known", 'write the number, as in "4"')
    elif gpus == 0:
        draft.refuse(keys, f"{kind} has no GPU", 'write the number of processes, as in "2"')
    return gpus or None


def _command(draft: Draft, found: Descriptor) -> None:
    ml = found.ml
    draft.set("workload.kind", "script", ("ml",))
    code, origin = (ml.benchmark_code or "").strip(), ("ml", "benchmark_code")
    words = _join_command(code, ml.args)
    if code and found.hardware.strategy == "horovod":
        draft.set("workload.command", _shell_command(words), origin)
    elif code:
        draft.set("workload.command", words, origin)
    elif words:
        draft.set("workload.arguments", words, ("ml", "args"))
    if not code:
        draft.set("workload.command", None, ("ml",))
    draft.set("workload.image", found.env.docker_image, ("env", "docker_image"))
    draft.set("workload.environment", _SCRIPTS | found.env.vars, ("env", "vars"))
    if ml.script is not None and ml.script.script is not None:
        draft.set("workload.directory", ml.script.script, ("ml", "script", "script"))
    if ml.framework_version is not None and not ml.framework:
        draft.refuse(
            ("ml", "framework_version"), "is given without a framework", 'write framework = "tensorflow" or "mxnet"'
        )


def _join_command(code: str, args: str | None) -> str:
    """Return the command with its arguments, a space between them: without one, two words become one."""
    return f"{code} {args.strip()}" if code and args and args.strip() else (code or (args or "").strip())


def _shell_command(code: str) -> str | list[str]:
    """What mpirun started was a file of shell: lines, variables and all."""
    if not _SHELL.search(code):
        return code
    lines = [line.strip() for line in code.splitlines()]
    shell = lines[0].removeprefix("#!").split() if lines[0].startswith("#!") else ["sh"]
    return [*shell, "-c", "\n".join(lines)]


def _sources(draft: Draft, sources: tuple[Source, ...], origin: Keys, within: Keys) -> list[dict[str, Any]]:
    listed: list[dict[str, Any]] = []
    for index, one in enumerate(sources):
        place = (*origin, index)
        draft.at((*within, "sources", len(listed)), place)
        draft.at((*within, "sources", len(listed), "source"), (*place, "src" if one.uri is None else "uri"))
        if (one.src is None) == (one.uri is None):
            said = (
                "is missing: the URL to fetch it from"
                if one.src is None
                else "and uri (its name of 2019) are both given"
            )
            draft.refuse((*place, "src"), said)
            continue
        fetched: dict[str, Any] = {"source": one.src or one.uri, "path": one.path}
        if one.md5:
            digits = one.md5.lower()
            fetched["checksum"] = digits if ":" in digits else f"md5:{digits}"
        if one.id:
            fetched["name"] = one.id
        listed.append(fetched)
    return listed


def _metrics(draft: Draft, output: Output | None, origin: Keys, within: Keys) -> list[dict[str, Any]]:
    listed: list[dict[str, Any]] = []
    for index, one in enumerate(output.metrics if output is not None else ()):
        draft.at((*within, "metrics", len(listed)), (*origin, "metrics", index))
        if not isinstance(one, Metric):
            listed.append({"name": one})
            continue
        trouble = _pattern_trouble(one.pattern)
        if trouble:
            draft.refuse((*origin, "metrics", index, "pattern"), trouble)
            continue
        listed.append({"name": one.name, "unit": one.units, "pattern": one.pattern})
    return listed


def _pattern_trouble(pattern: str) -> str:
    try:
        groups = re.compile(pattern).groups
    except re.error as exc:
        return f"is not a regular expression: {exc}"
    return "" if groups < 2 else f"has {groups} groups, but a metric has one value: write the others as (?:...)"


def _server(draft: Draft, found: Descriptor) -> None:
    server, strategy = found.server, found.hardware.strategy
    if strategy == "inference" and server is None:
        draft.refuse(("server",), "is missing: strategy inference starts a server beside the command")
    if server is None:
        return
    if strategy != "inference":
        draft.note(("server",), f"is not started: strategy {strategy} has no server")
        return
    origin: Keys = ("server", "env")
    within: Keys = ("workload", "server")
    made: dict[str, Any] = {
        "ports": list(server.env.ports),
        "image": server.env.docker_image,
        "environment": dict(server.env.vars),
        "sources": _sources(draft, server.models, ("server", "models"), within),
        "metrics": _metrics(draft, server.output, ("server", "output"), within),
    }
    words = _join_command(server.env.start_command.strip(), server.env.start_command_args)
    if words:
        made["command" if server.env.start_command.strip() else "arguments"] = words
    if server.env.readiness_probe is not None:
        made["readiness"] = _readiness(draft, server.env.readiness_probe, server)
    if server.hardware.instance_type != "local":
        draft.note(("server", "hardware", "instance_type"), "is not requested: the server runs beside the command")
    _container(draft, origin, privileged=server.env.privileged, extended=server.env.extended_shm)
    draft.set("workload.server", made, origin)


def _readiness(draft: Draft, probe: Probe, server: Server) -> dict[str, Any]:
    """Carry over what was written; a pause that was only a default there would make every start slower for nothing."""
    written = probe.model_fields_set
    made: dict[str, Any] = {"path": probe.path, "scheme": probe.scheme, "port": probe.port or server.env.ports[0]}
    for key, ours in (("period_seconds", "period"), ("timeout_seconds", "timeout")):
        if key in written:
            made[ours] = f"{getattr(probe, key)}s"
    if "initial_delay_seconds" in written and probe.initial_delay_seconds:
        made["initial_delay"] = f"{probe.initial_delay_seconds}s"
    if "success_threshold" in written:
        made["success_threshold"] = probe.success_threshold
    if probe.port is not None and probe.port not in server.env.ports:
        draft.refuse(("server", "env", "readiness_probe", "port"), f"{probe.port} is not one of server.env.ports")
    return made


def _container(draft: Draft, origin: Keys, *, privileged: bool, extended: bool) -> None:
    if privileged:
        draft.note((*origin, "privileged"), "is ignored: a container gets no extra privileges")
    if not extended:
        draft.note((*origin, "extended_shm"), "is ignored: a container always has large shared memory")


def _note_unused(draft: Draft, found: Descriptor) -> None:
    _container(draft, ("env",), privileged=found.env.privileged, extended=found.env.extended_shm)
    if found.data is not None and found.data.sources is None:
        if found.data.id is None:
            draft.refuse(("data", "sources"), "is missing: the files to fetch before it starts")
        else:
            draft.note(("data", "id"), "names no source: nothing is fetched")
    if found.ml.framework and found.info.execution_engine == "default":
        draft.note(("ml", "framework"), "is not needed: the command says what runs")
    own = found.custom_params
    for name in sorted(own.model_fields_set) if own is not None else ():
        keys = ("custom_params", name)
        draft.note(keys, f"{format_path(keys).rpartition('.')[2]} is for AWS services: it is ignored")
