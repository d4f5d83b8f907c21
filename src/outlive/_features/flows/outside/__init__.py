"""The world outside of flows: requests, programs, blobs and secrets, and what the settings of the operator allow."""
