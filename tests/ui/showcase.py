"""A server that has something to show on every page and in every dialog, and the list of both."""

from __future__ import annotations

from collections.abc import Iterator
from contextlib import contextmanager
from dataclasses import dataclass
from pathlib import Path

from playwright.sync_api import Page, expect

from prony.app.recordings import import_archive, import_recordings
from prony.store.home import Home
from prony.store.store import Store
from servers.waiting import wait_for

from .agent import enrol_device, prony_agent
from .conftest import api, prony_server
from .recorded import Kind, history_ms, record

# Real runs of the kinds that the demonstration has none of, made by `tools.record_demo --target`.
RECORDED_KINDS = Path(__file__).parent / "recorded_kinds.tar.gz"
RECIPE = 'name: nightly\nworkload: {kind: model, model: "zoo:tiny", engine: onnxruntime}\n'
_HELLO = "name: hello\nworkload: {kind: script, command: [echo, hello]}\nmeasure: {repeats: 6}\n"
_EXPERIMENT_PARTS = ("jobs", "samples", "details", "telemetry", "logs", "files", "environment", "recipe")
# Every page, with every tab, and every kind of workload that has a picture of its own.
PAGES: dict[str, str] = {
    "overview": "/",
    "run": "/run?example=batch-and-threads.yaml",
    "experiments": "/experiments",
    "experiment": "/experiments/{tasks}",
    **{f"experiment-{part}": f"/experiments/{{tasks}}?part={part}" for part in _EXPERIMENT_PARTS},
    "experiment-load-part": "/experiments/{load}?part=load",
    "experiment-load": "/experiments/{load}",
    "experiment-llm": "/experiments/{llm}",
    "experiment-llm-samples": "/experiments/{llm}?part=samples",
    "experiment-hardware": "/experiments/{hardware}",
    "experiment-duet": "/experiments/{duet}",
    "experiment-failed": "/experiments/{failed}",
    "experiment-failed-jobs": "/experiments/{failed}?part=jobs",
    "experiment-waiting": "/experiments/{waiting}",
    "import": "/import",
    "compare": "/compare?of=nightly017,nightly020",
    "compare-duet": "/compare?of={duet}",
    "compare-llm": "/compare?of={llm},{llm}&anyway=true",
    "matrix": "/matrix?ids={llm}&rows=prompt&columns=batch",
    "matrix-tasks": "/matrix?ids={tasks}&rows=unit&columns=engine&metric=rouge_1.mean",
    "load": "/load?ids={load}",
    "history": "/history",
    "series": "/history/{series}",
    "fleet": "/fleet",
    **{f"fleet-{part}": f"/fleet?part={part}" for part in ("abilities", "queue", "jobs", "failures", "targets")},
    "device": "/fleet/rack-7",
    "device-of-an-agent": "/fleet/{agent}",
    "monitoring": "/monitoring",
    "schedules": "/schedules",
    "schedule": "/schedules/nightly",
    "alarms": "/alarms",
    "alarm": "/alarms/ops",
    "reports": "/reports?of={tasks}",
    "settings": "/settings",
    **{f"settings-{part}": f"/settings?part={part}" for part in ("trail", "store", "look", "about")},
    "missing": "/experiments/nosuch",
}
# Where each dialog is opened, and how: buttons are clicked, `LABEL=TEXT` is written, `[LABEL]` is ticked.
DIALOGS: tuple[tuple[str, ...], ...] = (
    ("/experiments/{tasks}", "Export"),
    ("/experiments/{tasks}", "Delete"),
    ("/experiments/{waiting}", "Cancel"),
    ("/experiments", "[Choose summarize-fleet]", "Delete"),
    ("/run", "Fill in a form"),
    *((f"/run?example=quickstart.yaml&form={form}",) for form in ("llm", "hardware", "command", "service", "duet")),
    ("/fleet", "Enrol an agent"),
    ("/fleet", "Enrol an agent", "What is the token for?=rack-8", "Make a token and show the command"),
    ("/fleet", "Remove"),
    ("/settings", "Make a token"),
    ("/settings", "Make a token", "Name=bob", "Make it"),
    ("/settings", "Revoke"),
    ("/alarms", "Add an alarm"),
    ("/alarms", "Add an alarm", "Name=night", "Add it"),
    ("/alarms/ops", "Remove"),
    ("/schedules", "Add a schedule"),
    ("/schedules/nightly", "Remove"),
    ("/history/{series}", "Pin another"),
    ("/history/{series}", "Clear"),
    ("/history/{series}", "Acknowledge"),
)


@dataclass(frozen=True)
class Showcase:
    """The server's address, and the ids that its pages are asked for by."""

    url: str
    ids: dict[str, str]


@contextmanager
def open_showcase(folder: Path) -> Iterator[Showcase]:
    """Serve recorded experiments of every kind, a history that got worse, one that waits, and one of each removable."""
    home = Home(folder).create()
    names: dict[str, str] = {}
    import_recordings(home, lambda one: names.update({one.name: one.id}))
    with RECORDED_KINDS.open("rb") as archive:
        import_archive(home, archive, lambda one: names.update({one.name: one.id}))
    with Store.open(home) as store:
        for place, value in enumerate(history_ms(24, change=18)):
            record(store, place, [value], Kind(engine_version="1.20.0" if place < 18 else "1.21.0"))
    with prony_server(home.root) as url, api(url) as client:
        series = client.get("/series", params={"name": "nightly"}).raise_for_status().json()["items"][0]["id"]
        made = client.post("/experiments", json={"text": RECIPE}).raise_for_status().json()["experiment"]["id"]
        for path, body in (
            ("/schedules", {"submission": {"text": RECIPE}, "cron": "0 3 * * *"}),
            ("/alarms", {"name": "ops", "when": "experiment failed"}),
            ("/tokens", {"name": "ann", "role": "viewer"}),
        ):
            client.post(path, json=body).raise_for_status()
        client.put(f"/series/{series}/baseline", json={}).raise_for_status()
        enrol_device(client, "rack-7")
        ids = {
            "tasks": names["summarize-fleet"], "llm": names["llm"], "hardware": names["hardware"],
            "duet": names["batch-duet"], "load": names["chat-load"], "failed": names["nightly-index"],
            "series": series, "waiting": made,
        }  # fmt: skip
        yield Showcase(url, ids)


@contextmanager
def add_agent(showcase: Showcase, folder: Path) -> Iterator[Showcase]:
    """Have a real agent, which ran one job and takes none of those that wait."""
    with (
        api(showcase.url) as client,
        prony_agent(folder, showcase.url, "--name", "bench-2", "--kinds", "script", "--model-private", "allow"),
    ):
        made = client.post("/experiments", json={"text": _HELLO}).raise_for_status().json()["experiment"]["id"]
        wait_for(lambda: client.get(f"/experiments/{made}").json()["experiment"]["ended_at"], "the job", 120)
        agents = client.get("/agents").raise_for_status().json()["items"]
        agent = next(one["id"] for one in agents if one["name"] == "bench-2")
        yield Showcase(showcase.url, showcase.ids | {"agent": agent})


def go(page: Page, showcase: Showcase, path: str) -> None:
    """Open a page and wait until it shows what it has."""
    page.goto(path.format(**showcase.ids))
    expect(page.locator("main h1")).to_be_visible()
    expect(page.locator("main .loading")).to_have_count(0)


def open_dialog(page: Page, showcase: Showcase, path: str, *steps: str) -> None:
    """Go to a page, take the steps that open a dialog there, and wait until it shows what it has."""
    go(page, showcase, path)
    for step in steps:
        take_step(page, step)
    dialog = page.get_by_role("dialog")
    expect(dialog).to_be_visible()
    expect(dialog.locator(".loading")).to_have_count(0)
    expect(dialog).to_have_attribute("aria-busy", "false")


def take_step(page: Page, step: str) -> None:
    """Click, write or tick, in the open dialog where there is one."""
    dialog = page.locator("dialog[open]")
    place = dialog if dialog.count() else page.locator("main")
    label, is_written, text = step.partition("=")
    if is_written:
        place.get_by_label(label).fill(text)
    elif step.startswith("["):
        place.get_by_label(step.strip("[]")).first.check()
    else:
        place.get_by_role("button", name=step, exact=True).first.click()
        expect(page.get_by_role("dialog")).to_be_visible()
