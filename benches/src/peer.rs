//! The programs under test: how each is started and which configuration means the same in each.
//!
//! One worker each, keep-alive on both sides, no logs. What is compared is only fair while these
//! texts ask for the same work, so they stand side by side in one file.

use std::fmt;
use std::io;
use std::path::{Path, PathBuf};
use std::process::Command;

/// A program under test.
#[derive(Debug, Clone, Copy, PartialEq, Eq, clap::ValueEnum)]
pub enum Kind {
    /// The product.
    Bywash,
    /// The peer with a queue: `maxconn` per server, `abortonclose`.
    Haproxy,
    /// The peer without a queue.
    Nginx,
}

/// What a proxy has to do with the requests it gets.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub enum Task {
    /// Send every request upstream, at most `limit` at a time; the rest waits where there is a
    /// queue.
    Forward {
        /// Requests at the upstream at the same time.
        limit: u32,
    },
    /// Answer 503 with `Retry-After`. bywash has no such switch: it refuses because a limit of one
    /// is taken and its queue of one is full.
    Refuse,
}

/// Where a proxy listens and sends to, all on 127.0.0.1.
#[derive(Debug, Clone, Copy)]
pub struct Ports {
    /// Clients connect here.
    pub http: u16,
    /// The product's admin interface; unused by the others.
    pub admin: u16,
    /// The upstream listens here.
    pub upstream: u16,
}

impl Kind {
    /// The program to run; only the product's is not fixed.
    pub fn program(self, bywash: &Path) -> PathBuf {
        match self {
            Self::Bywash => bywash.to_owned(),
            Self::Haproxy => "haproxy".into(),
            Self::Nginx => "nginx".into(),
        }
    }

    /// The first line the program prints about its version.
    pub fn version(self, bywash: &Path) -> io::Result<String> {
        let flag = if self == Self::Bywash { "--version" } else { "-v" };
        let output = Command::new(self.program(bywash)).arg(flag).output()?;
        let text = if output.stdout.is_empty() { output.stderr } else { output.stdout };
        Ok(String::from_utf8_lossy(&text).lines().next().unwrap_or("?").to_owned())
    }

    /// Arguments that make the program serve the configuration in `file`, in the foreground.
    pub fn arguments(self, file: &Path) -> Vec<String> {
        let file = file.display().to_string();
        match self {
            Self::Bywash => vec!["run".into(), "-c".into(), file],
            Self::Haproxy => vec!["-db".into(), "-f".into(), file],
            Self::Nginx => vec!["-c".into(), file],
        }
    }

    /// The configuration's text; nginx also needs a `scratch` directory to write to.
    pub fn config(self, task: Task, ports: Ports, scratch: &Path) -> String {
        match self {
            Self::Bywash => bywash_config(task, ports),
            Self::Haproxy => haproxy_config(task, ports),
            Self::Nginx => nginx_config(task, ports, scratch),
        }
    }
}

impl fmt::Display for Kind {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.pad(match self {
            Self::Bywash => "bywash",
            Self::Haproxy => "haproxy",
            Self::Nginx => "nginx",
        })
    }
}

fn bywash_config(task: Task, ports: Ports) -> String {
    let Ports { http, admin, upstream } = ports;
    let (limit, capacity) = match task {
        Task::Forward { limit } => (limit, ""),
        Task::Refuse => (1, "\ncapacity = 1"),
    };
    format!(
        r#"version = 1
mode = "enforce"
[listen]
http = "127.0.0.1:{http}"
admin = "127.0.0.1:{admin}"
workers = 1
[upstream]
server = "http://127.0.0.1:{upstream}"
limit = {limit}
connect_timeout = "5s"
[order]
policy = "session-first"{capacity}
[log]
access = "off"
"#
    )
}

/// From this limit on nothing in these measurements ever waits, and a peer is given no limit.
const NO_LIMIT: u32 = 1024;

/// `http-reuse always` because all requests here are alike. Without it HAProxy opens a connection
/// for a client's first request, and may notice meanwhile that the client has gone: fewer ghosts,
/// but a connection each.
fn haproxy_config(task: Task, ports: Ports) -> String {
    let Ports { http, upstream, .. } = ports;
    let (refusal, maxconn) = match task {
        Task::Refuse => (
            "\n    http-request return status 503 content-type text/plain \
             string \"overloaded\" hdr Retry-After 2",
            String::new(),
        ),
        Task::Forward { limit: NO_LIMIT.. } => ("", String::new()),
        Task::Forward { limit } => ("", format!(" maxconn {limit}")),
    };
    format!(
        "global
    maxconn 4000
    nbthread 1
defaults
    mode http
    option abortonclose
    http-reuse always
    retries 0
    timeout connect 5s
    timeout client 60s
    timeout server 60s
    timeout queue 60s
frontend fe
    bind 127.0.0.1:{http}{refusal}
    default_backend app
backend app
    server s1 127.0.0.1:{upstream}{maxconn}
"
    )
}

/// `master_process off` makes it one process, whose end leaves no worker behind.
fn nginx_config(task: Task, ports: Ports, scratch: &Path) -> String {
    let Ports { http, upstream, .. } = ports;
    let dir = scratch.display();
    let location = match task {
        Task::Forward { .. } => {
            "proxy_http_version 1.1; proxy_set_header Connection \"\"; \
             proxy_next_upstream off; proxy_pass http://app;"
        }
        Task::Refuse => {
            "default_type text/plain; add_header Retry-After 2 always; return 503 overloaded;"
        }
    };
    format!(
        "daemon off; master_process off; pid {dir}/nginx.pid; error_log stderr warn;
events {{ worker_connections 4096; }}
http {{
    access_log off;
    client_body_temp_path {dir}/b; proxy_temp_path {dir}/p; fastcgi_temp_path {dir}/f;
    uwsgi_temp_path {dir}/u; scgi_temp_path {dir}/s;
    keepalive_requests 1000000000;
    upstream app {{
        server 127.0.0.1:{upstream} max_fails=0;
        keepalive 1024; keepalive_requests 1000000000;
    }}
    server {{
        listen 127.0.0.1:{http} backlog=4096;
        location / {{ {location} }}
    }}
}}
"
    )
}

#[cfg(test)]
mod tests {
    use super::*;

    const PORTS: Ports = Ports { http: 1, admin: 2, upstream: 3 };

    fn config(kind: Kind, task: Task) -> String {
        kind.config(task, PORTS, Path::new("/scratch"))
    }

    #[test]
    fn the_product_refuses_by_a_full_queue_behind_a_single_slot() {
        let text = config(Kind::Bywash, Task::Refuse);
        assert!(text.contains("\nlimit = 1\n"), "{text}");
        assert!(
            text.contains("[order]\npolicy = \"session-first\"\ncapacity = 1\n[log]"),
            "{text}"
        );
        assert!(!config(Kind::Bywash, Task::Forward { limit: 1 }).contains("capacity"));
    }

    #[test]
    fn haproxy_gets_a_limit_only_when_something_is_to_wait() {
        let line = "server s1 127.0.0.1:3";
        let limited = config(Kind::Haproxy, Task::Forward { limit: 16 });
        assert!(limited.contains(&format!("{line} maxconn 16\n")), "{limited}");
        let free = config(Kind::Haproxy, Task::Forward { limit: 1024 });
        assert!(free.contains(&format!("{line}\n")), "{free}");
        assert!(config(Kind::Haproxy, Task::Refuse).contains("return status 503"));
    }

    #[test]
    fn nginx_writes_only_to_the_scratch_directory() {
        let text = config(Kind::Nginx, Task::Refuse);
        assert!(text.contains("pid /scratch/nginx.pid;"), "{text}");
        assert!(text.contains("return 503 overloaded;"), "{text}");
        assert!(config(Kind::Nginx, Task::Forward { limit: 1024 }).contains("proxy_pass"));
    }
}
