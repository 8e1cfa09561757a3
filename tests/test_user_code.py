import pytest

from lightsplit.errors import ConfigError, DataError
from lightsplit.user_code import one_line_errors


def test_any_error_becomes_one_line_with_its_kind_and_its_first_line():
    with pytest.raises(ConfigError) as caught, one_line_errors("cannot import it"):
        raise KeyError("first\nsecond")
    assert str(caught.value).startswith("cannot import it: KeyError: ")
    assert "\n" not in str(caught.value)


def test_the_error_is_of_the_kind_that_was_asked_for():
    expected = pytest.raises(DataError, match="no data: OSError: gone")
    with expected, one_line_errors("no data", DataError):
        raise OSError("gone")


def test_our_own_errors_and_interruptions_pass_as_they_are():
    with pytest.raises(DataError, match=r"^damaged$"), one_line_errors("cannot"):
        raise DataError("damaged")
    with pytest.raises(KeyboardInterrupt), one_line_errors("cannot"):
        raise KeyboardInterrupt
