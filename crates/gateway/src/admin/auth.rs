//! Access control for operators: which requests are let in, and who their author is.
//!
//! **Host and origin.** Only a request with a loopback `Host` is answered. So a page in an
//! operator's browser whose domain name resolves to 127.0.0.1 (DNS rebinding) gets nothing. That
//! holds on the unix socket as well, because `ssh -L` maps it to a local port of the operator's
//! machine. A request that states its origin (`Origin`, `Sec-Fetch-Site`) must come from the
//! console itself.
//!
//! **Proof of the gateway.** If no gateway runs, any program may listen at its address. So a client
//! that has the key does not send a token at first. It asks for a [`proof`] that the other side is
//! a gateway with the same key.
//!
//! **Authentication.** A user who may open the unix socket may do everything. The file system
//! decides that, and users state their own name. On loopback any local user can connect, so a token
//! is needed there (`bywash_token::operator`). The token says who its bearer is and what they may
//! do. The key is read from its file for each request: a new key in the file invalidates all tokens
//! at once, without a reload.
//!
//! **Changes.** Every change is a `POST` with the field `Bywash-Admin`. A page of another origin
//! cannot send it without a CORS preflight.

use std::net::IpAddr;

use bywash_api::{Access, Code, Proof};
use bywash_control::is_reserved;
use bywash_message::Request;
use bywash_token::operator::{Operator, OperatorKeys, Unproven, read};
use bywash_token::{Secrets, UnixTime};
use http::Method;

use super::answer::{Answered, Refused, document};
use crate::process::wall_clock::unix_ms;
use crate::shared::Shared;

/// An authenticated operator.
pub(super) enum Caller {
    /// A user of the unix socket, who states their own name.
    Local,
    /// An operator with a valid token, which contains the name.
    Named(Operator),
}

impl Caller {
    /// Returns the name in the token; `None` on the unix socket.
    pub(super) fn name(&self) -> Option<&str> {
        match self {
            Self::Local => None,
            Self::Named(operator) => Some(operator.name()),
        }
    }

    /// Returns the author of a decision. `stated` is the name that the operator states. Returns an
    /// error if it differs from the name in the token, or if no operator may have it.
    pub(super) fn author(&self, stated: Option<String>) -> Result<String, Refused> {
        let author = match self {
            Self::Local => stated.unwrap_or_default(),
            Self::Named(operator) => match stated {
                Some(stated) if stated != operator.name() => {
                    return Err(Refused::new(
                        Code::Forbidden,
                        "`by` differs from the name in the token: omit `by`, or use a token with \
                         your own name",
                    ));
                }
                Some(_) | None => operator.name().to_owned(),
            },
        };
        if is_reserved(&author) {
            return Err(Refused::invalid(format!(
                "`{author}` is the author of decisions that no operator makes: give your own name"
            )));
        }
        Ok(author)
    }
}

/// The credentials of a connection that follows events or requests. They are checked again about
/// once a second while it follows them.
pub(super) struct Credentials {
    /// The token; `None` if the request had none. The unix socket needs none.
    token: Option<Vec<u8>>,
    is_local: bool,
}

impl Credentials {
    pub(super) fn of(request: &Request, is_local: bool) -> Self {
        Self { token: token(request).map(<[u8]>::to_vec), is_local }
    }

    /// Returns whether the credentials are valid now, with the key that is in the file now.
    pub(super) fn is_good(&self, shared: &Shared) -> bool {
        self.is_local || proven(shared, self.token.as_deref()).is_ok()
    }
}

/// Answers `/v1/proof`: proves that this gateway has the operators' key. A client with the same key
/// asks for this proof before it sends a token, because another program may listen at this address.
/// The proof is bound to the address `place`, so that it cannot be relayed from another gateway.
/// Returns an error if the nonce is not 32 hexadecimal digits or the key cannot be read.
pub(super) fn proof(shared: &Shared, place: &str, nonce: Option<&str>) -> Answered {
    let is_fit =
        |nonce: &&str| nonce.len() == 32 && nonce.bytes().all(|byte| byte.is_ascii_hexdigit());
    let nonce = nonce.filter(is_fit);
    let nonce = nonce.ok_or_else(|| Refused::invalid("`nonce` must be 32 hexadecimal digits"))?;
    let keys = keys(shared).map_err(|why| Refused::new(Code::Unavailable, why))?;
    let proof = keys.proof(nonce, place);
    Ok(document(&Proof { proof }))
}

/// Returns the caller of a request that is allowed this `access`. Otherwise returns an error that
/// names the cause: the host, the origin, the token, or a missing header field.
pub(super) fn authorize(
    shared: &Shared,
    is_local: bool,
    request: &Request,
    access: Access,
) -> Result<Caller, Refused> {
    if !host_is_loopback(&request.authority) {
        return Err(forbidden(
            "this `Host` is not allowed: use the loopback address of the admin listener, or \
             localhost",
        ));
    }
    if access == Access::Anybody {
        return Ok(Caller::Local);
    }
    check_origin(request)?;
    let caller =
        if is_local { Caller::Local } else { Caller::Named(proven(shared, token(request))?) };
    if matches!(&caller, Caller::Named(operator) if access == Access::Decider && !operator.decides)
    {
        return Err(forbidden(
            "this token is read-only: `bywash console` makes one that permits decisions",
        ));
    }
    if request.method == Method::POST && request.fields.named(b"bywash-admin").next().is_none() {
        return Err(forbidden("a POST needs the header field Bywash-Admin"));
    }
    Ok(caller)
}

fn forbidden(why: &str) -> Refused {
    Refused::new(Code::Forbidden, why)
}

/// Checks that the request comes from the console, if it states its origin. Returns an error
/// otherwise.
fn check_origin(request: &Request) -> Result<(), Refused> {
    let field = |name: &[u8]| request.fields.named(name).next();
    let own = [b"http://", request.authority.as_ref()].concat();
    let is_own = |origin: &[u8]| origin.eq_ignore_ascii_case(&own);
    let is_same = |site: &[u8]| matches!(site, b"same-origin" | b"none");
    if field(b"origin").is_some_and(|origin| !is_own(origin))
        || field(b"sec-fetch-site").is_some_and(|site| !is_same(site))
    {
        return Err(forbidden(
            "only pages of this console may send requests, and this one comes from another origin",
        ));
    }
    Ok(())
}

fn token(request: &Request) -> Option<&[u8]> {
    request.fields.named(b"authorization").next().and_then(bearer)
}

fn proven(shared: &Shared, token: Option<&[u8]>) -> Result<Operator, Refused> {
    let unauthorised = |why: String| Refused::new(Code::Unauthorised, why);
    let keys = keys(shared).map_err(unauthorised)?;
    let token = token.ok_or_else(|| {
        let why = "the request has no token: `bywash console` makes one, or give the command --key \
                   FILE";
        unauthorised(why.to_owned())
    })?;
    read(&keys, token, UnixTime::from_millis(unix_ms())).map_err(|why| match why {
        Unproven::Over => {
            Refused::new(Code::Expired, "the token has expired: `bywash console` makes a new one")
        }
        Unproven::Malformed | Unproven::Forged => unauthorised(why.to_string()),
    })
}

/// Returns the token after the scheme `Bearer`, whose case does not matter (RFC 9110 §11.1); `None`
/// if the field has another scheme.
fn bearer(value: &[u8]) -> Option<&[u8]> {
    let (scheme, token) = value.split_at_checked(b"bearer ".len())?;
    scheme.eq_ignore_ascii_case(b"bearer ").then(|| token.trim_ascii())
}

fn keys(shared: &Shared) -> Result<OperatorKeys, String> {
    let settings = shared.settings();
    let path = settings.config.listen.operators_key.as_ref();
    let path = path.ok_or(
        "the gateway has no operators' key: set listen.operators_key, or set listen.admin to a \
         unix socket",
    )?;
    let text = bywash_files::own_secret(path).map_err(|why| unreadable(path, &why))?;
    let secrets = Secrets::parse(&text).map_err(|why| unreadable(path, &why))?;
    Ok(OperatorKeys::new(&secrets))
}

fn unreadable(path: &std::path::Path, why: &dyn std::fmt::Display) -> String {
    format!("the operators' key {} cannot be read: {why}", path.display())
}

fn host_is_loopback(host: &[u8]) -> bool {
    let Ok(host) = std::str::from_utf8(host) else { return false };
    let name = match host.rsplit_once(':') {
        Some((name, port)) if port.bytes().all(|byte| byte.is_ascii_digit()) => name,
        _ => host,
    };
    let address = name.trim_start_matches('[').trim_end_matches(']').parse::<IpAddr>();
    name == "localhost" || address.is_ok_and(|address| address.is_loopback())
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn only_loopback_hosts_are_answered() {
        for host in ["127.0.0.1", "127.0.0.1:7070", "localhost:7070", "[::1]:7070", "127.8.8.8"] {
            assert!(host_is_loopback(host.as_bytes()), "{host}");
        }
        for host in ["evil.example", "127.0.0.1.evil.example", "10.0.0.1:7070", "", "[::2]"] {
            assert!(!host_is_loopback(host.as_bytes()), "{host}");
        }
    }

    #[test]
    fn a_token_follows_its_scheme() {
        assert_eq!(bearer(b"Bearer v1.x"), Some(&b"v1.x"[..]));
        assert_eq!(bearer(b"bEARER  v1.x "), Some(&b"v1.x"[..]));
        for none in [&b"Basic v1.x"[..], b"Bearer", b""] {
            assert_eq!(bearer(none), None);
        }
    }
}
