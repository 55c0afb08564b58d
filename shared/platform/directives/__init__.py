"""Directives: the instructions that models get, as texts that an operator or a tenant can replace.

They are resolved at every run, so a changed text needs no restart. The first text in this list counts:

1. what the tenant has set by the API, its newest version (`PUT /v1/directives/{name}`);
2. `<LOCI_DIRECTIVES_DIR>/<tenant>/<name>.md`, then `<LOCI_DIRECTIVES_DIR>/<name>.md`;
3. the built-in file next to this module.

A blank text counts as none at every step. Setting a blank one by the API therefore goes back to the
file; the history keeps the earlier versions. A run records the name and the version of its directive,
and the digest shows whether two runs used the same text.
"""
