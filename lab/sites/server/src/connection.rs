//! Accepting connections, and letting go of them when the application closes.
//!
//! The thread never blocks and does no work of the application's own, so that a departing client is seen
//! at once, whatever the workers are doing: hyper then drops the future of the exchange, and with it
//! whatever a worker's answer would have gone to.

use std::convert::Infallible;
use std::io;
use std::net;
use std::pin::pin;
use std::sync::Arc;
use std::sync::mpsc::SyncSender;
use std::time::Duration;

use bytes::Bytes;
use http_body_util::Full;
use hyper::server::conn::http1;
use hyper::service::service_fn;
use hyper_util::rt::{TokioIo, TokioTimer};
use tokio::net::{TcpListener, TcpStream};
use tokio::runtime::{Builder, Runtime};
use tokio::sync::watch;
use tokio::task::JoinSet;
use tokio::time;

use crate::application::{Application, answer};

/// What an answer carries: it is made before it is written.
pub type Body = Full<Bytes>;

/// How long a connection may take over the head of its next request. Longer than a visitor thinks,
/// so that a kept connection is not closed under a request just sent.
const IDLE: Duration = Duration::from_secs(120);

/// How long open connections may take to end when the application closes: the second that running work
/// has, and one to write the answers.
const FAREWELL: Duration = Duration::from_secs(2);

/// After a failed accept; most often the process is out of file descriptors, and trying again at
/// once would only spin.
const RECOVER: Duration = Duration::from_millis(10);

/// The whole life of the HTTP thread. Says through `ready` whether it could start.
pub(crate) fn run<A: Application>(
    listener: net::TcpListener,
    application: Arc<A>,
    closing: watch::Receiver<()>,
    ready: &SyncSender<io::Result<()>>,
) {
    // Whoever started us waits for the word; if not, the listener is closing already.
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

/// Serves until `closing` changes or its sender is gone, then ends the connections.
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
    // Whoever is not done by then is cut off when the set is dropped.
    let _ = time::timeout(FAREWELL, ended).await;
}

/// One connection to its end. Its errors are departures of clients, which the exchange counts.
async fn talk<A: Application>(
    stream: TcpStream,
    application: Arc<A>,
    mut closing: watch::Receiver<()>,
) {
    // Without it the kernel may hold the last small packet of an answer back.
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
