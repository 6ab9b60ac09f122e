//! Handles one client connection of the daemon: its messages, one per line, and the responses.
//!
//! Responses may be sent in any order, because a release may have to wait. Their number is limited:
//! the daemon stops reading if too many are outstanding. A client that does not read its responses
//! is disconnected, and its leases end.

use std::rc::Rc;
use std::time::Duration;

use bytes::{Buf, BytesMut};
use bywash_lease::LONGEST;
use tokio::io::{AsyncRead, AsyncReadExt, AsyncWrite, AsyncWriteExt};
use tokio::sync::mpsc;

use crate::peer::{Peer, Rights};
use crate::responder::{Outstanding, Responder};

/// The maximum time for which a client may leave its responses unread.
const PATIENCE: Duration = Duration::from_secs(5);

/// The receiver of the messages of one client. It is dropped when the client sends no more.
pub(crate) trait Backend {
    /// The maximum number of outstanding responses to the client.
    const MAX_OUTSTANDING: usize;

    /// Handles a line of `peer`, without its end. The response is sent to `responder`, immediately
    /// or later.
    fn handle(&self, peer: &Peer, line: &[u8], responder: &Responder);

    /// Waits until the backend can handle no more lines.
    async fn ended(&self);
}

/// A client connection before its first message.
pub(crate) struct Conversation {
    responder: Responder,
    responses: mpsc::UnboundedReceiver<String>,
}

impl Conversation {
    pub(crate) fn new() -> Self {
        let (lines, responses) = mpsc::unbounded_channel();
        Self { responder: Responder { lines, owed: Rc::default() }, responses }
    }

    pub(crate) fn responder(&self) -> &Responder {
        &self.responder
    }

    /// Handles the client until either side or the backend ends the connection.
    pub(crate) async fn run<B: Backend>(
        self,
        stream: impl AsyncRead + AsyncWrite,
        peer: &Peer,
        backend: B,
    ) {
        let Self { responder, responses } = self;
        let (reader, writer) = tokio::io::split(stream);
        let owed = Rc::clone(&responder.owed);
        let mut responding = std::pin::pin!(write_responses(writer, responses, &owed));
        let is_over = tokio::select! {
            () = listen(reader, peer, &backend, &responder) => false,
            () = backend.ended() => false,
            () = &mut responding => true,
        };
        drop(backend);
        drop(responder);
        if !is_over {
            // A client that has shut down only its sending side still gets its responses.
            let _ = tokio::time::timeout(PATIENCE, responding).await;
        }
    }
}

async fn listen<B: Backend>(
    mut reader: impl AsyncRead + Unpin,
    peer: &Peer,
    backend: &B,
    responder: &Responder,
) {
    let mut buffer = BytesMut::with_capacity(16 * 1024);
    loop {
        while let Some(end) = buffer.iter().position(|byte| *byte == b'\n') {
            while responder.owed.count.get() >= B::MAX_OUTSTANDING {
                responder.owed.less.notified().await;
            }
            responder.owed.count.set(responder.owed.count.get() + 1);
            let line = buffer.split_to(end);
            buffer.advance(1);
            backend.handle(peer, &line, responder);
            if peer.rights == Rights::NONE {
                return;
            }
        }
        if buffer.len() > LONGEST {
            // After an overlong line, the start of the next message is unknown.
            return backend.handle(peer, &buffer, responder);
        }
        match reader.read_buf(&mut buffer).await {
            Ok(0) | Err(_) => return,
            Ok(_) => {}
        }
    }
}

async fn write_responses(
    mut writer: impl AsyncWrite + Unpin,
    mut responses: mpsc::UnboundedReceiver<String>,
    owed: &Outstanding,
) {
    while let Some(mut text) = responses.recv().await {
        let mut count = 1;
        while let Ok(more) = responses.try_recv() {
            text.push_str(&more);
            count += 1;
        }
        let writing = async {
            writer.write_all(text.as_bytes()).await?;
            writer.flush().await
        };
        let written = tokio::time::timeout(PATIENCE, writing).await;
        if !matches!(written, Ok(Ok(()))) {
            return;
        }
        // Notifications are subtracted too, so slightly more responses may be outstanding.
        owed.count.set(owed.count.get().saturating_sub(count));
        owed.less.notify_one();
    }
    // TLS says to the other side that the connection ends as intended.
    let _ = tokio::time::timeout(PATIENCE, writer.shutdown()).await;
}
