import logging
import warnings

import lightning
import torch
from torch import nn
from torch.utils.data import DataLoader, TensorDataset

warnings.filterwarnings("ignore")
logging.getLogger("lightning.pytorch").setLevel(logging.ERROR)


class Regressor(lightning.LightningModule):
    def __init__(self):
        super().__init__()
        self.net = nn.Sequential(
            nn.Linear(40, 256), nn.ReLU(), nn.Linear(256, 256), nn.ReLU(), nn.Linear(256, 1)
        )

    def training_step(self, batch, number):
        x, y = batch
        loss = nn.functional.mse_loss(self.net(x), y)
        self.log("loss", loss)
        return loss

    def validation_step(self, batch, number):
        x, y = batch
        self.log("error", (self.net(x) - y).abs().mean())

    def configure_optimizers(self):
        return torch.optim.Adam(self.parameters(), lr=1e-3)


lightning.seed_everything(0, verbose=False)
x = torch.randn(6400, 40)
y = x[:, :4].prod(1, keepdim=True)
train = DataLoader(TensorDataset(x[:5120], y[:5120]), batch_size=64, shuffle=True)
held_out = DataLoader(TensorDataset(x[5120:], y[5120:]), batch_size=64)
trainer = lightning.Trainer(
    max_epochs=2,
    accelerator="cpu",
    logger=False,
    enable_checkpointing=False,
    enable_progress_bar=False,
)
trainer.fit(Regressor(), train, held_out)
print(trainer.callback_metrics)
