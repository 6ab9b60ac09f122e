//! Watches the session cookie: whether requests have it, and, with `auto`, which cookie it is.
//!
//! A wrong name in `identify.session` has only one symptom: no request has a session. So the
//! gateway counts the answered requests that had the cookie, and stores the names of the cookies
//! that the application's responses set (`seen.rs`). It warns on standard error and in the status
//! if two conditions hold: fewer than one in [`LEAST_SHARE`] answered requests had the cookie, and
//! responses set other cookies but not this one. The threshold is not zero, so a few stray cookies
//! of an earlier application do not hide the mistake.
//!
//! **Recent requests only.** An application may rename its cookie at any time, so all counts are of
//! the last requests (`recent.rs`). There can be times in which no visitor has a session.
//! Therefore, once the cookie has been seen to work, the warning needs one more condition:
//! responses set another cookie that can be a session cookie by its name or its attributes.
//!
//! **The first pick of `auto`.** The gateway picks the cookie by evidence (`evidence.rs`). The
//! engine's session key is a hash of the cookie's value, so the pick only changes where that value
//! is read.
//!
//! **Later picks of `auto`.** The gateway drops its pick when three conditions have held over a
//! whole window. Next to no request has the picked cookie, no response sets it, and another cookie
//! has the same evidence as the pick had. The other cookie must be new: no response has set it
//! while responses still set the pick. So neither a time without visitors nor a second cookie of
//! the application changes the pick. To change it, attackers must send 99 of 100 answered requests,
//! while the application gives them a new kind of session cookie and gives the picked one to
//! nobody.
//!
//! **Hostile input.** Names come only from the application's `Set-Cookie`, never from requests. The
//! number of names, their length and the number of cookies examined per message are bounded.
//!
//! **Cost.** While the cookie is confirmed, each request costs one counter update. Otherwise it
//! also takes a short lock. A request that finds the lock held is not counted as evidence, so no
//! request waits.

mod evidence;
mod recent;
mod seen;

use std::cmp::Reverse;
use std::fmt::Write;
use std::sync::atomic::{AtomicBool, Ordering};
use std::sync::{Mutex, MutexGuard, OnceLock, PoisonError};
use std::time::Instant;

use bywash_api::SessionCookieStatus;
use bywash_config::{Identify, Session};
use bywash_engine::Request as EngineRequest;
use bywash_message::{Fields, Name};
use bywash_terminal::stderr::say;

use self::recent::{Counts, Recent, WINDOW};
use self::seen::{Seen, Table};
use super::cookies;
use crate::process::secret::Secret;
use crate::process::wall_clock::unix_s;

/// The minimum number of answered requests before a warning, and before the cookie is confirmed.
const ENOUGH: u64 = 100;
/// The cookie is confirmed if at least one in this many answered requests has it.
const LEAST_SHARE: u64 = 100;
/// The maximum number of cookies examined in one message.
const LOOKED_AT: usize = 32;
/// The maximum number of cookies that a warning names.
const NAMED: usize = 5;
/// The maximum number of cookies that the gateway picks, one after the other, in one process. The
/// gateway picks the session cookie itself if `identify.session` is `auto`. The maximum bounds the
/// memory for the names of the picked cookies.
const PICKS: usize = 8;

/// Watches the session cookie. One instance lasts as long as `identify.session` stays the same.
pub(crate) struct SessionCookie {
    /// The name from the configuration. `None` with `auto`, because the gateway then picks the
    /// cookie.
    configured: Option<String>,
    /// The names of the cookies that the gateway has picked, in order. The last one is in use.
    picks: [OnceLock<String>; PICKS],
    /// The name of the cookie with the gateway's own token, which is never picked.
    token: Option<String>,
    recent: Recent,
    /// Whether the cookie has been seen to work: a response has set it, or enough requests had it.
    was_right: AtomicBool,
    reported: AtomicBool,
    table: Mutex<Table>,
}

/// The cookies of a request that this module watches, as pairs of the cookie's id and a hash of its
/// value. Each cookie occurs at most once.
#[derive(Debug, Default)]
pub(crate) struct WatchedCookies(Vec<(u64, u64)>);

impl WatchedCookies {
    fn of(&self, id: u64) -> Option<u64> {
        self.0.iter().find(|(other, _)| *other == id).map(|(_, value)| *value)
    }
}

impl SessionCookie {
    /// Creates the watch. Returns `None` if the configuration does not identify sessions by a
    /// cookie of the application.
    pub(crate) fn of(identify: &Identify) -> Option<Self> {
        let configured = match &identify.session {
            Session::Cookie(name) => Some(name.clone()),
            Session::Auto => None,
            Session::Token | Session::None => return None,
        };
        Some(Self {
            configured,
            picks: [const { OnceLock::new() }; PICKS],
            token: token(identify).map(str::to_owned),
            recent: Recent::default(),
            was_right: AtomicBool::new(false),
            reported: AtomicBool::new(false),
            table: Mutex::new(Table::default()),
        })
    }

    /// Returns whether a watch made for this configuration would have the same configured cookie
    /// and the same token. If so, a reload keeps this watch.
    pub(crate) fn matches_config(&self, identify: &Identify) -> bool {
        let configured = match &identify.session {
            Session::Cookie(name) => Some(name),
            Session::Auto => None,
            Session::Token | Session::None => return false,
        };
        self.configured.as_ref() == configured && self.token.as_deref() == token(identify)
    }

    /// Returns the session cookie's name. Returns `None` with `auto` while no cookie is picked.
    pub(crate) fn name(&self) -> Option<&str> {
        self.configured.as_deref().or_else(|| self.picked())
    }

    /// Returns those cookies of a request that earlier responses have set. Returns none while the
    /// session cookie is confirmed, or if another thread holds the lock.
    pub(crate) fn watched_cookies(&self, secret: Secret, fields: &Fields) -> WatchedCookies {
        let mut watched_cookies = WatchedCookies::default();
        if !fields.has(Name::Cookie) || self.is_confirmed() {
            return watched_cookies;
        }
        let Some(table) = self.table() else { return watched_cookies };
        for (name, value) in cookies::request_cookies(fields).take(LOOKED_AT) {
            if let Some(seen) = table.find(name)
                && watched_cookies.of(seen.id).is_none()
            {
                watched_cookies.0.push((seen.id, secret.session_key(value).0));
            }
        }
        watched_cookies
    }

    /// Records that the application has answered `request` with a head that has these fields.
    /// `watched_cookies` is the value that [`Self::watched_cookies`] returned for this request. May
    /// pick a cookie or log a warning.
    pub(crate) fn observe_answer(
        &self,
        secret: Secret,
        request: &EngineRequest,
        watched_cookies: &WatchedCookies,
        fields: &Fields,
    ) {
        let sets = fields.has(Name::SetCookie);
        let is_set = sets
            && self
                .name()
                .is_some_and(|name| cookies::response_cookie(fields, name, unix_s).is_some());
        self.count(request.session.is_some(), is_set);
        if (!sets && watched_cookies.0.is_empty()) || self.is_confirmed() {
            return;
        }
        let Some(mut table) = self.table() else { return };
        let evidence = self.configured.is_none();
        let (window, now) = (self.recent.window(), Instant::now());
        let mut set = Vec::new();
        for line in cookies::response_cookies(fields, unix_s).take(LOOKED_AT) {
            let is_token = self.token.as_ref().is_some_and(|name| name.as_bytes() == line.name);
            if is_token {
                continue;
            }
            let Some(seen) = table.note(&line, window) else { continue };
            let value = secret.session_key(line.value).0;
            set.push((seen.id, value));
            if evidence && let Some(address) = request.address {
                seen.evidence.record_set(line.value, value, address, now);
            }
        }
        for (id, value) in &watched_cookies.0 {
            let Some(seen) = table.by_id(*id) else { continue };
            seen.requests += 1;
            if evidence {
                let set = set.iter().rfind(|(other, _)| other == id).map(|(_, value)| *value);
                seen.evidence.record_returned(*value, set);
            }
        }
        if is_set {
            table.mark_in_use(window);
        }
        if evidence
            && self.may_pick()
            && let Some(picked) = table.pick(self.picked())
            && self.pick(picked)
        {
            table.restart(window);
        }
        let warning = self.warning(&table);
        drop(table);
        if let Some(warning) = warning
            && !self.reported.swap(true, Ordering::Relaxed)
        {
            say(format!(
                "{warning}; the gateway therefore knows no sessions, and the scheduler cannot \
                 prefer them"
            ));
        }
    }

    /// Takes over the pick of a previous process. Does nothing if the configuration names the
    /// cookie, or if `name` cannot be that of a session cookie.
    pub(crate) fn restore_pick(&self, name: &str) {
        let is_token = self.token.as_deref() == Some(name);
        if self.configured.is_none() && !is_token && Seen::may_have(name) {
            // A name that this process has picked already stays.
            let _ = self.picks[0].set(name.to_owned());
        }
    }

    /// Returns the cookie that the gateway picked last. Returns `None` if it has picked none.
    pub(crate) fn picked(&self) -> Option<&str> {
        self.picks.iter().rev().find_map(OnceLock::get).map(String::as_str)
    }

    /// Counts an answered request. `carried` says whether the request had the session cookie, and
    /// `is_set` whether its response sets the session cookie.
    fn count(&self, carried: bool, is_set: bool) {
        if is_set {
            self.was_right.store(true, Ordering::Relaxed);
        }
        if self.recent.count(carried, is_set).is_some_and(is_enough) {
            self.was_right.store(true, Ordering::Relaxed);
            // Lets the next change of the cookie be reported as well, at most once a window.
            self.reported.store(false, Ordering::Relaxed);
        }
    }

    /// Returns whether a cookie may be picked: none is picked yet, or the picked one has been out
    /// of use for a whole window.
    fn may_pick(&self) -> bool {
        let counts = self.recent.counts();
        let is_out = counts.answered >= WINDOW && counts.set == 0 && !is_enough(counts);
        self.picked().is_none() || is_out
    }

    /// Uses `picked` as the session cookie from now on, and restarts the counts. Returns false, and
    /// changes nothing, if the gateway has picked [`PICKS`] cookies before.
    fn pick(&self, picked: &Seen) -> bool {
        let former = self.picked();
        let Some(free) = self.picks.iter().find(|pick| pick.get().is_none()) else { return false };
        if free.set(picked.name.to_string()).is_err() {
            return false;
        }
        if let Some(former) = former {
            let Counts { answered, carried, .. } = self.recent.counts();
            say(format!(
                "identify.session = \"auto\" has dropped the cookie `{former}`: {carried} of the \
                 last {answered} answered requests had it, and no response set it"
            ));
        }
        self.was_right.store(true, Ordering::Relaxed);
        self.reported.store(false, Ordering::Relaxed);
        self.recent.restart();
        say(format!(
            "identify.session = \"auto\" has picked the cookie {picked}: {} responses set it, and \
             {} requests had it",
            picked.answers, picked.requests
        ));
        true
    }

    /// Returns whether at least [`ENOUGH`] requests were counted and enough of them had the cookie.
    fn is_confirmed(&self) -> bool {
        let counts = self.recent.counts();
        counts.answered >= ENOUGH && is_enough(counts)
    }

    /// Returns the text of a warning that says why sessions are not recognised. Returns `None` if
    /// there is nothing to warn of.
    fn warning(&self, table: &Table) -> Option<String> {
        let (counts, window) = (self.recent.counts(), self.recent.window());
        let Counts { answered, carried, set } = counts;
        let Some(name) = self.name() else {
            let set = (answered >= WINDOW).then(|| named(table.recent(window)))??;
            return Some(format!(
                "identify.session = \"auto\" has picked no cookie in the last {answered} answered \
                 requests; responses set {set}"
            ));
        };
        if answered < ENOUGH || is_enough(counts) || set > 0 {
            return None;
        }
        let was_right = self.was_right.load(Ordering::Relaxed);
        let others = table.recent(window).filter(|seen| !was_right || seen.may_be_session());
        let set = named(others)?;
        let had = match carried {
            0 if was_right => format!("none of the last {answered} answered requests had"),
            0 => "no request had".to_owned(),
            some => format!("{some} of the last {answered} answered requests had"),
        };
        Some(format!(
            "identify.session = \"{}\": {had} the cookie `{name}`; responses set {set}",
            self.source()
        ))
    }

    pub(crate) fn status(&self) -> SessionCookieStatus {
        let Counts { answered, carried, .. } = self.recent.counts();
        // Waits for the lock. Meanwhile, requests skip the table instead of waiting.
        let table = self.table.lock().unwrap_or_else(PoisonError::into_inner);
        SessionCookieStatus {
            source: self.source(),
            name: self.name().map(str::to_owned),
            answered,
            carried,
            set: table.iter().map(Seen::status).collect(),
            warning: self.warning(&table),
        }
    }

    /// Returns the value of `identify.session` as the configuration spells it.
    fn source(&self) -> String {
        let configured = self.configured.as_ref();
        configured.map_or_else(|| "auto".to_owned(), |name| format!("cookie:{name}"))
    }

    /// Locks the table without waiting. Returns `None` if another thread holds the lock.
    fn table(&self) -> Option<MutexGuard<'_, Table>> {
        self.table.try_lock().ok()
    }
}

const fn is_enough(counts: Counts) -> bool {
    counts.carried * LEAST_SHARE >= counts.answered
}

fn token(identify: &Identify) -> Option<&str> {
    identify.token.as_ref().map(|token| &*token.cookie)
}

/// Formats at most [`NAMED`] of these cookies as text, the most often set first, with the number of
/// the others. Returns `None` if there are no cookies.
fn named<'t>(cookies: impl Iterator<Item = &'t Seen>) -> Option<String> {
    let mut seen: Vec<&Seen> = cookies.collect();
    seen.sort_by_key(|seen| Reverse(seen.answers));
    let mut text = String::new();
    for seen in seen.iter().take(NAMED) {
        let comma = if text.is_empty() { "" } else { ", " };
        // Writing to a `String` cannot fail.
        let _ = write!(text, "{comma}{seen}");
    }
    if seen.len() > NAMED {
        let _ = write!(text, " and {} more", seen.len() - NAMED);
    }
    (!text.is_empty()).then_some(text)
}
