//! The configurations of the three programs, as an administrator who expects hostile clients would
//! write them.
//!
//! All three allow the same number of client connections, have 16 slots for the application and one
//! worker, and offer TLS and HTTP/2 to clients. All other settings are those that each program's
//! manual offers against slow clients. No program limits an address to fewer than 600 connections,
//! because 500 people of one office may share an address. nginx has no queue: a request above
//! `max_conns` gets 502.

use std::fmt::Write;
use std::path::Path;

/// Maximum number of concurrent requests at the application.
pub(super) const SLOTS: usize = 16;
/// Maximum number of connections that HAProxy and nginx accept from one address.
const PER_ADDRESS: u32 = 600;

/// The ports of one program, all on 127.0.0.1.
#[derive(Debug, Clone, Copy)]
pub(super) struct Ports {
    /// Port for HTTP/1.1 without TLS.
    pub(super) http: u16,
    /// Port for HTTP/2 without TLS; it differs from `http` only with nginx.
    pub(super) h2c: u16,
    /// Port for HTTP/1.1 and HTTP/2 with TLS.
    pub(super) https: u16,
    /// Port of bywash's admin listener.
    pub(super) admin: u16,
}

/// The parts of a configuration that differ between attacks.
#[derive(Debug, Clone, Default)]
pub(super) struct Setup {
    /// Ports of the application's servers.
    pub(super) servers: Vec<u16>,
    /// Maximum number of concurrent client connections.
    pub(super) connections: u32,
    /// Whether the program checks `/healthz` of the servers and takes failing ones out.
    pub(super) checks: bool,
    /// Number of entries in bywash's session table; `None` for its default.
    pub(super) sessions: Option<u32>,
    /// Lines of bywash's configuration that replace or extend the generated ones.
    pub(super) extra: String,
}

/// Returns bywash's configuration: its defaults, plus `extra`.
pub(super) fn bywash(setup: &Setup, ports: Ports, folder: &Path) -> String {
    let Ports { http, https, admin, .. } = ports;
    let dir = folder.display();
    let server = |port: &u16| format!("\"http://127.0.0.1:{port}\"");
    let servers = setup.servers.iter().map(server).collect::<Vec<_>>().join(", ");
    let connections = setup.connections;
    let mut text = format!(
        r#"version = 1
mode = "enforce"
[listen]
http = "127.0.0.1:{http}"
https = "127.0.0.1:{https}"
admin = "127.0.0.1:{admin}"
operators_key = "{dir}/operators.key"
workers = 1
[tls]
certificates = ["{dir}/certificate.pem"]
keys = ["{dir}/key.pem"]
[upstream]
server = [{servers}]
limit = {SLOTS}
[client_limits]
connections = {connections}
[log]
access = "{dir}/access.log"
"#
    );
    if setup.checks {
        text.push_str("[health]\npath = \"/healthz\"\n");
    }
    if let Some(sessions) = setup.sessions {
        let classes = "[class.login]\nmatch = [\"POST /login\"]\ntier = \"transaction\"\n[class.pay]\n\
                       match = [\"POST /pay\"]\ntier = \"transaction\"\nrequires = [\"login\"]\n";
        let _ =
            write!(text, "[identify]\nsession = \"cookie:sid\"\nsessions = {sessions}\n{classes}");
    }
    merge(&text, &setup.extra)
}

/// Returns HAProxy's configuration. With `option http-buffer-request`, HAProxy waits for a body, up
/// to the size of a buffer, before the request takes a slot. `timeout http-request` bounds that
/// wait. `observe layer7` counts erroneous answers of a server.
pub(super) fn haproxy(setup: &Setup, ports: Ports, folder: &Path) -> String {
    let Ports { http, https, .. } = ports;
    let (connections, dir) = (setup.connections, folder.display());
    let slots = SLOTS / setup.servers.len().max(1);
    let check = if setup.checks {
        " check inter 2s observe layer7 error-limit 10 on-error mark-down"
    } else {
        ""
    };
    let httpchk = if setup.checks { "    option httpchk GET /healthz\n" } else { "" };
    let servers: String = setup.servers.iter().fold(String::new(), |mut lines, port| {
        let _ = writeln!(lines, "    server s{port} 127.0.0.1:{port} maxconn {slots}{check}");
        lines
    });
    format!(
        "global
    maxconn {connections}
    nbthread 1
defaults
    mode http
    option abortonclose
    option http-buffer-request
    http-reuse always
    timeout connect 5s
    timeout client 30s
    timeout http-request 10s
    timeout http-keep-alive 10s
    timeout server 60s
    timeout queue 20s
frontend fe
    bind 127.0.0.1:{http}
    bind 127.0.0.1:{https} ssl crt {dir}/both.pem alpn h2,http/1.1
    stick-table type ip size 100k expire 1m store conn_cur
    tcp-request connection track-sc0 src
    tcp-request connection reject if {{ sc0_conn_cur gt {PER_ADDRESS} }}
    default_backend app
backend app
    balance leastconn
{httpchk}{servers}"
    )
}

/// Returns nginx's configuration. nginx reads a whole body before it contacts the application
/// (`proxy_request_buffering on`). It reads an answer as fast as the application sends it, even if
/// the client reads slowly (`proxy_buffering on`). Parts of an answer that do not fit into memory
/// are written to files.
pub(super) fn nginx(setup: &Setup, ports: Ports, folder: &Path) -> String {
    let Ports { http, h2c, https, .. } = ports;
    let dir = folder.display();
    // A proxied request uses two of nginx's connections.
    let connections = setup.connections * 2;
    let slots = SLOTS / setup.servers.len().max(1);
    let fails = if setup.checks { "max_fails=5 fail_timeout=10s" } else { "max_fails=0" };
    let next = if setup.checks { "error timeout http_500" } else { "off" };
    let servers: String = setup.servers.iter().fold(String::new(), |mut lines, port| {
        let _ = writeln!(lines, "        server 127.0.0.1:{port} max_conns={slots} {fails};");
        lines
    });
    format!(
        "daemon off; master_process off; pid {dir}/nginx.pid; error_log {dir}/error.log crit;
worker_rlimit_nofile 20000;
events {{ worker_connections {connections}; }}
http {{
    access_log off;
    client_body_temp_path {dir}/b; proxy_temp_path {dir}/p; fastcgi_temp_path {dir}/f;
    uwsgi_temp_path {dir}/u; scgi_temp_path {dir}/s;
    client_header_timeout 10s; client_body_timeout 10s; send_timeout 30s; keepalive_timeout 10s;
    reset_timedout_connection on; client_max_body_size 20m;
    limit_conn_zone $binary_remote_addr zone=address:10m; limit_conn address {PER_ADDRESS};
    proxy_request_buffering on; proxy_buffering on; proxy_next_upstream {next};
    upstream app {{
        least_conn;
{servers}        keepalive {SLOTS};
    }}
    server {{
        listen 127.0.0.1:{http} backlog=4096;
        listen 127.0.0.1:{h2c} http2 backlog=4096;
        listen 127.0.0.1:{https} ssl http2 backlog=4096;
        ssl_protocols TLSv1.2 TLSv1.3;
        ssl_certificate {dir}/certificate.pem; ssl_certificate_key {dir}/key.pem;
        location / {{
            proxy_http_version 1.1; proxy_set_header Connection \"\"; proxy_pass http://app;
        }}
    }}
}}
"
    )
}

/// Merges the lines of `extra` into the TOML tables in `text`. If both set a key, the value in
/// `extra` wins. A table that only `extra` has is appended.
fn merge(text: &str, extra: &str) -> String {
    let mut tables = tables(text);
    for (name, lines) in self::tables(extra) {
        let Some((_, ours)) = tables.iter_mut().find(|(known, _)| *known == name) else {
            tables.push((name, lines));
            continue;
        };
        ours.retain(|line| key(line).is_none_or(|own| lines.iter().all(|l| key(l) != Some(own))));
        ours.extend(lines);
    }
    let mut merged = String::new();
    for (name, lines) in &tables {
        for line in name.iter().chain(lines) {
            merged.push_str(line);
            merged.push('\n');
        }
    }
    merged
}

/// Returns the tables of a TOML text in order, each with its name and its lines. The lines above
/// the first table have no name.
fn tables(text: &str) -> Vec<(Option<&str>, Vec<&str>)> {
    let mut tables: Vec<(Option<&str>, Vec<&str>)> = vec![(None, Vec::new())];
    for line in text.lines().filter(|line| !line.trim().is_empty()) {
        if line.starts_with('[') {
            tables.push((Some(line.trim_end()), Vec::new()));
        } else if let Some((_, lines)) = tables.last_mut() {
            lines.push(line);
        }
    }
    tables
}

/// Returns the key of a TOML line, which is the text before the first equals sign; `None` for a
/// line without a key.
fn key(line: &str) -> Option<&str> {
    line.split_once('=').map(|(key, _)| key.trim())
}

#[cfg(test)]
mod tests {
    use super::*;

    const PORTS: Ports = Ports { http: 1, h2c: 2, https: 3, admin: 4 };

    #[test]
    fn further_lines_replace_keys_and_complete_tables() {
        let merged = merge("a = 1\n[x]\nb = 2\nc = 3\n", "a = 7\n[x]\nb = 4\nd = 5\n[y]\ne = 6\n");
        assert_eq!(merged, "a = 7\n[x]\nc = 3\nb = 4\nd = 5\n[y]\ne = 6\n");
        assert_eq!(merge("a = 1\n[x]\nb = 2\n", ""), "a = 1\n[x]\nb = 2\n");
    }

    #[test]
    fn every_program_has_the_same_slots_and_connections() {
        let setup = Setup { servers: vec![7], connections: 123, ..Setup::default() };
        let folder = Path::new("/scratch");
        let text = bywash(&setup, PORTS, folder);
        assert!(
            text.contains("\nlimit = 16\n") && text.contains("\nconnections = 123\n"),
            "{text}"
        );
        let text = haproxy(&setup, PORTS, folder);
        assert!(text.contains("maxconn 123\n") && text.contains("s7 127.0.0.1:7 maxconn 16\n"));
        let text = nginx(&setup, PORTS, folder);
        assert!(text.contains("127.0.0.1:7 max_conns=16 ") && text.contains("connections 246;"));
    }

    #[test]
    fn two_servers_share_the_slots_of_peers_that_have_them_per_server() {
        let setup = Setup { servers: vec![7, 8], checks: true, ..Setup::default() };
        let folder = Path::new("/scratch");
        assert!(haproxy(&setup, PORTS, folder).contains("127.0.0.1:8 maxconn 8 check"));
        assert!(nginx(&setup, PORTS, folder).contains("127.0.0.1:8 max_conns=8 max_fails=5"));
        assert!(bywash(&setup, PORTS, folder).contains(":7\", \"http://127.0.0.1:8\"]"));
    }
}
