"""Install packages by pip into an environment: say first how much is fetched, then how far it is."""

from __future__ import annotations

import json
import subprocess
import sys
import tempfile
import urllib.error
import urllib.request
from collections.abc import Callable, Sequence
from pathlib import Path
from urllib.parse import unquote, urlsplit

from prony.errors import CapacityError

_REACHED_S = 10.0
_PIP = ("-m", "pip", "install", "--disable-pip-version-check")
# The lines of pip that say how far it is.
_STEPS = ("Downloading ", "Using cached ", "Installing ", "Processing ")
_HINT = "check that the package index is reachable; pip's settings (PIP_INDEX_URL, pip.conf) apply"


def install_packages(python: Path, words: Sequence[str], say: Callable[[str], None]) -> None:
    """Install what the words name, which may be options of pip too.

    Raises:
        CapacityError: pip failed; its own words are in the message.
    """
    say(_describe_download(python, words))
    run_command([str(python), *_PIP, *words], say)


def is_reached(url: str) -> bool:
    """Ask whether an index answers."""
    return _size_of(url) is not None


def run_command(command: Sequence[str], say: Callable[[str], None] = lambda _: None) -> None:
    """Run a command to its end. On a terminal it draws its own bar; elsewhere its steps are said.

    Raises:
        CapacityError: It failed.
    """
    is_terminal = sys.stderr.isatty()
    with tempfile.TemporaryFile("w+") as errors:
        with subprocess.Popen(
            command, stdout=sys.stderr if is_terminal else subprocess.PIPE, stderr=errors, text=True
        ) as process:
            last = ""
            for line in process.stdout or ():
                last = line
                if line.lstrip().startswith(_STEPS):
                    say(f"  {line.strip()}")
        if process.returncode:
            errors.seek(0)
            tail = (errors.read() or last).strip()[-2000:]
            raise CapacityError(f"{' '.join(command[:4])} failed: {tail}", hint=_HINT, code="install_failed")


def _describe_download(python: Path, words: Sequence[str]) -> str:
    """Say what is installed and how large it is, as far as the index tells."""
    asked = " ".join(word for word in words if not word.startswith("-"))
    command = [str(python), *_PIP, "--quiet", "--dry-run", "--report", "-", *words]
    done = subprocess.run(command, capture_output=True, text=True, check=False)
    if done.returncode:
        return f"installing {asked}"  # what is wrong, the installation itself says
    found = json.loads(done.stdout)["install"]
    if not found:
        return f"{asked}: already installed"
    sizes = [_size_of(one["download_info"]["url"]) for one in found]
    known = [size for size in sizes if size]
    first = found[0]["metadata"]
    more = f" and {len(found) - 1} more packages" if len(found) > 1 else ""
    least = "at least " if len(known) < len(sizes) else ""
    size = f"{least}{sum(known) / 1e6:.0f} MB to fetch" if known else "unknown size"
    return f"installing {first['name']} {first['version']}{more}: {size}"


def _size_of(url: str) -> int | None:
    """Return the length of what stands at an address, 0 where that is not told; None where nobody answers."""
    parts = urlsplit(url)
    if parts.scheme == "file":
        path = Path(unquote(parts.path))
        return path.stat().st_size if path.exists() else None
    try:
        request = urllib.request.Request(url, method="HEAD")
        with urllib.request.urlopen(request, timeout=_REACHED_S) as answer:
            return int(answer.headers.get("Content-Length") or 0)
    except (urllib.error.URLError, OSError, ValueError):
        return None
