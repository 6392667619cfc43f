"""The resident supervisor: pid 1 of a sandbox.

It is copied next to the sandbox's system and started by the system's own interpreter with `-I -S`, so it uses
nothing but built-in and C modules of the standard library: what `json`, `socket`, `signal` and `enum` cost to
import is more than the rest of a sandbox's start.
"""
