"""A stream that says nothing does not stay."""

import threading
import time

import lightsplit
from lightsplit.loops.reception import Reception
from lightsplit.transports import Peer


def test_a_stream_that_says_nothing_is_cut_off(kit, tmp_path):
    host = lightsplit.host(kit.make_network(), optimizer=kit.ADAM, **kit.CUT)
    cut = threading.Event()
    reception = Reception(host.open(tmp_path / "saves"), None, seconds=0.01)
    session = reception.open(Peer(None, cut.set, lambda: True))
    time.sleep(0.02)
    reception.sweep()
    assert cut.is_set()
    session.close()
    cut.clear()
    reception.sweep()
    assert not cut.is_set()
