import pytest
import torch
from torch.nn.functional import cross_entropy

from lightsplit.codecs import CODECS, Code
from lightsplit.errors import ConfigError
from lightsplit.objectives import ClassCodes, ClientView
from lightsplit.objectives.class_codes import draw_book

BITS = CODECS.create("lightsplit-b", shape=(20,), bits=8)


def view(latent, labels):
    return ClientView(None, latent, Code(latent.sign()), None, labels, latent)


def test_it_is_the_cross_entropy_of_scaled_cosines_with_a_margin():
    objective = ClassCodes(BITS, 4, scale=5.0, margin=0.3)
    latent, labels = torch.randn(6, 8), torch.tensor([0, 1, 2, 3, 0, 1])
    cosines = torch.cosine_similarity(latent[:, None], draw_book(4, 8)[None], dim=-1)
    cosines[torch.arange(6), labels] -= 0.3
    torch.testing.assert_close(
        objective(view(latent, labels)), cross_entropy(5 * cosines, labels)
    )


def test_a_latent_at_its_own_codeword_costs_least():
    objective = ClassCodes(BITS, 4)
    labels = torch.arange(4)
    own, other = draw_book(4, 8), draw_book(4, 8).roll(1, 0)
    assert objective(view(own, labels)) < objective(view(other, labels))


@pytest.mark.parametrize(("classes", "length"), [(10, 16), (10, 4), (2, 1), (1, 3)])
def test_every_class_has_a_codeword_of_its_own(classes, length):
    book = draw_book(classes, length)
    assert book.shape == (classes, length)
    assert set(book.unique().tolist()) <= {-1.0, 1.0}
    assert len(book.unique(dim=0)) == classes
    assert torch.equal(book, draw_book(classes, length))


def test_too_few_bits_for_the_classes_are_refused():
    with pytest.raises(ConfigError, match=r"10 classes need .* at least 4 bits, got 3"):
        draw_book(10, 3)


@pytest.mark.parametrize("options", [{"scale": 0.0}, {"margin": -0.1}, {"margin": 2.0}])
def test_options_out_of_range_are_refused(options):
    with pytest.raises(ConfigError, match="scale above 0 and a margin from 0 to 1"):
        ClassCodes(BITS, 4, **options)


def test_it_works_on_a_code_of_floats():
    objective = ClassCodes(CODECS.create("raw", shape=(2, 3, 3)), 4)
    latent = torch.randn(4, 2, 3, 3)
    assert objective(view(latent, torch.arange(4))).isfinite()
