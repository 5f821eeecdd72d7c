"""Listings: answers of a service, held to the part of their documented shape that a feed reads."""

from typing import TypeVar

from pydantic import BaseModel, ConfigDict, ValidationError

from runner.base.errors import BackendError
from samplers.feeds.client import Client
from samplers.feeds.endpoints import without_key


class Listing(BaseModel):
    """What a feed reads of an answer; the rest of it may be anything."""

    model_config = ConfigDict(frozen=True, strict=True, defer_build=True)


Shape = TypeVar("Shape", bound=Listing)


def listing(client: Client, url: str, shape: type[Shape]) -> Shape:
    """Return the answer at an address; raise a BackendError that says where it has another shape."""
    try:
        return shape.model_validate(client.json(url))
    except ValidationError as error:
        # What was found is not shown: an answer may repeat a key.
        first = error.errors(include_url=False, include_input=False)[0]
        place = ".".join(str(part) for part in first["loc"]) or "the whole"
        raise BackendError(f"{without_key(url)} is not the listing that is due: {place}: {first['msg']}.") from error
