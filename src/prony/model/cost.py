"""What an hour of the machine costs: what a person writes under `cost`, and where a price came from."""

from __future__ import annotations

from typing import Annotated

from pydantic import Field

from prony.model.base import Noun

# The label by which an agent, or PRONY_LABELS on this machine, tells its price.
PRICE_LABEL = "cost_per_hour"
CURRENCY_LABEL = "currency"
Amount = Annotated[float, Field(gt=0, allow_inf_nan=False)]


class Cost(Noun):
    """The price of the machine that the jobs run on."""

    per_hour: Amount = Field(description="what one hour of the machine costs")
    currency: str = Field(default="USD", pattern=r"^[A-Z]{3}$", description="three letters, as in USD or EUR")
