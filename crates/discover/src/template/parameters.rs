//! The parameters of a target, by name.

use alloc::vec::Vec;

/// More distinct names are no set that somebody chose.
const MOST: usize = 8;
/// Longer names are none.
const LONGEST: usize = 32;

/// Names and values, in the order of names, each name once.
#[derive(Clone, Debug, Default, PartialEq, Eq)]
pub(super) struct Parameters<'t>(pub(super) Vec<(&'t str, &'t str)>);

/// There are too many, or they have no names.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(super) struct Unruly;

impl<'t> Parameters<'t> {
    /// Of what stands behind the `?`. Of parameters that stand there more than once the first counts.
    pub(super) fn read(query: &'t str) -> Result<Self, Unruly> {
        let mut found: Vec<(&str, &str)> = Vec::new();
        for pair in query.split('&').filter(|pair| !pair.is_empty()) {
            let (name, value) = pair.split_once('=').unwrap_or((pair, ""));
            let name = list_name(name);
            if found.iter().any(|(known, _)| *known == name) {
                continue;
            }
            if found.len() == MOST || !may_be_name(name) {
                return Err(Unruly);
            }
            found.push((name, value));
        }
        found.sort_unstable();
        Ok(Self(found))
    }
}

/// `a[]` and `a[7]` are one list, also if the brackets are encoded.
fn list_name(name: &str) -> &str {
    let ends = ["[", "%5B", "%5b"].into_iter().filter_map(|bracket| name.find(bracket));
    ends.min().map_or(name, |end| &name[..end])
}

/// What may stand in a pattern as it is.
pub(super) fn may_be_name(name: &str) -> bool {
    let is_plain = |byte: u8| byte.is_ascii_alphanumeric() || b"-_.~:%+!$,@".contains(&byte);
    (1..=LONGEST).contains(&name.len()) && name != "..." && name.bytes().all(is_plain)
}

#[cfg(test)]
mod tests {
    use alloc::vec;

    use super::*;

    #[test]
    fn parameters_come_by_name_and_lists_are_one() {
        let read = |query| Parameters::read(query).map(|parameters| parameters.0);
        assert_eq!(read("b=2&a=1&b=3"), Ok(vec![("a", "1"), ("b", "2")]));
        assert_eq!(read("a[]=1&a[]=2&a%5B3%5D=4&flag&&"), Ok(vec![("a", "1"), ("flag", "")]));
        assert_eq!(read(""), Ok(vec![]));
        assert_eq!(read("a=1=2"), Ok(vec![("a", "1=2")]));
        for wrong in ["=1", "...=1", "a*=1", "1&2&3&4&5&6&7&8&9", "x;y=1", &"x".repeat(33)] {
            assert_eq!(read(wrong), Err(Unruly), "{wrong}");
        }
    }
}
