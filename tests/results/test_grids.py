import io
import sys

import pytest
import torch
from PIL import Image

from lightsplit.results import grids


def make_rows(*names, figures=()):
    strip = grids.make_strip(torch.rand(3, 1, 8, 8))
    return [grids.Row(name, strip, figures) for name in names]


def test_a_grid_makes_room_for_long_names_and_for_figures():
    plain = grids.make_grid(make_rows("raw"))
    named = grids.make_grid(make_rows("lightsplit-f 8x λ=0.01 adaptive"))
    figured = grids.make_grid(make_rows("raw", figures=("20 images: mse 0.1",)))
    assert plain.width < named.width
    assert plain.width < figured.width
    assert plain.height == figured.height


def test_without_matplotlib_the_names_are_in_the_font_of_pillow(monkeypatch):
    grids._font.cache_clear()
    monkeypatch.setitem(sys.modules, "matplotlib", None)
    try:
        drawn = [
            grids.make_grid(make_rows(name)).crop((0, 0, 100, 60))
            for name in ("raw", "topk")
        ]
    finally:
        grids._font.cache_clear()
    assert drawn[0].tobytes() != drawn[1].tobytes()


def test_greek_letters_are_drawn():
    drawn = [
        grids.make_grid(make_rows(letter)).crop((0, 0, 100, 60)) for letter in "λμ"
    ]
    assert drawn[0].tobytes() != drawn[1].tobytes()  # no box for what is missing


@pytest.mark.parametrize("channels", [1, 3])
def test_bytes_and_floats_give_the_same_strip(channels):
    images = torch.rand(4, channels, 8, 8)
    strips = [grids.make_strip(each) for each in (images, grids.as_bytes(images))]
    assert strips[0].tobytes() == strips[1].tobytes()


def test_a_picture_survives_as_png():
    strip = grids.make_strip(torch.rand(2, 3, 32, 32))
    with Image.open(io.BytesIO(grids.as_png(strip))) as read:
        assert read.tobytes() == strip.tobytes()


@pytest.mark.parametrize(("channels", "mode"), [(1, "L"), (3, "RGB")])
def test_a_grey_picture_takes_one_channel_and_a_coloured_one_three(channels, mode):
    strip = grids.make_strip(torch.rand(2, channels, 4, 4))
    with Image.open(io.BytesIO(grids.as_png(strip))) as read:
        assert read.mode == mode
        assert read.convert(strip.mode).tobytes() == strip.tobytes()
