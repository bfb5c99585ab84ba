"""Resources, prompts and completions of servers, for one session. For the board and the gateway."""
