//! The session cookie: whether requests bring it, and which cookie it is if the file says `auto`.
//!
//! The only symptom of a wrong name in `identify.session` is that no request has a session. So the
//! gateway counts the answered requests that had the cookie, and keeps the names of the cookies
//! that the application's responses set (`seen.rs`). If fewer than one in [`LEAST_SHARE`] answered
//! requests had the cookie, and responses set others but not this one, a line on standard error and
//! the status report it. A stray cookie left by an earlier application does not hide that.
//!
//! **The recent past.** An application may rename its cookie at any time, so all of this is about
//! the last requests (`recent.rs`). It may also be that no visitor has a session for a while. So
//! once the cookie has been right, the report needs another cookie that can be a session's by its
//! name or its attributes.
//!
//! **auto.** The gateway picks the cookie by evidence (`evidence.rs`). The engine's session key is
//! a hash of the cookie's value, so the pick only changes where that value is read.
//!
//! **auto, later.** The gateway keeps its pick until another cookie has the same evidence as the
//! pick had, while next to no request has the pick and no response sets it, over a whole window.
//! The other cookie must be new: responses have not set it while they set the pick. So neither a
//! time without visitors nor a second cookie of the application changes the pick. Attackers can
//! change it only if they send 99 of 100 answered requests while the application gives them a new
//! kind of session cookie and gives nobody the pick.
//!
//! **Hostile input.** Names come only from the application's `Set-Cookie`, never from requests.
//! Their number, their length and the number of cookies examined per message are bounded.
//!
//! **Cost.** Each request costs one counter update while the cookie is confirmed. Otherwise it also
//! takes a short lock. A request that finds the lock taken is left out, so no request waits for it.

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

/// The number of answered requests before a warning.
const ENOUGH: u64 = 100;
/// The cookie is confirmed if one in this many answered requests has it.
const LEAST_SHARE: u64 = 100;
/// The number of cookies examined per message.
const LOOKED_AT: usize = 32;
/// The number of cookies named in a warning.
const NAMED: usize = 5;
/// The number of picks of `auto`, one after the other. Bounds the memory for their names.
const PICKS: usize = 8;

/// Watches the session cookie. One instance lasts as long as `identify.session` stays the same.
pub(crate) struct SessionCookie {
    /// The configured name. `None`: a cookie must be picked.
    configured: Option<String>,
    /// The cookies that were picked. The last one is in use.
    picks: [OnceLock<String>; PICKS],
    /// The token cookie, which is not a session of the application.
    token: Option<String>,
    recent: Recent,
    /// Whether a response has ever set the cookie, or enough requests had it.
    was_right: AtomicBool,
    reported: AtomicBool,
    table: Mutex<Table>,
}

/// The watched cookies that a request brought, as pairs of the cookie's id and a hash of its value.
/// At most as many as are watched.
#[derive(Debug, Default)]
pub(crate) struct Brought(Vec<(u64, u64)>);

impl Brought {
    fn of(&self, id: u64) -> Option<u64> {
        self.0.iter().find(|(other, _)| *other == id).map(|(_, value)| *value)
    }
}

impl SessionCookie {
    /// Creates the watch. Returns `None` if sessions are not identified by a cookie of the
    /// application.
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

    /// Returns whether this watch fits the configuration.
    pub(crate) fn is_of(&self, identify: &Identify) -> bool {
        let configured = match &identify.session {
            Session::Cookie(name) => Some(name),
            Session::Auto => None,
            Session::Token | Session::None => return false,
        };
        self.configured.as_ref() == configured && self.token.as_deref() == token(identify)
    }

    /// Returns the cookie's name, or `None` until one is picked.
    pub(crate) fn name(&self) -> Option<&str> {
        self.configured.as_deref().or_else(|| self.picked())
    }

    /// Returns the cookies of a request that responses have set before.
    pub(crate) fn brought(&self, secret: Secret, fields: &Fields) -> Brought {
        let mut brought = Brought::default();
        if !fields.has(Name::Cookie) || self.is_confirmed() {
            return brought;
        }
        let Some(table) = self.table() else { return brought };
        for (name, value) in cookies::all_brought(fields).take(LOOKED_AT) {
            if let Some(seen) = table.find(name)
                && brought.of(seen.id).is_none()
            {
                brought.0.push((seen.id, secret.session_key(value).0));
            }
        }
        brought
    }

    /// Records that the application has answered `request` with a head that has these fields.
    pub(crate) fn answered(
        &self,
        secret: Secret,
        request: &EngineRequest,
        brought: &Brought,
        fields: &Fields,
    ) {
        let sets = fields.has(Name::SetCookie);
        let is_set =
            sets && self.name().is_some_and(|name| cookies::set(fields, name, unix_s).is_some());
        self.count(request.session.is_some(), is_set);
        if (!sets && brought.0.is_empty()) || self.is_confirmed() {
            return;
        }
        let Some(mut table) = self.table() else { return };
        let evidence = self.configured.is_none();
        let (window, now) = (self.recent.window(), Instant::now());
        let mut set = Vec::new();
        for line in cookies::all_set(fields, unix_s).take(LOOKED_AT) {
            let is_token = self.token.as_ref().is_some_and(|name| name.as_bytes() == line.name);
            if is_token {
                continue;
            }
            let Some(seen) = table.note(&line, window) else { continue };
            let value = secret.session_key(line.value).0;
            set.push((seen.id, value));
            if evidence && let Some(address) = request.address {
                seen.evidence.is_set(line.value, value, address, now);
            }
        }
        for (id, value) in &brought.0 {
            let Some(seen) = table.by_id(*id) else { continue };
            seen.requests += 1;
            if evidence {
                let set = set.iter().rfind(|(other, _)| other == id).map(|(_, value)| *value);
                seen.evidence.is_returned(*value, set);
            }
        }
        if is_set {
            table.is_in_use(window);
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

    /// Takes over the pick of a previous process, if this one must pick as well and the name can be
    /// a session cookie's.
    pub(crate) fn takes_over(&self, name: &str) {
        let is_token = self.token.as_deref() == Some(name);
        if self.configured.is_none() && !is_token && Seen::may_have(name) {
            // If a name is picked already, it stays.
            let _ = self.picks[0].set(name.to_owned());
        }
    }

    /// Returns the cookie that was picked last, if one had to be picked.
    pub(crate) fn picked(&self) -> Option<&str> {
        self.picks.iter().rev().find_map(OnceLock::get).map(String::as_str)
    }

    /// Counts an answered request: whether it had the cookie, and whether its response sets it.
    fn count(&self, carried: bool, is_set: bool) {
        if is_set {
            self.was_right.store(true, Ordering::Relaxed);
        }
        if self.recent.count(carried, is_set).is_some_and(is_enough) {
            self.was_right.store(true, Ordering::Relaxed);
            // The next change of the cookie is to be reported as well, once a window at most.
            self.reported.store(false, Ordering::Relaxed);
        }
    }

    /// Returns whether no cookie is picked, or the picked one has been out of use for a whole
    /// window.
    fn may_pick(&self) -> bool {
        let counts = self.recent.counts();
        let is_out = counts.answered >= WINDOW && counts.set == 0 && !is_enough(counts);
        self.picked().is_none() || is_out
    }

    /// Identifies sessions by this cookie from now on, and restarts the counts for it. Returns
    /// false if there were too many picks before.
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

    /// Returns whether enough requests had the cookie.
    fn is_confirmed(&self) -> bool {
        let counts = self.recent.counts();
        counts.answered >= ENOUGH && is_enough(counts)
    }

    /// Returns why sessions are unknown, or `None` if they are known.
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
        // Requests that find the table locked meanwhile are left out.
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

    /// Returns the value of `identify.session`.
    fn source(&self) -> String {
        let configured = self.configured.as_ref();
        configured.map_or_else(|| "auto".to_owned(), |name| format!("cookie:{name}"))
    }

    /// Locks the table. Returns `None` if another thread holds the lock.
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

/// Lists cookies as text, the most often set first. Returns `None` if there are none.
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
