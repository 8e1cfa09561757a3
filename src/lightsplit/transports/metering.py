"""Counts every byte that messages put on the wire."""

from collections import Counter

from lightsplit.protocol import STEP_KINDS, CodeMessage, Reply, Request, frame_bytes
from lightsplit.transports.middleware import Send

KINDS = (*STEP_KINDS, "labels", "evaluation", "framing", "hand_off", "setup")


class ByteMeter:
    """A mod that adds up the bytes of messages by kind.

    The payloads of the four messages of a training step are counted under their own
    names, and those of a forward pass outside training under ``evaluation``. Codes that
    are sent once, and the numbers that name them later, count as ``code``; the hidden
    parts and sums of parallel rounds count as ``hand_off``. The bytes
    that the serialiser adds are ``framing``, so the sum of all kinds is the length of
    the frames. Hand-offs and set-up do not pass through the mod: their sender calls
    ``add``.
    """

    def __init__(self) -> None:
        self.counts: Counter[str] = Counter()

    def __call__(self, request: Request, call_next: Send) -> Reply:
        """Count the request and its reply."""
        reply = call_next(request)
        self.count(request, reply)
        return reply

    def count(self, request: Request, reply: Reply) -> None:
        """Count an exchange that has taken place."""
        asked, replied = request.payload_bytes, reply.payload_bytes
        labels = request.label_bytes if isinstance(request, CodeMessage) else 0
        if not request.is_training:
            self.counts["evaluation"] += asked + replied
        else:
            self.counts[request.counted_as] += asked
            self.counts[reply.counted_as] += replied
        self.counts["labels"] += labels
        whole = frame_bytes(request) + frame_bytes(reply)
        self.counts["framing"] += whole - asked - replied - labels

    def add(self, kind: str, count: int) -> None:
        """Count bytes that were sent outside a step."""
        self.counts[kind] += count

    def restore(self, by_kind: dict[str, int]) -> None:
        """Continue from counts that ``by_kind`` returned before."""
        self.counts = Counter({kind: by_kind.get(kind, 0) for kind in KINDS})

    def by_kind(self) -> dict[str, int]:
        """Return the bytes of every kind, and their total."""
        counts = {kind: self.counts[kind] for kind in KINDS}
        return {**counts, "total": sum(counts.values())}
