"""The page of a walk through the calls."""

from __future__ import annotations

from html.parser import HTMLParser

from hairmesh.contact_sheet import Figure, Points, Section, render

SECTION = Section(
    title="Masks <all>",
    route="POST /api/v1/face/masks",
    text='quick & "quoted"',
    figures=[Figure("sheet/mask_hair.png", "hair", "<script>alert(1)</script>")],
    columns=["part", "area"],
    rows=[["hair", "1 < 2"]],
)


class Page(HTMLParser):
    """Tags and words of a page."""

    def __init__(self, text: str) -> None:
        super().__init__()
        self.tags: list[tuple[str, dict[str, str | None]]] = []
        self.words: list[str] = []
        self.feed(text)

    def handle_starttag(self, tag: str, attrs: list[tuple[str, str | None]]) -> None:
        self.tags.append((tag, dict(attrs)))

    def handle_data(self, data: str) -> None:
        self.words.append(data.strip())


def test_the_page_shows_every_picture_and_loads_nothing_else() -> None:
    page = Page(render("A walk", "all calls", [SECTION, SECTION]))
    assert [attributes["src"] for tag, attributes in page.tags if tag == "img"] == ["sheet/mask_hair.png"] * 2
    assert not {"script", "link", "iframe"} & {tag for tag, _ in page.tags}
    assert all(attributes["alt"] for tag, attributes in page.tags if tag == "img")


def test_words_are_words_whatever_they_hold() -> None:
    page = Page(render("<b>", "&", [SECTION]))
    assert {"<b>", "&", "Masks <all>", "<script>alert(1)</script>", "1 < 2"} <= set(page.words)


def test_a_mask_lies_over_its_photo_and_points_are_named() -> None:
    mask = Figure("sheet/mask.png", "hair", under="sheet/photo.jpg")
    points = Figure("sheet/photo.jpg", "points", points=Points(400, 300, {"<sellion>": (10.0, 20.5)}))
    page = Page(render("A walk", "", [Section("Layers", "POST /", "", [mask, points])]))
    assert [attributes["src"] for tag, attributes in page.tags if tag == "img"] == [
        "sheet/photo.jpg",
        "sheet/mask.png",
        "sheet/photo.jpg",
    ]
    assert [(at["cx"], at["cy"]) for tag, at in page.tags if tag == "circle"] == [("10.0", "20.5")]
    assert "<sellion>" in page.words
