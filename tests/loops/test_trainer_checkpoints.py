"""The trainer of transformers as it comes: it shuffles, clips, saves and resumes."""

import pytest
import torch
from safetensors.torch import load_file

import lightsplit

transformers = pytest.importorskip("transformers", reason="transformers is not there")
pytestmark = pytest.mark.slow
TEXTS = torch.randint(1, 50, (24, 7), generator=torch.Generator().manual_seed(0))
SIZES = {
    "vocab_size": 50,
    "hidden_size": 16,
    "num_hidden_layers": 3,
    "num_attention_heads": 2,
    "intermediate_size": 32,
    "max_position_embeddings": 32,
}


def bert():
    config = transformers.BertConfig(**SIZES)
    return transformers.BertForSequenceClassification(config)


def gpt2():
    tokens = {"bos_token_id": None, "eos_token_id": None}
    config = transformers.GPT2Config(
        n_embd=16, n_layer=3, n_head=2, n_positions=32, vocab_size=50, **tokens
    )
    config.use_cache = False
    return transformers.GPT2LMHeadModel(config)


def llama():
    config = transformers.LlamaConfig(**SIZES, use_cache=False)
    return transformers.LlamaForCausalLM(config)


EXAMPLE = {"example": {"input_ids": TEXTS[:4]}}
BERT = bert, {"head_until": "bert.encoder.layer.0", "tail_from": "classifier"}
GPT2 = gpt2, {"head_until": "transformer.h.0", "tail_from": "lm_head"}
LLAMA = llama, {"head_until": "model.layers.0", "tail_from": "lm_head"}


class Texts(torch.utils.data.Dataset):
    """Texts with their own tokens as labels, or with a class."""

    def __init__(self, *, with_class):
        self.with_class = with_class

    def __len__(self):
        return len(TEXTS)

    def __getitem__(self, place):
        text = TEXTS[place]
        return {"input_ids": text, "labels": text[0] % 2 if self.with_class else text}


def trainer(model, build, folder, optimizer=None, **options):
    arguments = transformers.TrainingArguments(
        str(folder),
        per_device_train_batch_size=4,
        max_steps=6,
        save_steps=2,
        use_cpu=True,
        report_to=[],
        disable_tqdm=True,
        **options,
    )
    texts = Texts(with_class=build is bert)
    return transformers.Trainer(
        model=model,
        args=arguments,
        train_dataset=texts,
        eval_dataset=texts,
        optimizers=(optimizer, None),
    )


def seeded(build):
    with torch.random.fork_rng():
        torch.manual_seed(0)
        return build()


@pytest.fixture
def start(tmp_path):
    """Return what starts both ends of a model, with the folder of a run."""

    def start(case, run):
        build, place = case
        network, cut = seeded(build), {**place, **EXAMPLE}
        host = lightsplit.host(network, optimizer=torch.optim.AdamW, **cut)
        host.open(tmp_path / run / "server")
        model = lightsplit.connect(network, server=host, **cut)
        return network, trainer(model, build, tmp_path / run / "owner")

    return start


@pytest.mark.parametrize("case", [BERT, GPT2], ids=["bert", "gpt2, tied weights"])
def test_a_resumed_training_is_the_uninterrupted_one(kit, start, case, tmp_path):
    whole, once = start(case, "once")
    once.train()
    _, killed = start(case, "killed")

    class Killed(transformers.TrainerCallback):
        def on_step_end(self, _args, state, _control, **_given):
            if state.global_step == 5:  # the last save was that of step 4
                raise KeyboardInterrupt

    killed.add_callback(Killed)
    with pytest.raises(KeyboardInterrupt):
        killed.train()
    network, resumed = start(case, "killed")
    resumed.train(resume_from_checkpoint=True)
    assert resumed.state.global_step == 6
    assert kit.same(network, whole)


def test_tied_weights_are_saved_once_and_come_back_under_both_names(start, tmp_path):
    _, training = start(GPT2, "run")
    training.train()
    file = tmp_path / "run" / "owner" / "checkpoint-6" / "model.safetensors"
    saved = load_file(file)
    assert "head.transformer.wte.weight" in saved
    assert "tail.lm_head.weight" not in saved
    network, other = start(GPT2, "other")
    other.model.load_state_dict(saved)  # strictly
    assert network.lm_head.weight is network.transformer.wte.weight
    assert torch.equal(network.lm_head.weight, saved["head.transformer.wte.weight"])
    network.lm_head.weight.requires_grad_(False)
    kept = other.model.trainable_state_dict()
    assert saved.keys() - kept.keys() == {"head.transformer.wte.weight"}


def without_dropout(build):
    network = seeded(build)
    for module in network.modules():
        if isinstance(module, torch.nn.Dropout):
            module.p = 0.0
    return network


@pytest.mark.parametrize("accumulate", [1, 2])
@pytest.mark.parametrize("case", [BERT, GPT2, LLAMA], ids=["bert", "gpt2", "llama"])
def test_the_trainer_does_with_a_half_what_it_does_with_the_whole(
    kit, case, accumulate, tmp_path
):
    """It counts tokens and scales losses as attributes of the model tell it to."""
    build, place = case
    whole, network = without_dropout(build), without_dropout(build)
    cut = {**place, **EXAMPLE, "batch_size": 8}
    host = lightsplit.host(network, optimizer=kit.ADAM, **cut)
    model = lightsplit.connect(network, server=host, **cut)
    losses = []
    for one, name in ((whole, "whole"), (model, "split")):
        training = trainer(
            one,
            build,
            tmp_path / name,
            optimizer=kit.ADAM(one.parameters()),
            gradient_accumulation_steps=accumulate,
            max_grad_norm=0.0,  # each end clips its own half
        )
        trained = training.train().training_loss
        losses.append((trained, training.evaluate()["eval_loss"]))
    assert losses[0] == losses[1]
    assert kit.same(network, whole)
