"""The shape of `encoders:` in plan.yaml: encoders of a plan's own, from the model hub or behind a service's API."""

from typing import Annotated, Literal

from pydantic import Discriminator, Field, Tag

from runner.base.schema import Sparse
from runner.eval_set.catalog import EncoderSpec, Service

Pooling = Literal["cls", "mean", "max", "lasttoken", "mean_sqrt_len_tokens", "weightedmean"]
"""As sentence-transformers names what makes one vector of a text's tokens."""

_Positive = Annotated[int, Field(ge=1)]


class HubEncoder(Sparse):
    """A sentence-transformers model of the hub at one commit. `max_tokens` counts special tokens and prompt.

    `pooling` is what the model's own files say, and is held against them when the model is loaded.
    """

    hub_id: Annotated[str, Field(pattern=r"^[\w.-]+/[\w.-]+$")]
    revision: Annotated[str, Field(pattern=r"^[0-9a-f]{40}$")]
    dim: _Positive
    max_tokens: _Positive
    pooling: Pooling
    query_prompt: str = ""
    document_prompt: str = ""

    def spec(self, name: str) -> EncoderSpec:
        """As the catalog would have it."""
        return EncoderSpec(
            name,
            self.hub_id,
            self.revision,
            dim=self.dim,
            max_tokens=self.max_tokens,
            query_prompt=self.query_prompt,
            document_prompt=self.document_prompt,
            pooling=self.pooling,
        )


class ServiceEncoder(Sparse):
    """A model behind an HTTP API of OpenAI's, Cohere's or Voyage's shape; `model` is its name there.

    `max_tokens` is the longest text that the service takes: what is longer it must refuse. Cohere's and Voyage's APIs
    are told which side a text is on and take no prompts. `key_env` names the environment variable with the key.
    """

    api: Literal["openai", "cohere", "voyage"]
    url: str
    model: Annotated[str, Field(pattern=r"^[!-~]{1,200}$")]
    dim: _Positive
    max_tokens: _Positive
    usd_per_million_tokens: Annotated[float, Field(ge=0, le=1000, allow_inf_nan=False)]
    query_prompt: str = ""
    document_prompt: str = ""
    key_env: Annotated[str, Field(pattern=r"^([A-Z][A-Z0-9_]*)?$")] = ""

    def spec(self, name: str) -> EncoderSpec:
        """As the catalog would have it, without a revision: a service says none."""
        return EncoderSpec(
            name,
            self.model,
            "",
            dim=self.dim,
            max_tokens=self.max_tokens,
            query_prompt=self.query_prompt,
            document_prompt=self.document_prompt,
            service=Service(self.api, self.url, self.usd_per_million_tokens, self.key_env),
        )


def _kind(value: object) -> str:
    """Which of the two a block is: a service has an `api`."""
    return "service" if isinstance(value, ServiceEncoder) or (isinstance(value, dict) and "api" in value) else "hub"


OwnEncoder = Annotated[
    Annotated[HubEncoder, Tag("hub")] | Annotated[ServiceEncoder, Tag("service")], Discriminator(_kind)
]
