//! Accepts connections, and ends them when the application closes.
//!
//! The HTTP thread never blocks and does no work for the application. The HTTP thread therefore
//! notices the departure of a client at once, whatever the workers are doing. hyper then drops the
//! future that serves the request, and with it the receiver of the worker's answer.

use std::convert::Infallible;
use std::io;
use std::net;
use std::pin::pin;
use std::sync::Arc;
use std::sync::mpsc::SyncSender;
use std::time::Duration;

use hyper::server::conn::http1;
use hyper::service::service_fn;
use hyper_util::rt::{TokioIo, TokioTimer};
use tokio::net::{TcpListener, TcpStream};
use tokio::runtime::{Builder, Runtime};
use tokio::sync::watch;
use tokio::task::JoinSet;
use tokio::time;

use crate::application::{Application, answer};

/// The maximum time that a connection waits for the head of its next request. It is longer than a
/// visitor's think time, so that a kept connection is not closed just when a request is sent.
const IDLE: Duration = Duration::from_secs(120);

/// The time limit for open connections to end when the application closes. One second is for
/// running requests to end, and one second for writing their answers.
const FAREWELL: Duration = Duration::from_secs(2);

/// The pause after a failed accept. Usually the process has no descriptor left, and an immediate
/// retry would fail again.
const RECOVER: Duration = Duration::from_millis(10);

/// Runs the HTTP thread until the application closes. Reports through `ready` whether it could
/// start.
pub(crate) fn run<A: Application>(
    listener: net::TcpListener,
    application: Arc<A>,
    closing: watch::Receiver<()>,
    ready: &SyncSender<io::Result<()>>,
) {
    // The caller waits for this result, unless the listener is already closing.
    let say = |word| drop(ready.send(word));
    match event_loop(listener) {
        Ok((runtime, listener)) => {
            say(Ok(()));
            runtime.block_on(serve(listener, application, closing));
        }
        Err(error) => say(Err(error)),
    }
}

fn event_loop(listener: net::TcpListener) -> io::Result<(Runtime, TcpListener)> {
    let runtime = Builder::new_current_thread().enable_all().build()?;
    let entered = runtime.enter();
    let listener = TcpListener::from_std(listener)?;
    drop(entered);
    Ok((runtime, listener))
}

/// Serves connections until `closing` changes or its sender is gone. Then ends the connections, and
/// waits at most [`FAREWELL`] for them.
async fn serve<A: Application>(
    listener: TcpListener,
    application: Arc<A>,
    mut closing: watch::Receiver<()>,
) {
    let mut connections = JoinSet::new();
    loop {
        tokio::select! {
            _ = closing.changed() => break,
            Some(_) = connections.join_next() => {}
            accepted = listener.accept() => match accepted {
                Ok((stream, _)) => {
                    connections.spawn(talk(stream, Arc::clone(&application), closing.clone()));
                }
                Err(_) => time::sleep(RECOVER).await,
            }
        }
    }
    drop(listener);
    let ended = async { while connections.join_next().await.is_some() {} };
    // Connections that are still open are cut off when the set is dropped.
    let _ = time::timeout(FAREWELL, ended).await;
}

/// Serves one connection to its end. Errors are ignored, because they are departures of clients,
/// which the exchange counts.
async fn talk<A: Application>(
    stream: TcpStream,
    application: Arc<A>,
    mut closing: watch::Receiver<()>,
) {
    // Without this option, the kernel may delay the last small packet of an answer.
    let _ = stream.set_nodelay(true);
    let service =
        service_fn(async |request| Ok::<_, Infallible>(answer(&*application, request).await));
    let connection = http1::Builder::new()
        .timer(TokioTimer::new())
        .header_read_timeout(IDLE)
        .serve_connection(TokioIo::new(stream), service);
    let mut connection = pin!(connection);
    tokio::select! {
        _ = connection.as_mut() => return,
        _ = closing.changed() => connection.as_mut().graceful_shutdown(),
    }
    let _ = connection.await;
}
