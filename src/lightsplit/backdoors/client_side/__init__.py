"""What a client can notice about its server.

Importing this package enters every inspector in ``INSPECTORS``.
"""

from lightsplit.backdoors.client_side.base import INSPECTORS, Inspector
from lightsplit.backdoors.client_side.scrutinizer import Scrutinizer
from lightsplit.backdoors.client_side.splitguard import SplitGuard

__all__ = ["INSPECTORS", "Inspector", "Scrutinizer", "SplitGuard"]
