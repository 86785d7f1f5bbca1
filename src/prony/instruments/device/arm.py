"""Name an ARM core or chip from its implementer and part numbers."""

from __future__ import annotations

from collections.abc import Mapping

IMPLEMENTERS: Mapping[int, str] = {
    0x41: "ARM", 0x42: "Broadcom", 0x43: "Cavium", 0x46: "Fujitsu", 0x48: "HiSilicon", 0x4E: "NVIDIA", 0x50: "APM",
    0x51: "Qualcomm", 0x53: "Samsung", 0x56: "Marvell", 0x61: "Apple", 0x6D: "Microsoft", 0x70: "Phytium",
    0xC0: "Ampere",
}  # fmt: skip

_ARM: Mapping[int, str] = {
    0xC05: "Cortex-A5", 0xC07: "Cortex-A7", 0xC08: "Cortex-A8", 0xC09: "Cortex-A9", 0xC0E: "Cortex-A17",
    0xC0F: "Cortex-A15", 0xD01: "Cortex-A32", 0xD02: "Cortex-A34", 0xD03: "Cortex-A53", 0xD04: "Cortex-A35",
    0xD05: "Cortex-A55", 0xD06: "Cortex-A65", 0xD07: "Cortex-A57", 0xD08: "Cortex-A72", 0xD09: "Cortex-A73",
    0xD0A: "Cortex-A75", 0xD0B: "Cortex-A76", 0xD0C: "Neoverse-N1", 0xD0D: "Cortex-A77", 0xD0E: "Cortex-A76AE",
    0xD40: "Neoverse-V1", 0xD41: "Cortex-A78", 0xD42: "Cortex-A78AE", 0xD43: "Cortex-A65AE", 0xD44: "Cortex-X1",
    0xD46: "Cortex-A510", 0xD47: "Cortex-A710", 0xD48: "Cortex-X2", 0xD49: "Neoverse-N2", 0xD4A: "Neoverse-E1",
    0xD4B: "Cortex-A78C", 0xD4C: "Cortex-X1C", 0xD4D: "Cortex-A715", 0xD4E: "Cortex-X3", 0xD4F: "Neoverse-V2",
    0xD80: "Cortex-A520", 0xD81: "Cortex-A720", 0xD82: "Cortex-X4", 0xD83: "Neoverse-V3AE", 0xD84: "Neoverse-V3",
    0xD85: "Cortex-X925", 0xD87: "Cortex-A725", 0xD88: "Cortex-A520AE", 0xD89: "Cortex-A720AE",
    0xD8E: "Neoverse-N3", 0xD8F: "Cortex-A320",
}  # fmt: skip

PARTS: Mapping[int, Mapping[int, str]] = {
    0x41: _ARM,
    0x43: {0x0A1: "ThunderX", 0x0AF: "ThunderX2", 0x0B8: "ThunderX3"},
    0x46: {0x001: "A64FX", 0x003: "MONAKA"},
    0x48: {0xD01: "Kunpeng 920 (TSV110)", 0xD02: "TSV120", 0xD40: "Cortex-A76 (HiSilicon)"},
    0x4E: {0x003: "Denver 2", 0x004: "Carmel", 0x010: "Olympus"},
    0x51: {
        0x001: "Oryon", 0x800: "Kryo 2xx Gold", 0x801: "Kryo 2xx Silver", 0x802: "Kryo 3xx Gold",
        0x803: "Kryo 3xx Silver", 0x804: "Kryo 4xx Gold", 0x805: "Kryo 4xx Silver", 0xC00: "Falkor",
    },
    0x61: {
        0x022: "M1 Icestorm", 0x023: "M1 Firestorm", 0x024: "M1 Pro Icestorm", 0x025: "M1 Pro Firestorm",
        0x028: "M1 Max Icestorm", 0x029: "M1 Max Firestorm", 0x032: "M2 Blizzard", 0x033: "M2 Avalanche",
        0x034: "M2 Pro Blizzard", 0x035: "M2 Pro Avalanche", 0x038: "M2 Max Blizzard", 0x039: "M2 Max Avalanche",
    },
    0x6D: {0xD49: "Azure Cobalt 100"},
    0xC0: {0xAC3: "AmpereOne", 0xAC4: "AmpereOne A", 0xAC5: "AmpereOne B"},
}  # fmt: skip

# A licensed core says only what ARM drew. Whose chip it is, the machine's vendor tells where the two leave one choice.
CHIPS: Mapping[tuple[str, str], str] = {
    ("Amazon EC2", "Neoverse-N1"): "AWS Graviton2",
    ("Amazon EC2", "Neoverse-V1"): "AWS Graviton3",
    ("Amazon EC2", "Neoverse-V2"): "AWS Graviton4",
    ("Google", "Neoverse-N1"): "Ampere Altra",
    ("Google", "Neoverse-V2"): "Google Axion",
}


def core_name(implementer: int, part: int) -> str:
    """Return the core's name, or its raw numbers where the table does not know them."""
    known = PARTS.get(implementer, {}).get(part)
    if known is not None:
        return known
    maker = IMPLEMENTERS.get(implementer)
    return f"{maker or f'implementer {implementer:#04x}'} part {part:#05x}"


def chip_name(core: str, machine_vendor: str | None) -> str:
    """Return the core's name with the chip's before it, where the machine's vendor tells."""
    chip = CHIPS.get((machine_vendor or "", core))
    return f"{chip} ({core})" if chip else core
