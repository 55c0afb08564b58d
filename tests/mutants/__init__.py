"""Mutants of the modules that guard something: a broken guard must make a test fail.

`make mutants` changes one place of a module at a time in a copy of the project and runs that module's
tests. A mutant that no test notices has survived: either a test is missing, or the place does nothing.
Which modules and which tests is in `guards.toml`.
"""
