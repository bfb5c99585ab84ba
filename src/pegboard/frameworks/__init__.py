"""Agent frameworks: one file each, a session in the terms of the framework, imported by whoever uses it.

Each does five things: the tools of this step, every call through the session, policy and hints, approval, the end of
a turn.
"""
