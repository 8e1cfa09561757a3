import json

import pytest

from lightsplit.cli.listing import KINDS


@pytest.mark.parametrize("kind", ["models", "codecs", "datasets", "projections"])
def test_every_part_is_listed_with_what_it_is(lightsplit, kind):
    entries = json.loads(lightsplit("list", kind, "--json").stdout)
    assert list(entries) == KINDS[kind].names()
    assert all(entries.values())
    shown = lightsplit("list", kind).stdout
    assert all(name in shown for name in entries)


def test_an_unknown_kind_is_refused_with_the_known_ones(refused):
    message = refused("list", "model")
    assert all(kind in message for kind in KINDS)
    assert "did you mean 'models'?" in message


def test_a_kind_must_be_given(lightsplit):
    lightsplit("list", code=2)
