"""The order and the run that handles it are one transaction: there is never one without the other."""

import json

from django.db import transaction
from django.http import HttpRequest, JsonResponse
from django.shortcuts import get_object_or_404
from django.views.decorators.csrf import csrf_exempt

from outlive.integrations import django as durable
from shop.models import Order
from shop.workflows import checkout


@csrf_exempt
def place(request: HttpRequest) -> JsonResponse:
    """Take an order."""
    wanted = json.loads(request.body)
    with transaction.atomic():
        order = Order.objects.create(item=wanted["item"])
        durable.start(checkout, order.pk, id=f"order-{order.pk}")
        if wanted.get("fails"):
            raise RuntimeError("something else went wrong: neither the order nor its run exist")
    return JsonResponse({"order": order.pk}, status=202)


def look(request: HttpRequest, number: int) -> JsonResponse:
    """How an order is."""
    order = get_object_or_404(Order, pk=number)
    run = durable.engine().get(f"order-{number}")
    return JsonResponse({"item": order.item, "receipt": order.receipt, "why": run.why()})
