//! An origin on hyper's HTTP/1 server with its defaults. hyper passes the target on undecoded, so
//! its reflection has no `route`.

use http_body_util::{BodyExt, Full};
use hyper::body::{Bytes, Incoming};
use hyper::header::HOST;
use hyper::server::conn::http1;
use hyper::service::service_fn;
use hyper::{Method, Request, Response};
use hyper_util::rt::TokioIo;
use serde_json::{Value, json};
use tokio::net::TcpListener;

/// The maximum length of the field with the reflection, in bytes. A response to HEAD has no body,
/// so its reflection is in a field, which must be short.
const LONGEST_FIELD: usize = 6000;

#[tokio::main(flavor = "current_thread")]
async fn main() -> std::io::Result<()> {
    if std::env::args().nth(1).is_some_and(|word| word == "version") {
        println!("hyper {}", version().unwrap_or("?"));
        return Ok(());
    }
    let port = std::env::args().nth(1).and_then(|port| port.parse().ok()).unwrap_or(0);
    let listener = TcpListener::bind(("127.0.0.1", port)).await?;
    loop {
        let (stream, _) = listener.accept().await?;
        tokio::spawn(async {
            // An incomplete message has no other answer than the end of the connection.
            let _ = http1::Builder::new()
                .serve_connection(TokioIo::new(stream), service_fn(answer))
                .await;
        });
    }
}

/// Returns the version of hyper that this program is built with.
fn version() -> Option<&'static str> {
    let (_, entry) = include_str!("../Cargo.lock").split_once("name = \"hyper\"\nversion = \"")?;
    entry.split('"').next()
}

/// Answers with the reflection of the request. An incomplete body is an error, which ends the
/// connection without an answer.
async fn answer(request: Request<Incoming>) -> Result<Response<Full<Bytes>>, hyper::Error> {
    let (head, body) = request.into_parts();
    let body = body.collect().await?.to_bytes();
    let hosts: Vec<String> =
        head.headers.get_all(HOST).iter().map(|host| latin(host.as_bytes())).collect();
    let hex: String = body.iter().map(|byte| format!("{byte:02x}")).collect();
    let mut seen = json!({
        "method": head.method.as_str(),
        "target": latin(head.uri.to_string().as_bytes()),
        "host": if hosts.is_empty() { Value::Null } else { hosts.join(",").into() },
        "route": null,
        "body": hex,
    });
    let mut text = ascii(&seen);
    let response = Response::builder().header("Content-Type", "application/json");
    let response = if head.method == Method::HEAD {
        if text.len() > LONGEST_FIELD {
            seen["body"] = Value::Null;
            text = ascii(&seen);
        }
        response.header("Reflection", text.as_str())
    } else {
        response
    };
    Ok(response.body(Full::new(text.into())).expect("JSON in ASCII is a field value"))
}

/// Returns the bytes as text, with one character for each byte.
fn latin(bytes: &[u8]) -> String {
    bytes.iter().copied().map(char::from).collect()
}

/// Returns JSON text in which characters beyond ASCII are escaped. All characters of `value` must
/// be below 256.
fn ascii(value: &Value) -> String {
    let mut plain = String::new();
    for c in value.to_string().chars() {
        match c {
            ' '..='~' => plain.push(c),
            c => plain.push_str(&format!("\\u{:04x}", u32::from(c))),
        }
    }
    plain
}
