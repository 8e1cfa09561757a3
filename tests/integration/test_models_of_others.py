"""Models that nobody here wrote: split equals unsplit, bit for bit, after ten steps."""

import os
from functools import partial

import pytest
import torch
from torch import nn

from lightsplit.errors import SplitError
from lightsplit.nesting import tensors_in
from lightsplit.simulation import verify
from lightsplit.splitting import empty_weights, load_part, split

pytestmark = pytest.mark.slow
ADAM = partial(torch.optim.Adam, lr=1e-3)
STEPS = 10
SMALL = {
    "vocab_size": 60,
    "hidden_size": 16,
    "num_hidden_layers": 3,
    "num_attention_heads": 2,
    "intermediate_size": 32,
    "max_position_embeddings": 32,
}
NO_TOKENS = {"bos_token_id": None, "eos_token_id": None, "use_cache": False}


@pytest.fixture
def transformers(monkeypatch):
    for name in ("HF_HUB_OFFLINE", "TRANSFORMERS_OFFLINE"):
        monkeypatch.setitem(os.environ, name, "1")
    return pytest.importorskip("transformers", reason="transformers is not installed")


@pytest.fixture
def nets(monkeypatch):
    monkeypatch.setenv("CUBLAS_WORKSPACE_CONFIG", ":4096:8")  # MONAI sets it
    return pytest.importorskip("monai.networks.nets", reason="monai is not installed")


def text(*, with_mask=True):
    ids = torch.randint(1, 60, (3, 7))
    if not with_mask:
        return {"input_ids": ids}
    lengths = torch.tensor([7, 4, 2])
    mask = (torch.arange(7) < lengths[:, None]).long()
    return {"input_ids": ids, "attention_mask": mask}


def square(output, labels):
    del labels
    found = [one for one in tensors_in(output) if one.is_floating_point()]
    return sum(one.square().mean() for one in found)


def check(model, inputs, head_until, tail_from, share=()):
    batches = [(inputs, torch.zeros(2)) for _ in range(STEPS)]
    result = verify(
        model,
        batches,
        optimizer=ADAM,
        head_until=head_until,
        tail_from=tail_from,
        loss=square,
        share=share,
    )
    assert result.is_exact, result
    assert result.is_same


def bert(library):
    return library.BertForSequenceClassification(library.BertConfig(**SMALL))


def roberta(library):
    return library.RobertaForSequenceClassification(library.RobertaConfig(**SMALL))


def distilbert(library):
    sizes = {"dim": 16, "n_layers": 3, "n_heads": 2, "hidden_dim": 32}
    config = library.DistilBertConfig(**sizes, vocab_size=60)
    return library.DistilBertForSequenceClassification(config)


def gpt2(library):
    sizes = {"n_embd": 16, "n_layer": 3, "n_head": 2, "n_positions": 32}
    config = library.GPT2Config(**sizes, vocab_size=60, **NO_TOKENS)
    return library.GPT2LMHeadModel(config)


def llama(library):
    return library.LlamaForCausalLM(library.LlamaConfig(**SMALL, **NO_TOKENS))


def vit(library):
    sizes = {k: v for k, v in SMALL.items() if k.endswith(("size", "layers", "heads"))}
    sizes.pop("vocab_size")
    config = library.ViTConfig(**sizes, image_size=16, patch_size=4)
    return library.ViTForImageClassification(config)


MASK = ("attention_mask",)
TEXTS = {
    "bert": (bert, "bert.encoder.layer.0", "classifier"),
    "bert, cut between layers": (bert, "bert.encoder.layer.0", "bert.encoder.layer.2"),
    "roberta": (roberta, "roberta.encoder.layer.0", "classifier"),
    "distilbert": (distilbert, "distilbert.transformer.layer.0", "pre_classifier"),
    "gpt2, tied weights": (gpt2, "transformer.h.0", "lm_head"),
    "gpt2, cut between layers": (gpt2, "transformer.h.0", "transformer.h.2"),
    "llama": (llama, "model.layers.0", "lm_head"),
    "llama, cut between layers": (llama, "model.layers.0", "model.layers.2"),
}


@pytest.mark.parametrize("case", TEXTS.values(), ids=TEXTS.keys())
def test_a_transformer_with_a_shared_mask(transformers, case):
    build, head_until, tail_from = case
    check(build(transformers), text(), head_until, tail_from, MASK)


@pytest.mark.parametrize("name", ["bert", "gpt2, tied weights", "llama"])
def test_a_transformer_without_a_mask(transformers, name):
    build, head_until, tail_from = TEXTS[name]
    check(build(transformers), text(with_mask=False), head_until, tail_from)


def test_a_vision_transformer(transformers):
    model = vit(transformers)
    layer = next(
        n for n, _ in model.named_modules() if n.endswith(("layer.0", "layers.0"))
    )
    inputs = {"pixel_values": torch.randn(2, 3, 16, 16)}
    check(model, inputs, layer, "classifier")


class Encoder(nn.Module):
    def __init__(self):
        super().__init__()
        layer = nn.TransformerEncoderLayer(16, 2, 32, batch_first=True)
        self.encoder = nn.TransformerEncoder(layer, 3)
        self.fc = nn.Linear(16, 2)

    def forward(self, x):
        return self.fc(self.encoder(x)[:, 0])


@pytest.mark.parametrize("tail_from", ["fc", "encoder.layers.2"])
def test_torchs_own_encoder_between_its_layers(tail_from):
    check(Encoder(), torch.randn(2, 5, 16), "encoder.layers.0", tail_from)


IMAGES = {"spatial_dims": 2, "in_channels": 1, "out_channels": 2}
NETS = {
    "UNet": ({"channels": (4, 8, 16), "strides": (2, 2)}, "model.0", "model.2"),
    "BasicUNet": ({"features": (4, 4, 8, 8, 16, 4)}, "conv_0", "upcat_1"),
    "SegResNet": ({"init_filters": 8}, "convInit", "conv_final"),
    "DenseNet121": (
        {"init_features": 8, "growth_rate": 4, "block_config": (2, 2, 2)},
        "features.conv0",
        "class_layers",
    ),
}


@pytest.mark.parametrize("name", NETS)
def test_a_network_of_monai(nets, name):
    options, head_until, tail_from = NETS[name]
    model = getattr(nets, name)(**IMAGES, **options)
    check(model, torch.randn(2, 1, 32, 32), head_until, tail_from)


def test_sequences_may_be_longer_than_the_example(transformers):
    model = bert(transformers).eval()
    parts = split(
        model,
        head_until="bert.encoder.layer.0",
        tail_from="classifier",
        example=text(),
        share=MASK,
    )
    ids = torch.randint(1, 60, (5, 11))
    longer = {"input_ids": ids, "attention_mask": (ids > 9).long()}
    shared = parts.head.companions(longer)
    found = parts.head.through(parts.tail, lambda z: parts.backbone(z, shared), longer)
    assert torch.equal(found.logits, model(**longer).logits)


@pytest.mark.parametrize("name", ["bert", "gpt2, tied weights", "llama"])
def test_each_end_loads_its_own_part_of_a_checkpoint(transformers, name, tmp_path):
    build, head_until, tail_from = TEXTS[name]
    whole, batch = build(transformers).eval(), text()
    whole.save_pretrained(tmp_path)
    with empty_weights():
        model = build(transformers).eval()
    model.tie_weights()
    cut = {"head_until": head_until, "tail_from": tail_from, "share": MASK}
    parts = split(model, **cut, example=batch)
    load_part([parts.head, parts.tail], tmp_path)
    assert all(parameter.is_meta for parameter in parts.backbone.parameters())
    load_part([parts.backbone], tmp_path)
    shared = parts.head.companions(batch)
    found = parts.head.through(parts.tail, lambda z: parts.backbone(z, shared), batch)
    assert torch.equal(found.logits, whole(**batch).logits)


def test_t5_cut_inside_its_encoder_is_refused_by_name(transformers):
    sizes = {"d_model": 16, "d_kv": 8, "d_ff": 32, "num_layers": 3, "num_heads": 2}
    config = transformers.T5Config(**sizes, vocab_size=60, use_cache=False)
    model = transformers.T5ForConditionalGeneration(config)
    ids = torch.randint(1, 60, (2, 5))
    cut = {
        "head_until": "encoder.block.0",
        "tail_from": "lm_head",
        "example": {"input_ids": ids, "decoder_input_ids": ids},
    }
    position_bias = r"tensor 2 of 'encoder\.block\.0' \(read by 'encoder\.block\.2'\)"
    with pytest.raises(SplitError, match=position_bias):
        split(model, **cut)
    no_rows = (
        r"tensor 2 of 'encoder\.block\.0' is \(1, 2, 5, 5\) and has no row for each"
    )
    with pytest.raises(SplitError, match=no_rows):
        split(model, **cut, share=["decoder_input_ids"])


def test_a_mask_that_is_not_shared_is_refused_by_name(transformers):
    with pytest.raises(SplitError, match=r"the input 'attention_mask', read by.*share"):
        split(bert(transformers), head_until="bert.encoder.layer.0", example=text())


def test_sharing_the_text_itself_says_what_that_means(transformers):
    with pytest.warns(UserWarning, match="'input_ids', which is the data itself"):
        split(
            bert(transformers),
            head_until="bert.encoder.layer.0",
            tail_from="classifier",
            example=text(),
            share=["input_ids", *MASK],
        )


def test_a_cache_of_keys_and_values_is_refused_with_the_remedy(transformers):
    model = gpt2(transformers)
    model.config.use_cache = True
    with pytest.raises(SplitError, match=r"use_cache = False"):
        split(
            model,
            head_until="transformer.h.0",
            tail_from="lm_head",
            example=text(with_mask=False),
        )


def test_a_layer_that_is_called_again_and_again_is_refused(transformers):
    config = transformers.AlbertConfig(**SMALL, embedding_size=16)
    model = transformers.AlbertForSequenceClassification(config)
    with pytest.raises(SplitError, match="calls it 3 times"):
        split(
            model,
            head_until="albert.encoder.albert_layer_groups.0",
            tail_from="classifier",
            example=text(with_mask=False),
        )
