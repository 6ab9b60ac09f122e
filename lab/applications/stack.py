"""Runs private servers on loopback for the stock applications: nginx, PHP-FPM, fcgiwrap.

They are the distribution's, except for folders, ports and sockets. There are no timed jobs."""

import getpass
import os
import pathlib
import shutil

from bywash_lab.network import free_port, listens
from bywash_lab.reports import fail

CHILDREN = 20  # processes of PHP-FPM or fcgiwrap
USER = "www-data"

NGINX = """
daemon off;
user {user};
worker_processes auto;
pid {root}/nginx.pid;
error_log {root}/nginx.log;
events {{ worker_connections 4096; }}
http {{
    include /etc/nginx/mime.types;
    log_format timed '$remote_addr - $remote_user [$time_local] "$request" $status $body_bytes_sent '
                     '"$http_referer" "$http_user_agent" rt=$request_time urt=$upstream_response_time';
    access_log {root}/access.log timed;
    client_body_temp_path {root}/nginx-body; proxy_temp_path {root}/nginx-proxy; fastcgi_temp_path {root}/nginx-fastcgi;
    uwsgi_temp_path {root}/nginx-uwsgi; scgi_temp_path {root}/nginx-scgi;
    sendfile on;
    server {{
        listen 127.0.0.1:{port};
{places}
    }}
}}
"""
FPM = """
[global]
daemonize = no
error_log = {root}/fpm.log
[site]
{owner}
listen = {root}/fpm.sock
pm = static
pm.max_children = {children}
clear_env = no
"""
# Debian's /etc/nginx/snippets/fastcgi-php.conf, with our socket and the gateway's name of the request.
PHP = """
        location ~ \\.php(/|$) {{
            fastcgi_split_path_info ^(.+?\\.php)(/.*)$;
            try_files $fastcgi_script_name =404;
            set $path_info $fastcgi_path_info;
            include /etc/nginx/fastcgi_params;
            fastcgi_param PATH_INFO $path_info;
            fastcgi_param SCRIPT_FILENAME $document_root$fastcgi_script_name;
            fastcgi_param BYWASH_REQUEST $http_bywash_request;
            fastcgi_pass unix:{root}/fpm.sock;
        }}
"""


def nginx(processes, root, places):
    """Starts nginx with the locations `places`. Returns its URL."""
    port = free_port()
    user = USER if os.getuid() == 0 else f"# not root: as {getpass.getuser()}"
    (root / "nginx.conf").write_text(NGINX.format(root=root, port=port, places=places, user=user))
    processes.start("nginx", ["nginx", "-c", root / "nginx.conf"], lambda: listens(port))
    return f"http://127.0.0.1:{port}"


def php(processes, root, pages, rest, **more):
    """Starts PHP-FPM and nginx in front of the folder `pages`. `rest` has nginx's locations, `more` goes to the
    process of PHP-FPM. Returns their URL."""
    fpm = max(pathlib.Path("/usr/sbin").glob("php-fpm*"), default=None)
    if fpm is None:
        fail("PHP-FPM is not installed")
    owner = f"user = {USER}\ngroup = {USER}\nlisten.owner = {USER}\nlisten.group = {USER}" if os.getuid() == 0 else ""
    (root / "fpm.conf").write_text(FPM.format(root=root, owner=owner, children=CHILDREN))
    socket_path = root / "fpm.sock"
    socket_path.unlink(missing_ok=True)
    processes.start("fpm", [fpm, "--fpm-config", root / "fpm.conf"], socket_path.exists, **more)
    return nginx(processes, root, f"        root {pages};\n        index index.php;\n{rest}" + PHP.format(root=root))


def cgi(processes, root, places):
    """Starts fcgiwrap, which runs CGI programs, and nginx with the locations `places`. Returns their URL."""
    socket_path = root / "cgi.sock"
    socket_path.unlink(missing_ok=True)
    # nginx, which has given up root, must be able to open the socket.
    ready = lambda: socket_path.exists() and (os.chmod(socket_path, 0o666) or True)
    processes.start("cgi", ["fcgiwrap", "-f", "-c", CHILDREN, "-s", f"unix:{socket_path}"], ready)
    return nginx(processes, root, places)


def copy(package, pages):
    """Copies the pages of a package into the folder `pages`. Symbolic links in them lead to the files of other packages."""
    shutil.rmtree(pages, ignore_errors=True)
    shutil.copytree(package, pages, ignore_dangling_symlinks=True)
