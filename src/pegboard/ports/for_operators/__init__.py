"""What only operators ask for; imported when the first of them does, since every start would pay for it."""
