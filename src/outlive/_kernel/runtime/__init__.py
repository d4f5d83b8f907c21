"""The worker and its services. Everything here runs on one event loop, but for the keeper and the watchdog."""
