"""Whatever is asked for, and whatever a tool says of itself, the answer is defined."""

from __future__ import annotations

import pytest

from pegboard.core.model.tools import Frozen
from search.making import among, names, office, ranked, tool

OFFICE = among(*office(1))
MIXED = "delete 删除 удалить मिटाएं حذف 삭제 ลบ διαγραφή löschen מחק the photo"


@pytest.mark.parametrize(
    "query", ["", "   \n\t", "?!…", "()[]{}*+\\|^$.", "\x00\x01\x02", "'; --", "\ud800", "🦓🦓🦓", "% {} ${}"]
)
def test_a_need_without_words_finds_nothing(query: str) -> None:
    """P3: and is no error."""
    ranking = ranked(query, OFFICE)
    assert ranking.hits == ()
    assert ranking.needs[0].fits == 0


def test_a_need_of_100_kb_is_read_at_both_ends() -> None:
    """P3: a paste does not hide what is asked before or after it."""
    paste = "lorem ipsum " * 9_000
    assert names(ranked(f"archive the photo. {paste}", OFFICE))[0] == "office0/archive_photo"
    assert names(ranked(f"{paste} archive the photo", OFFICE))[0] == "office0/archive_photo"


def test_a_word_of_100_kb_finds_nothing() -> None:
    """P3: and takes no time: nothing in it is looked for at every letter."""
    for letter in ("a", "9", "x.", "/a", "删", "'a", "a@"):
        ranked(letter * 50_000, OFFICE)


def test_ten_languages_in_one_need_find_what_the_words_say() -> None:
    """P3: the words that the catalog has count, the others do not hurt."""
    assert names(ranked(MIXED, OFFICE))[0] == "office0/delete_photo"


@pytest.mark.parametrize(
    ("description", "query"),
    [
        ("读取文件的内容", "读取文件"),
        ("ファイルを読み込む", "ファイルを読む"),
        ("อ่านเนื้อหาของไฟล์", "อ่านไฟล์"),
        ("파일의 내용을 읽습니다", "파일을 읽기"),
        ("Читает содержимое файла", "читает файл содержимое"),
        ("फ़ाइल की सामग्री पढ़ता है", "फ़ाइल सामग्री"),
        ("يقرأ محتوى الملف", "محتوى الملف"),
        ("Lit le contenu d'un fichier téléversé", "fichier televerse"),
        ("អានមាតិកាឯកសារ", "អានឯកសារ"),
        ("ဖိုင်ကိုဖတ်ပါ", "ဖိုင်ဖတ်"),
    ],
)
def test_a_tool_is_found_in_its_language(description: str, query: str) -> None:
    """P3: in scripts without spaces by overlapping pairs of letters, elsewhere by words without accents."""
    assert names(ranked(query, among(*office(1), tool("x", "qrst", description))))[0] == "x/qrst"


def test_a_thousand_needs_are_answered_within_the_limit() -> None:
    """P3: the first fifty are ranked, for each there is evidence."""
    ranking = ranked([f"archive photo {n}" for n in range(1_000)], OFFICE, limit=5)
    assert len(ranking.hits) == 5
    assert len(ranking.needs) == 1_000


def test_tools_without_texts_are_found_by_name() -> None:
    """P3: no description, no schema, or one that is not well formed."""
    odd = tool("x", "fly_kite")
    schemas = (
        {"properties": "none"},
        {"properties": {"a": 7, "b": {"enum": "x", "description": 3}}},
        {"items": []},
        {"properties": {"a": {"properties": {"b": {"items": {"properties": {}}}}}}},
    )
    kites = [
        tool("x", "fly_kite"),
        *(
            type(odd)(plugin=f"y{n}", name="fly_kite", wire=f"y{n}", input_schema=Frozen(schema))
            for n, schema in enumerate(schemas)
        ),
    ]
    assert len(names(ranked("fly_kite", among(*kites), limit=9))) == 5


def test_a_megabyte_of_description_does_not_profit() -> None:
    """P3: only its beginning is read, and the longer a text, the less a word in it counts."""
    stuffed = tool("x", "notes", "archive the photo " * 60_000)
    assert names(ranked("archive the photo", among(*office(1), stuffed)))[0] == "office0/archive_photo"


def test_ten_thousand_equal_tools_stand_in_their_order() -> None:
    """P3: a tool that says something else is still found."""
    same = [tool(f"p{n}", "fetch_page", "Fetch a page.") for n in range(10_000)]
    within = among(*same, tool("z", "web", "Fetch a printed page."))
    found = names(ranked("please fetch a page", within, limit=4))
    assert found == ["p0/fetch_page", "p1/fetch_page", "z/web", "p2/fetch_page"]


def test_nothing_is_found_in_an_empty_catalog() -> None:
    """P3: nor is it an error."""
    assert ranked("archive", among()).hits == ()
