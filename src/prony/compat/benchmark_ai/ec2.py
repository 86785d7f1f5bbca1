"""How many GPUs each type of machine of EC2 has."""

from __future__ import annotations

# By family, then by size; a size that is not listed is not known.
_ONE = dict.fromkeys(("xlarge", "2xlarge", "4xlarge", "8xlarge", "16xlarge"), 1)
_FOUR = {"12xlarge": 4, "24xlarge": 4, "48xlarge": 8}
_GPUS: dict[str, dict[str, int]] = {
    "p2": {"xlarge": 1, "8xlarge": 8, "16xlarge": 16},
    "p3": {"2xlarge": 1, "8xlarge": 4, "16xlarge": 8},
    "p3dn": {"24xlarge": 8},
    "p4d": {"24xlarge": 8},
    "p4de": {"24xlarge": 8},
    "p5": {"4xlarge": 1, "48xlarge": 8},
    "p5e": {"48xlarge": 8},
    "p5en": {"48xlarge": 8},
    "g2": {"2xlarge": 1, "8xlarge": 4},
    "g3": {"4xlarge": 1, "8xlarge": 2, "16xlarge": 4},
    "g3s": {"xlarge": 1},
    "g4dn": _ONE | {"12xlarge": 4, "metal": 8},
    "g4ad": {"xlarge": 1, "2xlarge": 1, "4xlarge": 1, "8xlarge": 2, "16xlarge": 4},
    "g5": _ONE | _FOUR,
    "g6": _ONE | _FOUR,
    "g6e": _ONE | _FOUR,
}
# Families that have none, by the first letter of their names.
_WITHOUT = ("t", "m", "c", "r", "a", "x", "z", "i", "d", "h")


def gpus_of(instance_type: str) -> int | None:
    """Return the number of GPUs; None where it is not known."""
    family, _, size = instance_type.lower().removeprefix("ml.").partition(".")
    if family in _GPUS:
        return _GPUS[family].get(size)
    is_named = bool(size) and any(letter.isdigit() for letter in family)
    return 0 if is_named and family.startswith(_WITHOUT) else None
