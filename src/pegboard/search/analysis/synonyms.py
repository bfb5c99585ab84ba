"""Words that tools and requests use for the same thing."""

from __future__ import annotations

from collections.abc import Mapping
from typing import Final

from pegboard.search.analysis.words import stem

_CLASSES: Final = """
get fetch retrieve obtain read show display view look see check find search query lookup
list enumerate show
create add new make insert generate register set
delete remove cancel drop clear erase
update modify edit change adjust alter
send post deliver share forward
calculate compute determine
start launch run execute begin
stop end terminate halt finish
verify validate check confirm
convert translate transform
copy duplicate clone
store save
attach upload
book reserve
buy purchase order
move transfer
rank rate rating
plan schedule
remind reminder
picture photo image
movie film
song music track
car vehicle
price cost
directory folder
message text
appointment meeting
illness disease
doctor physician
company firm business
employee staff
job position employment
student pupil
city town location place
address location
distance far
near nearby nearest closest
user account
log login
phone mobile
hotel accommodation
travel trip
flight fly
weather forecast
temperature hot cold
recipe dish food
email mail
website site url web page
document file
calendar schedule agenda
note memo
error failure issue bug problem
log history record
metric statistic
summary overview
merge combine join
split divide
sort order
compare diff
enable activate
disable deactivate
approve accept
reject decline deny
group team
comment reply
label tag category
publish release
restore recover
backup snapshot
describe detail information
largest max maximum biggest highest
smallest min minimum lowest
average mean
sum total
count number
route direction navigate navigation
monitor watch track
estimate predict
definition meaning
child kid
speed velocity
money currency
chat conversation
identifier id
profile account
permission access right
"""


def _table() -> Mapping[str, tuple[str, ...]]:
    table: dict[str, set[str]] = {}
    for line in _CLASSES.strip().splitlines():
        stems = {stem(word) for word in line.split()}
        for one in stems:
            table.setdefault(one, set()).update(stems - {one})
    return {one: tuple(sorted(others)) for one, others in table.items()}


SYNONYMS: Final = _table()
"""The stems that may stand for a stem."""
