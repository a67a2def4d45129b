"""One portrait in every format that is read, each full of what a phone writes beside the pixels."""

from __future__ import annotations

import io
from collections.abc import Callable, Mapping

import pillow_heif
from PIL import ExifTags, Image, ImageCms
from PIL.PngImagePlugin import PngInfo

MARK = "SENTINEL"
"""In every tag; where it shows, a tag was carried along."""
SIDE_PX = 800
"""Of the square portrait: so small that it fits into the body limit in any format."""
_XMP = f'<x:xmpmeta xmlns:x="adobe:ns:meta/"><dc:creator>{MARK}-xmp</dc:creator></x:xmpmeta>'.encode()


def exif() -> Image.Exif:
    """Camera, owner, place, what its maker notes, and a remark of the user; upright."""
    tags = Image.Exif()
    tags[ExifTags.Base.Orientation] = 1
    for name in ("Make", "Model", "ImageDescription", "Artist", "Copyright", "HostComputer"):
        tags[ExifTags.Base[name]] = f"{MARK}-{name}"
    details = tags.get_ifd(ExifTags.IFD.Exif)
    details[ExifTags.Base.DateTimeOriginal] = f"{MARK}-when"
    details[ExifTags.Base.MakerNote] = f"{MARK}-maker".encode()
    details[ExifTags.Base.UserComment] = f"ASCII\0\0\0{MARK}-comment".encode()
    details[ExifTags.Base.BodySerialNumber] = f"{MARK}-serial"
    place = tags.get_ifd(ExifTags.IFD.GPSInfo)
    place[ExifTags.GPS.GPSLatitudeRef], place[ExifTags.GPS.GPSLatitude] = "N", (31.0, 13.0, 49.0)
    place[ExifTags.GPS.GPSLongitudeRef], place[ExifTags.GPS.GPSLongitude] = "E", (121.0, 28.0, 25.0)
    place[ExifTags.GPS.GPSAreaInformation] = f"ASCII\0\0\0{MARK}-place".encode()
    return tags


def _profile() -> bytes:
    """sRGB under a name of its own, of the length of the true one."""
    profile = ImageCms.ImageCmsProfile(ImageCms.createProfile("sRGB")).tobytes()
    name = "sRGB built-in".encode("utf-16-be")
    assert name in profile
    return profile.replace(name, f"{MARK}-icc".ljust(13).encode("utf-16-be"))


def _jpeg(image: Image.Image, file: io.BytesIO) -> None:
    image.save(file, "JPEG", quality=92, exif=exif(), xmp=_XMP, icc_profile=_profile(), comment=f"{MARK}-com".encode())


def _png(image: Image.Image, file: io.BytesIO) -> None:
    text = PngInfo()
    text.add_text("Comment", f"{MARK}-text")
    text.add_itxt("XML:com.adobe.xmp", _XMP.decode())
    image.save(file, "PNG", exif=exif(), icc_profile=_profile(), pnginfo=text)


def _webp(image: Image.Image, file: io.BytesIO) -> None:
    image.save(file, "WEBP", quality=92, exif=exif(), xmp=_XMP, icc_profile=_profile())


def _tiff(image: Image.Image, file: io.BytesIO) -> None:
    tags = exif()
    tags[ExifTags.Base.XMLPacket] = _XMP
    image.save(file, "TIFF", compression="tiff_lzw", exif=tags, icc_profile=_profile())


def _heif(image: Image.Image, file: io.BytesIO) -> None:
    pillow_heif.from_pillow(image).save(file, quality=90, exif=exif().tobytes(), xmp=_XMP)


def _bmp(image: Image.Image, file: io.BytesIO) -> None:
    image.save(file, "BMP")
    file.write(f"{MARK}-behind".encode())  # it knows no tags


_WRITERS: Mapping[str, Callable[[Image.Image, io.BytesIO], None]] = {
    "JPEG": _jpeg,
    "PNG": _png,
    "WEBP": _webp,
    "BMP": _bmp,
    "TIFF": _tiff,
    "HEIF": _heif,
}
FORMATS = tuple(_WRITERS)


def tagged(portrait: Image.Image, form: str) -> bytes:
    """A square portrait as a file of that format, with every tag it knows."""
    file = io.BytesIO()
    _WRITERS[form](portrait.convert("RGB").resize((SIDE_PX, SIDE_PX)), file)
    return file.getvalue()
