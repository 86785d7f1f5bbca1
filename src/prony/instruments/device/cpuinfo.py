"""Parse /proc/cpuinfo into the CPU's name and features."""

from __future__ import annotations

from dataclasses import dataclass

from prony.instruments import kernel
from prony.instruments.device import arm, flags

Block = dict[str, str]


@dataclass(frozen=True)
class Identity:
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


def identify(text: str, machine_vendor: str | None = None) -> Identity:
    """Return who the CPU is; cores of several kinds are all named, and only flags that all of them have are kept."""
    every = blocks(text)
    cores = [block for block in every if "processor" in block] or every
    if not cores:
        return Identity(None, None, None, None, None, (), None, is_guest=False)
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


def _arm(cores: list[Block], _: list[Block], shared: tuple[str, ...], machine_vendor: str | None) -> Identity:
    kinds = list(dict.fromkeys((_int(block, "cpu implementer"), _int(block, "cpu part")) for block in cores))
    names = [arm.core_name(maker or 0, part or 0) for maker, part in kinds]
    variant, revision = _int(cores[0], "cpu variant"), _int(cores[0], "cpu revision")
    return Identity(
        model=arm.chip_name(" + ".join(dict.fromkeys(names)), machine_vendor),
        vendor=arm.IMPLEMENTERS.get(kinds[0][0] or 0),
        family=_int(cores[0], "cpu architecture"),
        model_number=kinds[0][1],
        stepping=None if variant is None or revision is None else variant << 4 | revision,
        flags=flags.relevant(shared),
        microcode=None,
        is_guest=False,
    )


def _other(cores: list[Block], every: list[Block], shared: tuple[str, ...], _: str | None) -> Identity:
    block = cores[0]
    name = kernel.first((block.get("model name"), block.get("cpu model"), block.get("uarch"), block.get("cpu")))
    # Only x86 has numbers here: POWER and others use the same words for text.
    return Identity(
        model=None if name is None else " ".join(name.split()),
        vendor=kernel.first((block.get("vendor_id"), block.get("mvendorid"), every[-1].get("vendor"))),
        family=_int(block, "cpu family"),
        model_number=_int(block, "model"),
        stepping=_int(block, "stepping"),
        flags=flags.relevant(shared),
        microcode=block.get("microcode"),
        is_guest="hypervisor" in shared,
    )


def _int(block: Block, key: str) -> int | None:
    return kernel.integer(block.get(key))
