//! Handles one client connection of the daemon: its messages, one per line, and the responses.
//!
//! Responses may be sent in any order, because a release may have to wait. Their number is limited:
//! the daemon stops reading if too many are outstanding. A client that does not read its responses
//! is disconnected, and its leases end.

use std::rc::Rc;
use std::time::Duration;

use bytes::{Buf, BytesMut};
use bywash_lease::{Holder, LONGEST, Message, Refusal};
use tokio::io::{AsyncReadExt, AsyncWriteExt};
use tokio::net::UnixStream;
use tokio::net::unix::{OwnedReadHalf, OwnedWriteHalf};
use tokio::sync::mpsc;

use crate::lease_broker::{LeaseBroker, Rights};
use crate::responder::{Outstanding, Responder};

/// The maximum number of outstanding responses to a client.
const MAX_OUTSTANDING: usize = 16_384;
/// The maximum time for which a client may leave its responses unread.
const PATIENCE: Duration = Duration::from_secs(5);

/// Handles a client until either side ends the connection.
pub(crate) async fn converse(
    stream: UnixStream,
    broker: Rc<LeaseBroker>,
    rights: Rights,
    holder: Holder,
) {
    let (reader, writer) = stream.into_split();
    let (lines, answers) = mpsc::unbounded_channel();
    let owed = Rc::<Outstanding>::default();
    let responder = Responder { lines, owed: Rc::clone(&owed) };
    broker.connected(holder, responder.clone());
    let mut answering = std::pin::pin!(answer(writer, answers, &owed));
    let is_over = tokio::select! {
        () = listen(reader, &broker, rights, holder, &responder) => false,
        () = &mut answering => true,
    };
    broker.disconnected(holder);
    drop(responder);
    if !is_over {
        // A client that has shut down only its sending side still gets its responses.
        let _ = tokio::time::timeout(PATIENCE, answering).await;
    }
}

async fn listen(
    mut reader: OwnedReadHalf,
    broker: &LeaseBroker,
    rights: Rights,
    holder: Holder,
    responder: &Responder,
) {
    let mut buffer = BytesMut::with_capacity(16 * 1024);
    loop {
        while let Some(end) = buffer.iter().position(|byte| *byte == b'\n') {
            while responder.owed.count.get() >= MAX_OUTSTANDING {
                responder.owed.less.notified().await;
            }
            responder.owed.count.set(responder.owed.count.get() + 1);
            let line = buffer.split_to(end);
            buffer.advance(1);
            handle(&line, broker, rights, holder, responder);
            if rights == Rights::NONE {
                return;
            }
        }
        if buffer.len() > LONGEST {
            // After an overlong line, the start of the next message is unknown.
            return handle(&buffer, broker, rights, holder, responder);
        }
        match reader.read_buf(&mut buffer).await {
            Ok(0) | Err(_) => return,
            Ok(_) => {}
        }
    }
}

fn handle(
    line: &[u8],
    broker: &LeaseBroker,
    rights: Rights,
    holder: Holder,
    responder: &Responder,
) {
    match Message::parse(line) {
        Ok(message) => broker.handle(holder, rights, responder, message),
        Err(wrong) => broker.refuse(responder, wrong.number, Refusal::Malformed, wrong.why),
    }
}

async fn answer(
    mut writer: OwnedWriteHalf,
    mut answers: mpsc::UnboundedReceiver<String>,
    owed: &Outstanding,
) {
    while let Some(mut text) = answers.recv().await {
        let mut count = 1;
        while let Ok(more) = answers.try_recv() {
            text.push_str(&more);
            count += 1;
        }
        let written = tokio::time::timeout(PATIENCE, writer.write_all(text.as_bytes())).await;
        if !matches!(written, Ok(Ok(()))) {
            return;
        }
        // Notifications are subtracted too, so slightly more responses may be outstanding.
        owed.count.set(owed.count.get().saturating_sub(count));
        owed.less.notify_one();
    }
}
