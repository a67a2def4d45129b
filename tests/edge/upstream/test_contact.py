"""A probe ends, whatever becomes of it; unless nobody wants to hear of its worker any more."""

from __future__ import annotations

import asyncio
from collections.abc import AsyncIterator, Coroutine
from typing import NoReturn

import pytest

from edge.pool import events as ev
from edge.upstream import probe
from edge.upstream.channel import Link
from edge.upstream.contact import Contact
from edge.upstream.passwords import Passwords
from tests.edge.upstream.conftest import MakeWorkers, until
from tests.fakes.worker import PASSWORD, FakeWorker

FOR_EVER_S = 60.0


class Heard:
    """A contact with one worker, and everything that comes of it."""

    def __init__(self, worker: FakeWorker) -> None:
        self.worker = worker
        self.events: list[ev.Event] = []
        self.tasks: list[asyncio.Task[None]] = []
        self.link = Link.open(worker.address, None)
        self.contact = Contact(self.link, Passwords(PASSWORD), emit=self.events.append, spawn=self._spawn)

    def _spawn(self, work: Coroutine[object, object, None]) -> asyncio.Task[None]:
        self.tasks.append(asyncio.get_running_loop().create_task(work))
        return self.tasks[-1]

    @property
    def probe(self) -> asyncio.Task[None]:
        """The last one."""
        return self.tasks[-1]

    @property
    def probes_ended(self) -> list[tuple[ev.ProbeResult, str]]:
        return [(each.result, each.evidence) for each in self.events if isinstance(each, ev.ProbeEnded)]

    async def ask_in_vain(self) -> None:
        """Until a probe is on its way that gets no answer."""
        self.worker.probe_script.append(FOR_EVER_S)
        self.contact.probe(FOR_EVER_S)
        await until(lambda: self.worker.probes == 1)


@pytest.fixture
async def heard(workers: MakeWorkers) -> AsyncIterator[Heard]:
    (worker,) = await workers(1)
    made = Heard(worker)
    yield made
    made.contact.end()
    for task in made.tasks:
        task.cancel()
    await asyncio.gather(*made.tasks, return_exceptions=True)
    await made.link.channel.close()


async def test_a_probe_whose_channel_is_closed_below_it_has_failed(heard: Heard) -> None:
    await heard.ask_in_vain()
    await heard.link.channel.close()
    await heard.probe
    assert heard.probes_ended == [(ev.ProbeResult.ERROR, "probe: the channel was closed")]


async def test_a_probe_that_a_bug_ends_has_failed_and_the_bug_is_not_hidden(
    heard: Heard, monkeypatch: pytest.MonkeyPatch
) -> None:
    async def check(*_arguments: object) -> NoReturn:
        raise ZeroDivisionError

    monkeypatch.setattr(probe, "check", check)
    heard.contact.probe(FOR_EVER_S)
    with pytest.raises(ZeroDivisionError):
        await heard.probe
    assert heard.probes_ended == [(ev.ProbeResult.ERROR, "probe: ZeroDivisionError")]


@pytest.mark.parametrize("closes", [True, False], ids=["its channel closes too", "its channel stays"])
async def test_a_contact_that_has_ended_is_never_heard_again(heard: Heard, *, closes: bool) -> None:
    """The same address may be among the workers again by then, and be judged by what the former one did."""
    await heard.ask_in_vain()
    link = heard.contact.end()
    heard.events.clear()
    if closes:
        await link.channel.close()
    await until(lambda: all(task.done() for task in heard.tasks))
    assert heard.events == []


async def test_a_probe_in_flight_goes_on_over_the_channel_that_there_is_now(
    heard: Heard, monkeypatch: pytest.MonkeyPatch
) -> None:
    """Refused over the old one, which takes nothing new any more, it tries the other password over the new one."""
    passwords = Passwords(PASSWORD)
    passwords.change("newer")
    contact = Contact(heard.link, passwords, emit=heard.events.append, spawn=heard._spawn)
    asked, answers = asyncio.Event(), asyncio.Event()
    real = heard.worker.check_password

    async def check_password(context: object) -> None:
        asked.set()
        await answers.wait()
        await real(context)  # type: ignore[arg-type]

    monkeypatch.setattr(heard.worker, "check_password", check_password)
    contact.probe(FOR_EVER_S)
    await asked.wait()
    heard.link = Link.open(heard.worker.address, None)
    old = contact.renew(heard.link)
    closing = asyncio.create_task(old.channel.close(FOR_EVER_S))
    await asyncio.sleep(0)
    answers.set()
    await until(lambda: bool(heard.probes_ended))
    contact.end()
    await closing
    assert heard.probes_ended == [(ev.ProbeResult.GOOD, "probe: SERVING")]
