"""Numbers of every size, and the way through a format."""

import pytest

from lightsplit.codecs import TensorSpec
from lightsplit.formats import FORMATS, ROUNDINGS, Stream


def _make_rounding(name="nearest", seed=0):
    """A new rounding: sender and receiver each have their own, drawing alike."""
    return ROUNDINGS.create(name, stream=Stream(seed, "test"))


def _pass_through(name, values, rounding="nearest", seed=0):
    """Return what is read of what was written."""
    form = FORMATS.create(name)
    written = form.write(values, _make_rounding(rounding, seed))
    return form.read(written, tuple(values.shape), _make_rounding(rounding, seed))


def _write(name, values, rounding="nearest"):
    return FORMATS.create(name).write(values, _make_rounding(rounding))


def _layout_bytes(name, shape):
    specs = FORMATS.create(name).layout(TensorSpec(tuple(shape)))
    return sum(spec.bytes for spec in specs)


@pytest.fixture(scope="session")
def make_rounding():
    return _make_rounding


@pytest.fixture(scope="session")
def pass_through():
    return _pass_through


@pytest.fixture(scope="session")
def write():
    return _write


@pytest.fixture(scope="session")
def layout_bytes():
    return _layout_bytes
