"""What a part knows of the whole model that it was cut from."""

from collections.abc import Mapping, Sequence
from dataclasses import dataclass, field

from torch import Tensor

from lightsplit.errors import SplitError
from lightsplit.nesting import tensors_in
from lightsplit.splitting.arguments import Arguments, Blank, Signature, Template
from lightsplit.splitting.crossing import Crossing
from lightsplit.splitting.new_inputs import Novelty
from lightsplit.splitting.plans import Plan


@dataclass(frozen=True)
class Recipe:
    """What a part knows of the whole.

    Attributes:
        plan: of the cut.
        signature: of the model's forward pass.
        template: of the inputs.
        blanks: the states whose numbers the part lacks, with the parts that use them.
        passed_on: the modules whose results only stand-ins of this part read.
        accepted: how batches may differ from the example, and the mode.
    """

    plan: Plan
    signature: Signature
    template: Template
    blanks: Mapping[str, frozenset[int]]
    passed_on: frozenset[str] = frozenset()
    accepted: set[tuple[Novelty, bool]] = field(default_factory=set, compare=False)

    def __deepcopy__(self, memo: object) -> "Recipe":
        return self

    @property
    def output(self) -> Crossing:
        """What crosses the back cut."""
        if self.plan.output is None:
            raise SplitError("this model was split without a tail: give tail_from")
        return self.plan.output

    def companions(self, given: Sequence[Tensor]) -> dict[str, Tensor]:
        """Return the shared inputs by name; refuse another number of them."""
        share = self.plan.place.share
        if len(given) != len(share):
            raise SplitError(
                f"expected these companions: {', '.join(share) or 'none'}; "
                f"got {len(given)}"
            )
        return dict(zip(share, given, strict=True))

    def refuse_new_inputs(self, given: Arguments) -> None:
        """Refuse tensors that the example did not have: the server would lack them."""
        known = _with_tensors(self.signature, self.template.given)
        for name in _with_tensors(self.signature, given):
            if name not in known:
                raise SplitError(
                    f"the batch has the input {name!r}, which the example did not "
                    "have, so the server would run without it: split with an example "
                    "that has it"
                )

    def blank_inputs(
        self, like: Tensor, form: Blank, known: Mapping[str, Tensor]
    ) -> Arguments:
        """Return zeros in the form of the inputs, except where they are known."""

        def make(name: str, blank: Blank) -> Tensor:
            return known[name] if name in known else blank.zeros(like, form)

        return self.template.fill(make)


def _with_tensors(signature: Signature, given: Arguments) -> list[str]:
    named = signature.named(given).items()
    return [name for name, nest in named if list(tensors_in(nest))]
