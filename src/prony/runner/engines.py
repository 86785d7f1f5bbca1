"""Engines on this machine: which interpreter hosts each, what it can do, and an environment of its own for one."""

from __future__ import annotations

import json
import os
import platform
import re
import shutil
import sys
import tempfile
from collections.abc import Callable, Sequence
from pathlib import Path

from prony.errors import CapacityError, InputError
from prony.instruments.device.nvidia import describe_absence, driver_cuda, management
from prony.model.device import EngineReport, EngineUnit
from prony.model.gpu_detection import LayerAnswer, ProductTrial
from prony.ports import plugins
from prony.ports.engine import Engine, GpuBuild, HasCpuBuilds, HasGpuBuilds, find_unsupported_reason
from prony.runner.child.wire import ChildOrder, Message
from prony.runner.host import EngineHost, Watch
from prony.runner.install_packages import install_packages, is_reached, run_command

_PROBE_TIMEOUT_NS = 120 * 10**9
_RECORD = "interpreter.json"
_AT = "@"
_SYSTEMS = {"linux": "Linux", "win32": "Windows", "darwin": "macOS"}
_STATES = {"engine_missing": "missing", "engine_unsupported": "unsupported"}


def interpreter(name: str, engines: Path, version: str | None = None) -> str:
    """Return the Python that hosts an engine: the environment that was added for it, or else this one.

    With a version, the one that was added for that version goes first; whether what it finds has that version is for
    `check_version` to say.
    """
    records = [engines / _place(name, one) / _RECORD for one in dict.fromkeys((version, None))]
    record = next((one for one in records if one.exists()), None)
    if record is None:
        return sys.executable
    python = str(json.loads(record.read_text())["python"])
    if not Path(python).exists():
        hint = _adding(name, version if record == records[0] else None)
        raise CapacityError(f"the interpreter of {name} was removed: {python}", hint=hint, code="engine_broken")
    return python


def versions(engines: Path) -> list[tuple[str, str]]:
    """Return every engine and version that was given an environment of its own."""
    found = sorted(path.parent.name for path in engines.glob(f"*{_AT}*/{_RECORD}"))
    return [(name, version) for name, _, version in (text.partition(_AT) for text in found)]


def check_engine_version(name: str, wanted: str | None, found: str) -> None:
    """Refuse an engine of another version than the one that was asked for: `1.20` is any 1.20."""
    number = found.partition("-")[0].partition("+")[0]
    if wanted is None or number == wanted or number.startswith(f"{wanted}."):
        return
    raise CapacityError(
        f"the recipe needs {name} {wanted}, but {found} is installed", hint=_adding(name, wanted), code="engine_version"
    )


def _place(name: str, version: str | None) -> str:
    return name if version is None else f"{name}{_AT}{version}"


def _adding(name: str, version: str | None) -> str:
    return f"prony engines add {name}" + (f" --version {version}" if version else "")


def inspect(name: str, engines: Path, log: Path, version: str | None = None) -> EngineReport:
    """Start one engine and ask what it can do; a broken one is reported, not raised."""
    engine = plugins.load_plugin(plugins.ENGINES, name)
    python = sys.executable
    try:
        python = interpreter(name, engines, version)
        with EngineHost(name, python, log) as host:
            answer = host.perform(ChildOrder(op="probe"), Watch(timeout_ns=_PROBE_TIMEOUT_NS))
    except CapacityError as exc:
        state = _STATES.get(exc.code, "broken")
        reason = exc.message.partition(": ")[2] or exc.message
        return EngineReport.read(
            {
                "name": name,
                "python": python,
                "state": state,
                "reason": reason,
                "hint": exc.hint,
                "formats": engine.formats,
            }
        )
    if answer.done is None:
        reason = answer.failure.message if answer.failure else "no answer"
        return EngineReport(name=name, python=python, state="broken", reason=reason, formats=engine.formats)
    return _report(name, python, engine.formats, host.hello, answer.done["info"])


def ask_engine_cards(
    name: str, engines: Path, log: Path, *, tries_products: bool
) -> tuple[LayerAnswer, dict[str, tuple[ProductTrial, ...]]]:
    """Ask an engine, in a process of its own, what GPUs it sees, and what it computed on each where it was to try."""
    try:
        with EngineHost(name, interpreter(name, engines), log) as host:
            order = ChildOrder(op="cards", profile=tries_products)
            answer = host.perform(order, Watch(timeout_ns=_PROBE_TIMEOUT_NS))
    except CapacityError as exc:
        return LayerAnswer(layer=name, state="absent", note=exc.message), {}
    seen = (answer.done or {}).get("seen")
    if seen is None:
        note = answer.failure.message if answer.failure else "it did not report its GPUs"
        return LayerAnswer(layer=name, state="failed", note=note), {}
    trials = {key: tuple(map(ProductTrial.read, each)) for key, each in seen["trials"].items()}
    note = "" if seen["cards"] else "it sees no GPU"
    return LayerAnswer(layer=name, state="asked", cards=seen["cards"], about=seen["about"], note=note), trials


def _report(name: str, python: str, formats: tuple[str, ...], hello: Message, info: Message) -> EngineReport:
    units = tuple(
        EngineUnit(
            engine=name,
            unit=unit["name"],
            description=unit["description"],
            precisions=tuple(unit["precisions"]),
            seed_name=unit["seed_name"],
        )
        for unit in info["units"]
    )
    return EngineReport(
        name=name,
        python=python,
        state="ready",
        version=info["version"],
        import_ms=hello["import_ns"] / 1e6,
        formats=formats,
        units=units,
        details=info["details"] | {"python": hello["python_version"]},
    )


def add_engine(
    name: str,
    engines: Path,
    *,
    version: str | None = None,
    python: str | None = None,
    requirements: Sequence[str] = (),
    say: Callable[[str], None] = lambda _: None,
) -> str:
    """Give an engine an interpreter of its own: `python`, or a new virtual environment. Return that interpreter.

    With a version it stands beside the usual one, for the jobs that ask for that version.
    """
    engine_name, build = find_build(name)
    if build is not None and build.name == engine_name and (python is not None or requirements):
        build = None
    if build is not None:
        check_build(build, driver_cuda())
        requirements = requirements or _pin_version(build.requirements, version)
    name = engine_name
    engine = plugins.load_plugin(plugins.ENGINES, name)()
    reason = find_unsupported_reason(engine)
    if reason is not None:
        raise CapacityError(
            f"{name} cannot run on this machine: {reason}",
            code="engine_unsupported",
            hint="prony engines lists the engines for this machine",
        )
    if python is not None and not Path(python).is_file():
        raise InputError(f"interpreter not found: {python}", hint="use the path of a python executable")
    folder = engines / _place(name, version)
    folder.mkdir(parents=True, exist_ok=True)
    earlier = list(folder.glob("environment*"))
    if python is None:
        wanted = requirements or _pin_version(engine.requirements, version)
        first = _cpu_builds(engine, wanted, say) if build is None else _gpu_index(build)
        python = _new_environment(folder, ["numpy", *wanted], first, say)
    python = str(Path(python).absolute())  # never resolved: the link itself is what makes it that environment's
    record = folder / f".{_RECORD}.tmp"
    record.write_text(json.dumps({"python": python}))
    record.replace(folder / _RECORD)
    for environment in earlier:
        if not Path(python).is_relative_to(environment):
            shutil.rmtree(environment, ignore_errors=True)
    return python


def find_build(name: str) -> tuple[str, GpuBuild | None]:
    """Return the engine that is meant by a name, and its build for GPUs where the name is that of one."""
    for engine_name in plugins.find_plugins(plugins.ENGINES):
        engine = plugins.load_plugin(plugins.ENGINES, engine_name)
        if isinstance(engine, HasGpuBuilds):
            for build in engine.gpu_builds:
                if build.name == name:
                    return engine_name, build
    return name, None


def check_build(build: GpuBuild, cuda: str | None, system: str = sys.platform, machine: str = "") -> None:
    """Refuse a build that cannot work here: another system, another processor, no NVIDIA driver or an old one.

    Raises:
        CapacityError: It says what is needed and what is here.
    """
    here = {"amd64": "x86_64", "arm64": "aarch64"}.get(found := (machine or platform.machine()).lower(), found)
    lacks = ""
    if system not in build.systems:
        systems = " and ".join(_SYSTEMS[one] for one in build.systems)
        lacks = f"runs on {systems}, but this is {_SYSTEMS.get(system, system)}"
    elif here not in build.machines:
        lacks = f"is built for {' and '.join(build.machines)}, but this is {here}"
    elif build.cuda and cuda is None:
        lacks = f"needs NVIDIA's driver for CUDA {build.cuda} or newer, but there is none ({describe_absence()})"
    elif build.cuda and cuda is not None and _numbers(cuda) < _numbers(build.cuda):
        lacks = f"needs an NVIDIA driver for CUDA {build.cuda} or newer, but the installed one is for CUDA {cuda}"
    if lacks:
        raise CapacityError(
            f"{build.name} {lacks}", hint=build.otherwise or "prony info shows the GPUs that Prony sees",
            code="engine_unsupported",
        )  # fmt: skip


def _numbers(version: str) -> tuple[int, ...]:
    return tuple(int(part) for part in version.split("."))


def _gpu_index(build: GpuBuild) -> list[str]:
    """Return pip's words for a build that lies in an index of its own; only on Windows."""
    is_apart = build.windows_index and sys.platform == "win32"
    return ["--no-deps", "-i", build.windows_index, build.requirements[0]] if is_apart else []


def _pin_version(requirements: Sequence[str], version: str | None) -> list[str]:
    """Return what an engine needs, the engine itself, which stands first, in the version that is wanted."""
    if version is None:
        return list(requirements)
    if not requirements:
        raise InputError("this engine is part of Prony and has no version of its own", hint="remove --version")
    extras = "".join(re.findall(r"\[.*?\]", requirements[0]))
    return [f"{_plain_name(requirements[0])}{extras}=={version}.*", *requirements[1:]]


def _plain_name(requirement: str) -> str:
    """Return the name of the package in a requirement."""
    return re.split(r"[<>=!~ ;\[]", requirement)[0]


def _cpu_builds(engine: Engine, requirements: Sequence[str], say: Callable[[str], None]) -> list[str]:
    """Return pip's words for the engine's build for the CPU; none where it has only one, or a GPU is here."""
    if not isinstance(engine, HasCpuBuilds) or sys.platform != "linux" or management() is not None:
        return []
    index = os.environ.get(engine.cpu_index.variable, engine.cpu_index.url)
    if not index:
        return []
    if not is_reached(f"{index.rstrip('/')}/{_plain_name(requirements[0])}/"):
        say(f"note: no NVIDIA GPU found, but the index of CPU builds does not answer ({index}): installing the default "
            f"build. Set {engine.cpu_index.variable} to use another index")  # fmt: skip
        return []
    say(f"no NVIDIA GPU found: installing the CPU build from {index}")
    return ["--no-deps", "-i", index, requirements[0]]


def _new_environment(
    folder: Path, requirements: Sequence[str], first: Sequence[str], say: Callable[[str], None]
) -> str:
    """Make an environment beside the one that is in use, which stays as it is until this one is whole. What `first`
    says to pip is installed before the rest."""
    place = Path(tempfile.mkdtemp(prefix="environment-", dir=folder))
    python = place / ("Scripts/python.exe" if sys.platform == "win32" else "bin/python")
    try:
        say(f"creating {place}")
        run_command([sys.executable, "-m", "venv", str(place)])
        if first:
            install_packages(python, first, say)
        install_packages(python, requirements, say)
    except BaseException:
        shutil.rmtree(place, ignore_errors=True)
        raise
    return str(python)
