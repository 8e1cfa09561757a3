"""White-box inversion of rows: the row whose code, by the true head, is the observed.

    x by Adam on ‖client(x) − z̃‖² / ‖z̃‖² + SMALL · mean square of x, from the means

``whitebox.py`` does the same for images, with a prior of smooth pictures. Rows have no
neighbours; what the task standardised lies around zero, and that is the whole prior.
"""

import copy
from typing import Any, ClassVar

import torch
from torch import Tensor, nn

from lightsplit.attacks.base import ATTACKS, Budget, Kind, Progress, at_least, silent
from lightsplit.attacks.capabilities import Reconstructs
from lightsplit.attacks.image_descent import code_error
from lightsplit.attacks.view import ServerView
from lightsplit.part_facts import PartFacts

STEPS: dict[Budget, int] = {"quick": 1_000, "short": 4_000, "full": 16_000}
RATE = 0.05
SMALL = 1e-4
DOES_NOT_FIT = 1e-2  # with a larger error the row found has another code


@ATTACKS.register("row-inversion")
class RowInversion(Reconstructs):
    """Inversion of the true head and encoder by gradient descent on the row.

    Attributes:
        steps: of Adam; by default the budget's.
        lr: the rate that Adam begins with.
    """

    name = "row-inversion"
    kind: ClassVar[Kind] = "oracle"
    runs_by_default = True
    truths = ("table",)
    needs = ("client", "image_shape")
    threat_model = "a server that holds the client's true head and encoder, no rows"
    cost = "1,000 passes of head and encoder (quick) or 16,000 (full)"
    facts = PartFacts(
        source="LightSplit",
        assumes="the true weights of the head and the encoder",
        status="ours",
    )

    def __init__(
        self,
        *,
        client: nn.Module,
        image_shape: tuple[int, ...],
        steps: int | None = None,
        lr: float = RATE,
        **options: Any,
    ) -> None:
        super().__init__(**options)
        at_least(self.name, 1, steps=steps)
        at_least(self.name, 0, lr=lr)
        self.client = client
        self.shape = image_shape
        self.steps = steps or STEPS[self.budget]
        self.lr = lr

    def reconstruct(self, view: ServerView, progress: Progress = silent) -> Tensor:
        """Return for every code the row that Adam reaches."""
        client = copy.deepcopy(self.client).eval().requires_grad_(False)
        codes = view.codes
        rows = codes.new_zeros(len(codes), *self.shape).requires_grad_()
        optimizer = torch.optim.Adam([rows], lr=self.lr)
        schedule = torch.optim.lr_scheduler.CosineAnnealingLR(optimizer, self.steps)
        for step in range(self.steps):
            small = SMALL * rows.square().mean(dim=1)
            # A sum, not a mean: each row has its own problem, whatever the batch.
            loss = (code_error(client(rows), codes) + small).sum()
            (rows.grad,) = torch.autograd.grad(loss, [rows])
            optimizer.step()
            schedule.step()
            progress(step + 1, self.steps)
        with torch.no_grad():
            self._judge(code_error(client(rows), codes))
        return rows.detach()

    def _judge(self, errors: Tensor) -> None:
        misfits = int((errors > DOES_NOT_FIT).sum())
        self.notes.append(
            f"relative squared error of the code {float(errors.mean()):.1e} on "
            f"average; {misfits} of {len(errors)} rows found have codes that differ "
            f"by more than {DOES_NOT_FIT:.0%} and say nothing about the code"
        )
