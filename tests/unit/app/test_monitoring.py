"""Prometheus is found, configured for one server, and watched while it starts."""

from __future__ import annotations

import stat
from pathlib import Path

import pytest
import yaml

from prony.app import monitoring
from prony.cli.main import main
from prony.errors import CapacityError, InputError


def test_without_prometheus_the_command_says_how_to_install_it(
    monkeypatch: pytest.MonkeyPatch, tmp_path: Path, capsys: pytest.CaptureFixture[str]
) -> None:
    monkeypatch.setenv("PATH", str(tmp_path))
    assert main(["monitor", "up"]) == 3
    said = capsys.readouterr().err
    assert "Prometheus is not installed" in said
    assert "apt-get install prometheus" in said


def test_a_program_that_is_not_there_is_named() -> None:
    with pytest.raises(CapacityError, match="/nowhere/prometheus is not a program"):
        monitoring.find_prometheus("/nowhere/prometheus")


def test_the_shipped_configuration_is_pointed_at_a_server_behind_a_proxy(tmp_path: Path) -> None:
    monitoring.write_files(tmp_path, "https://prony.example.org/bench/", "secret")
    server, agents = yaml.safe_load((tmp_path / monitoring.CONFIG).read_text())["scrape_configs"]
    assert (server["scheme"], server["metrics_path"]) == ("https", "/bench/metrics")
    assert server["static_configs"] == [{"targets": ["prony.example.org"]}]
    (discovery,) = agents["http_sd_configs"]
    assert discovery["url"] == "https://prony.example.org/bench/metrics/targets"
    # The agents' own pages need no token, and must not be sent the server's.
    assert "authorization" not in agents
    for part in (server, discovery):
        assert part["authorization"] == {"type": "Bearer", "credentials_file": monitoring.TOKEN}


def test_the_token_is_its_owners_alone_and_is_found_again(tmp_path: Path) -> None:
    assert monitoring.read_token(tmp_path) is None
    for token in ("first", "second"):
        monitoring.write_files(tmp_path, "http://127.0.0.1:7337", token)
        assert stat.S_IMODE((tmp_path / monitoring.TOKEN).stat().st_mode) == 0o600
        assert monitoring.read_token(tmp_path) == token


def test_what_is_no_address_is_refused(tmp_path: Path) -> None:
    with pytest.raises(InputError, match="is not the address"):
        monitoring.write_files(tmp_path, "127.0.0.1", "secret")


def test_a_prometheus_that_ends_at_once_is_told_with_its_last_words(tmp_path: Path) -> None:
    program = tmp_path / "prometheus"
    program.write_text("#!/bin/sh\necho address already in use\nexit 1\n")
    program.chmod(0o755)
    plan = monitoring.MonitorPlan(str(program), tmp_path, 9)
    running = monitoring.running_prometheus(plan, lambda _: False)
    with pytest.raises(CapacityError, match="ended with exit code 1: address already in use"):
        running.__enter__()


def test_a_prometheus_ends_with_the_block(tmp_path: Path) -> None:
    program = tmp_path / "prometheus"
    program.write_text("#!/bin/sh\nexec sleep 1000\n")
    program.chmod(0o755)
    with monitoring.running_prometheus(monitoring.MonitorPlan(str(program), tmp_path, 9), lambda _: True) as process:
        assert process.poll() is None
    assert process.returncode is not None


def test_the_dashboards_are_in_the_package() -> None:
    assert len(list(monitoring.dashboards_folder().glob("*.json"))) == 4
