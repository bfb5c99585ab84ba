"""Whether an approval counts for a call: for no other call, not twice, not too late (A2)."""

from dataclasses import fields, replace
from typing import Any

from hypothesis import given
from hypothesis import strategies as st

from pegboard.core.access.approvals.approval import Approval, Binding, counting_approval, why_mismatch
from pegboard.core.access.approvals.digests import canonical, definition_of, digest
from pegboard.core.model.tools import Confirmation, Frozen, Tool

CALL = Binding(
    principal="ada", agent="clerk", session="thread", tool="disk/wipe", definition="d", arguments="a", rules="r"
)
NOW = 1000.0
PARTS = [part.name for part in fields(Binding)]


def approval(**changed: Any) -> Approval:
    asked = Approval(
        id="1", tool="wipe", status="allowed", binding=CALL, asked=CALL.arguments, asked_at=0.0, expires_at=NOW + 1
    )
    return replace(asked, **changed)


def test_an_allowed_call_uses_its_approval() -> None:
    """A2: the same call, allowed and not expired."""
    assert counting_approval(CALL, [approval()], NOW) == approval()


@given(part=st.sampled_from(PARTS), value=st.text(), lasts=st.sampled_from(["once", "session", "always"]))
def test_an_altered_call_finds_no_approval(part: str, value: str, lasts: Any) -> None:
    """A2, MR103: whatever part differs; what lasts is for other arguments, and always for other sessions too."""
    other = replace(CALL, **{part: f"{getattr(CALL, part)}{value}-"})
    free = {"once": (), "session": ("arguments",), "always": ("arguments", "session")}[lasts]
    found = counting_approval(other, [approval(lasts=lasts)], NOW)
    assert found == (approval(lasts=lasts) if part in free else None)
    assert bool(why_mismatch(approval(lasts=lasts), other)) is (part not in free)


@given(
    status=st.sampled_from(["waiting", "allowed", "refused", "used", "expired"]),
    expires=st.one_of(st.none(), st.floats(0, 2000)),
    lasts=st.sampled_from(["once", "session", "always"]),
)
def test_only_what_is_allowed_and_in_time_lets_a_call_run(status: Any, expires: float | None, lasts: Any) -> None:
    """A2: a used one is not used again, an expired one does not count, a refused one refuses."""
    given_ = approval(status=status, expires_at=expires, lasts=lasts)
    late = expires is not None and expires <= NOW
    counts = status in ("waiting", "allowed", "refused") and not late
    assert counting_approval(CALL, [given_], NOW) == (given_ if counts else None)


def test_what_an_operator_allowed_for_longer_goes_first_and_the_newest_answer_counts() -> None:
    """A3: a standing approval is not used up, nor is a single one beside it."""
    standing, refused = approval(id="2", lasts="always", expires_at=None), approval(id="3", status="refused")
    assert counting_approval(CALL, [approval(), standing], NOW) == standing
    assert counting_approval(CALL, [refused, approval()], NOW) == refused
    assert counting_approval(CALL, [approval(), refused], NOW) == approval()


def test_a_digest_is_keyed_and_differs_with_every_part_of_a_definition() -> None:
    """A2: name, description, schema, annotations, and what a person does."""
    plain = Tool(plugin="disk", name="wipe", wire="wipe", description="Wipe.")
    schema = Frozen({"type": "object", "properties": {"path": {"type": "string"}}})
    others = [
        replace(plain, wire="wipes"),
        replace(plain, description="Wipe it."),
        replace(plain, input_schema=schema),
        replace(plain, annotations=Frozen({"readOnlyHint": True})),
        replace(plain, confirmation=Confirmation()),
        replace(plain, confirmation=Confirmation(hook=True)),
    ]
    texts = [canonical(definition_of(one)) for one in (plain, *others)]
    assert len({digest(b"key", text) for text in texts}) == len(texts)
    assert digest(b"key", texts[0]) != digest(b"other", texts[0])


@given(st.dictionaries(st.text(), st.integers() | st.text() | st.booleans(), max_size=5))
def test_the_order_of_arguments_does_not_matter_and_their_types_do(arguments: dict[str, Any]) -> None:
    """A2: `1`, `1.0`, `true` and `"1"` are four."""
    assert canonical(dict(reversed(arguments.items()))) == canonical(arguments)
    assert len({canonical({**arguments, "x": value}) for value in (1, 1.0, True, "1")}) == 4


def test_what_a_client_allowed_does_not_count_where_an_operator_has_to_answer() -> None:
    """A5: also what it allowed before the configuration said so; what it refused stays refused."""
    elicited = approval(elicited=True)
    assert counting_approval(CALL, [elicited], NOW) == elicited
    assert counting_approval(CALL, [elicited], NOW, "operator") is None
    assert counting_approval(CALL, [approval()], NOW, "operator") == approval()
    refused = replace(elicited, status="refused")
    assert counting_approval(CALL, [refused], NOW, "operator") == refused
    assert why_mismatch(elicited, CALL, "operator") == (
        "only an operator may answer it now, and this answer came from the user of the client"
    )
