"""Write Prony, its packages and a Python into one file that runs where neither is installed.

`python -m tools.one_file WHEEL OUT`: for this architecture, Linux with glibc. The file is a shell script with an
archive behind it. The first start unpacks it into the user's cache; every start runs `python -m prony` from there. A
file whose name begins with prony-agent is `prony agent`. The same wheel and packages give the same file.
"""

from __future__ import annotations

import argparse
import gzip
import hashlib
import os
import subprocess
import sys
import tarfile
import tempfile
from pathlib import Path

from tools.portable_python import copy_python, newest_glibc

# Archives cannot name an earlier year, and no build is told from another by its time.
_TIME = 315_532_800
_START = """\
#!/bin/sh
# Prony {version} with Python {python} in one file, for Linux on {machine} with glibc {glibc} or newer.
# The first start unpacks it into the folder below; delete that folder to get its space back.
set -u
place=${{XDG_CACHE_HOME:-${{HOME:-/tmp}}/.cache}}/prony-one-file/{name}
fail() {{ echo "error: $1" >&2; echo " hint: $2" >&2; rm -rf "${{new:-}}"; exit 3; }}
if [ ! -x "$place/bin/python3" ]; then
  above=${{place%/*}}
  mkdir -p "$above" && new=$(mktemp -d -p "$above") ||
    fail "cannot write to $above" "set XDG_CACHE_HOME to a folder with 600 MB of space"
  tail -c +{offset} "$0" | tar -xzf - -C "$new" ||
    fail "cannot unpack $0" "it needs tar, gzip and 600 MB in $above; with these, fetch it again"
  # The system's own, where it has them: drivers may want newer ones than this file brings.
  for one in libstdc++.so.6 libgcc_s.so.1 libz.so.1; do
    for folder in /lib64 /usr/lib64 /usr/lib /lib /usr/lib/{machine}-linux-gnu /lib/{machine}-linux-gnu; do
      [ -e "$folder/$one" ] && rm -f "$new/lib/$one"
    done
  done
  chmod 0755 "$new"
  "$new/bin/python3" -I -c 'import ssl, sqlite3' ||
    fail "this system cannot run it" "it needs Linux on {machine} with glibc {glibc} or newer"
  # Fails where another start was quicker, and then there is nothing left to do.
  "$new/bin/python3" -I -c 'import os, sys; os.rename(*sys.argv[1:])' "$new" "$place" 2>/dev/null || rm -rf "$new"
fi
case ${{0##*/}} in prony-agent*) set -- agent "$@";; esac
exec "$place/bin/python3" -P -m prony "$@"
exit 3
"""


def main() -> int:
    parser = argparse.ArgumentParser(description=__doc__.partition("\n")[0])
    parser.add_argument("wheel", type=Path)
    parser.add_argument("out", type=Path)
    options = parser.parse_args()
    write_one_file(options.wheel, options.out)
    print(f"{options.out.stat().st_size:>11,} bytes  {options.out}")
    return 0


def write_one_file(wheel: Path, out: Path) -> None:
    """Install a wheel into a copy of this Python, and write both into one file."""
    with tempfile.TemporaryDirectory(prefix="prony-one-file-") as scratch:
        tree = Path(scratch, "tree")
        python = copy_python(tree)
        _run(python, "-I", "-m", "pip", "install", "--quiet", "--no-compile", "--no-warn-script-location", wheel)
        _make_alike(tree)
        _compile(python, tree)
        archive = Path(scratch, "archive.tar.gz")
        _write_archive(tree, archive)
        start = _start_script(wheel, archive, newest_glibc(tree))
        out.parent.mkdir(parents=True, exist_ok=True)
        out.write_bytes(start + archive.read_bytes())
        out.chmod(0o755)


def _start_script(wheel: Path, archive: Path, glibc: str) -> bytes:
    version = wheel.name.split("-")[1]
    told = {
        "version": version, "python": ".".join(map(str, sys.version_info[:3])), "machine": os.uname().machine,
        "glibc": glibc, "name": f"{version}-{hashlib.sha256(archive.read_bytes()).hexdigest()[:16]}",
    }  # fmt: skip
    # The offset is a part of what it counts: as many places as it can need are counted first.
    length = len(_START.format(**told, offset="0" * 6).encode())
    return _START.format(**told, offset=f"{length + 1:06d}").encode()


def _make_alike(tree: Path) -> None:
    """Remove what tells one build from another: programs that begin with this folder's path, and where a wheel lay."""
    for path in (tree / "bin").iterdir():
        if not path.name.startswith("python"):
            path.unlink()
    for path in tree.rglob("*.dist-info/direct_url.json"):
        path.unlink()
    for record in tree.rglob("*.dist-info/RECORD"):
        lines = record.read_text().splitlines()
        gone = ("../../../bin/", "../../bin/")
        kept = [one for one in lines if not one.startswith(gone) and "direct_url.json" not in one]
        record.write_text("\n".join(sorted(kept)) + "\n")


def _compile(python: Path, tree: Path) -> None:
    """Compile everything once here, so that a start writes nothing and trusts what it finds."""
    library = tree / "lib" / python.name
    for path in library.rglob("__pycache__/*"):
        path.unlink()
    words = ("-q", "-q", "-f", "--invalidation-mode", "unchecked-hash", "-s", tree, library)
    command = [str(word) for word in (python, "-I", "-B", "-m", "compileall", *words)]
    # Not checked: a package may hold files for newer Pythons.
    subprocess.run(command, check=False, env=os.environ | {"PYTHONHASHSEED": "0"})


def _write_archive(tree: Path, archive: Path) -> None:
    def alike(entry: tarfile.TarInfo) -> tarfile.TarInfo:
        entry.mtime, entry.uid, entry.gid, entry.uname, entry.gname = _TIME, 0, 0, "", ""
        entry.mode = 0o755 if entry.isdir() or entry.mode & 0o100 else 0o644
        return entry

    with (
        archive.open("wb") as raw,
        gzip.GzipFile("", "wb", 6, raw, mtime=0) as packed,
        tarfile.open(fileobj=packed, mode="w", format=tarfile.GNU_FORMAT) as tar,
    ):
        for path in sorted(tree.rglob("*")):
            tar.add(path, path.relative_to(tree).as_posix(), recursive=False, filter=alike)


def _run(*words: str | Path) -> None:
    subprocess.run([str(word) for word in words], check=True)


if __name__ == "__main__":
    sys.exit(main())
