//! Splits a connection's bytes into responses, each with its status, fields and body.
//!
//! Unlike requests, responses are parsed tolerantly. The tests do not check how a server formats
//! its own refusal, but they do check whether it answered once or twice.

/// One HTTP response.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct Answer {
    /// Status code, 100 to 599.
    pub status: u16,
    /// Header fields, with names in lower case.
    pub fields: Vec<(String, Vec<u8>)>,
    /// Body without chunk framing.
    pub body: Vec<u8>,
}

/// The result of parsing the first response in some bytes.
#[derive(Debug, Clone, PartialEq, Eq)]
pub enum Next {
    /// A response, and its length in bytes.
    Whole(Answer, usize),
    /// The beginning of a response, or no bytes at all.
    Unfinished,
    /// Bytes that cannot become a response.
    Garbage,
}

impl Answer {
    /// Returns the value of the first field called `name`, which must be in lower case; `None` if
    /// there is none.
    pub fn field(&self, name: &str) -> Option<&[u8]> {
        self.fields.iter().find(|(is, _)| is == name).map(|(_, value)| value.as_slice())
    }

    /// Returns whether this is an interim response (1xx), after which the final one follows.
    pub fn is_interim(&self) -> bool {
        self.status < 200
    }

    /// Returns whether the server announces in `Connection` that it closes the connection.
    pub fn says_close(&self) -> bool {
        let closes = |value: &[u8]| value.to_ascii_lowercase().windows(5).any(|w| w == b"close");
        self.field("connection").is_some_and(closes)
    }
}

/// Parses the first response in `bytes`. `to_head` tells whether the response answers a HEAD
/// request, and `ended` whether no more bytes will come.
pub fn next(bytes: &[u8], to_head: bool, ended: bool) -> Next {
    let start = b"HTTP/1.";
    if !bytes.starts_with(&start[..start.len().min(bytes.len())]) {
        return Next::Garbage;
    }
    let Some(end) = bytes.windows(4).position(|four| four == b"\r\n\r\n").map(|at| at + 4) else {
        return Next::Unfinished;
    };
    let (head, rest) = bytes.split_at(end);
    let Some(mut answer) = head_of(head) else { return Next::Garbage };
    match body(&answer, rest, to_head, ended) {
        Some((body, length)) => {
            answer.body = body;
            Next::Whole(answer, end + length)
        }
        None => Next::Unfinished,
    }
}

/// Returns every response in `bytes`, and whether bytes follow that are not a response. `heads`
/// tells for each request whether its method is HEAD, and `ended` whether no more bytes will come.
pub fn all(bytes: &[u8], heads: &[bool], ended: bool) -> (Vec<Answer>, bool) {
    let (mut answers, mut rest, mut finals) = (Vec::new(), bytes, 0);
    loop {
        match next(rest, heads.get(finals).copied().unwrap_or(false), ended) {
            Next::Whole(answer, length) => {
                finals += usize::from(!answer.is_interim());
                answers.push(answer);
                rest = rest.get(length..).unwrap_or_default();
            }
            Next::Unfinished => return (answers, false),
            Next::Garbage => return (answers, true),
        }
    }
}

fn head_of(head: &[u8]) -> Option<Answer> {
    let mut lines = head.split(|byte| *byte == b'\n').map(<[u8]>::trim_ascii);
    let status = lines.next()?.split(|byte| *byte == b' ').nth(1)?;
    let status = str::from_utf8(status).ok()?.parse().ok()?;
    let field = |line: &[u8]| {
        let colon = line.iter().position(|byte| *byte == b':')?;
        let name = String::from_utf8_lossy(&line[..colon]).to_ascii_lowercase();
        Some((name, line[colon + 1..].trim_ascii().to_vec()))
    };
    Some(Answer { status, fields: lines.filter_map(field).collect(), body: Vec::new() })
}

/// Returns the body of a response, and the number of bytes that it takes up in `rest`, the bytes
/// after the head. Returns `None` if the body is incomplete.
fn body(answer: &Answer, rest: &[u8], to_head: bool, ended: bool) -> Option<(Vec<u8>, usize)> {
    if to_head || answer.is_interim() || matches!(answer.status, 204 | 304) {
        return Some((Vec::new(), 0));
    }
    let whole = ended.then(|| (rest.to_vec(), rest.len()));
    if answer.field("transfer-encoding").is_some() {
        return chunks(rest).or(whole);
    }
    let Some(length) = answer.field("content-length") else { return whole };
    let length: usize = str::from_utf8(length).ok()?.parse().ok()?;
    rest.get(..length).map(|body| (body.to_vec(), length)).or(whole)
}

fn chunks(bytes: &[u8]) -> Option<(Vec<u8>, usize)> {
    let (mut body, mut at) = (Vec::new(), 0_usize);
    loop {
        let rest = bytes.get(at..)?;
        let end = rest.windows(2).position(|two| two == b"\r\n")?;
        let digits = rest[..end].split(|byte| *byte == b';').next()?.trim_ascii();
        let size = usize::from_str_radix(str::from_utf8(digits).ok()?, 16).ok()?;
        at = at.checked_add(end + 2)?;
        if size == 0 {
            let rest = bytes.get(at..)?;
            let trailers = if rest.starts_with(b"\r\n") { Some(2) } else { None };
            let behind = || rest.windows(4).position(|four| four == b"\r\n\r\n").map(|at| at + 4);
            return Some((body, at + trailers.or_else(behind)?));
        }
        let until = at.checked_add(size)?;
        body.extend(bytes.get(at..until)?);
        at = until.checked_add(2)?;
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    const OK: &str = "HTTP/1.1 200 OK\r\nContent-Length: 2\r\nConnection: Close\r\n\r\nab";

    #[test]
    fn answers_are_told_apart() {
        let bytes = format!(
            "HTTP/1.1 100 Continue\r\n\r\n{OK}HTTP/1.1 204 No Content\r\n\r\n\
             HTTP/1.1 200 OK\r\nTransfer-Encoding: chunked\r\n\r\n1\r\nc\r\n0\r\nT: x\r\n\r\n{OK}x"
        );
        let (answers, garbage) = all(bytes.as_bytes(), &[], false);
        let seen: Vec<_> = answers.iter().map(|a| (a.status, a.body.as_slice())).collect();
        let none = b"".as_slice();
        assert_eq!(seen, [(100, none), (200, b"ab"), (204, none), (200, b"c"), (200, b"ab")]);
        assert!(garbage && answers[1].says_close() && !answers[2].says_close());
    }

    #[test]
    fn an_answer_to_head_has_no_body() {
        let bytes = "HTTP/1.1 200 OK\r\nContent-Length: 9\r\n\r\n".repeat(2);
        assert_eq!(all(bytes.as_bytes(), &[true, true], false).0.len(), 2);
    }

    #[test]
    fn an_unfinished_answer_is_one_only_at_the_end() {
        let part = &OK.as_bytes()[..OK.len() - 1];
        assert_eq!(next(part, false, false), Next::Unfinished);
        assert!(matches!(next(part, false, true), Next::Whole(..)));
        assert_eq!(next(b"", false, true), Next::Unfinished);
        assert_eq!(next(b"HTTX", false, false), Next::Garbage);
    }
}
