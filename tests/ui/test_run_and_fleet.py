"""Pages that run recipes and show who runs them: mistakes are corrected, agents come and are lost, nobody is fooled."""

from __future__ import annotations

import json
import os
import re
import signal
import subprocess
import sys
from collections.abc import Iterator
from contextlib import contextmanager
from pathlib import Path

import pytest
from playwright.sync_api import Page, expect

from prony.client import Client
from prony.kinds.model.schema import ModelWorkload
from prony.model.agent import Capabilities, Enrolment
from prony.model.device import Cpu, Device, Gpu, Hardware, Software
from prony.model.lease import LeaseRequest, Progress
from prony.model.queue import Submission
from servers.process import DieWithParent, kill_all

from .conftest import Opened, owner_token, prony_server

HOSTILE = '<img src=x onerror="window.fooled=1"><script>window.fooled=1</script>'
RECIPE = (
    'name: small\nworkload: {kind: model, model: "zoo:noop", engine: "null"}\n'
    "measure: {runs: 5, repeats: 1, isolation: fork}\n"
)
MISTAKEN = 'name: mine\nworkload:\n  kind: model\n  model: "zoo:tiny"\n  engin: onnxruntime\n'


@pytest.fixture(scope="module")
def url(tmp_path_factory: pytest.TempPathFactory) -> Iterator[str]:
    with prony_server(tmp_path_factory.mktemp("run")) as address:
        yield address


def write(page: Page, text: str) -> None:
    """Let a text be all that stands in the editor."""
    page.get_by_role("textbox", name="Recipe").click()
    page.keyboard.press("Control+a")
    page.keyboard.insert_text(text)


def test_a_recipe_with_a_mistake_is_corrected_with_the_editor_s_help_and_submitted(opened: Opened, url: str) -> None:
    page = opened(url)
    page.goto("/run")
    expect(page.get_by_role("heading", name="Nothing written yet")).to_be_visible()
    write(page, MISTAKEN)
    problems = page.get_by_role("list", name="Problems")
    expect(problems).to_contain_text("line 5")
    expect(problems).to_contain_text("did you mean engine?")
    expect(page.get_by_role("button", name="Submit")).to_be_disabled()
    page.locator(".cm-lintRange-error").first.hover()
    page.get_by_role("button", name="Write engine").click()
    expect(page.locator(".cm-content")).to_contain_text("  engine: onnxruntime")
    expect(page.get_by_text("the recipe is valid")).to_be_visible()
    expect(page.get_by_text("some jobs fit no agent")).to_be_visible()
    page.get_by_role("button", name="Submit 1 job").click()
    page.wait_for_url("**/experiments/*")
    with Client(url, owner_token(url)) as client:
        (made,) = client.experiments.page().items
    assert (made.experiment.name, made.experiment.recipe.work(ModelWorkload).engine) == ("mine", "onnxruntime")


def test_the_editor_indents_numbers_wrapped_lines_and_marks_the_wrong_key(opened: Opened, url: str) -> None:
    page = opened(url)
    page.goto("/run")
    write(page, "name: x\ndescription: " + "long words " * 30 + "\nworkload:\n")
    page.keyboard.press("Tab")
    page.keyboard.type("kind: model")
    page.keyboard.press("Enter")  # a word that is whole is no list's to take
    page.keyboard.type("modl: zoo:tiny")
    lines = page.locator(".cm-line")
    expect(lines.nth(3)).to_have_text("  kind: model")
    expect(page.locator(".cm-lintRange-error")).to_have_text(["workload", "modl"])  # which lacks its engine
    tops = [box["y"] for line in lines.all() if (box := line.bounding_box()) is not None]
    numbers = page.locator(".cm-lineNumbers .cm-gutterElement:visible")
    expect(numbers.last).to_have_text("5")
    beside = [box["y"] for number in numbers.all() if (box := number.bounding_box()) is not None]
    assert tops[2] - tops[1] > 1.5 * (tops[3] - tops[2])  # the second line is wrapped
    assert beside[-5:] == pytest.approx(tops, abs=2)


def test_a_person_without_a_mouse_gets_out_of_the_editor_by_escape_and_tab(opened: Opened, url: str) -> None:
    page = opened(url)
    page.goto("/run")
    write(page, "name: x\n")
    editor = page.get_by_role("textbox", name="Recipe")
    expect(editor).to_have_attribute("aria-description", re.compile("press Escape, then Tab"))
    page.keyboard.press("Tab")
    expect(editor).to_be_focused()
    page.keyboard.press("Escape")
    page.keyboard.press("Shift+Tab")
    expect(editor).not_to_be_focused()
    expect(page.locator(".cm-content")).to_contain_text("name: x")


def test_the_editor_completes_keys_and_values_and_says_what_they_mean(opened: Opened, url: str) -> None:
    page = opened(url)
    page.goto("/run")
    write(page, 'name: x\nworkload:\n  kind: model\n  model: "zoo:tiny"\n')
    expect(page.get_by_role("list", name="Problems")).to_contain_text("engine")  # what it helps by is there too
    page.keyboard.type("  en")
    page.keyboard.press("Control+Space")
    offered = page.locator(".cm-tooltip-autocomplete")
    expect(offered).to_contain_text("engine_version")
    page.keyboard.type("gine: op")
    page.keyboard.press("Control+Space")
    # The editor takes no key as an answer in the first moments of a list, lest it swallow a line that was being typed.
    offered.get_by_text("openvino", exact=True).click()
    expect(page.locator(".cm-content")).to_contain_text("engine: openvino")
    page.get_by_text("kind", exact=True).first.hover()
    expect(page.locator(".cm-help")).to_contain_text("which kind of workload this is")


def test_an_example_and_the_form_write_recipes_that_are_good(opened: Opened, url: str) -> None:
    page = opened(url)
    page.goto("/run?example=quickstart.yaml")
    expect(page.get_by_text("the recipe is valid")).to_be_visible()
    expect(page.get_by_role("button", name="Submit 4 jobs")).to_be_enabled()
    page.get_by_role("button", name="Fill in a form").click()
    page.get_by_label("Engines").fill("onnxruntime, openvino")
    page.get_by_role("button", name="Write the recipe").click()
    expect(page.get_by_role("button", name="Submit 2 jobs")).to_be_enabled()
    expect(page.locator(".cm-content")).to_contain_text("- openvino")


def test_an_example_that_replaces_what_was_typed_says_so_and_is_taken_back(opened: Opened, url: str) -> None:
    page = opened(url)
    page.goto("/run")
    write(page, RECIPE)
    replaced = page.get_by_text("Replaced your draft")
    page.get_by_label("Example").select_option("quickstart.yaml")
    expect(page.locator(".cm-content")).to_contain_text("name: quickstart")
    expect(replaced).to_be_visible()
    page.get_by_role("button", name="Undo").click()
    expect(page.locator(".cm-content")).to_contain_text("name: small")
    expect(replaced).to_have_count(0)
    page.get_by_role("button", name="Fill in a form").click()
    expect(page.get_by_role("dialog")).to_contain_text("This replaces the recipe in the editor.")


def test_each_form_writes_a_recipe_that_is_good_and_a_duet_keeps_what_was_there(opened: Opened, url: str) -> None:
    page = opened(url)
    for form, jobs in (("bench", 1), ("llm", 1), ("hardware", 3), ("command", 1), ("service", 4)):
        page.goto(f"/run?form={form}")
        page.get_by_role("button", name="Write the recipe").click()
        expect(
            page.get_by_role("button", name=f"Submit {jobs} job{'s' if jobs > 1 else ''}", exact=True)
        ).to_be_enabled()
    page.goto("/run?example=fleet.yaml&form=duet")
    page.get_by_label("Side b").fill("threads")
    page.get_by_role("button", name="Write the recipe").click()
    expect(page.get_by_text("side b: threads is not PATH=VALUE")).to_be_visible()
    page.get_by_label("Side b").fill("threads=2")
    page.get_by_role("button", name="Write the recipe").click()
    expect(page.locator(".cm-content")).to_contain_text("workload.threads: 2")
    expect(page.get_by_text("the recipe is valid")).to_be_visible()


def test_an_admin_checks_the_store(opened: Opened, url: str) -> None:
    page = opened(url)
    page.goto("/settings?part=store")
    page.get_by_role("button", name="Check all samples").click()
    expect(page.get_by_text("intact", exact=True)).to_be_visible()


@contextmanager
def agent_process(url: str, home: Path, token_file: Path) -> Iterator[subprocess.Popen[bytes]]:
    command = [sys.executable, "-m", "prony", "agent", "start", "--server", url, "--name", "rack-7"]
    home.mkdir()
    with (home / "agent.log").open("wb") as log:
        process = subprocess.Popen(
            [*command, "--token-file", str(token_file)], env=os.environ | {"PRONY_HOME": str(home)},
            stdout=log, stderr=log, start_new_session=True,
            preexec_fn=DieWithParent(signal.SIGKILL),  # noqa: PLW1509 - it makes one system call
        )  # fmt: skip
    try:
        yield process
    finally:
        kill_all(process.pid)
        process.wait(timeout=120)


@pytest.mark.slow
def test_an_agent_is_enrolled_by_a_one_time_token_killed_and_shown_as_lost(opened: Opened, tmp_path: Path) -> None:
    home = tmp_path / "home"
    home.mkdir()
    asked = [sys.executable, "-m", "prony", "tokens", "add", "boss", "--role", "admin", "--json"]
    made = subprocess.run(asked, env=os.environ | {"PRONY_HOME": str(home)}, capture_output=True, check=True)
    with prony_server(home, "--lease-ttl", "1s") as url:
        page = opened(url, logs_in=False)
        page.goto("/fleet")
        page.get_by_label("Token").fill(json.loads(made.stdout)["secret"])
        page.get_by_role("button", name="Enter").click()
        expect(page.get_by_role("heading", name="No agent yet")).to_be_visible()
        page.get_by_role("button", name="Enrol an agent").first.click()
        page.get_by_label("What is the token for?").fill("rack-7")
        page.get_by_role("button", name="Make a token and show the command").click()
        shown = page.locator("dialog pre").inner_text().splitlines()
        assert shown[-1] == f"prony agent start --server {url} --token-file enrol.token"
        token_file = tmp_path / "enrol.token"
        token_file.write_text(shown[1])
        with agent_process(url, tmp_path / "agent", token_file) as agent:
            expect(page.get_by_text("rack-7 came")).to_be_visible()
            page.get_by_role("button", name="Close").click()
            line = page.get_by_role("row", name="rack-7")
            expect(line).to_contain_text("active")
            kill_all(agent.pid)
            expect(line).to_contain_text("lost")
            page.goto("/")
            expect(page.get_by_text("agent lost")).to_be_visible()


def enrolled(client: Client, name: str, device_name: str) -> str:
    """Enrol an agent whose device calls itself and all its parts so; return the agent's id."""
    gpu = Gpu(index=0, name=device_name, vendor=device_name)
    cpu = Cpu(architecture="x", model=device_name, logical_cores=1, allowed_cores=1)
    hardware = Hardware(cpu=cpu, memory_mib=1024, gpus=(gpu,))
    software = Software(os="linux", kernel="6", python="3", prony="0")
    device = Device(name=device_name, hardware_id="h", software_id="s", hardware=hardware, software=software)
    facts = {"kinds": "model", "schemes": "zoo", "engine": ("null", device_name), "engine.null.unit": "cpu",
             f"engine.{device_name}.unit": device_name}  # fmt: skip
    asked = Enrolment(
        name=name, device_key=name, incarnation="i1", capabilities=Capabilities(device=device, facts=facts)
    )
    return client.agents.enroll(asked).agent.id


def test_an_agent_is_drained_taken_back_and_removed(opened: Opened, url: str) -> None:
    with Client(url, owner_token(url)) as client:
        agent_id = enrolled(client, "spare", "a spare machine")
        page = opened(url)
        page.goto("/fleet")
        line = page.get_by_role("row", name="spare")
        line.get_by_role("button", name="Drain").click()
        expect(line).to_contain_text("draining")
        line.get_by_role("button", name="Reset").click()
        expect(line).to_contain_text("active")
        line.get_by_role("button", name="Remove").click()
        page.get_by_role("button", name="Remove it").click()
        expect(line).to_have_count(0)
        assert agent_id not in {one.id for one in client.agents.page().items}


def test_hostile_device_names_and_log_lines_do_nothing(opened: Opened, url: str) -> None:
    with Client(url, owner_token(url)) as client:
        agent_id = enrolled(client, "evil", HOSTILE)
        made = client.experiments.submit(Submission(text=RECIPE + f"description: {json.dumps(HOSTILE)}\n"))
        lease = client.leases.lease(LeaseRequest(agent_id=agent_id, incarnation="i1", wait_s=5))
        assert lease is not None
        client.leases.progress(lease.id, Progress(log=f"{HOSTILE}\n"))
        page = opened(url)
        for path, place in (
            ("/fleet", page.get_by_role("row", name="evil")),
            ("/fleet?part=abilities", page.get_by_role("table")),
            (f"/experiments/{made.experiment.id}?part=logs&job={lease.job.id}", page.get_by_label("Log of the job")),
            (f"/experiments/{made.experiment.id}?part=recipe", page.locator("main")),
        ):
            page.goto(path)
            expect(place).to_contain_text("window.fooled=1")
            assert page.evaluate("window.fooled") is None
            assert page.locator("img[src=x]").count() == 0
        client.experiments.cancel(made.experiment.id)
