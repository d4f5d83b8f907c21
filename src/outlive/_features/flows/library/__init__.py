"""The library of flows in a store: documents, their revisions, and what people do with them."""
