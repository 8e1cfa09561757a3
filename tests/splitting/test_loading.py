import json

import pytest
import torch
from safetensors.torch import save_file
from torch import nn

from lightsplit.errors import SplitError
from lightsplit.splitting import empty_weights, load_part, split

X = torch.randn(2, 3)


class Tied(nn.Module):
    """Head and tail share a weight; a buffer is not in any checkpoint."""

    def __init__(self):
        super().__init__()
        self.first = nn.Linear(3, 3)
        self.middle = nn.Sequential(nn.Linear(3, 3), nn.BatchNorm1d(3))
        self.last = nn.Linear(3, 3, bias=False)
        self.last.weight = self.first.weight
        self.register_buffer("scale", torch.tensor(2.0), persistent=False)

    def forward(self, x):
        return self.last(self.middle(self.first(x) * self.scale))


@pytest.fixture
def whole():
    return Tied().eval()


@pytest.fixture
def saved(whole, tmp_path):
    def save(names):
        state = whole.state_dict()
        save_file({name: state[name] for name in names}, tmp_path / "part.safetensors")
        return tmp_path / "part.safetensors"

    return save


def parts():
    with empty_weights():
        model = Tied()
    return split(model, head_until="first", tail_from="last", example=X)


def of_client():
    return ["first.weight", "first.bias"]


def of_server():
    return [name for name in Tied().state_dict() if name.startswith("middle")]


def test_a_model_without_weights_has_no_numbers_but_its_buffers():
    with empty_weights():
        model = Tied()
    assert all(parameter.is_meta for parameter in model.parameters())
    assert model.scale == 2
    assert not any(parameter.is_meta for parameter in Tied().parameters())


def test_each_party_loads_its_own_part_and_needs_no_other(whole, saved):
    client, server = parts(), parts()
    assert load_part([client.head, client.tail], saved(of_client())) == 2
    load_part([server.backbone], saved(of_server()))
    assert all(p.is_meta for p in client.backbone.parameters())
    assert all(p.is_meta for p in server.head.parameters())
    for part in (client.head, client.tail, server.backbone):
        part.eval()
    found = client.head.through(client.tail, server.backbone, X)
    assert torch.equal(found, whole(X))


def test_weights_that_are_shared_stay_shared(saved):
    made = parts()
    load_part([made.head, made.tail], saved(of_client()))
    assert made.head.first.weight is made.tail.last.weight


def test_a_checkpoint_that_lacks_this_partys_tensors_is_refused_by_name(saved):
    made = parts()
    with pytest.raises(SplitError, match=r"lacks tensors of this party: first\.bias;"):
        load_part([made.head, made.tail], saved(["first.weight", *of_server()]))
    assert all(parameter.is_meta for parameter in made.head.parameters())


def test_a_tensor_of_another_shape_is_refused(tmp_path):
    made, file = parts(), tmp_path / "other.safetensors"
    save_file({"first.weight": torch.zeros(3, 3), "first.bias": torch.zeros(4)}, file)
    with pytest.raises(SplitError, match=r"first\.bias is \(4,\), expected \(3,\)"):
        load_part([made.head, made.tail], file)


def test_new_modules_keep_their_weights(saved):
    model = Tied()
    made = split(model, head_until="first", tail_from="last", example=X)
    before = model.first.bias.clone()
    load_part([made.head], saved(of_server()), keep=["first"])
    assert torch.equal(model.first.bias, before)


def test_a_checkpoint_of_a_part_of_the_model_has_shorter_names(whole, tmp_path):
    made, file = parts(), tmp_path / "middle.safetensors"
    save_file(dict(whole.middle.state_dict()), file)
    load_part([made.backbone], file, prefix="middle.")
    ours, theirs = made.backbone.middle.state_dict(), whole.middle.state_dict()
    assert all(torch.equal(ours[name], theirs[name]) for name in theirs)


def test_an_index_of_several_files_is_followed(saved, tmp_path):
    made, file = parts(), saved(of_server())
    index = {"weight_map": dict.fromkeys(of_server(), file.name)}
    (tmp_path / "model.safetensors.index.json").write_text(json.dumps(index))
    assert load_part([made.backbone], tmp_path) == len(of_server())


@pytest.mark.parametrize("content", [None, b"no tensors"])
def test_a_file_that_is_no_checkpoint_is_refused(tmp_path, content):
    file = tmp_path / "model.safetensors"
    if content is not None:
        file.write_bytes(content)
    with pytest.raises(SplitError, match="safetensors checkpoint"):
        load_part([parts().head], tmp_path)
