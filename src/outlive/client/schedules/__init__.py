"""Schedules: what becomes of their ticks, and what people do with them.

The workers' scheduler (`outlive._runtime.services.scheduler`) and the verbs of `engine.schedules` write the same rows
in the same way: read a schedule, work out what it is to be, and write that together with the runs it starts, if no
other writer was first.
"""
