"""The owner of a server types no token: commands and agents with its home just work, and nobody else does."""

from __future__ import annotations

import json
import os
import stat
import subprocess
import sys
from pathlib import Path

import httpx
import pytest

from servers.commands import call_prony
from servers.ports import free_port
from servers.prony import Served, prony_serving

RECORDED_AGENT = str(Path(__file__).parents[1] / "chaos" / "recorded_agent.py")
WITHIN_S = 120


def prony(home: Path, *words: str, **extra: str) -> subprocess.CompletedProcess[str]:
    environment = {key: value for key, value in os.environ.items() if key not in ("PRONY_TOKEN", "PRONY_SERVER")}
    return call_prony(*words, code=None, environment=environment | {"PRONY_HOME": str(home)} | extra)


def enrolled(home: Path, server: Served, *words: str) -> subprocess.CompletedProcess[str]:
    command = [sys.executable, RECORDED_AGENT, "enroll", "--server", server.url, "--json", *words]
    environment = os.environ | {"PRONY_HOME": str(home), "FLEET_ENGINE": "onnxruntime"}
    return subprocess.run(command, env=environment, capture_output=True, text=True, check=False, timeout=WITHIN_S)


def test_the_start_says_who_may_do_what(tmp_path: Path) -> None:
    options = ("--trusted-proxy", "10.0.0.0/8", "--sark", "--sark-port", "0", "--sark-redis-port", "0")
    with prony_serving(tmp_path / "home", *options) as server:
        assert "only this machine can connect; every request needs a token" in server.said
        assert str(tmp_path / "home" / "owner-token") in server.said
        assert "X-Forwarded-For is trusted from 10.0.0.0/8" in server.said
        assert "anyone on this machine may use it, without a token" in server.said
        assert server.link.startswith(f"{server.url}/login?code=")
        assert server.token not in server.said
        assert stat.S_IMODE((tmp_path / "home" / "owner-token").stat().st_mode) == 0o600
    sark_for_anyone = ("--sark-bind", "0.0.0.0", "--sark-open-to-anyone")
    with prony_serving(tmp_path / "home", "--host", "0.0.0.0", *sark_for_anyone, *options[2:]) as server:
        assert "other machines can connect; every request needs a token" in server.said
        assert "ANYONE who reaches the port may use it, without a token" in server.said
    with prony_serving(tmp_path / "home", "--no-auth") as server:
        assert "--no-auth: everyone who connects is an admin" in server.said
        assert "/login?code=" not in server.said
        assert httpx.get(f"{server.url}/api/v1/audit", trust_env=False).is_success


def test_commands_with_the_server_s_home_just_work_and_others_are_refused(tmp_path: Path) -> None:
    with prony_serving(tmp_path / "home") as server:
        for words in (("agents", "--json"), ("agents", "--json", "--server", server.url)):
            done = prony(tmp_path / "home", *words)
            assert (done.returncode, done.stdout) == (0, "[]\n"), done.stderr
        other = prony(tmp_path / "other", "agents", "--server", server.url)
        assert other.returncode == 2
        assert "a token is needed" in other.stderr
        # A token that was given counts, for better or worse.
        given = prony(tmp_path / "home", "agents", "--server", server.url, PRONY_TOKEN="prony_wrong")
        assert given.returncode == 2
        given = prony(tmp_path / "other", "agents", "--json", "--server", server.url, PRONY_TOKEN=server.token)
        assert given.returncode == 0, given.stderr


def test_a_new_link_is_printed_on_demand_and_logs_in(tmp_path: Path) -> None:
    with prony_serving(tmp_path / "home") as server:
        printed = prony(tmp_path / "home", "server", "link").stdout.strip()
        assert httpx.get(printed, trust_env=False).status_code == 303
        told = json.loads(prony(tmp_path / "home", "server", "link", "--json").stdout)
        assert httpx.get(told["url"], trust_env=False).status_code == 303
        assert prony(tmp_path / "other", "server", "link", "--server", server.url).returncode == 2


def test_links_lead_to_the_address_by_which_others_reach_the_server(tmp_path: Path) -> None:
    with prony_serving(tmp_path / "home", "--url", "https://prony.example.org/") as server:
        for printed in (prony(tmp_path / "home", "server", "link").stdout.strip(), server.link):
            assert printed.startswith("https://prony.example.org/login?code=")
            here = printed.replace("https://prony.example.org", server.url)
            assert httpx.get(here, trust_env=False).status_code == 303


@pytest.mark.parametrize("host", ["127.0.0.1", "::1", "0.0.0.0"])
def test_the_owner_is_known_wherever_the_server_listens(tmp_path: Path, host: str) -> None:
    with prony_serving(tmp_path / "home", "--host", host) as server:
        done = prony(tmp_path / "home", "agents", "--json")
        assert (done.returncode, done.stdout) == (0, "[]\n"), server.url + done.stderr


def test_an_agent_with_the_server_s_home_enrols_by_itself_and_gets_a_token_of_its_own(tmp_path: Path) -> None:
    with prony_serving(tmp_path / "home") as server:
        done = enrolled(tmp_path / "home", server)
        assert done.returncode == 0, done.stderr
        kept = json.loads(Path(json.loads(done.stdout)["kept_in"]).read_text())
        assert kept["token"]
        assert kept["token"] != server.token
        other = enrolled(tmp_path / "other", server)
        assert other.returncode == 2
        assert "a token is needed" in other.stdout + other.stderr


def test_agents_and_owner_keep_their_tokens_over_a_restart(tmp_path: Path) -> None:
    port = str(free_port())
    with prony_serving(tmp_path / "home", "--port", port) as server:
        token = server.token
        done = enrolled(tmp_path / "home", server)
        assert done.returncode == 0, done.stderr
        kept = json.loads(Path(json.loads(done.stdout)["kept_in"]).read_text())
    with prony_serving(tmp_path / "home", "--port", port) as server:
        assert server.token == token
        own = {"Authorization": f"Bearer {kept['token']}"}
        answer = httpx.get(f"{server.url}/api/v1/clock", headers=own, trust_env=False)
        assert answer.is_success, answer.text
        again = json.loads(enrolled(tmp_path / "home", server).stdout)
        assert again["agent"]["id"] == kept["id"]
