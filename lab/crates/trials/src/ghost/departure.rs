//! The ways in which a client can leave: which bytes it sends, and how it closes its connection.

use bywash_harness::http;

use super::client::Leave;

/// The bytes that a client sends before it leaves.
#[derive(Debug, Default)]
pub struct Script {
    /// Bytes sent in one write at the beginning.
    pub first: Vec<u8>,
    /// Bytes sent in one write once the request is queued or running; empty if the client sends no
    /// more.
    pub later: Vec<u8>,
}

/// The paths of a trial's request, and of a second request pipelined after it.
#[derive(Debug)]
pub struct Paths {
    /// Path of the request.
    pub first: String,
    /// Path of the pipelined request; unused in a trial without one.
    pub second: String,
}

/// One way in which a client can leave.
#[derive(Debug)]
pub struct Departure {
    /// Name in the report.
    pub name: &'static str,
    /// The function that returns the bytes to send for the trial's paths.
    pub script: fn(&Paths) -> Script,
    /// How the client closes its connection after it has sent the bytes.
    pub leave: Leave,
}

const fn departure(name: &'static str, script: fn(&Paths) -> Script, leave: Leave) -> Departure {
    Departure { name, script, leave }
}

/// The control: a client that stays. Its request must reach the upstream, or the trial could not
/// detect ghosts.
pub const CONTROL: Departure = departure("GET, stays", get, Leave::Stay);

/// Ways to leave while the request is queued.
pub const QUEUED: [Departure; 11] = [
    departure("GET, FIN", get, Leave::Fin),
    departure("GET, RST", get, Leave::Rst),
    departure("GET, half-close", get, Leave::HalfClose),
    departure("2nd request in same packet, FIN", pipelined_at_once, Leave::Fin),
    departure("2nd request later, FIN", pipelined_later, Leave::Fin),
    departure("POST 1 KB in same packet, FIN", post_at_once, Leave::Fin),
    departure("POST 1 KB in later packet, FIN", post_later, Leave::Fin),
    departure("POST 400 of 1000 bytes, FIN", post_partial, Leave::Fin),
    departure("POST chunked, unfinished, FIN", post_chunked, Leave::Fin),
    departure("POST Expect: 100-continue, FIN", post_expect, Leave::Fin),
    departure("POST 200 KB, FIN behind it", post_large, Leave::Fin),
];

/// Ways to leave while the request runs and the upstream sends nothing.
pub const RUNNING: [Departure; 5] = [
    departure("GET, FIN", get, Leave::Fin),
    departure("GET, RST", get, Leave::Rst),
    departure("GET, half-close", get, Leave::HalfClose),
    departure("2nd request later, FIN", pipelined_later, Leave::Fin),
    departure("POST 1 KB complete, FIN", post_at_once, Leave::Fin),
];

/// Ways to leave while the upstream sends its response.
pub const STREAMING: [Departure; 2] =
    [departure("GET, FIN", get, Leave::Fin), departure("GET, RST", get, Leave::Rst)];

fn get(paths: &Paths) -> Script {
    Script { first: http::get(&paths.first).into(), ..Script::default() }
}

fn pipelined_at_once(paths: &Paths) -> Script {
    let both = http::get(&paths.first) + &http::get(&paths.second);
    Script { first: both.into(), ..Script::default() }
}

fn pipelined_later(paths: &Paths) -> Script {
    Script { first: http::get(&paths.first).into(), later: http::get(&paths.second).into() }
}

fn post_at_once(paths: &Paths) -> Script {
    Script { first: sized_post(paths, 1024, 1024), ..Script::default() }
}

fn post_later(paths: &Paths) -> Script {
    Script { first: sized_post(paths, 1024, 0), later: vec![b'x'; 1024] }
}

fn post_partial(paths: &Paths) -> Script {
    Script { first: sized_post(paths, 1000, 400), ..Script::default() }
}

fn post_chunked(paths: &Paths) -> Script {
    let head = http::post(&paths.first, "Transfer-Encoding: chunked\r\n");
    Script { first: (head + "10\r\n0123456789abcdef\r\n").into(), ..Script::default() }
}

fn post_expect(paths: &Paths) -> Script {
    let head = http::post(&paths.first, "Content-Length: 1000\r\nExpect: 100-continue\r\n");
    Script { first: head.into(), ..Script::default() }
}

/// Returns a script with a body that is longer than a proxy reads ahead. The FIN of the client
/// therefore follows bytes that the proxy has not read.
fn post_large(paths: &Paths) -> Script {
    Script { first: sized_post(paths, 200_000, 200_000), ..Script::default() }
}

fn sized_post(paths: &Paths, announced: usize, sent: usize) -> Vec<u8> {
    let head = http::post(&paths.first, &format!("Content-Length: {announced}\r\n"));
    let mut bytes = head.into_bytes();
    bytes.resize(bytes.len() + sent, b'x');
    bytes
}

#[cfg(test)]
mod tests {
    use super::*;
    use bywash_harness::http::{Head, request_length};

    /// Returns the number of sent body bytes of the first request, and whether that request is
    /// complete. `name` is the name of the way to leave.
    fn first_request(name: &str) -> (usize, bool) {
        let paths = Paths { first: "/a".into(), second: "/b".into() };
        let departure = QUEUED.iter().find(|departure| departure.name == name).unwrap();
        let script = (departure.script)(&paths);
        let head = Head::parse(&script.first).unwrap().unwrap();
        assert_eq!(head.path, "/a");
        let all = [script.first, script.later].concat();
        (all.len() - head.length, request_length(&all).unwrap().is_some())
    }

    #[test]
    fn complete_bodies_are_complete_and_partial_ones_are_not() {
        assert_eq!(first_request("POST 1 KB in same packet, FIN"), (1024, true));
        assert_eq!(first_request("POST 1 KB in later packet, FIN"), (1024, true));
        assert_eq!(first_request("POST 200 KB, FIN behind it"), (200_000, true));
        assert_eq!(first_request("POST 400 of 1000 bytes, FIN"), (400, false));
        assert_eq!(first_request("POST Expect: 100-continue, FIN"), (0, false));
        assert!(!first_request("POST chunked, unfinished, FIN").1);
    }

    #[test]
    fn a_pipelined_request_follows_the_first_with_its_own_path() {
        let paths = Paths { first: "/a".into(), second: "/b".into() };
        let at_once = pipelined_at_once(&paths).first;
        let head = |bytes: &[u8]| Head::parse(bytes).unwrap().unwrap();
        let first = head(&at_once);
        assert_eq!(head(&at_once[first.length..]).path, "/b");
        assert_eq!(head(&pipelined_later(&paths).later).path, "/b");
    }
}
