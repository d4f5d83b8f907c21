"""Documents of other systems, made into flows. Only `outlive.flow` and the commands know this folder."""
