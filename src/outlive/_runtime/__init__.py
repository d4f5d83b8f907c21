"""Motion: the worker and its services. Everything here runs on one event loop, the keeper's thread left aside."""
