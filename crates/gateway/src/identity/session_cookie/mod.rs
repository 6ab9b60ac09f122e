//! The session cookie: whether requests bring it, and which cookie it is if the file says `auto`.
//!
//! The only symptom of a wrong name in `identify.session` is that no request has a session. So the
//! gateway counts the answered requests that had the cookie, and keeps the names of the cookies
//! that the application's responses set (`seen.rs`). If fewer than one in [`LEAST_SHARE`] answered
//! requests had the cookie, and responses set others but never this one, a line on standard error
//! and the status report it. A stray cookie left by an earlier application does not hide that.
//!
//! **auto.** The gateway picks the cookie by evidence (`evidence.rs`), and keeps it as long as the
//! configuration says the same. The engine's session key is a hash of the cookie's value, so the
//! pick only changes where that value is read.
//!
//! **Hostile input.** Names come only from the application's `Set-Cookie`, never from requests.
//! Their number, their length and the number of cookies examined per message are bounded.
//!
//! **Cost.** Each request costs two counter updates once the cookie is confirmed. Before that it
//! also takes a short lock. A request that finds the lock taken is left out, so no request waits
//! for it.

mod evidence;
mod seen;

use std::cmp::Reverse;
use std::fmt::Write;
use std::sync::atomic::{AtomicBool, AtomicU64, Ordering};
use std::sync::{Mutex, MutexGuard, OnceLock, PoisonError};
use std::time::Instant;

use bywash_api::SessionCookieStatus;
use bywash_config::{Identify, Session};
use bywash_engine::Request as EngineRequest;
use bywash_message::{Fields, Name};

use self::seen::{Seen, Table};
use super::cookies;
use crate::process::secret::Secret;
use crate::process::talk::say;
use crate::process::wall::unix_s;

/// The number of answered requests before a warning.
const ENOUGH: u64 = 100;
/// The number of answered requests before a warning while `auto` has picked no cookie.
const ENOUGH_TO_PICK: u64 = 1000;
/// The cookie is confirmed if one in this many answered requests has it.
const LEAST_SHARE: u64 = 100;
/// The number of cookies examined per message.
const LOOKED_AT: usize = 32;
/// The number of cookies named in a warning.
const NAMED: usize = 5;

/// Watches the session cookie. One instance lasts as long as `identify.session` stays the same.
pub(crate) struct SessionCookie {
    /// The configured name. `None`: a cookie must be picked.
    configured: Option<String>,
    picked: OnceLock<String>,
    /// The token cookie, which is not a session of the application.
    token: Option<String>,
    answered: AtomicU64,
    carried: AtomicU64,
    /// A response has set the cookie.
    is_set: AtomicBool,
    told: AtomicBool,
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
            picked: OnceLock::new(),
            token: token(identify).map(str::to_owned),
            answered: AtomicU64::new(0),
            carried: AtomicU64::new(0),
            is_set: AtomicBool::new(false),
            told: AtomicBool::new(false),
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
        self.configured.as_deref().or_else(|| self.picked.get().map(String::as_str))
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
        let answered = self.answered.fetch_add(1, Ordering::Relaxed) + 1;
        if request.session.is_some() {
            self.carried.fetch_add(1, Ordering::Relaxed);
        }
        let sets = fields.has(Name::SetCookie);
        if (!sets && brought.0.is_empty()) || self.is_confirmed() {
            return;
        }
        let Some(mut table) = self.table() else { return };
        let evidence = self.name().is_none();
        let now = Instant::now();
        let mut set = Vec::new();
        for line in cookies::all_set(fields, unix_s).take(LOOKED_AT) {
            let is_token = self.token.as_ref().is_some_and(|name| name.as_bytes() == line.name);
            if is_token {
                continue;
            }
            let Some(seen) = table.note(&line) else { continue };
            if self.name() == Some(&*seen.name) {
                self.is_set.store(true, Ordering::Relaxed);
            }
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
        if evidence && let Some(picked) = table.pick() {
            self.pick(picked);
        }
        let warning = self.warning(&table, answered);
        drop(table);
        if let Some(warning) = warning
            && !self.told.swap(true, Ordering::Relaxed)
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
            let _ = self.picked.set(name.to_owned());
        }
    }

    /// Returns the cookie that was picked, if one had to be picked.
    pub(crate) fn picked(&self) -> Option<&str> {
        self.picked.get().map(String::as_str)
    }

    /// Identifies sessions by this cookie from now on. The counters restart for it.
    fn pick(&self, picked: &Seen) {
        if self.picked.set(picked.name.to_string()).is_err() {
            return;
        }
        self.is_set.store(true, Ordering::Relaxed);
        self.answered.store(0, Ordering::Relaxed);
        self.carried.store(0, Ordering::Relaxed);
        say(format!(
            "identify.session = \"auto\" has picked the cookie {picked}: {} responses set it, and \
             {} requests had it",
            picked.answers, picked.requests
        ));
    }

    /// Returns whether enough requests had the cookie.
    fn is_confirmed(&self) -> bool {
        let answered = self.answered.load(Ordering::Relaxed);
        let carried = self.carried.load(Ordering::Relaxed);
        answered >= ENOUGH && is_enough(carried, answered)
    }

    /// Returns why sessions are unknown after `answered` requests, or `None` if they are known.
    fn warning(&self, table: &Table, answered: u64) -> Option<String> {
        let Some(name) = self.name() else {
            let set = (answered >= ENOUGH_TO_PICK).then(|| named(table))??;
            return Some(format!(
                "identify.session = \"auto\" has picked no cookie after {answered} answered \
                 requests; responses set {set}"
            ));
        };
        let carried = self.carried.load(Ordering::Relaxed);
        let is_set = self.is_set.load(Ordering::Relaxed);
        if answered < ENOUGH || is_enough(carried, answered) || is_set {
            return None;
        }
        let set = named(table)?;
        let had = match carried {
            0 => "no request had".to_owned(),
            some => format!("{some} of {answered} answered requests had"),
        };
        Some(format!(
            "identify.session = \"{}\": {had} the cookie `{name}`; responses set {set}",
            self.source()
        ))
    }

    pub(crate) fn status(&self) -> SessionCookieStatus {
        let answered = self.answered.load(Ordering::Relaxed);
        // Requests that find the table locked meanwhile are left out.
        let table = self.table.lock().unwrap_or_else(PoisonError::into_inner);
        SessionCookieStatus {
            source: self.source(),
            name: self.name().map(str::to_owned),
            answered,
            carried: self.carried.load(Ordering::Relaxed),
            set: table.iter().map(Seen::status).collect(),
            warning: self.warning(&table, answered),
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

const fn is_enough(carried: u64, answered: u64) -> bool {
    carried.saturating_mul(LEAST_SHARE) >= answered
}

fn token(identify: &Identify) -> Option<&str> {
    identify.token.as_ref().map(|token| &*token.cookie)
}

/// Lists the cookies of a table as text, the most often set first. Returns `None` if there are
/// none.
fn named(table: &Table) -> Option<String> {
    let mut seen: Vec<&Seen> = table.iter().collect();
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
