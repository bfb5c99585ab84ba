"""Words of texts and requests: cut, stemmed, and without what says nothing."""
