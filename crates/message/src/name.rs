//! Names of fields that a gateway looks at, removes or sets; every other is [`Name::Other`].
//!
//! A name is known by its length and then by its letters, of any case. Of fields by which an
//! application is told who the client is, an alias counts as the name itself: CGI and its heirs
//! turn `X-Forwarded-For` and `X_Forwarded_For` into one variable, others do so with a dot.
//! Removing the name thus removes every spelling of it.

/// A field name.
#[derive(Clone, Copy, Debug, PartialEq, Eq, Hash)]
#[repr(u8)]
#[allow(missing_docs, reason = "each is the field of that name")]
pub enum Name {
    /// Any that is not listed here. Nothing is found under it: see [`Fields::named`](crate::Fields::named).
    Other,
    Accept,
    AcceptEncoding,
    Age,
    Authorization,
    CacheControl,
    Connection,
    ContentEncoding,
    ContentLength,
    ContentType,
    Cookie,
    Date,
    Expect,
    Forwarded,
    Host,
    Http2Settings,
    KeepAlive,
    Location,
    ProxyAuthenticate,
    ProxyAuthorization,
    ProxyConnection,
    ProxyStatus,
    RetryAfter,
    Server,
    SetCookie,
    Te,
    Traceparent,
    Trailer,
    TransferEncoding,
    Upgrade,
    Via,
    XForwardedFor,
    XForwardedHost,
    XForwardedPort,
    XForwardedProto,
    /// `X-Forwarded`, or any other that begins with `X-Forwarded-`.
    XForwardedOther,
    XRealIp,
    XRequestId,
    /// `bywash-` with anything behind it.
    Ours,
}

use Name::{
    Accept, AcceptEncoding, Age, Authorization, CacheControl, Connection, ContentEncoding,
    ContentLength, ContentType, Cookie, Date, Expect, Forwarded, Host, Http2Settings, KeepAlive,
    Location, Other, Ours, ProxyAuthenticate, ProxyAuthorization, ProxyConnection, ProxyStatus,
    RetryAfter, Server, SetCookie, Te, Traceparent, Trailer, TransferEncoding, Upgrade, Via,
    XForwardedFor, XForwardedHost, XForwardedOther, XForwardedPort, XForwardedProto, XRealIp,
    XRequestId,
};

impl Name {
    /// The name that these letters spell, in any case, aliases included.
    pub fn of(spelled: &[u8]) -> Self {
        let first = spelled.first().map_or(0, u8::to_ascii_lowercase);
        let known = Self::beginning_with(spelled.len(), first);
        match known.iter().find(|name| name.is_spelled(spelled)) {
            Some(name) => *name,
            None => Self::of_prefix(spelled),
        }
    }

    /// Those of so many letters, of which the first is this.
    const fn beginning_with(length: usize, first: u8) -> &'static [Self] {
        match (length, first) {
            (2, b't') => &[Te],
            (3, b'a') => &[Age],
            (3, b'v') => &[Via],
            (4, b'd') => &[Date],
            (4, b'h') => &[Host],
            (6, b'a') => &[Accept],
            (6, b'c') => &[Cookie],
            (6, b'e') => &[Expect],
            (6, b's') => &[Server],
            (7, b't') => &[Trailer],
            (7, b'u') => &[Upgrade],
            (8, b'l') => &[Location],
            (9, b'f') => &[Forwarded],
            (9, b'x') => &[XRealIp],
            (10, b'c') => &[Connection],
            (10, b'k') => &[KeepAlive],
            (10, b's') => &[SetCookie],
            (11, b'r') => &[RetryAfter],
            (11, b't') => &[Traceparent],
            (12, b'c') => &[ContentType],
            (12, b'p') => &[ProxyStatus],
            (12, b'x') => &[XRequestId],
            (13, b'a') => &[Authorization],
            (13, b'c') => &[CacheControl],
            (14, b'c') => &[ContentLength],
            (14, b'h') => &[Http2Settings],
            (15, b'a') => &[AcceptEncoding],
            (15, b'x') => &[XForwardedFor],
            (16, b'c') => &[ContentEncoding],
            (16, b'p') => &[ProxyConnection],
            (16, b'x') => &[XForwardedHost, XForwardedPort],
            (17, b't') => &[TransferEncoding],
            (17, b'x') => &[XForwardedProto],
            (18, b'p') => &[ProxyAuthenticate],
            (19, b'p') => &[ProxyAuthorization],
            _ => &[],
        }
    }

    fn of_prefix(spelled: &[u8]) -> Self {
        match spelled.first() {
            Some(b'x' | b'X') if begins(spelled, b"x-forwarded") => match spelled.get(11) {
                Some(byte) if !is_hyphen(*byte) => Other,
                _ => XForwardedOther,
            },
            Some(b'b' | b'B') if begins(spelled, b"bywash-") => Ours,
            _ => Other,
        }
    }

    fn is_spelled(self, spelled: &[u8]) -> bool {
        let text = self.text().as_bytes();
        if self.has_aliases() { alike(text, spelled) } else { text.eq_ignore_ascii_case(spelled) }
    }

    /// Those whose aliases could be taken for them, to the harm of somebody. Aliases of the two
    /// that frame a message are known to be refused.
    const fn has_aliases(self) -> bool {
        matches!(
            self,
            ContentLength
                | TransferEncoding
                | XForwardedFor
                | XForwardedHost
                | XForwardedPort
                | XForwardedProto
                | XForwardedOther
                | XRealIp
                | Ours
        )
    }

    /// Its bit in a set of names. `Other` has none.
    pub(crate) const fn bit(self) -> u64 {
        match self {
            Other => 0,
            name => 1 << name as u8,
        }
    }

    /// The set of these.
    pub(crate) const fn set(names: &[Self]) -> u64 {
        let (mut set, mut at) = (0, 0);
        while at < names.len() {
            set |= names[at].bit();
            at += 1;
        }
        set
    }

    /// As it is written in lower case; of those with many spellings what is common to all.
    pub const fn text(self) -> &'static str {
        match self {
            Other => "",
            Accept => "accept",
            AcceptEncoding => "accept-encoding",
            Age => "age",
            Authorization => "authorization",
            CacheControl => "cache-control",
            Connection => "connection",
            ContentEncoding => "content-encoding",
            ContentLength => "content-length",
            ContentType => "content-type",
            Cookie => "cookie",
            Date => "date",
            Expect => "expect",
            Forwarded => "forwarded",
            Host => "host",
            Http2Settings => "http2-settings",
            KeepAlive => "keep-alive",
            Location => "location",
            ProxyAuthenticate => "proxy-authenticate",
            ProxyAuthorization => "proxy-authorization",
            ProxyConnection => "proxy-connection",
            ProxyStatus => "proxy-status",
            RetryAfter => "retry-after",
            Server => "server",
            SetCookie => "set-cookie",
            Te => "te",
            Traceparent => "traceparent",
            Trailer => "trailer",
            TransferEncoding => "transfer-encoding",
            Upgrade => "upgrade",
            Via => "via",
            XForwardedFor => "x-forwarded-for",
            XForwardedHost => "x-forwarded-host",
            XForwardedPort => "x-forwarded-port",
            XForwardedProto => "x-forwarded-proto",
            XForwardedOther => "x-forwarded",
            XRealIp => "x-real-ip",
            XRequestId => "x-request-id",
            Ours => "bywash-",
        }
    }
}

/// Whether these are the same name but for case and for what stands for a hyphen.
pub(crate) fn alike(one: &[u8], other: &[u8]) -> bool {
    one.len() == other.len() && begins(other, one)
}

/// Whether `spelled` begins with `text`, as [`alike`].
fn begins(spelled: &[u8], text: &[u8]) -> bool {
    let letter = |byte: u8| if is_hyphen(byte) { b'-' } else { byte.to_ascii_lowercase() };
    let same = |(one, other): (&u8, &u8)| letter(*one) == letter(*other);
    spelled.len() >= text.len() && text.iter().zip(spelled).all(same)
}

/// What may stand for a hyphen in the eyes of some application.
pub(crate) const fn is_hyphen(byte: u8) -> bool {
    matches!(byte, b'-' | b'_' | b'.')
}

#[cfg(test)]
mod tests {
    use super::*;

    /// The three that have no length of their own.
    const UNTABLED: [Name; 3] = [Other, XForwardedOther, Ours];

    fn tabled() -> Vec<Name> {
        let places = (0..64).flat_map(|length| (0..=u8::MAX).map(move |first| (length, first)));
        places.flat_map(|(length, first)| Name::beginning_with(length, first)).copied().collect()
    }

    #[test]
    fn every_name_is_in_the_table() {
        let mut all = tabled();
        all.extend(UNTABLED);
        all.sort_unstable_by_key(|name| *name as u8);
        let numbers: Vec<u8> = all.iter().map(|name| *name as u8).collect();
        assert_eq!(numbers, (0..=Ours as u8).collect::<Vec<_>>());
    }

    #[test]
    fn every_name_is_known_in_any_case() {
        for name in tabled() {
            assert_eq!(Name::of(name.text().as_bytes()), name);
            assert_eq!(Name::of(name.text().to_ascii_uppercase().as_bytes()), name);
            let longer = format!("{}s", name.text());
            assert_ne!(Name::of(longer.as_bytes()), name);
        }
    }

    #[test]
    fn a_set_has_a_bit_for_each_name_and_none_for_other() {
        assert!((Ours as u8) < 64);
        assert_eq!(Name::set(&tabled()).count_ones() as usize, tabled().len());
        assert_eq!(Name::set(&[Other]), 0);
        assert_eq!(Name::set(&[Via, Host]), Via.bit() | Host.bit());
    }
}
