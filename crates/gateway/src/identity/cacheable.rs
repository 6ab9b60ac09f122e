//! Decides whether a shared cache may store a response and serve its cookie to another visitor.
//!
//! **A response counts as storable unless it forbids that.** A cache acts only on the directives
//! that it understands. With an unknown directive, with `no-cache` or with `max-age=0`, it stores
//! the response. Later it validates the response before it serves it (RFC 9111 §4.3), or serves it
//! stale (RFC 5861). If the response has a date or a validator, a cache may estimate how long the
//! response is fresh (§4.2.2). So only two directives guarantee that no shared cache stores the
//! response: `private` and `no-store`. In practice, caches do not store a response without
//! directive, date and validator.

use bywash_message::{Fields, Name};
use http::StatusCode;

/// The header fields that let a cache store a response that has no `Cache-Control`.
const CACHING_FIELDS: [&[u8]; 3] = [b"expires", b"last-modified", b"etag"];

/// The endings of the names of header fields that control only some caches, and that override
/// `Cache-Control` there (RFC 9213 and its predecessors). Examples are `CDN-Cache-Control`, and the
/// fields of Varnish, Fastly, Akamai and nginx.
const TARGETED_SUFFIXES: [&[u8]; 4] =
    [b"-cache-control", b"surrogate-control", b"edge-control", b"x-accel-expires"];

/// The statuses with which a cache may store a response that says nothing about caching (RFC 9110
/// §15.1). The RFC also lists 200, 203, 204 and 206. They are left out here, because ordinary pages
/// have them, and caches store those in practice only with a validator or a date.
const CACHEABLE_STATUSES: [StatusCode; 8] = [
    StatusCode::MULTIPLE_CHOICES,
    StatusCode::MOVED_PERMANENTLY,
    StatusCode::PERMANENT_REDIRECT,
    StatusCode::NOT_FOUND,
    StatusCode::METHOD_NOT_ALLOWED,
    StatusCode::GONE,
    StatusCode::URI_TOO_LONG,
    StatusCode::NOT_IMPLEMENTED,
];

/// Returns whether a shared cache may store the response. A 304 counts as storable, because it
/// updates a response that a cache has stored.
pub(crate) fn may_be_cached(status: StatusCode, fields: &Fields) -> bool {
    if status == StatusCode::NOT_MODIFIED || fields.iter().any(|field| is_targeted(field.spelled)) {
        return true;
    }
    if forbids_shared_caching(fields) {
        return false;
    }
    let has = |name: &&[u8]| fields.named(name).next().is_some();
    directives(fields).next().is_some()
        || CACHING_FIELDS.iter().any(has)
        || CACHEABLE_STATUSES.contains(&status)
}

/// Adds `Cache-Control: private` to a response that sets a visitor's cookie, unless the response
/// already forbids shared caches to store it.
pub(crate) fn keep_private(fields: &mut Fields) {
    if !forbids_shared_caching(fields) {
        fields.push(b"Cache-Control", b"private");
    }
}

/// Returns whether the response forbids every shared cache to store it.
fn forbids_shared_caching(fields: &Fields) -> bool {
    let says =
        |name: &[u8]| directives(fields).any(|directive| directive.eq_ignore_ascii_case(name));
    // A cache that knows `must-understand` ignores `no-store` next to it (§5.2.2.3).
    says(b"private") || (says(b"no-store") && !says(b"must-understand"))
}

fn is_targeted(name: &[u8]) -> bool {
    let ends = |end: &&[u8]| {
        let from = name.len().checked_sub(end.len());
        from.is_some_and(|from| name[from..].eq_ignore_ascii_case(end))
    };
    TARGETED_SUFFIXES.iter().any(ends)
}

/// Returns the directives of `Cache-Control`, over all its lines. Everything behind the first
/// quotation mark of a line counts as one directive, because a comma in a quoted string does not
/// separate directives.
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
        may_be_cached(status, &fields)
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
        let cache_control = |value: Option<&str>| {
            let mut fields = Fields::new();
            if let Some(value) = value {
                fields.push(b"Cache-Control", value.as_bytes());
            }
            keep_private(&mut fields);
            let lines = fields.all(Name::CacheControl).map(|line| str::from_utf8(line).unwrap());
            lines.collect::<Vec<_>>().join("|")
        };
        assert_eq!(cache_control(None), "private");
        assert_eq!(cache_control(Some("")), "|private");
        assert_eq!(cache_control(Some("no-store")), "no-store");
        assert_eq!(cache_control(Some("Private, max-age=1")), "Private, max-age=1");
    }
}
