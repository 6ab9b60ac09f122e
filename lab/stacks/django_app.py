"""A plain async view of Django for `stacks`, under uvicorn, that works in small steps."""

import asyncio

from django.conf import settings
from django.core.asgi import get_asgi_application
from django.http import HttpResponse
from django.urls import path
from observer import tell

settings.configure(ALLOWED_HOSTS=["*"], ROOT_URLCONF=__name__, SECRET_KEY="of a test")


async def work(request, name):
    try:
        for _ in range(40):
            tell(name, "step")
            await asyncio.sleep(0.02)
    except asyncio.CancelledError:
        tell(name, "told")
        raise
    tell(name, "done")
    return HttpResponse("done")


urlpatterns = [path("plain/<name>", work)]
app = get_asgi_application()
