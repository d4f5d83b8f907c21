"""Documents of flows: from a text to a checked document, before anything runs.

*Reading* (`reading`, `positions`) makes plain JSON data of YAML 1.2 or JSON, and knows the line and column of every
value. *The model* (`model`, `validating`) gives the data its types. *Checking* (`checking`, `declarations`) finds what
a type cannot say: unknown steps, circles, expressions that cannot work. Everything that is wrong is reported at once
(`problems`).
"""
