"""Small victims, trained or in training, with the view of their server."""

from dataclasses import dataclass
from functools import cache

import pytest
import torch
from torch import nn
from torch.nn.functional import cross_entropy

from lightsplit.attacks import (
    ATTACKS,
    ClientCopy,
    Exchange,
    Hints,
    Knowledge,
    LabelledImages,
    Pairs,
    ServerView,
    equip,
    readable,
)
from lightsplit.audits.setup import fresh_parts, server_setup
from lightsplit.codecs import CODECS, Code
from lightsplit.data import DATASETS
from lightsplit.experiments import build, from_settings
from lightsplit.protocol import (
    CodeGradient,
    CodeMessage,
    Contract,
    OutputGradient,
    OutputMessage,
    Wire,
)

VICTIMS = 100
IMAGE_SHAPE = (1, 8, 8)
CLASSES = 10


@dataclass
class Scene:
    """A view, what attackers may know, and the truth that only a test has."""

    view: ServerView
    knowledge: Knowledge
    truth: torch.Tensor
    labels: torch.Tensor

    def error(self, images):
        return float((images - self.truth).square().mean())


class TrueClient(ClientCopy):
    """Images to codes as the server reads them."""

    def __init__(self, head, codec):
        super().__init__()
        self.head = head
        self.encoder = codec.encoder
        self.codec = codec

    def forward(self, images):
        return readable(self.codec, self.encoder(self.activations(images)))

    def activations(self, images):
        return self.head(images)


@cache
def images():
    """Return all images of the digits' training and test set, and their labels."""
    dataset = DATASETS.create("digits")
    parts = [dataset.train, dataset.test]
    pixels = torch.cat([part.images for part in parts]).float() / 255
    return pixels, torch.cat([part.labels for part in parts])


def shallow_head():
    torch.manual_seed(5)
    return nn.Sequential(nn.Conv2d(1, 6, 3, padding=1), nn.BatchNorm2d(6), nn.ReLU())


def make_scene(codec="raw", *, head=None, ratio=1, noise=False, **options):
    """Return a victim whose codes are true, or noise that tells nothing."""
    head = (head or shallow_head()).eval()
    pixels, labels = images()
    shape = tuple(head(pixels[:1]).shape[1:])
    sized = {} if ratio is None else {"ratio": ratio}  # a code of bits has none
    codec = CODECS.create(codec, shape=shape, **sized, **options)
    client = TrueClient(head, codec).eval()
    with torch.no_grad():
        activations, codes = head(pixels), client(pixels)
        values = codec.encoder(activations[:VICTIMS])
    if noise:
        codes = torch.randn_like(codes)
        values = Code(torch.randn_like(values.values), values.side)
    sent = CodeMessage(0, 0, codec.pack(values), is_training=False)
    reply = OutputMessage(0, 0, Code(torch.zeros(VICTIMS, 4)))
    knowledge = Knowledge(
        image_shape=IMAGE_SHAPE,
        classes=CLASSES,
        auxiliary=LabelledImages(pixels[VICTIMS:], labels[VICTIMS:]),
        pairs=Pairs(codes[VICTIMS:], activations[VICTIMS:], pixels[VICTIMS:]),
        client=client,
        labels=labels[:VICTIMS],
    )
    view = ServerView(contract_for(codec), Wire(codec), (Exchange(sent, reply),))
    return Scene(view, knowledge, pixels[:VICTIMS], labels[:VICTIMS])


def contract_for(codec, **terms):
    known = {
        "model": "toy",
        "cut": "front",
        "topology": "u",
        "heads": "shared",
        "activation_shape": codec.shape,
        "output_shape": (16,),
        "codec": codec.name,
        "codec_options": {},
        "code_size": codec.code_size,
        "fingerprint": codec.fingerprint,
        "seed": 0,
        "clients": 1,
        "batch_size": 32,
        "turn_steps": 0,
    }
    return Contract(**(known | terms))


def labelled(truth):
    """Return the digits, or the given labels with images of noise that tell nothing."""
    if truth is None:
        return images()
    torch.manual_seed(11)
    return torch.rand(len(truth), 64), truth


def make_training(  # noqa: PLR0915
    *, topology="u", steps=12, protection=None, truth=None, drawn=None, lr=0.1
):
    """Return the view of training steps with real gradients, their labels and hints.

    With ``truth`` these are the labels, and the images are noise that tells nothing;
    ``drawn`` are the labels that the client trains on.
    """
    pixels, labels = labelled(truth)
    learnt = labels if drawn is None else drawn
    torch.manual_seed(3)
    head, tail = nn.Sequential(nn.Flatten(), nn.Linear(64, 32)), nn.Linear(16, CLASSES)
    backbone = nn.Sequential(nn.ReLU(), nn.Linear(32, 16))
    codec = CODECS.create("raw", shape=(32,), ratio=1)
    exchanges, client = [], nn.ModuleList([head, tail, backbone])
    optimizer = torch.optim.SGD(client.parameters(), lr=lr)
    for step in range(steps):
        rows = slice(32 * step, 32 * step + 32)
        code = head(pixels[rows])
        output = backbone(code)
        loss = cross_entropy(tail(output), learnt[rows])
        gradients = torch.autograd.grad(loss, [code, output], retain_graph=True)
        if protection is not None:
            gradients = (gradients[0], protection.protect(gradients[1], learnt[rows]))
        optimizer.zero_grad()
        loss.backward()
        optimizer.step()
        values = Code(code.detach())
        answer = CodeGradient(0, step, gradients[0])
        if topology == "vanilla":
            sent = CodeMessage(0, step, values, learnt[rows])
            exchanges.append(Exchange(sent, answer))
            continue
        reply = OutputMessage(0, step, Code(output.detach()))
        exchanges.append(Exchange(CodeMessage(0, step, values), reply))
        exchanges.append(Exchange(OutputGradient(0, step, gradients[1]), answer))
    contract = contract_for(codec, topology=topology)
    view = ServerView(contract, Wire(codec), tuple(exchanges))
    truth = labels[: 32 * steps]
    first = torch.tensor([int((truth == c).nonzero()[0]) for c in torch.unique(truth)])
    return view, truth, Hints(first, torch.unique(truth))


@pytest.fixture
def scene():
    return make_scene


@pytest.fixture
def training():
    return make_training


TRIVIAL = ("mean-image", "class-mean", "all-black", "nearest-image")


@pytest.fixture
def trivial_error():
    """Return the lowest error of the trivial attackers on a scene."""

    def lowest(made, names=TRIVIAL):
        attacks = [equip(ATTACKS.get(name), made.knowledge) for name in names]
        return min(made.error(attack.reconstruct(made.view)) for attack in attacks)

    return lowest


TARGETS = 60


@dataclass
class InTraining:
    """A run whose every exchange an attack can see, and the truth about its targets."""

    job: object
    knowledge: Knowledge
    noise: bool
    targets: LabelledImages

    def prepare(self, attack, **options):
        return equip(ATTACKS.get(attack), self.knowledge, **options)

    def train(self, steps, *attacks):
        """Take so many steps under the eyes of the attacks."""
        actor, server = self.job.trainer.clients[0], self.job.trainer.server
        handle = actor.send

        def send(request):
            reply = handle(request)
            shown = self._shown(request)
            for attack in attacks:
                attack.observe(Exchange(shown, reply), server.side.modules.state_dict())
            return reply

        actor.send = send
        for _ in range(steps):
            actor.run_turn(self.job.trainer.batches[0], 1)
        actor.send = handle

    def sides(self):
        return self.job.trainer.clients[0].side, self.job.trainer.server.side

    @property
    def view(self):
        """Return what the server sees when the targets are predicted."""
        side = self.job.trainer.clients[0].side
        side.set_training(False)
        with torch.no_grad():
            code = side.codec.pack(side.encode(self.targets.images))
        request = self._shown(CodeMessage(0, 0, code, is_training=False))
        reply = OutputMessage(0, 0, Code(torch.zeros(TARGETS, 1)))
        setup = self.knowledge.setup
        wire = Wire(setup.codec(), formats=setup.formats)
        return ServerView(self.job.contract, wire, (Exchange(request, reply),))

    def error(self, images):
        return float((images - self.targets.images).square().mean())

    def _shown(self, request):
        """Return the request, or one that tells nothing about the victim's images."""
        if not self.noise or not isinstance(request, CodeMessage):
            return request
        values = torch.randn_like(request.code.values)
        code = Code(values, request.code.side)
        labels, is_training = request.labels, request.is_training
        return CodeMessage(0, request.step, code, labels, is_training=is_training)


@pytest.fixture
def in_training():
    """Return what starts a run on digits with one client."""

    def begin(*, noise=False, **settings):
        defaults = {"cut": "l1", "clients": 1, "codec": "raw", "batch_size": 32}
        job = build(from_settings({**defaults, **settings}))
        train, test = job.dataset.train, job.dataset.test
        rows = job.held[0][:TARGETS]
        targets = LabelledImages(*train.batch(rows))
        is_vanilla = job.experiment.split.topology == "vanilla"
        knowledge = Knowledge(
            image_shape=train.shape,
            classes=job.dataset.classes,
            auxiliary=LabelledImages(*test.batch(range(len(test)))),
            architecture=lambda: fresh_parts(job.experiment, 1).head,
            labels=targets.labels,
            sent_labels=targets.labels if is_vanilla else torch.empty(0).long(),
            setup=server_setup(job.experiment, job.contract, 1),
        )
        return InTraining(job, knowledge, noise, targets)

    return begin


@pytest.fixture(scope="session")
def attack_contract():
    """Return what makes a contract for a codec."""
    return contract_for
