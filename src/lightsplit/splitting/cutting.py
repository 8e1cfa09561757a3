"""Cutting a model by the dotted paths of its modules.

Every refusal names the requested cut, the reason, and the cuts that are possible.
"""

import difflib
import warnings
from collections.abc import Sequence
from typing import Any

from torch import nn

from lightsplit.errors import SplitError
from lightsplit.splitting import sequential
from lightsplit.splitting.assembly import assemble, give_class
from lightsplit.splitting.comparison import refuse_difference
from lightsplit.splitting.cuts import Argument, CutRefusedError, Place
from lightsplit.splitting.parts import SplitModel
from lightsplit.splitting.passing import passed_on
from lightsplit.splitting.plans import Plan
from lightsplit.splitting.recipes import Recipe
from lightsplit.splitting.running import Backbone, Head, Part, Tail
from lightsplit.splitting.search import Cutter, nearest

_MAX_LISTED = 12
_BY_HAND = "give the parts by hand with SplitModel.by_hand(head, backbone, tail)"


def split(
    model: nn.Module,
    *,
    head_until: str,
    tail_from: str | None = None,
    example: Any = None,
    share: Sequence[str] = (),
) -> SplitModel:
    """Cut ``model`` into parts that share its parameters and their names.

    Args:
        model: any module. Each part runs the model's own forward pass with the modules
            of the others replaced, so control flow and outputs of any kind are fine.
        head_until: the path of the module whose call ends the head.
        tail_from: the path of the module whose call starts the tail; without it the
            backbone runs to the end.
        example: a batch of inputs. Its shapes and types decide; the parts are compared
            with the model on its numbers. A dictionary of the model's parameters is
            passed by keywords. A plain ``nn.Sequential`` needs none.
        share: names of inputs that the server gets as they are, with every batch: masks
            and lengths that the backbone reads.

    Raises:
        SplitError: The cut is not possible: the message names the nearest legal cuts.
            Or the parts do not return on the example what the model returns.

    Example:
        >>> model = nn.Sequential(nn.Linear(4, 3), nn.ReLU(), nn.Linear(3, 2))
        >>> parts = split(model, head_until="0", tail_from="2")
        >>> list(parts.tail.state_dict())
        ['2.weight', '2.bias']
    """
    cutter = Cutter(model, example, tuple(share))
    _refuse_unknown(cutter, "head_until", head_until, head=None)
    if tail_from is not None:
        _refuse_unknown(cutter, "tail_from", tail_from, head=head_until)
    place = cutter.place(head_until, tail_from)
    try:
        place.check_nesting()
        parts = _cut(cutter, place)
    except CutRefusedError as error:
        hint = _nearest_hint(cutter, error.argument, place)
        raise SplitError(f"{error}; {hint}") from None
    if example is not None:
        refuse_difference(parts, example)
    return parts


def legal_cuts(
    model: nn.Module,
    *,
    head_until: str | None = None,
    example: Any = None,
    share: Sequence[str] = (),
) -> list[str]:
    """Return the paths of modules at which ``model`` can be cut, in execution order.

    Only tensors that the module returns cross after each of them, so each can be
    ``head_until``. If ``head_until`` is given, they are the possible values of
    ``tail_from``. Without an example, only the modules of a plain ``nn.Sequential`` are
    found.
    """
    return _legal_cuts(Cutter(model, example, tuple(share)), head_until)


def _cut(cutter: Cutter, place: Place) -> SplitModel:
    if cutter.is_chain(place):
        head, backbone, *tail = sequential.slices(cutter.model, place)
        return SplitModel(head, backbone, tail[0] if tail else None, cutter.model)
    plan = cutter.plan(place)
    _say_what_is_shared(cutter)
    return _build(cutter, plan)


def _say_what_is_shared(cutter: Cutter) -> None:
    """Warn of shared inputs that are the data: ids that are looked up, or images."""
    trace = cutter.traces[0]
    looked_up = {v for op in trace.ops if op.name == "embedding" for v in op.reads}
    forms = dict(zip(cutter.template.names, cutter.template.forms, strict=True))
    for name in cutter.share:
        form = forms[name]
        is_image = form.dtype.is_floating_point and len(form.shape) > 2
        if is_image or trace.inputs[name] in looked_up:
            warnings.warn(
                f"share names {name!r}, which is the data itself: the server gets it "
                "with every batch as it is, and the cut hides nothing of it",
                stacklevel=4,
            )


def _build(cutter: Cutter, plan: Plan) -> SplitModel:
    kinds: list[type[Part]] = [Head, Backbone, Tail]
    parts: list[Any] = []
    for part in plan.fates:
        passed = passed_on(cutter.traces, plan, part)
        root, blanks = assemble(cutter.model, plan, part, passed)
        give_class(root, kinds[part])
        recipe = Recipe(plan, cutter.signature, cutter.template, blanks, passed)
        vars(root)["recipe"] = recipe
        parts.append(root)
    head, backbone, *tail = parts
    return SplitModel(head, backbone, tail[0] if tail else None, whole=cutter.model)


def _legal_cuts(cutter: Cutter, head_until: str | None) -> list[str]:
    if head_until is None:
        return [path for path in cutter.calls("head_until") if cutter.allows(path)]
    return [
        path for path in cutter.calls("tail_from") if cutter.allows(head_until, path)
    ]


def _refuse_unknown(
    cutter: Cutter, argument: Argument, path: str, head: str | None
) -> None:
    if path in cutter.paths:
        return
    close = difflib.get_close_matches(path, cutter.paths, n=1)
    question = f", did you mean {close[0]!r}?" if close else ""
    head = head if head is not None and cutter.allows(head) else None
    legal = _legal_cuts(cutter, head)
    raise SplitError(
        f"cannot cut at {argument}={path!r}: the model has no module of that name"
        f"{question}; {_listed(legal)}"
    )


def _listed(legal: list[str]) -> str:
    if not legal:
        return f"no module can be cut at, {_BY_HAND}"
    names = ", ".join(map(repr, legal[:_MAX_LISTED]))
    rest = len(legal) - _MAX_LISTED
    return f"legal cuts: {names}" + (f" and {rest} more" if rest > 0 else "")


def _nearest_hint(cutter: Cutter, argument: Argument, place: Place) -> str:
    order = cutter.calls(argument)
    if argument == "tail_from" and place.tail_from is not None:
        legal, path = _legal_cuts(cutter, place.head_until), place.tail_from
    else:
        alone, path = _legal_cuts(cutter, None), place.head_until
        legal = [each for each in alone if cutter.allows(each, place.tail_from)]
        legal = legal or alone
    names = nearest(order, legal, path)
    if not names:
        return f"there is no legal cut, {_BY_HAND}"
    return f"nearest legal cuts: {', '.join(map(repr, names))}"
