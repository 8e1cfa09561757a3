"""An objective that keeps codes small."""

from torch import Tensor

from lightsplit.objectives import ClientView, Objective


class SmallCodes(Objective):
    """The mean power of a code's values.

    Args:
        power: of the values.
    """

    name = "small-codes"

    def __init__(self, *, power: float = 2.0) -> None:
        super().__init__()
        self.power = power

    def forward(self, view: ClientView) -> Tensor:
        """Return the mean."""
        return view.code.values.abs().pow(self.power).mean()
