"""When replaced files are read, and when a certificate is warned of."""

from __future__ import annotations

from datetime import UTC, datetime, timedelta
from pathlib import Path

from hairmesh.pem import Validity
from hairmesh.renewal import SETTLE_S, Look, Notice, Renewal, digest

OLD, NEW, HALF = b"old", b"new", b"half"


def test_what_is_as_it_was_is_left_alone_unless_somebody_asks() -> None:
    renewal = Renewal(OLD)
    assert renewal.look(OLD, 0.0) is Look.LEAVE
    assert renewal.look(OLD, 1.0, asked=True) is Look.JUDGE


def test_a_new_content_is_tried_at_once_and_judged_when_it_has_settled() -> None:
    renewal = Renewal(OLD)
    assert renewal.look(HALF, 0.0) is Look.TRY
    assert renewal.look(HALF, SETTLE_S / 2) is Look.LEAVE
    assert renewal.look(NEW, SETTLE_S * 0.9) is Look.TRY, "it is another: its time begins anew"
    assert renewal.look(NEW, SETTLE_S * 1.5) is Look.LEAVE
    assert renewal.look(NEW, SETTLE_S * 2) is Look.JUDGE
    assert renewal.judge(NEW)
    assert not renewal.judge(NEW)
    assert renewal.look(NEW, SETTLE_S * 3) is Look.LEAVE
    assert renewal.look(OLD, SETTLE_S * 3) is Look.TRY


def test_who_asks_hears_the_verdict_at_once() -> None:
    assert Renewal(OLD).look(HALF, 0.0, asked=True) is Look.JUDGE


def test_back_to_what_it_was_is_no_news() -> None:
    renewal = Renewal(OLD)
    renewal.look(HALF, 0.0)
    assert renewal.look(OLD, 0.5) is Look.LEAVE
    assert renewal.look(HALF, 100.0) is Look.TRY


def test_a_digest_follows_content_and_presence_and_order(tmp_path: Path) -> None:
    one, two = tmp_path / "one", tmp_path / "two"
    one.write_text("x")
    alone = digest([one, two])
    two.write_text("y")
    both = digest([one, two])
    assert len({alone, both, digest([two, one]), digest([one])}) == 4
    other = tmp_path / "other"
    other.write_text("y")
    two.unlink()
    two.symlink_to(other)
    assert digest([one, two]) == both


def test_a_certificate_is_warned_of_once_a_day_from_when_it_should_have_been_replaced() -> None:
    now = datetime(2026, 1, 1, tzinfo=UTC)
    validity, notice = Validity(now, now + timedelta(days=90)), Notice()
    due = [hour for hour in range(24 * 92) if notice.is_due(validity, now + timedelta(hours=hour))]
    assert due == list(range(24 * 76, 24 * 92, 24))
