# SPDX-License-Identifier: GPL-2.0-only OR BSD-2-Clause
"""The program that scripts/demo profiles: an imaginary shop that works through orders.

Two workers take orders from a queue and parse, check, price, pack and bill them; a third thread keeps statistics. The
work is real Python of the kinds a service does (JSON, regular expressions, recursion, sorting, hashing), spread over
some functions, so that the profile has a shape but no surprise: pack_box is the slowest part. Ends by itself after a
minute (PBP_LIMIT seconds).
"""
import hashlib
import json
import os
import queue
import random
import re
import signal
import threading
import time

signal.alarm(int(os.environ.get("PBP_LIMIT", "60")))

CITIES = ["Oslo", "Tallinn", "Lisboa", "Graz", "Gdańsk", "Brno", "Cork", "Turku"]
POSTCODE = re.compile(r"^(?P<country>[A-Z]{2})-(?P<number>\d{4,6})$")
EMAIL = re.compile(r"^[a-z0-9.+_-]+@[a-z0-9-]+(\.[a-z0-9-]+)+$")
totals = {}


class Order:
    def __init__(self, data):
        self.id = data["id"]
        self.city = data["city"]
        self.email = data["email"]
        self.postcode = data["postcode"]
        self.items = data["items"]

    def price(self):
        total = 0
        for item in self.items:
            discount = 10 if item["count"] >= 5 else 0
            total += item["count"] * item["cents"] * (100 - discount) // 100
        return total


def incoming(number):
    items = [{"name": "item-%d" % random.randrange(1000), "count": random.randint(1, 9),
              "cents": random.randint(99, 9999), "grams": random.randint(50, 4000)} for _ in range(12)]
    return json.dumps({"id": number, "city": random.choice(CITIES), "email": "customer.%d@shop.example" % number,
                       "postcode": "EE-%d" % random.randrange(1000, 999999), "items": items})


def parse_order(text):
    return Order(json.loads(text))


def check_order(order):
    match = POSTCODE.match(order.postcode)
    return bool(match and match.group("country") == "EE" and EMAIL.match(order.email))


def pack_box(weights, room):
    """The heaviest load that fits: plain recursion, each item in or out."""
    if not weights or room <= 0:
        return 0
    without = pack_box(weights[1:], room)
    if weights[0] > room:
        return without
    return max(without, weights[0] + pack_box(weights[1:], room - weights[0]))


def bill(order, cents):
    lines = ["%-12s %3d x %8.2f" % (i["name"], i["count"], i["cents"] / 100)
             for i in sorted(order.items, key=lambda i: i["cents"], reverse=True)]
    lines.append("total %.2f" % (cents / 100))
    text = "\n".join(lines)
    return hashlib.sha256(text.encode()).hexdigest()


def handle(text):
    order = parse_order(text)
    if not check_order(order):
        return
    cents = order.price()
    pack_box([i["grams"] for i in order.items[:7]], 5000)
    bill(order, cents)
    totals[order.city] = totals.get(order.city, 0) + cents


def worker():
    while True:
        handle(orders.get())


def statistics():
    while True:
        time.sleep(0.05)
        sorted(list(totals.items()), key=lambda item: -item[1])


orders = queue.Queue(maxsize=100)
for name in ("worker-1", "worker-2"):
    threading.Thread(target=worker, name=name, daemon=True).start()
threading.Thread(target=statistics, name="statistics", daemon=True).start()
print("ready", flush=True)
number = 0
while True:
    number += 1
    orders.put(incoming(number))
