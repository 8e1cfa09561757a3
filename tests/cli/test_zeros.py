"""A setting that was not given is absent; 0 does not stand for it and is refused."""

import pytest

ZEROS = {
    "--min-clients": ("serve", "Input should be greater than or equal to 1 "),
    "--turn-timeout-seconds": (
        "serve",
        "Input should be greater than or equal to 0.1 ",
    ),
    "--workers": ("train", "Input should be greater than or equal to 1 "),
    "--score-every": ("audit", "expected 1 or more steps, or never; got 0 "),
    "--save-every": ("audit", "expected 1 or more steps, or never; got 0 "),
}


@pytest.mark.parametrize("option", ZEROS)
def test_zero_is_refused_with_what_is_allowed(option, lightsplit):
    command, allowed = ZEROS[option]
    said = lightsplit(command, option, 0, code=2).stderr
    assert f"'{option}': {allowed}" in " ".join(said.split())


def test_an_audit_may_never_score_and_never_save(refused, tmp_path):
    never = ("--score-every", "never", "--save-every", "never")
    assert "is not a run" in refused("audit", tmp_path, *never)
