//! The cookies of one visitor on one site.
//!
//! The jar implements the part of RFC 6265 that a session needs: names and values (§4.1.1), and
//! `Max-Age` if it deletes a cookie (§5.2.2). Paths, domains and dates are ignored, because a
//! visitor requests only one site.

use http::header::{COOKIE, SET_COOKIE};
use http::{HeaderMap, HeaderValue};

/// The maximum number of cookies that a jar keeps. A site may set more, but a visitor must not take
/// more memory than a session needs.
const MOST: usize = 16;
/// The maximum length of a cookie's name and value together, in bytes.
const LONGEST: usize = 1024;

/// The cookies of one visitor, as pairs of name and value in the order in which they were first
/// set.
#[derive(Debug, Default)]
pub(crate) struct CookieJar(Vec<(String, String)>);

impl CookieJar {
    /// Adds a cookie that the visitor already has at arrival. The site may change or delete it like
    /// a cookie that the site has set.
    pub(crate) fn insert(&mut self, name: &str, value: &str) {
        self.set(name, value);
    }

    /// Returns the value of the cookie called `name`; `None` if there is none.
    pub(crate) fn value(&self, name: &str) -> Option<&str> {
        self.0.iter().find(|(known, _)| known == name).map(|(_, value)| value.as_str())
    }

    /// Applies the `Set-Cookie` fields of an answer, which set or delete cookies.
    pub(crate) fn store(&mut self, answer: &HeaderMap) {
        let set = answer.get_all(SET_COOKIE).iter();
        for cookie in set.filter_map(|value| value.to_str().ok()) {
            self.store_one(cookie);
        }
    }

    fn store_one(&mut self, cookie: &str) {
        let mut parts = cookie.split(';').map(str::trim);
        let Some((name, value)) = parts.next().and_then(|pair| pair.split_once('=')) else {
            return;
        };
        if parts.any(is_deletion) {
            self.0.retain(|(known, _)| known != name);
        } else if name.len() + value.len() <= LONGEST {
            self.set(name, value);
        }
    }

    fn set(&mut self, name: &str, value: &str) {
        if let Some((_, known)) = self.0.iter_mut().find(|(known, _)| known == name) {
            *known = value.into();
        } else if self.0.len() < MOST {
            self.0.push((name.into(), value.into()));
        }
    }

    /// Adds the field `Cookie` with all cookies to a request.
    pub(crate) fn write_to(&self, request: &mut HeaderMap) {
        let pairs: Vec<String> = self.0.iter().map(|(n, v)| format!("{n}={v}")).collect();
        if let (false, Ok(value)) = (pairs.is_empty(), HeaderValue::from_str(&pairs.join("; "))) {
            request.insert(COOKIE, value);
        }
    }
}

fn is_deletion(attribute: &str) -> bool {
    let Some((name, seconds)) = attribute.split_once('=') else {
        return false;
    };
    name.trim().eq_ignore_ascii_case("max-age")
        && seconds.trim().parse().is_ok_and(|age: i64| age <= 0)
}

#[cfg(test)]
mod tests {
    use super::*;

    fn shown(set: &[&str]) -> Option<String> {
        let mut answer = HeaderMap::new();
        for cookie in set {
            answer.append(SET_COOKIE, cookie.parse().unwrap());
        }
        let mut jar = CookieJar::default();
        jar.store(&answer);
        let mut request = HeaderMap::new();
        jar.write_to(&mut request);
        let value = request.get(COOKIE)?;
        Some(value.to_str().unwrap().into())
    }

    #[test]
    fn the_last_value_of_each_name_is_sent_back() {
        let set = ["sid=1; Path=/; HttpOnly", "cart=a=b", "sid=2"];
        assert_eq!(shown(&set).as_deref(), Some("sid=2; cart=a=b"));
    }

    #[test]
    fn a_deleted_cookie_is_forgotten() {
        assert_eq!(shown(&["sid=1", "sid=; Max-Age=0"]), None);
    }

    #[test]
    fn a_site_that_sets_too_much_is_not_remembered_in_full() {
        let long = format!("long={}", "x".repeat(2000));
        assert_eq!(shown(&[&long, "no pair"]), None);
        let many: Vec<String> = (0..100).map(|i| format!("c{i}=1")).collect();
        let many: Vec<&str> = many.iter().map(String::as_str).collect();
        let shown = shown(&many).expect("some are kept");
        assert_eq!(shown.split(';').count(), MOST);
    }
}
