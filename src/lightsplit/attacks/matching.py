"""Where an inversion compares: at the activation, or at the code itself.

    published   head(x)          against the code as R lifts it
    adaptive    encoder(head(x)) against the code: the codec is inside

The published form cannot fit a lifted projection, whose values no head can produce.
"""

from collections.abc import Callable

from torch import Tensor

from lightsplit.attacks.knowledge import ClientCopy
from lightsplit.attacks.lifts import lifted
from lightsplit.codecs import Codec

PUBLISHED, ADAPTIVE = FORMS = ("published", "adaptive")


def wanted(codes: Tensor, codec: Codec, form: str) -> Tensor:
    """Return the result that the right image must have in this form."""
    return codes if form == ADAPTIVE else lifted(codes, codec).detach()


def giving(client: ClientCopy, form: str) -> Callable[[Tensor], Tensor]:
    """Return a function from images to their results in this form."""
    return client if form == ADAPTIVE else client.activations
