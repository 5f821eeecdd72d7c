"""The kinds of value that schemas share."""

from typing import Annotated

from pydantic import Field

Sha256 = Annotated[str, Field(pattern=r"^[0-9a-f]{64}$")]
Share = Annotated[float, Field(ge=0, le=1)]
Count = Annotated[int, Field(ge=0)]
Ends = Annotated[list[float], Field(min_length=2, max_length=2)]
"""Low and high end of an interval."""
