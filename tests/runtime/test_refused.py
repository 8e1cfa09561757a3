"""Whatever the server refuses leaves it as it was, bit for bit."""

import pytest
import torch
from torch import nn

from lightsplit.backdoors import EvidenceCollector
from lightsplit.codecs import CODECS, Code
from lightsplit.errors import LightSplitError, RunError
from lightsplit.formats import WireFormats
from lightsplit.protocol import CodeMessage, OutputGradient
from lightsplit.runtime import Server, ServerSide

CODES, OUTPUTS = 6, 5


class Touchy(nn.Module):
    """Changes its running statistics, then fails where the first number is 7."""

    def __init__(self):
        super().__init__()
        self.norm = nn.BatchNorm1d(CODES)
        self.linear = nn.Linear(CODES, OUTPUTS)

    def forward(self, code):
        out = self.linear(self.norm(code))
        if code[0, 0] == 7:
            raise RuntimeError("the modules cannot compute it")
        return out


def make_server(*, topology="u", formats="fp32", backbone=None, **options):
    torch.manual_seed(5)
    side = ServerSide(
        backbone or Touchy(),
        CODECS.create("raw", shape=(CODES,)),
        lambda weights: torch.optim.SGD(weights, lr=0.1, momentum=0.9),
        tail=nn.Linear(OUTPUTS, 3) if topology == "vanilla" else None,
    )
    server = Server(side, formats=WireFormats(formats), **options)
    if topology == "vanilla":  # one honest step: the optimizer has a state
        server.handle(CodeMessage(0, 0, code(), torch.tensor([0, 1, 2, 0])))
    else:
        server.handle(CodeMessage(0, 0, code()))
        server.handle(OutputGradient(0, 0, torch.full((4, OUTPUTS), 0.01)))
    return server


def code(fill=None):
    values = torch.randn(4, CODES, generator=torch.Generator().manual_seed(1))
    if fill is not None:
        values[0, 0] = fill
    return Code(values)


def copied(server):
    return {name: value.clone() for name, value in server.side.state().items()}


def assert_untouched(server, before):
    server.settle()
    after = server.side.state()
    assert after.keys() == before.keys()
    for name, value in before.items():
        assert torch.equal(after[name], value), name


def assert_refused(server, message, *, code=None):
    before = copied(server)
    with pytest.raises((LightSplitError, RuntimeError, IndexError)) as caught:
        server.answer(message)
    if code is not None:
        assert caught.value.code == code
    assert_untouched(server, before)


def test_a_gradient_whose_reply_does_not_fit_its_format_is_not_applied():
    server = make_server(formats="code_gradient=fp16")
    before = copied(server)
    server.answer(CodeMessage(0, 1, code()))
    with pytest.raises(LightSplitError):
        server.answer(OutputGradient(0, 1, torch.full((4, OUTPUTS), 9e5).tril()))
    assert_untouched(server, before)


def test_a_step_whose_reply_does_not_fit_is_not_applied_in_vanilla():
    class Steep(nn.Module):
        def __init__(self):
            super().__init__()
            self.norm = nn.BatchNorm1d(CODES)
            self.linear = nn.Linear(CODES, OUTPUTS)

        def forward(self, code):
            self.norm(code)
            return self.linear(code) * (1e9 if code[0, 0] == 7 else 1)

    server = make_server(
        topology="vanilla",
        formats="code_gradient=fp16",
        backbone=Steep(),
        norm_limit=1e30,
    )
    same = Code(code(7).values[[0, 1, 2, 2]])  # one of the last two must be wrong
    assert_refused(server, CodeMessage(0, 1, same, torch.tensor([2, 1, 0, 2])))


def test_a_forward_pass_that_fails_leaves_the_running_statistics():
    assert_refused(make_server(), CodeMessage(0, 1, code(7)))


def test_a_failed_step_leaves_nothing_in_vanilla():
    server = make_server(topology="vanilla")
    labels = torch.tensor([0, 1, 2, 0])
    assert_refused(server, CodeMessage(0, 1, code(7), labels))
    assert_refused(server, CodeMessage(0, 1, code(), torch.full((4,), 99)))


def test_labels_that_count_for_nothing_are_refused_in_vanilla():
    message = CodeMessage(0, 1, code(), torch.full((4,), -100))
    assert_refused(make_server(topology="vanilla"), message, code="not-finite")


@pytest.mark.parametrize("number", [3e38, 2e6, -2e6])
def test_a_code_beyond_the_limit_is_refused(number):
    message = CodeMessage(0, 1, code(number))
    assert_refused(make_server(), message, code="out-of-range")
    assert_refused(make_server(), CodeMessage(0, 1, code(number), is_training=False))


@pytest.mark.parametrize("number", [3e38, 2e6])
def test_a_gradient_beyond_the_limit_changes_nothing(number):
    server = make_server()
    server.answer(CodeMessage(0, 1, code()))
    gradient = OutputGradient(0, 1, torch.full((4, OUTPUTS), number))
    assert_refused(server, gradient, code="out-of-range")


def test_a_gradient_that_is_beyond_the_limit_at_the_weights_undoes_its_step():
    server = make_server(norm_limit=100.0)
    before = copied(server)
    server.answer(CodeMessage(0, 1, code()))
    with pytest.raises(LightSplitError, match="gradient of the weights"):
        server.answer(OutputGradient(0, 1, torch.full((4, OUTPUTS), 99.0)))
    assert_untouched(server, before)
    server.answer(CodeMessage(0, 1, code()))  # there is room for the step again


def make_watched_server(**options):
    server = make_server(**options)
    needs = ("code", "output", "gradient", "noise")
    mod = EvidenceCollector(needs, server.wire, server.side.modules["backbone"])

    def answer(message):
        return mod(message, server.answer)

    step(answer, 1)
    step(answer, 2)
    return server, mod, answer


def step(answer, number):
    answer(CodeMessage(0, number, code()))
    answer(OutputGradient(0, number, torch.full((4, OUTPUTS), 0.1 * number)))


REFUSED = {  # options of the server, and what it refuses
    "a code beyond the limit": ({}, [CodeMessage(0, 3, code(3e38))]),
    "a code that it cannot compute": ({}, [CodeMessage(0, 3, code(7))]),
    "a gradient beyond the limit": (
        {},
        [
            CodeMessage(0, 3, code()),
            OutputGradient(0, 3, torch.full((4, OUTPUTS), 3e38)),
        ],
    ),
    "a gradient beyond the limit at the weights": (
        {"norm_limit": 100.0},
        [
            CodeMessage(0, 3, code()),
            OutputGradient(0, 3, torch.full((4, OUTPUTS), 99.0)),
        ],
    ),
    "a reply beyond its format": (
        {"formats": "code_gradient=fp16"},
        [
            CodeMessage(0, 3, code()),
            OutputGradient(0, 3, torch.full((4, OUTPUTS), 9e5).tril()),
        ],
    ),
}


@pytest.mark.parametrize("what", REFUSED)
def test_a_refused_step_leaves_the_evidence_of_detectors_as_it_was(what):
    options, messages = REFUSED[what]
    server, mod, answer = make_watched_server(**options)
    _, calm, calm_answer = make_watched_server(**options)
    *first, refused = messages
    for message in first:
        answer(message)
    with pytest.raises((LightSplitError, RuntimeError)):
        answer(refused)
    assert_same(mod.state(), calm.state())
    server.abandon_step()  # as when its client is cut off
    step(answer, 4)
    step(calm_answer, 4)
    assert_same(mod.state(), calm.state())


def assert_same(state, other):
    assert state.keys() == other.keys()
    assert all(torch.equal(state[name], other[name]) for name in state)


def test_after_a_refusal_training_goes_on_as_if_nothing_had_come():
    calm, disturbed = make_server(), make_server()
    for message in (CodeMessage(0, 1, code(7)), CodeMessage(0, 1, code(3e38))):
        with pytest.raises((LightSplitError, RuntimeError)):
            disturbed.answer(message)
    for server in (calm, disturbed):
        server.handle(CodeMessage(0, 1, code()))
        server.handle(OutputGradient(0, 1, torch.full((4, OUTPUTS), 0.5)))
    assert_untouched(disturbed, copied(calm))


def test_weights_that_are_not_finite_are_found_and_a_mask_is_no_weight():
    backbone = Touchy()
    backbone.register_buffer("mask", torch.tensor([0.0, float("-inf")]))
    server = make_server(backbone=backbone)
    server.side.check_finite()
    with torch.no_grad():
        backbone.linear.weight[0, 0] = float("nan")
    with pytest.raises(RunError, match="no longer finite"):
        server.side.check_finite()
