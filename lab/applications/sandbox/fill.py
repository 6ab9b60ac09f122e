"""Fills the shop: 1,000 products of made-up words in 20 categories, each with a price and enough stock."""

import os
import random
import sys

sys.dont_write_bytecode = True
os.environ["DJANGO_SETTINGS_MODULE"] = "settings"
import django

django.setup()
from django.core.management import call_command
from oscar.core.loading import get_model

PRODUCTS, CATEGORIES, WORDS = 1000, 20, 2000
STOCK = 10**6

call_command("migrate", verbosity=0)
call_command("collectstatic", interactive=False, verbosity=0)
Product, ProductClass, Category, ProductCategory = (
    get_model("catalogue", name) for name in ("Product", "ProductClass", "Category", "ProductCategory"))
Partner, StockRecord = get_model("partner", "Partner"), get_model("partner", "StockRecord")
Country = get_model("address", "Country")

random.seed(5)
Country.objects.create(iso_3166_1_a2="GB", printable_name="United Kingdom", name="United Kingdom", is_shipping_country=True)
Country.objects.create(iso_3166_1_a2="DE", printable_name="Germany", name="Germany", is_shipping_country=True)
books = ProductClass.objects.create(name="Books", slug="books")
partner = Partner.objects.create(name="Partner", code="partner")
categories = [Category.add_root(name=f"Category {number}") for number in range(1, CATEGORIES + 1)]
for number in range(1, PRODUCTS + 1):
    text = " ".join(f"word{random.randint(1, WORDS)}" for _ in range(100))
    product = Product.objects.create(
        title=f"Product {number}", product_class=books, structure=Product.STANDALONE, upc=f"u{number}", description=text)
    ProductCategory.objects.create(product=product, category=random.choice(categories))
    StockRecord.objects.create(
        product=product, partner=partner, partner_sku=f"s{number}", price=random.randint(5, 50), num_in_stock=STOCK)
call_command("rebuild_index", interactive=False, verbosity=0)
