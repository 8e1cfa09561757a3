"""A setting that was not given is absent; 0 does not stand for it and is refused."""

import pytest

ZEROS = {
    "--min-clients": ("serve", "1"),
    "--turn-timeout-seconds": ("serve", "0.1"),
}


@pytest.mark.parametrize("option", ZEROS)
def test_zero_is_refused_with_what_is_allowed(option, lightsplit):
    command, least = ZEROS[option]
    said = lightsplit(command, option, 0, code=2).stderr
    expected = f"'{option}': Input should be greater than or equal to {least} "
    assert expected in " ".join(said.split())
