//! Names and values of a query or a form body (`application/x-www-form-urlencoded`).
//!
//! Parsing is tolerant, like that of the URL standard's form parser. A broken escape is kept as it
//! is. Bytes that are not UTF-8 become the replacement character. A missing `=` means an empty
//! value.

/// The fields of one request. Those of the query come first, then those of the body.
#[derive(Debug, Default)]
pub struct Form {
    fields: Vec<(String, String)>,
}

impl Form {
    /// Reads the fields of `query`, then those of `body`.
    pub fn read(query: &str, body: &[u8]) -> Self {
        let parts = [query.as_bytes(), body].into_iter().flat_map(|text| text.split(is(b'&')));
        Self { fields: parts.filter(|part| !part.is_empty()).map(field).collect() }
    }

    /// Returns the first value of the field `name`; `None` if there is no such field.
    pub fn get(&self, name: &str) -> Option<&str> {
        self.all(name).next()
    }

    /// Returns the name of every field, in the order in which the fields were sent.
    pub fn names(&self) -> impl Iterator<Item = &str> {
        self.fields.iter().map(|(name, _)| name.as_str())
    }

    /// Returns every value of the field `name`, in the order in which the values were sent.
    pub fn all(&self, name: &str) -> impl Iterator<Item = &str> {
        self.fields.iter().filter(move |(own, _)| own == name).map(|(_, value)| value.as_str())
    }
}

fn is(wanted: u8) -> impl Fn(&u8) -> bool {
    move |byte| *byte == wanted
}

fn field(part: &[u8]) -> (String, String) {
    let mut halves = part.splitn(2, is(b'='));
    let mut next = || decoded(halves.next().unwrap_or_default());
    (next(), next())
}

fn decoded(text: &[u8]) -> String {
    let mut bytes = Vec::with_capacity(text.len());
    let mut rest = text;
    while let [first, after @ ..] = rest {
        let (byte, after) = match (first, escaped(after)) {
            (b'%', Some(byte)) => (byte, &after[2..]),
            (b'+', _) => (b' ', after),
            _ => (*first, after),
        };
        bytes.push(byte);
        rest = after;
    }
    String::from_utf8_lossy(&bytes).into_owned()
}

/// Returns the byte that the first two hexadecimal digits of `text` encode; `None` if `text` does
/// not begin with two such digits.
fn escaped(text: &[u8]) -> Option<u8> {
    let digit = |at: usize| char::from(*text.get(at)?).to_digit(16);
    u8::try_from(digit(0)? * 16 + digit(1)?).ok()
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn escapes_and_plus_signs_are_resolved() {
        let form = Form::read("q=caf%C3%A9+lamp%26co", b"address=1%20High%20St");
        assert_eq!(form.get("q"), Some("café lamp&co"));
        assert_eq!(form.get("address"), Some("1 High St"));
    }

    #[test]
    fn broken_input_is_taken_as_it_stands() {
        let form = Form::read("&&a=%&b=%4&c=%zz&d&=e&f=%ff", b"");
        assert_eq!(form.get("a"), Some("%"));
        assert_eq!(form.get("b"), Some("%4"));
        assert_eq!(form.get("c"), Some("%zz"));
        assert_eq!(form.get("d"), Some(""));
        assert_eq!(form.get(""), Some("e"));
        assert_eq!(form.get("f"), Some("\u{fffd}"));
        assert_eq!(form.get("g"), None);
    }

    #[test]
    fn the_query_comes_before_the_body() {
        let form = Form::read("id=1", b"id=2");
        assert_eq!(form.get("id"), Some("1"));
        assert_eq!(form.all("id").collect::<Vec<_>>(), ["1", "2"]);
        assert_eq!(form.names().collect::<Vec<_>>(), ["id", "id"]);
    }
}
