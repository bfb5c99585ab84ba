"""The database of Agno's toolkits where the store is in memory."""

from pathlib import Path

from pegboard.sources.agno.databases import SharedDatabase


def test_the_end_of_one_transaction_does_not_undo_what_another_has_just_written() -> None:
    """G9: calls run in threads, each user's over a connection of its own."""
    from sqlalchemy import text

    database = SharedDatabase(None)
    engine = database.get().db_engine
    with engine.begin() as made:
        made.execute(text("CREATE TABLE kept (item)"))
    with engine.connect() as writer, engine.connect() as reader:
        writer.execute(text("INSERT INTO kept VALUES ('ring')"))
        reader.execute(text("SELECT * FROM kept"))
        reader.rollback()
        writer.commit()
    with engine.connect() as after:
        assert after.execute(text("SELECT item FROM kept")).scalars().all() == ["ring"]
    database.close()


def test_without_a_file_nothing_is_left_of_it() -> None:
    database = SharedDatabase(None)
    engine = database.get().db_engine
    assert engine.url.database
    file = Path(engine.url.database)
    assert file.exists()
    database.close()
    assert not file.parent.exists()
