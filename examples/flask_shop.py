"""Flask: the engine runs on a thread beside the application, and views use its sync verbs.

flask --app flask_shop run          # a worker is part of the process; others may run `outlive worker flask_shop.py`

The store is what OUTLIVE_STORE names, else the file shop.db.
"""

import atexit
import os
import tempfile

from flask import Flask, Response, jsonify, request

import outlive


@outlive.step
def pay(item: str) -> str:
    """Charge the customer."""
    return f"paid for {item}"


@outlive.workflow
async def buy(item: str) -> str:
    """Sell one item."""
    return await pay(item)


def create_app(store: str = "") -> Flask:
    """The application on one store."""
    app = Flask(__name__)
    engine = outlive.Engine(store or os.environ.get("OUTLIVE_STORE", "sqlite:shop.db")).sync.__enter__()
    atexit.register(engine.__exit__, None, None, None)

    @app.put("/orders/<number>")
    def place(number: str) -> tuple[Response, int]:
        run = engine.start(buy, request.get_json()["item"], id=f"order-{number}")  # safe to repeat
        return jsonify(run=run.id), 202

    @app.get("/orders/<number>")
    def look(number: str) -> tuple[Response, int]:
        run = engine.get(f"order-{number}")
        try:
            return jsonify(result=run.result(timeout=10)), 200
        except outlive.errors.RunNotFoundError as error:
            return jsonify(error=str(error)), 404
        except outlive.errors.ResultTimeoutError:
            return jsonify(why=run.why()), 202

    return app


if __name__ == "__main__":
    folder = tempfile.TemporaryDirectory()
    atexit.register(folder.cleanup)  # what is registered first is called last: after the engine has left
    client = create_app(f"sqlite:{folder.name}/shop.db").test_client()
    print(client.put("/orders/1", json={"item": "a lamp"}).json)  # {'run': 'order-1'}
    print(client.get("/orders/1").json)  # {'result': 'paid for a lamp'}
