"""Tools of LangChain as plugins."""
