"""Attacks on texts: an embedding is inverted, noise gives frequencies at most."""

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
    token_decoder,
)
from lightsplit.attacks.trivial_texts import most_frequent
from lightsplit.codecs import CODECS, Code
from lightsplit.errors import AuditError
from lightsplit.metrics import evaluate
from lightsplit.protocol import CodeMessage, OutputMessage, Wire

VICTIMS, LENGTH, TOKENS, WIDTH, TEXTS = 30, 6, 12, 16, 400
FEW = {"steps": 150, "most_steps": 300, "width": 16}


def texts():
    """Return texts of 3 to 6 tokens, of which low ones are frequent."""
    torch.manual_seed(0)
    tokens = (torch.rand(TEXTS, LENGTH) ** 2 * TOKENS).long() + 1
    lengths = torch.randint(3, LENGTH + 1, (TEXTS, 1))
    return tokens.masked_fill(torch.arange(LENGTH) >= lengths, -1)


def placed(tokens):
    """Return a vector for every token."""
    torch.manual_seed(1)
    return nn.Embedding(TOKENS + 2, WIDTH)(tokens + 1).detach()


@pytest.fixture(scope="module")
def made(attack_contract):
    """Return what makes a view of texts, their truth and what attackers may know."""

    def make(codes_of=placed, *, noise=False):
        tokens = texts()
        activations = placed(tokens)
        codes = codes_of(tokens)
        codes = torch.randn_like(codes) if noise else codes
        codec = CODECS.create("raw", shape=tuple(codes.shape[1:]))
        sent = CodeMessage(0, 0, Code(codes[:VICTIMS]), is_training=False)
        reply = OutputMessage(0, 0, Code(torch.zeros(VICTIMS, 4)))
        view = ServerView(attack_contract(codec), Wire(codec), (Exchange(sent, reply),))
        known = slice(VICTIMS, None)
        pairs = Pairs(codes[known], activations[known], tokens[known], "text")
        auxiliary = LabelledImages(tokens[known], torch.zeros(TEXTS - VICTIMS).long())
        knowledge = Knowledge((LENGTH,), None, auxiliary=auxiliary, pairs=pairs)
        return view, knowledge, tokens[:VICTIMS]

    return make


def score(made, name, metric="token_accuracy", **options):
    view, knowledge, truth = made
    attack = equip(ATTACKS.get(name), knowledge, **options)
    values = evaluate(attack.reconstruct(view), truth, kind="text")
    return float(values[metric].mean())


def mixed(tokens):
    """Return codes without places that hold everything, mixed."""
    torch.manual_seed(2)
    flat = placed(tokens).flatten(1)
    return flat @ torch.linalg.qr(torch.randn(flat.shape[1], flat.shape[1])).Q


def bag(tokens):
    """Return the sum of the vectors of a text's tokens."""
    return (placed(tokens) * (tokens >= 0)[..., None]).sum(1)


@pytest.mark.slow
@pytest.mark.parametrize("codes_of", [placed, mixed])
def test_a_raw_cut_gives_tokens_away(made, codes_of):
    assert score(made(codes_of), "decoder", **FEW) > 0.9


@pytest.mark.slow
def test_noise_gives_no_more_than_frequencies(made):
    best = score(made(noise=True), "frequent-by-place")
    assert score(made(noise=True), "decoder", **FEW) <= best + 0.05
    bags = score(made(bag, noise=True), "token-counts", "token_f1")
    assert bags <= score(made(), "unigram", "token_f1") + 0.03


def test_an_average_hides_the_order_of_tokens_and_not_the_tokens(made):
    found = score(made(bag), "token-counts", "token_f1")
    assert found > 0.9
    assert found > score(made(bag), "nearest-known", "token_f1") + 0.05


def test_frequencies_are_those_of_the_attackers_texts(made):
    view, knowledge, _ = made()
    everywhere = equip(ATTACKS.get("frequent-token"), knowledge).reconstruct(view)
    assert everywhere.eq(1).all()
    by_place = equip(ATTACKS.get("frequent-by-place"), knowledge).reconstruct(view)
    assert by_place.shape == (VICTIMS, LENGTH)
    assert by_place.ge(1).all()
    bag_of_tokens = equip(ATTACKS.get("unigram"), knowledge).reconstruct(view)
    assert bag_of_tokens[0].tolist() == [1, 2, 3, 4, 5, -1]


def test_texts_without_tokens_have_no_frequent_one():
    with pytest.raises(AuditError, match="no tokens"):
        most_frequent(torch.full((2, 3), -1))


def test_a_decoder_says_if_it_leaves_out_rare_tokens(made, monkeypatch):
    monkeypatch.setattr(token_decoder, "MOST_TOKENS", 5)
    view, knowledge, _ = made()
    attack = equip(ATTACKS.get("decoder"), knowledge, steps=5, most_steps=5)
    assert len(attack.reconstruct(view).unique()) <= 5
    assert any("5 most frequent of 13" in note for note in attack.notes)
