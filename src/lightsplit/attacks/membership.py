"""Was this sample trained on? From codes and outputs that a server saw.

    membership-clusters  a member lies nearer to the centre of a cluster than others: a
                         network is surer of what it has learnt. No help needed. In the
                         vanilla topology the server sees how sure it is: the largest
                         probability
    membership-known     for half of the crowd it is known, as a colluding client knows
                         it for its own samples; a classifier reads the rest. It reads
                         the samples themselves too, which no network has touched:
                         whatever it finds there is how the two sets differ, and no
                         memory
    membership-match     the attacker has the sample and the head: was its code among
                         those of training?

``fact_scores.py`` has the scores and ``crowd.py`` the crowd. The first two attacks ask
what a network remembers. The last asks what a transcript proves: in split learning the
codes of all training samples have passed the server, so a suspected sample can be
looked up.
"""

from collections.abc import Sequence
from typing import Any, ClassVar

import torch

from lightsplit.attacks.base import ATTACKS, Budget, Kind, at_least
from lightsplit.attacks.capabilities import InfersMembership, Suspicion
from lightsplit.attacks.crowd import CODE, OUTPUT, SAMPLES, Crowd
from lightsplit.attacks.decoder_stems import Standardise
from lightsplit.attacks.knowledge import ClientCopy
from lightsplit.attacks.separator import Separator
from lightsplit.attacks.view import ServerView
from lightsplit.errors import AuditError
from lightsplit.extras import require
from lightsplit.part_facts import PartFacts
from lightsplit.truths import KINDS

RESTARTS: dict[Budget, int] = {"quick": 4, "short": 10, "full": 20}
CHUNK = 256


class OfACrowd(InfersMembership):
    """An attack on the membership of a crowd."""

    kind: ClassVar[Kind] = "facts"
    truths = KINDS

    def __init__(self, *, crowd: Crowd, **options: Any) -> None:
        super().__init__(**options)
        self.crowd = crowd

    def sources(self, view: ServerView) -> Sequence[str]:
        """Return code and output of a prediction."""
        del view
        return self.crowd.sources


@ATTACKS.register("membership-clusters")
class MembershipClusters(OfACrowd):
    """How near a sample lies to the centre of its cluster.

    Attributes:
        restarts: of k-means; by default the budget decides.
    """

    name = "membership-clusters"
    needs = ("crowd", "classes")
    threat_model = "a server that knows how many classes there are, and nothing else"
    cost = "k-means, 4 restarts (quick) or 20 (full); seconds"
    facts = PartFacts(
        source="simple form of Yeom et al., CSF 2018, without labels",
        assumes="that a network is surer of what it was trained on",
        status="adapted",
    )

    def __init__(
        self, *, classes: int, restarts: int | None = None, **options: Any
    ) -> None:
        super().__init__(**options)
        at_least(self.name, 1, restarts=restarts)
        self.classes = classes
        self.restarts = restarts or RESTARTS[self.budget]

    def suspect(self, view: ServerView, source: str) -> Suspicion:
        """Return how near samples are to a centre, or how sure the server's tail is."""
        rows = self.crowd.rows(source)
        if source == OUTPUT and view.contract.topology == "vanilla":
            return Suspicion(rows.softmax(dim=1).amax(dim=1))
        cluster = require("sklearn.cluster", extra="audit")
        rows = Standardise(rows)(rows)
        if len(rows) < self.classes:
            raise AuditError(
                f"{self.name} needs at least {self.classes} samples, got {len(rows)}"
            )
        found = cluster.KMeans(
            self.classes, n_init=self.restarts, random_state=self.seed
        ).fit(rows.numpy())
        centres = torch.from_numpy(found.cluster_centers_).float()
        return Suspicion(-torch.cdist(rows, centres).amin(dim=1))


@ATTACKS.register("membership-known")
class MembershipKnown(OfACrowd):
    """A classifier that was told which of half the crowd are members."""

    name = "membership-known"
    needs = ("crowd",)
    threat_model = "a server that knows which of half the samples are members"
    cost = "four logistic regressions; seconds"
    facts = PartFacts(
        source="LightSplit",
        assumes="a client that tells which samples it trained on",
        status="ours",
    )

    def sources(self, view: ServerView) -> Sequence[str]:
        """Return code and output, and the samples as the floor of both."""
        return (*super().sources(view), SAMPLES)

    def suspect(self, view: ServerView, source: str) -> Suspicion:
        """Return the classifier's belief about the other half."""
        del view
        rows, crowd = self.crowd.rows(source), self.crowd
        told = crowd.known_members.long()
        separator = Separator(rows[crowd.known_rows], told, seed=self.seed)
        unknown = crowd.unknown
        return Suspicion(separator.scores(rows[unknown]), rows=unknown)


@ATTACKS.register("membership-match")
class MembershipMatch(OfACrowd):
    """Whether the code of a suspected sample was among those of training."""

    name = "membership-match"
    needs = ("crowd", "client")
    threat_model = "a server that holds the client's head and suspects certain samples"
    cost = "a pass of head and encoder for each suspect; none to speak of"
    facts = PartFacts(
        source="LightSplit",
        assumes="the head, and the suspected samples themselves",
        status="ours",
    )

    def __init__(self, *, client: ClientCopy, **options: Any) -> None:
        super().__init__(**options)
        self.client = client

    def sources(self, view: ServerView) -> Sequence[str]:
        """Return the codes of training steps, if any were recorded."""
        return [kind for kind in view.recorded_kinds if kind == CODE]

    def suspect(self, view: ServerView, source: str) -> Suspicion:
        """Return how near the closest recorded code is to the sample's own."""
        seen = view.training_messages(source).flatten(1).float()
        with torch.no_grad():
            own = torch.cat(
                [self.client(some) for some in torch.split(self.crowd.samples, CHUNK)]
            )
        distances = [
            torch.cdist(some, seen).amin(dim=1)
            for some in torch.split(own.flatten(1).float(), CHUNK)
        ]
        return Suspicion(-torch.cat(distances).cpu())
