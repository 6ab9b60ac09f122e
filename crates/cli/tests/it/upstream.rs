//! A fake application behind the gateway.

use std::io::{BufRead, BufReader, Write};
use std::net::{SocketAddr, TcpListener, TcpStream};
use std::sync::mpsc::{Receiver, Sender, channel};
use std::sync::{Arc, Mutex};
use std::thread;
use std::time::Duration;

/// An application that answers every request. It answers `/slow` only after [`Upstream::answer`],
/// and `/login` with a cookie.
pub(crate) struct Upstream {
    pub(crate) address: SocketAddr,
    asked: Receiver<()>,
    go: Sender<()>,
}

impl Upstream {
    pub(crate) fn new() -> Self {
        let listener = TcpListener::bind("127.0.0.1:0").unwrap();
        let address = listener.local_addr().unwrap();
        let ((sender, asked), (go, wait)) = (channel(), channel());
        let wait = Arc::new(Mutex::new(wait));
        thread::spawn(move || {
            for stream in listener.incoming().flatten() {
                let (sender, wait) = (sender.clone(), Arc::clone(&wait));
                thread::spawn(move || serve(stream, &sender, &wait));
            }
        });
        Self { address, asked, go }
    }

    pub(crate) fn url(&self) -> String {
        format!("http://{}", self.address)
    }

    /// Waits until a request for `/slow` arrives.
    pub(crate) fn is_asked(&self) {
        self.asked.recv_timeout(Duration::from_secs(20)).unwrap();
    }

    /// Returns whether a request for `/slow` arrives within a short time.
    pub(crate) fn is_asked_by_now(&self) -> bool {
        self.asked.recv_timeout(Duration::from_millis(20)).is_ok()
    }

    /// Lets one request for `/slow` be answered.
    pub(crate) fn answer(&self) {
        self.go.send(()).unwrap();
    }
}

fn serve(mut stream: TcpStream, sender: &Sender<()>, wait: &Mutex<Receiver<()>>) {
    let mut reader = BufReader::new(stream.try_clone().unwrap());
    while let Some((path, last)) = request(&mut reader) {
        if path == "/slow" && (sender.send(()).is_err() || wait.lock().unwrap().recv().is_err()) {
            return;
        }
        let cookie = if path == "/login" { "set-cookie: PHPSESSID=1; HttpOnly\r\n" } else { "" };
        let answer =
            format!("HTTP/1.1 200 OK\r\n{cookie}content-length: {}\r\n\r\n{path}", path.len());
        if stream.write_all(answer.as_bytes()).is_err() || last {
            return;
        }
    }
}

/// Reads a request without a body. Returns its path, and whether it is the last request on its
/// connection.
fn request(reader: &mut impl BufRead) -> Option<(String, bool)> {
    let mut lines = reader.lines().map_while(Result::ok);
    let path = lines.next()?.split(' ').nth(1)?.to_owned();
    let fields: Vec<String> = lines.take_while(|line| !line.is_empty()).collect();
    Some((path, fields.iter().any(|field| field.eq_ignore_ascii_case("connection: close"))))
}

/// Returns an address at which no process listens, whichever ports other tests use in the meantime.
pub(crate) fn nobody() -> SocketAddr {
    ([127, 0, 0, 9], 9).into()
}
