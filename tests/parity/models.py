"""The models of the comparison, with the library's parameter names."""
import math

import torch
from torch import nn
from torch.nn import functional


class Mlp(nn.Module):
    def __init__(self, features, hidden, classes):
        super().__init__()
        sizes = [features, *hidden, classes]
        self.layers = len(sizes) - 1
        for i in range(self.layers):
            setattr(self, f"fc{i + 1}", nn.Linear(sizes[i], sizes[i + 1]))

    def forward(self, x):
        x = x.flatten(1)
        for i in range(self.layers):
            x = getattr(self, f"fc{i + 1}")(x)
            if i + 1 < self.layers:
                x = functional.relu(x)
        return x


class ConvNet(nn.Module):
    def __init__(self, shape, classes):
        super().__init__()
        channels, height, width = shape
        self.conv1 = nn.Conv2d(channels, 32, 3, padding=1)
        self.conv2 = nn.Conv2d(32, 64, 3, padding=1)
        self.fc1 = nn.Linear(64 * (height // 4) * (width // 4), 128)
        self.fc2 = nn.Linear(128, classes)

    def forward(self, x):
        x = functional.max_pool2d(functional.relu(self.conv1(x)), 2)
        x = functional.max_pool2d(functional.relu(self.conv2(x)), 2)
        return self.fc2(functional.relu(self.fc1(x.flatten(1))))


class BasicBlock(nn.Module):
    def __init__(self, inputs, channels, stride):
        super().__init__()
        self.conv1 = nn.Conv2d(inputs, channels, 3, stride, 1, bias=False)
        self.bn1 = nn.BatchNorm2d(channels)
        self.conv2 = nn.Conv2d(channels, channels, 3, 1, 1, bias=False)
        self.bn2 = nn.BatchNorm2d(channels)
        self.downsample = None
        if stride != 1 or inputs != channels:
            self.downsample = nn.Sequential(nn.Conv2d(inputs, channels, 1, stride, bias=False),
                                            nn.BatchNorm2d(channels))

    def forward(self, x):
        y = self.bn2(self.conv2(functional.relu(self.bn1(self.conv1(x)))))
        return functional.relu(y + (self.downsample(x) if self.downsample else x))


class ResNet18(nn.Module):
    """torchvision's names; the form for 32x32 images: stem 3x3, no first pool."""

    def __init__(self, channels, classes):
        super().__init__()
        self.conv1 = nn.Conv2d(channels, 64, 3, 1, 1, bias=False)
        self.bn1 = nn.BatchNorm2d(64)
        self.layer1 = nn.Sequential(BasicBlock(64, 64, 1), BasicBlock(64, 64, 1))
        self.layer2 = nn.Sequential(BasicBlock(64, 128, 2), BasicBlock(128, 128, 1))
        self.layer3 = nn.Sequential(BasicBlock(128, 256, 2), BasicBlock(256, 256, 1))
        self.layer4 = nn.Sequential(BasicBlock(256, 512, 2), BasicBlock(512, 512, 1))
        self.fc = nn.Linear(512, classes)

    def forward(self, x):
        x = functional.relu(self.bn1(self.conv1(x)))
        x = self.layer4(self.layer3(self.layer2(self.layer1(x))))
        return self.fc(x.mean((2, 3)))


class Transformer(nn.Module):
    """As transformer.c; the sizes are those of transformer.h."""
    tokens, width, heads, hidden = 40, 32, 4, 96

    def __init__(self, length, classes):
        super().__init__()
        self.token = nn.Embedding(self.tokens, self.width)
        self.position = nn.Parameter(0.02 * torch.randn(length, self.width))
        self.norm1 = nn.LayerNorm(self.width)
        self.qkv = nn.Linear(self.width, 3 * self.width)
        self.out = nn.Linear(self.width, self.width)
        self.norm2 = nn.LayerNorm(self.width)
        self.up = nn.Linear(self.width, self.hidden)
        self.down = nn.Linear(self.hidden, self.width)
        self.norm3 = nn.LayerNorm(self.width)
        self.head = nn.Linear(self.width, classes)

    def attention(self, x):
        n, length, width = x.shape
        q, k, v = (part.reshape(n, length, self.heads, -1).permute(0, 2, 1, 3)
                   for part in self.qkv(x).chunk(3, 2))
        scores = q @ k.transpose(-1, -2) / math.sqrt(width / self.heads)
        return self.out((scores.softmax(-1) @ v).transpose(1, 2).reshape(n, length, width))

    def forward(self, x):
        h = self.token(x.long()) + self.position
        h = h + self.attention(self.norm1(h))
        h = h + self.down(functional.gelu(self.up(self.norm2(h))))
        return self.head(self.norm3(h).mean(1))


class Conv1D(nn.Module):
    """A linear layer whose weight lies [in, out]."""

    def __init__(self, inputs, outputs):
        super().__init__()
        self.weight = nn.Parameter(0.02 * torch.randn(inputs, outputs))
        self.bias = nn.Parameter(torch.zeros(outputs))

    def forward(self, x):
        return x @ self.weight + self.bias


class Gpt2Attention(nn.Module):
    def __init__(self, width, heads):
        super().__init__()
        self.heads = heads
        self.c_attn = Conv1D(width, 3 * width)
        self.c_proj = Conv1D(width, width)

    def forward(self, x):
        n, length, width = x.shape
        q, k, v = (part.reshape(n, length, self.heads, -1).transpose(1, 2) for part in self.c_attn(x).chunk(3, 2))
        scores = q @ k.transpose(-1, -2) / math.sqrt(width / self.heads)
        scores = scores.masked_fill(torch.ones(length, length).triu(1).bool(), -math.inf)
        return self.c_proj((scores.softmax(-1) @ v).transpose(1, 2).reshape(n, length, width))


class Gpt2Mlp(nn.Module):
    def __init__(self, width):
        super().__init__()
        self.c_fc = Conv1D(width, 4 * width)
        self.c_proj = Conv1D(4 * width, width)

    def forward(self, x):
        return self.c_proj(functional.gelu(self.c_fc(x), approximate="tanh"))


class Gpt2Block(nn.Module):
    def __init__(self, width, heads):
        super().__init__()
        self.ln_1 = nn.LayerNorm(width)
        self.attn = Gpt2Attention(width, heads)
        self.ln_2 = nn.LayerNorm(width)
        self.mlp = Gpt2Mlp(width)

    def forward(self, x):
        x = x + self.attn(self.ln_1(x))
        return x + self.mlp(self.ln_2(x))


class Gpt2(nn.Module):
    """The names of transformers' GPT2LMHeadModel. x holds T + 1 tokens: all but the last are read, all but the first to be predicted."""

    def __init__(self, layers, heads, width, length, vocabulary):
        super().__init__()
        self.transformer = nn.ModuleDict({
            "wte": nn.Embedding(vocabulary, width), "wpe": nn.Embedding(length, width),
            "h": nn.ModuleList(Gpt2Block(width, heads) for _ in range(layers)), "ln_f": nn.LayerNorm(width)})
        for part in "wte", "wpe":
            nn.init.normal_(self.transformer[part].weight, std=0.1)

    def forward(self, x):
        t = self.transformer
        tokens = x[:, :-1].long()
        h = t["wte"](tokens) + t["wpe"].weight[:tokens.shape[1]]
        for block in t["h"]:
            h = block(h)
        return t["ln_f"](h) @ t["wte"].weight.T


class RmsNorm(nn.Module):
    def __init__(self, width):
        super().__init__()
        self.weight = nn.Parameter(torch.ones(width))

    def forward(self, x):
        return x * torch.rsqrt(x.pow(2).mean(-1, keepdim=True) + 1e-5) * self.weight


class LlamaAttention(nn.Module):
    def __init__(self, width, heads):
        super().__init__()
        self.heads, self.key_heads = heads, heads // 8 if heads % 8 == 0 else heads
        keys = width // heads * self.key_heads
        self.q_proj, self.o_proj = nn.Linear(width, width, bias=False), nn.Linear(width, width, bias=False)
        self.k_proj, self.v_proj = nn.Linear(width, keys, bias=False), nn.Linear(width, keys, bias=False)

    @staticmethod
    def turn(x):
        half = x.shape[-1] // 2
        angle = torch.arange(x.shape[2])[:, None] * 10000.0 ** (-torch.arange(half) / half)
        c, s, a, b = angle.cos(), angle.sin(), x[..., :half], x[..., half:]
        return torch.cat((a * c - b * s, b * c + a * s), -1)

    def forward(self, x):
        n, length, width = x.shape
        q = self.q_proj(x).reshape(n, length, self.heads, -1).transpose(1, 2)
        k, v = (layer(x).reshape(n, length, self.key_heads, -1).transpose(1, 2) for layer in (self.k_proj, self.v_proj))
        k, v = (part.repeat_interleave(self.heads // self.key_heads, 1) for part in (self.turn(k), v))
        scores = self.turn(q) @ k.transpose(-1, -2) / math.sqrt(width / self.heads)
        scores = scores.masked_fill(torch.ones(length, length).triu(1).bool(), -math.inf)
        return self.o_proj((scores.softmax(-1) @ v).transpose(1, 2).reshape(n, length, width))


class LlamaMlp(nn.Module):
    def __init__(self, width):
        super().__init__()
        hidden = (8 * width // 3 + 255) // 256 * 256
        self.gate_proj, self.up_proj = nn.Linear(width, hidden, bias=False), nn.Linear(width, hidden, bias=False)
        self.down_proj = nn.Linear(hidden, width, bias=False)

    def forward(self, x):
        return self.down_proj(functional.silu(self.gate_proj(x)) * self.up_proj(x))


class LlamaBlock(nn.Module):
    def __init__(self, width, heads):
        super().__init__()
        self.input_layernorm, self.post_attention_layernorm = RmsNorm(width), RmsNorm(width)
        self.self_attn, self.mlp = LlamaAttention(width, heads), LlamaMlp(width)

    def forward(self, x):
        x = x + self.self_attn(self.input_layernorm(x))
        return x + self.mlp(self.post_attention_layernorm(x))


class Llama(nn.Module):
    """The names of transformers' LlamaForCausalLM; x as of Gpt2."""

    def __init__(self, layers, heads, width, vocabulary):
        super().__init__()
        self.model = nn.ModuleDict({"embed_tokens": nn.Embedding(vocabulary, width), "norm": RmsNorm(width),
                                    "layers": nn.ModuleList(LlamaBlock(width, heads) for _ in range(layers))})
        self.lm_head = nn.Linear(width, vocabulary, bias=False)

    def forward(self, x):
        h = self.model["embed_tokens"](x[:, :-1].long())
        for block in self.model["layers"]:
            h = block(h)
        return self.lm_head(self.model["norm"](h))


class Recurrent(nn.Module):
    def __init__(self, width, classes):
        super().__init__()
        self.lstm = nn.LSTM(width, 12, 2, batch_first=True, bidirectional=True)
        self.gru = nn.GRU(24, 8, batch_first=True)
        self.fc = nn.Linear(8, classes)

    def forward(self, x):
        return self.fc(self.gru(self.lstm(x)[0])[0][:, -1])


class DoubleConv(nn.Module):
    def __init__(self, inputs, channels, middle=None):
        super().__init__()
        middle = middle or channels
        self.double_conv = nn.Sequential(nn.Conv2d(inputs, middle, 3, padding=1, bias=False), nn.BatchNorm2d(middle), nn.ReLU(),
                                         nn.Conv2d(middle, channels, 3, padding=1, bias=False), nn.BatchNorm2d(channels), nn.ReLU())

    def forward(self, x):
        return self.double_conv(x)


class Down(nn.Module):
    def __init__(self, inputs, channels):
        super().__init__()
        self.maxpool_conv = nn.Sequential(nn.MaxPool2d(2), DoubleConv(inputs, channels))

    def forward(self, x):
        return self.maxpool_conv(x)


class Up(nn.Module):
    def __init__(self, inputs, channels, bilinear):
        super().__init__()
        self.up = nn.Upsample(scale_factor=2, mode="bilinear", align_corners=False) if bilinear else nn.ConvTranspose2d(inputs, inputs // 2, 2, 2)
        self.conv = DoubleConv(inputs, channels, inputs // 2 if bilinear else None)

    def forward(self, x, skip):
        x = self.up(x)
        rows, columns = skip.shape[2] - x.shape[2], skip.shape[3] - x.shape[3]
        x = functional.pad(x, [columns // 2, columns - columns // 2, rows // 2, rows - rows // 2])
        return self.conv(torch.cat([skip, x], 1))


class OutConv(nn.Module):
    def __init__(self, inputs, outputs):
        super().__init__()
        self.conv = nn.Conv2d(inputs, outputs, 1)

    def forward(self, x):
        return self.conv(x)


class UNet(nn.Module):
    """The names of milesial's Pytorch-UNet; the head is that of networks.c."""

    def __init__(self, channels, classes, bilinear, width=4):
        super().__init__()
        w = [width << i for i in range(5)]
        half = 2 if bilinear else 1
        self.inc = DoubleConv(channels, w[0])
        self.down1, self.down2, self.down3, self.down4 = Down(w[0], w[1]), Down(w[1], w[2]), Down(w[2], w[3]), Down(w[3], w[4] // half)
        self.up1, self.up2, self.up3 = (Up(w[4 - i], w[3 - i] // half, bilinear) for i in range(3))
        self.up4 = Up(w[1], w[0], bilinear)
        self.outc = OutConv(w[0], classes)

    def forward(self, x):
        x1 = self.inc(x)
        x2 = self.down1(x1)
        x3 = self.down2(x2)
        x4 = self.down3(x3)
        x = self.up1(self.down4(x4), x4)
        x = self.outc(self.up4(self.up3(self.up2(x, x3), x2), x1))
        quarters = functional.adaptive_avg_pool2d(x, 2)
        return quarters.mean((2, 3)) + quarters[:, :, 0, 0]


class LstmLanguage(nn.Module):
    """The names of PyTorch's example word_language_model; x as Gpt2 has it."""

    def __init__(self, layers, width, vocabulary):
        super().__init__()
        self.encoder = nn.Embedding(vocabulary, width)
        self.rnn = nn.LSTM(width, width, layers, batch_first=True)
        self.decoder = nn.Linear(width, vocabulary)

    def forward(self, x):
        return self.decoder(self.rnn(self.encoder(x[:, :-1].long()))[0])


def build(text, sample_shape, classes):
    name, _, sizes = text.partition(":")
    if name == "mlp":
        return Mlp(math.prod(sample_shape), [int(size) for size in sizes.split(",")], classes)
    if name == "convnet":
        return ConvNet(sample_shape, classes)
    if name == "resnet18":
        return ResNet18(sample_shape[0], classes)
    if name == "transformer":
        return Transformer(sample_shape[0], classes)
    if name == "recurrent":
        return Recurrent(sample_shape[-1], classes)
    if name in ("unet", "unet-bilinear"):
        return UNet(sample_shape[0], classes, name == "unet-bilinear")
    if name == "gpt2":
        return Gpt2(*(int(size) for size in sizes.split("/")), sample_shape[0] - 1, classes)
    if name == "llama":
        return Llama(*(int(size) for size in sizes.split("/")), classes)
    if name == "lstm":
        return LstmLanguage(*(int(size) for size in sizes.split("/")), classes)
    raise ValueError(text)
