//! The family of a user agent: its text with each number replaced by `#`. All versions of a browser
//! on the same system are one family.

/// The maximum length of a family in bytes. The names of browsers stand at the end of user agents,
/// and user agents of browsers without the names of embedding apps are shorter than this.
const LONGEST: usize = 200;

/// Writes the family of a user agent to `family`. A number is a digit with the digits, dots and
/// underscores after it, so `140.0.1` and `17_5` are one number each.
pub(super) fn family(agent: &str, family: &mut String) {
    family.clear();
    let mut is_in_number = false;
    for c in agent.chars() {
        let is_of_number = c.is_ascii_digit() || (is_in_number && matches!(c, '.' | '_'));
        let shown = if is_of_number { '#' } else { c };
        if is_of_number && is_in_number {
            continue;
        }
        if family.len() + shown.len_utf8() > LONGEST {
            return;
        }
        family.push(shown);
        is_in_number = is_of_number;
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    fn of(agent: &str) -> String {
        let mut text = "the family before".to_owned();
        family(agent, &mut text);
        text
    }

    #[test]
    fn all_versions_of_a_browser_are_one_family() {
        let firefox = "Mozilla/# (X#; Linux x#; rv:#) Gecko/# Firefox/#";
        for version in ["140.0", "9.0.1", "1"] {
            let agent = format!(
                "Mozilla/5.0 (X11; Linux x86_64; rv:{version}) Gecko/20100101 Firefox/{version}"
            );
            assert_eq!(of(&agent), firefox);
        }
        assert_eq!(of("CPU iPhone OS 17_5_1 like"), of("CPU iPhone OS 18_0 like"));
        assert_ne!(of("Firefox/140.0"), of("Chrome/140.0"));
    }

    #[test]
    fn any_text_has_a_family_of_bounded_length() {
        for (agent, expected) in [
            ("", ""),
            ("7", "#"),
            ("._.", "._."),
            ("1._.2", "#"),
            ("é１", "é１"),
            ("\u{1b}[31m", "\u{1b}[#m"),
        ] {
            assert_eq!(of(agent), expected, "{agent}");
        }
        assert_eq!(of(&"a".repeat(10_000)).len(), LONGEST);
        assert_eq!(of(&"é".repeat(10_000)).len(), LONGEST);
        assert_eq!(of(&format!("a{}", "é".repeat(10_000))).len(), LONGEST - 1);
        assert_eq!(of(&"1".repeat(10_000)), "#");
    }
}
