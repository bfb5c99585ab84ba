"""Templates and the theme; nothing that a server, a model or a file says becomes markup."""

from __future__ import annotations

import json
import re
import time
import unicodedata
from collections.abc import Collection, Sequence
from datetime import UTC, date, datetime
from functools import cache
from pathlib import Path
from typing import Any, Final, Literal
from urllib.parse import urlencode

from jinja2 import Environment, FileSystemLoader, StrictUndefined
from markupsafe import Markup, escape
from starlette.requests import Request
from starlette.responses import HTMLResponse, Response

from pegboard.console.navigation import NavigationEntry, entries_for
from pegboard.console.operator_request import OperatorRequest
from pegboard.operators.approvals import ArgumentOverview, WaitingCalls
from pegboard.operators.money import price_text
from pegboard.operators.timeline import CALLS
from pegboard.support.visible_text import visible

FOLDER: Final = Path(__file__).parent
LONGEST: Final = 2_000
"""How many characters of a text are shown where a page says nothing else."""
WHOLE: Final = 16
"""How many characters of a word stay together however narrow a column is."""
_LONG: Final = re.compile(rf"(\S{{{WHOLE + 1},}})")
_BETWEEN: Final = re.compile(r"(?<=[_/.:-])(?=[^_/.:-])")
FIRST: Final = 8
"""How many arguments of a call a card shows unfolded."""
FOLDED: Final = 600
"""Over how many characters an argument is folded."""


class Templates:
    """The templates of the console, whose navigation has the addresses in ``pages``."""

    def __init__(self, pages: Collection[str]) -> None:
        self._pages = frozenset(pages)

    def navigation(self, visit: OperatorRequest) -> list[NavigationEntry]:
        """Return the entries of the pages that the operator may open."""
        return entries_for(self._pages, visit.operator.rights, every_agent=visit.operator.agents is None)

    def page(self, name: str, visit: OperatorRequest | None, /, *, status: int = 200, **values: Any) -> HTMLResponse:
        """Return a page; for a script that asks for a part of it, without what stands around it."""
        sign_in = visit.sign_in if visit is not None else None
        notices: list[object] = []
        if sign_in is not None and visit is not None and not visit.partial and visit.request.method == "GET":
            notices, sign_in.notices = sign_in.notices, []
        text = self.text(
            name,
            operator=visit.names.shown(visit.operator.name) if visit is not None else None,
            rights=visit.operator.rights if visit is not None else frozenset[str](),
            every_agent=visit is None or visit.operator.agents is None,
            csrf=sign_in.csrf if sign_in is not None else "",
            partial=visit.partial if visit is not None else False,
            stream=visit.stream if visit is not None else "",
            path=visit.request.url.path if visit is not None else "",
            address=address_of(visit) if visit is not None else "",
            theme=theme_of(visit.request) if visit is not None else "",
            notices=notices,
            navigation=self.navigation(visit) if visit is not None else [],
            **{
                "waiting": visit.waiting if visit is not None else WaitingCalls(),
                "needing": visit.attention if visit is not None else None,
                **values,
            },
        )
        return HTMLResponse(text, status_code=status)

    def text(self, name: str, /, **values: Any) -> str:
        """Return a rendered template."""
        return _environment().get_template(name).render(**values)


@cache
def _environment() -> Environment:
    """Return what reads the templates; it compiles each once, for every console of the process."""
    environment = Environment(
        loader=FileSystemLoader(FOLDER / "templates"),
        autoescape=True,
        undefined=StrictUndefined,
        trim_blocks=True,
        lstrip_blocks=True,
        auto_reload=False,
    )
    filters: dict[str, Any] = environment.filters
    filters.update(
        visible=readable_text,
        picture=picture_of,
        breakable=breakable,
        number=format_number,
        ago=time_since,
        ahead=time_until,
        moment=moment,
        milliseconds=milliseconds,
        share=share,
        day=day,
        short=short,
        money=price_text,
        pair=pair,
        json=json.dumps,
    )
    values: dict[str, Any] = environment.globals
    values.update(query=query, now=time.time, call_kinds=CALLS, is_folded=is_folded, folded=count_folded)
    return environment


def address_of(visit: OperatorRequest) -> str:
    """Return the address of the page that is asked for, with its query."""
    url = visit.request.url
    return f"{url.path}?{url.query}" if url.query else url.path


def readable_text(text: object, limit: int = LONGEST) -> str:
    r"""Return a text as it can be read, cut.

    >>> readable_text("safe\u202egpj.exe")
    'safe<U+202E>gpj.exe'
    >>> readable_text("abcdef", limit=3)
    'abc … (3 more characters)'
    """
    whole = str(text)
    readable = visible(whole[:limit])
    return readable if len(whole) <= limit else f"{readable} … ({format_number(len(whole) - limit)} more characters)"


def breakable(text: object, limit: int = LONGEST) -> Markup:
    """Return a text as :func:`shown` does, as markup in which only long words break: between their parts, if at all.

    >>> print(breakable("<b>mail__send_message</b>"))
    &lt;b&gt;mail__<wbr>send_<wbr>message&lt;/<wbr>b&gt;
    >>> print(breakable("of carl"), breakable("a" * 17))
    of carl <span class="long">aaaaaaaaaaaaaaaaa</span>
    """
    words = _LONG.split(readable_text(text, limit))  # every second one is long
    return Markup("").join(_in_parts(word) if at % 2 else escape(word) for at, word in enumerate(words))


def _in_parts(word: str) -> Markup:
    parts = _BETWEEN.split(word)
    shown = (Markup('<span class="long">{}</span>').format(part) if len(part) > WHOLE else part for part in parts)
    return Markup("<wbr>").join(shown)


def pair(value: str) -> tuple[str, str]:
    """Return a value with itself as its label."""
    return value, value


def is_folded(argument: ArgumentOverview, index: int) -> bool:
    """Return whether a card folds an argument: it is long, or behind the first ones."""
    return index >= FIRST or len(argument.text) > FOLDED


def count_folded(arguments: Sequence[ArgumentOverview]) -> int:
    """Return how many arguments a card folds."""
    return sum(is_folded(argument, index) for index, argument in enumerate(arguments))


def format_number(value: float | None) -> str:
    """Return a number for people.

    >>> format_number(20000), format_number(None)
    ('20,000', 'not known')
    """
    return "not known" if value is None else f"{value:,.0f}"


def short(value: float | None) -> str:
    """Return a number for people in few characters.

    >>> short(9_999), short(67_100), short(1_065_000), short(None)
    ('9,999', '67 k', '1.1 M', 'not known')
    """
    if value is None or abs(value) < 10_000:
        return format_number(value)
    return f"{value / 1e6:,.1f} M" if abs(value) >= 1e6 else f"{value / 1e3:,.0f} k"


def day(value: str) -> str:
    """Return a day for people.

    >>> day("2026-11-27")
    'Fri 27 Nov'
    """
    found = date.fromisoformat(value)
    return f"{found:%a} {found.day} {found:%b}"


def share(part: float, whole: float) -> str:
    """Return a part of a whole in per cent.

    >>> share(1, 15), share(99, 100), share(0, 0)
    ('6.7%', '99%', '0%')
    """
    value = 100 * part / whole if whole else 0.0
    return f"{value:.1f}".removesuffix(".0") + "%" if value < 10 else f"{value:.0f}%"


def milliseconds(value: float | None) -> str:
    """Return a duration for people.

    >>> milliseconds(3.26), milliseconds(12_345.0), milliseconds(None)
    ('3.3 ms', '12.3 s', '')
    """
    if value is None:
        return ""
    return f"{value / 1000:,.1f} s" if value >= 1_000 else f"{value:,.1f} ms" if value < 100 else f"{value:,.0f} ms"


def moment(value: float | str | datetime | None) -> Markup:
    """Return a moment as an element, in UTC: a script shows it in the zone of the browser.

    It is given in seconds since the epoch, as a time with its zone, or as ISO text.
    """
    if value is None:
        return Markup("")
    at = _utc(value)
    text, exact = at.strftime("%Y-%m-%d %H:%M:%S UTC"), at.isoformat(timespec="milliseconds")
    return Markup('<time datetime="{}" title="{}" data-at>{}</time>').format(exact, text, text)


def time_since(value: float | str | datetime | None) -> Markup:
    """Return how long ago a moment was, as an element that has the exact time as well."""
    if value is None:
        return Markup("")
    at = _utc(value)
    passed = max(0.0, time.time() - at.timestamp())
    exact, title = at.isoformat(timespec="milliseconds"), at.strftime("%Y-%m-%d %H:%M:%S UTC")
    return Markup('<time datetime="{}" title="{}" data-ago>{} ago</time>').format(exact, title, _round_duration(passed))


def time_until(value: float | str | datetime | None) -> Markup:
    """Return how far ahead a moment is, as an element that has the exact time as well."""
    if value is None:
        return Markup("")
    at = _utc(value)
    exact, title = at.isoformat(timespec="milliseconds"), at.strftime("%Y-%m-%d %H:%M:%S UTC")
    left = max(0.0, at.timestamp() - time.time())
    return Markup('<time datetime="{}" title="{}" data-ahead>in {}</time>').format(exact, title, _round_duration(left))


def _utc(value: float | str | datetime) -> datetime:
    if isinstance(value, str):
        value = datetime.fromisoformat(value)
    return value.astimezone(UTC) if isinstance(value, datetime) else datetime.fromtimestamp(value, UTC)


def _round_duration(seconds: float) -> str:
    for size, name in ((86400.0, "d"), (3600.0, "h"), (60.0, "min")):
        if seconds >= size:
            return f"{seconds / size:.0f} {name}"
    return f"{seconds:.0f} s"


def query(path: str, /, **values: object) -> str:
    """Return an address with its query; without what is None or empty.

    >>> query("/console/session", agent="a b", session="x/y", turn=None)
    '/console/session?agent=a+b&session=x%2Fy'
    """
    given = {name: value for name, value in values.items() if value not in (None, "")}
    return f"{path}?{urlencode(given)}" if given else path


_PICTURES: Final = {
    "dna": "DNA DOUBLE HELIX",
    "mail": "ENVELOPE",
    "email": "ENVELOPE",
    "search": "LEFT-POINTING MAGNIFYING GLASS",
    "file": "PAGE FACING UP",
    "folder": "FILE FOLDER",
    "database": "FILE CABINET",
    "globe": "GLOBE WITH MERIDIANS",
    "web": "GLOBE WITH MERIDIANS",
    "terminal": "PERSONAL COMPUTER",
    "shell": "PERSONAL COMPUTER",
    "settings": "GEAR",
    "chart": "BAR CHART",
    "user": "BUST IN SILHOUETTE",
    "clock": "ALARM CLOCK",
    "calculator": "ABACUS",
    "image": "FRAME WITH PICTURE",
    "music": "MUSICAL NOTE",
    "chat": "SPEECH BALLOON",
    "cloud": "CLOUD",
    "money": "MONEY BAG",
}
"""The pictures of names that icons commonly have, by their names in Unicode."""
_PICTURE_CHARACTERS: Final = 8


def picture_of(icon: str) -> str:
    """Return the picture that an icon is or names, or nothing: a word beside a label would be read as part of it.

    >>> picture_of("dna"), picture_of("hourglass"), picture_of("🪙"), picture_of("my-own-icon"), picture_of("dx")
    ('🧬', '⌛', '🪙', '', '')
    """
    bare = icon.strip()
    if bare and len(bare) <= _PICTURE_CHARACTERS and not any(character.isalnum() for character in bare):
        return bare if any(unicodedata.category(character) == "So" for character in bare) else ""
    name = bare.casefold()
    try:
        found = unicodedata.lookup(_PICTURES.get(name, name.replace("-", " ").replace("_", " ")).upper())
    except (KeyError, UnicodeError):
        return ""
    return found if len(found) == 1 and unicodedata.category(found) == "So" else ""


Theme = Literal["", "light", "dark"]
"""Nothing is what the system prefers."""
_COOKIE: Final = "pegboard_theme"
_YEAR: Final = 365 * 86_400


def theme_of(request: Request) -> Theme:
    """Return the theme that a browser has chosen."""
    match request.cookies.get(_COOKIE):
        case "light":
            return "light"
        case "dark":
            return "dark"
        case _:
            return ""


def keep_theme(request: Request, response: Response, theme: str) -> None:
    """Let a browser keep a theme; any other word is what its system prefers."""
    if theme in ("light", "dark"):
        secure = request.url.scheme == "https"
        response.set_cookie(
            _COOKIE, theme, path="/console", max_age=_YEAR, httponly=True, samesite="strict", secure=secure
        )
    else:
        response.delete_cookie(_COOKIE, path="/console")
