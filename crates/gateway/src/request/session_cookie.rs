//! The cookie that sessions are known by: whether requests bring it, and which one it is if the file says `auto`.
//!
//! A wrong name in `identify.session` has no other sign than sessions that nobody has. So the gateway counts the answered
//! requests that had the cookie, and keeps the names of the cookies that the application's answers set (`seen.rs`). If
//! fewer than one of [`LEAST_SHARE`] answered requests had the cookie, and answers set others and never this one, a line
//! on standard error and the status say so. One stray cookie of an application before this one does not hide that.
//!
//! **auto.** The gateway picks the cookie by evidence (`evidence.rs`) and keeps it as long as the file says the same. An
//! engine's key is a hash of the cookie's value, so nothing changes with the pick but where the value is read.
//!
//! **Hostile input.** Names come from `Set-Cookie` of the application alone, never from requests. Their number, their
//! length and the cookies of a message that are looked at are bounded.
//!
//! **Cost.** Two counts by request once the cookie is confirmed. Before that a short lock as well: what finds it taken is
//! left out, so no request waits for it.

mod evidence;
mod seen;

use std::cmp::Reverse;
use std::fmt::Write;
use std::sync::atomic::{AtomicBool, AtomicU64, Ordering};
use std::sync::{Mutex, MutexGuard, OnceLock, PoisonError};

use bywash_api::SessionCookieStatus;
use bywash_config::{Identify, Session};
use bywash_engine::Request as EngineRequest;
use bywash_message::{Fields, Name};

use self::seen::{Seen, Table};
use super::{cookies, examine};
use crate::shared::Shared;
use crate::talk::say;

/// Answered requests before anything is said.
const ENOUGH: u64 = 100;
/// The same while `auto` has picked none.
const ENOUGH_TO_PICK: u64 = 1000;
/// The cookie is the right one if one of so many answered requests has it.
const LEAST_SHARE: u64 = 100;
/// Cookies of a message that are looked at.
const LOOKED_AT: usize = 32;
/// Cookies that are named in a message.
const NAMED: usize = 5;

/// One for as long as `identify.session` is the same.
pub(crate) struct SessionCookie {
    /// `None`: it is to be picked.
    configured: Option<String>,
    picked: OnceLock<String>,
    /// The cookie of tokens, which is no session of the application's.
    token: Option<String>,
    answered: AtomicU64,
    carried: AtomicU64,
    /// An answer has set the cookie.
    is_set: AtomicBool,
    told: AtomicBool,
    table: Mutex<Table>,
}

/// The watched cookies that a request brought: which one, and a hash of its value. At most as many as are watched.
#[derive(Debug, Default)]
pub(crate) struct Brought(Vec<(u64, u64)>);

impl Brought {
    fn of(&self, id: u64) -> Option<u64> {
        self.0.iter().find(|(other, _)| *other == id).map(|(_, value)| *value)
    }
}

impl SessionCookie {
    /// `None`: sessions are not known by a cookie of the application's.
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

    /// Whether it is what the configuration says.
    pub(crate) fn is_of(&self, identify: &Identify) -> bool {
        let configured = match &identify.session {
            Session::Cookie(name) => Some(name),
            Session::Auto => None,
            Session::Token | Session::None => return false,
        };
        self.configured.as_ref() == configured && self.token.as_deref() == token(identify)
    }

    /// The cookie's name; `None` while it is to be picked.
    pub(crate) fn name(&self) -> Option<&str> {
        self.configured.as_deref().or_else(|| self.picked.get().map(String::as_str))
    }

    /// Returns the cookies of a request that answers have set.
    pub(crate) fn brought(&self, shared: &Shared, fields: &Fields) -> Brought {
        let mut brought = Brought::default();
        if !fields.has(Name::Cookie) || self.is_confirmed() {
            return brought;
        }
        let Some(table) = self.table() else { return brought };
        for (name, value) in cookies::all_brought(fields).take(LOOKED_AT) {
            if let Some(seen) = table.find(name)
                && brought.of(seen.id).is_none()
            {
                brought.0.push((seen.id, shared.session_key(value).0));
            }
        }
        brought
    }

    /// Notes that the application has answered `request` with a head that has these fields.
    pub(crate) fn answered(
        &self,
        shared: &Shared,
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
        let mut set = Vec::new();
        for line in cookies::all_set(fields, examine::wall_clock_s).take(LOOKED_AT) {
            let is_token = self.token.as_ref().is_some_and(|name| name.as_bytes() == line.name);
            if is_token {
                continue;
            }
            let Some(seen) = table.note(&line) else { continue };
            if self.name() == Some(&*seen.name) {
                self.is_set.store(true, Ordering::Relaxed);
            }
            let value = shared.session_key(line.value).0;
            set.push((seen.id, value));
            if evidence && let Some(address) = request.address {
                seen.evidence.is_set(line.value, value, address);
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
            say(format!("{warning}; sessions are unknown, and the order cannot prefer them"));
        }
    }

    /// Takes over the pick of a process before this one, if this one is to pick as well and the name may be a session's.
    pub(crate) fn takes_over(&self, name: &str) {
        let is_token = self.token.as_deref() == Some(name);
        if self.configured.is_none() && !is_token && Seen::may_have(name) {
            // A second one finds it set.
            let _ = self.picked.set(name.to_owned());
        }
    }

    /// Returns the cookie that was picked, if one was to be.
    pub(crate) fn picked(&self) -> Option<&str> {
        self.picked.get().map(String::as_str)
    }

    /// Sessions are known by this cookie from now on. What is counted is about it.
    fn pick(&self, picked: &Seen) {
        if self.picked.set(picked.name.to_string()).is_err() {
            return;
        }
        self.is_set.store(true, Ordering::Relaxed);
        self.answered.store(0, Ordering::Relaxed);
        self.carried.store(0, Ordering::Relaxed);
        say(format!(
            "identify.session = \"auto\" has picked the cookie {picked}: {} answers set it and {} requests had it",
            picked.answers, picked.requests
        ));
    }

    /// Whether enough requests had the cookie.
    fn is_confirmed(&self) -> bool {
        let answered = self.answered.load(Ordering::Relaxed);
        let carried = self.carried.load(Ordering::Relaxed);
        answered >= ENOUGH && is_enough(carried, answered)
    }

    /// Why sessions are unknown after so many answered requests, if they are.
    fn warning(&self, table: &Table, answered: u64) -> Option<String> {
        let Some(name) = self.name() else {
            let set = (answered >= ENOUGH_TO_PICK).then(|| named(table))??;
            return Some(format!(
                "identify.session = \"auto\" has picked no cookie after {answered} answered requests; responses set {set}"
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
        // Requests that find it locked meanwhile are left out.
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

    /// The value of `identify.session`.
    fn source(&self) -> String {
        let configured = self.configured.as_ref();
        configured.map_or_else(|| "auto".to_owned(), |name| format!("cookie:{name}"))
    }

    /// `None`: somebody else has it.
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

/// The cookies of a table in words, those that answers set most often first; `None` if there are none.
fn named(table: &Table) -> Option<String> {
    let mut seen: Vec<&Seen> = table.iter().collect();
    seen.sort_by_key(|seen| Reverse(seen.answers));
    let mut text = String::new();
    for seen in seen.iter().take(NAMED) {
        let comma = if text.is_empty() { "" } else { ", " };
        // A String takes everything.
        let _ = write!(text, "{comma}{seen}");
    }
    if seen.len() > NAMED {
        let _ = write!(text, " and {} more", seen.len() - NAMED);
    }
    (!text.is_empty()).then_some(text)
}
