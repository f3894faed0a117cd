"""Lightning: one line records a few of the trainer's steps."""

import torch
from lightning.pytorch import LightningModule, Trainer
from torch import nn
from torch.utils.data import DataLoader, TensorDataset

from selftime.frameworks.lightning import SelftimeCallback


class Regression(LightningModule):
    def __init__(self):
        super().__init__()
        self.net = nn.Sequential(nn.Linear(32, 64), nn.ReLU(), nn.Linear(64, 1))

    def training_step(self, batch):
        return self.net(batch[0]).pow(2).mean()

    def configure_optimizers(self):
        return torch.optim.AdamW(self.parameters())


loader = DataLoader(TensorDataset(torch.randn(400, 32)), batch_size=10)
callbacks = [SelftimeCallback()]
options = {"logger": False, "enable_checkpointing": False, "enable_progress_bar": False}
Trainer(max_epochs=1, accelerator="cpu", callbacks=callbacks, **options).fit(Regression(), loader)
