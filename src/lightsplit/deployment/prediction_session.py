"""The server's end of one client's connection that only predicts."""

from lightsplit.deployment.roster import Member
from lightsplit.deployment.server_run import ServerRun
from lightsplit.errors import ProtocolError
from lightsplit.protocol import (
    CodeMessage,
    EncryptedCode,
    EncryptedOutput,
    Message,
    Reply,
)


class PredictionSession:
    """Answers codes outside training and changes nothing; callers hold the lock.

    Args:
        run: that the server trains, or has trained.
        member: the client that predicts; it may ask under its own number alone.
    """

    def __init__(self, run: ServerRun, member: Member) -> None:
        self._run = run
        self._member = member

    def handle(self, message: Message) -> Reply | EncryptedOutput:
        """Return the output for a code; it is encrypted if the code is."""
        if isinstance(message, EncryptedCode):
            self._member.check_sender(message)
            return self._run.infer_encrypted(message)
        if not isinstance(message, CodeMessage) or message.is_training:
            raise ProtocolError(
                f"expected a code outside training, got {type(message).__name__}",
                code="out-of-order",
            )
        self._member.check_sender(message)
        return self._run.infer(message)

    def replied(self) -> None:
        """Do nothing: a prediction leaves no work behind."""

    def close(self) -> None:
        """Do nothing: nobody waits for a client that predicts."""
