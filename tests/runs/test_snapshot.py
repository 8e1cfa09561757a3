import torch

from lightsplit.experiments import build, from_settings
from lightsplit.runs import snapshot

SMALL = {"train_limit": 60, "test_limit": 20, "clients": 3, "batch_size": 10}


def moved_sides():
    trainer = build(from_settings({**SMALL, "max_steps": 2})).trainer
    sides = {"server": trainer.server.side, "client": trainer.clients[0].side}
    return trainer, sides


def test_sides_are_put_back_bit_for_bit_again_and_again():
    trainer, sides = moved_sides()
    next(iter(trainer.run()))
    before = snapshot.take(sides)
    kept = {name: tensor.clone() for name, tensor in before.items()}
    for _ in range(2):
        trainer.clients[0].step(torch.rand(4, 1, 8, 8), torch.arange(4))
        changed = snapshot.take(sides)
        assert any(not torch.equal(changed[name], kept[name]) for name in kept)
        snapshot.put_back(sides, before)
        after = snapshot.take(sides)
        assert after.keys() == kept.keys()
        assert all(torch.equal(after[name], kept[name]) for name in kept)


def test_sides_go_back_to_before_their_optimizer_had_a_state():
    trainer, sides = moved_sides()
    before = snapshot.take(sides)
    list(trainer.run())
    snapshot.put_back(sides, before)
    assert snapshot.take(sides).keys() == before.keys()
