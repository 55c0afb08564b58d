"""Directives: what models are told to do, as texts that an operator or a tenant can replace.

Looked for at every run, so a changed text needs no restart. The first that is there counts:

1. what the tenant has set by the API, its newest version (`PUT /v1/directives/{name}`);
2. `<LOCI_DIRECTIVES_DIR>/<tenant>/<name>.md`, then `<LOCI_DIRECTIVES_DIR>/<name>.md`;
3. the one beside this module.

A blank text at any step means "not here": setting a blank one by the API goes back to the file,
and the history keeps what stood before. A run writes down the name and the version that it
followed, and the digest tells whether two runs followed the same words.
"""
