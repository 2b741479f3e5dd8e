"""Round moments for the axis of a plot."""

from __future__ import annotations

from datetime import UTC, datetime

__all__ = ["time_ticks"]

_MINUTE, _HOUR, _DAY = 60, 3600, 86400
_STEPS = (
    1, 5, 15, 30, _MINUTE, 5 * _MINUTE, 15 * _MINUTE, 30 * _MINUTE, _HOUR, 3 * _HOUR, 6 * _HOUR,
    12 * _HOUR, _DAY, 2 * _DAY, 7 * _DAY, 14 * _DAY, 28 * _DAY, 91 * _DAY, 182 * _DAY,
    365 * _DAY,
)  # fmt: skip


def time_ticks(begin: datetime, end: datetime, most: int) -> list[tuple[datetime, str]]:
    """Return at most `most` round moments from `begin` to `end`, with their labels, in UTC.

    >>> start = datetime(2026, 1, 1, 22, 50, tzinfo=UTC)
    >>> [label for _, label in time_ticks(start, start.replace(day=2, hour=6), 4)]
    ['2 Jan', '03:00', '06:00']
    """
    first, last = begin.timestamp(), end.timestamp()
    usual = [step for step in _STEPS if last // step - -(-first // step) < most]
    step = usual[0] if usual else int((last - first) // most) + 1
    places = range(int(-(-first // step)), int(last // step) + 1)
    found = [datetime.fromtimestamp(place * step, UTC) for place in places]
    found = found or [begin.astimezone(UTC)]
    return [(at, _label(at, step)) for at in found]


def _label(at: datetime, step: int) -> str:
    if step >= 91 * _DAY:
        return f"{at:%b %Y}"
    if at.hour == at.minute == at.second == 0:
        return f"{at.day} {at:%b}"
    return f"{at:%H:%M}" if step >= _MINUTE and not at.second else f"{at:%H:%M:%S}"
