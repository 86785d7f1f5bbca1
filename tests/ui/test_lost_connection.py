"""The server goes away while somebody looks, and comes back: the page says so, and is right afterwards."""

from __future__ import annotations

import re
from collections.abc import Callable
from pathlib import Path

from playwright.sync_api import Page, expect

from prony.client import Client
from prony.model.agent import Capabilities, Enrolment
from prony.model.lease import LeaseRequest, Progress
from prony.model.queue import Submission
from servers.ports import free_port

from .conftest import owner_token, prony_server

_RECIPE = """name: long
workload: {kind: model, model: "zoo:noop", engine: "null"}
matrix: {workload.batch_size: [1, 2]}
measure: {runs: 5, repeats: 1, isolation: fork}
"""
_FACTS = {"kinds": "model", "schemes": "zoo", "engine": ("null",), "engine.null.unit": "cpu"}


def test_who_watches_an_experiment_is_told_that_it_is_cut_off_and_sees_what_happened_meanwhile(
    tmp_path: Path, opened: Callable[[str], Page]
) -> None:
    home = tmp_path / "server"
    asked = Enrolment(name="rack", device_key="rack", incarnation="i1", capabilities=Capabilities(facts=_FACTS))
    # The same port both times, and a lease that lasts until the server is back, however slow the machine is.
    options = ("--port", str(free_port()), "--lease-ttl", "10m")
    with prony_server(home, *options) as url:
        with Client(url, owner_token(url)) as client:
            agent_id = client.agents.enroll(asked).agent.id
            made = client.experiments.submit(Submission(text=_RECIPE)).experiment.id
            lease = client.leases.lease(LeaseRequest(agent_id=agent_id, incarnation="i1", wait_s=50))
            assert lease is not None
            client.leases.progress(lease.id, Progress(log="first words\n"))
        page, other = opened(url), opened(url)
        page.goto(f"/experiments/{made}?part=logs")
        expect(page.get_by_label("Log of the job")).to_contain_text("first words")
        other.goto(f"/experiments/{made}")
        expect(other.get_by_text("1 running, 1 waiting")).to_be_visible()
        token = owner_token(url)
    (home / "server.json").unlink(missing_ok=True)
    expect(page.get_by_text("not live")).to_be_visible()
    expect(page.get_by_text("The connection is lost; trying again.")).to_be_visible()
    expect(page.get_by_label("Log of the job")).to_contain_text("first words")
    with prony_server(home, *options) as again, Client(again, token) as client:
        client.leases.progress(lease.id, Progress(log="last words\n", log_offset=len("first words\n")))
        client.experiments.cancel(made)
        expect(page.get_by_text("live", exact=True)).to_be_visible()
        expect(page.get_by_label("Log of the job")).to_contain_text("first words\nlast words")
        expect(other.get_by_text("live", exact=True)).to_be_visible()
        expect(other.get_by_text("1 of 2 jobs ended")).to_be_visible()
        expect(other.get_by_text("1 cancelled, 1 running")).to_be_visible()


def test_a_page_that_was_never_opened_waits_for_the_server_under_a_banner_and_opens_when_it_is_back(
    tmp_path: Path, opened: Callable[[str], Page]
) -> None:
    home = tmp_path / "server"
    options = ("--port", str(free_port()))
    with prony_server(home, *options) as url:
        page = opened(url)
        page.goto("/experiments")
        expect(page.get_by_text("No experiments yet")).to_be_visible()
        expect(page.get_by_text("live", exact=True)).to_be_visible()
    (home / "server.json").unlink(missing_ok=True)
    banner = page.get_by_role("alert").filter(has_text="The server does not answer.")
    expect(banner).to_be_visible()
    expect(page.get_by_text("No experiments yet")).to_be_visible()
    page.get_by_role("link", name="Schedules").click()
    expect(page).to_have_url(re.compile("/schedules$"))
    expect(banner).to_be_visible()
    page.get_by_role("link", name="Help").click()
    expect(page.get_by_text("The server does not answer. Try again when it is back.")).to_be_visible()
    expect(page).to_have_url(re.compile("/schedules$"))
    with prony_server(home, *options):
        expect(page.get_by_role("heading", name="Schedules")).to_be_visible()
        expect(page.get_by_text("No schedule yet")).to_be_visible()
        expect(banner).to_have_count(0)
        expect(page.get_by_text("live", exact=True)).to_be_visible()
        page.get_by_role("link", name="Help").click()
        page.wait_for_url(re.compile("/help"))
