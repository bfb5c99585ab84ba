"""The program that a plugin runs in: started by path, it constructs one plugin and answers for it.

What it imports every start of a process waits for: the protocol is written by hand, and no SDK is needed.
"""
