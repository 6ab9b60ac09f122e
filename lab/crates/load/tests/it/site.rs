//! Sites for tests, each of which behaves in one fixed way. Their threads end with the test
//! process.

use std::io::{Read, Write};
use std::net::{Ipv4Addr, TcpListener, TcpStream};
use std::sync::Arc;
use std::thread;

use bytes::Bytes;
use http::{Request, Response};
use http_body_util::Full;
use hyper::body::Incoming;
use hyper::server::conn::http1;
use hyper::service::service_fn;
use hyper_util::rt::TokioIo;

/// An answer of a site that implements HTTP correctly.
pub(crate) type Answer = Response<Full<Bytes>>;

/// Returns an answer with the status `status` and the body `text`.
pub(crate) fn answer(status: u16, text: &'static str) -> Answer {
    let mut answer = Response::new(Full::from(text));
    *answer.status_mut() = status.try_into().expect("a status");
    answer
}

fn listen() -> (TcpListener, String) {
    let listener = TcpListener::bind((Ipv4Addr::LOCALHOST, 0)).expect("loopback has a free port");
    let address = listener.local_addr().expect("it is bound");
    (listener, format!("http://{address}"))
}

/// Starts a site that keeps connections alive and answers with `respond`. Returns its URL.
pub(crate) fn answering(
    respond: impl Fn(&Request<Incoming>) -> Answer + Send + Sync + 'static,
) -> String {
    let (listener, url) = listen();
    listener.set_nonblocking(true).expect("it is a socket");
    let runtime =
        tokio::runtime::Builder::new_current_thread().enable_all().build().expect("a runtime");
    thread::spawn(move || runtime.block_on(serve(listener, Arc::new(respond))));
    url
}

async fn serve<F>(listener: TcpListener, respond: Arc<F>)
where
    F: Fn(&Request<Incoming>) -> Answer + Send + Sync + 'static,
{
    let listener = tokio::net::TcpListener::from_std(listener).expect("it does not block");
    loop {
        let (stream, _) = listener.accept().await.expect("a connection");
        let respond = Arc::clone(&respond);
        let service = service_fn(move |request| {
            let answer = respond(&request);
            async move { Ok::<_, std::convert::Infallible>(answer) }
        });
        let serving = http1::Builder::new().serve_connection(TokioIo::new(stream), service);
        // An error of the connection does not matter: a client may close it during an answer.
        tokio::spawn(async { drop(serving.await) });
    }
}

/// Starts a site that handles each connection on its own thread. Returns its URL.
pub(crate) fn handling(handle: impl Fn(TcpStream) + Send + Sync + 'static) -> String {
    let (listener, url) = listen();
    let handle = Arc::new(handle);
    thread::spawn(move || {
        for stream in listener.incoming().map_while(Result::ok) {
            let handle = Arc::clone(&handle);
            thread::spawn(move || handle(stream));
        }
    });
    url
}

/// Starts a site that handles one connection after another. Returns its URL.
pub(crate) fn one_by_one(mut handle: impl FnMut(TcpStream) + Send + 'static) -> String {
    let (listener, url) = listen();
    thread::spawn(move || {
        for stream in listener.incoming().map_while(Result::ok) {
            handle(stream);
        }
    });
    url
}

/// Reads one request without a body. Returns `None` if the client closed before the end of the
/// request.
pub(crate) fn request(stream: &mut TcpStream) -> Option<String> {
    let mut text = Vec::new();
    let mut byte = [0];
    while !text.ends_with(b"\r\n\r\n") {
        if stream.read(&mut byte).ok()? == 0 {
            return None;
        }
        text.push(byte[0]);
    }
    String::from_utf8(text).ok()
}

/// Reads and discards bytes until the client closes the connection.
pub(crate) fn wait_for_close(stream: &mut TcpStream) {
    let mut bytes = [0; 1024];
    while matches!(stream.read(&mut bytes), Ok(1..)) {}
}

/// Writes a complete answer with a body of two bytes. The connection can be kept after it.
pub(crate) fn write_ok(stream: &mut TcpStream) {
    let _ = stream.write_all(b"HTTP/1.1 200 OK\r\ncontent-length: 2\r\n\r\nok");
}
