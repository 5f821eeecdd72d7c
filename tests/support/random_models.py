"""Every catalogued encoder with random weights, in the files of its hub repository.

Configurations, tensor names and settings of the tokenizers are the hub's; weights and vocabularies are made here. Words
of one meaning, as the probe has them, have token vectors that point the same way, so that an honest model passes it.
"""

import json
import re

import numpy as np
from tokenizers import Tokenizer, decoders, models, normalizers, pre_tokenizers, processors, trainers

from runner.embed.probe import ENDINGS, FILLER, PARAPHRASES
from runner.eval_set import catalog

_SIZES = ("hidden_size", "intermediate_size", "num_attention_heads", "num_hidden_layers")
_BERT = {
    "architectures": ["BertModel"],
    "model_type": "bert",
    "max_position_embeddings": 512,
    "type_vocab_size": 2,
    "vocab_size": 30522,
}
CONFIGS = {
    "arctic-l-v2.0": dict(zip(_SIZES, (1024, 4096, 16, 24), strict=True))
    | {
        "architectures": ["XLMRobertaModel"],
        "layer_norm_eps": 1e-05,
        "max_position_embeddings": 8194,
        "model_type": "xlm-roberta",
        "torch_dtype": "float32",
        "type_vocab_size": 1,
        "vocab_size": 250002,
    },
    "mxbai-large-v1": _BERT | dict(zip(_SIZES, (1024, 4096, 16, 24), strict=True)) | {"torch_dtype": "float16"},
    "nomic-v1.5": {
        "activation_function": "swiglu",
        "architectures": ["NomicBertModel"],
        "auto_map": {
            "AutoConfig": "nomic-ai/nomic-bert-2048--configuration_hf_nomic_bert.NomicBertConfig",
            "AutoModel": "nomic-ai/nomic-bert-2048--modeling_hf_nomic_bert.NomicBertModel",
            "AutoModelForMaskedLM": "nomic-ai/nomic-bert-2048--modeling_hf_nomic_bert.NomicBertForPreTraining",
        },
        "layer_norm_epsilon": 1e-12,
        "max_trained_positions": 2048,
        "mlp_fc1_bias": False,
        "mlp_fc2_bias": False,
        "model_type": "nomic_bert",
        "n_embd": 768,
        "n_head": 12,
        "n_inner": 3072,
        "n_layer": 12,
        "n_positions": 8192,
        "parallel_block": False,
        "prenorm": False,
        "qkv_proj_bias": False,
        "rotary_emb_base": 1000,
        "rotary_emb_fraction": 1.0,
        "rotary_emb_interleaved": False,
        "rotary_emb_scale_base": None,
        "rotary_scaling_factor": None,
        "torch_dtype": "float32",
        "type_vocab_size": 2,
        "use_rms_norm": False,
        "vocab_size": 30528,
    },
    "mpnet-base-v2": dict(zip(_SIZES, (768, 3072, 12, 12), strict=True))
    | {
        "architectures": ["MPNetForMaskedLM"],
        "layer_norm_eps": 1e-05,
        "max_position_embeddings": 514,
        "model_type": "mpnet",
        "relative_attention_num_buckets": 32,
        "vocab_size": 30527,
    },
    "minilm-l6-v2": _BERT | dict(zip(_SIZES, (384, 1536, 12, 6), strict=True)),
    "embeddinggemma-300m": dict(zip(_SIZES, (768, 1152, 3, 24), strict=True))
    | {
        "_sliding_window_pattern": 6,
        "architectures": ["Gemma3TextModel"],
        "head_dim": 256,
        "hidden_activation": "gelu_pytorch_tanh",
        "max_position_embeddings": 2048,
        "model_type": "gemma3_text",
        "num_key_value_heads": 1,
        "query_pre_attn_scalar": 256,
        "rope_local_base_freq": 10000.0,
        "rope_theta": 1000000.0,
        "sliding_window": 512,
        "torch_dtype": "float32",
        "use_bidirectional_attention": True,
        "vocab_size": 262144,
    },
    "qwen3-embedding-0.6b": dict(zip(_SIZES, (1024, 3072, 16, 28), strict=True))
    | {
        "architectures": ["Qwen3ForCausalLM"],
        "head_dim": 128,
        "max_position_embeddings": 32768,
        "max_window_layers": 28,
        "model_type": "qwen3",
        "num_key_value_heads": 8,
        "rope_theta": 1000000,
        "tie_word_embeddings": True,
        "torch_dtype": "bfloat16",
        "use_sliding_window": False,
        "vocab_size": 151669,
    },
    "granite-embedding-english-r2": dict(zip(_SIZES, (768, 1152, 12, 22), strict=True))
    | {
        "architectures": ["ModernBertModel"],
        "global_attn_every_n_layers": 3,
        "global_rope_theta": 80000.0,
        "local_attention": 128,
        "local_rope_theta": 10000.0,
        "max_position_embeddings": 8192,
        "model_type": "modernbert",
        "torch_dtype": "bfloat16",
        "vocab_size": 50368,
    },
}
"""config.json as each hub repository has it, but for what is the default of its model type or computes nothing."""

_NOMIC_NAMES = dict(zip(_SIZES, ("n_embd", "n_inner", "n_head", "n_layer"), strict=True))
_SHIPS = {
    "arctic-l-v2.0": {"query": "query: "},
    "mxbai-large-v1": {"query": "Represent this sentence for searching relevant passages: ", "passage": ""},
    **{
        name: {"query": catalog.ENCODERS[name].query_prompt, "document": catalog.ENCODERS[name].document_prompt}
        for name in ("embeddinggemma-300m", "qwen3-embedding-0.6b")
    },
}
_SPECIAL = {
    "xlm-roberta": ["<s>", "<pad>", "</s>", "<unk>", "<mask>"],
    "mpnet": ["<s>", "<pad>", "</s>", "[UNK]", "<mask>"],
    "bert": ["[CLS]", "[PAD]", "[SEP]", "[UNK]", "[MASK]"],
    "nomic_bert": ["[CLS]", "[PAD]", "[SEP]", "[UNK]", "[MASK]"],
    "gemma3_text": ["<bos>", "<pad>", "<eos>", "<unk>", "<mask>"],
    "qwen3": ["", "<|endoftext|>", "<|endoftext|>", "<|unk|>", "<|mask|>"],
    "modernbert": ["[CLS]", "[PAD]", "[SEP]", "[UNK]", "[MASK]"],
}
"""What opens a text, pads, closes it, is unknown and is masked; Qwen's models open none."""

_OF_BYTES = ("gemma3_text", "qwen3", "modernbert")
"""Kinds whose tokens are pairs of bytes, and whose tensors are named as transformers names them."""

_CLASSES = {"xlm-roberta": "XLMRobertaTokenizer", "mpnet": "MPNetTokenizer"}
REDUCED = dict(zip(_SIZES, (64, 128, 2, 2), strict=True))
_REDUCED_HEADS = {"num_key_value_heads": 1, "head_dim": 32, "query_pre_attn_scalar": 32}


def write_model(folder, name, *, sizes=None, seed=0):
    """The files of an encoder, and its catalogue row without package and digest: at full size, or of other `sizes`.

    Other sizes come with a vocabulary of a few hundred words, and the row has them too. Positions and limit stay.
    """
    row = catalog.ENCODERS[name]
    config, words = dict(CONFIGS[name]), _words(row)
    if sizes is not None:
        config |= sizes | {entry: value for entry, value in _REDUCED_HEADS.items() if entry in config}
        if name == "nomic-v1.5":
            # Of the hub's names transformers knows none: it would take the full size, so both are written.
            config |= {theirs: config[ours] for ours, theirs in _NOMIC_NAMES.items()}
    tokenizer = _tokenizer(config["model_type"], words, config["vocab_size"] if sizes is None else 0)
    if sizes is not None or config["model_type"] not in _OF_BYTES:
        config["vocab_size"] = tokenizer.get_vocab_size()
    folder.mkdir(parents=True)
    random, width = np.random.default_rng(seed), config.get("hidden_size") or config["n_embd"]
    if config["model_type"] in _OF_BYTES:
        opens, pads, closes, *_ = _SPECIAL[config["model_type"]]
        numbers = {"bos": opens, "pad": pads, "eos": closes, "cls": opens, "sep": closes}
        config |= {f"{end}_token_id": tokenizer.token_to_id(token) for end, token in numbers.items() if token}
        tensors = _tensors_of_transformers(config, tokenizer, random)
    else:
        tensors = dict(_tensors(config, tokenizer, random))
    if config.get("torch_dtype") == "float16":
        tensors = {tensor: values.astype(np.float16) for tensor, values in tensors.items()}
    if name in ("mpnet-base-v2", "minilm-l6-v2"):
        tensors["embeddings.position_ids"] = np.arange(config["max_position_embeddings"])[None]
    _save(tensors, folder / "model.safetensors", config.get("torch_dtype"))
    tokenizer.save(str(folder / "tokenizer.json"))
    pooled, dense = row.pooling or "mean", tuple(width * out // row.dim for out in row.dense)
    modes = {
        f"pooling_mode_{mode}": mode.startswith(pooled)
        for mode in ("cls_token", "mean_tokens", "max_tokens", "lasttoken")
    }
    normalize = [] if name in ("nomic-v1.5", "mxbai-large-v1") else ["Normalize"]
    behind = [*["Dense"] * len(dense), *normalize]
    steps = [
        ("", "Transformer"),
        ("1_Pooling", "Pooling"),
        *((f"{n}_{step}", step) for n, step in enumerate(behind, 2)),
    ]
    for number, (into, out) in enumerate(zip((width, *dense), dense, strict=False), 2):
        (folder / f"{number}_Dense").mkdir()
        matrix = random.standard_normal((out, into), np.float32) * np.float32(into**-0.5)
        _save({"linear.weight": matrix}, folder / f"{number}_Dense" / "model.safetensors", config.get("torch_dtype"))
        linear = {"in_features": into, "out_features": out, "bias": False}
        linear["activation_function"] = "torch.nn.modules.linear.Identity"
        (folder / f"{number}_Dense" / "config.json").write_text(json.dumps(linear))
    opens, pads, closes, unknown, masks = _SPECIAL[config["model_type"]]
    special = {"cls_token": opens, "pad_token": pads, "sep_token": closes, "unk_token": unknown, "mask_token": masks}
    if config["model_type"] in _OF_BYTES:
        special = {"pad_token": pads, "eos_token": closes} | ({"bos_token": opens} if opens else {})
    for path, content in {
        "config.json": config,
        "modules.json": [
            {"idx": place, "name": str(place), "path": path, "type": f"sentence_transformers.models.{step}"}
            for place, (path, step) in enumerate(steps)
        ],
        "1_Pooling/config.json": {"word_embedding_dimension": width, **modes},
        "sentence_bert_config.json": {"max_seq_length": row.max_tokens, "do_lower_case": False},
        "config_sentence_transformers.json": {"prompts": _SHIPS.get(name, {}), "default_prompt_name": None},
        "special_tokens_map.json": special,
        "tokenizer_config.json": special
        | {
            "tokenizer_class": _CLASSES.get(config["model_type"], "BertTokenizer")
            if config["model_type"] not in _OF_BYTES
            else "PreTrainedTokenizerFast",
            "model_max_length": row.max_tokens,
            "do_lower_case": True,
        },
    }.items():
        (folder / path).parent.mkdir(exist_ok=True)
        (folder / path).write_text(json.dumps(content))
    changed = {entry: config[entry] for entry in row.config}
    return row.model_copy(update={"dim": width, "package": "", "weights_sha256": "", "config": changed, "dense": dense})


def _words(row):
    """What the probe says, and the catalogued prompts, in lower case for WordPiece."""
    sentences = [sentence for pair in PARAPHRASES for sentence in pair]
    said = " ".join([*sentences, FILLER, *ENDINGS, row.query_prompt, row.document_prompt])
    if CONFIGS[row.name]["model_type"] in _OF_BYTES:
        # Words behind a space and at a text's start, as byte pairs have them.
        return sorted({piece for word in re.findall(r"\w+", said) for piece in (word, f" {word}")})
    return sorted(set(re.findall(r"\w+", said if row.name == "arctic-l-v2.0" else said.lower())))


def _tokenizer(kind, words, size):
    """The hub's settings over a vocabulary of these words and single characters, filled up to `size` entries."""
    opens, pads, closes, unknown, masks = _SPECIAL[kind]
    if kind in _OF_BYTES:
        return _byte_pairs(words, opens, pads, closes)
    characters = [chr(code) for code in range(33, 127) if not chr(code).isupper()]
    if kind == "xlm-roberta":
        pieces = (
            [(f"\u2581{word}", -5.0) for word in words] + [("\u2581", -6.0)] + [(char, -9.0) for char in characters]
        )
        filled = [(f"\u2581unused{number}", -20.0) for number in range(size - len(pieces) - 5)]
        vocabulary = [(token, 0.0) for token in (opens, pads, closes, unknown)] + pieces + filled + [(masks, 0.0)]
        made = Tokenizer(models.Unigram(vocabulary, unk_id=3))
        # The hub's file has nmt_nfkc as a compiled table, of which this is the larger part.
        made.normalizer = normalizers.NFKC()
        made.pre_tokenizer = pre_tokenizers.Sequence(
            [pre_tokenizers.WhitespaceSplit(), pre_tokenizers.Metaspace("\u2581", prepend_scheme="always")]
        )
    else:
        first = [opens, pads, closes, unknown] if kind == "mpnet" else [pads, unknown, opens, closes, masks]
        pieces = first + characters + [f"##{char}" for char in characters] + [word for word in words if len(word) > 1]
        n_last = kind == "mpnet"
        pieces += [f"[unused{number}]" for number in range(size - len(pieces) - n_last)] + [masks] * n_last
        vocabulary = {token: number for number, token in enumerate(pieces)}
        made = Tokenizer(models.WordPiece(vocabulary, unk_token=unknown))
        made.normalizer = normalizers.BertNormalizer(lowercase=True)
        made.pre_tokenizer = pre_tokenizers.BertPreTokenizer()
    made.add_special_tokens([opens, pads, closes, unknown, masks])
    ends = [(token, made.token_to_id(token)) for token in (opens, closes)]
    made.post_processor = processors.TemplateProcessing(single=f"{opens} $A {closes}", special_tokens=ends)
    return made


def _byte_pairs(words, opens, pads, closes):
    """Byte pairs over which every word, alone or behind a space, is one token; Qwen's do not open a text."""
    made = Tokenizer(models.BPE())
    made.pre_tokenizer = pre_tokenizers.ByteLevel(add_prefix_space=False)
    made.decoder = decoders.ByteLevel()
    special = list(dict.fromkeys(filter(None, (opens, pads, closes))))
    alphabet = pre_tokenizers.ByteLevel.alphabet()
    trainer = trainers.BpeTrainer(
        vocab_size=10**5, special_tokens=special, initial_alphabet=alphabet, show_progress=False
    )
    made.train_from_iterator([word for word in words for _ in range(2)], trainer)
    ends = [(token, made.token_to_id(token)) for token in dict.fromkeys(filter(None, (opens, closes)))]
    single = f"{opens} $A {closes}".strip()
    made.post_processor = processors.TemplateProcessing(single=single, special_tokens=ends)
    return made


def _save(tensors, path, dtype):
    """Half of the hub's files are in bfloat16, which numpy has not."""
    import torch
    from safetensors.torch import save_file as save_tensors

    made = {name: torch.from_numpy(values) for name, values in tensors.items()}
    if dtype == "bfloat16":
        made = {name: values.bfloat16() for name, values in made.items()}
    save_tensors(made, path, metadata={"format": "pt"})


def _tensors_of_transformers(config, tokenizer, random):
    """Random values under the names, and in the shapes, that transformers has for a model of this configuration."""
    import torch
    from transformers import AutoConfig, AutoModel

    settings = {name: value for name, value in config.items() if name not in ("model_type", "torch_dtype")}
    with torch.device("meta"):
        model = AutoModel.from_config(AutoConfig.for_model(config["model_type"], **settings))
    # Gemma's norms multiply by 1 more than what they hold.
    plain, tensors = 0.0 if config["model_type"] == "gemma3_text" else 1.0, {}
    for name, parameter in model.named_parameters():
        shape = tuple(parameter.shape)
        values = random.standard_normal(shape, np.float32)
        if len(shape) == 1:
            tensors[name] = plain + np.float32(0.1) * values
        elif "embed" in name:
            tensors[name] = _by_topic(values, tokenizer, random)
        else:
            tensors[name] = values * np.float32(shape[1] ** -0.5)
    return tensors


def _by_topic(table, tokenizer, random):
    """The table with words of one meaning pointing the same way."""
    for topic, pair in zip(
        random.standard_normal((len(PARAPHRASES), table.shape[1]), np.float32), PARAPHRASES, strict=True
    ):
        others = [sentence for other in PARAPHRASES if other is not pair for sentence in other]
        for number in _ids(tokenizer, pair) - _ids(tokenizer, others):
            table[number] = topic + np.float32(0.5) * table[number]
    return table


def _ids(tokenizer, sentences):
    return {number for sentence in sentences for number in tokenizer.encode(sentence, add_special_tokens=False).ids}


def _tensors(config, tokenizer, random):
    """Name and values of every tensor, as the hub's file has them."""
    kind = config["model_type"]
    names = _NOMIC_NAMES.values() if kind == "nomic_bert" else _SIZES
    width, inner, _, layers = (config[name] for name in names)

    def normal(*shape, scale=1.0):
        return random.standard_normal(shape, np.float32) * np.float32(scale)

    def norm(name):
        return [(f"{name}.weight", 1 + normal(width, scale=0.1)), (f"{name}.bias", normal(width, scale=0.02))]

    def linear(name, rows, columns):
        return [
            (f"{name}.weight", normal(rows, columns, scale=columns**-0.5)),
            (f"{name}.bias", normal(rows, scale=0.02)),
        ]

    yield "embeddings.word_embeddings.weight", _by_topic(normal(config["vocab_size"], width), tokenizer, random)
    if kind != "mpnet":
        yield "embeddings.token_type_embeddings.weight", normal(config["type_vocab_size"], width, scale=0.1)
    if kind == "nomic_bert":
        yield from norm("emb_ln")
        for number in range(layers):
            layer = f"encoder.layers.{number}"
            for name, rows, columns in (
                ("attn.Wqkv", 3 * width, width),
                ("attn.out_proj", width, width),
                ("mlp.fc11", inner, width),
                ("mlp.fc12", inner, width),
                ("mlp.fc2", width, inner),
            ):
                yield linear(f"{layer}.{name}", rows, columns)[0]
            yield from norm(f"{layer}.norm1")
            yield from norm(f"{layer}.norm2")
        return
    yield "embeddings.position_embeddings.weight", normal(config["max_position_embeddings"], width, scale=0.1)
    yield from norm("embeddings.LayerNorm")
    if kind == "mpnet":
        buckets = config["relative_attention_num_buckets"], config["num_attention_heads"]
        yield "encoder.relative_attention_bias.weight", normal(*buckets, scale=0.1)
        parts = [f"attention.attn.{part}" for part in "qkvo"]
    else:
        parts = [f"attention.self.{part}" for part in ("query", "key", "value")] + ["attention.output.dense"]
    attended = "attention.LayerNorm" if kind == "mpnet" else "attention.output.LayerNorm"
    for number in range(layers):
        layer = f"encoder.layer.{number}"
        for part in parts:
            yield from linear(f"{layer}.{part}", width, width)
        yield from norm(f"{layer}.{attended}")
        yield from linear(f"{layer}.intermediate.dense", inner, width)
        yield from linear(f"{layer}.output.dense", width, inner)
        yield from norm(f"{layer}.output.LayerNorm")
    if kind != "xlm-roberta":
        yield from linear("pooler.dense", width, width)
