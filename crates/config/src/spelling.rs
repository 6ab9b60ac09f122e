//! Guesses the name that was meant by an unknown one.
//!
//! Names are compared by Jaro-Winkler similarity. An edit distance of 2 would miss `retry` for
//! `retries` and match any short word with any other.

use crate::source::shown;

/// The lowest similarity, from 0 to 1, of a name that is suggested.
const ALIKE: f64 = 0.8;
/// The maximum length in bytes of a name that is compared. A longer name is not a typing error, and
/// its comparison costs time.
pub(crate) const LONGEST: usize = 64;

/// Returns the known name that was probably meant by `given`; `None` if none is similar enough.
pub(crate) fn name<'a>(given: &str, known: impl IntoIterator<Item = &'a str>) -> Option<&'a str> {
    if given.len() > LONGEST {
        return None;
    }
    let given = folded(given);
    let likeness = |known: &str| strsim::jaro_winkler(&given, &folded(known));
    let scored = known.into_iter().map(|known| (likeness(known), known));
    let best = scored.max_by(|(a, _), (b, _)| a.total_cmp(b));
    best.filter(|(likeness, _)| *likeness >= ALIKE).map(|(_, known)| known)
}

/// Returns the help text «did you mean `x`?»; `None` if no known name is similar enough.
pub(crate) fn did_you_mean<'a>(
    given: &str,
    known: impl IntoIterator<Item = &'a str>,
) -> Option<String> {
    name(given, known).map(|known| format!("did you mean `{}`?", shown(known)))
}

fn folded(name: &str) -> String {
    name.to_ascii_lowercase().replace('-', "_")
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn the_likeliest_name_is_suggested_and_an_unlikely_one_is_not() {
        let known = ["retries", "limit", "connect_timeout", "response_timeout"];
        let cases = [
            ("retry", Some("retries")),
            ("Limit", Some("limit")),
            ("connect-timeout", Some("connect_timeout")),
            ("respons_timeout", Some("response_timeout")),
            ("banana", None),
        ];
        for (given, meant) in cases {
            assert_eq!(name(given, known), meant, "{given}");
        }
    }
}
