//! The configuration of each program, all with the same meaning.
//!
//! Each configuration has one worker, keep-alive on both sides, ten seconds for a request head, and
//! no logs. A comparison is fair only if all programs do the same work, so their configurations are
//! next to each other in one source file.

use super::{Front, Ports, Setup, Task};
use std::path::Path;

/// The number of concurrent requests from which on a limit is omitted from the configuration of a
/// peer. No measurement reaches this number.
const NO_LIMIT: u32 = 1024;

/// File name of the socket of bywash's admin listener, in the proxy's folder.
pub const ADMIN: &str = "admin.sock";

pub(super) fn bywash(task: Task, setup: &Setup, ports: Ports, folder: &Path) -> String {
    let Ports { http, https, upstream } = ports;
    let admin = folder.join(ADMIN).display().to_string();
    let (limit, waiting) = match task {
        Task::Forward { limit } => (limit, setup.waiting),
        Task::Refuse => (1, Some(1)),
    };
    let capacity = waiting.map(|n| format!("\ncapacity = {n}")).unwrap_or_default();
    let (listen, tls) = match setup.front {
        Front::Http1 | Front::Http2 => (String::new(), String::new()),
        Front::Tls => {
            let file = |name: &str| folder.join(name).display().to_string();
            let (certificate, key) = (file("certificate.pem"), file("key.pem"));
            let files = format!("[tls]\ncertificates = [\"{certificate}\"]\nkeys = [\"{key}\"]\n");
            (format!("https = \"127.0.0.1:{https}\"\n"), files)
        }
    };
    let Setup { connections, response_timeout, .. } = setup;
    let log = setup.access_log.as_ref().map_or("off".into(), |file| file.display().to_string());
    format!(
        r#"version = 1
mode = "enforce"
[listen]
http = "127.0.0.1:{http}"
{listen}admin = "unix:{admin}"
workers = 1
{tls}[upstream]
server = "http://127.0.0.1:{upstream}"
limit = {limit}
connect_timeout = "5s"
response_timeout = "{response_timeout}s"
[scheduler]
policy = "session-first"{capacity}
[client_limits]
connections = {connections}
[log]
access = "{log}"
"#
    )
}

/// Returns HAProxy's configuration.
///
/// `http-reuse always` is right because all requests here are alike. Without it, HAProxy opens a
/// connection for a client's first request, and may notice during that time that the client has
/// left. This would reduce the number of ghosts (requests that start although the client has left),
/// but would need one connection per client. With `idle-close-on-response`, HAProxy answers one
/// more request on each connection during a reload.
pub(super) fn haproxy(task: Task, setup: &Setup, ports: Ports, folder: &Path) -> String {
    let (port, upstream) = (ports.of(setup.front), ports.upstream);
    let (refusal, maxconn) = match task {
        Task::Refuse => (
            "\n    http-request return status 503 content-type text/plain \
             string \"overloaded\" hdr Retry-After 2",
            String::new(),
        ),
        Task::Forward { limit: NO_LIMIT.. } => ("", String::new()),
        Task::Forward { limit } => ("", format!(" maxconn {limit}")),
    };
    let bind = match setup.front {
        Front::Http1 => String::new(),
        Front::Http2 => " proto h2".into(),
        Front::Tls => {
            format!(" ssl crt {} alpn http/1.1", folder.join("both.pem").display())
        }
    };
    let Setup { connections, response_timeout, .. } = setup;
    format!(
        "global
    maxconn {connections}
    nbthread 1
defaults
    mode http
    option abortonclose
    option idle-close-on-response
    http-reuse always
    retries 0
    timeout connect 5s
    timeout client 60s
    timeout http-request 10s
    timeout http-keep-alive 60s
    timeout server {response_timeout}s
    timeout queue 60s
frontend fe
    bind 127.0.0.1:{port}{bind}{refusal}
    default_backend app
backend app
    server s1 127.0.0.1:{upstream}{maxconn}
"
    )
}

/// Returns nginx's configuration. `master_process off` makes nginx a single process, so no worker
/// outlives the process that the harness started.
pub(super) fn nginx(task: Task, setup: &Setup, ports: Ports, folder: &Path) -> String {
    let (port, upstream) = (ports.of(setup.front), ports.upstream);
    let dir = folder.display();
    let location = match task {
        Task::Forward { .. } => {
            "proxy_http_version 1.1; proxy_set_header Connection \"\"; \
             proxy_next_upstream off; proxy_pass http://app;"
        }
        Task::Refuse => {
            "default_type text/plain; add_header Retry-After 2 always; return 503 overloaded;"
        }
    };
    let (listen, tls) = match setup.front {
        Front::Http1 => ("", String::new()),
        Front::Http2 => (" http2", String::new()),
        Front::Tls => {
            let files = "ssl_protocols TLSv1.3; ssl_certificate {dir}/certificate.pem; \
                         ssl_certificate_key {dir}/key.pem;";
            (" ssl", files.replace("{dir}", &dir.to_string()))
        }
    };
    // A proxied request uses two of nginx's connections.
    let connections = setup.connections * 2;
    let response_timeout = setup.response_timeout;
    format!(
        "daemon off; master_process off; pid {dir}/nginx.pid; error_log stderr warn;
events {{ worker_connections {connections}; }}
http {{
    access_log off;
    client_body_temp_path {dir}/b; proxy_temp_path {dir}/p; fastcgi_temp_path {dir}/f;
    uwsgi_temp_path {dir}/u; scgi_temp_path {dir}/s;
    keepalive_requests 1000000000; client_header_timeout 10s;
    proxy_read_timeout {response_timeout}s;
    upstream app {{
        server 127.0.0.1:{upstream} max_fails=0;
        keepalive 1024; keepalive_requests 1000000000;
    }}
    server {{
        listen 127.0.0.1:{port}{listen} backlog=4096; {tls}
        location / {{ {location} }}
    }}
}}
"
    )
}

/// Returns Envoy's configuration. Waiting requests are `pending` in Envoy's connection pool. The
/// text is JSON, which is also valid YAML.
pub(super) fn envoy(task: Task, setup: &Setup, ports: Ports, folder: &Path) -> String {
    let limit = match task {
        Task::Forward { limit } => limit,
        Task::Refuse => NO_LIMIT,
    };
    let listener = serde_json::json!({
        "address": address(ports.of(setup.front)),
        "filter_chains": [envoy_chain(task, setup, folder)],
    });
    let cluster = serde_json::json!({
        "name": "app", "type": "STATIC", "connect_timeout": "5s",
        "circuit_breakers": { "thresholds": [{
            "max_connections": limit, "max_requests": 100_000, "max_pending_requests": 100_000,
        }] },
        "load_assignment": { "cluster_name": "app", "endpoints": [
            { "lb_endpoints": [{ "endpoint": { "address": address(ports.upstream) } }] },
        ] },
    });
    let whole = serde_json::json!({
        "static_resources": { "listeners": [listener], "clusters": [cluster] },
    });
    whole.to_string()
}

fn address(port: u16) -> serde_json::Value {
    serde_json::json!({ "socket_address": { "address": "127.0.0.1", "port_value": port } })
}

const ENVOY: &str = "type.googleapis.com/envoy.extensions";

fn envoy_chain(task: Task, setup: &Setup, folder: &Path) -> serde_json::Value {
    let mut route = serde_json::json!({ "match": { "prefix": "/" } });
    match task {
        Task::Forward { .. } => {
            let timeout = format!("{}s", setup.response_timeout);
            route["route"] = serde_json::json!({ "cluster": "app", "timeout": timeout });
        }
        Task::Refuse => {
            let body = serde_json::json!({ "inline_string": "overloaded" });
            route["direct_response"] = serde_json::json!({ "status": 503, "body": body });
            let header = serde_json::json!({ "key": "Retry-After", "value": "2" });
            route["response_headers_to_add"] = serde_json::json!([{ "header": header }]);
        }
    }
    let router = format!("{ENVOY}.filters.http.router.v3.Router");
    let manager = serde_json::json!({
        "@type": format!("{ENVOY}.filters.network.http_connection_manager.v3.HttpConnectionManager"),
        "stat_prefix": "fe", "codec_type": "AUTO", "request_headers_timeout": "10s",
        "route_config": { "virtual_hosts": [
            { "name": "all", "domains": ["*"], "routes": [route] },
        ] },
        "http_filters": [
            { "name": "envoy.filters.http.router", "typed_config": { "@type": router } },
        ],
    });
    let filter = serde_json::json!({
        "name": "envoy.filters.network.http_connection_manager", "typed_config": manager,
    });
    let mut chain = serde_json::json!({ "filters": [filter] });
    if setup.front == Front::Tls {
        let file = |name: &str| serde_json::json!({ "filename": folder.join(name) });
        let pair = serde_json::json!({
            "certificate_chain": file("certificate.pem"), "private_key": file("key.pem"),
        });
        chain["transport_socket"] = serde_json::json!({
            "name": "envoy.transport_sockets.tls",
            "typed_config": {
                "@type": format!("{ENVOY}.transport_sockets.tls.v3.DownstreamTlsContext"),
                "common_tls_context": { "tls_certificates": [pair] },
            },
        });
    }
    chain
}

#[cfg(test)]
mod tests {
    use super::super::PeerKind;
    use super::*;

    const PORTS: Ports = Ports { http: 1, https: 4, upstream: 3 };

    fn config(kind: PeerKind, task: Task) -> String {
        super::super::config(kind, task, &Setup::default(), PORTS, Path::new("/scratch"))
    }

    #[test]
    fn the_product_refuses_by_a_full_queue_behind_a_single_slot() {
        let text = config(PeerKind::Bywash, Task::Refuse);
        assert!(text.contains("\nlimit = 1\n"), "{text}");
        let scheduler = "[scheduler]\npolicy = \"session-first\"\ncapacity = 1\n[client_limits]";
        assert!(text.contains(scheduler), "{text}");
        assert!(!config(PeerKind::Bywash, Task::Forward { limit: 1 }).contains("capacity"));
    }

    #[test]
    fn haproxy_gets_a_limit_only_when_something_is_to_wait() {
        let line = "server s1 127.0.0.1:3";
        let limited = config(PeerKind::Haproxy, Task::Forward { limit: 16 });
        assert!(limited.contains(&format!("{line} maxconn 16\n")), "{limited}");
        let free = config(PeerKind::Haproxy, Task::Forward { limit: 1024 });
        assert!(free.contains(&format!("{line}\n")), "{free}");
        assert!(config(PeerKind::Haproxy, Task::Refuse).contains("return status 503"));
    }

    #[test]
    fn nginx_writes_only_to_the_scratch_directory() {
        let text = config(PeerKind::Nginx, Task::Refuse);
        assert!(text.contains("pid /scratch/nginx.pid;"), "{text}");
        assert!(text.contains("return 503 overloaded;"), "{text}");
        assert!(config(PeerKind::Nginx, Task::Forward { limit: 1024 }).contains("proxy_pass"));
    }

    #[test]
    fn by_tls_every_program_listens_on_the_other_port_with_the_same_certificate() {
        let setup = Setup { front: Front::Tls, ..Setup::default() };
        for kind in PeerKind::ALL {
            let forward = Task::Forward { limit: 1024 };
            let folder = Path::new("/scratch");
            let text = super::super::config(kind, forward, &setup, PORTS, folder);
            assert!(text.contains("127.0.0.1:4") || text.contains("\"port_value\":4"), "{text}");
            let file =
                if kind == PeerKind::Haproxy { "/scratch/both.pem" } else { "/scratch/key.pem" };
            assert!(text.contains(file), "{text}");
        }
    }
}
