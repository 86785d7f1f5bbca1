"""A bundle installs Prony on a machine without a network, by a script that says what it does."""

from __future__ import annotations

import base64
import errno
import hashlib
import os
import shutil
import subprocess
import sys
import tarfile
import zipfile
from pathlib import Path

import pytest

from prony.app import offline_bundle
from prony.app.offline_bundle import OfflinePlan, write_offline_bundle
from prony.cli.main import main
from prony.errors import CapacityError, ConflictError, InputError
from servers.needs import lack

INSTALLER = Path(__file__).parents[2] / "deploy" / "install.sh"
HERE = f"{sys.version_info[0]}.{sys.version_info[1]}"

pytestmark = pytest.mark.skipif(sys.platform == "win32", reason="the installer is a script for Unix shells")


def write_wheel(folder: Path) -> Path:
    """Write a small wheel of the name of Prony, which needs nothing and prints its version."""
    info = "prony-9.0.dist-info"
    contents = {
        "prony/__init__.py": "def main():\n    print('prony 9.0')\n",
        f"{info}/METADATA": "Metadata-Version: 2.1\nName: prony\nVersion: 9.0\nProvides-Extra: onnx\n",
        f"{info}/WHEEL": "Wheel-Version: 1.0\nGenerator: test\nRoot-Is-Purelib: true\nTag: py3-none-any\n",
        f"{info}/entry_points.txt": "[console_scripts]\nprony = prony:main\n",
    }
    lines = []
    for name, text in contents.items():
        digest = base64.urlsafe_b64encode(hashlib.sha256(text.encode()).digest()).rstrip(b"=").decode()
        lines.append(f"{name},sha256={digest},{len(text)}\n")
    path = folder / "prony-9.0-py3-none-any.whl"
    with zipfile.ZipFile(path, "w") as wheel:
        for name, text in contents.items():
            wheel.writestr(name, text)
        wheel.writestr(f"{info}/RECORD", "".join([*lines, f"{info}/RECORD,,\n"]))
    return path


def install(*words: str | Path, environment: dict[str, str] | None = None) -> subprocess.CompletedProcess[str]:
    return subprocess.run(
        [str(word) for word in words], capture_output=True, text=True, check=False, timeout=300,
        env=os.environ | {"PYTHON": sys.executable} | (environment or {}),
    )  # fmt: skip


@pytest.fixture(scope="module")
def bundle(tmp_path_factory: pytest.TempPathFactory) -> Path:
    """Return the folder of a bundle that was unpacked."""
    folder = tmp_path_factory.mktemp("bundle")
    plan = OfflinePlan(("linux-x86_64", "linux-aarch64"), (HERE,), extras=("onnx",), wheel=write_wheel(folder))
    made = write_offline_bundle(plan, folder / "prony-bundle.tar", print)
    with tarfile.open(made) as tar:
        tar.extractall(folder, filter="data")
    return folder / "prony-bundle"


def test_a_bundle_holds_wheels_recipes_an_installer_and_their_checksums(bundle: Path) -> None:
    lines = (bundle / "SHA256SUMS").read_text().splitlines()
    sums = {name: sha256 for sha256, _, name in (line.partition("  ") for line in lines)}
    there = {path.relative_to(bundle).as_posix() for path in bundle.rglob("*") if path.is_file()}
    assert set(sums) == there - {"SHA256SUMS"}
    assert {"install.sh", "wheels/prony-9.0-py3-none-any.whl", "recipes/quickstart.yaml"} <= there
    assert sums["install.sh"] == hashlib.sha256(INSTALLER.read_bytes()).hexdigest()


@pytest.mark.slow
def test_a_bundle_installs_in_a_network_without_a_route(bundle: Path, tmp_path: Path) -> None:
    unshare = shutil.which("unshare")
    if unshare is None or subprocess.run([unshare, "-rn", "true"], capture_output=True, check=False).returncode:
        lack("unshare", "this user may not make a network of its own: unshare -rn true")
    alone = (unshare, "-rn")
    connect = "import socket; print(socket.socket().connect_ex(('192.0.2.1', 80)))"
    assert install(*alone, sys.executable, "-c", connect).stdout == f"{errno.ENETUNREACH}\n"
    done = install(*alone, "sh", bundle / "install.sh", "--offline", "--extras", "onnx", "--into", tmp_path / "venv")
    assert done.returncode == 0, done.stdout + done.stderr
    assert f"+ {sys.executable} -m venv {tmp_path / 'venv'}" in done.stdout
    assert "--no-index" in done.stdout
    assert install(*alone, tmp_path / "venv/bin/prony").stdout == "prony 9.0\n"


def test_a_damaged_bundle_is_not_installed(bundle: Path, tmp_path: Path) -> None:
    copy = tmp_path / "copy"
    shutil.copytree(bundle, copy)
    (copy / "recipes" / "quickstart.yaml").write_text("changed")
    done = install("sh", copy / "install.sh", "--offline", "--into", tmp_path / "venv")
    assert done.returncode == 3
    assert "a file of this bundle is damaged" in done.stderr
    assert not (tmp_path / "venv").exists()


def test_the_installer_alone_says_that_it_has_no_wheels(tmp_path: Path) -> None:
    shutil.copy(INSTALLER, tmp_path / "install.sh")
    done = install("sh", tmp_path / "install.sh", "--offline")
    assert (done.returncode, "unpack a bundle first" in done.stderr) == (3, True)


def test_a_bundle_is_installed_by_a_python_that_it_has_wheels_for_alone(bundle: Path, tmp_path: Path) -> None:
    assert (bundle / "pythons").read_text() == f"{HERE}\n"
    done = install("sh", bundle / "install.sh", "--offline", "--dry-run", "--into", tmp_path)
    assert f"+ {sys.executable} -m venv" in done.stdout
    plan = OfflinePlan(("linux-x86_64",), ("3.98", "3.99"), wheel=write_wheel(tmp_path))
    with tarfile.open(write_offline_bundle(plan, tmp_path / "later.tar", print)) as tar:
        tar.extractall(tmp_path, filter="data")
    done = install("sh", tmp_path / "later" / "install.sh", "--offline", "--dry-run")
    assert (done.returncode, "this bundle is for Python 3.98 3.99, which was not found" in done.stderr) == (3, True)


@pytest.mark.parametrize(
    ("words", "said"),
    [
        (("--nothing",), "unknown option: --nothing"),
        (("--into",), "--into needs a value"),
        (("--extras", "onnx]; rm -rf x"), "extras and version have letters"),
    ],
)
def test_the_installer_refuses_what_it_does_not_know(words: tuple[str, ...], said: str) -> None:
    done = install("sh", INSTALLER, "--dry-run", *words)
    assert (done.returncode, said in done.stderr) == (2, True)


def test_the_installer_prints_what_it_would_do_by_uv_or_by_pip(tmp_path: Path) -> None:
    uv = tmp_path / "uv"
    uv.write_text("#!/bin/sh\nexit 1\n")
    uv.chmod(0o755)
    path = {"PATH": f"{tmp_path}{os.pathsep}{os.environ['PATH']}"}
    by_uv = install("sh", INSTALLER, "--dry-run", "--extras", "onnx", environment=path)
    assert by_uv.stdout == "+ uv tool install --python >=3.11 prony[onnx]\nNext: prony doctor\n"
    by_pip = install("sh", INSTALLER, "--dry-run", "--into", "/there", "--version", "9.0", environment=path)
    assert [line.split()[-1] for line in by_pip.stdout.splitlines()] == ["/there", "prony==9.0", "doctor"]


def test_images_are_saved_by_the_container_engine(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    podman = tmp_path / "bin" / "podman"
    podman.parent.mkdir()
    podman.write_text('#!/bin/sh\n[ "$4" = good:1 ] || { echo no such image >&2; exit 125; }\necho "$1 $4" > "$3"\n')
    podman.chmod(0o755)
    monkeypatch.setenv("PATH", f"{podman.parent}{os.pathsep}{os.environ['PATH']}")
    offline_bundle._save_images(("good:1",), tmp_path, print)
    assert (tmp_path / "images" / "good-1.tar").read_text() == "save good:1\n"
    (tmp_path / "images").rename(tmp_path / "before")
    with pytest.raises(CapacityError, match="no such image"):
        offline_bundle._save_images(("bad:1",), tmp_path, print)
    monkeypatch.setenv("PATH", str(tmp_path / "empty"))
    with pytest.raises(CapacityError, match="needs a container engine"):
        offline_bundle._save_images(("good:1",), tmp_path, print)


def test_a_plan_that_cannot_be_is_refused_before_anything_is_fetched(tmp_path: Path) -> None:
    wheel = write_wheel(tmp_path)
    plan = OfflinePlan(("linux-x86_64",), (HERE,), wheel=wheel)
    (tmp_path / "there.tar").write_text("")
    with pytest.raises(ConflictError, match="exists already"):
        write_offline_bundle(plan, tmp_path / "there.tar", print)
    with pytest.raises(InputError, match=r"does not end in \.tar"):
        write_offline_bundle(plan, tmp_path / "bundle.zip", print)
    with pytest.raises(InputError, match="no folder"):
        write_offline_bundle(plan, tmp_path / "none" / "b.tar", print)
    with pytest.raises(InputError, match="unknown platform: amiga"):
        write_offline_bundle(OfflinePlan(("amiga",), (HERE,), wheel=wheel), tmp_path / "b.tar", print)
    with pytest.raises(InputError, match=r"'3\.12\.4' is not a version of Python as a bundle names it"):
        write_offline_bundle(OfflinePlan(("linux-x86_64",), ("3.12.4",), wheel=wheel), tmp_path / "b.tar", print)
    with pytest.raises(InputError, match="no file"):
        write_offline_bundle(OfflinePlan(("linux-x86_64",), (HERE,), wheel=tmp_path / "x.whl"), tmp_path / "b", print)


def test_what_pip_cannot_find_is_told_with_a_hint(
    tmp_path: Path, capsys: pytest.CaptureFixture[str], monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setenv("PIP_NO_INDEX", "1")
    assert main(["bundle", str(tmp_path / "b.tar"), "--platform", "linux-x86_64"]) == 3
    assert "name its file: --wheel FILE" in capsys.readouterr().err
    assert list(tmp_path.glob("*.tar")) == []
