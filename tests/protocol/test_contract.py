import dataclasses
import json

import pytest

from lightsplit.errors import ContractError, ProtocolError
from lightsplit.protocol import Contract

TERMS = {
    "model": "tinycnn",
    "cut": "l2",
    "topology": "u",
    "heads": "shared",
    "activation_shape": (16, 8, 8),
    "output_shape": (64,),
    "codec": "lightsplit-f",
    "codec_options": {"seed": 1, "projection": "haar"},
    "code_size": 128,
    "fingerprint": "ab" * 32,
    "seed": 0,
    "clients": 5,
    "batch_size": 64,
    "turn_steps": 1,
}
OTHERS = {
    str: lambda value: value + "x",
    int: lambda value: value + 1,
    tuple: lambda value: (*value, 1),
    dict: lambda value: {**value, "seed": 2},
}
FIELDS = [
    f.name
    for f in dataclasses.fields(Contract)
    if f.name in TERMS or f.name == "version"
]


def changed(contract, name):
    value = getattr(contract, name)
    return dataclasses.replace(contract, **{name: OTHERS[type(value)](value)})


@pytest.fixture
def contract():
    return Contract(**TERMS)


def test_equal_terms_have_equal_digests(contract):
    assert contract.digest == Contract(**TERMS).digest
    assert len(bytes.fromhex(contract.digest)) == 32


def test_the_order_of_options_does_not_matter(contract):
    options = dict(reversed(TERMS["codec_options"].items()))
    assert Contract(**{**TERMS, "codec_options": options}).digest == contract.digest


def test_every_term_was_tried():
    required = {f.name for f in dataclasses.fields(Contract) if _is_required(f)}
    assert required == TERMS.keys()


def _is_required(field):
    missing = dataclasses.MISSING
    return field.default is missing and field.default_factory is missing


@pytest.mark.parametrize("name", FIELDS)
def test_every_term_changes_the_digest(contract, name):
    assert changed(contract, name).digest != contract.digest


@pytest.mark.parametrize("name", FIELDS)
def test_a_term_that_differs_is_shown_on_both_sides(contract, name):
    theirs = changed(contract, name)
    with pytest.raises(ContractError) as caught:
        contract.check_same(theirs)
    server, client = getattr(contract, name), getattr(theirs, name)
    text = f"{name}: client has {client!r}, server has {server!r}"
    assert text in str(caught.value)
    assert ";" not in str(caught.value)


def test_every_difference_is_shown(contract):
    theirs = changed(changed(contract, "seed"), "clients")
    with pytest.raises(ProtocolError, match=r"seed: client.*clients: client"):
        contract.check_same(theirs)


def test_equal_contracts_pass(contract):
    contract.check_same(Contract(**TERMS))


def test_the_canonical_text_is_json_without_spaces_and_sorted(contract):
    content = json.loads(contract.to_json())
    assert list(content) == sorted(content)
    assert " " not in contract.to_json()
