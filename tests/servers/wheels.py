"""Build the packages from the repository as it is, and fetch the wheels of what they need."""

from __future__ import annotations

import shutil
import subprocess
import sys
from pathlib import Path

from servers.needs import lack
from servers.programs import run_program

ROOT = Path(__file__).parents[2]
BUILDER = ROOT / ".venv-build" / "bin" / "python"


def copy_checkout(folder: Path) -> Path:
    """Copy the repository as it is now, committed, into a new folder; a build writes into the folder that it builds."""
    if not BUILDER.exists():
        lack("build", f"there is no {BUILDER.relative_to(ROOT)}: make wheel")
    if not (ROOT / "src/prony/server/site/index.html").is_file():
        lack("ui", "the web pages are not built: make ui")
    for name in run_program("git", "ls-files", "-co", "--exclude-standard", cwd=ROOT).splitlines():
        (folder / name).parent.mkdir(parents=True, exist_ok=True)
        shutil.copy2(ROOT / name, folder / name, follow_symlinks=False)
    shutil.copytree(ROOT / "src/prony/server/site", folder / "src/prony/server/site")
    run_program("git", "init", "--quiet", cwd=folder)
    run_program("git", "add", ".", cwd=folder)
    author = ("-c", "user.name=test", "-c", "user.email=test@example.org", "-c", "commit.gpgsign=false")
    run_program("git", *author, "commit", "--quiet", "--message", "as it is", cwd=folder)
    run_program(sys.executable, "-m", "tools.shell_files", "share", cwd=folder)
    return folder


def build_packages(checkout: Path, out: Path) -> Path:
    """Build the source archive, and the wheel from it; return the wheel."""
    run_program(BUILDER, "-m", "build", "--no-isolation", "--outdir", out, checkout, cwd=out)
    (wheel,) = out.glob("prony-*.whl")
    return wheel


def fetch_wheels(wheel: Path, extras: str, out: Path) -> None:
    """Fetch the wheels of all that a wheel with these extras needs, itself among them."""
    asked = [
        sys.executable,
        "-m",
        "pip",
        "download",
        "--quiet",
        "--only-binary=:all:",
        "--dest",
        out,
        f"{wheel}[{extras}]",
    ]
    done = subprocess.run(list(map(str, asked)), capture_output=True, text=True, check=False, cwd=out)
    if "No matching distribution" in done.stderr:
        lack("index", "pip finds no packages here")
    assert done.returncode == 0, done.stderr
