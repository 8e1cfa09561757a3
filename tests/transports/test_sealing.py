import base64
import pickle
import stat

import pytest
from hypothesis import given, settings
from hypothesis import strategies as st

from lightsplit.errors import ConfigError, ProtocolError, SealError
from lightsplit.transports import sealing
from lightsplit.transports.sealing import SEAL_BYTES, SealingKey

BOUND = {"run": "run-1", "turn": 3, "contract": "c0ffee"}
KEY = SealingKey(bytes(range(32)))
BLOB = b"the head and the tail"


RUNS = ["", "run-1", 'a"b', "\\", "é", "\ud800"]


@settings(max_examples=60, deadline=None)
@given(
    blob=st.binary(max_size=2000),
    run=st.sampled_from(RUNS),
    turn=st.integers(min_value=0),
)
def test_opening_returns_the_sealed_blob_and_the_overhead_is_constant(blob, run, turn):
    sealed = KEY.seal(blob, run=run, turn=turn, contract="c")
    assert len(sealed) == len(blob) + SEAL_BYTES
    assert KEY.open(sealed, run=run, turn=turn, contract="c") == blob


def test_every_single_flipped_bit_is_refused():
    sealed = KEY.seal(BLOB, **BOUND)
    for bit in range(8 * len(sealed)):
        altered = bytearray(sealed)
        altered[bit // 8] ^= 1 << bit % 8
        with pytest.raises(SealError):
            KEY.open(bytes(altered), **BOUND)


def test_every_truncation_and_any_longer_blob_is_refused():
    sealed = KEY.seal(BLOB, **BOUND)
    for part in (*(sealed[:length] for length in range(len(sealed))), sealed + b"\0"):
        with pytest.raises(SealError):
            KEY.open(part, **BOUND)


@pytest.mark.parametrize(
    "other",
    [{"run": "run-2"}, {"turn": 2}, {"turn": 4}, {"contract": "c0ffef"}],
    ids=str,
)
def test_a_blob_of_another_run_turn_or_contract_is_refused(other):
    sealed = KEY.seal(BLOB, **BOUND)
    expected = BOUND | other
    with pytest.raises(
        SealError, match=f"turn {expected['turn']}, .*{KEY.fingerprint}"
    ):
        KEY.open(sealed, **expected)


def test_text_cannot_move_from_one_binding_to_the_next():
    sealed = KEY.seal(BLOB, run='a", 1, "b', turn=1, contract="c")
    with pytest.raises(SealError):
        KEY.open(sealed, run="a", turn=1, contract='b", 1, "c')


def test_another_key_is_refused():
    with pytest.raises(ProtocolError, match="another key"):
        SealingKey.generate().open(KEY.seal(BLOB, **BOUND), **BOUND)


def test_two_seals_of_the_same_blob_differ():
    seals = {KEY.seal(BLOB, **BOUND) for _ in range(100)}
    assert len({sealed[4:16] for sealed in seals}) == 100


def test_the_plain_text_does_not_occur_in_the_sealed_bytes():
    sealed = KEY.seal(BLOB * 50, **BOUND)
    pieces = {BLOB[start : start + 4] for start in range(len(BLOB) - 3)}
    assert not [piece for piece in pieces if piece in sealed]
    assert KEY._secret not in sealed


def test_a_hundred_megabytes_pass():
    blob = bytes(100_000_000)
    assert KEY.open(KEY.seal(blob, **BOUND), **BOUND) == blob


def test_a_blob_that_no_cipher_call_takes_is_refused(monkeypatch):
    monkeypatch.setattr(sealing, "MAX_BLOB_BYTES", 10)
    with pytest.raises(SealError, match="10 bytes, got 11"):
        KEY.seal(bytes(11), **BOUND)


def test_a_loaded_key_opens_blobs_that_the_original_sealed(tmp_path):
    path = tmp_path / "new" / "head.key"
    key = SealingKey.generate()
    key.save(path)
    assert SealingKey.load(path).open(key.seal(BLOB, **BOUND), **BOUND) == BLOB
    assert stat.S_IMODE(path.stat().st_mode) == 0o600
    assert len(path.read_text().splitlines()) == 1
    assert [p.name for p in path.parent.iterdir()] == ["head.key"]


def test_a_key_file_is_never_overwritten(tmp_path):
    path = tmp_path / "head.key"
    KEY.save(path)
    before = path.read_bytes()
    with pytest.raises(ConfigError, match="will not be overwritten"):
        SealingKey.generate().save(path)
    assert path.read_bytes() == before
    assert len(list(tmp_path.iterdir())) == 1


def test_a_key_that_appears_meanwhile_is_not_overwritten(tmp_path, monkeypatch):
    path = tmp_path / "head.key"
    KEY.save(path)
    monkeypatch.setattr("os.path.lexists", lambda path: False)
    with pytest.raises(ConfigError, match="cannot write"):
        SealingKey.generate().save(path)
    monkeypatch.undo()
    assert SealingKey.load(path).fingerprint == KEY.fingerprint
    assert len(list(tmp_path.iterdir())) == 1


@pytest.mark.parametrize("mode", [0o644, 0o640, 0o602])
def test_a_key_that_others_can_use_is_refused_with_the_remedy(tmp_path, mode):
    path = tmp_path / "head.key"
    KEY.save(path)
    path.chmod(mode)
    with pytest.raises(ConfigError, match=f"chmod 600 {path}"):
        SealingKey.load(path)


@pytest.mark.parametrize(
    "content",
    [
        b"",
        b"something else",
        b"\xff\xfe\x00",
        b"lightsplit-key-1:",
        b"lightsplit-key-1:not base64!",
        b"lightsplit-key-1:" + base64.b64encode(bytes(31)),
        b"lightsplit-key-2:" + base64.b64encode(bytes(32)),
    ],
)
def test_a_wrong_file_is_refused_by_name(tmp_path, content):
    path = tmp_path / "head.key"
    path.write_bytes(content)
    path.chmod(0o600)
    with pytest.raises(ConfigError, match=r"head\.key is (not|a damaged) "):
        SealingKey.load(path)


def test_an_absent_file_and_a_folder_are_refused(tmp_path):
    for path in (tmp_path / "none.key", tmp_path):
        with pytest.raises(ConfigError, match="cannot read"):
            SealingKey.load(path)


def test_a_place_that_cannot_be_written_is_refused(tmp_path):
    (tmp_path / "file").write_text("")
    with pytest.raises(ConfigError, match="cannot write"):
        KEY.save(tmp_path / "file" / "head.key")


def test_the_key_shows_in_no_text(tmp_path):
    secret = KEY._secret
    shown = f"{KEY!r} {KEY} {KEY.fingerprint}"
    for form in (secret.hex(), base64.b64encode(secret).decode(), repr(secret)[2:-1]):
        assert form not in shown
    assert KEY.fingerprint == SealingKey(secret).fingerprint
    assert KEY.fingerprint != SealingKey.generate().fingerprint


def test_a_key_of_another_length_is_refused():
    with pytest.raises(ConfigError, match="32 bytes, got 16"):
        SealingKey(bytes(16))


def test_a_key_cannot_be_pickled_into_something_that_travels():
    with pytest.raises(TypeError, match="save"):
        pickle.dumps(KEY)


def test_holders_of_a_key_derive_the_same_number_and_others_another():
    same = SealingKey(bytes(range(32)))
    assert KEY.derive("first weights", 3) == same.derive("first weights", 3)
    assert KEY.derive("first weights", 3) < 2**256
    others = {
        SealingKey.generate().derive("first weights", 3),
        KEY.derive("first weights", 4),
        KEY.derive("something else", 3),
        KEY.derive(3, "first weights"),
    }
    assert len(others | {KEY.derive("first weights", 3)}) == 5
    assert int.from_bytes(bytes(range(32)), "big") not in others
