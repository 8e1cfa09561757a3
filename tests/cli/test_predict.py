import pytest

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
