"""Plain text across machines is never silent."""

import pytest

from lightsplit.cli.link import make_endpoint
from lightsplit.transports.credentials import TlsFiles


def test_insecure_is_a_warning_that_says_what_anybody_can_do(capsys):
    assert make_endpoint("10.0.0.5:7443", None, insecure=True).insecure
    text = " ".join(capsys.readouterr().err.split())
    assert "WARNING --insecure: 10.0.0.5:7443" in text
    assert "read and change all messages" in text


@pytest.mark.parametrize(
    ("address", "insecure", "has_tls"),
    [("127.0.0.1:7443", True, False), ("10.0.0.5:7443", True, True)],
    ids=["this machine", "certificates"],
)
def test_a_protected_line_is_no_warning(address, insecure, has_tls, capsys, tmp_path):
    tls = TlsFiles.of_server(tmp_path) if has_tls else None
    make_endpoint(address, tls, insecure=insecure)
    assert not capsys.readouterr().err
