"""Hugging Face's Trainer: one line records a few of its steps."""

import torch
from transformers import LlamaConfig, LlamaForCausalLM, Trainer, TrainingArguments

from selftime.frameworks.huggingface import SelftimeCallback

tokens = torch.randint(0, 256, (64, 32))
samples = [{"input_ids": row, "labels": row} for row in tokens]
config = LlamaConfig(vocab_size=256, hidden_size=64, intermediate_size=128, num_hidden_layers=2)
model = LlamaForCausalLM(config)
arguments = TrainingArguments("trainer-output", per_device_train_batch_size=4, report_to="none")
Trainer(model, arguments, train_dataset=samples, callbacks=[SelftimeCallback()]).train()
