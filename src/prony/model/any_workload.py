"""The workload of any installed kind, as recipes and jobs hold it.

The recipe's schema, the API's and the web pages' types are made of this union. Only nouns that hold a workload import
this module: it loads the schema of every kind.
"""

from __future__ import annotations

from collections.abc import Mapping
from typing import TYPE_CHECKING, Annotated, Any, Union

from pydantic import Field, GetCoreSchemaHandler, SerializeAsAny, ValidationInfo, ValidatorFunctionWrapHandler
from pydantic_core import CoreSchema, core_schema

from prony.model.base import FROM_PEER
from prony.model.workload import MissingWorkload, Workload, kind_packages, workload_schema


class _KeepMissing:
    """Keeps what another Prony wrote of a kind that is not installed here.

    What a person writes is validated strictly, and by the union alone: it must be of an installed kind.
    """

    @staticmethod
    def __get_pydantic_core_schema__(source: Any, handler: GetCoreSchemaHandler) -> CoreSchema:
        plain = handler(source)
        lenient = core_schema.with_info_wrap_validator_function(_keep_missing, plain)
        return core_schema.lax_or_strict_schema(lax_schema=lenient, strict_schema=plain)


def _keep_missing(value: Any, handler: ValidatorFunctionWrapHandler, info: ValidationInfo) -> Any:
    if isinstance(value, MissingWorkload):
        return value
    kind = value.get("kind") if isinstance(value, Mapping) and info.context == FROM_PEER else None
    if isinstance(kind, str) and kind not in kind_packages():
        return MissingWorkload.model_construct(**value)
    return handler(value)


if TYPE_CHECKING:
    AnyWorkload = Workload
else:
    # First what every agent runs: where kinds have a key of one name, a hint is that of the first.
    _SCHEMAS = sorted(map(workload_schema, kind_packages()), key=lambda one: not one.is_allowed_by_default)
    AnyWorkload = Annotated[
        SerializeAsAny[
            Annotated[
                Union[tuple(_SCHEMAS)],  # noqa: UP007 - known when it runs
                Field(discriminator="kind"),
            ]
        ],
        _KeepMissing,
        Field(description="what is measured, chosen by `kind`"),
    ]
