//! The session that gets on by an answer, and the token that tells it so.
//!
//! **With the head.** A token goes out with the answer's head, when the work has been done for it
//! and before it is known whether the client reads the rest. The table of sessions waits for the
//! end; a cookie cannot.
//!
//! **Not where it could be kept.** A cache between us and the visitors that keeps an answer keeps
//! its cookie, and would hand one visitor's token to all of them (RFC 9111 §7.3): useless where it
//! is bound to a cookie, one session for everybody where it is the session. So an answer that a
//! shared cache may keep (`cacheable`) brings none; the next one will. One that brings a token and
//! says nothing to caches is made `private`.
//!
//! **Not in mode observe,** which promises to change nothing, nor while bypassed.

use bywash_engine::{AnswerKind, ClassSet, Service, SessionKey};
use bywash_message::Fields;
use bywash_token::{Moment, SessionName};
use bywash_units::Utility;
use http::StatusCode;

use super::answer::{gets_on, kind};
use super::cacheable::{keep_private, may_be_kept};
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
    if !facts.request.also.is_empty() {
        // Nobody knows which of its classes the application has served.
        return None;
    }
    let begun = examine::session_begun(settings, fields);
    let session = begun.map(|cookie| shared.session_key(cookie)).or(facts.request.session);
    let Some(tokens) = &settings.tokens else { return session };
    let gives = asked && record.class_enforces() && gets_on(status);
    if !gives || may_be_kept(status, fields) || !begins_or_gets_on(record, status) {
        return session;
    }
    let begins = session != facts.request.session;
    let named = match begun.filter(|_| begins) {
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

/// Whether the table of sessions counts an answer with this status: a token proves no more than it does.
fn begins_or_gets_on(record: &Record, status: StatusCode) -> bool {
    let request = record.facts().request;
    let service = Service {
        class: request.class,
        address: request.address,
        answer: kind(status),
        had_begun: !request.proven.is_empty(),
    };
    service.answer == AnswerKind::Content
        || record.shared().driver.gets_on(request.session, &service)
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
    keep_private(fields);
    shared.metrics.token_given();
}
