//! Recognises files that the server sends without computing anything. Requests for them take no
//! slot.
//!
//! A name that looks like a file's proves nothing: an application may answer `/search/x.css` as it
//! answers `/search`. So a target counts as a file when the server has twice responded to exactly
//! this host, path and query in the following way:
//!
//! - with status `200`, a content type of a page's files, a validator (`ETag` or `Last-Modified`),
//!   no cookie, and nothing that forbids a shared cache to store the response;
//! - with at most [`LARGEST`] bytes, which the gateway reads at once, so that a slow client does
//!   not occupy the server (`request/read_ahead.rs`);
//! - with the first byte within [`FAST`]. An image that is computed faster counts as a file.
//!
//! A response that does not fit this description revokes that, and so does one that begins later
//! than [`SLOW`]. Requests that a configured class matches are excluded. At most as many requests
//! for files run at once as there are slots; further ones wait in the queue.
//!
//! **Without a length.** A server that compresses a response while it sends it does not give its
//! length. Then the end of the body decides. Each `Accept-Encoding` makes another target, because a
//! client that takes no compression may get many times as many bytes.
//!
//! **Hostile input.** Clients choose targets, but only the server's responses to GET count. The
//! table has a fixed size and is indexed by a keyed hash, so no client can choose the entry of a
//! target. Each response for a known file lets its entry withstand two responses for other targets
//! with the same entry. So an attacker who wants the gateway to forget a file must send requests
//! with invented queries. For each entry, they must be more than twice as frequent as those for the
//! file.

use std::sync::atomic::{AtomicU64, Ordering};

use bywash_config::Config;
use bywash_engine::Request as EngineRequest;
use bywash_message::{Fields, Framing, Name, Request};
use bywash_units::TimeSpan;
use http::{Method, StatusCode};

use crate::identity::cacheable::may_be_cached;
use crate::process::secret::Secret;

/// The number of entries in the table, a power of two.
const ENTRIES: usize = 16_384;
/// The mask of the bits of an entry that contain the count. The other bits identify the target.
const COUNT: u64 = 0b1111;
/// The count of a target after its first response.
const FIRST: u64 = 1;
/// The amount that each further response of a file adds to the count, up to [`COUNT`].
const FURTHER: u64 = 2;
/// The minimum count with which a target counts as a file. Each response for another target with
/// the same entry subtracts one from the count.
const ENOUGH: u64 = 2;
/// The maximum time to the first byte of a response that shows that its target is a file.
const FAST: TimeSpan = TimeSpan::from_millis(20);
/// The time to the first byte of a response above which its target no longer counts as a file.
pub(crate) const SLOW: TimeSpan = TimeSpan::from_millis(200);

/// The endings of paths that may be files, in lower case.
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
/// The beginnings of the content types of a page's files.
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

/// The maximum number of bytes of a file. The gateway buffers up to this many for a slow client.
pub(crate) const LARGEST: u64 = 512 * 1024;

/// The key of a target that may be a file: a keyed hash of host, path, query and `Accept-Encoding`.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(crate) struct FileKey {
    hash: u64,
    /// Whether the request is a GET, so that its response may show that the target is a file.
    is_whole: bool,
}

impl FileKey {
    /// Returns whether a response with this status has the whole target as its body.
    pub(crate) fn is_whole_in(self, status: StatusCode) -> bool {
        self.is_whole && status == StatusCode::OK
    }
}

/// Returns the key of a request's target. Returns `None` if the target cannot be a file, or if
/// `queue.skip_files` is off.
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
    (may_be && has_ending(target)).then(|| {
        let encodings: Vec<&[u8]> = request.fields.all(Name::AcceptEncoding).collect();
        let encodings = encodings.join(&b',');
        FileKey {
            hash: secret.attempt_key([&request.authority, target, &encodings]).0,
            is_whole: request.method == Method::GET,
        }
    })
}

/// Returns whether the target's path ends with a file extension from [`ENDINGS`].
fn has_ending(target: &[u8]) -> bool {
    let path = target.split(|byte| *byte == b'?').next().unwrap_or_default();
    let last = path.rsplit(|byte| *byte == b'/').next().unwrap_or_default();
    let Some(dot) = last.iter().rposition(|byte| *byte == b'.') else { return false };
    ENDINGS.iter().any(|ending| last[dot + 1..].eq_ignore_ascii_case(ending))
}

/// The conclusion about a target, drawn from a response.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(crate) enum Shows {
    /// The response is that of a file.
    File,
    /// The response proves nothing: both a known file and another target may respond like this.
    Nothing,
    /// The target is not a file.
    Other,
}

/// Returns the conclusion from the head of a response. `began` is the time from the request to the
/// response's first byte. `length` is the number of bytes of the body; `None` if the head does not
/// give it. In that case the conclusion holds only if the body has at most [`LARGEST`] bytes.
pub(crate) fn shows(
    file: FileKey,
    status: StatusCode,
    fields: &Fields,
    length: Option<u64>,
    began: TimeSpan,
) -> Shows {
    if status == StatusCode::NOT_MODIFIED && began <= SLOW {
        return Shows::Nothing;
    }
    let kind = fields.get(Name::ContentType).unwrap_or_default();
    let is_type = |begin: &&[u8]| {
        kind.get(..begin.len()).is_some_and(|kind| kind.eq_ignore_ascii_case(begin))
    };
    let is_content = matches!(status, StatusCode::OK | StatusCode::PARTIAL_CONTENT);
    let may_be_cached = may_be_cached(status, fields) && !fields.has(Name::SetCookie);
    if !is_content || !TYPES.iter().any(is_type) || !may_be_cached || began > SLOW {
        return Shows::Other;
    }
    let names = [&b"etag"[..], b"last-modified"];
    let has_validator = names.iter().any(|name| fields.named(name).next().is_some());
    let is_whole = file.is_whole_in(status);
    if is_whole && length.is_some_and(|length| length > LARGEST) {
        return Shows::Other;
    }
    if is_whole && has_validator && began <= FAST { Shows::File } else { Shows::Nothing }
}

/// The table of targets that are or may become known files.
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

    /// Returns whether this target is known to be a file.
    pub(crate) fn has(&self, key: FileKey) -> bool {
        let now = self.entry(key).load(Ordering::Relaxed);
        now & !COUNT == key.hash & !COUNT && now & COUNT >= ENOUGH
    }

    /// Records the conclusion about this target. Returns whether it displaced a known file. If two
    /// threads record at once, one conclusion may be lost.
    pub(crate) fn note(&self, key: FileKey, shows: Shows) -> bool {
        let (entry, own) = (self.entry(key), key.hash & !COUNT);
        let now = entry.load(Ordering::Relaxed);
        let (count, is_own) = (now & COUNT, now & !COUNT == own && now != 0);
        let next = match shows {
            Shows::File if is_own => own | (count + FURTHER).min(COUNT),
            Shows::File if count > ENOUGH => now - 1,
            Shows::File => own | FIRST,
            Shows::Other if is_own => 0,
            Shows::Nothing | Shows::Other => return false,
        };
        entry.store(next, Ordering::Relaxed);
        !is_own && count == ENOUGH
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
        let file = |is_whole| FileKey { hash: 16, is_whole };
        let shown_to = |is_whole, length, status: u16, lines: &[(&str, &str)], millis| {
            let (status, began) =
                (StatusCode::from_u16(status).unwrap(), TimeSpan::from_millis(millis));
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
        assert_eq!(shown_to(true, Some(LARGEST), 200, &[css, tag], 1), Shows::File);
        assert_eq!(shown_to(true, None, 200, &[css, tag], 1), Shows::File, "if it is short");
        assert_eq!(shown_to(true, Some(LARGEST + 1), 206, &[css, tag], 1), Shows::Nothing);
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

    /// Returns the keys of `count` targets that share one entry of the table.
    fn rivals(files: &StaticFiles, count: u64) -> Vec<FileKey> {
        let hash = |number: u64| (1 + number * ENTRIES as u64) << COUNT.count_ones();
        let keys: Vec<_> =
            (0..count).map(|number| FileKey { hash: hash(number), is_whole: true }).collect();
        assert!(keys.iter().all(|key| std::ptr::eq(files.entry(*key), files.entry(keys[0]))));
        keys
    }

    #[test]
    fn another_target_with_the_same_entry_is_none_and_makes_a_file_forgotten_at_last() {
        let files = StaticFiles::default();
        let rivals = rivals(&files, 2);
        let (one, other) = (rivals[0], rivals[1]);
        assert!(!files.note(one, Shows::File) && !files.note(one, Shows::File));
        assert!(files.has(one) && !files.has(other));
        files.note(other, Shows::Other);
        assert!(!files.note(other, Shows::File) && files.has(one), "it withstands one");
        assert!(files.note(other, Shows::File), "the second one takes the entry");
        assert!(!files.has(one) && !files.has(other));
        assert!(!files.note(other, Shows::File) && files.has(other));
    }

    #[test]
    fn a_file_that_is_asked_for_withstands_invented_queries() {
        let files = StaticFiles::default();
        let rivals = rivals(&files, 1001);
        let (file, invented) = (rivals[0], &rivals[1..]);
        for _ in 0..20 {
            files.note(file, Shows::File);
        }
        for pair in invented.chunks(2) {
            for invented in pair {
                assert!(!files.note(*invented, Shows::File) && !files.has(*invented));
            }
            assert!(files.has(file));
            files.note(file, Shows::File);
        }
    }
}
