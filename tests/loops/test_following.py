import gc

import torch
from torch import nn

from lightsplit.loops.following import follow


class Model(nn.Linear):
    heard = 0

    def optimizer_stepped(self, optimizer):
        assert isinstance(optimizer, torch.optim.Optimizer)
        type(self).heard += 1


def step(*models):
    parameters = [one for model in models for one in model.parameters()]
    torch.optim.SGD(parameters, lr=0.1).step()


def test_a_model_hears_of_its_own_optimizers_as_long_as_it_lives():
    model, stranger = Model(2, 2), nn.Linear(2, 2)
    follow(model)
    follow(model)
    Model.heard = 0
    step(stranger)
    assert Model.heard == 0
    step(model, stranger)
    assert Model.heard == 1
    parameters = list(model.parameters())
    del model
    gc.collect()
    torch.optim.SGD(parameters, lr=0.1).step()
    assert Model.heard == 1
