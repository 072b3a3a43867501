"""The GPT of examples/gpt at several lengths against PyTorch: the loss, the gradient of each parameter, and the file of weights.

    lengths.py PROGRAM

Normalized mean square errors of gradients are at most 1e-9. Exits with 77 where PyTorch is not installed.
"""
import math
import os
import subprocess
import sys
import tempfile

try:
    import numpy
    import torch
except ImportError as error:
    print(f"skipped: {error}")
    sys.exit(77)

import safetensors_file
from torch import nn
from torch.nn import functional

SAMPLES, LONGEST, WORDS, WIDTH, HEADS, LAYERS = 3, 64, 256, 64, 4, 4
LENGTHS = (64, 48, 32, 1, 64)
MOST = 1e-9


class Block(nn.Module):
    def __init__(self):
        super().__init__()
        self.norm1, self.norm2 = nn.LayerNorm(WIDTH), nn.LayerNorm(WIDTH)
        self.qkv, self.out = nn.Linear(WIDTH, 3 * WIDTH), nn.Linear(WIDTH, WIDTH)
        self.up, self.down = nn.Linear(WIDTH, 4 * WIDTH), nn.Linear(4 * WIDTH, WIDTH)

    def forward(self, x):
        n, length, _ = x.shape
        q, k, v = (part.reshape(n, length, HEADS, -1).transpose(1, 2) for part in self.qkv(self.norm1(x)).chunk(3, 2))
        scores = q @ k.transpose(-1, -2) / math.sqrt(WIDTH / HEADS)
        scores = scores.masked_fill(torch.ones(length, length).triu(1).bool(), -math.inf)
        x = x + self.out((scores.softmax(-1) @ v).transpose(1, 2).reshape(n, length, WIDTH))
        return x + self.down(functional.gelu(self.up(self.norm2(x))))


class Gpt(nn.Module):
    def __init__(self):
        super().__init__()
        self.words = nn.Parameter(0.2 * torch.randn(WORDS, WIDTH))
        self.places = nn.Parameter(0.2 * torch.randn(LONGEST, WIDTH))
        self.h = nn.ModuleList(Block() for _ in range(LAYERS))
        self.norm = nn.LayerNorm(WIDTH)

    def forward(self, tokens):
        x = self.words[tokens] + self.places[:tokens.shape[1]]
        for block in self.h:
            x = block(x)
        return self.norm(x) @ self.words.T


def read_output(lines):
    """Of each length: the loss, and the gradients by name."""
    found = []
    for line in lines:
        word, *values = line.split()
        if word.isdigit():
            found.append((int(word), float(values[0]), {}))
        else:
            found[-1][2][word] = numpy.array(values, dtype=numpy.float64)
    return found


def main():
    torch.manual_seed(3)
    torch.set_num_threads(1)
    model = Gpt()
    text = torch.randint(0, WORDS, (SAMPLES, LONGEST + 1))
    with tempfile.TemporaryDirectory(prefix="cltrain-parity-") as folder:
        weights, tokens, final = (os.path.join(folder, name) for name in ("weights", "tokens", "final"))
        first = {name: tensor.detach().numpy().copy() for name, tensor in model.state_dict().items()}
        safetensors_file.write(weights, first)
        text.numpy().astype(numpy.int32).tofile(tokens)
        output = subprocess.run([sys.argv[1], weights, tokens, final, *map(str, LENGTHS)], check=True, stdout=subprocess.PIPE, text=True).stdout
        last, _ = safetensors_file.read(final)
    assert set(last) == set(first), f"the file of weights has {sorted(set(last) ^ set(first))} too much or too little"
    assert all((last[name] == first[name]).all() for name in first), "a step with a rate of zero has changed weights"
    model.double()
    found = read_output(output.splitlines())
    assert [length for length, _, _ in found] == list(LENGTHS)
    for length, loss, gradients in found:
        model.zero_grad()
        wanted = functional.cross_entropy(model(text[:, :length]).flatten(0, 1), text[:, 1:length + 1].flatten())
        wanted.backward()
        errors = {}
        assert set(gradients) == set(first)
        for name, parameter in model.named_parameters():
            own = parameter.grad.numpy().ravel()
            errors[name] = ((gradients[name] - own) ** 2).sum() / (own ** 2).sum()
        worst = max(errors, key=errors.get)
        apart = abs(loss - wanted.item()) / wanted.item()
        print(f"length {length}: loss {loss:.8f}, {apart:.1e} from PyTorch's; gradients within {errors[worst]:.1e} ({worst}), normalized mean square")
        assert apart ** 2 < MOST and errors[worst] < MOST


main()
