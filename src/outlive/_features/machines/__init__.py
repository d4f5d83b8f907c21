"""State machines: a front door, not a second engine.

A `Machine` is a workflow whose function is written by us: it goes from state to state on the run's own loop and asks
for steps, timers and children like any other workflow. So recovery, timelines, sagas, cancel and the test kit know
nothing special about it.

What the journal has of a machine
---------------------------------
*A state* is a step named `<machine>.<STATE>`. Its outcome holds the data after the handler and the next state together,
in one row: a transition is one event. That row (or `RunCreated`) names the state that is entered, so entering a state
is durable before its handler runs. A handler that raises changes nothing.

*A router* is pure, runs on the loop and leaves no event.

*A state that is more than one step* (workflow code, a split, a timer) is left with a `StateLeft` fact: the same outcome
in the same form. The states of a run can be read from these rows and nothing else.

*Data* goes from row to row as JSON and is decoded again for each handler, so two handlers never share an object. The
bytes that a handler is asked with are those of the row before, not the code's idea of them: a new field with a default
contradicts no journal.

*A snapshot* takes the place of all that came before it, now and then: between two states a machine is nothing but its
state, its data and what it would undo (`snapshots`).
"""

from outlive._kernel.feature import Feature

FEATURE = Feature(name="machines")
