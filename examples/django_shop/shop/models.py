"""What the shop keeps."""

from django.db import models


class Order(models.Model):
    """One order of one item."""

    item = models.CharField(max_length=100)
    receipt = models.CharField(max_length=100, default="")

    class Meta:
        app_label = "shop"
