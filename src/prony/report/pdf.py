"""Print an HTML page to PDF with an installed browser, or say that there is none."""

from __future__ import annotations

import os
import shutil
import subprocess
import tempfile
from pathlib import Path

from prony.errors import CapacityError

BROWSER = "PRONY_BROWSER"
# By their names on Linux, macOS (by path) and Windows; the first that is there prints.
_KNOWN = (
    "chromium", "chromium-browser", "google-chrome", "google-chrome-stable", "chrome", "microsoft-edge", "msedge",
    "/Applications/Google Chrome.app/Contents/MacOS/Google Chrome",
    "/Applications/Chromium.app/Contents/MacOS/Chromium",
    "/Applications/Microsoft Edge.app/Contents/MacOS/Microsoft Edge",
)  # fmt: skip
_LONGEST_S = 120.0
_BEGIN, _END = b"%PDF-", b"%%EOF"


def print_pdf(page: bytes) -> bytes:
    """Return the PDF, whole, or raise: what the browser left half is never handed on."""
    browser = find_browser()
    with tempfile.TemporaryDirectory(prefix="prony-") as scratch:
        source, target = Path(scratch) / "report.html", Path(scratch) / "report.pdf"
        source.write_bytes(page)
        said = _run(browser, source, target)
        document = target.read_bytes() if target.is_file() else b""
    if not document.startswith(_BEGIN) or _END not in document[-1024:]:
        hint = "write html and print that, or set PRONY_BROWSER to another browser"
        raise CapacityError(f"{browser} wrote no complete PDF{said}", hint=hint, code="browser_failed")
    return document


def find_browser() -> str:
    """Return the browser that PRONY_BROWSER names, or else the first known one on this machine."""
    named = os.environ.get(BROWSER)
    found = next((path for name in ([named] if named else _KNOWN) if (path := shutil.which(name))), None)
    if found is not None:
        return found
    what = f"{BROWSER} names {named!r}, which was not found" if named else "no browser found to print a PDF"
    hint = f"install chromium, or set the path of Chrome or Edge in {BROWSER}; or use --format html and print that"
    raise CapacityError(what, hint=hint, code="no_browser")


def _run(browser: str, source: Path, target: Path) -> str:
    """Print, and return what went wrong in words; empty where nothing seems to have."""
    command = [
        browser, "--headless", "--disable-gpu", "--no-first-run", "--no-pdf-header-footer", "--disable-extensions",
        f"--user-data-dir={source.parent / 'profile'}", f"--print-to-pdf={target}", *_sandbox_options(),
        source.as_uri(),
    ]  # fmt: skip
    try:
        done = subprocess.run(command, capture_output=True, timeout=_LONGEST_S, check=False)
    except subprocess.TimeoutExpired:
        return f": it took more than {_LONGEST_S:.0f} s"
    except OSError as exc:
        return f": {exc.strerror}"
    last = done.stderr.decode(errors="replace").strip().splitlines()[-1:]
    return f" and ended with {done.returncode}: {''.join(last)}" if done.returncode else ""


def _sandbox_options() -> list[str]:
    """Browsers refuse their sandbox to root, as in a container; the page is ours and holds no script."""
    is_root = hasattr(os, "geteuid") and os.geteuid() == 0
    return ["--no-sandbox"] if is_root else []
