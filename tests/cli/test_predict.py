import pytest

from lightsplit.cli.predict import cost_text
from lightsplit.transports.homomorphic import Cost

pytestmark = pytest.mark.slow

QUICK = ["--train-limit", 30, "--test-limit", 20, "--batch-size", 10]
NOBODY = ["--address", "127.0.0.1:9"]


@pytest.mark.parametrize(
    ("flags", "text"),
    [
        (NOBODY, "127.0.0.1:9: Failed to connect to remote host"),
        (["--address", "10.1.2.3:7443"], "needs certificates"),
        ([*NOBODY, "--key", "/nowhere"], "cannot read /nowhere"),
        ([*NOBODY, "--state", "/nowhere"], "/nowhere/client.safetensors does not"),
        ([*NOBODY, "--certs", "/nowhere"], "cannot read /nowhere/"),
    ],
)
def test_a_mistake_is_one_line(flags, text, refused):
    assert text in refused("predict", *QUICK, *flags)


def test_encrypted_predictions_are_shown_beside_the_same_in_the_clear():
    cost = Cost(64, 3_900_000, 1_050_000, 3_100, 2_100, 0.41, 0.0013)
    shown = cost_text(cost)
    encrypted, plain = shown.split("; in the clear ")
    assert "3.7 MiB sent" in encrypted
    assert encrypted.endswith("in 0.41 s")
    assert plain.endswith("in 0.0013 s")
    assert plain.count("KiB") == 2
