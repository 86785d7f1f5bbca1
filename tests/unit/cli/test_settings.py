"""Settings come from files, the environment and options, each stronger than the one before."""

from __future__ import annotations

import json
import os
from argparse import ArgumentParser
from pathlib import Path
from typing import Any

import pytest

from prony.api.results import open_home
from prony.app.settings import find_settings_files
from prony.cli.option_settings import apply_settings, list_settings, use_settings
from prony.errors import InputError
from servers.commands import call_prony

_FROM_KUBERNETES, _MISSPELT = "_".join(["PRONY", "SERVER", "PORT"]), "_".join(["PRONY", "SERVER", "", "PROT"])


@pytest.fixture
def place(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> Path:
    """Return a project's folder; the user's own settings lie beside it."""
    for name in [one for one in os.environ if one.startswith("PRONY_")]:
        monkeypatch.delenv(name)
    folder = tmp_path / "project" / "inner"
    folder.mkdir(parents=True)
    monkeypatch.setenv("XDG_CONFIG_HOME", str(tmp_path / "config"))
    monkeypatch.setenv("PRONY_HOME", str(tmp_path / "home"))
    monkeypatch.chdir(folder)
    return folder


def write_user(place: Path, text: str) -> Path:
    path = place.parents[1] / "config" / "prony" / "prony.toml"
    path.parent.mkdir(parents=True, exist_ok=True)
    path.write_text(text)
    return path


def write_project(place: Path, text: str) -> Path:
    path = place.parent / "prony.toml"
    path.write_text(text)
    return path


def show(*keys: str) -> dict[str, dict[str, Any]]:
    answer = json.loads(call_prony("settings", "--json", *keys).stdout)
    return {one["key"]: one for one in answer["settings"]}


def options_of(name: str, *words: str) -> dict[str, Any]:
    """Return what a command is given for these words."""
    from importlib import import_module

    parser = ArgumentParser(allow_abbrev=False)
    import_module(f"prony.cli.commands.{name}").arguments(parser)
    with apply_settings(name, parser, words):
        return vars(parser.parse_args(words))


def test_each_source_beats_the_one_before(place: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    assert show("server.port")["server.port"]["from"] == "default"
    user = write_user(place, "[server]\nport = 1001\n")
    assert show("server.port")["server.port"]["value"] == "1001"
    assert show("server.port")["server.port"]["place"] == f"{user}:2"
    project = write_project(place, "# ours\n\n[server]\nport = 1002\n")
    assert show("server.port")["server.port"]["place"] == f"{project}:4"
    (place / ".env").write_text("OTHER=1\nexport PRONY_SERVER__PORT='1003' # of the container\n")
    assert show("server.port")["server.port"]["place"] == f"{place / '.env'}:2"
    monkeypatch.setenv("PRONY_SERVER__PORT", "1004")
    found = show("server.port")["server.port"]
    assert (found["value"], found["from"], found["place"]) == ("1004", "environment", "PRONY_SERVER__PORT")
    assert options_of("server")["port"] == 1004
    assert options_of("server", "--port", "1005")["port"] == 1005


def test_todays_variables_still_count_and_beat_the_files(place: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    write_project(place, 'home = "kept"\n[models]\nmax_bytes = "2KiB"\n[machine]\nlabels = {rack = 7}\n')
    monkeypatch.setenv("PRONY_LABELS", "rack=8")
    shown = show("home", "models", "machine")
    assert shown["home"]["from"] == "environment"
    assert shown["models.max_bytes"]["value"] == "2048"
    assert shown["machine.labels"]["value"] == "rack=8"
    monkeypatch.delenv("PRONY_HOME")
    assert show("home")["home"]["value"] == str(place.parent / "kept")


def test_a_file_names_the_home_of_every_command_and_leaves_the_environment_alone(
    place: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.delenv("PRONY_HOME")
    write_project(place, 'home = "kept"\n')
    assert json.loads(call_prony("info", "--json").stdout)["home"] == str(place.parent / "kept")
    assert "PRONY_HOME" not in os.environ


@pytest.mark.parametrize(
    ("text", "line", "said"),
    [
        ("[server]\n\nprot = 1\n", 3, "did you mean server.port?"),
        ("[server]\nport = 70000\n", 2, "from 0 to 65535"),
        ('[server]\nport = "7337"\n', 2, "a port"),
        ("[server]\nlease_ttl = 30\n", 2, '"30s"'),
        ('[server]\nno_auth = "yes"\n', 2, "true or false"),
        ('[server]\ntrusted_proxy = "10.0.0.1"\n', 2, "a list"),
        ('[agent]\nlog_level = "loud"\n', 2, "debug or info or warning or error"),
        ('[load]\nduration = "5"\n', 2, "a duration"),
        ('x = 1\n[cli]\nthreshold = "3%"\n', 1, "prony settings"),
        ("[bench]\nruns = 3\n", 2, "prony settings"),
        ("[server\n", 1, "not TOML"),
        ('[cli]\nbrowser = "/bin/sh"\n', 2, "a project may not set"),
        ('[cli]\ntoken_file = "/etc/shadow"\n', 2, "a project may not set"),
        ('[cli]\ntoken = "secret"\n', 2, "PRONY_TOKEN"),
    ],
)
def test_a_wrong_key_or_value_ends_any_command_with_its_line(place: Path, text: str, line: int, said: str) -> None:
    path = write_project(place, text)
    for command in ("settings", "list"):
        told = call_prony(command, code=2).stderr
        assert f"{path}:{line}: " in told
        assert said in told


def test_every_problem_is_told_at_once(place: Path) -> None:
    path = write_project(place, "[server]\nprot = 1\n[load]\nrepeats = true\n")
    told = call_prony("list", code=2).stderr
    assert f"{path}:2: " in told
    assert f"{path}:4: " in told


def test_an_unknown_variable_is_an_error_only_where_it_is_surely_prony_s(
    place: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setenv(_FROM_KUBERNETES, "tcp://10.0.0.1:7337")  # what Kubernetes sets beside a service
    assert show("server.port")["server.port"]["from"] == "default"
    monkeypatch.setenv(_MISSPELT, "1")
    assert "did you mean PRONY_SERVER__PORT?" in call_prony("list", code=2).stderr


def test_help_works_where_a_file_is_wrong(place: Path) -> None:
    write_project(place, "nonsense\n")
    assert "usage: prony list" in call_prony("list", "--help").stdout


def test_options_of_commands_begin_with_what_is_set(place: Path) -> None:
    write_project(
        place,
        '[server]\ntrusted_proxy = ["10.0.0.1", "10.0.0.2"]\nno_auth = true\n'
        '[agent]\nlabel = ["rack=7"]\ndrain_timeout = "5s"\n'
        '[load]\nconcurrency = 3\nduration = "9s"\nheader = ["A: b"]\n'
        '[cli]\ngates = "strict"\nreport = false\nthreshold = "1%"\n',
    )
    served = options_of("server")
    assert (served["trusted_proxy"], served["no_auth"]) == (["10.0.0.1", "10.0.0.2"], True)
    assert options_of("server", "--trusted-proxy", "::1")["trusted_proxy"] == ["::1"]
    started = options_of("agent", "start")
    assert (started["label"], started["drain_timeout"]) == (["rack=7"], "5s")
    loaded = options_of("load", "http://127.0.0.1:1")
    assert (loaded["concurrency"], loaded["duration"], loaded["report"]) == (3, "9s", False)
    assert options_of("load", "http://127.0.0.1:1", "-n", "5")["duration"] is None
    assert options_of("compare", "a", "b")["threshold"] == "1%"
    ran = options_of("run", "x.yaml")
    assert (ran["gates"], ran["report"]) == ("strict", False)
    assert options_of("run", "x.yaml", "--gates", "lenient", "--report")["report"] is True


def test_tokens_are_made_in_the_database_that_is_set_for_the_server(place: Path) -> None:
    write_project(place, '[server]\ndatabase = "postgresql://db/prony"\n')
    assert options_of("tokens", "list")["database"] == "postgresql://db/prony"
    assert options_of("tokens", "list", "--database", "postgresql://other/prony")["database"] != "postgresql://db/prony"


def test_a_token_is_not_sent_to_a_server_that_only_a_project_names(
    place: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    write_project(place, '[cli]\nserver = "http://127.0.0.1:1"\n')
    monkeypatch.setenv("PRONY_TOKEN", "secret")
    assert "no token is sent to http://127.0.0.1:1" in call_prony("list", code=3).stderr
    assert "no token is sent" not in call_prony("list", "--server", "http://127.0.0.1:1", code=3).stderr
    assert os.environ["PRONY_TOKEN"] == "secret"


def test_an_empty_variable_of_an_older_name_means_that_nothing_counts(
    place: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    write_project(place, '[cli]\nserver = "http://127.0.0.1:1"\n')
    monkeypatch.setenv("PRONY_SERVER", "")
    found = show("cli.server")["cli.server"]
    assert (found["value"], found["place"]) == ("", "PRONY_SERVER")
    call_prony("list")


@pytest.mark.skipif(not hasattr(os, "geteuid") or os.geteuid() != 0, reason="only root may give files away")
def test_what_another_user_laid_in_the_way_is_passed_over_with_a_note(place: Path) -> None:
    path = write_project(place, "nonsense\n")
    os.chown(path, 4321, 4321)
    assert f"{path} is not read: it belongs to another user" in call_prony("list").stderr
    listed = json.loads(call_prony("settings", "--json").stdout)["files"]
    assert {"path": str(path), "level": "project", "state": "it belongs to another user"} in listed


def test_a_folder_that_cannot_be_looked_into_holds_no_settings() -> None:
    unseen = Path("/", "x" * 300)  # the system refuses the name itself, to root too
    assert not any(file.is_there for file in find_settings_files(unseen, {"HOME": str(unseen)}, "linux")[1:])


def test_a_secret_is_not_shown(place: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    write_user(place, '[server]\ndatabase = "postgresql://prony:hidden@db/prony"\n')
    monkeypatch.setenv("PRONY_TOKEN", "hidden")
    told = call_prony("settings").stdout
    assert "hidden" not in told
    assert "postgresql://prony:***@db/prony" in told


def test_a_runner_reads_no_file_of_the_folder_it_stands_in(place: Path) -> None:
    write_project(place, "nonsense\n")
    assert "not TOML" not in call_prony("exec", "--out", place / "out", place / "none.json", code=None).stderr


def test_the_files_are_found_where_each_system_keeps_them() -> None:
    folder = Path("/")
    environ = {"HOME": "/users/ada", "APPDATA": "/roaming", "PROGRAMDATA": "/all"}
    linux = [str(file.path) for file in find_settings_files(folder, environ, "linux")]
    assert linux == ["/etc/prony/prony.toml", "/users/ada/.config/prony/prony.toml", "/prony.toml", "/.env"]
    mac = find_settings_files(folder, environ, "darwin")
    assert str(mac[1].path) == "/users/ada/Library/Application Support/Prony/prony.toml"
    windows = find_settings_files(folder, environ, "win32")
    assert [str(file.path) for file in windows[:2]] == ["/all/Prony/prony.toml", "/roaming/Prony/prony.toml"]


def test_no_two_settings_share_a_name() -> None:
    every = list_settings()
    assert len({one.key for one in every}) == len({one.variable for one in every}) == len(every)


def test_a_program_reads_the_same_files_as_a_command(place: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.delenv("PRONY_HOME")
    write_project(place, 'home = "kept"\n')
    with open_home() as bench:
        assert bench.home.root == place.parent / "kept"
    assert "PRONY_HOME" not in os.environ


def test_a_program_is_told_of_an_unknown_key_with_its_line(place: Path) -> None:
    write_project(place, "[cli]\nserwer = 'x'\n")
    with pytest.raises(InputError, match=r"prony\.toml:2: unknown setting: cli\.serwer"), open_home():
        pass


def test_the_threshold_of_a_file_counts_for_a_comparison_in_a_program(place: Path) -> None:
    write_project(place, '[cli]\nthreshold = "7%"\n')
    with use_settings("compare") as chosen:
        assert chosen["cli.threshold"].value == options_of("compare", "a", "b")["threshold"]
