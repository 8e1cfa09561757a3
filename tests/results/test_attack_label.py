"""Labels of attacks, and their names as files."""

import pytest

from lightsplit.results import as_file_name, attack_label


@pytest.mark.parametrize(
    ("entry", "label"),
    [
        ({"attack": "sdar"}, "sdar"),
        ({"attack": "sdar", "options": {}}, "sdar"),
        (
            {"attack": "sdar", "options": {"wcc": 0.01, "lr": 1.0}},
            "sdar:lr=1.0,wcc=0.01",
        ),
    ],
)
def test_a_label_is_the_attack_with_its_given_options(entry, label):
    assert attack_label(entry) == label


def test_a_label_becomes_a_file_name_that_every_system_takes():
    assert as_file_name("sdar:lr=1e-05,way=a/b") == "sdar_lr=1e-05,way=a_b"
