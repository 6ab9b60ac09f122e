//! Cookies in a head: found by their name, and one of them taken out.

use bywash_message::{Fields, Name};

/// The value of a cookie that a request brings. The first of that name counts, one that is empty
/// not at all.
pub(super) fn brought<'a>(fields: &'a Fields, name: &str) -> Option<&'a [u8]> {
    fields.all(Name::Cookie).flat_map(pairs).find_map(|pair| value(name, pair))
}

/// The value of a cookie that an answer sets.
pub(super) fn set<'a>(fields: &'a Fields, name: &str) -> Option<&'a [u8]> {
    fields.all(Name::SetCookie).find_map(|line| value(name, pairs(line).next()?))
}

/// Takes every cookie of this name out of a request. What is left is as it came.
pub(super) fn take_out(fields: &mut Fields, name: &str) {
    let is_there = |line| pairs(line).any(|pair| is_of(name, pair));
    if !fields.all(Name::Cookie).any(is_there) {
        return;
    }
    let without = |line| {
        let kept: Vec<&[u8]> = pairs(line).filter(|pair| !is_of(name, pair)).collect();
        kept.join(&b';').trim_ascii().to_vec()
    };
    let lines: Vec<Vec<u8>> = fields.all(Name::Cookie).map(without).collect();
    fields.remove(Name::Cookie);
    for line in lines.iter().filter(|line| !line.is_empty()) {
        fields.push(b"Cookie", line);
    }
}

fn pairs(line: &[u8]) -> impl Iterator<Item = &[u8]> {
    line.split(|byte| *byte == b';')
}

/// The value of a `name=value` pair, if it is of this name and not empty.
fn value<'a>(name: &str, pair: &'a [u8]) -> Option<&'a [u8]> {
    let pair = pair.trim_ascii();
    let value = pair.strip_prefix(name.as_bytes())?.strip_prefix(b"=")?;
    if value.is_empty() { None } else { Some(value) }
}

/// Whether some reader could take the pair for one of this name.
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
        assert_eq!(brought(&fields, "sid"), Some(&b"2"[..]));
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
            take_out(&mut fields, "t");
            let left: Vec<&[u8]> = fields.all(Name::Cookie).collect();
            let after: Vec<&[u8]> = after.iter().map(|line| line.as_bytes()).collect();
            assert_eq!(left, after, "{before}");
        }
    }

    #[test]
    fn it_is_taken_out_of_every_line() {
        let mut fields = fields(&["a=1", "t=1", "b=2; t=2"]);
        take_out(&mut fields, "t");
        let left: Vec<&[u8]> = fields.all(Name::Cookie).collect();
        assert_eq!(left, [&b"a=1"[..], b"b=2"]);
    }
}
