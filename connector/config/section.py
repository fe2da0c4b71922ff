"""The base of the configuration's sections, and the field types that several sections share."""

from __future__ import annotations

from typing import Annotated

from pydantic import AfterValidator, BaseModel, ConfigDict, Field

from connector.patterns import table_pattern


class Section(BaseModel):
    """Base of the sections: immutable; an unknown field is an error."""

    model_config = ConfigDict(frozen=True, extra="forbid", hide_input_in_errors=True)


def _table_pattern(text: str) -> str:
    table_pattern(text.strip())  # raises for one that is none
    return text


Name = Annotated[str, Field(pattern=r"^[A-Za-z0-9][A-Za-z0-9_.-]{0,200}$")]
Bytes = Annotated[int, Field(ge=1)]
Seconds = Annotated[float, Field(gt=0, allow_inf_nan=False)]
TableGlob = Annotated[str, AfterValidator(_table_pattern)]
