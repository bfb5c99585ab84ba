"""Search of the web, of papers and of an encyclopedia."""

_PAPERS = {"1706.03762": "Attention Is All You Need", "2001.08361": "Scaling Laws for Neural Language Models"}


def duckduckgo_search(query: str, limit: int = 5) -> list[str]:
    """Search the web."""
    return [f"https://example.org/{query.replace(' ', '-')}/{n}" for n in range(1, limit + 1)]


def arxiv_search(query: str) -> dict[str, str]:
    """Search papers on arXiv."""
    return {
        number: title for number, title in _PAPERS.items() if any(w in title.lower() for w in query.lower().split())
    }


def arxiv_abstract(paper: str) -> str:
    """Read the abstract of a paper."""
    return f"We present {_PAPERS[paper]}."


DUCKDUCKGO = [duckduckgo_search]
ARXIV = (arxiv_search, arxiv_abstract)


class Wikipedia:
    """Look things up."""

    def wikipedia_search(self, query: str) -> list[str]:
        """Find articles."""
        return [query.title()]

    def wikipedia_page(self, title: str, language: str = "en") -> str:
        """Read an article."""
        return f"[{language}] {title} is a thing."
