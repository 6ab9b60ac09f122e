//! Determines the session whose progress a response counts for, and adds a token that proves the
//! progress.
//!
//! **Sent with the head.** A token goes out with the head of the response. At that time the work is
//! done, but it is not known yet whether the client reads the rest. The table of sessions records
//! progress only at the end of the response, but a cookie can only be sent in the head.
//!
//! **Not in cacheable responses.** A cache between the gateway and the visitors that stores a
//! response also stores its cookie, and would give one visitor's token to all of them (RFC 9111
//! §7.3). If the token is bound to a session cookie, it would be useless to the others. If the
//! token is the session, all visitors would share one session. So a response that a shared cache
//! may store ([`cacheable`](crate::identity::cacheable)) brings no token; the next response does. A
//! response that brings a token and has no caching directive is made `private`.
//!
//! **Not in mode `observe`, nor while bypassed.** In these states the gateway must change nothing.

use bywash_engine::{AnswerKind, ClassSet, Service, SessionKey};
use bywash_message::Fields;
use bywash_token::{SessionName, UnixTime};
use bywash_units::Utility;
use http::StatusCode;

use super::answer_kind::{kind, may_advance_session};
use super::success::Judged;
use super::{Facts, examine};
use crate::identity::cacheable::{keep_private, may_be_cached};
use crate::identity::tokens::Tokens;
use crate::process::wall_clock::unix_ms;
use crate::request::record::Record;

/// Returns the session whose progress this response counts for: the request's own session, or the
/// one that this response starts. Adds a session token to the response's `fields` if one is due.
/// `asked` says whether the engine has decided about the request; without a decision, no token is
/// added.
pub(super) fn session_served(
    record: &Record,
    asked: bool,
    status: StatusCode,
    judged: Judged,
    fields: &mut Fields,
) -> Option<SessionKey> {
    let (shared, settings, facts) = (record.shared(), record.settings(), record.facts());
    if !facts.request.also.is_empty() {
        // A request of several classes proves none, because it is unknown which of them was served.
        return None;
    }
    let begun = examine::session_begun(settings, fields);
    let session = begun.map(|cookie| shared.secret.session_key(cookie)).or(facts.request.session);
    let Some(tokens) = &settings.tokens else { return session };
    let gives = asked && record.class_enforces() && may_advance_session(status);
    if !gives || may_be_cached(status, fields) || !is_session_progress(record, status, judged) {
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
            (shared.secret.session_key(&name.0), name)
        }
        (_, _) => return session,
    };
    give(record, tokens, (name, begins), judged, fields);
    Some(session)
}

/// Returns whether the table of sessions counts a response with this status as progress. A token
/// must not prove more than the table records.
fn is_session_progress(record: &Record, status: StatusCode, judged: Judged) -> bool {
    let request = record.facts().request;
    let service = Service {
        class: request.class,
        address: request.address,
        answer: kind(status),
        had_begun: !request.proven.is_empty(),
        succeeded: judged.succeeded,
    };
    service.answer == AnswerKind::Content
        || record.shared().driver.advances_session(request.session, &service)
}

/// Adds the session's token to the head of the response if a new token is due. `begins` says
/// whether the response begins the session; if so, a token is always due.
fn give(
    record: &Record,
    tokens: &Tokens,
    (name, begins): (SessionName, bool),
    judged: Judged,
    fields: &mut Fields,
) {
    let (shared, Facts { request, token, secure, .. }) = (record.shared(), record.facts());
    let now = UnixTime::from_millis(unix_ms());
    let orders = judged.revenue > Utility::default();
    let ordered = orders.then(|| tokens.day_of_order(now)).flatten();
    let ordered = ordered.or(token.ordered);
    let proves = judged.succeeded.then_some(request.class);
    if !begins && !tokens.is_due(token, proves, ordered) {
        return;
    }
    let known = request.session.map_or(ClassSet::NONE, |session| shared.driver.path(session));
    let before = known.union(token.proven);
    let served = proves.map_or(before, |class| before.with(class));
    fields.push(b"Set-Cookie", &tokens.set_cookie(now, name, served, ordered, *secure));
    keep_private(fields);
    shared.metrics.token_given();
}
