"""Runs a private django-oscar with the settings of its sandbox, behind nginx and gunicorn, on PostgreSQL."""

import os
import pathlib
import shutil
import subprocess

import stack

NAME = "oscar"
DATABASE = "postgres"
PRESET = "django"
SCENARIO = "lab/scenarios/application-oscar.toml"
GOAL = "orders"
TRANSACTIONS = "/basket/ /checkout/"
# The URLs that `scripts/applications classes` requests in addition to links, and the classes that URLs must have.
FORMS = ["/search/?q=word1"]
CLASSES = [
    (r"^/(\w+/)?search/", "search"),
    (r"^/basket/", "checkout"),
    (r"^/(\w+/)?catalogue/", "other"),
    (r"^/$", "other"),
]
WORKERS = 5  # two for each core and one more, as gunicorn recommends

HERE = pathlib.Path(__file__).resolve().parent / "sandbox"
PLACES = """
        location /static/ {{ alias {root}/static/; }}
        location /media/ {{ alias {root}/media/; }}
        location / {{
            proxy_pass http://unix:{root}/gunicorn.sock;
            proxy_set_header Host $http_host;
            proxy_set_header X-Forwarded-For $proxy_add_x_forwarded_for;
        }}
"""


def start(processes, root):
    """Starts the shop in the folder `root`. Returns its URL."""
    venv = pathlib.Path(os.environ["APPLICATIONS_VENV"])
    environment = os.environ | {"SANDBOX_ROOT": str(root), "PYTHONPATH": str(HERE)}
    for name in ("static", "media", "index"):
        shutil.rmtree(root / name, ignore_errors=True)
        (root / name).mkdir()
    subprocess.run([venv / "bin/python", HERE / "fill.py"], check=True, env=environment)
    listening = root / "gunicorn.sock"
    listening.unlink(missing_ok=True)
    processes.start(
        "gunicorn",
        [venv / "bin/gunicorn", "--workers", WORKERS, "--bind", f"unix:{listening}", "--chdir", HERE, "--umask", "0", "--no-control-socket",
         "oscar_wsgi:application"], listening.exists, env=environment)
    return stack.nginx(processes, root, PLACES.format(root=root))
