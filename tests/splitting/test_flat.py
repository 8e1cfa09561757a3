"""A graph of a model computes what the model computes, and can be exported."""

import pytest
import torch
from torch import nn

from lightsplit import split
from lightsplit.splitting.flat import flattened


class Nested(nn.Module):
    """Cut inside two of its modules."""

    def __init__(self):
        super().__init__()
        self.features = nn.Sequential(
            nn.Sequential(nn.Conv2d(1, 4, 3, padding=1), nn.BatchNorm2d(4), nn.ReLU()),
            nn.Sequential(nn.Conv2d(4, 4, 3, padding=1), nn.ReLU(), nn.MaxPool2d(2)),
        )
        self.classes = nn.Sequential(nn.Linear(64, 16), nn.ReLU(), nn.Linear(16, 3))

    def forward(self, images):
        features = self.features(images)
        return self.classes(features.flatten(1))


class InARow(nn.Module):
    def __init__(self, parts):
        super().__init__()
        self.head, self.backbone, self.tail = parts.head, parts.backbone, parts.tail

    def forward(self, images):
        return self.tail(self.backbone(self.head(images)))


@pytest.fixture
def nested():
    model = Nested().eval()
    place = {"head_until": "features.0", "tail_from": "classes.2"}
    return model, InARow(split(model, example=torch.rand(2, 1, 8, 8), **place)).eval()


@pytest.mark.slow
def test_the_graph_computes_what_the_parts_compute(nested):
    model, parts = nested
    graph = flattened(parts, torch.rand(2, 1, 8, 8))
    images = torch.rand(5, 1, 8, 8)
    with torch.no_grad():
        assert torch.equal(graph(images), model(images))
        assert torch.equal(parts(images), model(images)), "the parts stay as they are"


def test_they_can_be_exported_with_any_batch_where_the_parts_cannot(nested):
    model, parts = nested
    example, batch = torch.rand(2, 1, 8, 8), torch.export.Dim("batch")
    shapes = ({0: batch},)
    with pytest.raises(AssertionError):
        torch.export.export(parts, (example,), dynamic_shapes=shapes)
    graph = flattened(parts, example)
    program = torch.export.export(graph, (example,), dynamic_shapes=shapes).module()
    images = torch.rand(7, 1, 8, 8)
    assert torch.allclose(program(images), model(images), atol=1e-6)


def test_a_model_without_parts_is_copied_as_it_is():
    model = nn.Sequential(nn.Linear(3, 2))
    made = flattened(model, torch.rand(2, 3))
    assert made is not model
    assert torch.equal(made[0].weight, model[0].weight)
