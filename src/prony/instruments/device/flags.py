"""Select the CPU flags that decide which kernels a model runs on, by Linux's names."""

from __future__ import annotations

from collections.abc import Iterable, Mapping

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
