"""The zoo: real architectures built deterministically on the spot, so that no download is needed."""

from prony.plugins.models.zoo.cards import ZOO, ModelCard
from prony.plugins.models.zoo.source import ZooSource

__all__ = ["ZOO", "ModelCard", "ZooSource"]
