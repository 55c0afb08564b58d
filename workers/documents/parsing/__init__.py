"""Read the text of a file, in a process of its own with limits of time and memory.

Files come from outside and their parsers are large, partly in C. So the process that runs them has no
settings and no secrets, can write no file, and may use only so much time and memory (`limits`). The worker
starts one for each file and stays what it is, whatever the file does to it (`run`). The content alone decides
what a file is (`detect`). Nothing is ever unpacked to the disk.
"""
