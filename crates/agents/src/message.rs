//! The components of a request that a signature may cover.

use std::borrow::Cow;

use sfv::{Dictionary, FieldType, Item, Parser};

/// A request as its recipient sees it.
pub trait Message {
    /// Returns a derived component (RFC 9421 §2.2), such as `@authority`. Returns `None` if the
    /// recipient does not support it.
    fn derived(&self, name: &str) -> Option<Cow<'_, str>>;

    /// Returns the values of all fields with this name, which is in lower case.
    fn fields(&self, name: &str) -> impl Iterator<Item = &[u8]>;
}

/// The parameter that selects a member of a field that is a dictionary (RFC 9421 §2.1.2).
const KEY: &str = "key";

/// Returns the value of a component as a signature covers it. Returns `None` if the request does
/// not have the component, or if it is of a kind that is not supported.
pub(crate) fn component(message: &impl Message, identifier: &Item) -> Option<String> {
    let name = identifier.bare_item.as_string()?.as_str();
    let mut parameters = identifier.params.iter();
    let value = match (parameters.next(), parameters.next()) {
        (None, _) if name.starts_with('@') => message.derived(name)?.into_owned(),
        (None, _) => field(message, name)?,
        (Some((parameter, member)), None) if parameter.as_str() == KEY => {
            let dictionary: Dictionary = Parser::new(&field(message, name)?).parse().ok()?;
            let member = dictionary.get(member.as_string()?.as_str())?;
            vec![member.clone()].serialize()?
        }
        (Some(_), _) => return None,
    };
    let is_allowed = |byte: u8| byte.is_ascii_graphic() || byte == b' ' || byte == b'\t';
    value.bytes().all(is_allowed).then_some(value)
}

/// Returns the combined value of all fields with a name (RFC 9421 §2.1); `None` if there are none.
pub(crate) fn field(message: &impl Message, name: &str) -> Option<String> {
    let mut combined: Option<String> = None;
    for value in message.fields(name) {
        let value = str::from_utf8(value).ok()?.trim_ascii();
        match &mut combined {
            None => combined = Some(value.to_owned()),
            Some(all) => {
                all.push_str(", ");
                all.push_str(value);
            }
        }
    }
    combined
}
