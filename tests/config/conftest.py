from pathlib import Path

import pytest
from config_support import Writer


@pytest.fixture
def writer(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> Writer:
    monkeypatch.chdir(tmp_path)
    return Writer(tmp_path)
