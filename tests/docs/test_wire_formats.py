"""The page's code runs as it is written."""

import torch

PAGE = "docs/wire-formats.md"


def test_the_wire_is_built_and_trains(blocks, capsys):
    (code,) = blocks(PAGE)
    names = {}
    exec(code, names)  # noqa: S102
    _, _, said = code.rpartition("# ")
    assert capsys.readouterr().out == said
    names["model"](torch.rand(4, 64)).sum().backward()
    assert names["model"].steps == 1
