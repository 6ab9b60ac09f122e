//! The verdict on a gateway's handling of a message. It checks whether the expectation of the case
//! is met. It also checks whether the forwarded bytes are in the plainest form, complete, and the
//! same request as the client's.

use super::corpus::{Case, Expect, Refusal};
use super::lane::{Stream, Trial};
use super::observed::{decoded, excerpt, single_slashes};
use super::reading::{Reading, Request, Tail};
use super::replay::CANARY;

/// A message as the client sends it, with the reference's reading of it.
#[derive(Debug, Clone)]
pub struct Sent<'a> {
    /// All bytes that the client sends, including the canary.
    pub bytes: &'a [u8],
    /// The reference's reading of the bytes.
    pub reading: &'a Reading,
}

/// Returns the reasons why the expectation of `case` is not met; empty if it is met.
pub fn unmet(case: &Case, sent: &Sent<'_>, trial: &Trial) -> Vec<String> {
    let mut why = Vec::new();
    if let Expect::Exactly { forwarded, refusal } = case.expect {
        let count = trial.requests().count();
        if count != forwarded {
            why.push(format!("{count} requests forwarded, not {forwarded}"));
        }
        match refusal {
            Some(refusal) => why.extend(not_refused(refusal, forwarded, sent, trial)),
            None => why.extend(not_served(forwarded, trial)),
        }
    }
    if let Some(target) = &case.sees {
        let others = trial.requests().filter(|request| request.target != *target);
        why.extend(others.map(|other| format!("the target is `{}`", excerpt(&other.target))));
    }
    for lacks in &case.lacks {
        let has = |stream: &Stream| {
            stream.bytes.to_ascii_lowercase().windows(lacks.len()).any(|part| part == lacks)
        };
        if trial.streams.iter().any(has) {
            why.push(format!("`{}` was forwarded", excerpt(lacks)));
        }
    }
    why
}

fn not_refused(refusal: Refusal, behind: usize, sent: &Sent<'_>, trial: &Trial) -> Vec<String> {
    let mut why = Vec::new();
    let last = trial.answers.get(behind..).and_then(<[_]>::last).map(|answer| answer.status);
    let right = match refusal {
        Refusal::Status(status) => last == Some(status),
        Refusal::ClientError => last.is_some_and(|last| (400..500).contains(&last)),
        Refusal::Anyhow => last.is_none_or(|last| last >= 400),
    };
    if !right {
        let last = last.map_or("nothing".into(), |last| last.to_string());
        why.push(format!("refused with {last}, not with {refusal:?}"));
    }
    if last.is_some() && !trial.closed {
        why.push("the connection stays open".into());
    }
    let in_head = matches!(sent.reading.tail, Tail::Fault { in_body: false, .. });
    if behind == 0 && in_head && trial.bytes() > 0 {
        why.push("a part of it was forwarded".into());
    }
    why
}

fn not_served(count: usize, trial: &Trial) -> Option<String> {
    let statuses: Vec<u16> = trial.answers.iter().map(|answer| answer.status).collect();
    let served = statuses.len() == count && statuses.iter().all(|status| *status < 400);
    (!served).then(|| format!("answered with {statuses:?}"))
}

/// Checks the rules that apply to any message. Returns descriptions of the faults in the forwarded
/// bytes, and the number of forwarded requests that the reference does not find in the client's
/// bytes.
pub fn faults(sent: &Sent<'_>, trial: &Trial) -> (Vec<String>, usize) {
    let mut faults = Vec::new();
    for stream in &trial.streams {
        match &stream.reading.tail {
            Tail::Fault { what, .. } => faults.push(format!("forwards {what}")),
            Tail::Head | Tail::Body(_) if stream.kept => {
                faults.push("keeps a connection with an unfinished request".into());
            }
            Tail::Nothing | Tail::Head | Tail::Body(_) => {}
        }
        faults.extend(stream.reading.requests.iter().flat_map(not_plain));
    }
    let mut beyond = 0;
    let mut read = sent.reading.requests.iter();
    for forwarded in trial.requests() {
        match read.next() {
            Some(request) => faults.extend(misread(request, forwarded)),
            None => beyond += 1,
        }
    }
    faults.sort();
    faults.dedup();
    (faults, beyond)
}

/// Describes how the forwarded request differs from the client's; `None` if they mean the same.
fn misread(request: &Request, forwarded: &Request) -> Option<String> {
    let differ = |what: &str, sent: &[u8], forwarded: &[u8]| {
        Some(format!("{what} `{}` is forwarded as `{}`", excerpt(sent), excerpt(forwarded)))
    };
    if request.method != forwarded.method {
        return differ("method", &request.method, &forwarded.method);
    }
    if !is_same_target(request, &forwarded.target) {
        return differ("target", &request.target, &forwarded.target);
    }
    let other = forwarded.host().unwrap_or_default();
    if let Some(host) = request.host().filter(|host| !host.eq_ignore_ascii_case(&other)) {
        return differ("host", &host, &other);
    }
    if request.body != forwarded.body {
        return differ("body", &request.body, &forwarded.body);
    }
    None
}

/// Returns whether both targets have the same path and query, in any equivalent spelling. The
/// target of `OPTIONS http://host` equals `*`, because it asks about the whole server (RFC 9112
/// §3.2.4).
fn is_same_target(request: &Request, forwarded: &[u8]) -> bool {
    let sent = request.path_and_query();
    let whole = request.method == b"OPTIONS" && sent == b"/" && request.target != b"/";
    let split = |target: &[u8]| {
        let end = target.iter().position(|byte| *byte == b'?').unwrap_or(target.len());
        let (path, query) = target.split_at(end);
        (plain_path(if path.is_empty() { b"/" } else { path }), decoded(query))
    };
    split(sent) == split(forwarded) || (whole && forwarded == b"*")
}

/// Normalizes a path: decodes it, removes dot segments (RFC 3986 §5.2.4: `/a//../b` is `/a/b`),
/// then merges consecutive slashes.
fn plain_path(path: &[u8]) -> Vec<u8> {
    let path = decoded(path);
    let mut segments: Vec<&[u8]> = Vec::new();
    let mut rest = path.split(|byte| *byte == b'/').peekable();
    while let Some(segment) = rest.next() {
        match segment {
            b"." | b".." => {
                if segment == b".." && segments.len() > 1 {
                    segments.pop();
                }
                if rest.peek().is_none() {
                    segments.push(b"");
                }
            }
            segment => segments.push(segment),
        }
    }
    single_slashes(&segments.join(&b'/'))
}

/// Returns descriptions of those fields of a forwarded request that a gateway must not forward,
/// even if the client sent them.
fn not_plain(request: &Request) -> Vec<String> {
    let mut why = Vec::new();
    let upgrades = request.all("upgrade").next().is_some();
    for (name, value) in &request.fields {
        let name = String::from_utf8_lossy(name).to_ascii_lowercase();
        let of_connection = match name.as_str() {
            "keep-alive" | "proxy-connection" | "http2-settings" => true,
            "te" => !value.eq_ignore_ascii_case(b"trailers"),
            "connection" => value.split(|byte| *byte == b',').any(|option| {
                let option = option.trim_ascii().to_ascii_lowercase();
                match &option[..] {
                    b"close" | b"keep-alive" | b"te" => false,
                    b"upgrade" => !upgrades,
                    _ => true,
                }
            }),
            _ => false,
        };
        if of_connection {
            why.push(format!("forwards `{name}: {}`", excerpt(value)));
        }
        // Some servers replace characters of a name, as CGI does, and take `name` for `alias`.
        let alias = name.replace(['_', '.'], "-");
        if alias != name && (alias.starts_with("bywash-") || is_framing(&alias)) {
            why.push(format!("forwards `{name}`, another name for `{alias}`"));
        }
    }
    why
}

/// Returns whether `name`, in lower case, is the name of a framing field.
fn is_framing(name: &str) -> bool {
    matches!(name, "content-length" | "transfer-encoding")
}

/// Returns the bytes of `message` followed by the canary.
pub fn followed(message: &[u8]) -> Vec<u8> {
    [message, CANARY].concat()
}

#[cfg(test)]
mod tests {
    use super::super::answers::Answer;
    use super::super::reading::{self, Speaker};
    use super::*;

    fn trial(forwarded: &str, statuses: &[u16], closed: bool) -> Trial {
        let bytes = forwarded.as_bytes().to_vec();
        let reading = reading::read(&bytes, Speaker::Gateway);
        let answer = |status: &u16| Answer { status: *status, fields: vec![], body: vec![] };
        let arrivals = (0..reading.requests.len()).collect();
        let streams = vec![Stream { bytes, reading, arrivals, kept: true }];
        Trial { answers: statuses.iter().map(answer).collect(), closed, streams }
    }

    fn found(sent: &str, forwarded: &str) -> (Vec<String>, usize) {
        let reading = reading::read(sent.as_bytes(), Speaker::Client);
        let sent = Sent { bytes: sent.as_bytes(), reading: &reading };
        faults(&sent, &trial(forwarded, &[], false))
    }

    fn case(expect: Expect) -> Case {
        Case {
            class: "x".into(),
            name: "x".into(),
            why: "x".into(),
            expect,
            sees: Some(b"/a".to_vec()),
            lacks: vec![b"secret".to_vec()],
            bytes: b"GET /a HTTP/1.1\r\nHost: a\r\n\r\n".to_vec(),
        }
    }

    fn met(expect: Expect, forwarded: &str, statuses: &[u16], closed: bool) -> bool {
        let case = case(expect);
        let reading = reading::read(&case.bytes, Speaker::Client);
        let sent = Sent { bytes: &case.bytes, reading: &reading };
        unmet(&case, &sent, &trial(forwarded, statuses, closed)).is_empty()
    }

    const PLAIN: &str = "GET /a HTTP/1.1\r\nHost: a\r\n\r\n";

    #[test]
    fn what_is_forwarded_as_it_was_said_has_no_fault() {
        assert_eq!(found(PLAIN, PLAIN), (vec![], 0));
        assert_eq!(
            found("GET http://a/%61/../b HTTP/1.1\r\nHost: a\r\n\r\n", &PLAIN.replace("/a", "/b")),
            (vec![], 0)
        );
        assert_eq!(
            found(
                "OPTIONS http://a HTTP/1.1\r\nHost: a\r\n\r\n",
                "OPTIONS * HTTP/1.1\r\nHost: a\r\n\r\n"
            ),
            (vec![], 0)
        );
        assert_eq!(found("x", PLAIN), (vec![], 1));
    }

    #[test]
    fn what_is_forwarded_otherwise_is_a_fault() {
        for (forwarded, what) in [
            (PLAIN.replace("GET", "PUT"), "method"),
            (PLAIN.replace("/a", "/b"), "target"),
            (PLAIN.replace("Host: a", "Host: b"), "host"),
            (PLAIN.replace("\r\n\r\n", "\r\nContent-Length: 1\r\n\r\nx"), "body"),
            (PLAIN.replace("Host", "Keep-Alive: 5\r\nHost"), "forwards `keep-alive"),
            (PLAIN.replace("Host", "Connection: X\r\nHost"), "forwards `connection"),
            (PLAIN.replace("Host", "Content_Length: 5\r\nHost"), "forwards `content_length"),
            (PLAIN.replace("HTTP/1.1", "HTTP/1.0"), "forwards HTTP/1.0"),
            (PLAIN[..PLAIN.len() - 1].to_owned(), "keeps a connection"),
        ] {
            let (faults, _) = found(PLAIN, &forwarded);
            assert!(faults.len() == 1 && faults[0].starts_with(what), "{what}: {faults:?}");
        }
    }

    #[test]
    fn an_expectation_is_met_or_not() {
        let exactly = |forwarded, refusal| Expect::Exactly { forwarded, refusal };
        let (served, refused) = (exactly(1, None), exactly(0, Some(Refusal::Status(400))));
        assert!(met(served, PLAIN, &[204], false));
        assert!(!met(served, PLAIN, &[502], false));
        assert!(!met(served, "", &[204], false));
        assert!(!met(served, &PLAIN.replace("/a", "/b"), &[204], false));
        assert!(!met(served, &PLAIN.replace("Host", "X: Secret\r\nHost"), &[204], false));
        assert!(met(refused, "", &[400], true));
        assert!(!met(refused, "", &[400], false));
        assert!(!met(refused, "", &[404], true));
        assert!(!met(refused, PLAIN, &[400], true));
        assert!(met(exactly(0, Some(Refusal::Anyhow)), "", &[], false));
        assert!(met(exactly(1, Some(Refusal::ClientError)), PLAIN, &[204, 417], true));
    }
}
