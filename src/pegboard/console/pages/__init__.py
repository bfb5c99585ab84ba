"""One file per page: it reads, renders and takes forms."""
