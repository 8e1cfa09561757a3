import pytest
import torch
from PIL import Image

from lightsplit.audits import pictures
from lightsplit.results import grids, tensors


@pytest.mark.parametrize("shape", [(1, 8, 8), (3, 32, 32), (1, 28, 28)])
def test_a_strip_shows_ten_images_at_a_size_that_can_be_seen(tmp_path, shape):
    path = pictures.write_strip(tmp_path, "linear", torch.rand(12, *shape))
    with Image.open(path) as strip:
        side = strip.height
        assert side >= grids.SMALLEST
        assert strip.width == 10 * (side + grids.GAP) - grids.GAP


def test_a_strip_shows_the_pixels_clipped(tmp_path):
    images = torch.tensor([-1.0, 0.5, 2.0]).view(3, 1, 1, 1).expand(3, 1, 8, 8)
    with Image.open(pictures.write_strip(tmp_path, "x", images)) as strip:
        side = strip.height
        step = side + grids.GAP
        found = [strip.getpixel((step * i + side // 2, side // 2)) for i in range(3)]
    assert found == [0, 128, 255]


def test_the_grid_has_a_row_for_each_strip_that_is_there(tmp_path):
    for name in ("originals", "linear", "decoder"):
        pictures.write_strip(tmp_path, name, torch.rand(4, 1, 8, 8))
    with Image.open(pictures.write_grid(tmp_path, ["linear"])) as one:
        height = one.height
    with Image.open(
        pictures.write_grid(tmp_path, ["linear", "decoder", "none"])
    ) as two:
        assert two.height > height


def test_no_half_written_picture_is_left(tmp_path):
    pictures.write_strip(tmp_path, "linear", torch.rand(4, 1, 8, 8))
    assert [path.name for path in tmp_path.iterdir()] == ["audit-linear.png"]


def test_the_first_images_are_kept_for_grids_across_runs(tmp_path):
    originals, images = torch.rand(2, 30, 1, 8, 8).mul(2).unbind()
    path = pictures.write_shown(tmp_path, "linear", originals.clamp(0, 1), images)
    shown = tensors.load(path)
    assert {name: each.shape for name, each in shown.items()} == {
        "originals": (20, 1, 8, 8),
        "reconstructions": (20, 1, 8, 8),
    }
    assert torch.equal(shown["reconstructions"], grids.as_bytes(images[:20]))
