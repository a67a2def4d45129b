"""One line per decision, for people or for programs. Neither holds a secret, or what a terminal would obey."""

from __future__ import annotations

import json
from datetime import UTC, datetime

from hairmesh.plain import printable
from worker.health.watchdog.policy import Action, Decision

ACTION_WORDS = {Action.NOTHING: "", Action.CANARY: "sends a canary", Action.RESTART: "restart"}


def decision_line(decision: Decision, target: str, *, as_json: bool, acts: bool) -> str:
    """What one look led to. `acts`: whether a restart is carried out, else it is only said."""
    finding = decision.finding
    if as_json:
        return _json(
            target,
            verdict=finding.verdict,
            outcome=finding.outcome,
            conclusive=finding.conclusive,
            running=finding.running,
            waiting=finding.waiting,
            steps=finding.steps,
            tokens_per_s=None if finding.tokens_per_s is None else round(finding.tokens_per_s, 1),
            still_s=round(finding.still_s, 1),
            why=printable(finding.why),
            action=decision.action if acts or decision.action is not Action.RESTART else "would_restart",
            hold=decision.hold,
        )
    numbers = {
        "running": finding.running,
        "waiting": finding.waiting,
        "steps": finding.steps,
        "tokens/s": None if finding.tokens_per_s is None else f"{finding.tokens_per_s:.0f}",
        "still": f"{finding.still_s:.0f}s" if finding.running is not None else None,
    }
    said = " ".join(f"{name}={value}" for name, value in numbers.items() if value is not None)
    action = ACTION_WORDS[decision.action]
    if decision.action is Action.RESTART and not acts:
        action = "would restart it (dry run: --act with --restart-cmd carries it out)"
    parts = (finding.verdict.upper(), said, printable(finding.why), action, decision.hold)
    return f"{_now()} {target}: " + " | ".join(part for part in parts if part)


def event_line(event: str, target: str, *, as_json: bool, output: str = "") -> str:
    """Anything else that happened; `output` is what a command said."""
    if as_json:
        return _json(target, event=event, output=output)
    return "\n".join([f"{_now()} {target}: {event}", *(f"    {printable(line)}" for line in output.splitlines())])


def _json(target: str, **values: object) -> str:
    return json.dumps({"time": _now(), "target": target, **values})


def _now() -> str:
    return datetime.now(UTC).isoformat(timespec="milliseconds").replace("+00:00", "Z")
