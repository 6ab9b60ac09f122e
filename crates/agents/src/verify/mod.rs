//! Verifies the signature of a request.

use std::fmt::Write as _;

use sfv::{Dictionary, FieldType, InnerList, Item, ListEntry, Parser};
use thiserror::Error;

use crate::keys::PublicKey;
use crate::message::{MAX_BYTES, Message, component, field};

/// The maximum time for which a signature may be valid, in seconds: one day.
pub const MAX_VALIDITY: u64 = 86_400;

/// The maximum number of components that a signature may cover.
const MAX_COMPONENTS: usize = 16;
/// The maximum difference between the clocks of an agent and of the recipient, in seconds.
const CLOCK_DIFFERENCE: u64 = 60;
/// The purpose of a signature that says which agent sent a request.
const TAG: &str = "web-bot-auth";
/// The only algorithm that agents use.
const ALGORITHM: &str = "ed25519";

/// The reason why a signature proves nothing.
#[derive(Clone, Copy, Debug, PartialEq, Eq, Error)]
pub enum Refusal {
    /// The fields are not signatures, are too long, or lack something that is required.
    #[error("it is malformed, or lacks something that is required")]
    Malformed,
    /// The signature was made with a key that is not known.
    #[error("its key is not known")]
    UnknownKey,
    /// The signature or the key has expired, is not valid yet, or is valid for too long.
    #[error("it has expired, is not valid yet, or is valid for more than a day")]
    Expired,
    /// The signature covers a component that the request does not have, or that is not supported.
    #[error("it covers a component that the request lacks, or that is not supported")]
    NotCovered,
    /// The signature does not match the request.
    #[error("it does not match the request")]
    Forged,
}

impl Refusal {
    /// All variants, in the order of their numbers.
    pub const ALL: [Self; 5] =
        [Self::Malformed, Self::UnknownKey, Self::Expired, Self::NotCovered, Self::Forged];

    /// Returns the reason's name in metrics.
    pub const fn name(self) -> &'static str {
        match self {
            Self::Malformed => "malformed",
            Self::UnknownKey => "unknown_key",
            Self::Expired => "expired",
            Self::NotCovered => "not_covered",
            Self::Forged => "forged",
        }
    }
}

/// Returns the agent that signed a request at `now`, in seconds since 1970. `key` finds a known key
/// by its name, together with its agent. Returns `None` if the request has no signature of an
/// agent, or if the field with the signatures has more than [`MAX_BYTES`]. If it has several, only
/// the first one counts.
///
/// # Errors
/// Returns the reason why the signature proves nothing.
pub fn verify<'k, A>(
    message: &impl Message,
    now: u64,
    key: impl FnOnce(&str) -> Option<(A, &'k PublicKey)>,
) -> Option<Result<A, Refusal>> {
    let inputs = field(message, "signature-input")?;
    let Ok(inputs) = Parser::new(&inputs).parse::<Dictionary>() else {
        return Some(Err(Refusal::Malformed));
    };
    let (label, input) = inputs.iter().find_map(|(label, entry)| match entry {
        ListEntry::InnerList(input) if text(input, "tag") == Some(TAG) => Some((label, input)),
        ListEntry::InnerList(_) | ListEntry::Item(_) => None,
    })?;
    Some(verify_one(message, now, key, label.as_str(), input))
}

fn verify_one<'k, A>(
    message: &impl Message,
    now: u64,
    key: impl FnOnce(&str) -> Option<(A, &'k PublicKey)>,
    label: &str,
    input: &InnerList,
) -> Result<A, Refusal> {
    let id = text(input, "keyid").ok_or(Refusal::Malformed)?;
    let (agent, key) = key(id).ok_or(Refusal::UnknownKey)?;
    let is_algorithm = text(input, "alg").is_none_or(|name| name == ALGORITHM);
    if !is_algorithm || !covers_enough(message, input) {
        return Err(Refusal::Malformed);
    }
    let created = seconds(input, "created").ok_or(Refusal::Malformed)?;
    let expires = seconds(input, "expires").ok_or(Refusal::Malformed)?;
    let is_in_time = created <= now.saturating_add(CLOCK_DIFFERENCE) && now < expires;
    let is_short = expires.checked_sub(created).is_some_and(|span| span <= MAX_VALIDITY);
    if !is_in_time || !is_short || !key.is_valid(now) {
        return Err(Refusal::Expired);
    }
    let signature = signature(message, label).ok_or(Refusal::Malformed)?;
    let base = base(message, input).ok_or(Refusal::NotCovered)?;
    if key.has_signed(base.as_bytes(), &signature) { Ok(agent) } else { Err(Refusal::Forged) }
}

/// Returns whether a signature covers the host, and the field `Signature-Agent` if the request has
/// one.
fn covers_enough(message: &impl Message, input: &InnerList) -> bool {
    let covers = |name: &str| {
        input
            .items
            .iter()
            .any(|item| item.bare_item.as_string().is_some_and(|it| it.as_str() == name))
    };
    let has_agent = message.fields("signature-agent").next().is_some();
    (covers("@authority") || covers("@target-uri")) && (covers("signature-agent") || !has_agent)
}

fn signature(message: &impl Message, label: &str) -> Option<Vec<u8>> {
    let signatures = field(message, "signature")?;
    let signatures: Dictionary = Parser::new(&signatures).parse().ok()?;
    match signatures.get(label)? {
        ListEntry::Item(item) => item.bare_item.as_byte_sequence().map(<[u8]>::to_vec),
        ListEntry::InnerList(_) => None,
    }
}

/// Returns the text that was signed (RFC 9421 §2.5). Returns `None` if it cannot be made, because
/// the request lacks a component, or if it is too long.
fn base(message: &impl Message, input: &InnerList) -> Option<String> {
    let items = &input.items;
    let is_repeated = |(index, item): (usize, &Item)| items[..index].contains(item);
    if items.len() > MAX_COMPONENTS || items.iter().enumerate().any(is_repeated) {
        return None;
    }
    let mut base = String::new();
    for item in items {
        let value = component(message, item)?;
        writeln!(base, "{}: {value}", item.serialize()).ok()?;
        if base.len() > MAX_BYTES {
            return None;
        }
    }
    let parameters = vec![ListEntry::InnerList(input.clone())].serialize()?;
    write!(base, "\"@signature-params\": {parameters}").ok()?;
    (base.len() <= MAX_BYTES).then_some(base)
}

/// Returns a parameter of a signature that is a text.
fn text<'i>(input: &'i InnerList, name: &str) -> Option<&'i str> {
    Some(input.params.get(name)?.as_string()?.as_str())
}

/// Returns a parameter of a signature that is a time in seconds.
fn seconds(input: &InnerList, name: &str) -> Option<u64> {
    i64::from(input.params.get(name)?.as_integer()?).try_into().ok()
}

#[cfg(test)]
mod tests;
