"""Find out what this device can do, and look again when something has changed."""

from __future__ import annotations

from concurrent.futures import ThreadPoolExecutor
from pathlib import Path

from prony import __version__
from prony.agent.settings import AgentSettings
from prony.app.abilities import inspect_abilities, inspect_engines
from prony.app.local_device import cached_models
from prony.dispatch.facts import facts_of
from prony.errors import InputError, PronyError
from prony.instruments.device import detect
from prony.instruments.preflight import quick_state
from prony.model.agent import Capabilities
from prony.model.calibration import Calibration
from prony.model.device import Device, EngineReport, State
from prony.runner.card_lock import list_usable_cards
from prony.store.home import Home

_LABEL_HINT = "write for example --label room=lab2: letters, digits and ._:/@+-, at most 100 each"


class CapabilityScanner:
    """What this device can do. Blocking: engines are started to see whether they work."""

    def __init__(self, home: Home, settings: AgentSettings) -> None:
        self.home = home
        self.settings = settings
        self._engines: tuple[EngineReport, ...] = ()
        self._inspected: tuple[tuple[str, int], ...] | None = None
        self._state: State | None = None

    @property
    def device(self) -> Device:
        found = detect()
        name = self.settings.device_name
        return found.model_copy(update={"name": name}) if name else found

    @property
    def device_name(self) -> str:
        return self.device.name

    def look(self) -> Capabilities:
        """Return what is offered now. Engines are started anew only where one was added or removed since."""
        with ThreadPoolExecutor(1) as pool:  # beside the engines, which take longer
            looking = pool.submit(inspect_abilities)
            self._look_at_engines()
            abilities = tuple(looking.result())
        if self._state is None:
            self._state = quick_state(home=self.home.root).model_copy(update={"values": {}})
        labels = dict(self.settings.labels)
        facts = facts_of(
            self.device,
            self._engines,
            abilities=abilities,
            labels=labels,
            cached_models=cached_models(self.home.cache),
            policy={**self.settings.policy(), "gpu.uuid": list_usable_cards()},
        )
        return Capabilities(
            device=self.device,
            engines=self._engines,
            abilities=abilities,
            facts=facts,
            labels=labels,
            version=__version__,
            state=self._state,
            calibration=self._calibration(),
        )

    def _calibration(self) -> Calibration | None:
        try:
            return latest_calibration(self.home)
        except PronyError:  # the agent offers its device all the same, and the log of each job says why
            return None

    def close(self) -> None:
        """Do nothing: a look here is short."""

    def _look_at_engines(self) -> None:
        installed = self._read_environment_stamps()
        if installed != self._inspected:
            self._engines = tuple(inspect_engines(self.home))
            self._inspected = installed

    def _read_environment_stamps(self) -> tuple[tuple[str, int], ...]:
        """Return what tells whether an engine was given an environment of its own since the last look."""
        return tuple((str(path), _changed_ns(path)) for path in sorted(self.home.engines.glob("*/*.json")))


def latest_calibration(home: Home) -> Calibration | None:
    """Return this machine's newest calibration, if it was ever calibrated.

    Raises:
        PronyError: The database cannot be read.
    """
    if not home.database.exists():
        return None
    from prony.store.store import Store

    with Store.open(home) as store:
        return store.latest_calibration(detect().hardware_id)


def _changed_ns(path: Path) -> int:
    try:
        return path.stat().st_mtime_ns
    except OSError:
        return 0


def labels_of(texts: list[str]) -> dict[str, str]:
    """Read labels as they are written on the command line."""
    from pydantic import TypeAdapter, ValidationError

    from prony.model.agent import Label

    found: dict[str, str] = {}
    label = TypeAdapter(Label)
    for text in texts:
        key, equals, value = text.partition("=")
        try:
            if not equals or not key:
                raise InputError(f"{text!r} is not a label", hint=_LABEL_HINT)
            found[label.validate_python(key)] = label.validate_python(value)
        except ValidationError as exc:
            raise InputError(f"{text!r} is not a valid label", hint=_LABEL_HINT) from exc
    return found
