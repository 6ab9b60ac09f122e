//! Names of the fields that a gateway reads, removes or sets. Every other name is [`Name::Other`].
//!
//! A name is looked up by its length and then by its letters, in any case. CGI and its descendants
//! map `X-Forwarded-For` and `X_Forwarded_For` to one variable, and some applications do the same
//! with a dot. An alias of a field that frames a message counts as the field itself, so that it is
//! refused. An alias of a field that tells an application who the client is has a name of its own,
//! so that it is removed and never read. No hop writes such an alias, so it comes from a client
//! even if a trusted hop has forwarded it.

mod claims;

/// A known field name.
#[derive(Clone, Copy, Debug, PartialEq, Eq, Hash)]
#[repr(u8)]
#[allow(missing_docs, reason = "each is the field of that name")]
pub enum Name {
    /// Any name that is not listed here. [`Fields::named`](crate::Fields::named) finds such fields;
    /// a search by this name finds nothing.
    Other,
    Accept,
    AcceptEncoding,
    AcceptLanguage,
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
    GrpcTimeout,
    Host,
    Http2Settings,
    KeepAlive,
    Location,
    PersistentAuth,
    ProxyAuthenticate,
    ProxyAuthorization,
    ProxyConnection,
    ProxyStatus,
    Referer,
    RetryAfter,
    SecFetchDest,
    Server,
    SetCookie,
    Te,
    Traceparent,
    Trailer,
    TransferEncoding,
    Upgrade,
    UserAgent,
    Via,
    WwwAuthenticate,
    XForwardedFor,
    XForwardedHost,
    XForwardedPort,
    XForwardedProto,
    /// `X-Forwarded`, or a name that begins with `X-Forwarded-` and has no variant of its own.
    XForwardedOther,
    /// An alias of `X-Real-IP`, `X-Forwarded`, or a name that begins with `X-Forwarded-`.
    ForwardedAlias,
    XRealIp,
    XRequestId,
    /// A field by which some applications let a client choose another method than the request's.
    MethodOverride,
    /// A field whose truth only a hop of the operator can know: the client's address or user, or
    /// the target before the hop changed it. See `claims.rs`.
    HopClaim,
    /// The field `Proxy`, or an alias of a method override or of a hop's claim. The gateway never
    /// forwards it.
    NeverPassed,
    /// A name that begins with `bywash-`.
    Ours,
}

use Name::{
    Accept, AcceptEncoding, AcceptLanguage, Age, Authorization, CacheControl, Connection,
    ContentEncoding, ContentLength, ContentType, Cookie, Date, Expect, Forwarded, ForwardedAlias,
    GrpcTimeout, HopClaim, Host, Http2Settings, KeepAlive, Location, MethodOverride, NeverPassed,
    Other, Ours, PersistentAuth, ProxyAuthenticate, ProxyAuthorization, ProxyConnection,
    ProxyStatus, Referer, RetryAfter, SecFetchDest, Server, SetCookie, Te, Traceparent, Trailer,
    TransferEncoding, Upgrade, UserAgent, Via, WwwAuthenticate, XForwardedFor, XForwardedHost,
    XForwardedOther, XForwardedPort, XForwardedProto, XRealIp, XRequestId,
};

/// The common prefix of the fields that describe where a request comes from.
const FORWARDED: &[u8] = b"x-forwarded";

impl Name {
    /// Returns the name with this spelling, in any case, aliases included.
    pub fn of(spelled: &[u8]) -> Self {
        let first = spelled.first().map_or(0, u8::to_ascii_lowercase);
        for name in Self::beginning_with(spelled.len(), first) {
            let text = name.text().as_bytes();
            if is_lower_case_of(text, spelled) {
                return *name;
            }
            if alike(text, spelled) {
                return name.alias();
            }
        }
        Self::of_prefix(spelled)
    }

    /// Returns the names that have this length and begin with this letter.
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
            (7, b'r') => &[Referer],
            (7, b't') => &[Trailer],
            (7, b'u') => &[Upgrade],
            (8, b'l') => &[Location],
            (9, b'f') => &[Forwarded],
            (9, b'x') => &[XRealIp],
            (10, b'c') => &[Connection],
            (10, b'k') => &[KeepAlive],
            (10, b's') => &[SetCookie],
            (10, b'u') => &[UserAgent],
            (11, b'r') => &[RetryAfter],
            (11, b't') => &[Traceparent],
            (12, b'c') => &[ContentType],
            (12, b'g') => &[GrpcTimeout],
            (12, b'p') => &[ProxyStatus],
            (12, b'x') => &[XRequestId],
            (13, b'a') => &[Authorization],
            (13, b'c') => &[CacheControl],
            (14, b'c') => &[ContentLength],
            (14, b'h') => &[Http2Settings],
            (14, b's') => &[SecFetchDest],
            (15, b'a') => &[AcceptEncoding, AcceptLanguage],
            (15, b'p') => &[PersistentAuth],
            (15, b'x') => &[XForwardedFor],
            (16, b'c') => &[ContentEncoding],
            (16, b'p') => &[ProxyConnection],
            (16, b'w') => &[WwwAuthenticate],
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
            Some(b'x' | b'X') if begins(spelled, FORWARDED) => {
                match (spelled.get(1), spelled.get(FORWARDED.len())) {
                    (_, Some(byte)) if !is_hyphen(*byte) => Other,
                    (Some(b'-'), None | Some(b'-')) if !is_alias(spelled) => XForwardedOther,
                    _ => ForwardedAlias,
                }
            }
            Some(b'b' | b'B') if begins(spelled, b"bywash-") => Ours,
            _ => claims::name_of(spelled),
        }
    }

    /// Returns the name for an alias of this name: a spelling that only some applications take for
    /// this name.
    const fn alias(self) -> Self {
        match self {
            ContentLength | TransferEncoding => self,
            XForwardedFor | XForwardedHost | XForwardedPort | XForwardedProto | XRealIp => {
                ForwardedAlias
            }
            _ => Other,
        }
    }

    /// Returns the bit that stands for the name in a set of names; 0 for `Other`.
    pub(crate) const fn bit(self) -> u64 {
        match self {
            Other => 0,
            name => 1 << name as u8,
        }
    }

    /// Returns the set of these names, as a bit set.
    pub(crate) const fn set(names: &[Self]) -> u64 {
        let (mut set, mut at) = (0, 0);
        while at < names.len() {
            set |= names[at].bit();
            at += 1;
        }
        set
    }

    /// Returns the name in lower case. For a variant that stands for several names, returns their
    /// common prefix, which may be empty.
    pub const fn text(self) -> &'static str {
        match self {
            Other | MethodOverride | HopClaim | NeverPassed => "",
            Accept => "accept",
            AcceptEncoding => "accept-encoding",
            AcceptLanguage => "accept-language",
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
            GrpcTimeout => "grpc-timeout",
            Host => "host",
            Http2Settings => "http2-settings",
            KeepAlive => "keep-alive",
            Location => "location",
            PersistentAuth => "persistent-auth",
            ProxyAuthenticate => "proxy-authenticate",
            ProxyAuthorization => "proxy-authorization",
            ProxyConnection => "proxy-connection",
            ProxyStatus => "proxy-status",
            Referer => "referer",
            RetryAfter => "retry-after",
            SecFetchDest => "sec-fetch-dest",
            Server => "server",
            SetCookie => "set-cookie",
            Te => "te",
            Traceparent => "traceparent",
            Trailer => "trailer",
            TransferEncoding => "transfer-encoding",
            Upgrade => "upgrade",
            UserAgent => "user-agent",
            Via => "via",
            WwwAuthenticate => "www-authenticate",
            XForwardedFor => "x-forwarded-for",
            XForwardedHost => "x-forwarded-host",
            XForwardedPort => "x-forwarded-port",
            XForwardedProto => "x-forwarded-proto",
            XForwardedOther | ForwardedAlias => "x-forwarded",
            XRealIp => "x-real-ip",
            XRequestId => "x-request-id",
            Ours => "bywash-",
        }
    }
}

/// Returns whether `lower` is the name `spelled`, converted to lower case. A head has about 20
/// names to look up, so eight letters are compared at once. The last eight overlap the preceding
/// ones.
fn is_lower_case_of(lower: &[u8], spelled: &[u8]) -> bool {
    const WORD: usize = 8;
    let alike = |one: &[u8; WORD], other: &[u8; WORD]| {
        u64::from_ne_bytes(*one) == to_lower_case(u64::from_ne_bytes(*other))
    };
    let (one_words, _) = lower.as_chunks::<WORD>();
    let (other_words, _) = spelled.as_chunks::<WORD>();
    match (lower.last_chunk::<WORD>(), spelled.last_chunk::<WORD>()) {
        (Some(one), Some(other)) => {
            lower.len() == spelled.len()
                && alike(one, other)
                && one_words.iter().zip(other_words).all(|(one, other)| alike(one, other))
        }
        _ => lower.eq_ignore_ascii_case(spelled),
    }
}

/// Converts eight letters at once, as [`u8::to_ascii_lowercase`] does.
const fn to_lower_case(letters: u64) -> u64 {
    const EACH: u64 = u64::from_ne_bytes([1; 8]);
    // For each byte, the high bit says whether its lower seven bits are at least `A`, and then
    // whether they are above `Z`.
    let seven = letters & (EACH * 0x7f);
    let from_a = seven + EACH * (0x80 - b'A' as u64);
    let beyond_z = seven + EACH * (0x7f - b'Z' as u64);
    let is_upper = (from_a ^ beyond_z) & !letters & (EACH * 0x80);
    letters | (is_upper >> 2)
}

/// Returns whether some applications take one spelling for the other: they differ only in case and
/// in the characters that stand for a hyphen.
pub fn alike(one: &[u8], other: &[u8]) -> bool {
    one.len() == other.len() && begins(other, one)
}

/// Returns whether `spelled` begins with `text`. As in [`alike`], case does not matter, and all
/// characters that may stand for a hyphen are equal.
pub(crate) fn begins(spelled: &[u8], text: &[u8]) -> bool {
    let letter = |byte: u8| if is_hyphen(byte) { b'-' } else { byte.to_ascii_lowercase() };
    let same = |(one, other): (&u8, &u8)| letter(*one) == letter(*other);
    spelled.len() >= text.len() && text.iter().zip(spelled).all(same)
}

/// Returns whether a character other than the hyphen stands for a hyphen in the spelling.
pub(crate) fn is_alias(spelled: &[u8]) -> bool {
    spelled.iter().any(|byte| is_hyphen(*byte) && *byte != b'-')
}

/// Returns whether some application takes this byte for a hyphen.
pub(crate) const fn is_hyphen(byte: u8) -> bool {
    matches!(byte, b'-' | b'_' | b'.')
}

#[cfg(test)]
mod tests {
    use super::*;

    /// The names that [`Name::beginning_with`] does not contain.
    const UNTABLED: [Name; 7] =
        [Other, XForwardedOther, ForwardedAlias, MethodOverride, HopClaim, NeverPassed, Ours];

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
    fn eight_letters_at_once_are_as_one_by_one() {
        for byte in 0..=u8::MAX {
            for place in 0..8 {
                let mut letters = *b"Az-@[`{_";
                letters[place] = byte;
                let lower = letters.map(|letter| letter.to_ascii_lowercase());
                assert_eq!(to_lower_case(u64::from_ne_bytes(letters)).to_ne_bytes(), lower);
                assert!(is_lower_case_of(&lower, &letters));
            }
        }
    }

    #[test]
    fn each_letter_of_a_name_counts() {
        for name in tabled() {
            for place in 0..name.text().len() {
                let mut other = name.text().as_bytes().to_vec();
                other[place] ^= 0x01;
                assert_ne!(Name::of(&other), name, "{}", String::from_utf8_lossy(&other));
            }
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
