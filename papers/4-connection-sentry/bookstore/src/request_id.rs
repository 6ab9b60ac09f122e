//! The identifier of a request, which all programs on its way share.

use bywash_lease::RequestId;
use http::HeaderMap;

/// The header field with the identifier of a request.
pub const REQUEST_HEADER: &str = "bywash-request";

/// Returns the request's identifier from its header field. A missing, repeated or invalid field
/// counts as no identifier, because a client may send any value.
pub(crate) fn named(headers: &HeaderMap) -> Option<RequestId> {
    let mut values = headers.get_all(REQUEST_HEADER).iter();
    let value = values.next().filter(|_| values.next().is_none())?;
    value.to_str().ok()?.parse().ok()
}

/// Returns the SQL comment that names the request at the beginning of a statement. PostgreSQL shows
/// only the first kilobyte of a running statement, so that a comment at its end could be lost.
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
