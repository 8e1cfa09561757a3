"""Cut a model by the dotted paths of its modules.

Every refusal says what was asked, why it cannot be, and which cuts can.
"""

import difflib

from torch import nn

from lightsplit.errors import SplitError
from lightsplit.splitting.assembly import assemble
from lightsplit.splitting.cuts import Argument, CutRefusedError
from lightsplit.splitting.graphs import UntraceableError
from lightsplit.splitting.parts import SplitModel
from lightsplit.splitting.search import Cutter, nearest

_MAX_LISTED = 12
_BY_HAND = "give the parts by hand with SplitModel.by_hand(head, backbone, tail)"


def split(
    model: nn.Module, *, head_until: str, tail_from: str | None = None
) -> SplitModel:
    """Cut ``model`` into parts that share its parameters and their names.

    Args:
        model: Any module that ``torch.fx`` can trace as deep as the cuts lie; modules
            that hold no cut are kept whole.
        head_until: The path of the module whose call ends the head.
        tail_from: The path of the module whose call starts the tail; without it the
            backbone goes on to the end.

    Raises:
        SplitError: The cut is not possible. The message names the nearest that are.

    Example:
        >>> model = nn.Sequential(nn.Linear(4, 3), nn.ReLU(), nn.Linear(3, 2))
        >>> parts = split(model, head_until="0", tail_from="2")
        >>> list(parts.tail.state_dict())
        ['2.weight', '2.bias']
    """
    cutter = Cutter(model)
    _refuse_unknown(cutter, "head_until", head_until, head=None)
    if tail_from is not None:
        _refuse_unknown(cutter, "tail_from", tail_from, head=head_until)
    try:
        plan = cutter.plan(head_until, tail_from)
    except CutRefusedError as error:
        hint = _nearest_hint(cutter, error.argument, head_until, tail_from)
        raise SplitError(f"{error}; {hint}") from None
    except UntraceableError as error:
        raise _explain_untraceable(cutter, error, head_until, tail_from) from error
    head, backbone, *tail = assemble(plan)
    return SplitModel(head, backbone, tail[0] if tail else None, whole=model)


def legal_cuts(model: nn.Module, *, head_until: str | None = None) -> list[str]:
    """Return the paths of modules at which ``model`` can be cut, in execution order.

    After each of them exactly one tensor crosses, so each can be ``head_until``. With
    ``head_until`` given, they are the paths that ``tail_from`` can be.
    """
    return _legal_cuts(Cutter(model), head_until)


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


def _nearest_hint(
    cutter: Cutter, argument: Argument, head_until: str, tail_from: str | None
) -> str:
    order = list(cutter.calls(argument))
    if argument == "tail_from" and tail_from is not None:
        legal, path = _legal_cuts(cutter, head_until), tail_from
    else:
        alone, path = _legal_cuts(cutter, None), head_until
        legal = [each for each in alone if cutter.allows(each, tail_from)] or alone
    names = nearest(order, legal, path)
    if not names:
        return f"there is no legal cut, {_BY_HAND}"
    return f"nearest legal cuts: {', '.join(map(repr, names))}"


def _explain_untraceable(
    cutter: Cutter, error: UntraceableError, head_until: str, tail_from: str | None
) -> SplitError:
    argument: Argument = "tail_from" if cutter.allows(head_until) else "head_until"
    asked = f"{argument}={(head_until if argument == 'head_until' else tail_from)!r}"
    hint = _nearest_hint(cutter, argument, head_until, tail_from)
    advice = hint if _BY_HAND in hint else f"{hint}, or {_BY_HAND}"
    return SplitError(f"cannot cut at {asked}: {error}; {advice}")
