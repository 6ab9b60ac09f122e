//! Form templates. In each request, a placeholder `{cookie:NAME}` in a form is replaced by the
//! value of the visitor's cookie NAME.
//!
//! Such placeholders are for an application that protects its forms by a double-submitted cookie
//! (Django's `csrfmiddlewaretoken`). A token that is only in a page cannot be sent, because the
//! load generator does not keep the bodies of answers.

use std::fmt::Write;

use bytes::Bytes;

use crate::cookie_jar::CookieJar;

/// The form template of a class, encoded as `application/x-www-form-urlencoded`.
#[derive(Debug)]
pub(crate) struct FormTemplate {
    /// The texts around the placeholders: the text before the first placeholder, and the text after
    /// each placeholder.
    texts: Vec<String>,
    /// The name of the cookie of each placeholder.
    cookies: Vec<String>,
}

impl FormTemplate {
    /// Parses a form template. Braces that are not a placeholder are ordinary text.
    pub(crate) fn parse(text: &str) -> Self {
        const PLACEHOLDER: &str = "{cookie:";
        let mut form = Self { texts: Vec::new(), cookies: Vec::new() };
        let mut rest = text;
        while let Some((before, (name, behind))) = rest
            .split_once(PLACEHOLDER)
            .and_then(|(before, after)| Some((before, after.split_once('}')?)))
        {
            form.texts.push(before.into());
            form.cookies.push(name.into());
            rest = behind;
        }
        form.texts.push(rest.into());
        form
    }

    /// Returns whether the form is empty, so that requests have no body.
    pub(crate) fn is_empty(&self) -> bool {
        self.cookies.is_empty() && self.texts.iter().all(String::is_empty)
    }

    /// Returns the form of one request of the visitor whose cookies are in `jar`. A placeholder is
    /// replaced by empty text if its cookie is missing.
    pub(crate) fn fill(&self, jar: &CookieJar) -> Bytes {
        let mut text = self.texts[0].clone();
        for (cookie, behind) in self.cookies.iter().zip(&self.texts[1..]) {
            encode(jar.value(cookie).unwrap_or_default(), &mut text);
            text += behind;
        }
        text.into()
    }
}

/// Appends `value` to `text`. All bytes except RFC 3986's unreserved characters are
/// percent-encoded.
fn encode(value: &str, text: &mut String) {
    for byte in value.bytes() {
        if byte.is_ascii_alphanumeric() || b"-._~".contains(&byte) {
            text.push(byte.into());
        } else {
            // Writing to a string cannot fail.
            let _ = write!(text, "%{byte:02X}");
        }
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    fn fill(text: &str, cookies: &[(&str, &str)]) -> String {
        let mut jar = CookieJar::default();
        for (name, value) in cookies {
            jar.insert(name, value);
        }
        String::from_utf8(FormTemplate::parse(text).fill(&jar).to_vec()).unwrap()
    }

    #[test]
    fn placeholders_have_the_visitors_cookies_encoded_and_none_where_she_has_none() {
        let cookies = [("token", "a1"), ("odd", "a&b=c d%")];
        assert_eq!(fill("n=1&t={cookie:token}", &cookies), "n=1&t=a1");
        assert_eq!(fill("{cookie:odd}&u={cookie:token}", &cookies), "a%26b%3Dc%20d%25&u=a1");
        assert_eq!(fill("t={cookie:other}&n=1", &cookies), "t=&n=1");
    }

    #[test]
    fn other_braces_stand_for_themselves() {
        for text in ["", "a={b}", "a={cookie:b", "a={1..2}"] {
            assert_eq!(fill(text, &[]), text);
            assert_eq!(FormTemplate::parse(text).is_empty(), text.is_empty());
        }
    }
}
