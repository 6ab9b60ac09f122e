//! Who comes in, and as whom.
//!
//! **Where.** Only a `Host` that is loopback is answered: a page in an operator's browser that has pointed a name of
//! its own at 127.0.0.1 gets nothing. That holds on the unix socket as well, as `ssh -L` brings one to a port of the operator's.
//! A page that says where it comes from (`Origin`, `Sec-Fetch-Site`) must be the console itself.
//!
//! **To whom.** Any program may listen where a gateway does not. So whoever has the key asks for [`proof`] that it is a gateway with
//! the same one, before a token is sent.
//!
//! **Who.** Whoever may open the unix socket may do everything; the file system decides that, and she says who she is. On
//! loopback everybody on this machine can connect, so there a token is needed (`bywash_token::operator`), which says who
//! somebody is and what she may. The key is read anew each time: with another key in the file all tokens are over at once,
//! and nothing has to be told.
//!
//! **What.** Whatever changes something is a `POST` with the field `Bywash-Admin`, which no page can send to another origin
//! without being asked first.

use std::net::IpAddr;

use bywash_api::{Access, Code, Proof};
use bywash_message::Request;
use bywash_token::operator::{Operator, OperatorKeys, Unproven, read};
use bywash_token::{Moment, Secrets};
use http::Method;

use super::answer::{Answered, Refused, document};
use crate::access_log::wall_clock_ms;
use crate::shared::Shared;

/// Who has come in.
pub(super) enum Who {
    /// By the socket: she says herself who she is.
    Local,
    /// By a token: it says who she is.
    Named(Operator),
}

impl Who {
    /// Returns the name that the token says.
    pub(super) fn name(&self) -> Option<&str> {
        match self {
            Self::Local => None,
            Self::Named(operator) => Some(operator.name()),
        }
    }

    /// The author of what she decides; `said` is what she says herself.
    pub(super) fn author(&self, said: Option<String>) -> Result<String, Refused> {
        match self {
            Self::Local => Ok(said.unwrap_or_default()),
            Self::Named(operator) => match said {
                Some(said) if said != operator.name() => Err(Refused::new(
                    Code::Forbidden,
                    "the token says who you are: leave `by` out, or ask for a token of your own",
                )),
                Some(_) | None => Ok(operator.name().to_owned()),
            },
        }
    }
}

/// What lets somebody in for as long as it is good: who watches is asked for it again and again.
pub(super) struct Pass {
    /// Nobody on the unix socket needs any.
    token: Option<Vec<u8>>,
    is_local: bool,
}

impl Pass {
    pub(super) fn of(request: &Request, is_local: bool) -> Self {
        Self { token: token(request).map(<[u8]>::to_vec), is_local }
    }

    /// Whether it is good now, by the key that there is now.
    pub(super) fn is_good(&self, shared: &Shared) -> bool {
        self.is_local || proven(shared, self.token.as_deref()).is_ok()
    }
}

/// That this gateway has the operators' key, shown to whoever has it as well before a token is sent: another
/// program may listen here. It is of this address alone, so that nobody can have another gateway show it.
pub(super) fn proof(shared: &Shared, place: &str, nonce: Option<&str>) -> Answered {
    let is_fit =
        |nonce: &&str| nonce.len() == 32 && nonce.bytes().all(|byte| byte.is_ascii_hexdigit());
    let nonce = nonce.filter(is_fit);
    let nonce = nonce.ok_or_else(|| Refused::invalid("`nonce` is 32 hexadecimal digits"))?;
    let keys = keys(shared).map_err(|why| Refused::new(Code::Unavailable, why))?;
    let proof = keys.proof(nonce, place);
    Ok(document(&Proof { proof }))
}

/// Lets in whoever may do this.
pub(super) fn enter(
    shared: &Shared,
    is_local: bool,
    request: &Request,
    access: Access,
) -> Result<Who, Refused> {
    if !host_is_loopback(&request.authority) {
        return Err(forbidden("ask for this listener by its loopback address, or as localhost"));
    }
    if access == Access::Anybody {
        return Ok(Who::Local);
    }
    comes_from_here(request)?;
    let who = if is_local { Who::Local } else { Who::Named(proven(shared, token(request))?) };
    if matches!(&who, Who::Named(operator) if access == Access::Decider && !operator.decides) {
        return Err(forbidden("this token only reads: `bywash console` makes one that decides"));
    }
    if request.method == Method::POST && request.fields.named(b"bywash-admin").next().is_none() {
        return Err(forbidden("a POST takes the field Bywash-Admin"));
    }
    Ok(who)
}

fn forbidden(why: &str) -> Refused {
    Refused::new(Code::Forbidden, why)
}

/// Where a page asks, it is our own.
fn comes_from_here(request: &Request) -> Result<(), Refused> {
    let field = |name: &[u8]| request.fields.named(name).next();
    let own = [b"http://", request.authority.as_ref()].concat();
    let is_own = |origin: &[u8]| origin.eq_ignore_ascii_case(&own);
    let is_same = |site: &[u8]| matches!(site, b"same-origin" | b"none");
    if field(b"origin").is_some_and(|origin| !is_own(origin))
        || field(b"sec-fetch-site").is_some_and(|site| !is_same(site))
    {
        return Err(forbidden("only the console's own pages may ask"));
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
        let why = "a token is needed: `bywash console` makes one, or say --key FILE";
        unauthorised(why.to_owned())
    })?;
    read(&keys, token, Moment::from_millis(wall_clock_ms())).map_err(|why| match why {
        Unproven::Over => {
            Refused::new(Code::Expired, "the token is over: `bywash console` makes another")
        }
        Unproven::Malformed | Unproven::Forged => unauthorised(why.to_string()),
    })
}

/// What follows `Bearer`, whose case does not matter (RFC 9110 §11.1).
fn bearer(value: &[u8]) -> Option<&[u8]> {
    let (scheme, token) = value.split_at_checked(b"bearer ".len())?;
    scheme.eq_ignore_ascii_case(b"bearer ").then(|| token.trim_ascii())
}

fn keys(shared: &Shared) -> Result<OperatorKeys, String> {
    let settings = shared.settings();
    let path = settings.config.listen.operators_key.as_ref();
    let path = path.ok_or(
        "there is no operators' key: set listen.operators_key, or listen on a unix socket",
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
