//! The session that gets on by an answer, and the token that tells it so.
//!
//! **With the head.** A token goes out with the answer's head, when the work has been done for it
//! and before it is known whether the client reads the rest. The table of sessions waits for the
//! end; a cookie cannot.
//!
//! **Not where it could be kept.** A cache between us and the visitors that keeps an answer keeps
//! its cookie, and would hand one visitor's token to all of them (RFC 9111 §7.3): useless where it
//! is bound to a cookie, one session for everybody where it is the session. So an answer that a
//! shared cache may keep brings none; the next one will.
//!
//! **Not in mode observe,** which promises to change nothing, nor while bypassed.

use bywash_engine::{ClassSet, SessionKey};
use bywash_message::{Fields, Name};
use bywash_token::{Moment, SessionName};
use bywash_units::Utility;
use http::StatusCode;

use super::answer::gets_on;
use super::{Facts, examine};
use crate::access_log::wall_clock_ms;
use crate::record::Record;
use crate::tokens::Tokens;

/// The session that gets on by an answer with this head: the request's own, or one that begins with
/// it. Puts a token into the head if one is due. `asked`: the engine has decided about the request.
pub(super) fn session_served(
    record: &Record,
    asked: bool,
    status: StatusCode,
    earned: Utility,
    fields: &mut Fields,
) -> Option<SessionKey> {
    let (shared, settings, facts) = (record.shared(), record.settings(), record.facts());
    let begun = examine::session_begun(settings, fields).map(|cookie| shared.session_key(cookie));
    let session = begun.or(facts.request.session);
    let Some(tokens) = &settings.tokens else { return session };
    if !(asked && record.is_enforced() && gets_on(status)) || may_be_kept(status, fields) {
        return session;
    }
    let begins = session != facts.request.session;
    let named = match examine::session_begun(settings, fields).filter(|_| begins) {
        Some(cookie) => Some(tokens.session(cookie)),
        None => facts.token.session,
    };
    let (session, name) = match (session, named) {
        (Some(session), Some(name)) => (session, name),
        (None, None) if tokens.are_sessions() => {
            let Some(name) = tokens.draw_session() else { return session };
            (shared.session_key(&name.0), name)
        }
        (_, _) => return session,
    };
    give(record, tokens, (name, begins), earned, fields);
    Some(session)
}

/// Puts the token of this session into the head, if one is due; always if the session `begins`.
fn give(
    record: &Record,
    tokens: &Tokens,
    (name, begins): (SessionName, bool),
    earned: Utility,
    fields: &mut Fields,
) {
    let (shared, Facts { request, token, secure, .. }) = (record.shared(), record.facts());
    let now = Moment::from_millis(wall_clock_ms());
    let ordered = (earned > Utility::default()).then(|| tokens.day_of_order(now)).flatten();
    let ordered = ordered.or(token.ordered);
    if !begins && !tokens.is_due(token, request.class, ordered) {
        return;
    }
    let known = request.session.map_or(ClassSet::NONE, |session| shared.driver.path(session));
    let served = known.union(token.proven).with(request.class);
    fields.push(b"Set-Cookie", &tokens.set_cookie(now, name, served, ordered, *secure));
    shared.metrics.token_given();
}

/// Whether a shared cache may keep the answer (RFC 9111 §3 and, for one that says nothing about
/// that, §4.2.2). One that revalidates what is kept already (304) counts as such.
fn may_be_kept(status: StatusCode, fields: &Fields) -> bool {
    if status == StatusCode::NOT_MODIFIED {
        return true;
    }
    let lines = fields.all(Name::CacheControl);
    let directives =
        lines.flat_map(|line| line.split(|byte| *byte == b',')).map(<[u8]>::trim_ascii);
    let mut says_kept = None;
    for directive in directives.filter(|directive| !directive.is_empty()) {
        let reads = |name: &[u8]| directive.eq_ignore_ascii_case(name);
        if reads(b"private") || reads(b"no-store") || reads(b"no-cache") {
            return false;
        }
        let fresh_for = |name: &[u8]| {
            let seconds = directive.get(name.len()..).filter(|seconds| *seconds != b"0");
            seconds.is_some() && directive[..name.len()].eq_ignore_ascii_case(name)
        };
        let says_so = reads(b"public") || fresh_for(b"max-age=") || fresh_for(b"s-maxage=");
        says_kept = Some(says_kept.unwrap_or(false) || says_so);
    }
    let dated = || fields.named(b"expires").chain(fields.named(b"last-modified")).next().is_some();
    says_kept.unwrap_or_else(dated)
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn an_answer_that_a_shared_cache_may_keep_is_known() {
        let kept = |status, lines: &[(&str, &str)]| {
            let mut fields = Fields::new();
            for (name, value) in lines {
                fields.push(name.as_bytes(), value.as_bytes());
            }
            may_be_kept(status, &fields)
        };
        let control = |value| kept(StatusCode::OK, &[("Cache-Control", value)]);
        for value in ["public", "max-age=60", "no-transform, S-MaxAge=5", "immutable,max-age=\"9\""]
        {
            assert!(control(value), "{value}");
        }
        for value in ["private", "no-store", "max-age=60, private", "max-age=0", "no-cache", ","] {
            assert!(!control(value), "{value}");
        }
        assert!(!kept(StatusCode::OK, &[]));
        assert!(kept(StatusCode::OK, &[("Expires", "Thu, 01 Jan 2026 00:00:00 GMT")]));
        assert!(kept(StatusCode::OK, &[("Last-Modified", "Thu, 01 Jan 2026 00:00:00 GMT")]));
        let both = [("Last-Modified", "Thu"), ("Cache-Control", "private")];
        assert!(!kept(StatusCode::OK, &both));
        assert!(kept(StatusCode::NOT_MODIFIED, &[("Cache-Control", "private")]));
    }
}
