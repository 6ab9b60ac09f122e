//! A running gateway, asked over its admin listener.

use std::io::{Error, ErrorKind, Read, Result, Write};
use std::net::TcpStream;
use std::os::unix::net::UnixStream;
use std::time::Duration;

use bywash_config::AdminAddress;
use bywash_message::{Decoder, Head, Limits, Part, Response};
use http::Method;
use serde_json::Value;

use crate::failure::Failure;

const PATIENCE: Duration = Duration::from_secs(3);

/// Far more than a status of 64 classes takes.
const LONGEST: usize = 1 << 20;

const LIMITS: Limits = Limits { target: 0, fields: 64, bytes: 16 * 1024 };

/// What it shows under a path.
pub(crate) fn get(admin: &AdminAddress, path: &str) -> std::result::Result<Value, Failure> {
    ask(admin, "GET", path)
}

/// What it answers when it is told something.
pub(crate) fn post(admin: &AdminAddress, path: &str) -> std::result::Result<Value, Failure> {
    ask(admin, "POST", path)
}

/// One JSON document from a small server on this machine.
#[cfg(feature = "lab")]
pub(crate) fn fetch(address: std::net::SocketAddr, path: &str) -> Result<Value> {
    let mut answer = Answer::to(&AdminAddress::Tcp(address), "GET", path)?;
    let body = answer.whole()?;
    serde_json::from_slice(&body).ok().filter(|_| answer.status == 200).ok_or_else(stranger)
}

fn ask(admin: &AdminAddress, method: &str, path: &str) -> std::result::Result<Value, Failure> {
    let answer = Answer::to(admin, method, path).and_then(|mut answer| {
        let body = answer.whole()?;
        Ok((answer.status, body))
    });
    let (status, body) = answer.map_err(|why| unreachable(admin, &why))?;
    if status == 200
        && let Ok(value) = serde_json::from_slice(&body)
    {
        return Ok(value);
    }
    match status {
        400 | 403 | 404 => Err(Failure::running(words(&body))),
        _ => Err(unreachable(admin, &stranger())),
    }
}

/// Hands each line that it goes on sending to `take`, until that has had enough.
pub(crate) fn lines(
    admin: &AdminAddress,
    path: &str,
    mut take: impl FnMut(&str) -> std::result::Result<bool, Failure>,
) -> std::result::Result<(), Failure> {
    let broken = |why: &Error| unreachable(admin, why);
    let mut answer = Answer::to(admin, "GET", path).map_err(|why| broken(&why))?;
    if answer.status != 200 {
        return Err(Failure::running(words(&answer.whole().map_err(|why| broken(&why))?)));
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

fn words(body: &[u8]) -> String {
    String::from_utf8_lossy(body).trim().escape_debug().to_string()
}

fn unreachable(admin: &AdminAddress, why: &Error) -> Failure {
    Failure::unreachable(format!("no gateway answers at {admin}: {why}"))
}

fn stranger() -> Error {
    Error::other("whoever listens there is no bywash; is it the address for operators?")
}

/// A connection to it.
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

/// A timeout has a strange name of its own.
fn in_words(error: Error) -> Error {
    match error.kind() {
        ErrorKind::WouldBlock => Error::other(format!("no answer within {PATIENCE:?}")),
        _ => error,
    }
}

/// An answer whose head has come.
struct Answer {
    wire: Wire,
    status: u16,
    input: Vec<u8>,
    decoder: Decoder,
}

impl Answer {
    fn to(admin: &AdminAddress, method: &str, path: &str) -> Result<Self> {
        let mut wire = Wire::open(admin)?;
        let host = match admin {
            AdminAddress::Tcp(address) => address.to_string(),
            AdminAddress::Unix(_) => "localhost".to_owned(),
        };
        let request = format!(
            "{method} {path} HTTP/1.1\r\nHost: {host}\r\nBywash-Admin: cli\r\nConnection: close\r\n\r\n"
        );
        wire.write(request.as_bytes())?;
        let (mut input, mut head) = (Vec::new(), Head::default());
        let end = loop {
            if let Some(end) = head.end(&input, &LIMITS).map_err(|_| stranger())? {
                break end;
            }
            if wire.read(&mut input)? == 0 {
                return Err(stranger());
            }
        };
        let response =
            Response::parse(&input[..end], &Method::GET, &LIMITS).map_err(|_| stranger())?;
        input.drain(..end);
        let decoder = Decoder::new(response.framing, &LIMITS);
        Ok(Self { wire, status: response.status.as_u16(), input, decoder })
    }

    /// The next of the body. Whether there may be more.
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
                return closed.map(|()| false).map_err(|_| Error::other("it has stopped"));
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
