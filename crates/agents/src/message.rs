//! The components of a request that a signature may cover.

use std::borrow::Cow;

use sfv::{Dictionary, FieldType, Item, Parser};

/// The maximum number of bytes of a field that is signed, or that has signatures.
pub const MAX_BYTES: usize = 4096;
/// The maximum number of bytes of a field of which a member is signed.
const MAX_DICTIONARY: usize = 1024;

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
            let field = field(message, name).filter(|field| field.len() <= MAX_DICTIONARY)?;
            let dictionary: Dictionary = Parser::new(&field).parse().ok()?;
            let member = dictionary.get(member.as_string()?.as_str())?;
            vec![member.clone()].serialize()?
        }
        (Some(_), _) => return None,
    };
    let is_allowed = |byte: u8| byte.is_ascii_graphic() || byte == b' ' || byte == b'\t';
    value.bytes().all(is_allowed).then_some(value)
}

/// Returns the combined value of all fields with a name (RFC 9421 §2.1). Returns `None` if there are
/// none, or if they have more than [`MAX_BYTES`].
pub(crate) fn field(message: &impl Message, name: &str) -> Option<String> {
    let length: usize = message.fields(name).map(|value| value.len() + 2).sum();
    let mut combined: Option<String> = None;
    if length > MAX_BYTES {
        return None;
    }
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
