"""Tell and convert times."""

from __future__ import annotations

from datetime import datetime, timedelta
from zoneinfo import ZoneInfo, ZoneInfoNotFoundError

from pegboard.marks import tool

__all__ = ["add_time", "convert_time", "current_time", "time_between"]


@tool(read_only=True)
def current_time(zone: str = "UTC") -> str:
    """Tell the date, time and weekday now in a time zone such as 'Europe/Paris'."""
    return _format_moment(datetime.now(_load_zone(zone)))


@tool(read_only=True)
def convert_time(moment: str, to: str, zone: str = "UTC") -> str:
    """Convert a time from one time zone to another.

    Args:
        moment: An ISO time such as '2025-03-01T09:30'; an offset in it counts more than 'zone'.
        to: The time zone wanted, such as 'Asia/Tokyo'.
        zone: The time zone of 'moment'.
    """
    return _format_moment(_parse_moment(moment, zone).astimezone(_load_zone(to)))


@tool(read_only=True)
def time_between(start: str, end: str, zone: str = "UTC") -> dict[str, float | str]:
    """Tell how long it is from one ISO date or time to another, in days, hours and seconds."""
    gap = _parse_moment(end, zone) - _parse_moment(start, zone)
    return {
        "text": str(gap),
        "days": round(gap / timedelta(days=1), 6),
        "hours": round(gap / timedelta(hours=1), 6),
        "seconds": gap.total_seconds(),
    }


@tool(read_only=True)
def add_time(moment: str, days: float = 0, hours: float = 0, minutes: float = 0, zone: str = "UTC") -> str:
    """Add days, hours and minutes to an ISO date or time; negative numbers go back."""
    try:
        return _format_moment(_parse_moment(moment, zone) + timedelta(days=days, hours=hours, minutes=minutes))
    except OverflowError:
        raise ValueError("the result is out of range (years 1 to 9999).") from None


def _load_zone(name: str) -> ZoneInfo:
    try:
        return ZoneInfo(name)
    except (ZoneInfoNotFoundError, ValueError, OSError):
        raise ValueError(f"'{name}' is not a time zone; write one such as 'Europe/Paris' or 'UTC'.") from None


def _parse_moment(text: str, zone: str) -> datetime:
    try:
        found = datetime.fromisoformat(text.strip())
    except ValueError:
        raise ValueError(f"'{text}' is not an ISO date or time such as '2025-03-01T09:30'.") from None
    return found if found.tzinfo is not None else found.replace(tzinfo=_load_zone(zone))


def _format_moment(moment: datetime) -> str:
    return f"{moment.isoformat(timespec='seconds')} ({moment:%A}, {moment.tzname()})"
