"""Pack experiments of this machine's home as the recorded ones of `prony server --demo`.

`python -m tools.record_demo ID ... --replace /from=/to` exports them, replaces paths of the machine in their texts
(and in no number), writes their checksums anew and packs them into the package, or elsewhere with `--target FILE`.
"""

from __future__ import annotations

import argparse
import hashlib
import json
import tarfile
import tempfile
from pathlib import Path

from prony.app.recordings import ARCHIVE
from prony.store import transfer
from prony.store.store import Store

TARGET = Path(__file__).parents[1] / "src" / "prony" / "app" / ARCHIVE
_TEXTS = (".json", ".yaml", ".toml", ".log")


def main() -> None:
    parser = argparse.ArgumentParser(description=__doc__)
    parser.add_argument("ids", metavar="ID", nargs="+")
    parser.add_argument("--replace", action="append", default=[], metavar="OLD=NEW")
    parser.add_argument("--target", type=Path, default=TARGET, metavar="FILE")
    options = parser.parse_args()
    pairs = [tuple(one.split("=", 1)) for one in options.replace]
    with tempfile.TemporaryDirectory() as scratch, Store.open() as store:
        for one in options.ids:
            folder = transfer.export(store, store.resolve_id(one), Path(scratch) / one)
            replace_texts(folder, dict(pairs))
            update_manifest(folder)
        pack(Path(scratch), options.target)
    print(f"{options.target}: {options.target.stat().st_size} bytes")


def replace_texts(folder: Path, pairs: dict[str, str]) -> None:
    for path in (one for one in folder.rglob("*") if one.suffix in _TEXTS):
        text = path.read_text()
        for old, new in pairs.items():
            text = text.replace(old, new)
        path.write_text(text)


def update_manifest(folder: Path) -> None:
    path = folder / "MANIFEST.json"
    manifest = json.loads(path.read_text())
    for name in manifest["files"]:
        manifest["files"][name] = hashlib.sha256((folder / name).read_bytes()).hexdigest()
    path.write_text(json.dumps(manifest, indent=2) + "\n")


def pack(folder: Path, target: Path) -> None:
    def plain(member: tarfile.TarInfo) -> tarfile.TarInfo:
        member.uid = member.gid = member.mtime = 0
        member.uname = member.gname = ""
        return member

    with tarfile.open(target, "w:gz") as archive:
        for path in sorted(folder.iterdir()):
            archive.add(path, arcname=path.name, filter=plain)


if __name__ == "__main__":
    main()
