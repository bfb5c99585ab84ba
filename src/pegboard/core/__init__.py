"""Pure decisions: may it, is it loaded, what does the model see. Standard library only; all others may import it."""
