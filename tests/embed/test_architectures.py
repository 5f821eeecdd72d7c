"""Every catalogued architecture loads from the files of its hub repository, and what is wrong with one is found out.

Weights are random and models small; `slow` tests have the hub's own sizes and the catalogued lengths.
"""

import json
import shutil
from functools import partial
from itertools import chain

import numpy as np
import pytest

from runner.base.errors import BackendError
from runner.base.records import parse_cell
from runner.embed.local_encoder import STATIC, TransformerEncoder
from runner.embed.probe import FILLER, PARAPHRASES, probe
from runner.embed.weights import check_files, downloaded
from runner.eval_set import catalog
from runner.eval_set.plan import default_cells
from tests.support.hub_server import put_in_cache
from tests.support.random_models import CONFIGS, REDUCED, write_model

DTYPES = ("float32", "float16")
LONGEST = 512
"""What tests that are not slow read at most: 8,192 tokens take seconds even with a small model."""

LONGEST_OF = {"float32": LONGEST, "float16": LONGEST // 2}
"""What the probe reads at most; half precision takes twice the time here."""

SHORT = 128
"""What models of full size read: of 8,192 tokens each text takes the largest one five minutes on one core."""

TEXTS = [sentence for pair in PARAPHRASES for sentence in pair] + [". ".join([FILLER] * n) for n in (1, 7, 150)]


@pytest.fixture(name="made", scope="module")
def _made(tmp_path_factory):
    """Folder and row of each small model."""
    parent = tmp_path_factory.mktemp("models")
    return {name: (parent / name, write_model(parent / name, name, sizes=REDUCED)) for name in CONFIGS}


def encoder(made, name, dtype="float32", longest=LONGEST):
    folder, spec = made[name]
    spec = spec.model_copy(update={"max_tokens": min(spec.max_tokens, longest)})
    return TransformerEncoder(spec, dtype=dtype, find=partial(checked, folder))


def checked(folder, spec):
    check_files(spec, folder)
    return folder


def copied(made, name, folder):
    shutil.copytree(made[name][0], folder)
    return {name: (folder, made[name][1])}


def test_no_default_plan_has_an_encoder_that_is_not_loaded_here():
    plans = [default_cells(source, rehearsal=rehearsal) for source in catalog.SOURCES.values() for rehearsal in (0, 1)]
    cells = [parse_cell(cell) for cell in chain.from_iterable(plans)]
    encoders = {cell.encoder for cell in cells if hasattr(cell, "encoder")}
    assert encoders - set(STATIC) <= set(CONFIGS)


@pytest.mark.parametrize("dtype", DTYPES)
@pytest.mark.parametrize("name", CONFIGS)
def test_the_small_model_passes_its_probe(made, name, dtype):
    small = encoder(made, name, dtype, LONGEST_OF[dtype])
    figures = probe(small)
    assert (figures["truncates_at"], figures["told_by_tokens"]) == (small.spec.max_tokens, 1)


@pytest.mark.parametrize("name", CONFIGS)
def test_rows_are_those_of_sentence_transformers_with_the_catalogued_prompts(made, name):
    from sentence_transformers import SentenceTransformer

    small = encoder(made, name)
    reference = SentenceTransformer(str(made[name][0]), device="cpu", local_files_only=True).float()
    reference.max_seq_length = small.spec.max_tokens
    for side, prompt in (("document", small.spec.document_prompt), ("query", small.spec.query_prompt)):
        expected = reference.encode(
            TEXTS, prompt=prompt, normalize_embeddings=True, convert_to_numpy=True, show_progress_bar=False
        )
        assert np.abs(small.encode(TEXTS, side) - expected).max() < 1e-6
        whole = reference.tokenizer([prompt + text for text in TEXTS], truncation=False, verbose=False)
        assert small.token_counts(TEXTS, side).tolist() == [len(ids) for ids in whole["input_ids"]]


def unit(rows):
    return rows / np.linalg.norm(rows, axis=-1, keepdims=True)


def nomic_rows(folder, texts_ids, heads):
    """nomic-bert from its description: rotary positions (base 1000), SwiGLU, norms after each step, mean of states."""
    from safetensors.torch import load_file

    weights = {name: values.double().numpy() for name, values in load_file(folder / "model.safetensors").items()}
    n_layers = json.loads((folder / "config.json").read_text())["n_layer"]

    def normed(states, name):
        states = states - states.mean(axis=-1, keepdims=True)
        states /= np.sqrt((states**2).mean(axis=-1, keepdims=True) + 1e-12)
        return states * weights[f"{name}.weight"] + weights[f"{name}.bias"]

    def turned(states):
        """Each half of a head is the other's partner; a position turns the pair by its angle."""
        half = states.shape[-1] // 2
        angles = np.arange(states.shape[1])[:, None] / 1000.0 ** (np.arange(half) / half)
        first, second = states[..., :half], states[..., half:]
        cos, sin = np.cos(angles), np.sin(angles)
        return np.concatenate([first * cos - second * sin, second * cos + first * sin], axis=-1)

    rows = []
    for ids in texts_ids:
        states = (
            weights["embeddings.word_embeddings.weight"][ids] + weights["embeddings.token_type_embeddings.weight"][0]
        )
        states = normed(states, "emb_ln")
        width = states.shape[1]
        for layer in (f"encoder.layers.{number}" for number in range(n_layers)):
            joined = states @ weights[f"{layer}.attn.Wqkv.weight"].T
            query, key, value = joined.reshape(len(ids), 3, heads, width // heads).transpose(1, 2, 0, 3)
            scores = turned(query) @ turned(key).swapaxes(1, 2) / np.sqrt(width // heads)
            shares = np.exp(scores - scores.max(axis=-1, keepdims=True))
            mixed = (shares / shares.sum(axis=-1, keepdims=True)) @ value
            mixed = mixed.swapaxes(0, 1).reshape(len(ids), width) @ weights[f"{layer}.attn.out_proj.weight"].T
            states = normed(states + mixed, f"{layer}.norm1")
            up, gate = (states @ weights[f"{layer}.mlp.{name}.weight"].T for name in ("fc11", "fc12"))
            inner = (up * gate / (1 + np.exp(-gate))) @ weights[f"{layer}.mlp.fc2.weight"].T
            states = normed(states + inner, f"{layer}.norm2")
        rows.append(states.mean(axis=0))
    return unit(np.array(rows))


def ids_of(model, texts):
    return [model._ids(model.spec.document_prompt + text) for text in texts]


def test_nomic_is_what_its_description_says(made):
    small = encoder(made, "nomic-v1.5")
    expected = nomic_rows(made["nomic-v1.5"][0], ids_of(small, TEXTS), heads=REDUCED["num_attention_heads"])
    assert np.abs(small.encode(TEXTS, "document") - expected).max() < 1e-6


@pytest.mark.slow
def test_nomics_hub_files_load_at_full_size_and_none_of_its_code_is_run(tmp_path):
    """config.json has the hub's names alone, and the code that it names lies beside it."""
    folder = tmp_path / "full"
    spec = write_model(folder, "nomic-v1.5")
    assert not {"hidden_size", "num_hidden_layers"} & set(json.loads((folder / "config.json").read_text()))
    for module in ("configuration_hf_nomic_bert", "modeling_hf_nomic_bert"):
        (folder / f"{module}.py").write_text("raise SystemExit('code of the model hub ran')")
    full = encoder({spec.name: (folder, spec)}, spec.name, longest=SHORT)
    probe(full)
    expected = nomic_rows(folder, ids_of(full, TEXTS[:2]), heads=12)
    assert np.abs(full.encode(TEXTS[:2], "document") - expected).max() < 1e-5
    shutil.rmtree(folder)


@pytest.mark.slow
@pytest.mark.parametrize("name", sorted(set(CONFIGS) - {"nomic-v1.5"}))
def test_the_full_model_passes_its_probe(tmp_path, name):
    folder = tmp_path / "full"
    spec = write_model(folder, name)
    assert spec == catalog.ENCODERS[name].model_copy(update={"package": "", "weights_sha256": ""})
    assert probe(encoder({name: (folder, spec)}, name, longest=SHORT))["told_by_tokens"] == 1
    shutil.rmtree(folder)


def applied(broken, **row):
    """The encoder that says what its row says and does what another row says."""
    other = TransformerEncoder(broken.spec.model_copy(update=row), dtype=broken.dtype, find=broken._find)
    other.__dict__["_model"] = broken._model
    broken.encode = other.encode
    return broken


def pooled(broken, mode):
    broken._model[1].pooling_mode = mode
    return broken


def padded_on_the_left(broken):
    """As some tokenizers' files say, while the mask stays where it is for padding on the right."""
    features = broken._features

    def turned(ids):
        made = features(ids)
        lengths = made["attention_mask"].sum(axis=1)
        made["input_ids"] = np.array(
            [np.roll(row, len(row) - n) for row, n in zip(made["input_ids"], lengths, strict=True)]
        )
        return made

    broken._features = turned
    return broken


def other_dense(broken, layer):
    broken._model[2] = layer(broken._model[2])
    return broken


def unlearned(dense):
    dense.linear.weight.data = dense.linear.weight.data.flip(0)
    return dense


def bent(dense):
    import torch

    dense.activation_function = torch.nn.Tanh()
    return dense


FAULTS = {
    "mean for the last token": ("qwen3-embedding-0.6b", partial(pooled, mode="mean"), "pooling"),
    "mean for CLS of another": ("granite-embedding-english-r2", partial(pooled, mode="mean"), "pooling"),
    "CLS for mean of another": ("embeddinggemma-300m", partial(pooled, mode="cls"), "pooling"),
    "no instruction": ("qwen3-embedding-0.6b", partial(applied, query_prompt=""), "prompts"),
    "no title": ("embeddinggemma-300m", partial(applied, document_prompt=""), "pooling"),
    "padding on the left": ("qwen3-embedding-0.6b", padded_on_the_left, "batching"),
    "padding on the left of another": ("granite-embedding-english-r2", padded_on_the_left, "batching"),
    "other linear weights": ("embeddinggemma-300m", partial(other_dense, layer=unlearned), "pooling"),
    "a linear layer that bends": ("embeddinggemma-300m", partial(other_dense, layer=bent), "pooling"),
    "mean for CLS": ("arctic-l-v2.0", partial(pooled, mode="mean"), "pooling"),
    "CLS for mean": ("nomic-v1.5", partial(pooled, mode="cls"), "pooling"),
    "no query prompt": ("arctic-l-v2.0", partial(applied, query_prompt=""), "prompts"),
    "no query prompt of two": ("nomic-v1.5", partial(applied, query_prompt=""), "pooling"),
    "no document prompt": ("nomic-v1.5", partial(applied, document_prompt=""), "pooling"),
    "a prompt of no row": ("mpnet-base-v2", partial(applied, query_prompt="query: "), "prompts"),
}


@pytest.mark.parametrize("dtype", DTYPES)
@pytest.mark.parametrize("fault", FAULTS)
def test_the_probe_catches_another_pooling_or_prompt(made, fault, dtype):
    name, plant, check = FAULTS[fault]
    with pytest.raises(BackendError, match=rf"probe of {name} failed \({check}\)"):
        probe(plant(encoder(made, name, dtype)))


def off_by_one(made, name, dtype, longest):
    """One token past the last position of a model without further ones is an error of its own."""
    limit = encoder(made, name, dtype, longest).spec.max_tokens
    for read, said in ((limit - 1, r"failed \(truncation\)"), (limit + 1, r"failed(: RuntimeError| \(truncation\))")):
        with pytest.raises(BackendError, match=said):
            probe(applied(encoder(made, name, dtype, longest), max_tokens=read))


@pytest.mark.parametrize("dtype", DTYPES)
@pytest.mark.parametrize("name", CONFIGS)
def test_the_probe_catches_one_token_too_early_and_one_too_late(made, name, dtype):
    off_by_one(made, name, dtype, LONGEST_OF[dtype])


@pytest.mark.slow
@pytest.mark.parametrize("dtype", DTYPES)
@pytest.mark.parametrize("name", ["arctic-l-v2.0", "nomic-v1.5"])
def test_one_token_of_8192_is_caught_too(made, name, dtype):
    assert probe(encoder(made, name, dtype, 8192))["truncates_at"] == 8192
    off_by_one(made, name, dtype, 8192)


OVERFLOW = {
    "encoder.layer.0.intermediate.dense": "encoder.layer.0.output.dense",
    "encoder.layers.0.mlp.fc11": "encoder.layers.0.mlp.fc2",
}


def changed(folder, change):
    """The weights' file, written anew."""
    from safetensors.torch import load_file, save_file

    weights = load_file(folder / "model.safetensors")
    save_file(change(weights), folder / "model.safetensors", metadata={"format": "pt"})


def overflowing(weights):
    """The same model in float32, and numbers in between that half precision has not."""
    for name, then in OVERFLOW.items():
        if f"{name}.weight" in weights:
            weights[f"{name}.weight"] *= 2.0**16
            weights[f"{then}.weight"] *= 2.0**-16
    return weights


@pytest.mark.parametrize("name", ["arctic-l-v2.0", "nomic-v1.5", "mpnet-base-v2"])
def test_an_overflow_of_half_precision_is_caught(made, tmp_path, name):
    there = copied(made, name, tmp_path / "copy")
    changed(there[name][0], overflowing)
    probe(encoder(there, name, "float32"))
    with pytest.raises(BackendError, match="rows are not finite"):
        probe(encoder(there, name, "float16"))


def without_last_layer(weights):
    return {name: values for name, values in weights.items() if ".1." not in name}


def test_a_layer_that_the_file_lacks_is_not_made_up(made, tmp_path):
    for name in CONFIGS:
        there = copied(made, name, tmp_path / name)
        changed(there[name][0], without_last_layer)
        with pytest.raises(BackendError, match=r"model.safetensors holds \d+ of the model.s \d+ parameters"):
            encoder(there, name).encode(["bank"], "document")


def without_dense(folder):
    """The steps without the linear layers: pooled states, of the right width and wrong."""
    path = folder / "modules.json"
    path.write_text(json.dumps([step for step in json.loads(path.read_text()) if "Dense" not in step["type"]]))


def test_linear_layers_that_are_left_out_are_missed_by_name(made, tmp_path):
    there = copied(made, "embeddinggemma-300m", tmp_path / "copy")
    without_dense(there["embeddinggemma-300m"][0])
    with pytest.raises(BackendError, match=r"steps are Transformer, Pooling, Normalize; .* linear layers to 256, 64"):
        encoder(there, "embeddinggemma-300m").encode(["bank"], "document")


def test_half_precision_tells_far_positions_apart_as_float32_does(made):
    """Angles of rotary positions stay in float32, or a text of thousands of tokens is another one."""
    text = ". ".join([FILLER] * 800)
    for name in ("nomic-v1.5", "qwen3-embedding-0.6b", "granite-embedding-english-r2"):
        whole, half = (encoder(made, name, dtype, 4096).encode([text], "document")[0] for dtype in DTYPES)
        assert whole @ half > 0.9999, name


def other_json(folder, path, **entries):
    content = json.loads((folder / path).read_text()) | entries
    (folder / path).write_text(json.dumps(content))


@pytest.mark.parametrize(
    ("name", "path", "entries", "said"),
    [
        ("arctic-l-v2.0", "config.json", {"num_hidden_layers": 1}, "num_hidden_layers is 1, expected 2"),
        ("nomic-v1.5", "config.json", {"n_layer": 1}, "n_layer is 1, expected 2"),
        ("nomic-v1.5", "config.json", {"rotary_scaling_factor": 2}, "rotary_scaling_factor is 2, expected None"),
        ("mpnet-base-v2", "config.json", {"model_type": "bert"}, "model_type is 'bert', expected 'mpnet'"),
        (
            "mxbai-large-v1",
            "1_Pooling/config.json",
            {"pooling_mode_cls_token": False, "pooling_mode_mean_tokens": True},
            "says pooling cls, the model.s own files mean",
        ),
        (
            "qwen3-embedding-0.6b",
            "1_Pooling/config.json",
            {"pooling_mode_lasttoken": False, "pooling_mode_mean_tokens": True},
            "says pooling lasttoken, the model.s own files mean",
        ),
        (
            "embeddinggemma-300m",
            "config.json",
            {"use_bidirectional_attention": False},
            "use_bidirectional_attention is False",
        ),
        (
            "arctic-l-v2.0",
            "config_sentence_transformers.json",
            {"prompts": {"query": "question: "}},
            "ships the query prompt 'question: '",
        ),
    ],
)
def test_files_that_are_not_the_catalogued_models_are_refused_by_name(made, tmp_path, name, path, entries, said):
    there = copied(made, name, tmp_path / "copy")
    other_json(there[name][0], path, **entries)
    with pytest.raises(BackendError, match=said):
        encoder(there, name).encode(["bank"], "document")


def test_another_revisions_weights_of_the_same_shape_are_told_by_their_digest(made, tmp_path, monkeypatch):
    """By the catalogued digest, or in the hub's cache by the one under which the hub gave the file out."""
    monkeypatch.setattr("huggingface_hub.constants.HF_HUB_CACHE", str(tmp_path))
    folder, spec = made["mxbai-large-v1"]
    cached = put_in_cache(tmp_path, spec, folder)
    assert downloaded(spec, offline=True) == cached
    write_model(tmp_path / "other", spec.name, sizes=REDUCED, seed=1)
    with pytest.raises(BackendError, match=r"model\.safetensors is not the catalogued model: digest"):
        check_files(spec.model_copy(update={"weights_sha256": "0" * 64}), folder)
    for name in ("model.safetensors", "tokenizer.json"):
        kept = (cached / name).read_bytes()
        other = (tmp_path / "other" / name).read_bytes()
        (cached / name).resolve().write_bytes(other + b" " * (other == kept))
        with pytest.raises(BackendError, match=rf"{name} is not the catalogued model: digest"):
            downloaded(spec, offline=True)
        (cached / name).resolve().write_bytes(kept)
