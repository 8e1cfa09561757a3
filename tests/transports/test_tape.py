"""A recording holds every exchange, whatever happens to its writer."""

import os
import stat

import pytest
import torch

from lightsplit.codecs import Code
from lightsplit.errors import RunError
from lightsplit.protocol import (
    CodeGradient,
    CodeMessage,
    OutputGradient,
    OutputMessage,
)
from lightsplit.protocol.frames import PART_BYTES
from lightsplit.transports import Tape, tape, through


def exchanges(steps, *, width=4):
    """Return both exchanges of some steps of client 1."""
    found = []
    for step in range(steps):
        code = Code(torch.randn(3, width), (torch.tensor([step]),))
        found.append((CodeMessage(1, step, code), OutputMessage(1, step, code)))
        gradient = torch.randn(3, width)
        found.append(
            (OutputGradient(1, step, gradient), CodeGradient(1, step, gradient))
        )
    return found


def record(file, some):
    mod = Tape(file)
    for request, reply in some:
        assert through(mod, lambda _request, reply=reply: reply)(request) is reply
    mod.close()


def steps_in(file):
    return [(place.what, place.step) for place in tape.places(file)]


def test_what_was_sent_comes_back(tmp_path):
    file, sent = tmp_path / "state" / "sent.tape", exchanges(3)
    record(file, sent)
    assert steps_in(file) == [(kind, step) for step in range(3) for kind in (1, 2)]
    for place, (request, reply) in zip(tape.places(file), sent, strict=True):
        got, answer = tape.read(file, place)
        assert (type(got), type(answer)) == (type(request), type(reply))
        assert (got.client, got.step) == (1, request.step)
    code = tape.read(file, next(tape.places(file)))[0].code
    assert torch.equal(code.values, sent[0][0].code.values)
    assert torch.equal(code.side[0], sent[0][0].code.side[0])


def test_only_the_owner_may_read_it(tmp_path):
    file = tmp_path / "sent.tape"
    record(file, exchanges(1))
    assert stat.S_IMODE(file.stat().st_mode) == 0o600


def test_evaluations_are_told_apart(tmp_path):
    file, code = tmp_path / "sent.tape", Code(torch.zeros(2, 4))
    request = CodeMessage(0, 7, code, is_training=False)
    record(file, [(request, OutputMessage(0, 7, code))])
    assert steps_in(file) == [(tape.EVALUATION, 7)]


@pytest.mark.slow
def test_a_message_of_several_parts_is_one_exchange(tmp_path):
    file = tmp_path / "sent.tape"
    [(request, reply), _] = exchanges(1, width=PART_BYTES // 8)
    record(file, [(request, reply)])
    [place] = tape.places(file)
    assert torch.equal(tape.read(file, place)[0].code.values, request.code.values)


@pytest.mark.parametrize("lost", [1, 30, 60])
def test_an_exchange_that_was_cut_short_is_left_out_and_written_over(tmp_path, lost):
    file, sent = tmp_path / "sent.tape", exchanges(2)
    record(file, sent)
    os.truncate(file, file.stat().st_size - lost)
    assert steps_in(file) == [(1, 0), (2, 0), (1, 1)]
    record(file, sent[3:])
    assert steps_in(file) == [(1, 0), (2, 0), (1, 1), (2, 1)]


def test_a_full_disk_is_one_sentence_with_the_files_name(tmp_path):
    file = tmp_path / "sent.tape"
    file.symlink_to("/dev/full")
    with pytest.raises(RunError, match=r"sent\.tape: No space left on device; what"):
        record(file, exchanges(1))


def test_what_was_recorded_before_the_disk_was_full_is_kept(tmp_path):
    import resource
    import signal

    file, sent = tmp_path / "sent.tape", exchanges(2)
    record(file, sent[:3])
    size, limits = file.stat().st_size, resource.getrlimit(resource.RLIMIT_FSIZE)
    before = signal.signal(signal.SIGXFSZ, signal.SIG_IGN)
    resource.setrlimit(resource.RLIMIT_FSIZE, (size + 40, limits[1]))
    try:
        with pytest.raises(RunError, match="cannot record to"):
            record(file, sent[3:])
    finally:
        resource.setrlimit(resource.RLIMIT_FSIZE, limits)
        signal.signal(signal.SIGXFSZ, before)
    assert file.stat().st_size == size
    assert len(steps_in(file)) == 3


def test_a_damaged_recording_is_refused(tmp_path):
    file = tmp_path / "sent.tape"
    record(file, exchanges(2))
    first = next(tape.places(file))
    content = bytearray(file.read_bytes())
    content[first.start + 20] ^= 255
    file.write_bytes(content)
    with pytest.raises(RunError, match="damaged at byte"):
        tape.read(file, first)
    file.write_bytes(b"something else entirely, which is long enough to be a header")
    with pytest.raises(RunError, match="damaged at byte 0"):
        list(tape.places(file))
    with pytest.raises(RunError, match="there is no recording"):
        list(tape.places(tmp_path / "none"))
