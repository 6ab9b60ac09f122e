//! What a head contains of the fields that the gateway must look at, found in one pass.
//!
//! Looking a field up costs a hash; most heads have none of these. So they are sought once, and
//! only what was found is looked up or removed.

use http::header::{self, HeaderMap, HeaderName};

/// Fields that do not go on, besides `Connection` itself: those that belong to one connection (RFC
/// 9110 §7.6.1), `Expect`, which the gateway answers itself, and `Trailer`, as what it announces
/// has not been examined.
const HOP_BY_HOP: [HeaderName; 7] = [
    header::TE,
    header::TRANSFER_ENCODING,
    header::UPGRADE,
    header::TRAILER,
    header::EXPECT,
    HeaderName::from_static("keep-alive"),
    HeaderName::from_static("proxy-connection"),
];

/// What was found.
#[allow(
    clippy::struct_excessive_bools,
    reason = "each says that one field is there: a set of them"
)]
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq)]
pub(crate) struct Fields {
    /// How many `Host` fields.
    pub(super) hosts: usize,
    pub(super) connection: bool,
    pub(super) transfer_encoding: bool,
    pub(super) expect: bool,
    pub(super) cookie: bool,
    pub(super) set_cookie: bool,
    pub(super) forwarded_for: bool,
    pub(super) forwarded_proto: bool,
    /// Any that does not go on, `Connection` apart.
    hop_by_hop: bool,
    /// Any that could be taken for one of ours.
    ours: bool,
    /// Names, values, colons and line ends: what the fields took on the wire.
    pub(super) bytes: usize,
}

impl Fields {
    pub(super) fn of(headers: &HeaderMap) -> Self {
        let mut fields = Self::default();
        for (name, value) in headers {
            fields.bytes += name.as_str().len() + value.len() + 4;
            fields.note(name.as_str());
        }
        fields
    }

    fn note(&mut self, name: &str) {
        match name {
            "host" => self.hosts += 1,
            "cookie" => self.cookie = true,
            "set-cookie" => self.set_cookie = true,
            "x-forwarded-for" => self.forwarded_for = true,
            "x-forwarded-proto" => self.forwarded_proto = true,
            "connection" => self.connection = true,
            "transfer-encoding" => (self.transfer_encoding, self.hop_by_hop) = (true, true),
            "expect" => (self.expect, self.hop_by_hop) = (true, true),
            "te" | "trailer" | "upgrade" | "keep-alive" | "proxy-connection" => {
                self.hop_by_hop = true;
            }
            name if is_ours(name) => self.ours = true,
            _ => {}
        }
    }

    /// Removes what belongs to one connection: the fields that `Connection` names, then the fixed
    /// ones. In both directions.
    pub(super) fn remove_hop_by_hop(self, headers: &mut HeaderMap) {
        if self.connection {
            // Nearly always alone, and it says `keep-alive` or `close`.
            remove_nominated(headers);
            headers.remove(header::CONNECTION);
        }
        if self.hop_by_hop {
            for name in &HOP_BY_HOP {
                headers.remove(name);
            }
        }
    }

    /// Removes every field that an application could take for one of ours, however it is spelt.
    pub(super) fn remove_ours(self, headers: &mut HeaderMap) {
        if !self.ours {
            return;
        }
        let names: Vec<HeaderName> =
            headers.keys().filter(|name| is_ours(name.as_str())).cloned().collect();
        for name in names {
            headers.remove(name);
        }
    }
}

fn is_ours(name: &str) -> bool {
    name.strip_prefix("bywash").is_some_and(|rest| rest.starts_with(['-', '_', '.']))
}

fn remove_nominated(headers: &mut HeaderMap) {
    let nominated: Vec<HeaderName> = headers
        .get_all(header::CONNECTION)
        .iter()
        .flat_map(|value| value.as_bytes().split(|byte| *byte == b','))
        .map(<[u8]>::trim_ascii)
        // The commonest two are no fields.
        .filter(|name| {
            !name.eq_ignore_ascii_case(b"keep-alive") && !name.eq_ignore_ascii_case(b"close")
        })
        .filter_map(|name| HeaderName::from_bytes(name).ok())
        // The length of a body is not the connection's business, whoever says so.
        .filter(|name| *name != header::CONTENT_LENGTH)
        .collect();
    for name in nominated {
        headers.remove(name);
    }
}

#[cfg(test)]
mod tests {
    use http::HeaderValue;

    use super::*;

    fn headers(fields: &[(&str, &str)]) -> HeaderMap {
        let field = |(name, value): &(&str, &str)| {
            (name.parse::<HeaderName>().unwrap(), value.parse::<HeaderValue>().unwrap())
        };
        fields.iter().map(field).collect()
    }

    #[test]
    fn what_connection_names_is_removed_and_the_length_stays() {
        let mut map = headers(&[
            ("connection", "close, X-Hop, content-length"),
            ("x-hop", "1"),
            ("keep-alive", "timeout=5"),
            ("te", "trailers"),
            ("upgrade", "websocket"),
            ("content-length", "5"),
            ("x-end", "2"),
        ]);
        Fields::of(&map).remove_hop_by_hop(&mut map);
        assert_eq!(map, headers(&[("content-length", "5"), ("x-end", "2")]));
    }

    #[test]
    fn each_field_that_does_not_go_on_is_found_on_its_own() {
        for name in &HOP_BY_HOP {
            let mut map = headers(&[(name.as_str(), "x"), ("x-end", "2")]);
            Fields::of(&map).remove_hop_by_hop(&mut map);
            assert_eq!(map, headers(&[("x-end", "2")]), "{name}");
        }
    }

    #[test]
    fn no_spelling_of_our_own_fields_gets_through() {
        let mut map = headers(&[
            ("bywash-class", "confirm"),
            ("bywash_level", "gold"),
            ("bywash.x", "1"),
            ("bywashing", "day"),
        ]);
        Fields::of(&map).remove_ours(&mut map);
        assert_eq!(map, headers(&[("bywashing", "day")]));
    }
}
