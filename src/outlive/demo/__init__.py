"""`outlive demo`: real workers on one SQLite file, one of them killed in the middle of its work, and the proof.

orders      the shop, as a user would write it: start reading here
world       the outside world: what was really done, in a file that no engine touches
worker      one worker process
fleet       the worker processes, started, killed and cleaned up
killing     a kill -9 that hits a worker in the middle of a charge
story       what happens in which order
screen      what is shown meanwhile
ledger      was every order right? from the world, the journals and the results
open_shop   what goes on afterwards, for a person who stays: orders come in, and workers can be killed
site        the dashboard with one page more, for that
views/      that page
"""
