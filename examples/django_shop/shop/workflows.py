"""What happens to an order. Django imports this module when it starts."""

import outlive
from outlive.integrations import django as durable
from shop.models import Order


@durable.step
def charge(number: int) -> str:
    """With the number of the order as key, a payment service would charge it once."""
    order = Order.objects.get(pk=number)
    order.receipt = f"receipt for {order.item}"
    order.save(update_fields=["receipt"])
    return order.receipt


@outlive.workflow
async def checkout(number: int) -> str:
    """Charge an order."""
    return await charge(number)
