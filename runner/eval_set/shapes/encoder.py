"""The shape of an encoder: a row of the catalog, a block of a plan, and what a cell's file says of it."""

from typing import Annotated, Literal, get_args

from pydantic import Field

from runner.base.records import PromptSide
from runner.base.schema import Sparse

Pooling = Literal["", "cls", "mean", "max", "lasttoken", "mean_sqrt_len_tokens", "weightedmean"]
"""As sentence-transformers names what makes one vector of a text's tokens."""

Config = dict[str, int | float | str | bool | None]

Api = Literal["", "openai", "cohere", "voyage"]

TEXTS_PER_REQUEST = 32
"""TEI answers 413 to more, unless it was started otherwise."""

# Pooling and config follow from the revision, and a load holds them against it; price and size change no vector.
_PROVENANCE = ("model", "revision", "weights_sha256", "query_prompt", "document_prompt", "max_tokens", "dim")


class EncoderSpec(Sparse):
    """A pinned encoder: a sentence-transformers model of the hub at one commit or, with `api`, a service's.

    A row of the catalog without a revision is pinned at first use (`runner.embed.pins`), in the plan. A service has no
    revision, and must refuse a text of more than `max_tokens`. A load refuses files that differ from
    `weights_sha256`, `pooling` or `config`, unless they are empty. Each description is what to write into a plan.
    """

    name: Annotated[str, Field(exclude=True, description="the name that cells have for it")] = ""
    model: Annotated[str, Field(pattern=r"^[!-~]{1,200}$", description="the model's name there, such as BAAI/bge-m3")]
    revision: Annotated[
        str,
        Field(
            pattern=r"^([0-9a-f]{40})?$",
            description="the 40 hexadecimal digits of the model's commit on the hub, never a branch such as main",
        ),
    ] = ""
    dim: Annotated[int, Field(ge=1, description="the number of dimensions of a vector, such as 1024")]
    max_tokens: Annotated[
        int,
        Field(
            ge=0,
            description="the most tokens of a text, prompt and special tokens included, such as 512; 0 for any number",
        ),
    ]
    pooling: Annotated[
        Pooling, Field(description=f"what the model's 1_Pooling/config.json says: {', '.join(get_args(Pooling))}")
    ] = ""
    query_prompt: Annotated[
        str, Field(description='what stands before each query, such as "query: ", or leave it out')
    ] = ""
    document_prompt: Annotated[
        str, Field(description='what stands before each document, such as "passage: ", or leave it out')
    ] = ""
    api: Annotated[Api, Field(description="openai, cohere or voyage")] = ""
    url: Annotated[str, Field(description="the service's address, such as https://api.voyageai.com")] = ""
    usd_per_million_tokens: Annotated[
        float,
        Field(
            ge=0,
            le=1000,
            allow_inf_nan=False,
            description="the price of a million tokens in dollars, 0 for a server of your own",
        ),
    ] = 0
    key_env: Annotated[
        str,
        Field(
            pattern=r"^([A-Z][A-Z0-9_]*)?$",
            description="the NAME of an environment variable in capitals, such as VOYAGE_API_KEY, never the key itself",
        ),
    ] = ""
    texts_per_request: Annotated[
        int,
        Field(ge=1, le=2048, description="the most texts that a server takes at once, such as 10; 32 where left out"),
    ] = TEXTS_PER_REQUEST
    weights_sha256: Annotated[
        str, Field(pattern=r"^([0-9a-f]{64})?$", description="the SHA-256 of model.safetensors")
    ] = ""
    config: Annotated[Config, Field(description="entries of config.json that the files must have")] = Field(
        default_factory=dict
    )
    gflop_per_token: Annotated[float, Field(ge=0, description="what reading a token takes")] = 0.66
    """Twice the parameters outside the embedding table (of arctic-l-v2.0 303 million, of minilm-l6-v2 11), and
    4 x layers x width x 512 for attention within 512 tokens; 8,192 tokens at once cost two to three times as much a
    token. Unless it is known, the catalog's largest."""
    weights_gb: Annotated[float, Field(ge=0, description="how much is downloaded")] = 2.27
    package: Annotated[str, Field(description="the distribution that carries the weights, of the catalog alone")] = ""
    dense: Annotated[tuple[int, ...], Field(strict=False)] = ()
    """Widths of the linear layers behind the pooling, in order, of the catalog alone; the last is `dim`."""
    half: bool = True
    """Whether its states fit in half precision, of the catalog alone; else it runs in float32 on a GPU too."""
    licence: Annotated[str, Field(description="under what terms it comes, of the catalog alone")] = ""
    matryoshka: Annotated[tuple[int, ...], Field(strict=False)] = ()
    """Shorter vectors that its makers trained it for, in dimensions (by their model cards, second-hand)."""
    excluded: Annotated[str, Field(description="why plans may not use it, of the catalog alone")] = ""

    def prompt(self, side: PromptSide) -> str:
        """Return what stands before every text of a side, "" for nothing."""
        return self.query_prompt if side == "query" else self.document_prompt

    @property
    def has_input_types(self) -> bool:
        """Whether the service's API is told if a text is a query, so that no prompt need say it."""
        return self.api in ("cohere", "voyage")

    @property
    def tells_sides_apart(self) -> bool:
        """Whether one text has another vector as a query than as a document."""
        return self.query_prompt != self.document_prompt or self.has_input_types

    @property
    def provenance(self) -> dict[str, str | int]:
        """What every backend must serve of the row."""
        return {"encoder": self.name, **{field: getattr(self, field) for field in _PROVENANCE}}

    @property
    def described(self) -> str:
        """An encoder in a line: what it is, where it runs and what a million tokens cost."""
        size = f"{self.dim} dimensions, {self.max_tokens} tokens"
        if not self.api:
            return f"{self.model} at {self.revision[:12]} of the model hub, {size}, {self.pooling} pooling"
        key = f", key from {self.key_env}" if self.key_env else ""
        return (
            f"{self.model} at {self.url} ({self.api}), {size}, ${self.usd_per_million_tokens:g} a million tokens{key}"
        )
