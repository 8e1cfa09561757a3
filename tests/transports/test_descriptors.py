import resource

from lightsplit.transports import descriptors


def limited_to(monkeypatch, soft):
    monkeypatch.setattr(resource, "getrlimit", lambda _what: (soft, soft))
    return descriptors.connection_limit()


def test_some_descriptors_are_kept_for_files(monkeypatch):
    assert limited_to(monkeypatch, 1024) == 1024 - descriptors.RESERVED


def test_there_is_always_room_for_a_few_and_a_bound_for_many(monkeypatch):
    assert limited_to(monkeypatch, 40) == descriptors.FEWEST
    assert limited_to(monkeypatch, resource.RLIM_INFINITY) == 2**20
