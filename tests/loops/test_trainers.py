"""Other people's loops, unmodified, on a transformer whose middle is elsewhere."""

import pytest
import torch

import lightsplit
from lightsplit import Client, ClientSide, Secret, Server, ServerSide, split
from lightsplit.codecs import CODECS

transformers = pytest.importorskip("transformers", reason="transformers is not there")
pytestmark = pytest.mark.slow
LENGTHS = (8, 5, 11, 8, 9, 6)


def bert(dropout=0.1):
    with torch.random.fork_rng():
        torch.manual_seed(0)
        config = transformers.BertConfig(
            vocab_size=50,
            hidden_size=16,
            num_hidden_layers=3,
            num_attention_heads=2,
            intermediate_size=32,
            max_position_embeddings=32,
            hidden_dropout_prob=dropout,
            attention_probs_dropout_prob=dropout,
        )
        return transformers.BertForSequenceClassification(config).train()


def sentences(step, length=None):
    length = length or LENGTHS[step % len(LENGTHS)]
    generator = torch.Generator().manual_seed(step)
    mask = torch.ones(4, length, dtype=torch.int64)
    mask[0, length // 2 :] = 0
    return {
        "input_ids": torch.randint(1, 50, (4, length), generator=generator),
        "attention_mask": mask,
        "labels": torch.randint(2, (4,), generator=generator),
    }


def inputs(step=0, length=None):
    return {k: v for k, v in sentences(step, length).items() if k != "labels"}


CUT = {
    "head_until": "bert.encoder.layer.0",
    "tail_from": "classifier",
    "example": inputs(length=11),
    "share": ["attention_mask"],
}


@pytest.fixture
def connected(kit):
    def make(network, **more):
        return kit.make_ends(network, cut={**CUT, **more})[1]

    return make


@pytest.fixture
def by_hand(kit, connected):
    """Return the weights that a hand-written loop leaves."""
    network = bert()
    model = connected(network)
    optimizer = kit.ADAM(model.parameters())
    for step in range(6):
        model(**sentences(step)).loss.backward()
        optimizer.step()
        optimizer.zero_grad()
    return network


class Sentences(torch.utils.data.Dataset):
    def __len__(self):
        return 24

    def __getitem__(self, place):
        step, row = divmod(place, 4)
        return {name: tensor[row] for name, tensor in sentences(step).items()}


def as_is(rows):
    return {name: torch.stack([row[name] for row in rows]) for name in rows[0]}


def hugging_face(model, folder, **options):
    arguments = transformers.TrainingArguments(
        str(folder),
        per_device_train_batch_size=4,
        num_train_epochs=1,
        use_cpu=True,
        report_to=[],
        disable_tqdm=True,
        save_strategy="no",
        lr_scheduler_type="constant",
        **{"max_grad_norm": 0.0, **options},
    )

    class InOrder(transformers.Trainer):
        def _get_train_sampler(self, *_):
            return torch.utils.data.SequentialSampler(self.train_dataset)

    return InOrder(
        model=model,
        args=arguments,
        train_dataset=Sentences(),
        data_collator=as_is,
        optimizers=(torch.optim.Adam(model.parameters(), lr=0.01), None),
    )


def test_client_step_leaves_the_weights_of_a_loop_by_hand(kit):
    network = bert()
    parts = split(network, **CUT)
    codec = CODECS.create("raw", shape=(11, 16))
    server = Server(ServerSide(parts.backbone, codec, kit.ADAM))
    side = ClientSide(parts.head, parts.tail, codec, kit.ADAM)

    def loss(output, labels):
        return torch.nn.functional.cross_entropy(output.logits, labels)

    client = Client(side, server.handle, secret=Secret(0), loss=loss)
    network_by_connect = bert()
    model = kit.make_ends(network_by_connect, cut=CUT)[1]
    optimizer = kit.ADAM(model.parameters())
    for step in range(3):
        batch = sentences(step, 11)
        client.step(inputs(step, 11), batch["labels"])
        model(**batch).loss.backward()
        optimizer.step()
        optimizer.zero_grad()
    assert kit.same(network, network_by_connect)


def test_the_trainer_of_transformers_leaves_them_too(kit, connected, by_hand, tmp_path):
    network = bert()
    model = connected(network)
    hugging_face(model, tmp_path).train()
    assert kit.same(network, by_hand)


def test_the_trainer_clips_as_a_loop_by_hand(kit, connected, by_hand, tmp_path):
    network, other = bert(), bert()
    hugging_face(connected(network), tmp_path, max_grad_norm=0.1).train()
    model = connected(other)
    optimizer = kit.ADAM(model.parameters())
    for step in range(6):
        model(**sentences(step)).loss.backward()
        torch.nn.utils.clip_grad_norm_(model.parameters(), 0.1)
        optimizer.step()
        optimizer.zero_grad()
    assert kit.same(network, other)
    assert not kit.same(network, by_hand)


def test_the_trainer_computes_in_bf16_as_a_loop_by_hand(kit, by_hand, tmp_path):
    networks = bert(), bert()
    hosts = [
        lightsplit.host(one, optimizer=kit.ADAM, autocast=torch.bfloat16, **CUT)
        for one in networks
    ]
    theirs, mine = (
        lightsplit.connect(network, server=host, **CUT)
        for network, host in zip(networks, hosts, strict=True)
    )
    hugging_face(theirs, tmp_path, bf16=True).train()
    optimizer = kit.ADAM(mine.parameters())
    for step in range(6):
        with torch.autocast("cpu", torch.bfloat16):
            loss = mine(**sentences(step)).loss
        loss.backward()
        optimizer.step()
        optimizer.zero_grad()
    assert kit.same(*networks)
    assert not kit.same(networks[0], by_hand)


def test_its_checkpoint_goes_on_where_it_stood(kit, tmp_path, by_hand):
    network = bert()
    host = lightsplit.host(network, optimizer=kit.ADAM, **CUT)
    host.open(tmp_path / "server")
    model = lightsplit.connect(network, server=host, **CUT)
    trainer = hugging_face(model, tmp_path / "owner", max_steps=3)
    trainer.train()
    trainer.save_state()
    torch.save(
        {"model": model.state_dict(), "optimizer": trainer.optimizer.state_dict()},
        tmp_path / "mine.pt",
    )
    model.close()

    again = bert()
    host = lightsplit.host(again, optimizer=kit.ADAM, **CUT)
    host.open(tmp_path / "server")
    model = lightsplit.connect(again, server=host, **CUT)
    saved = torch.load(tmp_path / "mine.pt")
    model.load_state_dict(saved["model"])
    optimizer = kit.ADAM(model.parameters())
    optimizer.load_state_dict(saved["optimizer"])
    for step in range(3, 6):
        model(**sentences(step)).loss.backward()
        optimizer.step()
        optimizer.zero_grad()
    assert kit.same(again, by_hand)


def test_lightning_fabric_leaves_them_too(kit, connected, by_hand, monkeypatch):
    monkeypatch.setenv("PYTORCH_NVML_BASED_CUDA_CHECK", "1")  # Fabric leaves it set
    fabrics = pytest.importorskip("lightning.fabric", reason="lightning is not there")
    fabric = fabrics.Fabric(accelerator="cpu", devices=1)
    network = bert()
    model = connected(network)
    wrapped, optimizer = fabric.setup(model, kit.ADAM(model.parameters()))
    for step in range(6):
        fabric.backward(wrapped(**sentences(step)).loss)
        optimizer.step()
        optimizer.zero_grad()
    assert kit.same(network, by_hand)


def test_without_dropout_split_is_unsplit_at_every_length(kit, connected):
    network, whole = bert(0.0), bert(0.0)
    for one in (connected(network), whole):
        optimizer = kit.ADAM(one.parameters())
        for step in range(6):
            one(**sentences(step)).loss.backward()
            optimizer.step()
            optimizer.zero_grad()
    assert kit.same(network, whole)


def test_padding_is_not_sent(connected):
    model = connected(bert())
    batch = sentences(0)
    model(**batch)
    tokens = int(batch["attention_mask"].sum())
    assert model.meter.counts["code"] == tokens * 16 * 4 + batch["input_ids"].numel()


def test_codecs_act_on_each_token(connected):
    model = connected(bert(), codec="lightsplit-f", codec_options={"ratio": 4})
    batch = sentences(0)
    model(**batch)
    tokens = int(batch["attention_mask"].sum())
    assert model.meter.counts["code"] == tokens * 4 * 4 + batch["input_ids"].numel()


def test_a_longer_sequence_is_refused_in_one_sentence(connected):
    with pytest.raises(lightsplit.LightSplitError, match="up to 11 tokens, got 12"):
        connected(bert())(**sentences(0, 12))


@pytest.mark.filterwarnings("ignore::FutureWarning:transformers")  # peft's own
def test_only_adapters_learn(kit, connected):
    peft = pytest.importorskip("peft", reason="peft is not there")
    network = peft.get_peft_model(
        bert(),
        peft.LoraConfig(task_type="SEQ_CLS", r=2, target_modules=["query", "value"]),
    )
    before = {name: one.clone() for name, one in network.state_dict().items()}
    prefix = "base_model.model"
    model = connected(
        network,
        head_until=f"{prefix}.bert.encoder.layer.0",
        tail_from=f"{prefix}.classifier",
    )
    trained = [one for one in model.parameters() if one.requires_grad]
    optimizer = kit.ADAM(trained)
    for step in range(2):
        model(**sentences(step)).loss.backward()
        optimizer.step()
        optimizer.zero_grad()
    kept = model.trainable_state_dict()
    assert all(
        "lora" in name or "classifier" in name or name == "position" for name in kept
    )
    assert not model.load_state_dict(kept, strict=False).unexpected_keys
    changed = {
        name
        for name, one in network.state_dict().items()
        if not torch.equal(one, before[name])
    }
    assert any("layer.2" in name for name in changed)  # the server's
    assert any("layer.0" in name for name in changed)  # the owner's
    assert all("lora" in name or "classifier" in name for name in changed)


def test_a_mask_that_the_example_lacked_is_refused_and_what_the_head_reads_is_not(
    connected,
):
    network = bert(dropout=0.0)
    batch = sentences(0)
    alone = {"input_ids": batch["input_ids"]}
    model = connected(network, example=alone, share=[])
    named = r"the batch has the input 'attention_mask'.*'bert' branches on it"
    with pytest.raises(lightsplit.LightSplitError, match=named):
        model(**batch)
    types = torch.ones_like(batch["input_ids"])
    given = {**alone, "token_type_ids": types, "labels": batch["labels"]}
    assert torch.equal(model(**given).loss, network(**given).loss)


def test_a_device_for_each_layer_of_the_server_changes_no_number(kit):
    weights = []
    names = ["bert.encoder.layer.1", "bert.encoder.layer.2", "bert.pooler"]
    for more in ({}, {"device_map": dict.fromkeys(names, "cpu")}):
        host = lightsplit.host(bert(), optimizer=kit.ADAM, **CUT, **more)
        model = lightsplit.connect(bert(), server=host, **CUT)
        optimizer = kit.ADAM(model.parameters())
        for step in range(2):
            model(**sentences(step)).loss.backward()
            optimizer.step()
            optimizer.zero_grad()
        weights.append(host.server.state())
    plain, placed = weights
    assert plain.keys() == placed.keys()
    assert all(torch.equal(plain[name], placed[name]) for name in plain)
