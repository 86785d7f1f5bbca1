"""`prony info`: this device, what it can do, and where Prony keeps things."""

from __future__ import annotations

from argparse import ArgumentParser, Namespace

from prony.cli.arguments import add_json


def arguments(parser: ArgumentParser) -> None:
    """Describe this device: its fingerprint, its compute units, its software and its GPUs, as each tool reports
    them."""
    parser.add_argument(
        "--probe", action="store_true", help="try a matrix product on each device in every number format; takes seconds"
    )
    add_json(parser)


def command(options: Namespace) -> int:
    from prony.app.abilities import inspect_abilities
    from prony.app.bench import Bench
    from prony.cli.output import print_json
    from prony.instruments.device import detect

    device = detect()
    with Bench.open() as bench:
        units = [unit for report in bench.engines() for unit in report.units if unit.engine != "null"]
        detection = bench.gpus(tries_products=options.probe)
        place = str(bench.home.root)
    abilities = inspect_abilities()
    if options.json:
        document = device.model_dump(mode="json")
        document["compute_units"] = [unit.model_dump(mode="json") for unit in units]
        document["gpu_detection"] = detection.model_dump(mode="json")
        document["abilities"] = [one.model_dump(mode="json") for one in abilities]
        print_json(document | {"home": place})
        return 0
    from prony.cli.device import show_abilities, show_detection, show_device
    from prony.cli.output import print_text

    show_device(device, units, place)
    show_detection(detection)
    print_text("\nServices, container engines, launchers and probes:")
    show_abilities(abilities)
    return 0
