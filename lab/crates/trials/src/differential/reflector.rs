//! The application behind origins that are proxies themselves (nginx, Apache, HAProxy). The
//! reflector answers each forwarded request with the [reference](super::reading)'s reading of that
//! request.

use super::observed::{self, ObservedRequest};
use super::reading::{self, Request, Speaker, Tail};
use std::io::{self, Read, Write};
use std::net::{TcpListener, TcpStream};
use std::sync::Arc;
use std::sync::atomic::{AtomicBool, Ordering};
use std::thread;
use std::time::Duration;

/// Time after which an idle connection is closed.
const IDLE: Duration = Duration::from_secs(30);
const LONGEST: usize = 8 << 20;

/// A running reflector, which stops accepting connections when the value is dropped.
#[derive(Debug)]
pub struct Reflector {
    port: u16,
    ends: Arc<AtomicBool>,
}

impl Reflector {
    /// Starts a reflector on a free port.
    pub fn open() -> io::Result<Self> {
        let listener = TcpListener::bind("127.0.0.1:0")?;
        let port = listener.local_addr()?.port();
        let ends = Arc::new(AtomicBool::new(false));
        let thread_ends = Arc::clone(&ends);
        thread::spawn(move || {
            for stream in listener.incoming().flatten() {
                if thread_ends.load(Ordering::SeqCst) {
                    return;
                }
                // A broken connection matters only to the origin that opened it, so its error is
                // ignored.
                thread::spawn(move || drop(serve(stream)));
            }
        });
        Ok(Self { port, ends })
    }

    /// Returns the port that the reflector listens on.
    pub fn port(&self) -> u16 {
        self.port
    }
}

impl Drop for Reflector {
    fn drop(&mut self) {
        self.ends.store(true, Ordering::SeqCst);
        // The connect wakes the thread that accepts connections. If the connect fails, that thread
        // ends with the process.
        let _ = TcpStream::connect(("127.0.0.1", self.port));
    }
}

fn serve(mut stream: TcpStream) -> io::Result<()> {
    stream.set_read_timeout(Some(IDLE))?;
    stream.set_nodelay(true)?;
    let (mut bytes, mut room) = (Vec::new(), [0; 16 * 1024]);
    while bytes.len() < LONGEST {
        let count = stream.read(&mut room)?;
        if count == 0 {
            return Ok(());
        }
        bytes.extend(room.get(..count).unwrap_or_default());
        let reading = reading::read(&bytes, Speaker::Client);
        for request in &reading.requests {
            stream.write_all(&reflection(request))?;
            if request.is_last() {
                return Ok(());
            }
        }
        if let Tail::Fault { what, .. } = reading.tail {
            return stream.write_all(&refusal(what));
        }
        let read = reading.requests.last().map_or(0, |last| last.span.end);
        bytes.drain(..read);
    }
    Ok(())
}

fn reflection(request: &Request) -> Vec<u8> {
    let text = observed::ascii(&ObservedRequest::json(request));
    let length = text.len();
    let head = "HTTP/1.1 200 OK\r\nContent-Type: application/json\r\n";
    let message = if request.method == b"HEAD" {
        format!("{head}Reflection: {text}\r\nContent-Length: {length}\r\n\r\n")
    } else {
        format!("{head}Content-Length: {length}\r\n\r\n{text}")
    };
    message.into_bytes()
}

/// Returns the answer to bytes that the reference rejects. An origin that sends such bytes is
/// itself at fault.
fn refusal(what: &str) -> Vec<u8> {
    let length = what.len();
    format!(
        "HTTP/1.1 599 Not Understood\r\nConnection: close\r\nContent-Length: {length}\r\n\r\n{what}"
    )
    .into_bytes()
}

#[cfg(test)]
mod tests {
    use super::super::answers;
    use super::*;

    #[test]
    fn every_request_on_a_connection_is_reflected() {
        let reflector = Reflector::open().unwrap();
        let mut stream = TcpStream::connect(("127.0.0.1", reflector.port())).unwrap();
        let first = "HEAD /1 HTTP/1.1\r\nHost: a\r\n\r\n";
        let last = "GET /2 HTTP/1.1\r\nHost: a\r\nConnection: close\r\n\r\n";
        stream.write_all(format!("{first}{last}").as_bytes()).unwrap();
        let mut bytes = Vec::new();
        stream.read_to_end(&mut bytes).unwrap();
        let (answers, garbage) = answers::all(&bytes, &[true], true);
        let targets: Vec<_> =
            answers.iter().map(|a| ObservedRequest::of(a).unwrap().target.unwrap()).collect();
        assert_eq!((targets, garbage), (vec![b"/1".to_vec(), b"/2".to_vec()], false));
    }
}
