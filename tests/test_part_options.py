"""Options of parts: text to values, values checked by a signature."""

from dataclasses import dataclass
from typing import Any, Literal

import pytest
from hypothesis import given
from hypothesis import strategies as st

from lightsplit.errors import ConfigError
from lightsplit.part_options import (
    check_options,
    known_options,
    make_arguments,
    parse_part,
    write_part,
)


class Base:
    def __init__(self, *, seed: int = 0, rounds: int = 2) -> None:
        self.settings = (seed, rounds)


class Part(Base):
    def __init__(
        self,
        *,
        images: list[int],
        blocks: int = 2,
        lr: float | None = None,
        form: Literal["short", "long"] = "short",
        is_deep: bool = False,
        title: str = "",
        **options: Any,
    ) -> None:
        super().__init__(**options)


SUPPLIED = frozenset({"images", "seed"})


def check(**options: Any) -> dict[str, Any]:
    return check_options("attack", "part", Part, options, given=SUPPLIED)


@pytest.mark.parametrize(
    ("text", "options"),
    [
        ("decoder", {}),
        ("decoder:blocks=4", {"blocks": 4}),
        ("decoder:lr=0.1,blocks=4", {"lr": 0.1, "blocks": 4}),
        ("decoder: lr = 1e-3 , is-deep=true", {"lr": 1e-3, "is_deep": True}),
        ("decoder:title=a:b=c", {"title": "a:b=c"}),
        ('decoder:title="4",other="a,b"', {"title": "4", "other": "a,b"}),
    ],
)
def test_a_part_is_its_name_and_its_options(text, options):
    name, parsed = parse_part(text)
    assert (name, parsed) == ("decoder", options)
    assert [type(v) for v in parsed.values()] == [type(v) for v in options.values()]


@pytest.mark.parametrize(
    ("text", "reason"),
    [
        ("", "expected NAME"),
        (":a=1", "expected NAME"),
        ("decoder:", "expected NAME"),
        ("decoder:blocks", "expected OPTION=VALUE in .*, got 'blocks'"),
        ("decoder:=4", "expected OPTION=VALUE"),
        ("decoder:a=1,a=2", "'a' is given twice"),
        ('decoder:a="x" y', "quotes"),
    ],
)
def test_text_that_is_no_part_is_refused(text, reason):
    with pytest.raises(ConfigError, match=reason):
        parse_part(text)


words = st.from_regex(r"[a-z][a-z0-9_]*", fullmatch=True)
values = (
    st.integers()
    | st.booleans()
    | st.floats(allow_nan=False)
    | st.text(st.characters(codec="ascii"), max_size=12)
)


@given(words, st.dictionaries(words, values, max_size=4))
def test_a_written_part_reads_back_the_same(name, options):
    assert parse_part(write_part(name, options)) == (name, options)


def test_options_are_the_simple_arguments_that_the_caller_does_not_give():
    known = known_options(Part, given=SUPPLIED)
    assert set(known) == {"blocks", "lr", "form", "is_deep", "title", "rounds"}


def test_options_that_fit_come_back_in_their_type():
    options = check(blocks=4, lr=1, form="long", is_deep=True, title="x", rounds=3)
    assert options == {
        "blocks": 4,
        "lr": 1.0,
        "form": "long",
        "is_deep": True,
        "title": "x",
        "rounds": 3,
    }
    assert type(options["lr"]) is float


@pytest.mark.parametrize(
    ("options", "reason"),
    [
        ({"blocks": 4.5}, "'blocks' of attack 'part' must be a whole number, got 4.5"),
        ({"blocks": True}, "must be a whole number, got True"),
        ({"lr": "fast"}, "must be a number, got 'fast'"),
        ({"form": "wide"}, "must be 'short' or 'long', got 'wide'"),
        ({"is_deep": 1}, "must be true or false, got 1"),
        ({"title": 1}, "must be text, got 1"),
        ({"title": ["a"]}, r"must be text, got \['a'\]"),
        ({"blokcs": 4}, "no option 'blokcs'; known: .*rounds.*; did you mean 'blocks'"),
        ({"seed": 4}, "no option 'seed'"),
        ({"images": 4}, "no option 'images'"),
    ],
)
def test_an_option_that_does_not_fit_is_refused_in_one_sentence(options, reason):
    with pytest.raises(ConfigError, match=reason) as refused:
        check(**options)
    assert "\n" not in str(refused.value)


def test_a_part_without_options_says_so():
    def constructor(*, seed: int) -> None:
        del seed

    with pytest.raises(ConfigError, match=r"no option 'lr'; it has none$"):
        check_options("codec", "raw", constructor, {"lr": 1}, given=frozenset({"seed"}))


def test_an_option_without_a_default_must_be_given():
    def constructor(weight: float) -> float:
        return weight

    with pytest.raises(ConfigError, match="'nopeek' needs the option 'weight'"):
        check_options("objective", "nopeek", constructor, {})
    assert check_options("objective", "nopeek", constructor, {"weight": 2}) == {
        "weight": 2.0
    }


@dataclass(frozen=True)
class Settings:
    rate: float = 0.5
    width: int = 8
    shape: tuple[int, ...] = ()


NARROW = Settings(width=2)


def tuned(*, images: list[int], settings: Settings = NARROW, steps: int = 1) -> None:
    del images, settings, steps


def test_a_dataclass_of_settings_stands_for_its_fields():
    given = frozenset({"images"})
    assert set(known_options(tuned, given=given)) == {"rate", "width", "steps"}
    options = check_options("part", "tuned", tuned, {"rate": 1, "steps": 3})
    assert make_arguments(tuned, options, given=given) == {
        "settings": Settings(rate=1.0, width=2),
        "steps": 3,
    }


def test_without_options_a_constructor_keeps_its_defaults():
    assert make_arguments(tuned, {}) == {}
    assert make_arguments(Part, {"blocks": 4}) == {"blocks": 4}
