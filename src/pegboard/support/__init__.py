"""What every layer may use: waiting, background work, threads, user folders. Imports nothing of Pegboard."""
