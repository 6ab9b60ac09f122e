//! The conditions of a class beyond method and target: hosts and header fields.

use alloc::borrow::Cow;
use alloc::string::String;
use alloc::vec::Vec;

use super::RequestParts;

/// The hosts and header fields that a request must have. The greater of two conditions in sort
/// order is tried first.
#[derive(Clone, Debug, Default, PartialEq, Eq, PartialOrd, Ord, Hash)]
pub struct Condition {
    /// The accepted hosts. If the list is empty, any host matches.
    pub hosts: Vec<HostPattern>,
    /// The header fields that must all be present.
    pub fields: Vec<Field>,
}

/// A host, or all hosts below one. It is in lower case, without a port and without a final dot.
#[derive(Clone, Debug, PartialEq, Eq, PartialOrd, Ord, Hash)]
pub enum HostPattern {
    /// All hosts below this one: `*.example.com`, stored without the star.
    Below(String),
    /// Only this host: `shop.example.com`.
    Host(String),
}

/// A header field that a request must have.
#[derive(Clone, Debug, PartialEq, Eq, PartialOrd, Ord, Hash)]
pub struct Field {
    /// The field's name, in lower case.
    pub name: String,
    /// The value that the field must have, compared without regard to case; `None` if any value
    /// matches.
    pub value: Option<String>,
}

impl Condition {
    /// Returns the group in which rules with this condition are tried. Rules with fields come
    /// first, then those for named hosts, then those for hosts below a domain, then the rest.
    pub(super) fn precedence(&self) -> usize {
        if !self.fields.is_empty() {
            0
        } else if self.hosts.is_empty() {
            3
        } else if self.hosts.iter().all(|host| matches!(host, HostPattern::Host(_))) {
            1
        } else {
            2
        }
    }

    /// Returns whether a request meets the condition.
    pub fn is_met(&self, parts: &RequestParts<'_>) -> bool {
        let is_host = || {
            let host = plain(parts.host);
            self.hosts.iter().any(|pattern| pattern.takes(&host))
        };
        (self.hosts.is_empty() || is_host()) && self.fields.iter().all(|field| field.is_of(parts))
    }
}

impl HostPattern {
    fn takes(&self, host: &str) -> bool {
        match self {
            Self::Host(wanted) => wanted == host,
            Self::Below(domain) => host.ends_with(domain.as_str()) && host.len() > domain.len(),
        }
    }
}

impl Field {
    fn is_of(&self, parts: &RequestParts<'_>) -> bool {
        parts.fields.has(&self.name, &|given| match &self.value {
            Some(value) => given.trim_ascii().eq_ignore_ascii_case(value.as_bytes()),
            None => true,
        })
    }
}

/// Returns a host in the form in which it is compared: in lower case, without port and final dot.
fn plain(host: &str) -> Cow<'_, str> {
    let name = match host.rsplit_once(':') {
        Some((name, port)) if port.bytes().all(|byte| byte.is_ascii_digit()) => name,
        _ => host,
    };
    let name = name.strip_suffix('.').unwrap_or(name);
    if name.bytes().any(|byte| byte.is_ascii_uppercase()) {
        Cow::Owned(name.to_ascii_lowercase())
    } else {
        Cow::Borrowed(name)
    }
}
