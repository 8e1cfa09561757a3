"""Laws of the whole ladder: what no attack on a code of few bits can beat."""

from pathlib import Path

import pytest
import torch
from hypothesis import given, settings
from hypothesis import strategies as st

from lightsplit.attacks import (
    ATTACKS,
    Exchange,
    Pairs,
    Reconstructs,
    ServerView,
    equip,
)
from lightsplit.attacks.exact_table import ExactTable
from lightsplit.attacks.linear import LinearAttack
from lightsplit.attacks.trivial import NearestImage
from lightsplit.codecs import CODECS, Code
from lightsplit.metrics import reidentification
from lightsplit.protocol import CodeMessage, Contract, OutputMessage, Wire

laws = settings(max_examples=40, deadline=None)
LITTLE = {"steps": 30, "most_steps": 30, "width": 16, "most_pairs": 1_000}
EFFORTS = {
    "decoder": LITTLE,
    "labelled-decoder": LITTLE,
    "refined-decoder": {**LITTLE, "closer_steps": 20, "learnt_steps": 5},
    "exact-table": {},
    "linear": {},
    "whitebox": {"steps": 40, "most_steps": 40},
    "rmle": {"steps": 400},
    "inverse-net": {"epochs": 4, "lr": 0.02},
    "ginver": {"steps": 200, "lr": 0.05},
    "prior-search": {"prior_steps": 800, "steps": 150},
    "fora-reference": {"steps": 150},
}
ELSEWHERE = {  # they need more than codes of a head that stays as it is
    "dlg": ("gradients of the head", "test_gradient_inversion"),
    "idlg": ("gradients of the head", "test_gradient_inversion"),
    "inverting-gradients": ("gradients of the head", "test_gradient_inversion"),
    "first-weights": ("the first steps of a run", "test_first_weights"),
    "transcript-decoder": ("the codes of a whole run", "../audits/test_linking"),
    "unsplit": ("thousands of steps on a clone of the head", "test_unsplit"),
    "sdar": ("the steps of a run", "test_sdar"),
    "fora": ("the steps of a run", "test_fora"),
    "pcat": ("the steps of a run", "test_pcat"),
}


def finds_images(name):
    attack = ATTACKS.get(name)
    is_one = issubclass(attack, Reconstructs) and "image" in attack.truths
    return is_one and attack.kind != "trivial" and not ATTACKS.is_plug_in(name)


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


def attacked(name, made):
    kind = ATTACKS.get(name)
    attack = equip(kind, made.knowledge, form=kind.forms[0], **EFFORTS[name])
    return attack.reconstruct(made.view).clamp(0, 1)


def test_every_attack_that_finds_images_is_under_these_laws_or_named():
    found = {name for name in ATTACKS.names() if finds_images(name)}
    assert found == EFFORTS.keys() | ELSEWHERE.keys()
    assert not EFFORTS.keys() & ELSEWHERE.keys()
    here = Path(__file__).parent
    assert all((here / f"{file}.py").exists() for _, file in ELSEWHERE.values())


@pytest.mark.slow
@pytest.mark.parametrize("name", EFFORTS)
def test_on_a_raw_shallow_cut_every_rung_beats_the_trivial_attackers(
    scene, trivial_error, name
):
    made = scene("raw")
    found, trivial = made.error(attacked(name, made)), trivial_error(made)
    if name == "exact-table":  # where all codes differ it is nearest-image
        assert found == pytest.approx(trivial)
    else:
        assert found < trivial


@pytest.mark.slow
@pytest.mark.parametrize("name", EFFORTS)
def test_on_pure_noise_no_rung_beats_the_trivial_attackers(scene, trivial_error, name):
    made = scene("lightsplit-f", ratio=16, noise=True)
    assert made.error(attacked(name, made)) > 0.98 * trivial_error(made)
