"""Which files are photos, and where their answers lie."""

from __future__ import annotations

from pathlib import Path

import pytest

from hairmesh.analyze.options import UsageError
from hairmesh.analyze.photos import find, place


def put(root: Path, *names: str) -> None:
    for name in names:
        (root / name).parent.mkdir(parents=True, exist_ok=True)
        (root / name).write_bytes(name.encode())


def found(*given: str, out: str = "out", recursive: bool = True) -> list[str]:
    return [str(photo.path) for photo in find(map(Path, given), Path(out), recursive=recursive)]


@pytest.fixture(autouse=True)
def here(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> Path:
    here = tmp_path / "here"
    here.mkdir()
    monkeypatch.chdir(here)
    return here


def test_photos_by_known_types_and_no_others(here: Path) -> None:
    put(here, "a/1.JPG", "a/2.heic", "a/notes.txt", "a/._1.jpg", "a/b/3.png", "a/.hidden/4.png", "odd.bin")
    assert found("a", recursive=False) == ["a/1.JPG", "a/2.heic"]
    assert found("a") == ["a/1.JPG", "a/2.heic", "a/b/3.png"]
    assert found("odd.bin") == ["odd.bin"]


def test_nothing_is_taken_twice_and_links_end(here: Path) -> None:
    put(here, "a/1.jpg", "a/b/2.jpg")
    (here / "a/b/up").symlink_to("..")
    (here / "a/b/same.jpg").symlink_to("../1.jpg")
    (here / "a/b/hard.jpg").hardlink_to(here / "a/1.jpg")
    (here / "link").symlink_to("a")
    assert found("a", "link", "a/1.jpg") == ["a/1.jpg", "a/b/2.jpg"]
    assert found("link", "a") == ["link/1.jpg", "link/b/2.jpg"]


def test_a_link_to_nothing_is_not_passed_over(here: Path) -> None:
    (here / "gone.jpg").symlink_to("nowhere")
    assert found(".") == ["gone.jpg"]


def test_results_are_no_photos(here: Path) -> None:
    put(here, "a/1.jpg", "a/results/1.png")
    assert found("a", out="a/results") == ["a/1.jpg"]


def test_the_same_name_in_two_folders_lies_in_two_places(here: Path) -> None:
    assert place(Path("a/1.jpg")) == place(Path("b/../a/1.jpg")) == place(here / "a/1.jpg") == Path("a/1.jpg")
    outside = here.parent / "a/1.jpg"
    assert place(outside) == place(Path("../a/1.jpg")) == outside.relative_to("/")


def test_two_photos_in_one_place_are_refused(here: Path) -> None:
    outside = here.parent / "1.jpg"
    inside = here / outside.relative_to("/")
    put(here, "2.jpg")
    inside.parent.mkdir(parents=True)
    for each in (outside, inside):
        each.write_bytes(str(each).encode())
    with pytest.raises(UsageError, match="one place"):
        found(str(outside), str(inside))
