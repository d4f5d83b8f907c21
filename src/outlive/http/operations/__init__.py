"""The operations of the API, by resource. Importing this declares all of them."""

from outlive.http.operations import document, follow, health, runs, verbs, workflows

__all__ = ["document", "follow", "health", "runs", "verbs", "workflows"]
