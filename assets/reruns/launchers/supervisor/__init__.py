"""The small program that stands over one worker on the machine with the GPU.

All launchers start the same supervisor: it runs the worker, holds the run directory's lock
while anything of the job lives, stops the whole process tree on a cancel request or past the
deadline, and writes down how the worker ended. It is the Python standard library only
(Python >= 3.10, Linux), because it travels as one zip file beside the worker to machines where
nothing of this project is installed. It knows nothing of launchers, requests or tables.

- `processes`: reading `/proc`, identity of a process, signals to a whole tree
- `run_directory`: the files of one run, their atomic writing, and what they say together
- `supervise`: running the worker, the deadline, the ladder INT, TERM, KILL
- `transfer`: a run or result directory as one tar stream, for `ssh`
- `command_line`: the sub-commands that launchers call
"""
