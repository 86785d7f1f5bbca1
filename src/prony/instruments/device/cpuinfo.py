"""Parse /proc/cpuinfo into the CPU's name and the features that decide which kernels a model runs on.

An ARM core or chip is named from its implementer and part numbers. Features have Linux's names.
"""

from __future__ import annotations

from collections.abc import Iterable, Mapping
from dataclasses import dataclass

from prony.instruments import kernel

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


X86 = (
    "sse4_2", "avx", "f16c", "fma", "avx2", "avx_vnni", "avx_vnni_int8", "avx_ifma",
    "avx512f", "avx512bw", "avx512dq", "avx512vl", "avx512_vnni", "avx512_bf16", "avx512_fp16",
    "amx_tile", "amx_int8", "amx_bf16", "amx_fp16",
)  # fmt: skip
ARM = (
    "neon", "asimd", "asimdhp", "asimddp", "asimdfhm", "i8mm", "bf16",
    "sve", "svei8mm", "svebf16", "sve2", "sme", "sme2",
)  # fmt: skip
OTHERS = ("rvv", "altivec", "vsx", "lasx", "lsx")
KNOWN = frozenset((*X86, *ARM, *OTHERS))

# What macOS calls the same things (sysctl), so that one silicon has one set of flags under either system.
DARWIN: Mapping[str, str] = {
    "hw.optional.AdvSIMD": "asimd",
    "hw.optional.neon": "asimd",
    "hw.optional.arm.FEAT_FP16": "asimdhp",
    "hw.optional.arm.FEAT_DotProd": "asimddp",
    "hw.optional.arm.FEAT_FHM": "asimdfhm",
    "hw.optional.arm.FEAT_I8MM": "i8mm",
    "hw.optional.arm.FEAT_BF16": "bf16",
    "hw.optional.arm.FEAT_SME": "sme",
    "hw.optional.arm.FEAT_SME2": "sme2",
    "hw.optional.avx1_0": "avx",
    "hw.optional.avx2_0": "avx2",
    "hw.optional.f16c": "f16c",
    "hw.optional.fma": "fma",
    "hw.optional.avx512f": "avx512f",
    "hw.optional.avx512bw": "avx512bw",
    "hw.optional.avx512dq": "avx512dq",
    "hw.optional.avx512vl": "avx512vl",
    "hw.optional.avx512vnni": "avx512_vnni",
}

# Windows answers IsProcessorFeaturePresent(number); it does not tell of the others.
WINDOWS: Mapping[int, str] = {38: "sse4_2", 39: "avx", 40: "avx2", 41: "avx512f", 19: "asimd", 43: "asimddp"}


def relevant(flags: Iterable[str]) -> tuple[str, ...]:
    """Return the known ones, sorted, each once."""
    return tuple(sorted(KNOWN & set(flags)))


Block = dict[str, str]


@dataclass(frozen=True)
class CpuIdentity:
    """`family`, `model_number` and `stepping` are CPUID's on x86; on ARM the architecture, the part, and variant and
    revision packed as the core's own register packs them."""

    model: str | None
    vendor: str | None
    family: int | None
    model_number: int | None
    stepping: int | None
    flags: tuple[str, ...]
    microcode: str | None
    is_guest: bool


def blocks(text: str) -> list[Block]:
    """Return one dictionary for each paragraph, keys in lower case."""
    found: list[Block] = []
    for paragraph in text.replace("\t", " ").split("\n\n"):
        pairs = (line.split(":", 1) for line in paragraph.splitlines() if ":" in line)
        block = {key.strip().lower(): value.strip() for key, value in pairs}
        if block:
            found.append(block)
    return found


def identify(text: str, machine_vendor: str | None = None) -> CpuIdentity:
    """Return who the CPU is; cores of several kinds are all named, and only flags that all of them have are kept."""
    every = blocks(text)
    cores = [block for block in every if "processor" in block] or every
    if not cores:
        return CpuIdentity(None, None, None, None, None, (), None, is_guest=False)
    shared = set.intersection(*(_words(block) for block in cores))
    known = _arm if "cpu implementer" in cores[0] else _other
    return known(cores, every, tuple(sorted(shared)), machine_vendor)


def _words(block: Block) -> set[str]:
    words = kernel.first((block.get("flags"), block.get("features"))) or ""
    return set(words.split()) | _vector_of_risc(block.get("isa", ""))


def _vector_of_risc(isa: str) -> set[str]:
    """RISC-V names its extensions by single letters before the first underscore: rv64imafdcv_zba."""
    letters = isa.partition("_")[0].removeprefix("rv64").removeprefix("rv32")
    return {"rvv"} if isa.startswith("rv") and "v" in letters else set()


def _arm(cores: list[Block], _: list[Block], shared: tuple[str, ...], machine_vendor: str | None) -> CpuIdentity:
    kinds = list(dict.fromkeys((_int(block, "cpu implementer"), _int(block, "cpu part")) for block in cores))
    names = [core_name(maker or 0, part or 0) for maker, part in kinds]
    variant, revision = _int(cores[0], "cpu variant"), _int(cores[0], "cpu revision")
    return CpuIdentity(
        model=chip_name(" + ".join(dict.fromkeys(names)), machine_vendor),
        vendor=IMPLEMENTERS.get(kinds[0][0] or 0),
        family=_int(cores[0], "cpu architecture"),
        model_number=kinds[0][1],
        stepping=None if variant is None or revision is None else variant << 4 | revision,
        flags=relevant(shared),
        microcode=None,
        is_guest=False,
    )


def _other(cores: list[Block], every: list[Block], shared: tuple[str, ...], _: str | None) -> CpuIdentity:
    block = cores[0]
    name = kernel.first((block.get("model name"), block.get("cpu model"), block.get("uarch"), block.get("cpu")))
    # Only x86 has numbers here: POWER and others use the same words for text.
    return CpuIdentity(
        model=None if name is None else " ".join(name.split()),
        vendor=kernel.first((block.get("vendor_id"), block.get("mvendorid"), every[-1].get("vendor"))),
        family=_int(block, "cpu family"),
        model_number=_int(block, "model"),
        stepping=_int(block, "stepping"),
        flags=relevant(shared),
        microcode=block.get("microcode"),
        is_guest="hypervisor" in shared,
    )


def _int(block: Block, key: str) -> int | None:
    return kernel.integer(block.get(key))
