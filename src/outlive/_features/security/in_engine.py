"""Keys and tokens in an engine."""

from outlive._kernel.in_engine import InEngine
from outlive._model.cells import Cells
from outlive.client.keys import KEY_CELLS
from outlive.client.run_tokens import TOKEN_CELLS, left_of_token

IN_ENGINE = InEngine(
    cells=(
        Cells(name=KEY_CELLS, holds="an API key, by its id", verb="key.change"),
        Cells(name=TOKEN_CELLS, holds="a token for one run, by its id", verb="token.change", left=left_of_token),
    )
)
