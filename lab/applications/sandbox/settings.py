"""Settings of django-oscar like its sandbox's, on PostgreSQL: orders need no account, shipping is free, nobody pays.

In contrast to the sandbox: no debugging pages, no language prefixes, no mail is sent, and nginx serves the files."""

import os
import pathlib

from oscar.defaults import *  # noqa: F403

ROOT = pathlib.Path(os.environ["SANDBOX_ROOT"])
HOST, PORT = os.environ["BYWASH_POSTGRES"].split(":")
DEBUG = False
SECRET_KEY = "of a shop that nobody else reaches"
ALLOWED_HOSTS = ["127.0.0.1"]
DATABASES = {"default": {
    "ENGINE": "django.db.backends.postgresql", "NAME": "shop", "USER": "shop", "PASSWORD": "lab", "HOST": HOST, "PORT": PORT,
    "ATOMIC_REQUESTS": True, "CONN_MAX_AGE": 600}}
ROOT_URLCONF = "urls"
SITE_ID = 1
USE_TZ = True
TIME_ZONE = "UTC"
LANGUAGE_CODE = "en-gb"
DEFAULT_AUTO_FIELD = "django.db.models.BigAutoField"
EMAIL_BACKEND = "django.core.mail.backends.dummy.EmailBackend"
STATIC_URL, STATIC_ROOT = "/static/", ROOT / "static"
MEDIA_URL, MEDIA_ROOT = "/media/", ROOT / "media"
TEMPLATES = [{"BACKEND": "django.template.backends.django.DjangoTemplates", "APP_DIRS": True, "OPTIONS": {"context_processors": [
    "django.contrib.auth.context_processors.auth",
    "django.template.context_processors.request",
    "django.template.context_processors.i18n",
    "django.template.context_processors.media",
    "django.template.context_processors.static",
    "django.contrib.messages.context_processors.messages",
    "oscar.apps.search.context_processors.search_form",
    "oscar.apps.communication.notifications.context_processors.notifications",
    "oscar.apps.checkout.context_processors.checkout",
    "oscar.core.context_processors.metadata",
]}}]
MIDDLEWARE = [
    "django.middleware.security.SecurityMiddleware",
    "django.contrib.sessions.middleware.SessionMiddleware",
    "django.middleware.csrf.CsrfViewMiddleware",
    "django.middleware.clickjacking.XFrameOptionsMiddleware",
    "django.contrib.auth.middleware.AuthenticationMiddleware",
    "django.contrib.messages.middleware.MessageMiddleware",
    "django.contrib.flatpages.middleware.FlatpageFallbackMiddleware",
    "django.middleware.http.ConditionalGetMiddleware",
    "django.middleware.common.CommonMiddleware",
    "oscar.apps.basket.middleware.BasketMiddleware",
]
INSTALLED_APPS = [f"django.contrib.{name}" for name in (
    "admin", "auth", "contenttypes", "sessions", "messages", "staticfiles", "sites", "flatpages")] + ["oscar.config.Shop"] + [
    f"oscar.apps.{name}" for name in (
        "analytics.apps.AnalyticsConfig", "checkout.apps.CheckoutConfig", "address.apps.AddressConfig",
        "shipping.apps.ShippingConfig", "catalogue.apps.CatalogueConfig",
        "catalogue.reviews.apps.CatalogueReviewsConfig", "communication.apps.CommunicationConfig",
        "partner.apps.PartnerConfig", "basket.apps.BasketConfig", "payment.apps.PaymentConfig", "offer.apps.OfferConfig",
        "order.apps.OrderConfig", "customer.apps.CustomerConfig", "search.apps.SearchConfig", "voucher.apps.VoucherConfig",
        "wishlists.apps.WishlistsConfig", "dashboard.apps.DashboardConfig",
        "dashboard.reports.apps.ReportsDashboardConfig", "dashboard.users.apps.UsersDashboardConfig",
        "dashboard.orders.apps.OrdersDashboardConfig", "dashboard.catalogue.apps.CatalogueDashboardConfig",
        "dashboard.offers.apps.OffersDashboardConfig", "dashboard.partners.apps.PartnersDashboardConfig",
        "dashboard.pages.apps.PagesDashboardConfig", "dashboard.ranges.apps.RangesDashboardConfig",
        "dashboard.reviews.apps.ReviewsDashboardConfig", "dashboard.vouchers.apps.VouchersDashboardConfig",
        "dashboard.communications.apps.CommunicationsDashboardConfig",
        "dashboard.shipping.apps.ShippingDashboardConfig")] + [
    "widget_tweaks", "haystack", "treebeard", "sorl.thumbnail", "django_tables2"]
AUTHENTICATION_BACKENDS = ("oscar.apps.customer.auth_backends.EmailBackend", "django.contrib.auth.backends.ModelBackend")
HAYSTACK_CONNECTIONS = {"default": {
    "ENGINE": "haystack.backends.whoosh_backend.WhooshEngine", "PATH": str(ROOT / "index"), "INCLUDE_SPELLING": True}}
LOGGING = {"version": 1, "disable_existing_loggers": False, "handlers": {"console": {"class": "logging.StreamHandler"}},
           "root": {"level": "WARNING", "handlers": ["console"]}}
OSCAR_SHOP_TAGLINE = "Sandbox"
OSCAR_ALLOW_ANON_CHECKOUT = True
OSCAR_INITIAL_ORDER_STATUS = OSCAR_INITIAL_LINE_STATUS = "Pending"
