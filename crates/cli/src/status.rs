//! `bywash status`: what a running gateway is doing.

use std::io::{Error, ErrorKind, Read, Write};
use std::net::{SocketAddr, TcpStream};
use std::time::Duration;

use bywash_report::{Align, Table};
use serde_json::Value;

use crate::args::Status;
use crate::failure::Failure;
use crate::streams::{print, print_json};

const PATIENCE: Duration = Duration::from_secs(3);

pub(crate) fn status(args: &Status) -> Result<(), Failure> {
    let status = fetch(args.admin, "/v1/status").map_err(|why| {
        Failure::unreachable(format!("no gateway answers at {}: {why}", args.admin))
    })?;
    if args.json {
        return print_json(&status);
    }
    print(&format!("{}\n{}", headline(&status), classes(&status)))
}

/// One JSON document from a small server on this machine.
pub(crate) fn fetch(address: SocketAddr, path: &str) -> std::io::Result<Value> {
    /// Far more than a status of 64 classes takes.
    const LONGEST: u64 = 1 << 20;
    let mut stream = TcpStream::connect_timeout(&address, PATIENCE)?;
    stream.set_read_timeout(Some(PATIENCE))?;
    write!(stream, "GET {path} HTTP/1.1\r\nHost: {address}\r\nConnection: close\r\n\r\n")?;
    let mut answer = String::new();
    stream.take(LONGEST).read_to_string(&mut answer).map_err(in_words)?;
    let other =
        || Error::other("whoever listens there is no bywash; is it the address for operators?");
    let (head, body) = answer.split_once("\r\n\r\n").ok_or_else(other)?;
    if !head.starts_with("HTTP/1.1 200 ") {
        return Err(other());
    }
    serde_json::from_str(body).map_err(|_| other())
}

/// A timeout has a strange name of its own.
fn in_words(error: Error) -> Error {
    match error.kind() {
        ErrorKind::WouldBlock => Error::other(format!("no answer within {PATIENCE:?}")),
        _ => error,
    }
}

fn headline(status: &Value) -> String {
    let order = if status["newest_first"] == true { "newest first" } else { "oldest first" };
    let state = match (&status["draining"], &status["newest_first"]) {
        (Value::Bool(true), _) => "stopping",
        (_, Value::Bool(true)) => "overloaded",
        _ => "calm",
    };
    format!(
        "bywash {} · {} · {state} · {} ({order}) · upstream {}\n\
         running {} of {} · waiting {} (oldest {} ms) · mean service {:.1} ms · sessions {}\n",
        word(&status["version"]),
        word(&status["mode"]),
        word(&status["policy"]["name"]),
        word(&status["upstream"]),
        status["running"],
        status["limit"],
        status["waiting"],
        status["oldest_wait_ms"],
        status["mean_service_ms"].as_f64().unwrap_or(0.0),
        status["sessions"],
    )
}

fn word(value: &Value) -> &str {
    value.as_str().unwrap_or("?")
}

const OUTCOMES: [&str; 6] = ["served", "late", "shed", "expired", "orphaned", "upstream_error"];

fn classes(status: &Value) -> Table {
    let mut header = vec![
        ("class", Align::Left),
        ("tier", Align::Left),
        ("mode", Align::Left),
        ("waiting", Align::Right),
    ];
    header.extend(OUTCOMES.map(|outcome| (outcome, Align::Right)));
    let mut table = Table::new(&header);
    for class in status["classes"].as_array().into_iter().flatten() {
        let mut row: Vec<String> =
            ["name", "tier", "mode"].map(|key| word(&class[key]).to_owned()).into();
        row.push(class["waiting"].to_string());
        row.extend(OUTCOMES.map(|outcome| class["outcomes"][outcome].to_string()));
        table.push(row);
    }
    table
}
