//! The identifier that a request has in all programs that it passes.

use bywash_lease::RequestId;
use http::HeaderMap;

/// The header with the identifier.
pub const REQUEST_HEADER: &str = "bywash-request";

/// Returns the identifier in the headers, if there is exactly one. Anything else is ignored,
/// because a client may send any value.
pub(crate) fn named(headers: &HeaderMap) -> Option<RequestId> {
    let mut values = headers.get_all(REQUEST_HEADER).iter();
    let value = values.next().filter(|_| values.next().is_none())?;
    value.to_str().ok()?.parse().ok()
}

/// Returns the comment in front of a statement. PostgreSQL shows only the first kilobyte of a
/// running statement, so that a comment at its end would be lost.
pub(crate) fn comment(request: &RequestId) -> String {
    format!("/*bywash-request='{request}'*/ ")
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn two_names_and_what_is_no_name_are_none() {
        let mut headers = HeaderMap::new();
        headers.append(REQUEST_HEADER, "one".parse().unwrap());
        assert_eq!(named(&headers), Some("one".parse().unwrap()));
        headers.append(REQUEST_HEADER, "two".parse().unwrap());
        assert_eq!(named(&headers), None);
        for wrong in ["a*/", "a'b", "a?"] {
            headers.insert(REQUEST_HEADER, wrong.parse().unwrap());
            assert_eq!(named(&headers), None, "{wrong}");
        }
    }

    #[test]
    fn the_comment_closes() {
        assert_eq!(comment(&"r-1".parse().unwrap()), "/*bywash-request='r-1'*/ ");
    }
}
