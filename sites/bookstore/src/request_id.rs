//! The name that a request has for everybody it passes.

use http::HeaderMap;

/// The header that carries it.
pub const REQUEST_HEADER: &str = "bywash-request";

/// 1 to 128 of `A-Z a-z 0-9 . _ : -`, so that it can stand in a comment of a statement and in a line of words.
#[derive(Clone, Debug, PartialEq, Eq, Hash)]
pub(crate) struct RequestId(String);

impl RequestId {
    /// The name in the headers, if there is just one. Anything else is ignored: a client may send what it likes.
    pub(crate) fn of(headers: &HeaderMap) -> Option<Self> {
        let mut values = headers.get_all(REQUEST_HEADER).iter();
        let value = values.next().filter(|_| values.next().is_none())?;
        Self::parse(value.to_str().ok()?)
    }

    fn parse(text: &str) -> Option<Self> {
        let plain = |byte: u8| byte.is_ascii_alphanumeric() || b"._:-".contains(&byte);
        let fits = (1..=128).contains(&text.len()) && text.bytes().all(plain);
        fits.then(|| Self(text.to_owned()))
    }

    pub(crate) fn as_str(&self) -> &str {
        &self.0
    }

    /// In front of a statement: PostgreSQL shows the first kilobyte of what runs, and a comment behind is lost.
    pub(crate) fn comment(&self) -> String {
        format!("/*bywash-request='{}'*/ ", self.0)
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn a_name_is_short_and_plain() {
        for good in ["a", "5f1c9a7e00000d42", "A.b_c:d-e", &"x".repeat(128)] {
            assert_eq!(RequestId::parse(good).map(|id| id.0).as_deref(), Some(good));
        }
        for wrong in ["", "a b", "a'b", "a*/", "a?", "é", &"x".repeat(129)] {
            assert_eq!(RequestId::parse(wrong), None, "{wrong:?}");
        }
    }

    #[test]
    fn two_names_are_none() {
        let mut headers = HeaderMap::new();
        headers.append(REQUEST_HEADER, "one".parse().unwrap());
        assert_eq!(RequestId::of(&headers).map(|id| id.0).as_deref(), Some("one"));
        headers.append(REQUEST_HEADER, "two".parse().unwrap());
        assert_eq!(RequestId::of(&headers), None);
    }

    #[test]
    fn the_comment_closes() {
        let comment = RequestId::parse("r-1").unwrap().comment();
        assert_eq!(comment, "/*bywash-request='r-1'*/ ");
    }
}
