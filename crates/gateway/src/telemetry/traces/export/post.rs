//! The HTTP client for the library's exporter: one POST, each on a new connection, with the
//! messages of `bywash_message`, so that the gateway has one implementation of HTTP and not two.

use std::error::Error;
use std::io;
use std::pin::Pin;

use bytes::Bytes;
use bywash_config::Collector;
use bywash_message::{Decoder, Fields, Framing, Head, Limits, Part, Response, write_request};
use http::Method;
use opentelemetry_http::{HttpClient, HttpError};
use tokio::io::{AsyncReadExt, AsyncWriteExt};
use tokio::net::TcpStream;

use super::PATIENCE;

/// The limits on a collector's answer, for head and body each.
const LIMITS: Limits = Limits { target: 0, fields: 100, bytes: 16 * 1024 };
const LONGEST_BODY: usize = 64 * 1024;

#[derive(Debug)]
pub(super) struct Client(Collector);

type Answer = Result<http::Response<Bytes>, HttpError>;

impl Client {
    pub(super) fn new(collector: &Collector) -> Self {
        Self(collector.clone())
    }

    async fn post(&self, request: http::Request<Bytes>) -> Answer {
        let Collector { host, port } = &self.0;
        let mut stream = TcpStream::connect((host.as_str(), *port)).await?;
        stream.write_all(&self.head(&request)).await?;
        stream.write_all(request.body()).await?;
        let (head, rest) = read_head(&mut stream).await?;
        let answer = Response::parse(&head, &Method::POST, &LIMITS).map_err(|_| broken())?;
        let body = read_body(&mut stream, answer.framing, rest).await?;
        let mut response = http::Response::builder().status(answer.status);
        if let Some(after) = answer.fields.get(bywash_message::Name::RetryAfter) {
            response = response.header(http::header::RETRY_AFTER, after);
        }
        Ok(response.body(body.into())?)
    }

    fn head(&self, request: &http::Request<Bytes>) -> Vec<u8> {
        let mut fields = Fields::new();
        fields.push(b"Host", self.0.authority().as_bytes());
        for (name, value) in request.headers() {
            fields.push(name.as_str().as_bytes(), value.as_bytes());
        }
        fields.push(b"Connection", b"close");
        let target = request.uri().path_and_query().map_or("/", |target| target.as_str());
        let mut head = Vec::new();
        let framing = Framing::Length(request.body().len() as u64);
        write_request(&mut head, &Method::POST, target, &fields, framing);
        head
    }
}

impl HttpClient for Client {
    fn send_bytes<'a, 'b>(
        &'a self,
        request: http::Request<Bytes>,
    ) -> Pin<Box<dyn Future<Output = Answer> + Send + 'b>>
    where
        'a: 'b,
        Self: 'b,
    {
        Box::pin(async move { tokio::time::timeout(PATIENCE, self.post(request)).await? })
    }
}

fn broken() -> Box<dyn Error + Send + Sync> {
    io::Error::from(io::ErrorKind::InvalidData).into()
}

async fn more(stream: &mut TcpStream, bytes: &mut Vec<u8>) -> io::Result<usize> {
    bytes.reserve(4096);
    stream.read_buf(bytes).await
}

/// Reads the head of the answer. Returns it with the bytes that came after it.
async fn read_head(stream: &mut TcpStream) -> Result<(Vec<u8>, Vec<u8>), HttpError> {
    let (mut head, mut bytes) = (Head::default(), Vec::new());
    loop {
        if let Some(end) = head.end(&bytes, &LIMITS).map_err(|_| broken())? {
            let rest = bytes.split_off(end);
            return Ok((bytes, rest));
        }
        if more(stream, &mut bytes).await? == 0 {
            return Err(io::Error::from(io::ErrorKind::UnexpectedEof).into());
        }
    }
}

async fn read_body(
    stream: &mut TcpStream,
    framing: Framing,
    mut bytes: Vec<u8>,
) -> Result<Vec<u8>, HttpError> {
    let (mut decoder, mut body) = (Decoder::new(framing, &LIMITS), Vec::new());
    loop {
        let mut rest = &bytes[..];
        loop {
            let (used, part) = decoder.decode(rest).map_err(|_| broken())?;
            rest = rest.get(used..).unwrap_or_default();
            match part {
                Part::More => break,
                Part::Data(piece) if body.len() + piece.len() <= LONGEST_BODY => {
                    body.extend_from_slice(piece);
                }
                Part::Data(_) => return Err(broken()),
                Part::End(_) => return Ok(body),
            }
        }
        bytes.clear();
        if more(stream, &mut bytes).await? == 0 {
            decoder.closed().map_err(|_| broken())?;
            return Ok(body);
        }
    }
}
