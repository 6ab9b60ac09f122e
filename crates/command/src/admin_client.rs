//! A client of a running gateway's admin listener.

use std::io::{Error, ErrorKind, Read, Result, Write};
use std::net::TcpStream;
use std::os::unix::net::UnixStream;
use std::time::Duration;

use bywash_api::{Code, Problem, Proof};
use bywash_config::AdminAddress;
use bywash_message::{Decoder, Head, Limits, Part, Response};
use bywash_terminal::text::escaped;
use http::Method;
use serde::Serialize;
use serde::de::DeserializeOwned;

use crate::failure::Failure;
use crate::operators::{self, Key};
use crate::which::Which;

const PATIENCE: Duration = Duration::from_secs(3);

/// The maximum size of an answer. It is more than a quarter of an hour of history of 64 classes
/// needs.
const LONGEST: usize = 32 << 20;

const LIMITS: Limits = Limits { target: 0, fields: 64, bytes: 16 * 1024 };

/// How long a command's own token is valid.
const TOKEN: Duration = Duration::from_secs(60);

/// The message for users without a key, with the remedy.
pub const NO_KEY: &str = "no operators' key was found: `bywash run` creates one for its own \
                                 user; as another user name it with --key FILE, or become that \
                                 user or root";

/// Fetches the JSON document at a path.
pub fn get<T: DeserializeOwned>(which: &Which, path: &str) -> std::result::Result<T, Failure> {
    let token = token(which, &operators::user(), false)?;
    ask(&which.admin, &AdminRequest { method: "GET", path, token, body: None })
}

/// Returns whether the gateway serves. This query needs no token.
pub fn is_ready(admin: &AdminAddress) -> std::result::Result<bool, Failure> {
    let request = AdminRequest { method: "GET", path: "/readyz", token: None, body: None };
    let answer = Answer::to(admin, &request).map_err(|why| unreachable(admin, &why))?;
    Ok(answer.status == 200)
}

/// Sends a decision of the operator `by` and returns the gateway's answer.
pub fn post<T: DeserializeOwned>(
    which: &Which,
    by: &str,
    path: &str,
    document: &impl Serialize,
) -> std::result::Result<T, Failure> {
    let body = serde_json::to_string(document).map_err(Failure::running)?;
    ask(
        &which.admin,
        &AdminRequest { method: "POST", path, token: token(which, by, true)?, body: Some(body) },
    )
}

/// Returns a short-lived token for one command.
fn token(which: &Which, name: &str, decides: bool) -> std::result::Result<Option<String>, Failure> {
    token_for(which, name, decides, TOKEN)
}

/// Returns a token that is valid for `lasts`, or `None` on the unix socket, whose permissions
/// decide. The gateway must first prove that it has the key, so that no other process gets a token.
pub fn token_for(
    which: &Which,
    name: &str,
    decides: bool,
    lasts: Duration,
) -> std::result::Result<Option<String>, Failure> {
    let AdminAddress::Tcp(address) = which.admin else { return Ok(None) };
    let Some(key) = operators::key(which.key.as_deref())? else { return Ok(None) };
    let token = key.token(name, decides, lasts)?;
    let nonce = Key::nonce()?;
    let path = format!("/v1/proof?nonce={nonce}");
    let request = AdminRequest { method: "GET", path: &path, token: None, body: None };
    let Proof { proof } = ask(&which.admin, &request)?;
    if key.is_proof(&nonce, &address.to_string(), &proof) {
        return Ok(Some(token));
    }
    Err(Failure::running(format!(
        "the program that answers at {address} has another operators' key than {}: name its key \
         with --key FILE",
        key.path().display()
    )))
}

/// A request to the admin listener.
struct AdminRequest<'a> {
    method: &'a str,
    path: &'a str,
    token: Option<String>,
    /// A JSON document.
    body: Option<String>,
}

/// Fetches one JSON document from a small server on this machine.
pub fn fetch(address: std::net::SocketAddr, path: &str) -> Result<serde_json::Value> {
    let request = AdminRequest { method: "GET", path, token: None, body: None };
    let mut answer = Answer::to(&AdminAddress::Tcp(address), &request)?;
    let body = answer.whole()?;
    serde_json::from_slice(&body).ok().filter(|_| answer.status == 200).ok_or_else(stranger)
}

fn ask<T: DeserializeOwned>(
    admin: &AdminAddress,
    request: &AdminRequest<'_>,
) -> std::result::Result<T, Failure> {
    let answer = Answer::to(admin, request).and_then(|mut answer| {
        let body = answer.whole()?;
        Ok((answer.status, body))
    });
    let (status, body) = answer.map_err(|why| unreachable(admin, &why))?;
    if status == 200
        && let Ok(value) = serde_json::from_slice(&body)
    {
        return Ok(value);
    }
    Err(refused(admin, request, &body))
}

/// Returns the reason why the gateway did not carry out the request.
fn refused(admin: &AdminAddress, request: &AdminRequest<'_>, body: &[u8]) -> Failure {
    let Ok(problem) = serde_json::from_slice::<Problem>(body) else {
        return unreachable(admin, &stranger());
    };
    if problem.code == Code::Unauthorised && request.token.is_none() {
        return Failure::running(NO_KEY);
    }
    Failure::running(escaped(&problem.detail))
}

/// Passes each line of a streamed answer to `take`, until it returns `false`.
pub fn lines(
    which: &Which,
    path: &str,
    mut take: impl FnMut(&str) -> std::result::Result<bool, Failure>,
) -> std::result::Result<(), Failure> {
    let admin = &which.admin;
    let broken = |why: &Error| unreachable(admin, why);
    let token = token(which, &operators::user(), false)?;
    let request = AdminRequest { method: "GET", path, token, body: None };
    let mut answer = Answer::to(admin, &request).map_err(|why| broken(&why))?;
    if answer.status != 200 {
        let body = answer.whole().map_err(|why| broken(&why))?;
        return Err(refused(admin, &request, &body));
    }
    answer.wire.wait_for_ever().map_err(|why| broken(&why))?;
    let mut text = Vec::new();
    while answer.more(&mut text).map_err(|why| broken(&why))? {
        while let Some(end) = text.iter().position(|byte| *byte == b'\n') {
            let line: Vec<u8> = text.drain(..=end).collect();
            if !take(String::from_utf8_lossy(&line).trim_end())? {
                return Ok(());
            }
        }
        if text.len() > LONGEST {
            return Err(broken(&stranger()));
        }
    }
    Ok(())
}

fn unreachable(admin: &AdminAddress, why: &Error) -> Failure {
    Failure::unreachable(format!("no gateway answers at {admin}: {why}"))
}

fn stranger() -> Error {
    Error::other(
        "the program that listens there is not bywash; check that this is the address for \
         operators",
    )
}

fn unanswered() -> Error {
    Error::other(
        "it closed the connection before it answered; all its connections may be in use, or it is \
         about to end: try again",
    )
}

/// A connection to the admin listener.
enum Wire {
    Tcp(TcpStream),
    Unix(UnixStream),
}

impl Wire {
    fn open(admin: &AdminAddress) -> Result<Self> {
        let wire = match admin {
            AdminAddress::Tcp(address) => Self::Tcp(TcpStream::connect_timeout(address, PATIENCE)?),
            AdminAddress::Unix(path) => Self::Unix(UnixStream::connect(path)?),
        };
        wire.set_patience(Some(PATIENCE))?;
        Ok(wire)
    }

    fn set_patience(&self, patience: Option<Duration>) -> Result<()> {
        match self {
            Self::Tcp(stream) => stream.set_read_timeout(patience),
            Self::Unix(stream) => stream.set_read_timeout(patience),
        }
    }

    fn wait_for_ever(&self) -> Result<()> {
        self.set_patience(None)
    }

    fn write(&mut self, bytes: &[u8]) -> Result<()> {
        match self {
            Self::Tcp(stream) => stream.write_all(bytes),
            Self::Unix(stream) => stream.write_all(bytes),
        }
    }

    fn read(&mut self, into: &mut Vec<u8>) -> Result<usize> {
        let mut some = [0; 16 * 1024];
        let read = match self {
            Self::Tcp(stream) => stream.read(&mut some),
            Self::Unix(stream) => stream.read(&mut some),
        };
        let read = read.map_err(in_words)?;
        into.extend_from_slice(&some[..read]);
        Ok(read)
    }
}

/// Replaces the system's message for a timeout, which is misleading.
fn in_words(error: Error) -> Error {
    match error.kind() {
        ErrorKind::WouldBlock => Error::other(format!("no answer within {PATIENCE:?}")),
        _ => error,
    }
}

/// An answer whose head has arrived.
struct Answer {
    wire: Wire,
    status: u16,
    input: Vec<u8>,
    decoder: Decoder,
}

impl Answer {
    fn to(admin: &AdminAddress, request: &AdminRequest<'_>) -> Result<Self> {
        let mut wire = Wire::open(admin)?;
        let host = match admin {
            AdminAddress::Tcp(address) => address.to_string(),
            AdminAddress::Unix(_) => "localhost".to_owned(),
        };
        let AdminRequest { method, path, token, body } = request;
        let token = token.as_ref().map(|token| format!("Authorization: Bearer {token}\r\n"));
        let kind = body.as_ref().map(|body| {
            format!("Content-Type: application/json\r\nContent-Length: {}\r\n", body.len())
        });
        let message = format!(
            "{method} {path} HTTP/1.1\r\nHost: {host}\r\nBywash-Admin: cli\r\n{}{}Connection: close\r\n\r\n{}",
            token.unwrap_or_default(),
            kind.unwrap_or_default(),
            body.as_deref().unwrap_or_default(),
        );
        wire.write(message.as_bytes())?;
        let (mut input, mut head) = (Vec::new(), Head::default());
        let end = loop {
            if let Some(end) = head.end(&input, &LIMITS).map_err(|_| stranger())? {
                break end;
            }
            match wire.read(&mut input) {
                Ok(0) => return Err(unanswered()),
                Err(error) if error.kind() == ErrorKind::ConnectionReset => {
                    return Err(unanswered());
                }
                read => _ = read?,
            }
        };
        let response =
            Response::parse(&input[..end], &Method::GET, &LIMITS).map_err(|_| stranger())?;
        input.drain(..end);
        let decoder = Decoder::new(response.framing, &LIMITS);
        Ok(Self { wire, status: response.status.as_u16(), input, decoder })
    }

    /// Appends the next part of the body. Returns whether there may be more.
    fn more(&mut self, into: &mut Vec<u8>) -> Result<bool> {
        loop {
            let (used, part) = self.decoder.decode(&self.input).map_err(|_| stranger())?;
            let data = match part {
                Part::More => &[],
                Part::Data(data) => data,
                Part::End(_) => return Ok(false),
            };
            let has_data = !data.is_empty();
            into.extend_from_slice(data);
            self.input.drain(..used);
            if has_data {
                return Ok(true);
            }
            if self.wire.read(&mut self.input)? == 0 {
                let closed = self.decoder.closed();
                return closed.map(|()| false).map_err(|_| Error::other("its answer ended early"));
            }
        }
    }

    fn whole(&mut self) -> Result<Vec<u8>> {
        let mut body = Vec::new();
        while self.more(&mut body)? {
            if body.len() > LONGEST {
                return Err(stranger());
            }
        }
        Ok(body)
    }
}
