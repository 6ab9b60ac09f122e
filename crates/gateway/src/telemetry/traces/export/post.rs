//! The HTTP client of the library's exporter: one POST request, each on a new connection. It uses
//! the messages of `bywash_message`, so that the gateway has only one implementation of HTTP/1.

use std::pin::Pin;

use bytes::Bytes;
use bywash_client::asynchronous;
use bywash_config::Collector;
use bywash_message::{Fields, Limits, Name};
use http::{HeaderMap, Method};
use opentelemetry_http::{HttpClient, HttpError};
use tokio::io::AsyncWriteExt;
use tokio::net::TcpStream;

use super::PATIENCE;

/// The limits on the head of the collector's answer.
const LIMITS: Limits = Limits { target: 0, fields: 100, bytes: 16 * 1024 };
/// The maximum number of bytes of the body of the collector's answer.
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
        let target = request.uri().path_and_query().map_or("/", |target| target.as_str());
        let fields = self.fields(request.headers());
        let bytes = bywash_client::request(&Method::POST, target, &fields, request.body());
        stream.write_all(&bytes).await?;
        let mut answer = bywash_client::Answer::new(Method::POST, LIMITS, LONGEST_BODY);
        let head = asynchronous::whole(&mut stream, &mut answer).await?;
        let mut response = http::Response::builder().status(head.status);
        if let Some(after) = head.fields.get(Name::RetryAfter) {
            response = response.header(http::header::RETRY_AFTER, after);
        }
        Ok(response.body(answer.body.into())?)
    }

    fn fields(&self, headers: &HeaderMap) -> Fields {
        let mut fields = Fields::new();
        fields.push(b"Host", self.0.authority().as_bytes());
        for (name, value) in headers {
            fields.push(name.as_str().as_bytes(), value.as_bytes());
        }
        fields.push(b"Connection", b"close");
        fields
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
