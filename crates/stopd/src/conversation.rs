//! One client of the daemon: its lines, and their answers.
//!
//! Answers come in any order, as a release may have to wait. How many are still to come is bounded by reading no
//! further; a client that does not read its answers is cut off, and its leases end.

use std::cell::Cell;
use std::rc::Rc;
use std::time::Duration;

use bytes::{Buf, BytesMut};
use bywash_lease::{Answer, Fault, Holder, LONGEST, Message};
use tokio::io::{AsyncReadExt, AsyncWriteExt};
use tokio::net::UnixStream;
use tokio::net::unix::{OwnedReadHalf, OwnedWriteHalf};
use tokio::sync::{Notify, mpsc};

use crate::desk::{Desk, Rights};

/// Answers that a client may be owed.
const OWED: usize = 16_384;
/// How long a client may leave its answers unread.
const PATIENCE: Duration = Duration::from_secs(5);

/// Where answers go.
#[derive(Clone)]
pub(crate) struct Voice {
    lines: mpsc::UnboundedSender<String>,
    owed: Rc<Owed>,
}

#[derive(Default)]
struct Owed {
    count: Cell<usize>,
    less: Notify,
}

impl Voice {
    pub(crate) fn say(&self, number: u64, answer: &Answer) {
        // Whoever has gone hears nothing.
        let _ = self.lines.send(format!("{number} {answer}\n"));
    }
}

/// Talks to a client until one of the two ends it.
pub(crate) async fn converse(stream: UnixStream, desk: Rc<Desk>, rights: Rights, holder: Holder) {
    let (reader, writer) = stream.into_split();
    let (lines, answers) = mpsc::unbounded_channel();
    let owed = Rc::<Owed>::default();
    let voice = Voice { lines, owed: Rc::clone(&owed) };
    desk.comes(holder, voice.clone());
    let mut answering = std::pin::pin!(answer(writer, answers, &owed));
    let is_over = tokio::select! {
        () = listen(reader, &desk, rights, holder, &voice) => false,
        () = &mut answering => true,
    };
    desk.goes(holder);
    drop(voice);
    if !is_over {
        // Whoever has only said all that he had to say still gets his answers.
        let _ = tokio::time::timeout(PATIENCE, answering).await;
    }
}

async fn listen(
    mut reader: OwnedReadHalf,
    desk: &Desk,
    rights: Rights,
    holder: Holder,
    voice: &Voice,
) {
    let mut buffer = BytesMut::with_capacity(16 * 1024);
    loop {
        while let Some(end) = buffer.iter().position(|byte| *byte == b'\n') {
            while voice.owed.count.get() >= OWED {
                voice.owed.less.notified().await;
            }
            voice.owed.count.set(voice.owed.count.get() + 1);
            let line = buffer.split_to(end);
            buffer.advance(1);
            hear(&line, desk, rights, holder, voice);
            if rights == Rights::NONE {
                return;
            }
        }
        if buffer.len() > LONGEST {
            // There is no telling where the next message begins.
            return hear(&buffer, desk, rights, holder, voice);
        }
        match reader.read_buf(&mut buffer).await {
            Ok(0) | Err(_) => return,
            Ok(_) => {}
        }
    }
}

fn hear(line: &[u8], desk: &Desk, rights: Rights, holder: Holder, voice: &Voice) {
    match Message::parse(line) {
        Ok(message) => desk.hear(holder, rights, voice, message),
        Err(wrong) => desk.refuse(voice, wrong.number, Fault::Malformed, wrong.why),
    }
}

async fn answer(
    mut writer: OwnedWriteHalf,
    mut answers: mpsc::UnboundedReceiver<String>,
    owed: &Owed,
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
        // What nobody asked for is counted too, as if it had been: then a little more may be owed.
        owed.count.set(owed.count.get().saturating_sub(count));
        owed.less.notify_one();
    }
}
