//! Files that the server sends without computing anything. Requests for them do not wait for a
//! slot.
//!
//! A name that looks like a file's proves nothing: an application may answer `/search/x.css` as it
//! answers `/search`. So a target counts as a file when the server has twice responded to exactly
//! this host, path and query
//!
//! - with `200`, a type that files of a page have, a validator (`ETag` or `Last-Modified`), no
//!   cookie, and nothing that forbids a shared cache to keep it;
//! - with at most [`LARGEST`] bytes, so that a client that reads slowly does not occupy the server
//!   longer than another;
//! - and within [`FAST`] to the first byte. An image that is computed faster than that counts as a
//!   file.
//!
//! A different response revokes that, and so does one that does not begin within [`SLOW`]. Requests
//! that a configured class matches are excluded. If as many requests for files run as there are
//! slots, further ones wait in the queue.
//!
//! **Hostile input.** Clients choose targets, but only the server's responses to GET count. The
//! table has a fixed size and is indexed by a keyed hash, so no client can choose which entry a
//! target takes.

use std::sync::atomic::{AtomicU64, Ordering};

use bywash_config::Config;
use bywash_engine::Request as EngineRequest;
use bywash_message::{Fields, Framing, Name, Request};
use bywash_units::Span;
use http::{Method, StatusCode};

use crate::identity::cacheable::may_be_kept;
use crate::process::secret::Secret;

/// The number of entries of the table, a power of two.
const ENTRIES: usize = 16_384;
/// The bits of an entry that count responses. The others identify the target.
const COUNT: u64 = 0b11;
/// The number of responses that make a target a file.
const ENOUGH: u64 = 2;
/// The time within which a response must begin for its target to be learned as a file.
const FAST: Span = Span::from_millis(20);
/// The time after which a response shows that its target is not a file any more.
pub(crate) const SLOW: Span = Span::from_millis(200);

/// Endings of paths that may be files.
const ENDINGS: [&[u8]; 25] = [
    b"avif",
    b"bmp",
    b"css",
    b"eot",
    b"gif",
    b"ico",
    b"jpeg",
    b"jpg",
    b"js",
    b"map",
    b"mjs",
    b"mp3",
    b"mp4",
    b"ogg",
    b"otf",
    b"pdf",
    b"png",
    b"svg",
    b"ttf",
    b"wasm",
    b"webm",
    b"webmanifest",
    b"webp",
    b"woff",
    b"woff2",
];
/// Prefixes of the types that files of a page have.
const TYPES: [&[u8]; 10] = [
    b"application/javascript",
    b"application/manifest+json",
    b"application/pdf",
    b"application/wasm",
    b"audio/",
    b"font/",
    b"image/",
    b"text/css",
    b"text/javascript",
    b"video/",
];

/// The size of the largest file: its response leaves the server at once, however slowly the client
/// reads.
const LARGEST: u64 = 64 * 1024;

/// The key of a target that may be a file.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(crate) struct FileKey {
    hash: u64,
    /// The request is a GET for the whole target, so the response may show that it is a file.
    is_whole: bool,
}

/// Returns the key of a request's target, if it may be a file.
pub(crate) fn asked(
    secret: Secret,
    config: &Config,
    request: &Request,
    asked: &EngineRequest,
) -> Option<FileKey> {
    let is_other = asked.class.index() + 1 == config.classes.len();
    let is_other = is_other && asked.also.is_empty() && asked.rule.is_none();
    let reads = matches!(request.method, Method::GET | Method::HEAD);
    let target = request.target.path_and_query().as_bytes();
    let may_be = config.queue.skip_files && is_other && reads && request.framing == Framing::None;
    (may_be && has_ending(target)).then(|| FileKey {
        hash: secret.attempt_key([&request.authority, target]).0,
        is_whole: request.method == Method::GET,
    })
}

/// Returns whether the path of a target has the ending of a file.
fn has_ending(target: &[u8]) -> bool {
    let path = target.split(|byte| *byte == b'?').next().unwrap_or_default();
    let last = path.rsplit(|byte| *byte == b'/').next().unwrap_or_default();
    let Some(dot) = last.iter().rposition(|byte| *byte == b'.') else { return false };
    ENDINGS.iter().any(|ending| last[dot + 1..].eq_ignore_ascii_case(ending))
}

/// The conclusion about a target from the head of a response.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(crate) enum Shows {
    /// The target may be a file.
    File,
    /// Nothing new: a known file may respond like this.
    Nothing,
    /// The target is not a file.
    Other,
}

/// Draws the conclusion from the head of a response that began `began` after its request. `length`:
/// the bytes of its body, if the head says so.
pub(crate) fn shows(
    file: FileKey,
    status: StatusCode,
    fields: &Fields,
    length: Option<u64>,
    began: Span,
) -> Shows {
    if status == StatusCode::NOT_MODIFIED && began <= SLOW {
        return Shows::Nothing;
    }
    let kind = fields.get(Name::ContentType).unwrap_or_default();
    let is_type = |begin: &&[u8]| {
        kind.get(..begin.len()).is_some_and(|kind| kind.eq_ignore_ascii_case(begin))
    };
    let is_whole = status == StatusCode::OK;
    let is_content = is_whole || status == StatusCode::PARTIAL_CONTENT;
    let may_be_kept = may_be_kept(status, fields) && !fields.has(Name::SetCookie);
    if !is_content || !TYPES.iter().any(is_type) || !may_be_kept || began > SLOW {
        return Shows::Other;
    }
    let names = [&b"etag"[..], b"last-modified"];
    let has_validator = names.iter().any(|name| fields.named(name).next().is_some());
    let is_short = length.is_some_and(|length| length <= LARGEST);
    if file.is_whole && is_whole && !is_short {
        return Shows::Other;
    }
    let is_shown = file.is_whole && is_whole && has_validator && began <= FAST;
    if is_shown { Shows::File } else { Shows::Nothing }
}

/// The known files.
pub(crate) struct StaticFiles(Box<[AtomicU64]>);

impl Default for StaticFiles {
    fn default() -> Self {
        Self((0..ENTRIES).map(|_| AtomicU64::new(0)).collect())
    }
}

impl StaticFiles {
    fn entry(&self, key: FileKey) -> &AtomicU64 {
        &self.0[(key.hash >> COUNT.count_ones()) as usize % ENTRIES]
    }

    /// Returns whether this target is a file.
    pub(crate) fn has(&self, key: FileKey) -> bool {
        self.entry(key).load(Ordering::Relaxed) == (key.hash & !COUNT) | ENOUGH
    }

    /// Records the conclusion about this target. If two come at once, one may be lost.
    pub(crate) fn note(&self, key: FileKey, shows: Shows) {
        let (entry, own) = (self.entry(key), key.hash & !COUNT);
        let now = entry.load(Ordering::Relaxed);
        let count = if now & !COUNT == own { now & COUNT } else { 0 };
        match shows {
            Shows::File => entry.store(own | (count + 1).min(ENOUGH), Ordering::Relaxed),
            Shows::Other if count > 0 => entry.store(0, Ordering::Relaxed),
            Shows::Nothing | Shows::Other => {}
        }
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    fn fields(lines: &[(&str, &str)]) -> Fields {
        let mut fields = Fields::new();
        for (name, value) in lines {
            fields.push(name.as_bytes(), value.as_bytes());
        }
        fields
    }

    #[test]
    fn a_path_ends_as_a_file_does() {
        for target in ["/a.css", "/x/y.JS?v=3", "/f.woff2", "/a.b.png"] {
            assert!(has_ending(target.as_bytes()), "{target}");
        }
        for target in ["/", "/a.php", "/a.css/b", "/css", "/a?b=.css", "/a.", "/.cssx"] {
            assert!(!has_ending(target.as_bytes()), "{target}");
        }
    }

    #[test]
    fn an_answer_shows_a_file_by_all_of_its_marks() {
        let file = |is_whole| FileKey { hash: 4, is_whole };
        let shown_to = |is_whole, length, status: u16, lines: &[(&str, &str)], millis| {
            let (status, began) =
                (StatusCode::from_u16(status).unwrap(), Span::from_millis(millis));
            shows(file(is_whole), status, &fields(lines), length, began)
        };
        let shown =
            |status, lines: &[(&str, &str)], millis| shown_to(true, Some(9), status, lines, millis);
        let (css, tag) = (("Content-Type", "text/css; charset=utf-8"), ("ETag", "\"a\""));
        assert_eq!(shown(200, &[css, tag], 1), Shows::File);
        assert_eq!(shown(200, &[css, ("Last-Modified", "x")], 20), Shows::File);
        for (status, lines, millis) in
            [(200, &[css, tag][..], 21), (206, &[css, tag], 1), (304, &[], 1)]
        {
            assert_eq!(shown(status, lines, millis), Shows::Nothing, "{status} {lines:?}");
        }
        assert_eq!(shown_to(false, Some(9), 200, &[css, tag], 1), Shows::Nothing, "HEAD");
        assert_eq!(shown_to(true, Some(LARGEST + 1), 200, &[css, tag], 1), Shows::Other);
        assert_eq!(shown_to(true, None, 200, &[css, tag], 1), Shows::Other);
        let page = ("Content-Type", "text/html");
        for (status, lines, millis) in [
            (200, &[css, tag][..], 201),
            (304, &[], 201),
            (404, &[css, tag], 1),
            (200, &[page, tag], 1),
            (200, &[tag], 1),
            (200, &[css], 1),
            (200, &[css, tag, ("Set-Cookie", "a=b")], 1),
            (200, &[css, tag, ("Cache-Control", "private")], 1),
            (200, &[css, tag, ("Cache-Control", "no-store")], 1),
        ] {
            assert_eq!(shown(status, lines, millis), Shows::Other, "{status} {lines:?}");
        }
    }

    #[test]
    fn two_answers_make_a_file_and_another_one_takes_it_back() {
        let (files, key) =
            (StaticFiles::default(), FileKey { hash: 0x1234_5678_9abc_def0, is_whole: true });
        let known = |shows| {
            files.note(key, shows);
            files.has(key)
        };
        assert!(!known(Shows::Other) && !known(Shows::File) && !known(Shows::Nothing));
        assert!(known(Shows::File) && known(Shows::File) && known(Shows::Nothing));
        assert!(!known(Shows::Other) && !known(Shows::File) && known(Shows::File));
    }

    #[test]
    fn another_target_with_the_same_entry_is_none() {
        let files = StaticFiles::default();
        let [one, other] =
            [4, 4 + (ENTRIES as u64) * 4].map(|hash| FileKey { hash, is_whole: true });
        assert!(std::ptr::eq(files.entry(one), files.entry(other)));
        (0..2).for_each(|_| files.note(one, Shows::File));
        assert!(files.has(one) && !files.has(other));
        files.note(other, Shows::Other);
        assert!(files.has(one), "an answer for another one takes nothing back");
        files.note(other, Shows::File);
        assert!(!files.has(one) && !files.has(other), "the later one has the entry");
    }
}
