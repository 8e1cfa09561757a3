import pytest

from lightsplit.deployment.prediction_session import PredictionSession
from lightsplit.errors import ProtocolError
from lightsplit.protocol.control import Ready


def test_codes_outside_training_are_answered_and_change_nothing(net, tmp_path):
    run = net.make_run(tmp_path)
    session = PredictionSession(run, run.members[0])
    assert session.handle(net.code(0, 7, is_training=False)).kind == "output"
    session.replied()
    session.close()
    assert run._steps._server.applied == []
    assert run.turns.is_at_boundary


@pytest.mark.parametrize("message", ["code", "gradient", "ready"])
def test_nothing_else_is_answered(message, net, tmp_path):
    messages = {"code": net.code(0, 0), "gradient": net.gradient(0, 0)}
    run = net.make_run(tmp_path)
    session = PredictionSession(run, run.members[0])
    with pytest.raises(ProtocolError, match="expected a code outside training"):
        session.handle(messages.get(message, Ready(1)))


def test_a_client_predicts_under_its_own_number_alone(net, tmp_path):
    run = net.make_run(tmp_path)
    session = PredictionSession(run, run.members[0])
    with pytest.raises(ProtocolError, match="is client 0, not 1"):
        session.handle(net.code(1, 7, is_training=False))
