"""What people mean by everyday words: the words that tools use for it, and whether something is to be read or written.

A line of the table has words and phrases of requests, a colon, and words of tools; it goes on in lines that begin with
two spaces. `*` ends the beginning of a word, `..` is up to five words, and a value of a request, such as a path or the
key of an issue, stands there as its kind in brackets. The words of tools are added to a request, so that they count
only where what may be found has them.
"""

from __future__ import annotations

import re
from collections.abc import Mapping, Sequence
from dataclasses import dataclass
from functools import lru_cache
from itertools import chain, pairwise
from typing import Final, Literal

from pegboard.search.analysis.words import words

Intent = Literal["read", "write", ""]

_TABLE: Final = """
<url>, website, web page, webpage, web site, homepage, tl dr, article, site at, blog post, internetseite, page web,
  pagina web: fetch url page browser navigate
<url>: fetch
read <url>, summar* <url>, say .. <url>, steht .. <url>, html, gist of, contents of <url>: fetch url
click, press, tap, button, buttons, checkbox, dropdown, scroll down: browser click page element
form, sign up, fill .. in, fill in, fill out, put my details, register me, apply for: browser fill form type
goes blank, stay blank, stays blank, blank page, console, behind the scenes, javascript error*,
  errors .. page: browser console messages
calls .. site, requests .. page, requests .. site, network, come back 500, status 500, api call*,
  what does it load: browser network requests
screenshot, picture of how, how .. looks, looks on a phone, how would .. look, capture: browser screenshot take
dark mode, print view, reduced motion: browser emulate media screenshot
on a phone, mobile view, small screen, tablet: browser resize screenshot
cookie banner, cookies, accept cookies: browser click
thats open, that s open, open right now, current page, this page, on the page: browser snapshot page
tab, tabs, browser window: browser tabs
go back, previous page: browser navigate back
log in to, sign in to, log me in: browser fill form
hover, drag: browser hover drag
upload .. photo, upload .. file, attach .. to the form: browser file upload
dialog, popup, pop up, alert box: browser handle dialog

folder*, directory, ordner, dossier, carpeta, cartella, pasta: directory folder files list
<path>, file, files, datei*, fichier*, archivo*, downloads, documents, desktop folder, on my disk: file files path
where did i put, where did i save, where is .. file, find .. under <path>, somewhere under,
  somewhere in <path>: search files start
take .. space, biggest, largest files, how big, disk nearly full, disk full, size of: directory sizes list size
say in <path>, what does .. <path> say, whats in <path>, inhalt, what is in <path>, read .. <path>,
  open <path>: read file
mentions, mention*, every place, everywhere, shows up, occurrences, contains the word,
  which files contain: search start content files
<path> to <path>, rename*, call it .. instead, move .. <path>: move file rename
should be .. instead of, fix that line, change .. line, typo, replace .. with, edit .. <path>,
  in <path> the: edit file block
verschieb*, mover, mueve, deplacer, deplace, sposta: move
umbenenn*, renombra*, renommer, rinomina: rename move
tree, structure of, whats inside, overview of .. folder: directory tree
folders .. get at, may you access, allowed to see, which folders can you: allowed directories list
when was .. changed, last changed, last modified, who owns the file: get file info
make a .. folder, new folder, neuen ordner: create directory
save this as, write .. to <path>, put this in <path>, write down in <path>: write file
picture at <path>, image at <path>, photo at <path>, jpg, png: read media file

commit*, committed, log of changes, history of changes: git commit log
last commits, commit history, commits of, who changed, changed things, who wrote, wer hat: git log commits show
save my work, check in my, record my changes: git commit add
modified, uncommitted, working tree, not committed, changed files, havent saved,
  since the last commit: git status diff unstaged
staged, stage, for the next commit, next commit: git add staged diff
wrong files .. commit, take .. out again, unstage, undo the add: git reset
untracked, files are .. modified, staged or: git status
to the index, in the index: git diff staged
branch*, zweig*, ramo, line of work, rama: git branch
start a .. branch, line of work: git create branch
switch to, go to the branch, check out: git checkout
differ, difference between .. branch, compare .. branch: git diff
<sha>: git show commit revision diff
stash, rebase, cherry pick, merge conflict: git
repo, repository, <repo>: repository repo owner github
pull request*, merge request*, pr <number>, prs, pr: pull request github
checks pass, ci, build pass*, pipeline, green: pull request status checks
which files .. pull request, files .. pr: pull request files
merge <number>, merge it, merge the: merge pull request
review*, approve .. pr: pull request review
open source, quelloffen*, codigo abierto, logiciel libre, libraries for: github repositories search
fork, starred, stars, own copy of <repo>: repository fork
readme, readme of, file .. <repo>, source of: get file contents github
under issue, comment on issue, answer under, reply under, comment .. issue: issue comment add github
report .. <repo>, report .. problem, file a bug, open an issue, bug report, report a bug, raise an issue,
  problem at <repo>: create issue github
close issue, close number, reopen: update issue github
nobody has looked at, waiting for review: pull requests list reviews
who uses, code that calls, code search, search the code: search code github

<db>, sqlite: sqlite query tables database
postgres*, warehouse, database, datenbank, base de datos, sql, production db,
  base de donnees: database query table schema
how many .. table, how many customers, how many orders, how many .. have, average, per month, revenue, total of,
  count of, top customers: query sql read select
customers, orders, products, invoices, users, loans, refunds, payments, rows: query table
columns, spalten, fields of the table, column types, data type: describe table columns schema
which tables, what tables, one of the tables, where do we keep: list tables
schemas: list schemas
mark .. as, set the .. to, change .. in <db>, update the row, correct the entry, set .. price,
  als verkauft: write update query execute
add a column, add column, drop the column, alter: execute query table
keep track of, i want to keep, want to collect, place to keep, new table: create table
delete .. from the, remove all .. older than: execute write query delete

remember*, remembered, erinner*, recuerda*, souviens, ricorda*, merk*, gemerkt, memoriza*,
  lembra*: memory entities observations graph
remember that, note that, keep in mind, merk dir, dont forget that,
  for next time: memory add observations create entities
what do you .. know about, did i ever tell you, do you remember, have i told you, know about me, about me,
  what do you know, whats noted, noted for, pull up .. noted: memory search nodes open graph
forget, vergiss, olvida, oublie, dimentica, esquece: memory delete observations entities
forget everything about, forget all about: memory delete entities
everything you .. remembered, everything you know, alles uber mich, all you know,
  tout ce que tu sais: memory read graph
is married to, works for, is the sister of, belongs to, reports to: memory create relations

pod, pods, cluster, namespace, kubernetes, k8s, kubectl, deployment*, replicas, ingress, in prod, in staging,
  in production: kubernetes kubectl
arent running, not running, not ready, pending, crashing, crash loop, crashloop*,
  sale de pending: kubectl get describe
why .. pod, why .. pending, events of the pod, eventos, ereignisse: kubectl describe get
has printed, service .. printed, logs of .. service, printed in the last, service on the cluster: kubectl logs
nodes, machines make up, machines in the cluster, machines .. ready, cluster nodes: kubectl get nodes
copies, scale, instances of, replicas, bring .. up to <number>, more instances,
  double the: kubectl scale replicas patch
bring back .. before, roll back, rollback, undo the deploy*, previous version, go back to the one before,
  the one before, last good version: kubectl rollout
restart the deployment, rollout: kubectl rollout
which cluster, switch .. cluster, context: kubectl context
helm, chart release, install .. chart: helm install chart upgrade
forward .. port, reach .. locally: port forward
what fields, what does the <word> field mean, api resource*: explain resource list api resources
drain, cordon, maintenance .. node: node management

container, containers, contenedor*, conteneur*: docker container
docker: docker container image
which containers, running containers, containers are: docker container list
fall over, fell over, went down, died, why did .. stop, container .. say, container .. print, printed,
  crashed last night: docker container logs inspect
isnt answering, give it a kick, hangs again, is stuck, turn it off and on: docker container restart
which port, on which port, mounted, monte, which image, ip of the container, environment of: docker container inspect
shut .. down, stop the container, halt the container: docker container stop
bring .. container back, start the container, start .. again: docker container start
docker version, docker disk, docker itself: docker system info version

notion: notion page
my page, todo page, to do page, page about, page called, plan page, reading list, wiki, roadmap page, workspace,
  recipe page: notion page search
where did i put the page, find my page, find the page, page called: notion post search
commented on, comments on, anybody commented: notion comment retrieve
leave a remark, leave a comment, comment on the page, remark on: notion create comment
put .. into my page, put the notes, add to my page, append to, into my <word> page,
  add .. to the page: notion append block children page update markdown
new page, nueva pagina, neue seite, nouvelle page, pagina nueva, pagina nova: notion post page create
should sit under, move the page, under archive: notion move page
whats on my, what does my page say, text of the page, read my page: notion retrieve page markdown
entries in my <word> database, rows .. notion, table in notion: notion query data source
seite, pagina: page

cpu, memory usage, ram, eating all my, slowing my computer, task manager, programs .. running: list processes
script, program running, still running, started still: process list sessions output
printed until now, what has it printed, its output: read process output
run .. pytest, run the tests, run this, run the command, execute, terminal, shell, npm, pip install, command line,
  compile, build the project: start process command terminal
pdf: pdf write
kill, force quit, end the program: kill process terminate
what did you do on my computer, steps .. you, what have you done, what you typed: recent tool calls
your settings, your configuration, how are you set up: get config
answer the prompt, type .. into the program, send .. to the running: interact process

<xlsx>, spreadsheet*, workbook, excel, kalkulation: excel workbook sheet range
sheet, sheets, cell, cells, tabelle, hoja, feuille, <cell>: excel sheet range
what sheets, which sheets, sheets are in, tabs are in, what is in <xlsx>, whats in <xlsx>: describe workbook
total in, value in, whats in <cell>, totals in, <cell> to <cell>, numbers in <xlsx>: read range
where .. number comes from, comes from, ref, shows #ref, wrong formula: trace formula
which rows, in which rows, appear in <xlsx>, look for .. <xlsx>: find cells read range
bar chart, line chart, pie chart, chart, graph of, diagramm, plot: create chart excel
colour .. red, color .. red, highlight, traffic light, every .. below, every .. above: conditional format add
bold, font, background, borders, width of: format range
pick, dropdown list, only be able to, allow only, valid values: data validation add
doubles, duplicates, twice, throw out, trim, upper case: transform range
pivot: pivot table create
formula, sum of, sum up: excel formula range write
put .. into <cell>, write .. into <cell>, enter .. in <cell>: write range
sort by, sort .. <xlsx>, sortier*: sort range
filter .. <xlsx>, slicer: slicer add
new workbook, new spreadsheet, make a spreadsheet: create workbook
new sheet, add a sheet, another tab: create sheet
note to .. cell, note on .. cell: set note
insert .. row, insert .. column, add a row, add rows: insert rows columns
as csv, to csv, export: export csv workbook
from .. csv, import: import csv

what time, time is it, current time, wie spat, quelle heure, que hora, que horas, che ora, already tomorrow,
  is it already, time now, asleep, wie viel uhr, can i still call, too late to call: current time get timezone
<time> .. time, when is that for me, whats that in, whats that for me, pacific, eastern, gmt, utc, cet,
  time difference, convert .. time, son las <time>, <time> .. where, for me in: convert time timezone
timezone, time zone, zeitzone: timezone time convert

who won, news, strike, latest on, what happened, headline*, anything new, neues, nouvelles, noticias: web search news
restaurant*, near me, near, open on, cafe*, shops near, hotel*, pharmacy, bakery, doctor near, opening hours of,
  around here: local search place
pictures of, photos of, images of, bilder von, fotos de, photos de, what does .. look like: image search
video*, videos, clip*, tutorial on: video search
look up, google, search the web, search online, on the internet, find out, suche im netz, such im internet,
  is it true: web search
weather, wetter, recipe for, how do i, how to, what is the best, best time, best, cheapest, meilleur*, mejor,
  migliore, melhor: web search
好, 视频: video search
图片: image search
搜索, 查, 为什么, 怎么: web search
时间, 几点: current time
文件: file
邮件: email search
日历, 会议, 日程: calendar event list
天气: web search

mail*, email*, e mail, inbox, newsletter*, unread, spam, posteingang, correo*, courriel, posta, post automatisch,
  bandeja: email mail
did .. answer, did .. reply, did .. write, has .. answered, has .. replied, any answer from, wrote me, write back,
  anything from .. about, hat .. geantwortet: search emails read
mails from, mail from, emails from, email about: search emails
what does the mail say, read me the mail, whats in the mail: read email
write to <email>, write to, tell <email>, let .. know, send <word> a, schreib <email>, answer <email>: send email
dont send it yet, look at it first, prepare a mail, entwurf, draft: draft email
<email>: email to recipient
rules sort, regeln sortieren, regeln, filter rules, is there a rule, rule that, regel: list filters email
skip the inbox, from now on .. mails, everything from <email>, always go to, automatically: create filter email
into a folder called, label*, put all the newsletters, archive the, mark .. as read, als gelesen,
  star: email label modify batch
labels: list email labels
attachment*, anhang, pdf .. mail, in the mail from, piece jointe: download attachment email
delete .. mails, throw away .. mails, bin the mail: delete email batch

calendar, kalender, calendario, agenda, appointement*, appointment*, meeting*, standup, dentist, invite*,
  weekly with, termin*, rendez vous, cita, retro, gesprach, haircut, reunion: calendar event events
my week, minha semana, meine woche, ma semaine, mi semana, my day, what do i have, on my plate today, heute vor,
  this week, next week .. planned: calendar list events
am i free, bin ich frei, free on, busy, free time, have time, slot, zeit am, libre el: calendar freebusy
when is my next, next appointment, when is my, when do i see, wann ist, cuando es mi: calendar search events list
book .. minutes, book me, schedule a, book a meeting, set up a meeting, put in my calendar, remind me,
  every <word> at, eintragen: create event calendar
move the standup, move the meeting, reschedule, postpone, push the, to half past, verschieb .. uhr, von .. auf,
  mueve la reunion, one hour later, earlier: update event calendar
cancel the meeting, cancel my, sag .. ab, call off: delete event calendar
cant make, decline, accept the invitation, rsvp, zusagen, absagen, say yes to the: respond event
which calendars, calendars do i have: list calendars
colour of the event, colors of events: list colors

slack, <channel>, channel, channels, canal*, canali, kanal*, dm: slack channel
did people say, say in <channel>, what was said, going on in, latest in <channel>, talked about in,
  read up on <channel>: channel history slack
which channels, quali canali, what channels, list of channels, welche kanale: slack list channels
tell everybody, tell everyone, post .. in, post to, announce, let the team know, let everyone know, tell the team,
  say in <channel> that, write in <channel>: post message slack
thumbs up, emoji, react, heart: reaction add slack
answer my question in, thread, replies to, anybody answer: slack thread replies get
reply in the thread, answer in the thread: slack reply thread
job title, who is <word>, phone number she, colleague, teammate, who works here,
  members of our: slack user profile users

<issue>: jira issue get key
ticket*, sprint*, backlog, epic, story points, jira, board, vorgang: jira issue
about and who has it, what is <issue>, who has it, whats <issue>, status of <issue>, tell me about <issue>,
  assigned to: jira get issue
bugs in the, open bugs, still open, which bugs, open tickets, on my plate in project, tickets .. waiting, due date,
  in project: jira search issues project
sit in, been sitting, how long .. <issue>, time in status, waiting for customer,
  when did <issue>: jira issue dates sla
what changed in <issue>, history of <issue>: changelogs batch
log .. hours, log time, worked on, spent .. on, put down .. on <issue>, <number> h .. <issue>, 2h, 30m,
  book .. hours on: jira add worklog
who .. notified, who watches, watching: jira issue watchers
set <issue> to, to done, move <issue> to, mark <issue>, <issue> is done, close <issue>,
  reopen <issue>: jira transition issue
link <issue>, blocks <issue>, <issue> .. blocks, duplicate of: jira create issue link
assign <issue>, give <issue> to, hand <issue>: jira assign issue update
comment on <issue>, under <issue>, add to <issue>, write .. <issue>: jira add comment
new ticket, make a ticket, create a ticket, open a ticket, neues ticket: jira create issue
whats in the sprint, current sprint, in this sprint: jira sprint issues get
next sprint, put .. sprint: jira add issues sprint
boards, which boards: jira agile boards get
which projects, projects do we have: jira all projects get
release*, version* .. project: jira version project versions
attachment of <issue>, files on <issue>: jira download attachments

crash*, exception*, stack trace*, stacktrace, sentry, errors in our, errors an hour, production errors, error rate,
  errors in .. minutes, throwing errors: sentry issue errors events
slowest, slow, performance, response time, takes so long, loading time: sentry transactions slow top
slow queries, slow database, database queries: sentry slow db queries
going up, increase*, spike, trend, since monday, over time: events timeseries
let me know when, alert me, notify me when, throws more than, warn me when, warn .. as soon as,
  as soon as there are more than, tell me if, page me: create alert metric
which alerts, alerts do we have: list alerts
mute, snooze, silence, stop shouting: update monitor alert
nightly, cron, job shouts, check in*, didnt run, backup job: monitor sentry
release, deployed version, since the release, new version .. errors: sentry release
details of the crash, details of the error, more on the crash: sentry get issue
resolve the error, mark .. resolved, ignore the error: update issue sentry

show, zeig*, mostra, muestra, montre, list me, was sind, welche, quali, cuales, quels, quais: list get
anlegen, erstell*, crea, crear, cree, creer, cria, criar, neu* anlegen, new, create, make a new: create
losch*, elimina*, supprime*, borra*, cancella, apaga, strip, discard, purge, wipe, trash, get rid of: delete remove
schick*, envia*, envoie*, invia, manda*: send
such*, busca*, cherche*, cerca, trova, find, where is, procura: search find
les*, lis, lee, leggi, was steht, what does it say, scritto: read
stopp*, anhalten, detener, arrete*, ferma, parar: stop
start*, neustart*, reinicia*, redemarre*: start restart
change, ander*, cambia*, modifie*, andere, muda: update
"""

_VALUES: Final = (
    ("url", ":.", re.compile(r"https?://\S+|www\.\S+")),
    ("email", "@", re.compile(r"[\w.+-]{1,64}@[\w-]{1,64}(?:\.[\w-]{1,64})+")),
    ("channel", "#", re.compile(r"(?<![\w&])#[a-z][\w-]{1,40}\b")),
    ("xlsx", ".", re.compile(r"[\w./~-]{1,200}\.(?:xlsx|xls|xlsm|ods|csv)\b", re.IGNORECASE)),
    ("db", ".", re.compile(r"[\w./~-]{1,200}\.(?:db|sqlite3?)\b", re.IGNORECASE)),
    ("issue", "-", re.compile(r"\b[A-Z][A-Z0-9]{1,9}-\d{1,6}\b(?!-)")),
    ("path", "/.", re.compile(r"(?<![\w/])(?:~|\.{1,2})?/[\w./-]{2,200}|(?<![\w/.])[\w-]{1,64}\.[a-z]{2,4}\b")),
    ("repo", "/", re.compile(r"(?<![\w/.~@])[a-z][\w.-]{1,40}/[a-z][\w.-]{1,60}(?![\w/])", re.IGNORECASE)),
    ("sha", "", re.compile(r"\b(?=[0-9a-f]*\d)(?=[0-9a-f]*[a-f])[0-9a-f]{7,40}\b")),
    ("cell", "", re.compile(r"\b[A-Z]{1,2}\d{1,4}(?::[A-Z]{1,2}\d{1,4})?\b")),
    ("time", "", re.compile(r"\b\d{1,2}:\d{2}\b|\b\d{1,2}\s?[ap]m\b", re.IGNORECASE)),
    ("number", "", re.compile(r"\b\d+\b")),
)
"""Kinds of values, the most telling first: each replaces what its pattern matches.

The second text has the characters of which one is in every match; it is empty where a digit is.
"""
_DIGIT: Final = re.compile(r"\d")
ONE_WORD, SEVERAL = 0.7, 1.0
"""How much the words of tools count that one word, or a phrase, stands for."""
_ANY: Final = "<word>"
_GAP: Final = ".."
MOST_BETWEEN: Final = 5
"""How many words a gap in a phrase may be."""
_ITEM: Final = re.compile(r"<\w+>|[^\s<>]+")

_QUESTION_WORDS_WITHIN: Final = """
what which who whom whose why how whats hows whos welche welcher welches wer warum quel quelle quels quelles combien
pourquoi cual cuales cuantos quien quali quale quanto chi
"""
_QUESTION_WORDS: Final = f"""
{_QUESTION_WORDS_WITHIN}
when where is are am was were do does did has have had any anything wheres wie wo wann gibt que ou quand donde cuando
como por hay quando dove come
"""
_POLITE_WORDS: Final = """
please can could would will you pls hey hi hello ok okay so and now just kindly bitte kannst du konntest puedes podrias
peux tu puoi i we ich need want to like d
"""
_READING_VERBS: Final = """
show list find search look see read get check give display view summarize summarise explain describe count compare
fetch print inspect verify zeig zeige finde suche lies muestra busca lee montre cherche lis mostra cerca leggi liste
dime sag tldr
"""
_WRITING_VERBS: Final = """
add create make new write send post delete remove set change update edit rename move copy put save store remember
forget log book schedule invite cancel start stop restart run kill close open mark assign merge push commit fill click
type press turn leave shut throw choose clean wipe note notify install deploy scale roll bring reply answer report
file upload share archive label mute react approve reject insert append draw colour color highlight replace fix undo
convert clear empty erstelle erstell lege losche loesch losch schick schicke sende verschieb verschiebe benenne andere
stopp stoppe starte merk buche crea elimina borra envia mueve cambia anade cree supprime envoie deplace ajoute modifie
cancella invia sposta aggiungi
"""
_COURTESIES: Final = """
thanks thank thx sorry apologies awesome amazing great cool nice perfect lovely brilliant wonderful excellent wow haha
lol congrats congratulations cheers welcome danke entschuldigung gracias perdon merci pardon grazie scusa obrigado
obrigada desculpa
"""
LONGEST_COURTESY: Final = 7
"""A longer text that begins with thanks or praise may ask for something behind it."""
LONGEST_WORD: Final = 40
"""The first word of a courtesy ends within so many characters."""
_TO_WHOM: Final = {"tell": frozenset(("me", "us")), "sag": frozenset(("mir", "uns"))}
"""Verbs that ask for something before these words, and say something to others before any other."""
_QUESTIONS, _ASKS, _POLITE, _READS, _WRITES, _COURTEOUS = (
    frozenset(text.split())
    for text in (_QUESTION_WORDS, _QUESTION_WORDS_WITHIN, _POLITE_WORDS, _READING_VERBS, _WRITING_VERBS, _COURTESIES)
)


@dataclass(frozen=True, slots=True)
class _Phrase:
    items: tuple[str, ...]
    means: dict[str, float]


def _items(text: str) -> tuple[str, ...]:
    found: list[str] = []
    for item in _ITEM.findall(text):
        if item.startswith("<") or item == _GAP:
            found.append(item)
        elif item.endswith("*"):
            found.append(f"{''.join(words(item[:-1]))}*")
        else:
            found += words(item)
    return tuple(found)


def _phrases() -> tuple[Mapping[str, Sequence[_Phrase]], Mapping[str, Sequence[_Phrase]]]:
    """Return the phrases by their first word, and those whose first is the beginning of a word."""
    whole: dict[str, list[_Phrase]] = {}
    begun: dict[str, list[_Phrase]] = {}
    for line in _TABLE.strip().replace("\n  ", " ").splitlines():
        asked, _, meant = line.partition(":")
        for text in asked.split(",") if line else ():
            if items := _items(text):
                first = items[0]
                known = begun.setdefault(first[:-1], []) if first.endswith("*") else whole.setdefault(first, [])
                weight = ONE_WORD if len(items) == 1 else SEVERAL
                known.append(_Phrase(items, dict.fromkeys(meant.split(), weight)))
    return whole, begun


_WHOLE, _BEGUN = _phrases()
_SHORTEST, _LONGEST = min(map(len, _BEGUN)), max(map(len, _BEGUN))


def with_kinds(text: str) -> list[str]:
    """Return the words of a text, in lower case, with the kind of each value in its place.

    >>> with_kinds("Move ~/a.txt to #ops")
    ['move', '<path>', 'to', '<channel>']
    """
    found: list[str] = []
    digits = _DIGIT.search(text) is not None
    for name, signs, pattern in _VALUES:
        if any(sign in text for sign in signs) if signs else digits:
            text = pattern.sub(f" \x00{name}\x00 ", text)
    for at, part in enumerate(text.split("\x00")):
        found += [f"<{part}>"] if at % 2 else words(part)
    return found


def meant_words(text: str) -> Mapping[str, float]:
    """Return the words of tools that the everyday words of a text stand for, each with how much it counts.

    >>> meant_words("which files are modified")["diff"]
    0.7
    """
    tokens = with_kinds(text)
    words_alone: dict[str, float] = {}
    of_phrases: dict[str, float] = {}
    for at, token in enumerate(tokens):
        alone, phrases = _begun_by(token)
        words_alone |= alone
        for phrase in phrases:
            if _fits(phrase.items[1:], tokens, at + 1):
                of_phrases |= phrase.means
    return words_alone | of_phrases


@lru_cache(maxsize=4_096)
def _begun_by(token: str) -> tuple[Mapping[str, float], Sequence[_Phrase]]:
    """Return what a word means alone, and the phrases that begin with it."""
    starts = (token[:length] for length in range(_SHORTEST, min(len(token), _LONGEST) + 1))
    found = (*_WHOLE.get(token, ()), *chain.from_iterable(_BEGUN.get(start, ()) for start in starts))
    alone: dict[str, float] = {}
    for phrase in found:
        if len(phrase.items) == 1:
            alone |= phrase.means
    return alone, [phrase for phrase in found if len(phrase.items) > 1]


def _fits(items: Sequence[str], tokens: Sequence[str], at: int) -> bool:
    """Return whether a phrase stands in a text from a place on."""
    for number, item in enumerate(items):
        if item == _GAP:
            rest, last = items[number + 1 :], min(len(tokens), at + MOST_BETWEEN + 1)
            return any(_fits(rest, tokens, place) for place in range(at, last))
        if at >= len(tokens) or not _is(item, tokens[at]):
            return False
        at += 1
    return True


def _is(item: str, token: str) -> bool:
    return item in (token, _ANY) or (item.endswith("*") and token.startswith(item[:-1]))


def intent_of(text: str) -> Intent:
    """Return whether a request is one to read or to write something; nothing where it does not say.

    >>> intent_of("which files are modified"), intent_of("please rename it"), intent_of("the roof")
    ('read', 'write', '')
    """
    tokens = words(text[:1_000])
    asked = next((at for at, token in enumerate(tokens) if token not in _POLITE), None)
    if asked is None:
        return ""
    if tokens[asked] in _QUESTIONS:
        return "read"
    pairs = list(pairwise([*tokens[asked:], ""]))
    begins = _verb_intent(*pairs[0])
    if begins or "?" in text:
        return begins or "read"
    for one, after in pairs:
        if intent := "read" if one in _ASKS else _verb_intent(one, after):
            return intent
    return ""


def _verb_intent(word: str, after: str) -> Intent:
    """Return what a word asks for before another one: to tell others something writes, and so does to get rid of it."""
    if word in _TO_WHOM:
        return "read" if after in _TO_WHOM[word] else "write"
    if word == "get" and after in ("rid", "it"):
        return "write"
    return "read" if word in _READS else "write" if word in _WRITES else ""


def is_courtesy(text: str) -> bool:
    """Return whether a text is thanks, praise or an apology and nothing else.

    >>> is_courtesy("sorry for the late reply"), is_courtesy("thanks, now mail it to ada@b.org")
    (True, False)
    """
    if not _COURTEOUS.intersection(words(text.lstrip()[:LONGEST_WORD])):
        return False
    tokens = with_kinds(text[:1_000])
    return (
        0 < len(tokens) <= LONGEST_COURTESY
        and tokens[0] in _COURTEOUS
        and not any(token.startswith("<") for token in tokens)
    )
