//! Renders HTML forms with visible and hidden fields.

use std::fmt::Write;

use crate::Page;
use crate::request::Credentials;

/// Returns an HTML form that leads to `page`. A field is written `name` if it is visible, and
/// `name=value` if it is hidden.
pub(super) fn form(page: Page, fields: &[&str]) -> String {
    let method = page.method().as_str().to_ascii_lowercase();
    let mut form = format!("<form method=\"{method}\" action=\"{}\">\n", page.path());
    for field in fields {
        // Writing to a string cannot fail.
        let _ = match field.split_once('=') {
            Some((name, value)) => {
                let value = escaped(value);
                writeln!(form, "<input type=\"hidden\" name=\"{name}\" value=\"{value}\">")
            }
            None if *field == "password" => {
                writeln!(form, "<p>password: <input type=\"password\" name=\"password\"></p>")
            }
            None => writeln!(form, "<p>{field}: <input name=\"{field}\"></p>"),
        };
    }
    form + "<button>go on</button></form>\n"
}

/// Returns the hidden fields that identify the user in the next form. They are necessary because
/// `RUBiS` has no sessions.
pub(super) fn hidden(credentials: &Credentials) -> [String; 2] {
    [format!("nickname={}", credentials.nickname), format!("password={}", credentials.password)]
}

/// Escapes a text for use in HTML or in a quoted attribute.
pub(super) fn escaped(text: &str) -> String {
    let mut safe = String::with_capacity(text.len());
    for letter in text.chars() {
        match letter {
            '&' => safe += "&amp;",
            '<' => safe += "&lt;",
            '>' => safe += "&gt;",
            '"' => safe += "&quot;",
            '\'' => safe += "&#39;",
            plain => safe.push(plain),
        }
    }
    safe
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn nothing_that_people_write_is_markup() {
        let form = form(Page::StoreBid, &["nickname=\"><script>'&", "bid"]);
        assert!(form.contains("value=\"&quot;&gt;&lt;script&gt;&#39;&amp;\""), "{form}");
        assert!(form.contains("<input name=\"bid\">"), "{form}");
    }
}
