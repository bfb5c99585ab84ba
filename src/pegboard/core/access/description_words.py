"""What descriptions say when they speak to a model: the words and phrases that are looked for (A4).

A phrase is a line of words that follow each other, with at most three others between two of them and no end of a
sentence. ``a|b`` is either, ``word*`` every word that begins so, ``+word`` follows at once. ``{NAME}`` stands for a
list of :data:`LISTS`.
"""

from __future__ import annotations

from collections.abc import Mapping
from typing import Final

LISTS: Final[Mapping[str, str]] = {
    "AI": "assistant|assistants|llm|llms|ai|claude|chatgpt|gpt|copilot|gemini",
    "CALL": "call|calling|use|using|invoke|invoking|run|running|execute|executing|consult",
    "CHAT": "conversation*|chat|dialog*|transcript|messages|prompt|prompts|reasoning|thoughts|instructions",
    "DROP": "ignor*|disregard*|forget|overrid*|bypass*|overrul*|supersed*|neglect*|discard",
    "DROP_ROMANCE": "ignor*|oubli*|olvid*|esquec*|dimentic*",
    "EARLIER": "previous*|prior|above|earlier|preceding|all|any|other|your|existing|former|every",
    "GIVE": "include|pass|send|copy|attach|append|put|paste|insert|forward|provide|write|record|repeat|upload|add|fill",
    "KEY": "api|access|private|ssh|secret|auth|session|bearer",
    "KEYS": "key|keys|token|tokens",
    "MAIL": "mail|mails|email*|message*|payment*|transfer*",
    "ORDERS": "instruct*|prompt|prompts|rules|guideline*|directive*|guardrail*|safeguard*|safety|constraints",
    "ORDERS_ROMANCE": "instruc*|istruz*|consigne*|reglas|regras|ordenes|regles",
    "SECRET": "password*|credential*|secrets|passphrase*|cookies|passwd",
    "TAKE": "read|extract|collect|gather|include|send|copy|attach|append|dump|harvest|insert|paste|put|forward|upload"
    "|leak|exfiltrat*|steal|search|locate|grab",
    "TELL": "tell*|mention*|inform*|notify*|reveal*|disclos*|alert*|warn*|say|saying|show|showing|ask|asking|explain*"
    "|discuss*|acknowledg*",
    "TOOL": "tool|tools|function|functions|server|servers|plugin|plugins|connector*",
    "USER": "user|users|user's|human|humans|person|anyone|anybody|operator|customer",
    "WHOLE": "entire|full|whole|complete|all|verbatim|current|previous|prior|user's|your|exact|raw|original|every|last",
    "WHOSE": "user's|users|user|your|any|all|their|every|stored|saved|found|his|her",
}

INSTRUCTIONS: Final[Mapping[str, tuple[str, ...]]] = {
    "tells the model to put aside what it was told": (
        "{DROP} {EARLIER} {ORDERS}",
        "{DROP} everything|anything|what told|said|before|above|instructed",
        "do|must +not follow|obey previous|prior|your|other|system|earlier {ORDERS}",
        "ignorier*|vergiss vorherig*|bisherig*|vorangegangen*|alle|obigen anweisung*|regeln|instruktion*",
        "{DROP_ROMANCE} {ORDERS_ROMANCE} precedent*|anterior*|anterieur*|previ*",
        "{DROP_ROMANCE} toutes|todas|tutte|precedenti {ORDERS_ROMANCE}",
        "игнорир*|забудь* предыдущ*|прежн*|все инструкц*|указани*|правил*",
    ),
    "tells the model to keep something from the user": (
        "never|without|don't|dont {TELL} {USER}",
        "do|must|should +not {TELL} {USER}",
        "do|must|should +not mention|reveal|disclose tool|step|instruction*|file|action",
        "never|don't mention|reveal|disclose this|that tool|step|instruction*|file|action",
        "{USER} must|should|need|does|will not|never|n't know|see|notice|learn|aware|told|informed",
        "{USER} doesn't|shouldn't|mustn't|won't|needn't|cannot need|know|see|notice|learn",
        "keep|hide|conceal secret|hidden|from|confidential|private {USER}",
        "keep this|it|that secret|hidden|confidential",
        "silently|secretly|quietly|covertly|discreetly {CALL}",
        "silently|secretly|quietly|covertly|discreetly {GIVE}|read|add",
        "sag*|erwahn*|verrat* nutzer|benutzer|anwender nicht*",
        "no|ne|nao|non diga*|digas|dis|dites|menciones|mentionne*|conte|dire|informes usuario|utilisateur|utente",
    ),
    "tells the model when and in what order to use tools": (
        "before|prior|after any|every|each|all|other {TOOL}|response|answer|reply",
        "before {CALL} any|other|another|every {TOOL}",
        "always|first|must|required {CALL} +this|it {TOOL}|first|before",
        "{TOOL} must|should|has|needs be|is called|used|invoked|run|executed first|before|always|every|each",
        "instead of|instead other|any|calling|using {TOOL}",
        "do|must|should +not {CALL} other|any|another {TOOL}",
        "never|don't|avoid|stop {CALL} other|any|another {TOOL}",
        "prefer*|prioriti*|favor* this over|above|to other|others|any|all",
        "every|each|all|any|subsequent|future|later +tool call|calls|response|responses|invocation*",
        "when|whenever|if other|another|any +tool|tools is|are called|used|invoked|run",
    ),
    "speaks to the model about what it is or must do": (
        "you +are +now",
        "you +are a|an|the ai|assistant|llm|agent|model|bot",
        "as a|an ai|llm +assistant|model|agent|language you",
        "from +now +on",
        "your new|updated|real|actual|true|first|primary instruct*|task|goal|objective|role|mission|directive*",
        "developer|god|jailbreak|unrestricted|dan +mode",
        "system|admin|administrator|developer|security|priority +override|directive",
        "note|attention|notice|important|reminder +to|for {AI}|model|agent",
        "{AI} +must|shall|should|always|never",
        "the|any|every +model|agent|assistant +must|shall|always|never {CALL}|{GIVE}|read|tell|mention",
        "you +must|shall|should|have|need|always {CALL}|read|open|fetch|send tool|tools|function|functions|file|files",
        "you +must|always|never obey|comply|follow",
        "do|don't +not|ask wait|ask|request|seek|for|require confirmation|permission|approval|consent",
        "without ask*|request*|wait*|seek*|requir* confirmation|permission|approval|consent",
    ),
    "sends what passes through somewhere else": (
        "bcc|cc|forward|redirect|exfiltrat*|upload|send|post|report|copy|mirror|route to|at|with link",
        "all|every|any|each {MAIL} must|should|shall|always be|to|go sent|forwarded|routed|redirected|copied|go",
        "change|replace|set|switch recipient|payee|address|destination to|with link",
        "send|forward|post copy|content|contents|data|results|everything to link",
    ),
}
"""What is said to the model, with the phrases that say it. ``link`` stands for an address of the web or of mail."""

SECRETS: Final[Mapping[str, tuple[str, ...]]] = {
    "asks for secrets": (
        "{TAKE} {WHOSE} {SECRET}",
        "{TAKE} {WHOSE} {KEY} +{KEYS}",
        "{TAKE} environment|env +variable*|vars",
        "ask|request|prompt|obtain|get {WHOSE} {SECRET}",
        "ask|request|prompt|obtain|get {WHOSE} {KEY} +{KEYS}",
        "{TAKE} contents|content|value|values {SECRET}",
        "{TAKE} seed|recovery|wallet +phrase|key|keys",
    ),
}
"""Requests for secrets; files that hold some are :data:`SECRET_FILES`."""

CONVERSATIONS: Final[Mapping[str, tuple[str, ...]]] = {
    "asks for the conversation, or for what the model was told": (
        "{GIVE} {WHOLE} {CHAT}",
        "{GIVE} {WHOLE} context|history tokens|window|conversation|chat|far|above",
        "{GIVE}|contents system +prompt|message|instructions",
        "your +system +prompt|message|instructions",
        "conversation|chat|message|dialog|call|calls|tool +history|log|transcript {GIVE}|far|verbatim|here",
        "everything|all|what user +said|says|wrote|typed|asked",
        "chain +of +thought",
    ),
}

ARGUMENTS: Final = frozenset(
    {
        "calls history", "chain of thought", "chat history", "conversation history", "full conversation",
        "full context", "message history", "previous messages", "system prompt", "tool call history", "tool calls",
        "user messages",
    }
)  # fmt: skip
"""Names of arguments that models fill with what was said, whatever their descriptions say."""

SECRET_FILES: Final[Mapping[str, str]] = {
    ".": r"\.(?:(?:ssh|netrc|npmrc|pypirc|pgpass|gnupg|git-credentials|(?:bash|zsh)_history)\b"
    r"|(?:aws|kube|cursor|azure|docker[/\\]config|config[/\\]gcloud)[/\\]|(?<![\w)\]]\.)env\b(?![.\w]))",
    "id_": r"id_(?:rsa|dsa|ecdsa|ed25519)\b",
    "mcp": r"mcp(?:_config|_settings|-config)?\.json\b",
    "claude_desktop_config": r"claude_desktop_config",
    "/etc/": r"/etc/(?:passwd|shadow|sudoers)\b",
    "/proc/": r"/proc/\w{1,9}/environ\b",
    "wallet.dat": r"wallet\.dat\b",
    "keychain": r"login\.keychain",
    "cookies.sqlite": r"cookies\.sqlite\b",
}
"""Files that hold secrets, or what clients start; each with what any text has that names one."""

_SPEAKER: Final = (
    r"\s{0,8}(?:#{1,6} ?)?(?:system|assistant|developer)(?: (?:message|prompt|note|instructions?|override))?\s?:"
)
TAGS: Final[Mapping[str, str]] = {
    "<": r"<(?:\s{0,3}/?\s{0,3}(?:important|system|instructions?|secret|hidden|prompt|assistant|admin|critical|"
    r"attention|system[_-](?:prompt|message|reminder|note)|developer|rules?|override|priority)\b[^<>\n]{0,40}>"
    r"|\|[a-z_]{1,20}\|>|<\s?sys\s?>>|!--)",
    "[": r"\[/?(?:inst|system|sys|important|hidden)\]",
    ":": rf"\n{_SPEAKER}|\A{_SPEAKER}",
    "令": r"[忽无無忘](?:略|视|視|记|れ)[^。\n]{0,12}指令",
    "示": r"[忽无無忘](?:略|视|視|记|れ)[^。\n]{0,12}[指提]示",
    "用户": r"[不请別别](?:要|勿)?[^。\n]{0,6}(?:告诉|告知|提及)[^。\n]{0,4}用户",
}
"""What marks a text as one for the model, or is said without blanks; each with what any text has that does so."""
