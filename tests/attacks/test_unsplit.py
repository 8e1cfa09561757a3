"""UnSplit: its two forms, its budgets, and its results on images and noise."""

from typing import NamedTuple

import pytest
import torch
from torch import Tensor

from lightsplit import seeding
from lightsplit.attacks import ATTACKS, Exchange, Knowledge, ServerView, equip
from lightsplit.attacks.unsplit import UnSplit, observed
from lightsplit.attacks.unsplit_loop import Schedule, invert
from lightsplit.codecs import CODECS, Code
from lightsplit.data import DATASETS
from lightsplit.errors import AuditError
from lightsplit.metrics import correlation
from lightsplit.models import MODELS
from lightsplit.protocol import CodeMessage, OutputMessage, Wire

SHAPE = (1, 8, 8)
CUT = (16, 8, 8)


def head():
    return MODELS.create("tinycnn", cut="l1").split().head


def attack(**options):
    options = {
        "form": "adaptive",
        "main_iterations": 2,
        "inner_iterations": 3,
    } | options
    return UnSplit(image_shape=SHAPE, architecture=head, **options)


def view_of(codec, code):
    request = CodeMessage(0, 0, codec.pack(code), is_training=False)
    reply = OutputMessage(0, 0, Code(torch.zeros(len(code.values), 3)))
    return ServerView(
        contract=None, wire=Wire(codec), exchanges=(Exchange(request, reply),)
    )


SAMPLE_WISE = [
    name for name in CODECS.names() if CODECS.create(name, shape=CUT).is_sample_wise
]


@pytest.mark.parametrize("form", UnSplit.forms)
@pytest.mark.parametrize("name", SAMPLE_WISE)
def test_there_is_an_image_for_every_code_of_every_codec(name, form):
    codec = CODECS.create(name, shape=CUT)
    with torch.no_grad():
        code = codec.encoder(head()(torch.rand(2, *SHAPE)))
    images = attack(form=form).reconstruct(view_of(codec, code))
    assert images.shape == (2, *SHAPE)
    assert bool(images.isfinite().all())
    assert not torch.equal(images[0], images[1])


@pytest.mark.parametrize("name", ["lightsplit-f", "lightsplit-l"])
def test_the_published_form_lifts_with_the_projection(name):
    codec = CODECS.create(name, shape=CUT, ratio=8)
    codes = torch.randn(2, 128)
    lifted = observed(codes, codec, "published")
    assert lifted.codec is None
    expected = codes @ codec.encoder.projection.matrix().T
    torch.testing.assert_close(lifted.rows, expected.view(2, *CUT))


def test_the_published_form_lifts_a_learned_code_with_the_server_s_decoder():
    codec = CODECS.create("learned-1x1", shape=CUT, ratio=8)
    codes = torch.rand(2, 2, 8, 8)
    expected = codec.decoder(Code(codes)).detach()
    assert torch.equal(observed(codes, codec, "published").rows, expected)


def test_without_a_codec_both_forms_are_one():
    view = view_of(CODECS.create("raw", shape=CUT), Code(torch.rand(2, *CUT)))
    first, second = (attack(form=form).reconstruct(view) for form in UnSplit.forms)
    assert torch.equal(first, second)


def test_the_seed_decides():
    view = view_of(CODECS.create("raw", shape=CUT), Code(torch.rand(1, *CUT)))
    first, again, other = (attack(seed=n).reconstruct(view) for n in (0, 0, 1))
    assert torch.equal(first, again)
    assert not torch.equal(first, other)


def test_the_full_budget_is_the_published_schedule_and_a_shorter_one_says_so():
    full = UnSplit(image_shape=SHAPE, architecture=head, form="adaptive", budget="full")
    assert full.schedule == Schedule(1000, 100, lr=1e-3, variation=0.1, magnitude=1.0)
    assert not full.notes
    assert "too few to rank defences" in attack().notes[0]


def test_it_is_given_the_architecture_and_no_image():
    assert ATTACKS.get("unsplit") is UnSplit
    assert equip(UnSplit, Knowledge(SHAPE, 10), form="adaptive") is None
    known = Knowledge(SHAPE, 10, architecture=head)
    assert isinstance(equip(UnSplit, known, form="published"), UnSplit)


@pytest.mark.parametrize("option", ["main_iterations", "inner_iterations"])
def test_a_negative_number_of_iterations_is_refused(option):
    with pytest.raises(
        AuditError, match=f"{option!r} of unsplit must be at least 1, got -1"
    ):
        attack(**{option: -1})


class Found(NamedTuple):
    """Mean correlation with the originals, by what was attacked."""

    raw: float
    projected: float
    lifted: float
    noise: float
    mean_image: float


@pytest.fixture(scope="module")
def found():
    digits = DATASETS.create("digits", data_dir=None)
    images, _ = digits.test.batch(torch.arange(6))
    others, _ = digits.train.batch(torch.arange(500))
    rows = _rows_of(images)
    guesses = invert(rows, head, image_shape=SHAPE, schedule=Schedule(30, 50))
    guesses.append(others.mean(0, keepdim=True).expand_as(images))
    return Found(*(correlation(guess, images).mean().item() for guess in guesses))


def _rows_of(images: Tensor):
    raw = CODECS.create("raw", shape=CUT)
    projection = CODECS.create("lightsplit-f", shape=CUT, ratio=4)
    with seeding.scope(6, "victim"), torch.no_grad():
        activations = 4 * head()(images)  # as large as those of trained weights
        noise = torch.rand_like(activations)
    codes = projection.encoder(activations).values
    return [
        observed(activations, raw, "adaptive"),
        observed(codes, projection, "adaptive"),
        observed(codes, projection, "published"),
        observed(noise, raw, "adaptive"),
    ]


@pytest.mark.slow
def test_on_a_raw_shallow_cut_it_beats_the_mean_image(found):
    assert found.raw > found.mean_image + 0.1


@pytest.mark.slow
def test_on_noise_it_finds_nothing(found):
    assert abs(found.noise) < 0.3 < found.mean_image


@pytest.mark.slow
def test_on_a_projected_code_the_adaptive_form_beats_the_published_one(found):
    assert found.projected > found.lifted + 0.2
