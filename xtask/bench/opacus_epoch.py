"""One epoch of DP-SGD with Opacus on batches of 8192. Arguments: rows, columns, repeats."""
import sys
import warnings

import torch
from clock import repeat
from opacus import PrivacyEngine

warnings.simplefilter("ignore")
rows, columns, repeats = map(int, sys.argv[1:4])
table, label = torch.rand(rows, columns) * 2 - 1, (torch.rand(rows) < 0.5).float()
model = torch.nn.Linear(columns, 1)
loader = torch.utils.data.DataLoader(torch.utils.data.TensorDataset(table, label), batch_size=8192)
model, optimiser, loader = PrivacyEngine().make_private(
    module=model,
    optimizer=torch.optim.SGD(model.parameters(), lr=0.1),
    data_loader=loader,
    noise_multiplier=1.0,
    max_grad_norm=1.0,
)


def epoch():
    for features, of_batch in loader:
        optimiser.zero_grad()
        torch.nn.functional.binary_cross_entropy_with_logits(model(features)[:, 0], of_batch).backward()
        optimiser.step()


repeat("Opacus, an epoch in batches of 8192", epoch, repeats)
