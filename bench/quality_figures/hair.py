"""Hair masks against outlines drawn by eye, over the whole photo; and what one crop about the face would give.

The one crop is the plain parser's: the most probable class of each pixel of one upright square about the middle of the
mesh, once through the network, with nothing of `vision.parsing` or `vision.hair_mask` but how a crop is sampled. Hair
beyond the square is lost. Some pictures were outlined twice, so that the figures can be read against what two outlines
of the same hair have in common.
"""

from __future__ import annotations

import statistics

import cv2
import numpy as np

from bench.harness import console, table
from bench.portraits.hair_outlines import SECOND, Mask, overlap, read_outlines
from bench.portraits.pictures import path_of, read_photo
from bench.quality_figures import Figures
from bench.quality_figures.looker import Looker
from vision.hair_mask import hair_alpha
from vision.parsing import normalized, sample
from vision.runtime import ParserRuntime
from vision.types import FaceLandmarks, Label, Photo

MESH_OF_FACE = 0.87
"""Height of the mesh, upper forehead to chin, over that of the face, trichion to menton; mean of ten portraits."""
CROP_SIDES = {"2 faces": 2.0 / MESH_OF_FACE, "2 meshes": 2.0}
"""Sides of the crops to compare with, in heights of the mesh. The first is the one that counts."""
CROP_PX = 512
_TOP, _CHIN = 10, 152


def hair(look: Looker) -> Figures:
    """Every picture that is here."""
    rows: list[list[str]] = []
    found: list[float] = []
    again = {outline.picture: outline for outline in read_outlines(SECOND)}
    twice: list[tuple[float, float, float]] = []
    single: dict[str, list[float]] = {name: [] for name in CROP_SIDES}
    missing = []
    for outline in read_outlines():
        if not path_of(outline.picture).exists():
            missing.append(outline.picture)
            continue
        photo, landmarks, parsing = look.parts(read_photo(outline.picture))
        drawn = outline.mask(photo.height_px, photo.width_px)
        mask = hair_alpha(photo.rgb, parsing) > 0.5
        found.append(overlap(mask, drawn))
        if second := again.get(outline.picture):
            redrawn = second.mask(photo.height_px, photo.width_px)
            twice.append((overlap(drawn, redrawn), found[-1], overlap(mask, redrawn)))
        for name, side in CROP_SIDES.items():
            single[name].append(overlap(_one_crop(photo, landmarks, look.parser, side), drawn))
        ious = [found[-1], *(of_crop[-1] for of_crop in single.values())]
        rows.append([outline.picture, outline.framing, *(f"{iou:.3f}" for iou in ious)])
    headings = ["mask", *(f"one crop of {name}" for name in CROP_SIDES)]
    table("Hair: IoU with the outline over the whole photo", ["picture", "framing", *headings], rows)
    for framing in ("loose", "tight"):
        chosen = [[float(iou) for iou in row[2:]] for row in rows if row[1] == framing]
        if chosen:
            means = ", ".join(f"{statistics.mean(values):.3f}" for values in zip(*chosen, strict=True))
            console.print(f"{framing}: {means} on {len(chosen)}")
    if twice:
        repeat, first, other = (statistics.mean(column) for column in zip(*twice, strict=True))
        console.print(
            f"{len(twice)} outlined twice: the outlines overlap by {repeat:.3f}, "
            f"the mask with the first by {first:.3f}, with the second by {other:.3f}"
        )
    if missing:
        console.print(f"not here: {', '.join(missing)}")
    return {
        "hair_n": len(found),
        "hair_iou_mean": statistics.mean(found),
        "hair_iou_min": min(found),
        "hair_iou_single_crop": statistics.mean(single["2 faces"]),
        "hair_iou_single_mesh_crop": statistics.mean(single["2 meshes"]),
        "hair_outline_repeat": statistics.mean(column[0] for column in twice) if twice else None,
        "hair_iou_of_repeated": statistics.mean(column[1] for column in twice) if twice else None,
    }


def _one_crop(photo: Photo, landmarks: FaceLandmarks, forward: ParserRuntime, side: float) -> Mask:
    """(H, W): hair in one crop of so many mesh heights about the face, upright with it; no hair beyond it."""
    top, chin = landmarks.points[_TOP], landmarks.points[_CHIN]
    across = side * float(np.linalg.norm(top - chin))
    angle = np.radians(landmarks.pose.roll_deg)
    linear = across / CROP_PX * np.array([[np.cos(angle), -np.sin(angle)], [np.sin(angle), np.cos(angle)]])
    photo_from_crop = np.column_stack([linear, (top + chin) / 2 - linear @ np.full(2, (CROP_PX - 1) / 2)])
    logits = forward(normalized(sample(photo.rgb, photo_from_crop, CROP_PX)))[0]
    fine = cv2.resize(logits.transpose(1, 2, 0), (CROP_PX, CROP_PX), interpolation=cv2.INTER_LINEAR)
    labels = fine.argmax(axis=2)
    is_hair = (labels == Label.HAIR).astype(np.uint8)
    size = (photo.width_px, photo.height_px)
    return np.asarray(cv2.warpAffine(is_hair, photo_from_crop, size, flags=cv2.INTER_NEAREST)).astype(bool)
