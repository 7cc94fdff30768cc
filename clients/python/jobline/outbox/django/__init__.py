"""The tables of this package as a Django app: `INSTALLED_APPS = [..., "jobline.outbox.django"]`.

`manage.py migrate` creates them, and `manage.py jobline_relay` pushes the rows. In a view:

    with transaction.atomic():
        order.save()
        outbox.push(connection, "orders", {"id": order.id})
"""
