"""`outlive dev`: a worker that follows the code as it is written, with the API and the dashboard beside it.

place        what a person names: programs, documents and folders of flows, and the store beside them
watch        which files count, and whether one of them has changed
message      what the two processes tell each other
child        the worker process: imports the program, waits for `GO`, and works
parked       runs that were parked because of the code: they are tried again with the new one
process      the same process, seen from outside
supervisor   starts the next worker process when a file changes or the last one has ended
session      the whole: store, server, supervisor, and the end of all of them

There are two processes. The first one has the server and imports nothing of the user's, so the dashboard answers while
the program is broken, blocks its event loop or is killed. The second one is the worker. After a change the next worker
process imports the program while the last one still works. It takes over only if the import has succeeded, so a mistake
in a file costs nothing but the message. No run notices: to the store this is a worker that stops and another that
starts.
"""
