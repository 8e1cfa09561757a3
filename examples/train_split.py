"""The loop of train_torch.py, split: a server computes the middle of the model."""

from functools import partial

import torch
from torch import nn
from torch.utils.data import DataLoader, TensorDataset

from lightsplit import ClientModel, ClientSide, Server, ServerSide, make_codec, split
from lightsplit.data import DATASETS


def loaders():
    digits = DATASETS.create("digits")
    train, test = (
        TensorDataset(samples.images / 255, samples.labels)
        for samples in (digits.train, digits.test)
    )
    return DataLoader(train, batch_size=32, shuffle=True), DataLoader(test, 360)


def network():
    return nn.Sequential(
        nn.Conv2d(1, 16, 3, padding=1),
        nn.ReLU(),
        nn.Conv2d(16, 32, 3, padding=1),
        nn.ReLU(),
        nn.MaxPool2d(2),
        nn.Flatten(),
        nn.Linear(512, 64),
        nn.ReLU(),
        nn.Linear(64, 10),
    )


def main():
    torch.manual_seed(0)
    train_loader, test_loader = loaders()
    adam = partial(torch.optim.Adam, lr=1e-3)
    parts = split(network(), head_until="1", tail_from="8")
    codec = make_codec("lightsplit-f", shape=(16, 8, 8), ratio=8)
    server = Server(ServerSide(parts.backbone, codec, adam))
    model = ClientModel(ClientSide(parts.head, parts.tail, codec), server.handle)
    optimizer = adam(model.parameters())
    criterion = nn.CrossEntropyLoss()

    for epoch in range(5):
        model.train()
        for images, labels in train_loader:
            loss = criterion(model(images), labels)
            optimizer.zero_grad()
            loss.backward()
            optimizer.step()

        model.eval()
        with torch.no_grad():
            correct = sum(
                int((model(images).argmax(1) == labels).sum())
                for images, labels in test_loader
            )
        print(f"epoch {epoch + 1}: accuracy {correct / 360:.2%}")


if __name__ == "__main__":
    main()
