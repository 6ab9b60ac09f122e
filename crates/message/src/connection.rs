//! The options of `Connection`, and the fields that belong to one connection (RFC 9110 §7.6.1).

use crate::character_class::members;
use crate::fields::Fields;
use crate::name::Name;
use crate::parse_error::ParseError;

/// The maximum number of options in a message's `Connection`. No sender needs more options. Each
/// option is compared with each field, so the number must be bounded.
const MAX_OPTIONS: usize = 32;

/// The end-to-end fields that a client must not name in `Connection`, because the gateway would
/// then remove them. They tell to whom the request is addressed, how long it is, what it contains
/// and where it comes from.
const NEVER_NOMINATED: u64 = Name::set(&[
    Name::Authorization,
    Name::CacheControl,
    Name::ContentEncoding,
    Name::ContentLength,
    Name::ContentType,
    Name::Cookie,
    Name::Forwarded,
    Name::ForwardedAlias,
    Name::HopClaim,
    Name::Host,
    Name::Ours,
    Name::Via,
    Name::XForwardedFor,
    Name::XForwardedHost,
    Name::XForwardedOther,
    Name::XForwardedPort,
    Name::XForwardedProto,
    Name::XRealIp,
    Name::XRequestId,
]);

/// The fields that belong to one connection, even if `Connection` does not name them.
pub(crate) const HOP_BY_HOP: u64 = Name::set(&[
    Name::Connection,
    Name::Http2Settings,
    Name::KeepAlive,
    Name::ProxyConnection,
    Name::Te,
    Name::TransferEncoding,
    Name::Upgrade,
]);

/// The connection options that a gateway acts on.
#[allow(clippy::struct_excessive_bools, reason = "each is one option: a set of them")]
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq)]
pub(crate) struct Options {
    pub(crate) close: bool,
    pub(crate) keep_alive: bool,
    pub(crate) te: bool,
    pub(crate) upgrade: bool,
}

impl Options {
    /// Reads the options of a request. Fails with [`ParseError::Nominated`] if the request names a
    /// field in [`NEVER_NOMINATED`].
    pub(crate) fn of_request(fields: &Fields) -> Result<Self, ParseError> {
        Self::of(fields, NEVER_NOMINATED)
    }

    /// Reads the options of a response. An application may name any of its own fields, so the names
    /// are not checked.
    pub(crate) fn of_response(fields: &Fields) -> Result<Self, ParseError> {
        Self::of(fields, 0)
    }

    fn of(fields: &Fields, kept: u64) -> Result<Self, ParseError> {
        let mut options = Self::default();
        let named = fields.all(Name::Connection).flat_map(members);
        for (count, option) in named.enumerate() {
            if count == MAX_OPTIONS || Name::of(option).bit() & kept != 0 {
                return Err(ParseError::Nominated);
            }
            options.note(option);
        }
        Ok(options)
    }

    fn note(&mut self, option: &[u8]) {
        match option.len() {
            2 => self.te |= option.eq_ignore_ascii_case(b"te"),
            5 => self.close |= option.eq_ignore_ascii_case(b"close"),
            7 => self.upgrade |= option.eq_ignore_ascii_case(b"upgrade"),
            10 => self.keep_alive |= option.eq_ignore_ascii_case(b"keep-alive"),
            _ => {}
        }
    }

    /// Returns whether the connection stays open after a message of this version (RFC 9112 §9.3).
    pub(crate) fn persists(self, version: http::Version) -> bool {
        !self.close && (version != http::Version::HTTP_10 || self.keep_alive)
    }
}

impl Fields {
    /// Removes the fields that belong to one connection: those that `Connection` names,
    /// `Connection` itself, and those that are hop-by-hop by definition.
    ///
    /// `Content-Length` stays even if `Connection` names it. `Expect`, `Trailer` and proxy
    /// credentials stay too, because the gateway decides about them.
    pub fn remove_hop_by_hop(&mut self) {
        if !self.has_any(HOP_BY_HOP) {
            return;
        }
        let nominated = self.nominated();
        if nominated.is_empty() {
            return self.remove_all(HOP_BY_HOP);
        }
        self.retain(|field| {
            let named = || nominated.iter().any(|name| name.eq_ignore_ascii_case(field.spelled));
            let hops = field.name.bit() & HOP_BY_HOP != 0;
            !hops && (field.name == Name::ContentLength || !named())
        });
    }

    /// Returns the options that may be names of fields: all but the common options.
    fn nominated(&self) -> Vec<Box<[u8]>> {
        let common = |option: &[u8]| {
            let options: [&[u8]; 4] = [b"", b"keep-alive", b"close", b"upgrade"];
            options.iter().any(|common| common.eq_ignore_ascii_case(option))
        };
        let options = self.all(Name::Connection).flat_map(members);
        options.filter(|option| !common(option)).map(Box::from).collect()
    }
}
