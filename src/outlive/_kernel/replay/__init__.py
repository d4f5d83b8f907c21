"""The core without I/O: events in, commands out. No clock, no disk, no threads, no store."""
