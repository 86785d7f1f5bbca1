"""Images are pulled once, whoever needs them, and from mirrors where some are set; engines are small scripts."""

from __future__ import annotations

import hashlib
import subprocess
import sys
from concurrent.futures import ThreadPoolExecutor
from pathlib import Path

import pytest

from prony.app.settings import SHARED_SETTINGS, SettingsFile, resolve_settings
from prony.errors import CapacityError, InputError
from prony.model.setting import value_as_text
from prony.runner.containers import ContainerEngine
from prony.runner.images import MIRRORS_VARIABLE, ReadyImage, find_mirror, prepare_image, split_image

# Keeps images as files of their names.
ENGINE = """#!/bin/sh
cd {folder}
echo "$*" >> words
name() {{ printf '%s' "$1" | tr -c 'a-zA-Z0-9\\n' -; }}
case "$1" in
  image) [ -e "have-$(name "$3")" ] || exit 1; printf '[{{"Id": "%064d", "RepoDigests": ["at@sha256:7"]}}]' 1;;
  pull)
    case "$2" in
      /*) printf 'image %s' "$3" > "$2";;
      *missing*) echo "manifest unknown" >&2; exit 125;;
      *) touch "have-$(name "$2")";;
    esac;;
  load) touch "have-$(name "$(cat "$3")")";;
  build) printf 'image %s' "$3" > "$2";;
esac
"""
PREPARE = """
import sys
from pathlib import Path
from prony.runner.containers import ContainerEngine
from prony.runner.images import prepare_image
print(prepare_image(ContainerEngine(sys.argv[1]), sys.argv[2], Path(sys.argv[3])).reference)
"""


@pytest.fixture
def cache(tmp_path: Path) -> Path:
    return tmp_path / "cache"


def make_engine(folder: Path, name: str) -> ContainerEngine:
    path = folder / name
    path.write_text(ENGINE.format(folder=folder))
    path.chmod(0o755)
    return ContainerEngine(str(path))


def words_of(folder: Path, verb: str) -> list[str]:
    return [line for line in (folder / "words").read_text().splitlines() if line.startswith(f"{verb} ")]


@pytest.mark.parametrize("name", ["podman", "apptainer"])
def test_two_processes_that_need_an_image_pull_it_once(name: str, tmp_path: Path, cache: Path) -> None:
    engine = make_engine(tmp_path, name)
    words = [sys.executable, "-P", "-c", PREPARE, engine.path, "org/image:1", str(cache)]
    processes = [subprocess.Popen(words, stdout=subprocess.PIPE, text=True) for _ in range(2)]
    first, second = (process.communicate(timeout=240)[0] for process in processes)
    assert first == second != ""
    assert len(words_of(tmp_path, "pull")) == 1


def test_many_threads_that_need_an_image_pull_it_once_and_run_it_by_its_digest(tmp_path: Path, cache: Path) -> None:
    engine = make_engine(tmp_path, "podman")
    with ThreadPoolExecutor(8) as pool:
        found = set(pool.map(lambda _: prepare_image(engine, "org/image:1", cache, {}), range(8)))
    assert found == {ReadyImage("at@sha256:7", "at@sha256:7")}
    assert words_of(tmp_path, "pull") == ["pull org/image:1"]


def test_apptainer_keeps_an_image_by_its_checksum_and_runs_it_again_by_that(tmp_path: Path, cache: Path) -> None:
    engine = make_engine(tmp_path, "apptainer")
    ready = prepare_image(engine, "org/image:1", cache, {})
    digest = hashlib.sha256(b"image docker://org/image:1").hexdigest()
    assert ready == ReadyImage(str(cache / "images" / f"{digest}.sif"), f"sha256:{digest}")
    assert prepare_image(engine, f"sha256:{digest}", cache, {}) == ready
    with pytest.raises(CapacityError, match="is not in"):
        prepare_image(engine, f"sha256:{'0' * 64}", cache, {})


def test_an_image_that_a_registry_knows_by_its_digest_is_pulled_by_it(tmp_path: Path, cache: Path) -> None:
    engine = make_engine(tmp_path, "podman")
    prepare_image(engine, "org/image:1", cache, {}, digest="org/image@sha256:5")
    assert words_of(tmp_path, "pull") == ["pull org/image@sha256:5"]


def test_an_image_of_this_machine_alone_is_found_by_its_digest_or_refused(tmp_path: Path, cache: Path) -> None:
    engine = make_engine(tmp_path, "apptainer")
    ready = prepare_image(engine, "org/image:1", cache, {})
    assert prepare_image(engine, "org/image:2", cache, {}, digest=ready.digest) == ready
    assert len(words_of(tmp_path, "pull")) == 1
    with pytest.raises(CapacityError, match="the earlier run used sha256:000") as refused:
        prepare_image(engine, "org/image:1", cache, {}, digest=f"sha256:{'0' * 64}")
    assert refused.value.code == "no_image"


def test_an_image_file_is_run_again_only_while_it_has_the_same_bytes(tmp_path: Path, cache: Path) -> None:
    engine, file = make_engine(tmp_path, "apptainer"), tmp_path / "x.sif"
    file.write_bytes(b"one")
    ready = prepare_image(engine, str(file), cache, {})
    assert prepare_image(engine, str(file), cache, {}, digest=ready.digest) == ready
    file.write_bytes(b"two")
    with pytest.raises(CapacityError, match="the earlier run used"):
        prepare_image(engine, str(file), cache, {}, digest=ready.digest)


def test_an_image_that_cannot_be_pulled_is_told_with_the_engine_s_words(tmp_path: Path, cache: Path) -> None:
    with pytest.raises(CapacityError, match="podman could not get image org/missing: manifest unknown") as refused:
        prepare_image(make_engine(tmp_path, "podman"), "org/missing", cache, {})
    assert refused.value.code == "no_image"
    assert "podman pull org/missing" in (refused.value.hint or "")


def test_a_mirror_takes_the_place_of_a_registry(tmp_path: Path, cache: Path) -> None:
    environment = {MIRRORS_VARIABLE: "docker.io=mirror.example:5000/hub/, ghcr.io=other.example"}
    prepare_image(make_engine(tmp_path, "docker"), "redis:7", cache, environment)
    assert words_of(tmp_path, "pull") == ["pull mirror.example:5000/hub/library/redis:7"]
    assert find_mirror("ghcr.io/org/x@sha256:1", (), environment) == "other.example/org/x@sha256:1"
    assert find_mirror("quay.io/org/x", (), environment) == "quay.io/org/x"
    with pytest.raises(InputError, match=r"'docker\.io' has no mirror"):
        find_mirror("redis:7", (), {MIRRORS_VARIABLE: "docker.io"})


def test_a_user_s_own_file_sets_mirrors_and_a_project_s_may_not(tmp_path: Path) -> None:
    path = tmp_path / "prony.toml"
    path.write_text('[containers.mirrors]\n"docker.io" = "mirror.example:5000"\n')
    chosen = resolve_settings(SHARED_SETTINGS, [SettingsFile(path, "user")], {})["containers.mirrors"]
    assert chosen.value is not None
    environment = {chosen.setting.variable: value_as_text(chosen.setting, chosen.value)}
    assert find_mirror("redis:7", (), environment) == "mirror.example:5000/library/redis:7"
    with pytest.raises(InputError, match=r"a project may not set containers\.mirrors"):
        resolve_settings(SHARED_SETTINGS, [SettingsFile(path, "project")], {})


def test_a_folder_of_image_files_takes_the_place_of_a_registry(tmp_path: Path, cache: Path) -> None:
    files = tmp_path / "files"
    files.mkdir()
    environment = {MIRRORS_VARIABLE: f"docker.io={files}"}
    engine = make_engine(tmp_path, "podman")
    with pytest.raises(CapacityError, match=r"redis:7 is not in the folder") as refused:
        prepare_image(engine, "redis:7", cache, environment)
    assert "redis-7.tar" in (refused.value.hint or "")
    (files / "docker-io-library-redis-7.tar").write_text("redis:7")
    assert prepare_image(engine, "redis:7", cache, environment).digest == "at@sha256:7"
    assert len(words_of(tmp_path, "load")) == 1
    apptainer = make_engine(tmp_path, "apptainer")
    prepare_image(apptainer, "redis:7", cache, environment)
    assert words_of(tmp_path, "build")[0].endswith(f"docker-archive://{files}/docker-io-library-redis-7.tar")
    (files / "redis-7.sif").write_bytes(b"sif")
    assert prepare_image(apptainer, "redis:7", cache, environment).reference == str(files / "redis-7.sif")


def test_an_image_of_no_registry_is_the_hub_s() -> None:
    assert split_image("redis:7") == ("docker.io", "library/redis:7")
    assert split_image("org/x") == ("docker.io", "org/x")
    assert split_image("localhost:5000/x") == ("localhost:5000", "x")
