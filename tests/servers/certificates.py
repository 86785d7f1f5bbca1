"""Make a certificate authority and a certificate with openssl, or skip the test."""

from __future__ import annotations

import shutil
import subprocess
from dataclasses import dataclass
from pathlib import Path

from servers.needs import lack


@dataclass(frozen=True)
class Certificate:
    """`ca` is the file of who vouches for it."""

    ca: Path
    certificate: Path
    key: Path


def certificate(folder: Path, names: str = "DNS:localhost") -> Certificate:
    """Make an authority, and a certificate of its for these names."""
    openssl = shutil.which("openssl")
    if openssl is None:
        lack("openssl", "openssl is not here to make a certificate")
    folder.mkdir(parents=True, exist_ok=True)
    made = Certificate(folder / "ca.pem", folder / "server.pem", folder / "server.key")
    extensions = folder / "extensions"
    extensions.write_text(f"subjectAltName={names}\n")
    key = ("-newkey", "ec", "-pkeyopt", "ec_paramgen_curve:prime256v1", "-nodes")
    for words in (
        # An authority says what it may be used for: from Python 3.13 on, one that does not is no authority.
        ("req", "-x509", *key, "-days", "2", "-subj", "/CN=tests", "-keyout", "ca.key", "-out", "ca.pem",
         "-addext", "keyUsage=critical,keyCertSign,cRLSign"),
        ("req", "-new", *key, "-subj", "/CN=server", "-keyout", "server.key", "-out", "server.csr"),
        ("x509", "-req", "-in", "server.csr", "-CA", "ca.pem", "-CAkey", "ca.key", "-CAcreateserial", "-days", "2",
         "-extfile", "extensions", "-out", "server.pem"),
    ):  # fmt: skip
        subprocess.run([openssl, *words], cwd=folder, check=True, capture_output=True)
    return made
