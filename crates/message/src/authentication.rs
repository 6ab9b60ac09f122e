//! Detects authentication that holds for a connection instead of one request (RFC 4559, Microsoft's
//! `[MS-NTHT]`).
//!
//! `NTLM` and `Negotiate` authenticate the connection that carries them: the server then attributes
//! every later request on the connection to the same user. RFC 9110 §11.7 does not allow that, but
//! servers do it.

use crate::character_class::members;
use crate::fields::Fields;
use crate::name::Name;

/// The names of the authentication schemes that authenticate a connection, in lower case.
const SCHEMES: [&[u8]; 2] = [b"ntlm", b"negotiate"];

/// The fields that carry challenges or credentials of an authentication scheme.
const CARRIERS: [Name; 4] =
    [Name::Authorization, Name::ProxyAuthorization, Name::WwwAuthenticate, Name::ProxyAuthenticate];

/// The set of names that show an authentication: the [`CARRIERS`], and the field that states
/// explicitly that an authentication persists.
const SIGNS: u64 = Name::set(&CARRIERS) | Name::PersistentAuth.bit();

impl Fields {
    /// Returns whether these fields of a request or a response are part of an authentication of the
    /// connection.
    ///
    /// A comma inside a quoted string counts as the end of a list member. The result may therefore
    /// be a false positive, but never a false negative.
    pub fn authenticates_connection(&self) -> bool {
        if !self.has_any(SIGNS) {
            return false;
        }
        let mut members = CARRIERS.into_iter().flat_map(|name| self.all(name)).flat_map(members);
        self.has(Name::PersistentAuth) || members.any(names_scheme)
    }
}

/// Returns whether a list member begins with the name of one of the [`SCHEMES`].
fn names_scheme(member: &[u8]) -> bool {
    let scheme = member.split(|byte| matches!(byte, b' ' | b'\t')).next().unwrap_or_default();
    SCHEMES.iter().any(|known| known.eq_ignore_ascii_case(scheme))
}

#[cfg(test)]
mod tests {
    use super::*;

    fn authenticates(lines: &[(&str, &str)]) -> bool {
        let mut fields = Fields::new();
        for (name, value) in lines {
            fields.push(name.as_bytes(), value.as_bytes());
        }
        fields.authenticates_connection()
    }

    #[test]
    fn the_schemes_are_known_in_any_case_line_and_position() {
        for line in [
            ("Authorization", "NTLM TlRMTVNTUAAB"),
            ("authorization", "negotiate YII="),
            ("Proxy-Authorization", "Ntlm x"),
            ("WWW-Authenticate", "NTLM"),
            ("WWW-Authenticate", "Basic realm=\"a\", Digest realm=\"b\", nonce=c ,\tNEGOTIATE"),
            ("Proxy-Authenticate", "Negotiate oYG2"),
            ("Persistent-Auth", "true"),
        ] {
            assert!(authenticates(&[line]), "{line:?}");
            assert!(authenticates(&[("WWW-Authenticate", "Basic realm=\"x\""), line]), "{line:?}");
        }
    }

    #[test]
    fn other_schemes_are_bound_to_their_request() {
        for line in [
            ("Authorization", "Basic TlRMTQ=="),
            ("Authorization", "Bearer negotiate"),
            ("WWW-Authenticate", "Digest realm=\"ntlm\""),
            ("WWW-Authenticate", "NTLMv9"),
            ("X-Authorization", "NTLM x"),
        ] {
            assert!(!authenticates(&[line]), "{line:?}");
        }
        assert!(!authenticates(&[]));
    }
}
