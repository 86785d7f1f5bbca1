"""Samples that are not what was measured are noticed by whoever looks at them, and the job is named."""

from __future__ import annotations

import json
import shutil
from pathlib import Path

import pytest
from server.house import served

from prony.cli.main import main
from prony.instruments.samples import SAMPLES
from prony.model.result import Result

RECIPE = """
name: small
workload: {kind: model, model: "zoo:noop", engine: onnxruntime, threads: 1}
matrix: {workload.batch_size: [1, 2]}
measure: {runs: 20, repeats: 1, warmup: 1, check: false}
"""


@pytest.fixture(scope="module")
def whole_home(tmp_path_factory: pytest.TempPathFactory) -> Path:
    """A home with an experiment of two jobs, to be copied."""
    folder = tmp_path_factory.mktemp("whole")
    (folder / "small.yaml").write_text(RECIPE)
    with pytest.MonkeyPatch.context() as patch:
        patch.setenv("PRONY_HOME", str(folder / "home"))
        assert main(["run", str(folder / "small.yaml")]) == 0
    return folder / "home"


@pytest.fixture
def samples(prony_home: Path, whole_home: Path) -> list[Path]:
    """Return the sample file of each job."""
    shutil.copytree(whole_home, prony_home)
    found = sorted(prony_home.glob(f"results/*/*/{SAMPLES}"))
    assert len(found) == 2
    return found


def flip(path: Path) -> None:
    """Change one bit in the middle, as a bad disk does."""
    content = bytearray(path.read_bytes())
    content[len(content) // 2] ^= 1
    path.write_bytes(content)


@pytest.mark.parametrize("how", ["changed", "cut", "gone"])
def test_damaged_samples_are_noticed_and_the_job_is_named(
    samples: list[Path], tmp_path: Path, capsys: pytest.CaptureFixture[str], how: str
) -> None:
    whole = [["show", "last"], ["doctor", "--store"], ["export", "last", "--to", str(tmp_path / "good")]]
    assert [main(one) for one in whole] == [0, 0, 0]
    if how == "changed":
        flip(samples[1])
    elif how == "cut":
        samples[1].write_bytes(samples[1].read_bytes()[:-7])
    else:
        samples[1].unlink()
    job = samples[1].parent.name
    capsys.readouterr()
    for command in (["show", "last"], ["doctor", "--store"], ["export", "last", "--to", str(tmp_path / "bad")]):
        assert main(command) == 3, command
        said = capsys.readouterr().err
        assert f"job {job}: " in said
        assert str(samples[1]) in said
        assert samples[0].parent.name not in said
    assert not (tmp_path / "bad").exists()
    assert main(["doctor", "--store", "--json"]) == 3
    [damage] = json.loads(capsys.readouterr().out)["damages"]
    assert damage["job_id"] == job


def test_a_result_of_an_older_prony_is_read_to_its_end_instead(
    samples: list[Path], capsys: pytest.CaptureFixture[str]
) -> None:
    from prony.store.folder import damage_in, read_nouns

    kept = read_nouns(samples[0].parent)
    assert set(kept.result.checksums) == {SAMPLES, "telemetry.parquet"}
    old = Result.read(kept.result.model_dump(mode="json") | {"checksums": {}})
    assert damage_in(kept.path, kept.job, old) is None
    samples[0].write_bytes(samples[0].read_bytes()[:-7])
    assert "is damaged" in (damage_in(kept.path, kept.job, old) or "")


def test_a_server_notices_damaged_samples_for_whoever_shows_them(
    samples: list[Path], prony_home: Path, capsys: pytest.CaptureFixture[str]
) -> None:
    with served(prony_home) as house:
        command = ["show", "last", "--server", house.url]
        assert main(command) == 0
        flip(samples[1])
        capsys.readouterr()
        assert main(command) == 3
        said = capsys.readouterr()
    assert "small" in said.out
    assert f"job {samples[1].parent.name}: " in said.err
    assert str(samples[1]) in said.err
    assert samples[0].parent.name not in said.err
