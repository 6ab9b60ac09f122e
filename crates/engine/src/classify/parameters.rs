//! The query parameters of a target, by name.
//!
//! An application decodes names and values before it looks at them. So `%71` is `q` here, too, and
//! `+` is a space. Each text has one normal form: bytes that are allowed in a pattern are plain,
//! and all others are escapes in capitals.

use alloc::borrow::Cow;
use alloc::string::String;
use alloc::vec::Vec;

use super::reading::decoded;

/// The maximum number of distinct names in a set of parameters ([`Parameters::set`]). A query with
/// more names has no set, because developers hardly choose more than that.
pub(super) const MOST: usize = 8;
/// The maximum length of a parameter's name, in bytes.
const LONGEST: usize = 32;
/// The maximum number of parameters of a query that are read. All further ones are ignored.
const MAX_PARAMETERS: usize = 64;

/// The parameters of a query, in its order.
#[derive(Clone, Debug, Default, PartialEq, Eq)]
pub struct Parameters<'t> {
    given: Vec<Given<'t>>,
    /// The number of distinct names, without those that only PHP reads.
    names: usize,
    /// Whether some parameter has a name that is not allowed in a pattern.
    unnamed: bool,
    /// Whether the query has more parameters than are read.
    too_many: bool,
}

/// A parameter under one name. If PHP reads another name than other applications, there is an entry
/// for each of the two names.
#[derive(Clone, Debug, PartialEq, Eq)]
struct Given<'t> {
    name: Cow<'t, str>,
    value: Cow<'t, str>,
    /// Whether applications differ on the value of the parameter with this name.
    is_doubtful: bool,
    /// Whether only PHP reads the parameter under this name.
    is_of_php: bool,
}

impl<'t> Parameters<'t> {
    /// Parses a query, which is the text after the `?`. Only the first 64 parameters are read.
    pub fn read(query: &'t str) -> Self {
        let mut read = Self::default();
        for pair in query.split('&').filter(|pair| !pair.is_empty()) {
            if read.given.len() >= MAX_PARAMETERS {
                read.too_many = true;
                break;
            }
            let (name, value) = pair.split_once('=').unwrap_or((pair, ""));
            let base = list_name(name);
            let is_list = base.len() < name.len();
            let of_php = name_in_php(&name_of(base), &name_of(&name[base.len()..]));
            let of_php = of_php.filter(|name| may_be_name(name));
            let name = name_of(base);
            let value = value_of(value);
            if let Some(name) = of_php {
                read.add(Cow::Owned(name), value.clone(), true, true);
            }
            if may_be_name(&name) {
                let is_new = read.add(name, value, is_list, false);
                read.names += usize::from(is_new);
            } else {
                read.unnamed = true;
            }
        }
        read
    }

    /// Adds a parameter, and returns whether its name is new.
    fn add(
        &mut self,
        name: Cow<'t, str>,
        value: Cow<'t, str>,
        is_doubtful: bool,
        is_of_php: bool,
    ) -> bool {
        let mut is_repeated = false;
        for known in self.given.iter_mut().filter(|known| known.name == name) {
            known.is_doubtful = true;
            is_repeated |= !known.is_of_php;
        }
        let is_doubtful = is_doubtful || self.given.iter().any(|known| known.name == name);
        self.given.push(Given { name, value, is_doubtful, is_of_php });
        !is_repeated
    }

    /// Returns the set of names, each with its first value, sorted by name. Returns `None` if a
    /// developer would hardly have chosen these parameters: there are too many names, or a name is
    /// not allowed in a pattern.
    pub fn set(&self) -> Option<Vec<(&str, &str)>> {
        if self.unnamed || self.too_many || self.names > MOST {
            return None;
        }
        let mut set: Vec<(&str, &str)> =
            self.own().map(|given| (&*given.name, &*given.value)).collect();
        // The sort is stable, so the first value of each name stays first.
        set.sort_by_key(|(name, _)| *name);
        set.dedup_by_key(|(name, _)| *name);
        Some(set)
    }

    /// Returns the parameters under their names as written in the query. The names that only PHP
    /// reads are left out.
    fn own(&self) -> impl Iterator<Item = &Given<'t>> {
        self.given.iter().filter(|given| !given.is_of_php)
    }

    /// Returns whether a parameter named `name` has a value for which `is_value` returns true. All
    /// values of a repeated name are tried, because some applications take the first and some the
    /// last.
    pub(super) fn has(&self, name: &str, is_value: impl Fn(&str) -> bool) -> bool {
        self.given.iter().any(|given| given.name == name && is_value(&given.value))
    }

    /// Returns whether the query has exactly `names` distinct names, all of them allowed in
    /// patterns.
    pub(super) const fn are(&self, names: usize) -> bool {
        self.names == names && !self.unnamed && !self.too_many
    }

    /// Returns whether applications differ on the value of the parameter `name`: the name is
    /// repeated, names a list, or is one that only PHP reads.
    pub(super) fn is_doubtful(&self, name: &str) -> bool {
        self.given.iter().any(|given| given.name == name && given.is_doubtful)
    }

    /// Returns whether the query has more parameters than are read. If so, any name may be among
    /// those that are not read.
    pub(super) const fn are_too_many(&self) -> bool {
        self.too_many
    }
}

/// Returns the name of a list without its brackets: `a` for `a[]` and `a[7]`, even if the brackets
/// are escaped.
fn list_name(name: &str) -> &str {
    let ends = ["[", "%5B", "%5b"].into_iter().filter_map(|bracket| name.find(bracket));
    ends.min().map_or(name, |end| &name[..end])
}

/// Returns the name that PHP reads instead of this one; `None` if PHP reads this one. PHP drops
/// spaces at the beginning, and reads `_` for each further space and each dot. It also reads `_`
/// for a bracket in `rest` that is not closed (`php_register_variable_ex`).
fn name_in_php(name: &str, rest: &str) -> Option<String> {
    const SPACE: &str = "%20";
    let mut own = name;
    while let Some(more) = own.strip_prefix(SPACE) {
        own = more;
    }
    let is_open = !rest.is_empty() && !rest.contains("%5D");
    let replaced = |text: &str| text.replace(SPACE, "_").replace(['.'], "_").replace("%5B", "_");
    let read = replaced(own) + &if is_open { replaced(rest) } else { String::new() };
    (read != name).then_some(read)
}

/// Returns the normal form of a parameter's name.
pub(super) fn name_of(text: &str) -> Cow<'_, str> {
    in_one_form(text, |_| false)
}

/// Returns the normal form of a parameter's value, in which a slash is plain.
pub(super) fn value_of(text: &str) -> Cow<'_, str> {
    in_one_form(text, |byte| byte == b'/')
}

fn in_one_form(text: &str, also: impl Fn(u8) -> bool) -> Cow<'_, str> {
    let is_plain = |byte: u8| is_plain(byte) || also(byte);
    if text.bytes().all(is_plain) {
        return Cow::Borrowed(text);
    }
    let mut form = String::with_capacity(text.len());
    // A `+` is a space, but an escaped `+` is a `+`.
    for (at, part) in text.split('+').enumerate() {
        let space = (at > 0).then_some(b' ');
        for byte in space.into_iter().chain(decoded(part)) {
            if is_plain(byte) {
                form.push(char::from(byte));
            } else {
                const DIGITS: &[u8; 16] = b"0123456789ABCDEF";
                let digit = |half: u8| char::from(DIGITS[usize::from(half & 15)]);
                form.extend(['%', digit(byte >> 4), digit(byte)]);
            }
        }
    }
    Cow::Owned(form)
}

const fn is_plain(byte: u8) -> bool {
    byte.is_ascii_alphanumeric()
        || matches!(byte, b'-' | b'_' | b'.' | b'~' | b':' | b'!' | b'$' | b',' | b'@')
}

/// Returns whether a name in its normal form is allowed in a pattern.
pub(super) fn may_be_name(name: &str) -> bool {
    (1..=LONGEST).contains(&name.len()) && name != "..."
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn parameters_come_by_name_and_lists_are_one() {
        let is_set = |query, set: &[(&str, &str)]| {
            assert_eq!(Parameters::read(query).set().as_deref(), Some(set), "{query}");
        };
        is_set("b=2&a=1&b=3", &[("a", "1"), ("b", "2")]);
        is_set("a[]=1&a[]=2&a%5B3%5D=4&flag&&", &[("a", "1"), ("flag", "")]);
        is_set("", &[]);
        is_set("a=1=2", &[("a", "1%3D2")]);
        for wrong in ["=1", "...=1", "1&2&3&4&5&6&7&8&9", &"x".repeat(33), &"a&".repeat(65)] {
            assert_eq!(Parameters::read(wrong).set(), None, "{wrong}");
        }
    }

    #[test]
    fn names_and_values_have_one_form() {
        for (text, form) in [
            ("%71", "q"),
            ("q", "q"),
            ("a+b", "a%20b"),
            ("a%2bb", "a%2Bb"),
            ("a*", "a%2A"),
            ("%c3%A9", "%C3%A9"),
            ("100%", "100%25"),
        ] {
            assert_eq!(name_of(text), form, "{text}");
            assert_eq!(name_of(form), form, "a form is its own");
        }
        assert_eq!(value_of("%70roduct%2Fsearch"), "product/search");
    }

    #[test]
    fn any_value_of_a_name_counts_and_what_is_not_looked_at_may_be_anything() {
        let read = Parameters::read("q=1&%71=2");
        let has = |value: &str| read.has("q", |given| given == value);
        assert!(has("1") && has("2") && !has("3"));
        assert!(read.are(1) && read.is_doubtful("q") && !read.are_too_many());
        let query = "x=1&".repeat(65);
        let many = Parameters::read(&query);
        assert!(many.are_too_many() && !many.are(1));
        assert!(!Parameters::read("q&=1").are(1), "one has no name");
    }

    #[test]
    fn names_that_php_reads_as_others_count_under_both() {
        for query in ["+s=1", "%20s=1", "+%20s=1"] {
            let read = Parameters::read(query);
            assert!(read.has("s", |value| value == "1") && read.is_doubtful("s"), "{query}");
            assert!(read.are(1), "{query}");
        }
        let read = Parameters::read("a.b=1&c+d=2&list[]=3&e=4");
        assert!(read.has("a_b", |_| true) && read.is_doubtful("a_b"));
        assert!(read.has("c_d", |_| true) && read.has("a.b", |_| true));
        assert!(!read.is_doubtful("a.b") && !read.is_doubtful("e") && read.is_doubtful("list"));
        assert!(read.are(4));
        for query in ["min[price=1", "min%5bprice=1", "min[pri.ce=1&min_price=2"] {
            let read = Parameters::read(query);
            let name = if query.contains('.') { "min_pri_ce" } else { "min_price" };
            assert!(read.has(name, |value| value == "1"), "{query}");
        }
        assert!(!Parameters::read("a[b]=1").has("a_b]", |_| true));
        let both = Parameters::read("a_b=1&a.b=2");
        assert!(both.has("a_b", |value| value == "2") && both.is_doubtful("a_b"));
    }
}
