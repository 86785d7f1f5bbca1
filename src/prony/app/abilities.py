"""Find out what this machine has: engines, services, drivers, tasks, container engines, launchers and probes."""

from __future__ import annotations

import ast
import os
import re
import shutil
import subprocess
import tempfile
from collections.abc import Callable, Collection, Sequence
from concurrent.futures import ThreadPoolExecutor
from functools import lru_cache, partial
from pathlib import Path
from typing import Any

from prony.errors import CapacityError
from prony.model.base import Noun
from prony.model.container import POD, WITH_APPTAINER
from prony.model.device import AbilityReport, EngineReport
from prony.model.gpu_detection import GpuDetection
from prony.ports import plugins
from prony.ports.engine import SeesCards
from prony.ports.probe import Probe
from prony.ports.service import Installation, Service, starting_option
from prony.runner.containers import PROOF
from prony.runner.services.site import with_own_programs
from prony.store.home import Home

# A program that does not answer in this time has no version; a container engine that does not is broken.
_ASK_S = 10.0
_AT_ONCE = 8
_VERSION = Installation.pattern
_PYTHONS = ("python", "python3")
_TORCH = re.compile(r"torch-([^-]+?)(?:-py[0-9.]+)?\.(?:dist|egg)-info")
# A folder as `python -m site` prints it: its repr, in a line of its own.
_FOLDERS = re.compile(r"""^    (".*"|'.*'),$""", re.MULTILINE)
# What each kind of engine is asked: does it work, and in which version? docker needs a daemon for both.
_ENGINE_QUESTIONS = {
    "podman": (PROOF["podman"], ("version", "--format", "{{.Server.Version}}")),
    "docker": ((*PROOF["docker"], "--format", "{{.ServerVersion}}"),),
}
_TO_GET = {"mpirun": "apt-get install openmpi-bin", "torchrun": "pip install torch", "srun": "install Slurm"}
# How one of them is found: run in a thread of its own.
_Look = Callable[[], AbilityReport]


def inspect_abilities(kinds: Collection[str] = ("service", "container", "launcher", "probe")) -> list[AbilityReport]:
    """Report everything of these kinds, there or not. Programs are asked for their versions, all at the same time."""
    looks: list[_Look] = []
    if "container" in kinds or "service" in kinds:
        # One that only a pod has is not missing elsewhere.
        pod = (POD,) if shutil.which(POD) else ()
        looks += [partial(_container, name) for name in (*pod, *WITH_APPTAINER)]
    if "launcher" in kinds:
        looks += [partial(_launcher, "mpirun"), partial(_launcher, "srun"), _torchrun]
    if "probe" in kinds:
        looks += [partial(_probe, name) for name in plugins.find_plugins(plugins.PROBES)]
    if "service" in kinds:
        looks += [partial(_service, name) for name in plugins.find_plugins(plugins.SERVICES)]
    with ThreadPoolExecutor(_AT_ONCE) as pool:
        found = list(pool.map(lambda look: look(), looks))
    can_run_images = any(
        one.state == "ready" and one.name in (POD, *WITH_APPTAINER) for one in found if one.kind == "container"
    )
    whole = [_with_image(one) if can_run_images else one for one in found]
    return [one for one in whole if one.kind in kinds]


def _service(name: str) -> AbilityReport:
    kind = plugins.load_plugin(plugins.SERVICES, name)
    service: Service = kind()
    # Not checked: which model or which command is another question than whether its program is here.
    reason = service.available(kind.Options.model_construct())
    if reason is not None:
        return AbilityReport(kind="service", name=name, state="missing", reason=reason)
    installed = service.installation()
    if installed is None:
        return AbilityReport(kind="service", name=name, state="ready")
    return AbilityReport(
        kind="service",
        name=name,
        state="ready",
        version=_version(installed) or None,
        path=str(installed.path),
        means=(installed.means,),
    )


def _with_image(report: AbilityReport) -> AbilityReport:
    """Add that a recipe may name an image instead, where the service takes one."""
    if report.kind != "service":
        return report
    options = plugins.load_plugin(plugins.SERVICES, report.name).Options
    if starting_option(options, {"image": "any"}) != "image":
        return report
    return report.model_copy(update={"means": (*report.means, "image")})


def _version(installed: Installation) -> str:
    if installed.version or not installed.ask:
        return installed.version
    state = installed.path.stat()
    return _asked_once(tuple(installed.ask), installed.pattern, state.st_mtime_ns, state.st_size)


@lru_cache(maxsize=64)
def _asked_once(command: tuple[str, ...], pattern: str, _changed_ns: int, _size: int) -> str:
    """Ask a program for its version, and again only when its file is another."""
    said = _run(command)
    return _first_match(pattern, said.stdout + said.stderr) if said is not None else ""


def _first_match(pattern: str, text: str) -> str:
    found = re.search(pattern, text)
    return found[0] if found else ""


def _run(command: Sequence[str]) -> subprocess.CompletedProcess[str] | None:
    """Return what a command said; None where it cannot be run, or says nothing in time."""
    environment = os.environ | {"PATH": with_own_programs(os.environ.get("PATH", ""))}
    try:
        return subprocess.run(
            command,
            capture_output=True,
            text=True,
            errors="replace",
            check=False,
            timeout=_ASK_S,
            stdin=subprocess.DEVNULL,
            env=environment,
            cwd="/",
        )
    except (OSError, subprocess.TimeoutExpired):
        return None


def _container(name: str) -> AbilityReport:
    path = shutil.which(name)
    if path is None:
        reason = f"{name} is not on PATH; to get it: apt-get install {name}"
        return AbilityReport(kind="container", name=name, state="missing", reason=reason)
    version = None
    for question in _ENGINE_QUESTIONS.get(name, (("--version",),)):
        said = _run([path, *question])
        if said is None or said.returncode != 0:
            lines = (said.stderr.strip() or said.stdout.strip()).splitlines() if said is not None else []
            reason = f"{name} does not work: {lines[-1][:200] if lines else f'no answer in {_ASK_S:.0f} s'}"
            return AbilityReport(kind="container", name=name, state="broken", path=path, reason=reason)
        version = _first_match(_VERSION, said.stdout) or None
    return AbilityReport(kind="container", name=name, state="ready", version=version, path=path)


def _launcher(name: str) -> AbilityReport:
    path = _which(name)
    if path is None:
        return _no_launcher(name, f"{name} is not on PATH")
    state = Path(path).stat()
    version = _asked_once((path, "--version"), _VERSION, state.st_mtime_ns, state.st_size) or None
    return AbilityReport(kind="launcher", name=name, state="ready", version=version, path=path)


def _torchrun() -> AbilityReport:
    """Look where a launch looks: at torchrun itself, and for torch under the interpreters that a script names."""
    paths = [path for name in _PYTHONS if (path := _which(name)) is not None]
    for path in dict.fromkeys(paths):
        version = _torch_version(_search_path(path, Path(path).stat().st_mtime_ns))
        if version:
            return AbilityReport(kind="launcher", name="torchrun", state="ready", version=version, path=path)
    program = _which("torchrun")
    if program is not None:
        return AbilityReport(kind="launcher", name="torchrun", state="ready", path=program)
    return _no_launcher("torchrun", "no torchrun on PATH, and no torch for its python or python3")


@lru_cache(maxsize=64)
def _search_path(python: str, _changed_ns: int) -> tuple[str, ...]:
    """Return the folders in which an interpreter finds packages; it is started once, what lies in them may change."""
    said = _run([python, "-m", "site"])
    listed = _FOLDERS.findall(said.stdout) if said is not None and said.returncode == 0 else ()
    return tuple(ast.literal_eval(text) for text in listed)


def _torch_version(folders: Sequence[str]) -> str:
    names = (path.name for folder in folders for path in Path(folder).glob("torch-*.*-info"))
    found = (_TORCH.fullmatch(name) for name in names)
    return next((match[1] for match in found if match), "")


def _no_launcher(name: str, said: str) -> AbilityReport:
    return AbilityReport(kind="launcher", name=name, state="missing", reason=f"{said}; to get it: {_TO_GET[name]}")


def _which(name: str) -> str | None:
    """Return where a script finds a program."""
    return shutil.which(name, path=with_own_programs(os.environ.get("PATH", "")))


def _probe(name: str) -> AbilityReport:
    probe: Probe = plugins.load_plugin(plugins.PROBES, name)()
    reason = probe.available() or ""
    probe.close()
    return AbilityReport(kind="probe", name=name, state="missing" if reason else "ready", reason=reason)


def inspect_engines(home: Home, names: Sequence[str] = ()) -> list[EngineReport]:
    """Start every engine, or those named, two at a time, and report what each can do here."""
    from concurrent.futures import ThreadPoolExecutor

    from prony.runner.engines import inspect

    wanted = list(names) or list(plugins.find_plugins(plugins.ENGINES))
    with tempfile.TemporaryDirectory(prefix="prony-") as scratch, ThreadPoolExecutor(2) as pool:
        folder = Path(scratch)
        return list(pool.map(lambda name: inspect(name, home.engines, folder / f"{name}.log"), wanted))


def inspect_version(home: Home, name: str, version: str) -> EngineReport:
    """Start one version of an engine that has an environment of its own; its report is named `NAME@VERSION`."""
    from prony.runner.engines import check_engine_version, inspect

    with tempfile.TemporaryDirectory(prefix="prony-") as scratch:
        report = inspect(name, home.engines, Path(scratch) / f"{name}.log", version)
    if report.version is not None:
        try:
            check_engine_version(name, version, report.version)
        except CapacityError as exc:
            report = report.model_copy(update={"state": "broken", "reason": exc.message, "hint": exc.hint})
    return report.model_copy(update={"name": f"{name}@{version}"})


def detect_gpus(home: Home, *, tries_products: bool = False) -> GpuDetection:
    """Ask the driver's library, its program, other vendors' tools and the engines what GPUs there are, each by itself.

    Engines are started only where something else shows a GPU, or where products are to be tried.
    """
    from prony.instruments.device.gpu_layers import add_trials, join_layers
    from prony.instruments.device.nvidia_layers import ask_nvidia_smi, ask_nvml
    from prony.instruments.device.other_layers import ask_other_vendors
    from prony.runner.engines import ask_engine_cards

    layers = [ask_nvml(), ask_nvidia_smi(), *ask_other_vendors()]
    if not tries_products and not any(one.cards for one in layers):
        return join_layers(layers)
    answers = {}
    with tempfile.TemporaryDirectory(prefix="prony-") as scratch:
        for name in plugins.find_plugins(plugins.ENGINES):
            if isinstance(plugins.load_plugin(plugins.ENGINES, name)(), SeesCards):
                log = Path(scratch) / f"{name}.log"
                answers[name] = ask_engine_cards(name, home.engines, log, tries_products=tries_products)
    detection = join_layers([*layers, *(answer for answer, _ in answers.values())])
    for name, (_, trials) in answers.items():
        detection = add_trials(detection, name, trials)
    return detection


class Plug(Noun):
    """A plug-in as a list shows it; `lacks` says why a service cannot be started here."""

    name: str
    kind: str
    about: str
    driver: str = ""
    lacks: str = ""


class OptionFacts(Noun):
    """One option of a plug-in."""

    name: str
    default: str
    about: str


def services() -> list[Plug]:
    """Return every service; each is asked whether it could be started here with its own defaults."""
    return [_describe_service(name) for name in plugins.find_plugins(plugins.SERVICES)]


def drivers() -> list[Plug]:
    return [_plug(plugins.DRIVERS, name, "driver") for name in plugins.find_plugins(plugins.DRIVERS)]


def tasks() -> list[Plug]:
    return [_plug(plugins.TASKS, name, "task") for name in plugins.find_plugins(plugins.TASKS)]


def options_of(kind: str, name: str) -> list[OptionFacts]:
    """Return what a plug-in takes; `kind` is services, drivers or tasks."""
    plugin = plugins.load_plugin(
        {"services": plugins.SERVICES, "tasks": plugins.TASKS}.get(kind, plugins.DRIVERS), name
    )
    fields = plugin.Options.model_fields
    return [
        OptionFacts(name=key, default=_default(field), about=field.description or "") for key, field in fields.items()
    ]


def _default(field: Any) -> str:
    if field.is_required():
        return "needed"
    value = field.get_default(call_default_factory=True)
    if value is None or value in ((), [], {}, ""):
        return "none"
    return str(value).lower() if isinstance(value, bool) else str(value)


def _plug(group: str, name: str, kind: str) -> Plug:
    return Plug(name=name, kind=kind, about=_about(plugins.load_plugin(group, name)))


def _describe_service(name: str) -> Plug:
    kind = plugins.load_plugin(plugins.SERVICES, name)
    service = kind()
    # Not checked: which model or which command is another question than whether its program is here.
    lacks = service.available(kind.Options.model_construct()) or ""
    return Plug(name=name, kind="service", about=_about(kind), driver=service.driver, lacks=lacks)


def _about(kind: Any) -> str:
    return (kind.__doc__ or "").strip().partition("\n")[0]
