"""Inspectors, with which clients check their server.

Importing this package registers every inspector in ``INSPECTORS``.
"""

from lightsplit.backdoors.client_side.base import INSPECTORS, Inspector
from lightsplit.backdoors.client_side.scrutinizer import Scrutinizer
from lightsplit.backdoors.client_side.splitguard import SplitGuard

__all__ = ["INSPECTORS", "Inspector", "Scrutinizer", "SplitGuard"]
