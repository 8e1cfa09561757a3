"""Attacks on rows: much from a raw cut, nothing from noise."""

import pytest
import torch
from torch import nn

from lightsplit.attacks import (
    ATTACKS,
    Exchange,
    Knowledge,
    LabelledImages,
    Pairs,
    ServerView,
    equip,
)
from lightsplit.codecs import CODECS, Code
from lightsplit.errors import AuditError
from lightsplit.metrics import evaluate
from lightsplit.protocol import CodeMessage, OutputMessage, Wire

VICTIMS, COLUMNS, WIDTH = 40, 6, 16
ORACLES = ("linear", "decoder", "row-inversion")
QUICK = {"decoder": {"steps": 150, "most_steps": 300, "width": 16}}


class Client(nn.Module):
    """A head of one layer."""

    def __init__(self):
        super().__init__()
        torch.manual_seed(3)
        self.head = nn.Sequential(nn.Linear(COLUMNS, WIDTH), nn.ReLU())

    def forward(self, rows):
        return self.head(rows)


@pytest.fixture(scope="module")
def made(attack_contract):
    """Return what makes a view of rows, their truth and what attackers may know."""

    def make(*, noise=False):
        torch.manual_seed(0)
        mixed = torch.randn(400, 3) @ torch.randn(3, COLUMNS)
        rows = mixed + 0.5 * torch.randn(400, COLUMNS)
        labels, client = (rows[:, 0] > 0).long(), Client().eval()
        with torch.no_grad():
            codes = torch.randn(400, WIDTH) if noise else client(rows)
        codec = CODECS.create("raw", shape=(WIDTH,))
        sent = CodeMessage(0, 0, Code(codes[:VICTIMS]), is_training=False)
        reply = OutputMessage(0, 0, Code(torch.zeros(VICTIMS, 4)))
        view = ServerView(attack_contract(codec), Wire(codec), (Exchange(sent, reply),))
        known, others = slice(VICTIMS, None), rows[VICTIMS:]
        knowledge = Knowledge(
            image_shape=(COLUMNS,),
            classes=2,
            auxiliary=LabelledImages(others, labels[known]),
            pairs=Pairs(codes[known], codes[known], others, "table"),
            client=client,
            labels=labels[:VICTIMS],
            first_client=lambda _secret: Client(),
        )
        return view, knowledge, rows[:VICTIMS]

    return make


def r2(made, name, **options):
    view, knowledge, truth = made
    attack = equip(ATTACKS.get(name), knowledge, **QUICK.get(name, {}), **options)
    return float(evaluate(attack.reconstruct(view), truth, kind="table")["r2"].mean())


@pytest.mark.slow
@pytest.mark.parametrize("name", ORACLES)
def test_a_raw_cut_gives_rows_away(made, name):
    assert r2(made(), name) > 0.8


@pytest.mark.slow
@pytest.mark.parametrize("name", ["linear", "decoder", "exact-table", "nearest-known"])
def test_noise_gives_no_more_than_the_columns_means(made, name):
    assert r2(made(noise=True), name) <= r2(made(noise=True), "column-mean") + 0.02


def test_trivial_guesses_of_rows(made):
    assert abs(r2(made(), "column-mean")) < 0.15
    assert 0 < r2(made(), "class-mean") < 0.5
    assert r2(made(), "nearest-known") > 0.3


def test_the_first_weights_invert_a_head_that_did_not_move(made):
    assert r2(made(), "first-weights") > 0.7


def test_a_row_that_does_not_fit_its_code_is_doubted(made):
    view, knowledge, _ = made(noise=True)
    attack = equip(ATTACKS.get("row-inversion"), knowledge, steps=20)
    attack.reconstruct(view)
    assert "say nothing about the code" in attack.notes[0]


def test_row_inversion_needs_at_least_a_step(made):
    with pytest.raises(AuditError, match="at least 1"):
        equip(ATTACKS.get("row-inversion"), made()[1], steps=0)
