"""Train a tiny random language model with the Trainer of transformers."""

import torch
from torch.utils.data import Dataset
from transformers import GPT2Config, GPT2LMHeadModel, Trainer, TrainingArguments


class Numbers(Dataset):
    def __init__(self, count):
        self.rows = (torch.randint(0, 50, (count, 1)) + torch.arange(32)) % 64

    def __len__(self):
        return len(self.rows)

    def __getitem__(self, index):
        return {"input_ids": self.rows[index], "labels": self.rows[index]}


torch.manual_seed(0)
config = GPT2Config(vocab_size=64, n_positions=32, n_embd=64, n_layer=2, n_head=4)
model = GPT2LMHeadModel(config)
arguments = TrainingArguments(
    output_dir="trained",
    max_steps=80,
    per_device_train_batch_size=8,
    logging_steps=40,
    save_strategy="no",
    report_to=[],
    use_cpu=True,
    disable_tqdm=True,
)
trainer = Trainer(model=model, args=arguments, train_dataset=Numbers(1000))
trainer.train()
trainer.save_model()
