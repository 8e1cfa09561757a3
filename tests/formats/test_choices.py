import pytest

from lightsplit.errors import ConfigError, UnknownNameError
from lightsplit.formats import FORMATS, STEP_KINDS, choice_text, parse_choices

DEFAULT = dict.fromkeys(STEP_KINDS, "fp32")


def parse(text):
    return parse_choices(text, FORMATS, DEFAULT)


def test_one_word_is_for_all_four_messages():
    assert parse("int8") == dict.fromkeys(STEP_KINDS, "int8")


def test_messages_that_are_not_named_keep_the_default():
    assert parse("code=int8, output=bf16") == DEFAULT | {
        "code": "int8",
        "output": "bf16",
    }
    assert parse("") == DEFAULT


@pytest.mark.parametrize(
    "text", ["int4", "code=int8", "output=fp16,code_gradient=int4"]
)
def test_the_text_of_a_choice_gives_it_back(text):
    assert parse(choice_text(parse(text))) == parse(text)


def test_there_is_one_text_for_one_choice():
    every = ",".join(f"{kind}=bf16" for kind in STEP_KINDS)
    assert choice_text(parse(every)) == choice_text(parse("bf16")) == "bf16"


@pytest.mark.parametrize(
    ("text", "said"),
    [
        ("int7", "unknown wire format 'int7'.*did you mean"),
        ("code=int7", "unknown wire format"),
        ("cod=int8", "unknown message 'cod'.*did you mean 'code'"),
        ("code=int8,code=int4", "named twice"),
        ("int8,fp32", "expected one wire format or message=name pairs, got 'int8'"),
    ],
)
def test_an_invalid_choice_is_refused_with_the_valid_ones(text, said):
    with pytest.raises(ConfigError, match=said):
        parse(text)


def test_an_unknown_name_is_an_unknown_name():
    with pytest.raises(UnknownNameError):
        parse("code=float")
