//! The program between client and origin: the gateway, another program in its place, or none.

use super::program::Program;
use std::fmt;
use std::fs;
use std::io;
use std::path::{Path, PathBuf};
use std::process::Command;

/// A program to test instead of bywash.
#[derive(Debug, Clone, Copy, PartialEq, Eq, clap::ValueEnum)]
pub enum Peer {
    /// HAProxy with its defaults
    Haproxy,
    /// nginx with its defaults and the client's `Host`
    Nginx,
    /// No program: origins get the client's bytes
    Direct,
}

/// The program, if any, between client and origin.
#[derive(Debug, Clone, PartialEq, Eq)]
pub enum Front {
    /// The bywash program at this path.
    Gateway(PathBuf),
    /// Another program in the place of bywash, for comparison.
    Peer(Peer),
}

impl Front {
    /// Starts the program in front of the upstream on port `upstream`. Returns `None` if there is
    /// no program between client and upstream.
    pub fn start(&self, upstream: u16) -> io::Result<Option<Program>> {
        let program = match self {
            Self::Peer(Peer::Direct) => return Ok(None),
            Self::Peer(Peer::Haproxy) => Program::start("haproxy", |port, folder| {
                configured_command(folder, &haproxy(port, upstream), "haproxy", &["-db", "-f"])
            }),
            Self::Peer(Peer::Nginx) => Program::start("nginx", |port, folder| {
                configured_command(folder, &nginx(port, upstream, folder), "nginx", &["-c"])
            }),
            Self::Gateway(path) => Program::start("bywash", |port, folder| {
                let admin = bywash_peer::free_port()?;
                configured_command(folder, &gateway(port, admin, upstream), path, &["run", "-c"])
            }),
        };
        program.map(Some)
    }
}

impl fmt::Display for Front {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.pad(match self {
            Self::Gateway(_) => "bywash",
            Self::Peer(Peer::Haproxy) => "haproxy",
            Self::Peer(Peer::Nginx) => "nginx",
            Self::Peer(Peer::Direct) => "nobody",
        })
    }
}

fn configured_command(
    folder: &Path,
    config: &str,
    program: impl AsRef<std::ffi::OsStr>,
    arguments: &[&str],
) -> io::Result<Command> {
    let file = folder.join("config");
    fs::write(&file, config)?;
    let mut command = Command::new(program);
    command.args(arguments).arg(file);
    Ok(command)
}

/// Returns bywash's configuration. It has the default values, except that decisions are enforced
/// and the access log is off.
fn gateway(port: u16, admin: u16, upstream: u16) -> String {
    format!(
        r#"version = 1
mode = "enforce"
[listen]
http = "127.0.0.1:{port}"
admin = "127.0.0.1:{admin}"
workers = 1
[upstream]
server = "http://127.0.0.1:{upstream}"
limit = 64
[log]
access = "off"
"#
    )
}

fn haproxy(port: u16, upstream: u16) -> String {
    format!(
        "global
    nbthread 1
defaults
    mode http
    retries 0
    timeout connect 5s
    timeout client 10s
    timeout server 10s
frontend front
    bind 127.0.0.1:{port}
    default_backend app
backend app
    server app 127.0.0.1:{upstream}
"
    )
}

/// Returns nginx's configuration. `master_process off` makes nginx a single process, so no worker
/// outlives the process that the test started.
fn nginx(port: u16, upstream: u16, folder: &Path) -> String {
    let dir = folder.display();
    format!(
        "daemon off; master_process off; pid {dir}/nginx.pid; error_log {dir}/error.log;
events {{ worker_connections 512; }}
http {{
    access_log off;
    client_body_temp_path {dir}/b; proxy_temp_path {dir}/p; fastcgi_temp_path {dir}/f;
    uwsgi_temp_path {dir}/u; scgi_temp_path {dir}/s;
    upstream app {{ server 127.0.0.1:{upstream} max_fails=0; keepalive 64; }}
    server {{
        listen 127.0.0.1:{port};
        location / {{
            proxy_http_version 1.1;
            proxy_set_header Connection \"\";
            proxy_set_header Host $http_host;
            proxy_next_upstream off;
            proxy_pass http://app;
        }}
    }}
}}
"
    )
}
