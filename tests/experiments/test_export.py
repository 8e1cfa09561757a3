"""Exported models give what the split model gives."""

import numpy as np
import pytest
import torch
from safetensors.torch import load_file
from torchmetrics.classification import MulticlassAccuracy

from lightsplit.errors import ConfigError, RunError
from lightsplit.experiments import from_settings, pieces, run
from lightsplit.experiments.cuts import make_cuts
from lightsplit.experiments.export import (
    Trained,
    WholeModel,
    export_client,
    export_whole,
    restore,
)
from lightsplit.nesting import map_tensors
from lightsplit.results import RunFolder
from lightsplit.splitting import merge
from lightsplit.tasks.starting import template

pytestmark = pytest.mark.slow

SMALL = {"clients": 2, "train_limit": 60, "epochs": 1, "heads": "private"}
IMAGES = torch.rand(5, 1, 8, 8, generator=torch.Generator().manual_seed(1))


@pytest.fixture
def folder(small, tmp_path):
    folder = RunFolder.create(tmp_path / "run")
    run(small(**SMALL), folder)
    return folder


def test_a_runs_metric_is_torchmetrics_on_the_merged_model(finish):
    """Whoever has the whole model and the test set finds the figure of the record."""
    done = finish(clients=2, heads="shared", epochs=2)
    trained = restore(done.folder)
    merged = WholeModel(trained.client, trained.server).eval()
    metric = MulticlassAccuracy(10, average="micro")
    for inputs, labels in done.job.trainer._test:
        with torch.no_grad():
            metric.update(merged(inputs), labels)
    assert done.record["test_accuracy"] == pytest.approx(metric.compute().item())
    assert metric.compute() > 0


def test_onnx_codes_are_pytorchs(folder, tmp_path):
    runtime = pytest.importorskip("onnxruntime")
    pytest.importorskip("onnxscript")
    trained = restore(folder, client=1)
    assert export_client(trained, tmp_path) <= 1e-5
    session = runtime.InferenceSession(
        tmp_path / "client.onnx", providers=["CPUExecutionProvider"]
    )
    (code,) = session.run(None, {"inputs": IMAGES.numpy()})
    trained.client.set_training(False)
    expected = trained.client.encode(IMAGES).values.detach().numpy()
    assert code.shape == expected.shape
    assert np.abs(code - expected).max() <= 1e-5
    weights = load_file(tmp_path / "client.safetensors")
    assert any(name.startswith("head.") for name in weights)


def test_the_whole_program_predicts_as_the_split_model(folder, tmp_path):
    trained = restore(folder, client=1)
    export_whole(trained, tmp_path)
    program = torch.export.load(tmp_path / "model.pt2").module()
    for side in (trained.client, trained.server):
        side.set_training(False)
    client, server = trained.client, trained.server
    with torch.no_grad():
        output = server.modules["backbone"](
            server.modules["decoder"](client.encode(IMAGES))
        )
        expected = client.modules["tail"](output)
        assert torch.allclose(program(IMAGES), expected, atol=1e-6)


def test_each_client_has_its_own_head(folder):
    first, second = (restore(folder, client=index).client for index in (0, 1))
    name = "head.0.weight"
    states = [side.state() for side in (first, second)]
    different = [key for key in states[0] if not states[0][key].equal(states[1][key])]
    assert any(key.startswith("head.") for key in different), name


def test_an_unknown_client_is_refused(folder):
    with pytest.raises(ConfigError, match="client must be between 0 and 1, got 2"):
        restore(folder, client=2)


def test_an_owners_folder_has_its_part_alone(folder, tmp_path):
    mine = RunFolder.create(tmp_path / "owner")
    mine.write_experiment(folder.experiment_file.read_text())
    side = next(folder.checkpoint.rglob("client-1.safetensors"))
    (mine.path / "client.safetensors").write_bytes(side.read_bytes())
    trained = restore(mine)
    assert trained.server is None
    with pytest.raises(ConfigError, match="no backbone"):
        export_whole(trained, tmp_path)


def test_a_servers_folder_has_no_head(folder, tmp_path):
    server = RunFolder.create(tmp_path / "server")
    server.write_experiment(folder.experiment_file.read_text())
    for file in folder.checkpoint.rglob("*"):
        if file.is_file() and "client-" not in file.name:
            copy = server.path / file.relative_to(folder.path)
            copy.parent.mkdir(parents=True, exist_ok=True)
            copy.write_bytes(file.read_bytes())
    with pytest.raises(RunError, match="the server's part alone"):
        restore(server)


@pytest.mark.parametrize("objective", ["noise", "disco:1,width=2"])
def test_a_client_with_a_defence_in_its_codes_is_refused(small, tmp_path, objective):
    folder = RunFolder.create(tmp_path / "run")
    run(small(**SMALL, codec="raw", objective=(objective,)), folder)
    trained = restore(folder, client=1)
    for export in (export_client, export_whole):
        with pytest.raises(ConfigError, match="would be without that defence"):
            export(trained, tmp_path / "out")
    assert not (tmp_path / "out").exists()


SHARED_MASK = """
import torch
from torch import nn
from lightsplit import Task

class Layer(nn.Module):
    def __init__(self):
        super().__init__()
        self.layer = nn.TransformerEncoderLayer(8, 2, 16, batch_first=True)

    def forward(self, tokens, mask):
        return self.layer(tokens, src_key_padding_mask=mask == 0)

class Network(nn.Module):
    def __init__(self):
        super().__init__()
        self.words = nn.Embedding(20, 8)
        self.first, self.second, self.classes = Layer(), Layer(), nn.Linear(8, 2)

    def forward(self, input_ids, attention_mask):
        tokens = self.first(self.words(input_ids), attention_mask)
        tokens = self.second(tokens, attention_mask)
        weights = attention_mask.unsqueeze(2)
        return self.classes((tokens * weights).sum(1) / weights.sum(1))

def task():
    ids = torch.ones(2, 6, dtype=torch.long)
    return Task(
        model=Network,
        head_until="first",
        tail_from="classes",
        share=("attention_mask",),
        example=lambda: ({"input_ids": ids, "attention_mask": ids}, ids[:, 0] * 0),
        classes=2,
    )
"""


KINDS = ["images", "segmentation", "table", "numbers", "text"]


@pytest.fixture
def own(tmp_path):
    """Return the two sides of an own task and the plain model of their weights."""

    def own(text, **settings):
        file = tmp_path / "my_task.py"
        file.write_text(text)
        common = {"task": str(file), "clients": 1, "codec": "raw"}
        experiment = from_settings({**common, **settings})
        cuts = make_cuts(experiment, pieces.load_parts(experiment))
        client = pieces.make_client_side(experiment, cuts)
        server = pieces.make_server(experiment, cuts).side
        inputs = experiment.make_task().example_inputs()
        return Trained(client, server, inputs), merge(cuts.parts).eval()

    return own


def five(like):
    """Return five samples of the form of an example; numbers of words from 1 on."""
    draw = torch.Generator().manual_seed(0)
    shape = (5, *like.shape[1:])
    if like.is_floating_point():
        return torch.rand(shape, generator=draw)
    return torch.randint(1, 20, shape, generator=draw)


def assert_is_exported(trained, folder, batch, expected):
    export_whole(trained, folder)
    program = torch.export.load(folder / "model.pt2").module()
    with torch.no_grad():
        assert torch.allclose(program(batch), expected, atol=1e-6)
    assert load_file(folder / "model.safetensors")


@pytest.mark.parametrize("kind", KINDS)
def test_the_program_of_a_template_gives_what_the_plain_model_gives(
    kind, own, tmp_path
):
    trained, plain = own(template(kind))
    batch = map_tensors(five, trained.inputs)
    assert_is_exported(trained, tmp_path / "out", batch, plain(batch))


@pytest.mark.filterwarnings("ignore:share names")
@pytest.mark.parametrize("topology", ["u", "vanilla"])
def test_a_mask_that_the_server_gets_too_is_an_input_of_the_program(
    topology, own, tmp_path
):
    trained, plain = own(SHARED_MASK, topology=topology)
    mask = (torch.arange(6) < torch.arange(2, 7)[:, None]).long()
    batch = {"input_ids": five(mask), "attention_mask": mask}
    assert_is_exported(trained, tmp_path / "out", batch, plain(**batch))


def test_a_model_that_cannot_be_traced_leaves_its_weights(own, tmp_path):
    trained, _ = own(template("table"))

    def refuse(*_given):
        raise ValueError("not for tracers")

    trained.server.modules["backbone"].register_forward_pre_hook(refuse)
    with pytest.raises(RunError, match=r"weights are in .*model.safetensors, but no"):
        export_whole(trained, tmp_path / "out")
    assert [file.name for file in (tmp_path / "out").iterdir()] == ["model.safetensors"]


@pytest.mark.parametrize("kind", ["images", "table"])
def test_a_task_as_new_writes_it_becomes_onnx(kind, own, tmp_path):
    pytest.importorskip("onnxruntime")
    pytest.importorskip("onnxscript")
    trained, _ = own(template(kind))
    assert export_client(trained, tmp_path) <= 1e-5
