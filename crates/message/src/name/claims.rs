//! Lists fields that some applications trust, and that both a client and a hop in front of the
//! gateway can write.
//!
//! No standard lets a client make these claims about itself. An application behind bywash reads
//! such a field because a hop in front once wrote it, or because its framework reads it by default.
//! The lists come from the documentation of those hops: nginx and its ingress controller, IIS with
//! ARR and URL Rewrite, Apache, `WebLogic`, Envoy, oauth2-proxy, Grafana's proxy login, Cloudflare,
//! Akamai, Fastly, Azure, AWS, Google. The frameworks that read the method overrides are Rack,
//! Symfony, Laravel, ASP.NET, Express and Google's APIs. `X-Forwarded-*` and `X-Real-IP` are not
//! listed here: they have variants of [`Name`].
//!
//! The lists leave out fields that hold a signed statement that the application verifies (a JWT),
//! and names that applications use for their own purposes (`X-User`, `X-Token`, `X-Method`).

use super::{Name, alike, begins, is_alias};

/// The names of fields that replace the method of the request line.
const METHOD_OVERRIDES: [&[u8]; 3] =
    [b"x-http-method", b"x-http-method-override", b"x-method-override"];

/// The complete names of fields with claims that only a hop can know to be true.
const HOP_CLAIMS: [&[u8]; 47] = [
    // The client's address.
    b"cf-connecting-ip",
    b"cf-connecting-ipv6",
    b"cf-pseudo-ipv4",
    b"client-ip",
    b"fastly-client-ip",
    b"forwarded-for",
    b"forwarded-for-ip",
    b"proxy-client-ip",
    b"remote-addr",
    b"true-client-ip",
    b"wl-proxy-client-ip",
    b"x-appengine-user-ip",
    b"x-azure-clientip",
    b"x-azure-socketip",
    b"x-client-ip",
    b"x-cluster-client-ip",
    b"x-envoy-external-address",
    b"x-original-forwarded-for",
    b"x-original-remote-addr",
    b"x-originating-ip",
    b"x-proxyuser-ip",
    b"x-remote-addr",
    b"x-remote-ip",
    b"x-true-client-ip",
    // The scheme that the client uses.
    b"front-end-https",
    b"x-scheme",
    b"x-url-scheme",
    // The user.
    b"cf-access-authenticated-user-email",
    b"remote-user",
    b"x-authenticated-user",
    b"x-remote-group",
    b"x-remote-groups",
    b"x-remote-user",
    b"x-webauth-user",
    // The client's certificate (RFC 9440 §2.4 asks for the removal of the first two).
    b"client-cert",
    b"client-cert-chain",
    b"x-arr-clientcert",
    b"x-client-cert",
    b"x-client-verify",
    // A target or host that differs from that of the request.
    b"x-envoy-original-path",
    b"x-host",
    b"x-http-host-override",
    b"x-original-host",
    b"x-original-method",
    b"x-original-uri",
    b"x-original-url",
    b"x-rewrite-url",
];

/// The prefixes of names that exist once for each property of a user or of a certificate.
const HOP_CLAIM_FAMILIES: [&[u8]; 6] = [
    b"ssl-client-",
    b"x-amzn-oidc-",
    b"x-auth-request-",
    b"x-goog-authenticated-user-",
    b"x-ms-client-principal",
    b"x-ssl-client-",
];

/// The field `Proxy`. CGI turns it into `HTTP_PROXY`, which many programs take for their own proxy
/// (CVE-2016-5385).
const PROXY: &[u8] = b"proxy";

/// The lengths of the complete names that begin with each letter, as one bit set per letter. A
/// head has about 20 fields that are in none of the lists, and one look-up here excludes nearly all
/// of them.
const LENGTHS: [u64; 256] = {
    let mut lengths = [0; 256];
    mark(&METHOD_OVERRIDES, &mut lengths);
    mark(&HOP_CLAIMS, &mut lengths);
    mark(&[PROXY], &mut lengths);
    lengths
};

const fn mark(names: &[&[u8]], lengths: &mut [u64; 256]) {
    let mut at = 0;
    while at < names.len() {
        lengths[names[at][0] as usize] |= 1 << names[at].len();
        at += 1;
    }
}

/// Returns the [`Name`] of a field in these lists, in any spelling. Returns [`Name::Other`] for all
/// other fields.
pub(crate) fn name_of(spelled: &[u8]) -> Name {
    let first = spelled.first().map_or(0, u8::to_ascii_lowercase);
    let has_length = spelled.len() < 64 && LENGTHS[usize::from(first)] >> spelled.len() & 1 == 1;
    let is_one_of = |names: &[&[u8]]| has_length && names.iter().any(|name| alike(name, spelled));
    // All families begin with `x` or `ss`. Browsers send many fields that begin with `se`.
    let may_be_of_family = matches!((first, spelled.get(1)), (b'x', _) | (b's', Some(b's' | b'S')));
    let is_of_family =
        || may_be_of_family && HOP_CLAIM_FAMILIES.iter().any(|begin| begins(spelled, begin));
    let name = if is_one_of(&HOP_CLAIMS) || is_of_family() {
        Name::HopClaim
    } else if is_one_of(&METHOD_OVERRIDES) {
        Name::MethodOverride
    } else {
        return if alike(PROXY, spelled) { Name::NeverPassed } else { Name::Other };
    };
    if is_alias(spelled) { Name::NeverPassed } else { name }
}

#[cfg(test)]
mod tests {
    use super::*;

    fn all() -> impl Iterator<Item = (&'static [u8], Name)> {
        let overrides = METHOD_OVERRIDES.into_iter().map(|name| (name, Name::MethodOverride));
        let claims = HOP_CLAIMS.into_iter().chain(HOP_CLAIM_FAMILIES);
        overrides.chain(claims.map(|name| (name, Name::HopClaim)))
    }

    #[test]
    fn every_name_is_known_in_any_case_and_not_longer() {
        for (text, name) in all() {
            let shown = text.escape_ascii();
            assert_eq!(Name::of(text), name, "{shown}");
            assert_eq!(Name::of(&text.to_ascii_uppercase()), name, "{shown}");
        }
        for text in METHOD_OVERRIDES.into_iter().chain(HOP_CLAIMS) {
            assert_eq!(Name::of(&[text, b"z"].concat()), Name::Other, "{}", text.escape_ascii());
        }
        assert_eq!(Name::of(b"X-SSL-Client-S-DN"), Name::HopClaim);
        assert_eq!(Name::of(b"pRoXy"), Name::NeverPassed);
        assert_eq!(Name::of(b"Proxies"), Name::Other);
    }

    #[test]
    fn another_spelling_is_nobodys() {
        for (text, _) in all() {
            for stands_for_hyphen in [b'_', b'.'] {
                let hyphen = |byte: &u8| if *byte == b'-' { stands_for_hyphen } else { *byte };
                let alias: Vec<u8> = text.iter().map(hyphen).collect();
                let expected = if alias == text { Name::of(text) } else { Name::NeverPassed };
                assert_eq!(Name::of(&alias), expected, "{}", alias.escape_ascii());
            }
        }
        assert_eq!(Name::of(b"X_Original-URL"), Name::NeverPassed);
    }
}
