"""A small GPT-2 learns to write LightSplit's README; a server computes its middle.

python examples/gpt2_lm.py      (needs transformers)

Embedding and output layer share one weight. Both are the owner's, so it stays there.
"""

from functools import partial
from pathlib import Path

import torch
from transformers import GPT2Config, GPT2LMHeadModel

import lightsplit

torch.manual_seed(0)
text = (Path(__file__).parents[1] / "README.md").read_bytes()
tokens = torch.tensor(list(text))
config = GPT2Config(vocab_size=256, n_positions=64, n_embd=64, n_layer=4, n_head=4)
config.use_cache = False  # it is for writing, and would be the server's
network = GPT2LMHeadModel(config)
cut = {"head_until": "transformer.h.0", "tail_from": "transformer.ln_f"}
cut |= {"example": {"input_ids": torch.zeros(16, 64).long()}, "codec": "lightsplit-f"}
cut |= {"codec_options": {"ratio": 2}, "wire": "bf16"}
adam = partial(torch.optim.AdamW, lr=1e-3)
server = lightsplit.host(network, optimizer=adam, **cut)
model = lightsplit.connect(network, server=server, **cut)
optimizer = adam(model.parameters())
for step in range(200):
    starts = torch.randint(len(tokens) - 64, (16,)).tolist()
    batch = torch.stack([tokens[start : start + 64] for start in starts])
    loss = model(input_ids=batch, labels=batch).loss
    optimizer.zero_grad()
    loss.backward()
    optimizer.step()
    if step % 40 == 39:
        print(f"step {step + 1}: loss {loss.item():.3f} nats a byte")
