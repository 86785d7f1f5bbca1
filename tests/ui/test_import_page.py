"""Results that were measured elsewhere come in through a browser as a folder, checked as those of a command are."""

from __future__ import annotations

from collections.abc import Iterator
from pathlib import Path

import pytest
from playwright.sync_api import expect

from prony.store import transfer
from prony.store.home import Home
from prony.store.result_tar import pack
from prony.store.store import Store

from .conftest import Opened, api, prony_server
from .recorded import Kind, record


@pytest.fixture(scope="module")
def url(tmp_path_factory: pytest.TempPathFactory) -> Iterator[str]:
    with prony_server(tmp_path_factory.mktemp("importing")) as address:
        yield address


@pytest.fixture
def folder(tmp_path: Path) -> Path:
    """Export an experiment of another home."""
    with Store.open(Home(tmp_path / "elsewhere")) as store:
        return transfer.export(store, record(store, 1, [2.5], Kind(name="brought")), tmp_path / "export")


def test_a_folder_is_packed_in_the_browser_and_kept_by_the_server(opened: Opened, url: str, folder: Path) -> None:
    page = opened(url)
    page.goto("/experiments")
    page.get_by_role("link", name="Import").first.click()
    page.get_by_label("Result folder or exported folder").set_input_files(folder)
    kept = page.get_by_role("region", name="Imported")
    expect(kept).to_contain_text("brought")
    kept.get_by_role("link", name="brought").click()
    expect(page.get_by_role("heading", level=1)).to_contain_text("brought")
    with api(url) as client:
        assert [one["experiment"]["name"] for one in client.get("/experiments").json()["items"]] == ["brought"]


def test_the_tar_of_a_server_s_own_export_is_taken_again(
    opened: Opened, url: str, folder: Path, tmp_path: Path
) -> None:
    with api(url) as client:
        packed = pack(folder, tmp_path / "brought.tar")
        sent = client.put(f"/imports/{packed.sha256}", content=(tmp_path / "brought.tar").read_bytes())
        found = sent.json()["experiment"]["id"]
        tar = tmp_path / "exported.tar"
        tar.write_bytes(client.get(f"/experiments/{found}/export").raise_for_status().content)
        client.delete(f"/experiments/{found}").raise_for_status()
        page = opened(url)
        page.goto("/import")
        page.get_by_label("Exported tar").set_input_files(tar)
        expect(page.get_by_role("region", name="Imported")).to_contain_text("brought")
        assert client.get(f"/experiments/{found}/results").json()["entries"][0]["summary"]["runs"]


def test_a_folder_that_is_no_export_is_refused_with_a_reason(opened: Opened, url: str, tmp_path: Path) -> None:
    page = opened(url)
    page.goto("/import")
    (tmp_path / "notes").mkdir()
    (tmp_path / "notes" / "todo.txt").write_text("nothing measured")
    page.get_by_label("Result folder or exported folder").set_input_files(tmp_path / "notes")
    expect(page.get_by_role("alert")).to_contain_text("what was sent is neither an export nor a result folder")
