"""Laws of the whole ladder: what no attack on a code of few bits can beat."""

import pytest
import torch
from hypothesis import given, settings
from hypothesis import strategies as st

from lightsplit.attacks import ATTACKS, Exchange, Pairs, ServerView, equip
from lightsplit.attacks.exact_table import ExactTable
from lightsplit.attacks.linear import LinearAttack
from lightsplit.attacks.trivial import NearestImage
from lightsplit.codecs import CODECS, Code
from lightsplit.metrics import reidentification
from lightsplit.protocol import CodeMessage, Contract, OutputMessage, Wire

laws = settings(max_examples=40, deadline=None)
LITTLE = {"steps": 60, "most_steps": 60, "width": 16, "most_pairs": 1_000}
EFFORTS = {
    "decoder": LITTLE,
    "labelled-decoder": LITTLE,
    "refined-decoder": {**LITTLE, "closer_steps": 20, "learnt_steps": 20},
    "exact-table": {},
    "linear": {},
    "whitebox": {"steps": 40, "most_steps": 40},
}


def view_of(codes):
    codec = CODECS.create("raw", shape=tuple(codes.shape[1:]), ratio=1)
    sent = CodeMessage(0, 0, Code(codes), is_training=False)
    reply = OutputMessage(0, 0, Code(torch.zeros(len(codes), 1)))
    return ServerView(contract_of(codec), Wire(codec), (Exchange(sent, reply),))


def contract_of(codec):
    return Contract(
        model="toy",
        cut="front",
        topology="u",
        heads="shared",
        activation_shape=codec.shape,
        output_shape=(16,),
        codec=codec.name,
        codec_options={},
        code_size=codec.code_size,
        fingerprint="",
        seed=0,
        clients=1,
        batch_size=32,
        turn_steps=0,
    )


@laws
@given(
    st.integers(2, 60),
    st.integers(1, 6),
    st.integers(0, 999),
    st.sampled_from([ExactTable, NearestImage, LinearAttack]),
)
def test_no_attack_names_more_images_than_there_are_codes(count, bits, seed, attack):
    generator = torch.Generator().manual_seed(seed)
    images = torch.rand(count + 30, 1, 3, 3, generator=generator)
    plane = torch.randn(9, bits, generator=generator)
    codes = torch.sign(images.flatten(1) @ plane - plane.sum(dim=0) / 2)
    pairs = Pairs(codes[count:], codes[count:], images[count:])
    found = attack(pairs=pairs).reconstruct(view_of(codes[:count]))
    distinct = len(torch.unique(codes[:count], dim=0))
    assert int(reidentification(found, images[:count]).sum()) <= distinct


@laws
@given(st.integers(2, 60), st.integers(1, 8), st.integers(0, 999))
def test_nor_does_any_other_function_of_the_code(count, distinct, seed):
    generator = torch.Generator().manual_seed(seed)
    images = torch.rand(count, 1, 3, 3, generator=generator)
    code_of = torch.randint(distinct, (count,), generator=generator)
    answers = torch.rand(distinct, 1, 3, 3, generator=generator)
    hits = reidentification(answers[code_of], images)
    assert int(hits.sum()) <= len(torch.unique(code_of))


@pytest.mark.slow
@pytest.mark.parametrize("name", EFFORTS)
def test_on_pure_noise_no_rung_beats_the_trivial_attackers(scene, trivial_error, name):
    made = scene("lightsplit-f", ratio=16, noise=True)
    attack = equip(ATTACKS.get(name), made.knowledge, **EFFORTS[name])
    found = attack.reconstruct(made.view).clamp(0, 1)
    assert made.error(found) > 0.98 * trivial_error(made)
