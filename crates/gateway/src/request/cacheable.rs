//! Whether a shared cache may keep an answer, and hand its cookie to the next visitor.
//!
//! **Unless the answer says no.** A cache goes by what it understands: with a directive that is new
//! to it, `no-cache` or `max-age=0` it keeps an answer and asks again before it hands it on (RFC 9111
//! §4.3), or hands it on stale (RFC 5861); by a date or a validator it may guess for how long an
//! answer is good (§4.2.2). So no directive but two says that nobody keeps it, and an answer that
//! says nothing of all this is one that nobody keeps in practice.

use bywash_message::{Fields, Name};
use http::StatusCode;

/// By one of these a cache keeps an answer that says nothing else.
const GROUNDS: [&[u8]; 3] = [b"expires", b"last-modified", b"etag"];

/// How the names of fields end that tell some caches more than `Cache-Control` does, whatever that
/// says (RFC 9213 and what was before): `CDN-Cache-Control` and the like, Varnish, Fastly and
/// Akamai, nginx.
const FOR_SOME: [&[u8]; 4] =
    [b"-cache-control", b"surrogate-control", b"edge-control", b"x-accel-expires"];

/// Statuses by which a cache keeps an answer that says nothing at all (RFC 9110 §15.1). The others of
/// that list (200, 203, 204, 206) belong to ordinary pages, which no cache keeps in practice without
/// a validator or a date.
const KEPT_BY_STATUS: [StatusCode; 8] = [
    StatusCode::MULTIPLE_CHOICES,
    StatusCode::MOVED_PERMANENTLY,
    StatusCode::PERMANENT_REDIRECT,
    StatusCode::NOT_FOUND,
    StatusCode::METHOD_NOT_ALLOWED,
    StatusCode::GONE,
    StatusCode::URI_TOO_LONG,
    StatusCode::NOT_IMPLEMENTED,
];

/// Whether a shared cache may keep it. One that revalidates what is kept already (304) counts as
/// such.
pub(super) fn may_be_kept(status: StatusCode, fields: &Fields) -> bool {
    if status == StatusCode::NOT_MODIFIED || fields.iter().any(|field| is_for_some(field.spelled)) {
        return true;
    }
    if is_kept_by_nobody(fields) {
        return false;
    }
    let has = |name: &&[u8]| fields.named(name).next().is_some();
    directives(fields).next().is_some()
        || GROUNDS.iter().any(has)
        || KEPT_BY_STATUS.contains(&status)
}

/// Tells shared caches that they may not keep an answer, if it does not say so itself: for one that
/// is given a cookie of one visitor's.
pub(super) fn keep_private(fields: &mut Fields) {
    if !is_kept_by_nobody(fields) {
        fields.push(b"Cache-Control", b"private");
    }
}

/// Returns whether an answer says that no shared cache keeps it.
fn is_kept_by_nobody(fields: &Fields) -> bool {
    let says = |name: &[u8]| directives(fields).any(|said| said.eq_ignore_ascii_case(name));
    // A cache that knows `must-understand` takes no notice of `no-store` beside it (§5.2.2.3).
    says(b"private") || (says(b"no-store") && !says(b"must-understand"))
}

fn is_for_some(name: &[u8]) -> bool {
    let ends = |end: &&[u8]| {
        let from = name.len().checked_sub(end.len());
        from.is_some_and(|from| name[from..].eq_ignore_ascii_case(end))
    };
    FOR_SOME.iter().any(ends)
}

/// The directives of `Cache-Control`. What stands behind a quote is one of them, whatever it is: a
/// comma in a quoted text begins none.
fn directives(fields: &Fields) -> impl Iterator<Item = &[u8]> {
    fields.all(Name::CacheControl).flat_map(|line| {
        let quote = line.iter().position(|byte| *byte == b'"').unwrap_or(line.len());
        let (plain, quoted) = line.split_at(quote);
        let parts = plain.split(|byte| *byte == b',').chain([quoted]).map(<[u8]>::trim_ascii);
        parts.filter(|part| !part.is_empty())
    })
}

#[cfg(test)]
mod tests {
    use super::*;

    fn kept(status: StatusCode, lines: &[(&str, &str)]) -> bool {
        let mut fields = Fields::new();
        for (name, value) in lines {
            fields.push(name.as_bytes(), value.as_bytes());
        }
        may_be_kept(status, &fields)
    }

    fn controlled(value: &str) -> bool {
        kept(StatusCode::OK, &[("Cache-Control", value)])
    }

    #[test]
    fn an_answer_is_kept_by_nobody_only_if_it_says_so_or_nothing() {
        for value in [
            "public",
            "max-age=60",
            "no-transform, S-MaxAge=5",
            "immutable,max-age=\"9\"",
            "no-cache",
            "no-cache=\"set-cookie\"",
            "max-age=0",
            "max-age=0, stale-while-revalidate=60",
            "must-revalidate",
            "x-new",
            "no-store, must-understand",
            "private=\"x-a\"",
            "x=\"a, private, b\"",
            "x=\"a\\\", no-store, b\"",
        ] {
            assert!(controlled(value), "{value}");
        }
        for value in ["private", "no-store", "max-age=60, Private", "private, x=\"a\"", "", ","] {
            assert!(!controlled(value), "{value}");
        }
        let both = [("Cache-Control", "max-age=60"), ("cache-control", "no-store")];
        assert!(!kept(StatusCode::OK, &both) && !kept(StatusCode::OK, &[]));
    }

    #[test]
    fn a_date_or_a_validator_is_reason_enough_to_keep_it() {
        for name in ["Expires", "Last-Modified", "etag"] {
            assert!(kept(StatusCode::OK, &[(name, "x")]), "{name}");
            let both = [(name, "x"), ("Cache-Control", "private")];
            assert!(!kept(StatusCode::OK, &both), "{name}");
        }
        assert!(kept(StatusCode::NOT_MODIFIED, &[("Cache-Control", "private")]));
    }

    #[test]
    fn what_some_caches_alone_are_told_counts_whatever_the_others_are_told() {
        for name in [
            "CDN-Cache-Control",
            "Some-CDN-Cache-Control",
            "Surrogate-Control",
            "Edge-Control",
            "X-Accel-Expires",
            "Akamai-Cache-Control",
        ] {
            let both = [(name, "max-age=60"), ("Cache-Control", "private")];
            assert!(kept(StatusCode::OK, &both), "{name}");
        }
    }

    #[test]
    fn a_status_alone_is_reason_enough_for_some() {
        for status in [300, 301, 308, 404, 405, 410, 414, 501] {
            let status = StatusCode::from_u16(status).unwrap();
            assert!(kept(status, &[]), "{status}");
            assert!(!kept(status, &[("Cache-Control", "private")]), "{status}");
        }
        for status in [200, 201, 204, 302, 303, 307] {
            assert!(!kept(StatusCode::from_u16(status).unwrap(), &[]), "{status}");
        }
    }

    #[test]
    fn an_answer_with_a_cookie_of_ours_says_that_it_is_private() {
        let said = |value: Option<&str>| {
            let mut fields = Fields::new();
            if let Some(value) = value {
                fields.push(b"Cache-Control", value.as_bytes());
            }
            keep_private(&mut fields);
            let lines = fields.all(Name::CacheControl).map(|line| str::from_utf8(line).unwrap());
            lines.collect::<Vec<_>>().join("|")
        };
        assert_eq!(said(None), "private");
        assert_eq!(said(Some("")), "|private");
        assert_eq!(said(Some("no-store")), "no-store");
        assert_eq!(said(Some("Private, max-age=1")), "Private, max-age=1");
    }
}
