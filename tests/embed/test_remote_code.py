"""Code from the model hub: only what the catalogue pins is ever run, and it is enough without a network."""

import json
import shutil
from pathlib import Path

import pytest

from runner.embed.weights import verified_folder
from runner.eval_set import catalog
from tests.embed.test_local_encoder import said_by

SPEC = catalog.encoder("nomic-v1.5")
CLASSES = {
    "configuration_hf_nomic_bert.py": "from transformers import BertConfig\nprint('config code of', {word!r})\n"
    "class NomicBertConfig(BertConfig):\n    model_type = 'nomic_bert'\n",
    "modeling_hf_nomic_bert.py": "from transformers import BertModel\n"
    "from .configuration_hf_nomic_bert import NomicBertConfig\nprint('model code of', {word!r})\n"
    "class NomicBertModel(BertModel):\n    config_class = NomicBertConfig\n",
}
_LOAD = """
import dataclasses
from runner.eval_set import catalog
from runner.embed.local_encoder import TransformerEncoder
from runner.embed.weights import downloaded_folder
spec = dataclasses.replace(catalog.encoder("nomic-v1.5"), dim=384, max_tokens=512)
encoder = TransformerEncoder(spec, find=downloaded_folder)
print(encoder.encode(["hello world"], "document").shape)
"""


def snapshot(home: Path, repository: str, revision: str) -> Path:
    folder = home / "hub" / f"models--{repository.replace('/', '--')}" / "snapshots" / revision
    folder.mkdir(parents=True)
    return folder


def put_code(home: Path, revision: str, word: str) -> None:
    folder = snapshot(home, SPEC.code_hub_id, revision)
    (folder / "config.json").write_text("{}")
    for name, source in CLASSES.items():
        (folder / name).write_text(source.format(word=word))


@pytest.mark.model
@pytest.mark.slow
@pytest.mark.parametrize("is_main_there", [False, True])
def test_a_model_runs_the_pinned_code_and_no_other(tmp_path, is_main_there):
    """The packaged MiniLM in the place of the weights, and code that says which revision it is of."""
    home = tmp_path / "hf"
    model = snapshot(home, SPEC.hub_id, SPEC.revision)
    shutil.copytree(verified_folder(catalog.encoder("minilm-l6-v2")), model, dirs_exist_ok=True)
    config = json.loads((model / "config.json").read_text()) | {
        "model_type": "nomic_bert",
        "architectures": ["NomicBertModel"],
        "auto_map": {
            "AutoConfig": f"{SPEC.code_hub_id}--configuration_hf_nomic_bert.NomicBertConfig",
            "AutoModel": f"{SPEC.code_hub_id}--modeling_hf_nomic_bert.NomicBertModel",
        },
    }
    (model / "config.json").write_text(json.dumps(config))
    put_code(home, SPEC.code_revision, "the pin")
    if is_main_there:
        put_code(home, "f" * 40, "main")
        refs = home / "hub" / f"models--{SPEC.code_hub_id.replace('/', '--')}" / "refs"
        refs.mkdir()
        (refs / "main").write_text("f" * 40)
    environment = {"HF_HOME": str(home), "HF_HUB_OFFLINE": "1", "HF_MODULES_CACHE": str(tmp_path / "modules")}
    said = said_by(_LOAD, **environment)
    assert "model code of the pin" in said
    assert "config code of the pin" in said
    assert "main" not in said
    assert said.splitlines()[-1] == "(1, 384)"
