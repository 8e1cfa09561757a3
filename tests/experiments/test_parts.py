"""Options of parts: checked, filled in, described and named by the parts themselves."""

import pytest

from lightsplit.codecs import CODECS, Raw
from lightsplit.errors import ConfigError
from lightsplit.experiments import parts

EVERY_PART = [
    (table, name)
    for table, registry in parts.REGISTRIES.items()
    for name in registry.names()
]
REQUIRED = {
    name: {"epsilon": 2.0} for name in ("dp", "label-dp")
}  # options without a default
every_part = pytest.mark.parametrize(("table", "name"), EVERY_PART)


@pytest.fixture
def plug_in():
    """Return what enters a codec for the time of a test."""
    names = []

    def enter(name, codec):
        names.append(name)
        CODECS.register(name)(codec)

    yield enter
    for name in names:
        del CODECS._entries[name]


class Base(Raw):
    """A codec of someone else.

    Args:
        shape: of one activation.
        width: how wide it is,
            and a second line.
        strict: whether it minds.
        rate: a share.
    """

    def __init__(
        self, shape, *, width: int = 3, strict: bool = False, rate: float = 0.5
    ):
        super().__init__(shape)
        self.options = width, strict, rate


@every_part
def test_the_defaults_of_a_part_are_options_that_it_takes(table, name):
    usual = parts.defaults(table, name)
    given = {**usual, **REQUIRED.get(name, {})}
    assert parts.checked(table, name, given) == given
    assert all(parts.has_option(table, name, option) for option in usual)
    assert usual.keys().isdisjoint(parts.GIVEN[table])


@every_part
def test_an_option_that_a_part_does_not_have_is_refused(table, name):
    assert not parts.has_option(table, name, "nonsense")
    with pytest.raises(ConfigError, match=f"'{name}' has no option 'nonsense'"):
        parts.checked(table, name, {"nonsense": 1})


@every_part
def test_arguments_that_a_run_fills_in_cannot_be_set(table, name):
    for option in parts.GIVEN[table]:
        with pytest.raises(ConfigError, match=f"has no option '{option}'"):
            parts.checked(table, name, {option: 1})


def test_an_option_is_checked_by_the_type_of_the_argument():
    assert parts.checked("codec", "topk", {"ratio": 8}) == {"ratio": 8.0}
    for value in ("8", True, float("nan"), float("inf"), None):
        with pytest.raises(ConfigError, match=r"'ratio' .* must be a number, got"):
            parts.checked("codec", "topk", {"ratio": value})


def test_an_unknown_part_is_refused_with_the_nearest():
    with pytest.raises(ConfigError, match=r"unknown codec 'topc'.*did you mean 'topk'"):
        parts.checked("codec", "topc", {})


@pytest.mark.parametrize("table", ["codec", "output_codec", "detector"])
def test_every_option_is_described(table):
    for option, text in parts.options_of_all(table).items():
        assert text, f"{option} of {table}"


def test_a_description_comes_from_the_docstring():
    assert parts.describe_option(Base, "width") == "how wide it is, and a second line."
    assert parts.describe_option(Base, "strict") == "whether it minds."
    assert parts.describe_option(Base, "nothing") == ""


def test_a_part_inherits_descriptions():
    class Derived(Base):
        """Says nothing of its arguments."""

    assert parts.describe_option(Derived, "rate") == "a share."


def test_a_plug_in_has_its_options_without_a_line_of_ours(plug_in):
    plug_in("theirs", Base)
    usual = {"width": 3, "strict": False, "rate": 0.5}
    assert parts.defaults("codec", "theirs") == usual
    assert parts.options_of_all("codec")["strict"] == "whether it minds."


@pytest.mark.parametrize(
    ("options", "expected"),
    [
        ({}, "theirs"),
        ({"width": 3, "strict": False}, "theirs"),
        ({"width": 4}, "theirs width=4"),
        ({"strict": True, "rate": 0.25}, "theirs rate=0.25 strict"),
        ({"rate": 0.1234567}, "theirs rate=0.1234567"),
    ],
)
def test_a_label_is_the_name_and_the_options_that_differ(plug_in, options, expected):
    plug_in("theirs", Base)
    assert parts.label("codec", "theirs", options) == expected


@pytest.mark.parametrize(
    ("name", "options", "expected"),
    [
        ("raw", {"ratio": 1.0}, "raw"),
        ("lightsplit-f", {"ratio": 8.0}, "lightsplit-f 8x"),
        ("lightsplit-f", {"ratio": 8.0, "projection": "dct"}, "lightsplit-f 8x dct"),
        ("lightsplit-l", {"ratio": 2.5, "hidden": 9}, "lightsplit-l 2.5x hidden=9"),
    ],
)
def test_the_ratio_stands_first(name, options, expected):
    assert parts.label("codec", name, options) == expected


def test_a_part_may_have_words_of_its_own(plug_in):
    class Wordy(Base):
        """Knows better."""

        @staticmethod
        def label(options):
            return f"wordy ({options['width']})"

    plug_in("wordy", Wordy)
    assert parts.label("codec", "wordy", {"width": 7}) == "wordy (7)"
