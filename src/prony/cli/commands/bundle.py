"""`prony bundle`: one archive that installs Prony without a network."""

from __future__ import annotations

from argparse import ArgumentParser, Namespace
from pathlib import Path


def arguments(parser: ArgumentParser) -> None:
    """Write an archive with wheels, documentation, recipes and an installer, for machines without a network. Unpack
    it there, and run: sh install.sh --offline."""
    parser.add_argument("file", metavar="FILE", type=Path, help="file to create, for example prony-bundle.tar")
    parser.add_argument(
        "--platform", metavar="NAME", action="append", default=[],
        help="linux-x86_64, linux-aarch64 or macos-arm64; repeat it for several (default: linux on this machine's CPU)",
    )  # fmt: skip
    parser.add_argument(
        "--python", metavar="VERSION", action="append", default=[],
        help="version of Python there, as 3.12; repeat it for several (default: that of this Prony)",
    )  # fmt: skip
    parser.add_argument(
        "--extras", metavar="NAMES", default="", help="extras to include, as onnx,server (default: none)"
    )
    parser.add_argument("--wheel", metavar="FILE", type=Path, help="Prony's own wheel (default: from pip's index)")
    parser.add_argument(
        "--image",
        metavar="NAME",
        action="append",
        default=[],
        help="save this container image too; repeat it for several",
    )


def command(options: Namespace) -> int:
    import platform

    from prony.app.offline_bundle import OfflinePlan, write_offline_bundle
    from prony.cli.output import print_note, print_text

    machine = {"arm64": "aarch64", "amd64": "x86_64"}.get(platform.machine().lower(), platform.machine())
    plan = OfflinePlan(
        platforms=tuple(options.platform) or (f"linux-{machine}",),
        pythons=tuple(options.python) or (".".join(platform.python_version_tuple()[:2]),),
        extras=tuple(name.strip() for name in options.extras.split(",") if name.strip()),
        wheel=options.wheel,
        images=tuple(options.image),
    )
    made = write_offline_bundle(plan, options.file, print_note)
    print_text(f"wrote {made}: {made.stat().st_size / 2**20:,.0f} MiB")
    print_text(f"on the other machine: tar xf {made.name} && sh {made.stem}/install.sh --offline")
    return 0
