//! A client of the admin listener of a running gateway.

use std::io::{Error, ErrorKind, Read, Result, Write};
use std::net::TcpStream;
use std::os::unix::net::UnixStream;
use std::time::Duration;

use bywash_api::{Code, Problem, Proof};
use bywash_client::{Answer, blocking};
use bywash_config::AdminAddress;
use bywash_message::{Fields, Limits};
use bywash_terminal::text::escaped;
use http::Method;
use serde::Serialize;
use serde::de::DeserializeOwned;

use crate::failure::Failure;
use crate::operators::{self, Key};
use crate::which::Which;

const PATIENCE: Duration = Duration::from_secs(3);

/// The maximum size of an answer in bytes. It exceeds the size of 15 minutes of history with 64
/// classes.
const LONGEST: usize = 32 << 20;

const LIMITS: Limits = Limits { target: 0, fields: 64, bytes: 16 * 1024 };

/// The time for which a token is valid that a command signs for its own requests.
const TOKEN: Duration = Duration::from_secs(60);

/// The message for users without an operators' key, with the remedy.
pub const NO_KEY: &str = "no operators' key was found: `bywash run` creates one for its own \
                                 user; as another user name it with --key FILE, or become that \
                                 user or root";

/// Fetches the JSON document at a path, with a token if the admin listener needs one. Fails if the
/// gateway cannot be reached or refuses the request.
pub fn get<T: DeserializeOwned>(which: &Which, path: &str) -> std::result::Result<T, Failure> {
    let token = token(which, &operators::user(), false)?;
    ask(&which.admin, &AdminRequest { method: Method::GET, path, token, body: None })
}

/// Returns whether the gateway serves requests (`/readyz`). This query needs no token.
pub fn is_ready(admin: &AdminAddress) -> std::result::Result<bool, Failure> {
    let request = AdminRequest { method: Method::GET, path: "/readyz", token: None, body: None };
    let exchange = Exchange::begin(admin, &request).map_err(|why| unreachable(admin, &why))?;
    Ok(exchange.status == 200)
}

/// Sends a decision of the operator `by`, with a token for this operator. Returns the gateway's
/// answer.
pub fn post<T: DeserializeOwned>(
    which: &Which,
    by: &str,
    path: &str,
    document: &impl Serialize,
) -> std::result::Result<T, Failure> {
    post_with(&which.admin, token(which, by, true)?, path, document)
}

/// Sends a decision with the given token, which names the operator. Returns the gateway's answer.
pub fn post_with<T: DeserializeOwned>(
    admin: &AdminAddress,
    token: Option<String>,
    path: &str,
    document: &impl Serialize,
) -> std::result::Result<T, Failure> {
    let body = serde_json::to_string(document).map_err(Failure::running)?;
    ask(admin, &AdminRequest { method: Method::POST, path, token, body: Some(body) })
}

/// Returns a short-lived token for one command; `None` on the unix socket.
fn token(which: &Which, name: &str, decides: bool) -> std::result::Result<Option<String>, Failure> {
    token_for(which, name, decides, TOKEN)
}

/// Returns a token that is valid for `lasts`; `None` on the unix socket, whose permissions control
/// access. The gateway must first prove that it has the operators' key, so that no other process
/// gets a token.
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
    let request = AdminRequest { method: Method::GET, path: &path, token: None, body: None };
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
    method: Method,
    path: &'a str,
    token: Option<String>,
    /// The body: a JSON document; `None` if the request has none.
    body: Option<String>,
}

/// Fetches the JSON document at a path from another server on this machine, such as the stop
/// daemon.
pub fn fetch(address: std::net::SocketAddr, path: &str) -> Result<serde_json::Value> {
    let request = AdminRequest { method: Method::GET, path, token: None, body: None };
    let (status, body) = Exchange::begin(&AdminAddress::Tcp(address), &request)?.finish()?;
    serde_json::from_slice(&body).ok().filter(|_| status == 200).ok_or_else(not_bywash)
}

fn ask<T: DeserializeOwned>(
    admin: &AdminAddress,
    request: &AdminRequest<'_>,
) -> std::result::Result<T, Failure> {
    let answer = Exchange::begin(admin, request).and_then(Exchange::finish);
    let (status, body) = answer.map_err(|why| unreachable(admin, &why))?;
    if status == 200
        && let Ok(value) = serde_json::from_slice(&body)
    {
        return Ok(value);
    }
    Err(refused(admin, request, &body))
}

/// Returns the failure that says why the gateway did not carry out the request.
fn refused(admin: &AdminAddress, request: &AdminRequest<'_>, body: &[u8]) -> Failure {
    let Ok(problem) = serde_json::from_slice::<Problem>(body) else {
        return unreachable(admin, &not_bywash());
    };
    if problem.code == Code::Unauthorised && request.token.is_none() {
        return Failure::running(NO_KEY);
    }
    Failure::running(escaped(&problem.detail))
}

/// Fetches a streamed answer, and passes each line to `take` until it returns `false`.
pub fn lines(
    which: &Which,
    path: &str,
    mut take: impl FnMut(&str) -> std::result::Result<bool, Failure>,
) -> std::result::Result<(), Failure> {
    let admin = &which.admin;
    let broken = |why: &Error| unreachable(admin, why);
    let token = token(which, &operators::user(), false)?;
    let request = AdminRequest { method: Method::GET, path, token, body: None };
    let mut exchange = Exchange::begin(admin, &request).map_err(|why| broken(&why))?;
    if exchange.status != 200 {
        let (_, body) = exchange.finish().map_err(|why| broken(&why))?;
        return Err(refused(admin, &request, &body));
    }
    exchange.wire.set_patience(None).map_err(|why| broken(&why))?;
    loop {
        let text = &mut exchange.answer.body;
        while let Some(end) = text.iter().position(|byte| *byte == b'\n') {
            let line: Vec<u8> = text.drain(..=end).collect();
            if !take(String::from_utf8_lossy(&line).trim_end())? {
                return Ok(());
            }
        }
        if exchange.answer.has_ended() {
            return Ok(());
        }
        exchange.receive().map_err(|why| broken(&why))?;
    }
}

fn unreachable(admin: &AdminAddress, why: &Error) -> Failure {
    Failure::unreachable(format!("no gateway answers at {admin}: {why}"))
}

fn not_bywash() -> Error {
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

/// A connection to the admin listener: over TCP or a unix socket.
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

    fn send(&mut self, bytes: &[u8]) -> Result<()> {
        match self {
            Self::Tcp(stream) => stream.write_all(bytes),
            Self::Unix(stream) => stream.write_all(bytes),
        }
    }
}

impl Read for Wire {
    fn read(&mut self, into: &mut [u8]) -> Result<usize> {
        match self {
            Self::Tcp(stream) => stream.read(into),
            Self::Unix(stream) => stream.read(into),
        }
    }
}

impl AdminRequest<'_> {
    fn bytes(&self, admin: &AdminAddress) -> Vec<u8> {
        let host = match admin {
            AdminAddress::Tcp(address) => address.to_string(),
            AdminAddress::Unix(_) => "localhost".to_owned(),
        };
        let mut fields = Fields::new();
        fields.push(b"Host", host.as_bytes());
        fields.push(b"Bywash-Admin", b"cli");
        if let Some(token) = &self.token {
            fields.push(b"Authorization", format!("Bearer {token}").as_bytes());
        }
        if self.body.is_some() {
            fields.push(b"Content-Type", b"application/json");
        }
        fields.push(b"Connection", b"close");
        let body = self.body.as_deref().unwrap_or_default().as_bytes();
        bywash_client::request(&self.method, self.path, &fields, body)
    }
}

/// An exchange with the admin listener after the head of the answer has arrived.
struct Exchange {
    wire: Wire,
    status: u16,
    answer: Answer,
}

impl Exchange {
    fn begin(admin: &AdminAddress, request: &AdminRequest<'_>) -> Result<Self> {
        let mut wire = Wire::open(admin)?;
        wire.send(&request.bytes(admin))?;
        let mut answer = Answer::new(request.method.clone(), LIMITS, LONGEST);
        let head = blocking::head(&mut wire, &mut answer).map_err(|error| match error.kind() {
            ErrorKind::UnexpectedEof | ErrorKind::ConnectionReset => unanswered(),
            _ => with_clear_text(error),
        })?;
        Ok(Self { wire, status: head.status.as_u16(), answer })
    }

    /// Reads the next part of the answer's body.
    fn receive(&mut self) -> Result<()> {
        blocking::receive(&mut self.wire, &mut self.answer).map(drop).map_err(with_clear_text)
    }

    /// Reads the answer's body to its end. Returns the status and the body.
    fn finish(mut self) -> Result<(u16, Vec<u8>)> {
        while !self.answer.has_ended() {
            self.receive()?;
        }
        Ok((self.status, self.answer.body))
    }
}

/// Replaces error messages of the system that would mislead an operator by clear ones.
fn with_clear_text(error: Error) -> Error {
    match error.kind() {
        ErrorKind::WouldBlock => Error::other(format!("no answer within {PATIENCE:?}")),
        ErrorKind::InvalidData => not_bywash(),
        ErrorKind::UnexpectedEof => Error::other("its answer ended early"),
        _ => error,
    }
}
