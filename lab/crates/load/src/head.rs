//! The heads of visitors' requests: the header fields by which a site can tell browsers and
//! programs apart.

use http::header::REFERER;
use http::{HeaderMap, HeaderName, HeaderValue, Uri};

/// The header fields that one kind of client sends, in the order in which it sends them. Names are
/// in lower case. `Host`, `Cookie` and `Referer` are added.
#[derive(Clone, Copy, Debug)]
pub struct Head {
    /// The fields of a request for a page.
    pub page: &'static [(&'static str, &'static str)],
    /// The fields of a request for a file of a page, whose path has an extension. A client without
    /// such fields requests no files: a text browser, for example.
    pub file: &'static [(&'static str, &'static str)],
}

impl Head {
    /// Returns whether the client requests `path`.
    pub(crate) fn requests(&self, path: &Uri) -> bool {
        !is_file(path) || !self.file.is_empty()
    }

    /// Adds the fields of a request for `path`. `referrer` is the page that the client comes from;
    /// `None` if the request is its first.
    ///
    /// # Panics
    /// Panics if a field is not valid HTTP.
    pub(crate) fn write(
        &self,
        headers: &mut HeaderMap,
        path: &Uri,
        referrer: Option<&HeaderValue>,
    ) {
        for (name, value) in if is_file(path) { self.file } else { self.page } {
            headers.append(HeaderName::from_static(name), HeaderValue::from_static(value));
        }
        let Some(referrer) = referrer else { return };
        headers.insert(REFERER, referrer.clone());
        if let Some(site) = headers.get_mut("sec-fetch-site") {
            *site = HeaderValue::from_static("same-origin");
        }
    }
}

/// Returns whether a path is that of a file of a page.
pub(crate) fn is_file(path: &Uri) -> bool {
    path.path().rsplit('/').next().is_some_and(|last| last.contains('.'))
}

#[cfg(test)]
mod tests {
    use super::*;

    const HEAD: Head = Head {
        page: &[("b", "1"), ("sec-fetch-site", "none"), ("a", "2")],
        file: &[("accept", "*/*")],
    };

    fn written(path: &'static str, referrer: Option<&'static str>) -> Vec<(String, String)> {
        let mut headers = HeaderMap::new();
        let referrer = referrer.map(HeaderValue::from_static);
        HEAD.write(&mut headers, &Uri::from_static(path), referrer.as_ref());
        let pair = |(name, value): (&HeaderName, &HeaderValue)| {
            (name.as_str().to_owned(), value.to_str().unwrap().to_owned())
        };
        headers.iter().map(pair).collect()
    }

    #[test]
    fn fields_keep_their_order_and_tell_a_first_page_from_a_further_one() {
        let pairs = |pairs: &[(&str, &str)]| -> Vec<(String, String)> {
            pairs.iter().map(|(name, value)| ((*name).into(), (*value).into())).collect()
        };
        let first = pairs(&[("b", "1"), ("sec-fetch-site", "none"), ("a", "2")]);
        assert_eq!(written("/wiki/7", None), first);
        let further =
            pairs(&[("b", "1"), ("sec-fetch-site", "same-origin"), ("a", "2"), ("referer", "x")]);
        assert_eq!(written("/wiki/7", Some("x")), further);
        assert_eq!(written("/a.css", None), pairs(&[("accept", "*/*")]));
    }

    #[test]
    fn a_client_without_fields_for_files_requests_pages_only() {
        let text = Head { file: &[], ..HEAD };
        let [page, file] = ["/wiki/7?a.b", "/a.css"].map(Uri::from_static);
        assert!(HEAD.requests(&file) && HEAD.requests(&page) && text.requests(&page));
        assert!(!text.requests(&file));
    }
}
