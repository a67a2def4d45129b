"""What the fake ComfyUI's nodes make: pictures flow through them, and where a mask is its sampler paints hair."""

from __future__ import annotations

import hashlib
import io
from collections.abc import Callable, Mapping
from dataclasses import dataclass
from typing import Any

import cv2
import numpy as np
from numpy.typing import NDArray
from PIL import Image, ImageFilter

Rgb = NDArray[np.uint8]
Mask = NDArray[np.float32]
Outputs = tuple[Any, ...]


@dataclass(frozen=True, slots=True)
class Latent:
    """What a VAE makes of a picture: here the picture itself."""

    rgb: Rgb
    mask: Mask | None = None


def load_image(data: bytes) -> Outputs:
    """IMAGE and MASK of LoadImage; the mask is what is transparent."""
    picture = Image.open(io.BytesIO(data))
    rgb = np.asarray(picture.convert("RGB"))
    if "A" not in picture.getbands():
        return rgb, np.zeros((64, 64), dtype=np.float32)
    return rgb, 1.0 - np.asarray(picture.getchannel("A"), dtype=np.float32) / 255.0


def load_mask(data: bytes, channel: str) -> Outputs:
    """MASK of LoadImageMask: alpha is reversed, colours are not."""
    picture = Image.open(io.BytesIO(data)).convert("RGBA")
    values = np.asarray(picture.getchannel(channel[0].upper()), dtype=np.float32) / 255.0
    return (1.0 - values if channel == "alpha" else values,)


def scaled(inputs: Mapping[str, Any]) -> Outputs:
    """ImageScaleBy."""
    factor = float(inputs["scale_by"])
    return (np.asarray(cv2.resize(inputs["image"], None, fx=factor, fy=factor), dtype=np.uint8),)


def blurred(inputs: Mapping[str, Any]) -> Outputs:
    """ImageBlur."""
    return (np.asarray(Image.fromarray(inputs["image"]).filter(ImageFilter.GaussianBlur(inputs["sigma"]))),)


def encoded(inputs: Mapping[str, Any]) -> Outputs:
    """VAEEncodeForInpaint."""
    return (Latent(inputs["pixels"], inputs["mask"]),)


def conditioned(inputs: Mapping[str, Any]) -> Outputs:
    """InpaintModelConditioning."""
    return inputs["positive"], inputs["negative"], Latent(inputs["pixels"], inputs["mask"])


def noise(inputs: Mapping[str, Any]) -> Outputs:
    """RandomNoise."""
    return (inputs["noise_seed"],)


def sigmas(inputs: Mapping[str, Any]) -> Outputs:
    """BasicScheduler."""
    return ([1.0 - step / inputs["steps"] for step in range(inputs["steps"] + 1)],)


def sampled_advanced(inputs: Mapping[str, Any]) -> Outputs:
    """SamplerCustomAdvanced: what it paints comes from its noise, how often it steps from its sigmas."""
    return sampled({"latent_image": inputs["latent_image"], "seed": inputs["noise"]})


def steps_of(kind: str, inputs: Mapping[str, Any]) -> int:
    """How many steps a node reports; 0: none."""
    if kind == "SamplerCustomAdvanced":
        return len(inputs["sigmas"]) - 1
    return int(inputs["steps"]) if kind == "KSampler" else 0


def sampled(inputs: Mapping[str, Any]) -> Outputs:
    """KSampler: strokes in the colour of the darkest tenth of what is not masked, the same for the same seed."""
    latent = inputs["latent_image"]
    if latent.mask is None:
        return (latent,)
    height, width = latent.rgb.shape[:2]
    mask = cv2.resize(latent.mask, (width, height))
    known = latent.rgb[mask < 0.5].reshape(-1, 3)
    sums = known.sum(axis=1)
    colour = known[sums <= np.percentile(sums, 10)].mean(axis=0) if len(known) else np.full(3, 40.0)
    dice = np.random.default_rng(int(inputs["seed"]) % 2**63)
    painted = np.empty_like(latent.rgb)
    painted[:] = np.clip(colour * 0.8, 0, 255).astype(np.uint8)
    for x, y in dice.uniform((0, 0), (width, height), (width * height // 60, 2)):
        lean, shade = dice.normal(0.0, 0.25), dice.uniform(0.6, 1.5)
        end = (int(x + 40 * lean), int(y - 40))
        line = tuple(float(value) for value in np.clip(colour * shade + 4, 0, 255))
        cv2.line(painted, (int(x), int(y)), end, line, 1, cv2.LINE_AA)
    grown = latent.rgb + (painted.astype(np.float32) - latent.rgb) * mask[..., None]
    return (Latent(grown.astype(np.uint8)),)


def decoded(inputs: Mapping[str, Any]) -> Outputs:
    """VAEDecode."""
    return (inputs["samples"].rgb,)


def text(inputs: Mapping[str, Any]) -> Outputs:
    """CLIPTextEncode."""
    return (inputs["text"],)


def checkpoint(inputs: Mapping[str, Any]) -> Outputs:
    """CheckpointLoaderSimple."""
    return (inputs["ckpt_name"],) * 3


COMPUTES: Mapping[str, Callable[[Mapping[str, Any]], Outputs]] = {
    "CheckpointLoaderSimple": checkpoint,
    "CLIPTextEncode": text,
    "ImageScaleBy": scaled,
    "ImageBlur": blurred,
    "VAEEncodeForInpaint": encoded,
    "InpaintModelConditioning": conditioned,
    "KSampler": sampled,
    "RandomNoise": noise,
    "BasicScheduler": sigmas,
    "SamplerCustomAdvanced": sampled_advanced,
    "VAEDecode": decoded,
}
LOADS = frozenset({"LoadImage", "LoadImageMask"})
SAVES = {"SaveImage": "output", "PreviewImage": "temp"}
"""Output nodes and the folder they write to."""
KNOWN = frozenset({*COMPUTES, *LOADS, *SAVES})


def sources(node: Mapping[str, Any]) -> list[str]:
    """Ids of the nodes that feed one."""
    return [value[0] for value in node["inputs"].values() if isinstance(value, list)]


def in_order(prompt: Mapping[str, Any], outputs: list[str]) -> list[str]:
    """Ids of what has to run for `outputs`, each after what feeds it."""
    order: list[str] = []

    def visit(node_id: str) -> None:
        if node_id not in order:
            for source in sources(prompt[node_id]):
                visit(source)
            order.append(node_id)

    for node_id in outputs:
        visit(node_id)
    return order


def signature(prompt: Mapping[str, Any], node_id: str, read: Callable[[str], bytes]) -> str:
    """By what a node's result is cached: its inputs, those of what feeds it, and the bytes of files."""
    node = prompt[node_id]
    parts: list[object] = [node["class_type"]]
    for name, value in sorted(node["inputs"].items()):
        parts.append((name, signature(prompt, value[0], read), value[1]) if isinstance(value, list) else (name, value))
    if node["class_type"] in LOADS:
        parts.append(hashlib.sha256(read(node["inputs"]["image"])).hexdigest())
    return hashlib.sha256(repr(parts).encode()).hexdigest()


def png(rgb: Rgb) -> bytes:
    """A PNG file."""
    buffer = io.BytesIO()
    Image.fromarray(rgb).save(buffer, "PNG", compress_level=1)
    return buffer.getvalue()
