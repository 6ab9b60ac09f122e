//! The corpus: messages in a readable text form, one file for each class.
//!
//! ```text
//! # A comment. Blank lines separate.
//! name: a-second-host
//! why: RFC 9112 §3.2: more than one Host field is answered with 400.
//! expect: refuse 400
//! lacks: b.test
//! | GET / HTTP/1.1
//! | Host: a.test
//! | Host: b.test
//! |
//! ```
//!
//! `| text` is the text followed by CR LF. `> text` is the text alone. Both forms have the escapes
//! `\r \n \t \0 \s` (a space) `\\ \xHH` and `\{1000*text}` (the text a thousand times; no braces
//! inside). Trailing blanks are written `\s` or `\t`, because a line must not end in an invisible
//! blank.
//!
//! | `expect:` | required result |
//! |---|---|
//! | `refuse 400` | this status, the connection closed, no whole request at the upstream |
//! | `refuse 4xx` | as `refuse 400`, with any 4xx status |
//! | `refuse` | as `refuse 400`, with any 4xx or 5xx status, or closed without an answer |
//! | `forward`, `forward 2` | this number of requests reaches the upstream and is answered |
//! | `forward 1 then refuse 400` | both, in this order |
//! | `either` | both are correct; only agreement is required |
//!
//! `sees:` is the target that the upstream must receive. `lacks:` is a text that must not reach the
//! upstream.
//!
//! This module uses only `std`, because the gateway's tests include its source file.

use std::fs;
use std::io;
use std::path::Path;

/// Maximum length of a message in bytes, so that a typing error in a repetition does not exhaust
/// memory.
const LONGEST: usize = 2 << 20;

/// One message and its required result.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct Case {
    /// Name of the case's file, without the extension.
    pub class: String,
    /// Name of the case, unique in the corpus.
    pub name: String,
    /// The rule of the specification that the message breaks or keeps, with its source.
    pub why: String,
    /// The required result when the message is sent through a gateway.
    pub expect: Expect,
    /// The request target that must arrive at the upstream; `None` if the case does not specify
    /// one.
    pub sees: Option<Vec<u8>>,
    /// Texts that must not arrive at the upstream, in lower case. The comparison ignores case.
    pub lacks: Vec<Vec<u8>>,
    /// The bytes to send: one message, or several one after the other.
    pub bytes: Vec<u8>,
}

/// The result that a case requires of a gateway.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub enum Expect {
    /// Exactly this number of requests is forwarded. If a refusal is given, the next request is
    /// refused.
    Exactly {
        /// Number of complete requests that the upstream receives.
        forwarded: usize,
        /// The required refusal of the bytes after the forwarded requests; `None` if there is
        /// nothing to refuse.
        refusal: Option<Refusal>,
    },
    /// Any result, as long as the gateway and all servers understand the message in the same way.
    Either,
}

/// The way in which a message is refused.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub enum Refusal {
    /// A refusal with the given status.
    Status(u16),
    /// A refusal with any 4xx status.
    ClientError,
    /// A refusal with any 4xx or 5xx status, or by closing the connection without an answer.
    Anyhow,
}

/// An error in a corpus file.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct Mistake {
    /// Line number, from 1.
    pub line: usize,
    /// Description of the error.
    pub what: String,
}

/// Reads every case of every `.txt` file in `folder`, in order of the file names. Fails for a
/// malformed case, with the file and the line in the error, and for a name that two cases share.
pub fn load(folder: &Path) -> io::Result<Vec<Case>> {
    let mut files =
        fs::read_dir(folder)?.map(|entry| Ok(entry?.path())).collect::<io::Result<Vec<_>>>()?;
    files.retain(|file| file.extension().is_some_and(|ending| ending == "txt"));
    files.sort();
    let mut cases: Vec<Case> = Vec::new();
    for file in files {
        let class = file.file_stem().unwrap_or_default().to_string_lossy();
        let found = parse(&class, &fs::read_to_string(&file)?).map_err(|mistake| {
            io::Error::other(format!("{}:{}: {}", file.display(), mistake.line, mistake.what))
        })?;
        for case in found {
            if cases.iter().any(|other| other.name == case.name) {
                return Err(io::Error::other(format!("two cases have the name {}", case.name)));
            }
            cases.push(case);
        }
    }
    Ok(cases)
}

/// Parses the cases of one corpus file, whose name without the extension is `class`. Fails at the
/// first malformed line.
pub fn parse(class: &str, text: &str) -> Result<Vec<Case>, Mistake> {
    let mut cases = Vec::new();
    let mut open: Option<Draft> = None;
    for (at, line) in text.lines().enumerate() {
        let mistake = |what: String| Mistake { line: at + 1, what };
        if line.ends_with([' ', '\t']) {
            return Err(mistake("the line ends in a blank; write \\s".into()));
        }
        if line.is_empty() || line.starts_with('#') {
            continue;
        }
        if let Some(name) = line.strip_prefix("name: ") {
            let before = open.replace(Draft::new(class, name));
            cases.extend(before.map(Draft::finish).transpose().map_err(mistake)?);
        } else {
            let draft = open
                .as_mut()
                .ok_or_else(|| mistake("write `name:` before any other key".into()))?;
            draft.line(line).map_err(mistake)?;
        }
    }
    let last = open.map(Draft::finish).transpose();
    cases.extend(last.map_err(|what| Mistake { line: text.lines().count(), what })?);
    Ok(cases)
}

/// A case that is being parsed.
struct Draft {
    case: Case,
    expect: Option<Expect>,
}

impl Draft {
    fn new(class: &str, name: &str) -> Self {
        let case = Case {
            class: class.into(),
            name: name.into(),
            why: String::new(),
            expect: Expect::Either,
            sees: None,
            lacks: Vec::new(),
            bytes: Vec::new(),
        };
        Self { case, expect: None }
    }

    fn line(&mut self, line: &str) -> Result<(), String> {
        if let Some(text) = line.strip_prefix('|') {
            unescape(text.strip_prefix(' ').unwrap_or(text), &mut self.case.bytes)?;
            self.case.bytes.extend(b"\r\n");
            return Ok(());
        }
        if let Some(text) = line.strip_prefix("> ") {
            return unescape(text, &mut self.case.bytes);
        }
        let (key, value) =
            line.split_once(": ").ok_or("write a key, or a part of a message after | or >")?;
        let mut bytes = Vec::new();
        match key {
            "why" if self.case.why.is_empty() => value.clone_into(&mut self.case.why),
            "expect" if self.expect.is_none() => self.expect = Some(expectation(value)?),
            "sees" if self.case.sees.is_none() => {
                unescape(value, &mut bytes)?;
                self.case.sees = Some(bytes);
            }
            "lacks" => {
                unescape(value, &mut bytes)?;
                self.case.lacks.push(bytes.to_ascii_lowercase());
            }
            _ => return Err(format!("`{key}` is unknown or repeated")),
        }
        Ok(())
    }

    fn finish(self) -> Result<Case, String> {
        let Self { mut case, expect } = self;
        if case.why.is_empty() || case.bytes.is_empty() {
            return Err(format!("`{}` needs `why:` and a message", case.name));
        }
        case.expect = expect.ok_or_else(|| format!("`{}` needs `expect:`", case.name))?;
        Ok(case)
    }
}

fn expectation(text: &str) -> Result<Expect, String> {
    let words: Vec<&str> = text.split(' ').collect();
    let count = |number: &str| number.parse().map_err(|_| format!("`{number}` is not a number"));
    let exactly = |forwarded, refusal| Ok(Expect::Exactly { forwarded, refusal });
    match words[..] {
        ["either"] => Ok(Expect::Either),
        ["forward"] => exactly(1, None),
        ["forward", n] => exactly(count(n)?, None),
        ["forward", n, "then", "refuse"] => exactly(count(n)?, Some(Refusal::Anyhow)),
        ["forward", n, "then", "refuse", how] => exactly(count(n)?, Some(refusal(how)?)),
        ["refuse"] => exactly(0, Some(Refusal::Anyhow)),
        ["refuse", how] => exactly(0, Some(refusal(how)?)),
        _ => Err(format!("`{text}` is not an expectation")),
    }
}

fn refusal(how: &str) -> Result<Refusal, String> {
    match (how, how.parse()) {
        ("4xx", _) => Ok(Refusal::ClientError),
        (_, Ok(status @ 400..=599)) => Ok(Refusal::Status(status)),
        _ => Err(format!("`{how}` is not the status of a refusal")),
    }
}

/// Decodes the escapes in `text` and appends the resulting bytes to `bytes`. Fails for an unknown
/// escape.
fn unescape(text: &str, bytes: &mut Vec<u8>) -> Result<(), String> {
    let mut rest = text;
    while let Some((plain, escaped)) = rest.split_once('\\') {
        append(bytes, plain)?;
        rest = escape(escaped, bytes)?;
    }
    append(bytes, rest)
}

fn append(bytes: &mut Vec<u8>, plain: &str) -> Result<(), String> {
    if !plain.bytes().all(|byte| matches!(byte, b' '..=b'~')) {
        return Err("write bytes beyond printable ASCII as \\xHH".into());
    }
    bytes.extend(plain.as_bytes());
    if bytes.len() > LONGEST { Err("the message is too long".into()) } else { Ok(()) }
}

/// Decodes one escape, after its backslash, and returns the text after the escape.
fn escape<'a>(text: &'a str, bytes: &mut Vec<u8>) -> Result<&'a str, String> {
    let unknown = || format!("unknown escape \\{}", text.chars().take(4).collect::<String>());
    let byte = match text.bytes().next().ok_or_else(unknown)? {
        b'r' => b'\r',
        b'n' => b'\n',
        b't' => b'\t',
        b'0' => 0,
        b's' => b' ',
        b'\\' => b'\\',
        b'x' => {
            let digits = text.get(1..3).ok_or_else(unknown)?;
            bytes.push(u8::from_str_radix(digits, 16).map_err(|_| unknown())?);
            return Ok(&text[3..]);
        }
        b'{' => {
            let (inside, behind) = text[1..].split_once('}').ok_or_else(unknown)?;
            repeat(inside, bytes)?;
            return Ok(behind);
        }
        _ => return Err(unknown()),
    };
    bytes.push(byte);
    Ok(&text[1..])
}

fn repeat(inside: &str, bytes: &mut Vec<u8>) -> Result<(), String> {
    let (times, text) = inside.split_once('*').ok_or("write a repetition as \\{TIMES*TEXT}")?;
    let times: usize = times.parse().map_err(|_| format!("`{times}` is not a number"))?;
    let mut once = Vec::new();
    unescape(text, &mut once)?;
    if once.len().saturating_mul(times).saturating_add(bytes.len()) > LONGEST {
        return Err("the message is too long".into());
    }
    bytes.extend(once.repeat(times));
    Ok(())
}

#[cfg(test)]
mod tests {
    use super::*;

    fn bytes(text: &str) -> Result<Vec<u8>, String> {
        let mut bytes = Vec::new();
        unescape(text, &mut bytes).map(|()| bytes)
    }

    fn one(lines: &str) -> Result<Vec<Case>, Mistake> {
        parse("host", &format!("name: x\nwhy: RFC\n{lines}\n"))
    }

    #[test]
    fn a_case_is_read_as_it_is_written() {
        let text = "# Two.\n\nname: a\nwhy: RFC 1\nexpect: refuse 400\n| GET /\\x80 HTTP/1.1\n|\n\n\
                    name: b\nwhy: RFC 2\nexpect: forward\nsees: /\\\\\nlacks: X-Hop\n> \\{3*ab}\n";
        let cases = parse("host", text).unwrap();
        assert_eq!(cases[0].bytes, b"GET /\x80 HTTP/1.1\r\n\r\n");
        assert_eq!((cases[0].name.as_str(), cases[0].class.as_str()), ("a", "host"));
        assert_eq!(cases[1].bytes, b"ababab");
        assert_eq!(cases[1].sees.as_deref(), Some(b"/\\".as_slice()));
        assert_eq!(cases[1].lacks, [b"x-hop".to_vec()]);
    }

    #[test]
    fn every_escape_has_its_byte() {
        assert_eq!(bytes(r"\r\n\t\0\s\\\xfF.").unwrap(), b"\r\n\t\0 \\\xff.");
        assert_eq!(bytes(r"a\{2*\x00b}c").unwrap(), b"a\0b\0bc");
        for wrong in [r"\", r"\q", r"\x1", r"\xzz", r"\{3*a", r"\{a}", r"\{x*a}", "\u{e4}", "\t"] {
            assert!(bytes(wrong).is_err(), "{wrong}");
        }
        assert!(bytes(r"\x1é").is_err());
    }

    #[test]
    fn a_repetition_has_a_bound() {
        assert!(bytes(r"\{99999999999*a}").is_err());
        assert!(bytes(r"\{18446744073709551615*aa}").is_err());
        assert_eq!(bytes(r"\{0*a}").unwrap(), b"");
    }

    #[test]
    fn an_expectation_has_a_count_and_a_refusal() {
        let exactly = |forwarded, refusal| Ok(Expect::Exactly { forwarded, refusal });
        assert_eq!(expectation("refuse 4xx"), exactly(0, Some(Refusal::ClientError)));
        assert_eq!(expectation("forward 2"), exactly(2, None));
        let both = exactly(1, Some(Refusal::Status(400)));
        assert_eq!(expectation("forward 1 then refuse 400"), both);
        assert_eq!(expectation("either"), Ok(Expect::Either));
        for wrong in ["", "refuse 200", "forward x", "refuse 400 then", "maybe"] {
            assert!(expectation(wrong).is_err(), "{wrong}");
        }
    }

    #[test]
    fn what_is_missing_or_too_much_is_a_mistake_of_its_line() {
        assert_eq!(one("expect: either\n| x\nsees: a\nsees: b").unwrap_err().line, 6);
        assert_eq!(one("expect: either\n| x ").unwrap_err().line, 4);
        assert!(one("expect: either").unwrap_err().what.contains("needs"));
        assert!(one("| x").unwrap_err().what.contains("expect"));
        assert_eq!(parse("host", "| x").unwrap_err().line, 1);
    }
}
