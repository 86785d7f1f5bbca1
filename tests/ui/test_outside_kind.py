"""A kind of workload that no page has heard of is shown as any other: in a browser, by a server that has it or not."""

from __future__ import annotations

import json
from collections.abc import Iterator
from contextlib import ExitStack
from pathlib import Path

import pytest
from playwright.sync_api import Page, expect

from kinds.package import RECIPE, install_package, prony

from .conftest import Opened, prony_server
from .test_accessibility import faults


@pytest.fixture(scope="module")
def path(tmp_path_factory: pytest.TempPathFactory) -> Iterator[str]:
    with install_package(tmp_path_factory.mktemp("site")) as found:
        yield found


@pytest.fixture(scope="module")
def ran(path: str, tmp_path_factory: pytest.TempPathFactory) -> tuple[Path, str]:
    """A home with one experiment of the outside kind, and its id."""
    folder = tmp_path_factory.mktemp("outside")
    (folder / "recipe.yaml").write_text(RECIPE)
    done = prony("run", str(folder / "recipe.yaml"), "--json", home=folder / "home", path=path)
    assert done.returncode == 0, done.stdout + done.stderr
    return folder / "home", json.loads(done.stdout)["experiment"]["id"]


@pytest.fixture(scope="module")
def url(path: str, ran: tuple[Path, str]) -> Iterator[str]:
    """A server that has the kind installed."""
    with ExitStack() as stack:
        with pytest.MonkeyPatch.context() as patch:
            patch.setenv("PYTHONPATH", path)
            address = stack.enter_context(prony_server(ran[0]))
        yield address


def expect_headings(page: Page, headings: list[str]) -> None:
    table = page.get_by_role("region", name="Numbers of every job")
    expect(table.get_by_role("columnheader")).to_have_text(headings)


@pytest.mark.slow
def test_the_list_is_filtered_by_the_kind(opened: Opened, url: str, ran: tuple[Path, str]) -> None:
    page = opened(url)
    page.goto("/experiments")
    page.get_by_label("Kind").select_option("hashing")
    expect(page).to_have_url(f"{url}/experiments?kind=hashing")
    expect(page.get_by_role("link", name="hashes")).to_be_visible()
    expect(page.get_by_text(f"{ran[1]} · hashing")).to_be_visible()
    page.get_by_label("Kind").select_option("model")
    expect(page.get_by_role("heading", name="No experiment matches")).to_be_visible()


def test_its_columns_sections_and_figures_are_on_the_experiment_s_page(
    opened: Opened, url: str, ran: tuple[Path, str]
) -> None:
    page = opened(url)
    page.goto(f"/experiments/{ran[1]}")
    expect_headings(page, ["Job", "Verdict", "One hash", "Slowest hash"])
    expect(page.get_by_title("hash_ms.p50, lower is better")).to_be_visible()
    page.get_by_role("tab", name="Samples").click()
    for figure, name in (("Distribution", "one hash"), ("Step by step", "step by step")):
        card = page.locator("section.card").filter(has=page.get_by_role("heading", name=figure))
        expect(card.get_by_role("img", name=name)).to_be_visible()
    page.get_by_role("tab", name="Details").click()
    card = page.locator("section.card").filter(has=page.get_by_role("heading", name="What was hashed"))
    expect(card.get_by_text("sha256")).to_be_visible()
    expect(card.get_by_role("region", name="Every hash").get_by_role("row")).to_have_count(8)
    assert faults(page) == []
    page.get_by_role("tab", name="Environment").click()
    expect(page.get_by_text("256 bits")).to_be_visible()


@pytest.mark.slow
def test_a_recipe_of_it_is_written_by_its_form(opened: Opened, url: str) -> None:
    page = opened(url)
    page.goto("/run")
    page.get_by_role("button", name="Fill in a form").click()
    page.get_by_label("What is measured").select_option(label="how fast bytes are hashed")
    page.get_by_label("Bytes").select_option("1048576")
    page.get_by_role("button", name="Write the recipe").click()
    expect(page.get_by_text("the recipe is valid")).to_be_visible()
    expect(page.locator(".cm-content")).to_contain_text("size: 1048576")
    expect(page.locator(".cm-content")).to_contain_text("- md5")


@pytest.mark.slow
def test_two_jobs_of_it_are_compared(opened: Opened, url: str, ran: tuple[Path, str]) -> None:
    page = opened(url)
    page.goto(f"/compare?of={ran[1]}-001,{ran[1]}-002&across=algorithm")
    expect(page.get_by_role("rowheader", name="One hash")).to_be_visible()


@pytest.mark.slow
def test_a_server_without_the_kind_shows_what_is_known_and_says_what_is_missing(
    opened: Opened, path: str, ran: tuple[Path, str], tmp_path: Path
) -> None:
    home = tmp_path / "home"
    folder = tmp_path / "taken"
    assert prony("export", ran[1], "--to", str(folder), home=ran[0], path=path).returncode == 0
    brought = prony("import", str(folder), home=home, path=path)
    assert brought.returncode == 0, brought.stderr
    with prony_server(home) as address:
        page = opened(address)
        page.goto("/experiments?kind=hashing")
        page.get_by_role("link", name="hashes").click()
        expect_headings(page, ["Job", "Verdict", "hash"])
        page.get_by_role("tab", name="Details").click()
        expect(page.get_by_text("The kind of workload 'hashing' is not installed here")).to_be_visible()
        expect(page.get_by_text("algorithm", exact=True)).to_be_visible()
        page.get_by_role("tab", name="Samples").click()
        expect(page.get_by_role("heading", name="This job has no charts")).to_be_visible()
