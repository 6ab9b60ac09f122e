//! Finds cookies in the header fields of requests and responses, and removes a cookie from a
//! request.

mod date;

use bywash_message::{Fields, Name};

/// Returns the value of the request's cookie of this name. If several cookies have the name,
/// returns the first value that is not empty.
pub(crate) fn request_cookie<'a>(fields: &'a Fields, name: &str) -> Option<&'a [u8]> {
    fields.all(Name::Cookie).flat_map(pairs).find_map(|pair| value(name, pair))
}

/// Returns the value that a response sets for the cookie of this name. `now` returns the seconds
/// since 1970, and is called only if the cookie has an `Expires` attribute. A deletion is ignored:
/// its value, such as `deleted`, is the same for all visitors and is not a session.
pub(crate) fn response_cookie<'a>(
    fields: &'a Fields,
    name: &str,
    now: impl Fn() -> i64,
) -> Option<&'a [u8]> {
    let set = |line| value(name, pairs(line).next()?).filter(|_| !is_deleted(line, &now));
    fields.all(Name::SetCookie).find_map(set)
}

/// A `Set-Cookie` line of a response, which sets or deletes a cookie.
pub(crate) struct Line<'a> {
    pub(super) name: &'a [u8],
    pub(super) value: &'a [u8],
    /// Whether the line has the attribute `HttpOnly`: scripts of the page cannot read the cookie.
    pub(super) http_only: bool,
    /// Whether the line deletes the cookie, because its time of expiry has already passed.
    pub(super) deleted: bool,
}

/// Returns the cookies that a response sets or deletes, except those with an empty value. `now`
/// returns the seconds since 1970.
pub(crate) fn response_cookies(
    fields: &Fields,
    now: impl Fn() -> i64,
) -> impl Iterator<Item = Line<'_>> {
    fields.all(Name::SetCookie).filter_map(move |line| {
        let (name, value) = named(pairs(line).next()?)?;
        let is_http_only = |pair: &[u8]| {
            let spelled = pair.split(|byte| *byte == b'=').next().unwrap_or_default();
            spelled.trim_ascii().eq_ignore_ascii_case(b"httponly")
        };
        let http_only = pairs(line).skip(1).any(is_http_only);
        Some(Line { name, value, http_only, deleted: is_deleted(line, &now) })
    })
}

/// Returns the names and values of a request's cookies, except those with an empty value.
pub(crate) fn request_cookies(fields: &Fields) -> impl Iterator<Item = (&[u8], &[u8])> {
    fields.all(Name::Cookie).flat_map(pairs).filter_map(named)
}

/// Returns whether a `Set-Cookie` line deletes its cookie. `Max-Age` takes precedence over
/// `Expires`. If an attribute is repeated, its last valid value counts (RFC 6265 §5.2, §5.3).
fn is_deleted(line: &[u8], now: impl Fn() -> i64) -> bool {
    match attribute(line, b"max-age", is_over) {
        Some(is_over) => is_over,
        None => attribute(line, b"expires", date::parse).is_some_and(|end| end <= now()),
    }
}

fn attribute<T>(line: &[u8], name: &[u8], read: impl Fn(&[u8]) -> Option<T>) -> Option<T> {
    let attributes = pairs(line).skip(1).filter_map(|pair| {
        let equals = pair.iter().position(|byte| *byte == b'=')?;
        let (spelled, value) = (pair[..equals].trim_ascii(), pair[equals + 1..].trim_ascii());
        if spelled.eq_ignore_ascii_case(name) { read(value) } else { None }
    });
    attributes.last()
}

/// Returns whether the value of a `Max-Age` is zero or negative. Returns `None` if it is not a
/// number.
fn is_over(seconds: &[u8]) -> Option<bool> {
    let digits = seconds.strip_prefix(b"-").unwrap_or(seconds);
    let is_number = !digits.is_empty() && digits.iter().all(u8::is_ascii_digit);
    is_number.then(|| digits.len() < seconds.len() || digits.iter().all(|digit| *digit == b'0'))
}

/// Removes every cookie of this name from a request. All other cookies stay unchanged.
pub(crate) fn remove_cookie(fields: &mut Fields, name: &str) {
    let is_there = |line| pairs(line).any(|pair| is_of(name, pair));
    if !fields.all(Name::Cookie).any(is_there) {
        return;
    }
    let lines: Vec<Vec<u8>> = fields.all(Name::Cookie).map(|line| without(line, name)).collect();
    fields.remove(Name::Cookie);
    for line in lines.iter().map(|line| line.trim_ascii()).filter(|line| !line.is_empty()) {
        fields.push(b"Cookie", line);
    }
}

fn without(line: &[u8], name: &str) -> Vec<u8> {
    let mut kept = Vec::with_capacity(line.len() + 1);
    for pair in pairs(line).filter(|pair| !is_of(name, pair)) {
        kept.extend_from_slice(pair);
        kept.push(b';');
    }
    kept.pop();
    kept
}

fn pairs(line: &[u8]) -> impl Iterator<Item = &[u8]> {
    line.split(|byte| *byte == b';')
}

/// Returns the value of a `name=value` pair. Returns `None` if the pair has another name or an
/// empty value.
fn value<'a>(name: &str, pair: &'a [u8]) -> Option<&'a [u8]> {
    let (spelled, value) = named(pair)?;
    (spelled == name.as_bytes()).then_some(value)
}

/// Splits a `name=value` pair. Returns `None` if the name or the value is empty.
fn named(pair: &[u8]) -> Option<(&[u8], &[u8])> {
    let pair = pair.trim_ascii();
    let (name, value) = pair.split_at(pair.iter().position(|byte| *byte == b'=')?);
    let value = &value[1..];
    if name.is_empty() || value.is_empty() { None } else { Some((name, value)) }
}

/// Returns whether some application could take the pair for a cookie of this name.
fn is_of(name: &str, pair: &[u8]) -> bool {
    let spelled = pair.split(|byte| *byte == b'=').next().unwrap_or_default();
    spelled.trim_ascii() == name.as_bytes()
}

#[cfg(test)]
mod tests {
    use super::*;

    fn fields(lines: &[&str]) -> Fields {
        let mut fields = Fields::new();
        fields.push(b"Host", b"a");
        for line in lines {
            fields.push(b"cookie", line.as_bytes());
        }
        fields
    }

    #[test]
    fn a_cookie_is_found_by_its_whole_name_and_not_if_it_is_empty() {
        assert_eq!(value("sid", b" sid=a1 "), Some(&b"a1"[..]));
        for pair in ["sid", "sid=", "xsid=1", "sidx=1", "SID=1"] {
            assert_eq!(value("sid", pair.as_bytes()), None, "{pair}");
        }
        let fields = fields(&["a=1; sid=", "sid=2; sid=3"]);
        assert_eq!(request_cookie(&fields, "sid"), Some(&b"2"[..]));
    }

    /// Returns the value of the session cookie that these `Set-Cookie` lines set in the year 2033.
    fn begun(lines: &[&str]) -> Option<String> {
        let mut fields = Fields::new();
        for line in lines {
            fields.push(b"Set-Cookie", line.as_bytes());
        }
        let value = response_cookie(&fields, "sid", || 2_000_000_000);
        value.map(|value| String::from_utf8(value.to_vec()).unwrap())
    }

    #[test]
    fn a_cookie_is_set_by_a_line_that_does_not_delete_it() {
        for line in [
            "sid=1",
            "sid=1; Max-Age=1",
            "sid=1; max-age=60; Expires=Thu, 01 Jan 1970 00:00:00 GMT",
            "sid=1; Expires=Fri, 01 Jan 2100 00:00:00 GMT",
            "sid=1; Expires=never",
            "sid=1; Max-Age=\"0\"; Max-Age=; Max-Age=-; Max-Age=0s; Max-Age",
            "sid=1; Max-Age=0; Max-Age=99999999999999999999",
            "sid=1; Path=/max-age=0",
        ] {
            assert_eq!(begun(&[line]).as_deref(), Some("1"), "{line}");
        }
        for line in [
            "sid=deleted; expires=Thu, 01-Jan-1970 00:00:01 GMT; Max-Age=0; path=/",
            "sid=deleted; expires=Thu, 01 Jan 1970 00:00:01 GMT",
            "sid=1; Expires=Wed, 18 May 2033 03:33:20 GMT",
            "sid=1; MAX-AGE = 0 ; Expires=Fri, 01 Jan 2100 00:00:00 GMT",
            "sid=1;Max-Age=-1",
            "sid=1; Max-Age=60; Max-Age=000; Max-Age=x",
        ] {
            assert_eq!(begun(&[line]), None, "{line}");
            assert_eq!(begun(&[line, "sid=2"]).as_deref(), Some("2"), "{line}");
        }
    }

    #[test]
    fn one_cookie_is_taken_out_and_the_others_stay_as_they_came() {
        for (before, after) in [
            ("t=1", &[][..]),
            ("a=1; t=1; b=2", &["a=1; b=2"]),
            ("t=1; a=1", &["a=1"]),
            ("a=1;  b = \"x\" ;t=1", &["a=1;  b = \"x\""]),
            ("t=1;t=2; t ; t =3", &[]),
            ("a=t; tt=1; T=1; a=t=1", &["a=t; tt=1; T=1; a=t=1"]),
            (";;a=1;;t=1;", &[";;a=1;;"]),
        ] {
            let mut fields = fields(&[before]);
            remove_cookie(&mut fields, "t");
            let left: Vec<&[u8]> = fields.all(Name::Cookie).collect();
            let after: Vec<&[u8]> = after.iter().map(|line| line.as_bytes()).collect();
            assert_eq!(left, after, "{before}");
        }
    }

    #[test]
    fn it_is_taken_out_of_every_line() {
        let mut fields = fields(&["a=1", "t=1", "b=2; t=2"]);
        remove_cookie(&mut fields, "t");
        let left: Vec<&[u8]> = fields.all(Name::Cookie).collect();
        assert_eq!(left, [&b"a=1"[..], b"b=2"]);
    }
}
