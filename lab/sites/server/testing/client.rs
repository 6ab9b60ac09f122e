//! A minimal HTTP client for tests, which keeps a cookie and can leave. The tests of each site
//! include this source file.

use std::io::{Read, Write};
use std::net::{SocketAddr, TcpStream};
use std::time::Duration;

/// The read timeout. It is far longer than anything a test waits for. It makes a test fail if the
/// server hangs, instead of hanging the test.
const PATIENCE: Duration = Duration::from_secs(30);

/// A visitor with at most one cookie.
pub(crate) struct Client {
    address: SocketAddr,
    pub(crate) sid: Option<String>,
}

/// A response.
#[derive(Debug)]
pub(crate) struct Reply {
    pub(crate) status: u16,
    pub(crate) head: String,
    pub(crate) body: String,
}

/// A request whose response is pending. Dropping the value disconnects the client.
pub(crate) struct Pending(TcpStream);

impl Client {
    pub(crate) fn new(address: SocketAddr) -> Self {
        Self { address, sid: None }
    }

    pub(crate) fn with_sid(address: SocketAddr, sid: &str) -> Self {
        Self { address, sid: Some(sid.to_owned()) }
    }

    /// Sends a request without waiting for the response. `extra` consists of complete header lines.
    pub(crate) fn send(&self, method: &str, target: &str, extra: &str, body: &str) -> Pending {
        let cookie = self.sid.as_ref().map(|sid| format!("Cookie: a=b; sid={sid}\r\n"));
        let head = format!(
            "{method} {target} HTTP/1.1\r\nHost: site\r\nConnection: close\r\n\
             Content-Length: {}\r\n{}{extra}\r\n",
            body.len(),
            cookie.unwrap_or_default(),
        );
        let mut stream = TcpStream::connect(self.address).unwrap();
        stream.set_read_timeout(Some(PATIENCE)).unwrap();
        // The server may refuse the request before it has read all of it. In that case only its
        // response matters.
        let _ = stream.write_all((head + body).as_bytes());
        Pending(stream)
    }

    pub(crate) fn get(&mut self, target: &str) -> Reply {
        self.exchange("GET", target, "", "")
    }

    pub(crate) fn post(&mut self, target: &str, body: &str) -> Reply {
        self.exchange("POST", target, "", body)
    }

    /// Sends a request, waits for the response, and keeps the cookie that the response sets.
    pub(crate) fn exchange(
        &mut self,
        method: &str,
        target: &str,
        extra: &str,
        body: &str,
    ) -> Reply {
        let reply = self.send(method, target, extra, body).reply();
        if let Some(sid) = reply.new_sid() {
            self.sid = Some(sid);
        }
        reply
    }
}

impl Pending {
    pub(crate) fn reply(mut self) -> Reply {
        let mut bytes = Vec::new();
        if let Err(error) = self.0.read_to_end(&mut bytes) {
            assert!(!bytes.is_empty(), "no reply: {error}");
        }
        let text = String::from_utf8(bytes).unwrap();
        let (head, body) = text.split_once("\r\n\r\n").expect("a head");
        let status = head.split(' ').nth(1).unwrap().parse().unwrap();
        Reply { status, head: head.to_owned(), body: body.to_owned() }
    }

    pub(crate) fn leave(self) {
        drop(self);
    }
}

impl Reply {
    pub(crate) fn header(&self, name: &str) -> Option<&str> {
        let lines = self.head.lines().filter_map(|line| line.split_once(": "));
        lines.filter(|(own, _)| own.eq_ignore_ascii_case(name)).map(|(_, value)| value).next()
    }

    pub(crate) fn new_sid(&self) -> Option<String> {
        let cookie = self.header("set-cookie")?;
        let sid = cookie.strip_prefix("sid=")?.strip_suffix("; Path=/; HttpOnly")?;
        Some(sid.to_owned())
    }
}
