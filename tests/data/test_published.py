"""The published files, if they are on this machine."""

import pytest
import torch

from lightsplit.data import DATASETS

pytestmark = pytest.mark.data


def read(name, published):
    if not (published / name).is_dir():
        pytest.skip(f"no {name} in {published}")
    return DATASETS.create(name, data_dir=published)


def counts(samples, classes):
    return torch.bincount(samples.labels, minlength=classes).tolist()


def test_mnist_has_its_published_class_counts(published):
    mnist = read("mnist", published)
    assert (len(mnist.train), len(mnist.test)) == (60_000, 10_000)
    assert counts(mnist.train, 10) == [
        5923, 6742, 5958, 6131, 5842, 5421, 5918, 6265, 5851, 5949,
    ]  # fmt: skip
    assert counts(mnist.test, 10) == [
        980, 1135, 1032, 1010, 982, 892, 958, 1028, 974, 1009,
    ]  # fmt: skip


def test_fashion_mnist_has_equally_many_images_of_each_class(published):
    fashion = read("fashion-mnist", published)
    assert counts(fashion.train, 10) == [6000] * 10
    assert counts(fashion.test, 10) == [1000] * 10


@pytest.mark.parametrize(("name", "classes"), [("cifar10", 10), ("cifar100", 100)])
def test_cifar_has_equally_many_images_of_each_class(published, name, classes):
    cifar = read(name, published)
    assert counts(cifar.train, classes) == [50_000 // classes] * classes
    assert counts(cifar.test, classes) == [10_000 // classes] * classes


def test_gtsrb_has_all_signs_or_every_third_frame_of_them(published):
    gtsrb = read("gtsrb", published)
    assert len(gtsrb.train) in (13_070, 39_209)
    assert len(gtsrb.test) == 12_630
    assert min(counts(gtsrb.train, 43)) > 0
    assert counts(gtsrb.test, 43)[:3] == [60, 720, 750]
