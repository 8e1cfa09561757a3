"""Every error that LightSplit raises on purpose.

    LightSplitError
    ├── ConfigError (ValueError)        a setting is missing, unknown or out of range
    │   └── UnknownNameError            a name that no registry entry has
    ├── SplitError (ValueError)         a model cannot be cut there
    ├── CodecError (ValueError)         a tensor does not fit its codec
    ├── FormatError (ValueError)        numbers that a wire format cannot write
    ├── DataError                       a data file cannot be used
    │   └── MissingDataError (FileNotFoundError)
    ├── ExchangeError                   client and server cannot continue; has a code
    │   ├── ProtocolError               a message that the receiver cannot accept
    │   │   ├── ContractError           the two sides did not agree on the same run
    │   │   ├── RollbackError           the server went back, against the owner's will
    │   │   └── SealError               a hand-off altered, replayed or of another key
    │   ├── TransportError              the exchange did not complete
    │   └── RemoteError                 the peer answered with an error
    ├── MissingExtraError (ImportError)  a library that an extra installs
    ├── AuditError                      an attack or a metric cannot be used here
    └── RunError                        a run's folder or checkpoint cannot be used

Each also inherits the built-in that a caller would expect to catch.
"""


class LightSplitError(Exception):
    """Base of all errors with which LightSplit refuses something."""


class ConfigError(LightSplitError, ValueError):
    """A setting is missing, unknown or out of range."""


class UnknownNameError(ConfigError):
    """No part of that kind has this name."""


class SplitError(LightSplitError, ValueError):
    """The model cannot be cut at the given place."""


class CodecError(LightSplitError, ValueError):
    """A tensor does not fit the codec it was given to."""


class FormatError(LightSplitError, ValueError):
    """Numbers that the wire format cannot write."""


class DataError(LightSplitError):
    """A data file is damaged or not of the expected kind."""


class MissingDataError(DataError, FileNotFoundError):
    """The data files are missing and could not be fetched."""


class ExchangeError(LightSplitError):
    """Client and server cannot continue.

    Attributes:
        code: the reason in one word, one of protocol.frames.REFUSALS.
    """

    code = "refused"

    def __init__(self, text: str = "", *, code: str | None = None) -> None:
        super().__init__(_printable(text))
        self.code = code or type(self).code


class ProtocolError(ExchangeError):
    """A message that the receiver cannot accept in its present state."""

    code = "out-of-order"


class ContractError(ProtocolError):
    """The two sides did not agree on the same run."""

    code = "contract-mismatch"


class RollbackError(ProtocolError):
    """The server went back to an earlier turn, which the owner does not accept."""


class SealError(ProtocolError):
    """A hand-off that was altered, replayed or sealed with another key."""

    code = "bad-seal"


class TransportError(ExchangeError):
    """The exchange did not complete; sending it again may help."""

    code = "interrupted"


class RemoteError(ExchangeError):
    """The peer answered with an error; sending it again will not help."""


class MissingExtraError(LightSplitError, ImportError):
    """A library is missing that one of LightSplit's extras installs."""


class AuditError(LightSplitError, ValueError):
    """An attack or a metric cannot be applied to what it was given."""


class RunError(LightSplitError):
    """A run's folder, record or checkpoint cannot be used."""


def _printable(text: str) -> str:
    """Return a text, perhaps of a peer, without anything that controls a terminal."""
    return "".join(
        one if one.isprintable() else "\N{REPLACEMENT CHARACTER}" for one in text
    )
