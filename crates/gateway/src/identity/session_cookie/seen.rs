//! The table of cookies that responses set, from which `identify.session = "auto"` picks one.

use std::fmt;

use bywash_api::CookieStatus;

use super::evidence::Evidence;
use crate::identity::cookies::Line;

/// The maximum number of cookies in the table. A new cookie replaces the one that no response has
/// set for the longest time.
const MOST: usize = 16;
/// The maximum length of a cookie's name in bytes. Cookies with longer names are ignored.
const LONGEST: usize = 64;

/// The cookies that responses set, at most [`MOST`].
#[derive(Default)]
pub(super) struct Table {
    seen: Vec<Seen>,
    /// The id for the next new cookie.
    next: u64,
}

/// One cookie that responses set, with its counts and its evidence.
pub(super) struct Seen {
    /// The cookie's id, which no other cookie of this table has ever had.
    pub(super) id: u64,
    pub(super) name: Box<str>,
    http_only: bool,
    pub(super) answers: u64,
    deletions: u64,
    pub(super) requests: u64,
    /// The number of the window in which a response last set the cookie.
    window: u64,
    /// Whether responses set this cookie while they still set the picked one. If so, it is not the
    /// picked cookie under a new name.
    coexists: bool,
    pub(super) evidence: Evidence,
}

impl Table {
    pub(super) fn iter(&self) -> impl Iterator<Item = &Seen> {
        self.seen.iter()
    }

    /// Returns the cookies that a response has set in this window or in the one before.
    pub(super) fn recent(&self, window: u64) -> impl Iterator<Item = &Seen> {
        self.seen.iter().filter(move |seen| seen.is_recent(window))
    }

    pub(super) fn find(&self, name: &[u8]) -> Option<&Seen> {
        self.seen.iter().find(|seen| seen.name.as_bytes() == name)
    }

    pub(super) fn by_id(&mut self, id: u64) -> Option<&mut Seen> {
        self.seen.iter_mut().find(|seen| seen.id == id)
    }

    /// Records a `Set-Cookie` line of a response in this window. Returns the cookie if the line
    /// sets it. Returns `None` for a deletion, and for a name that cannot be stored.
    pub(super) fn note(&mut self, line: &Line<'_>, window: u64) -> Option<&mut Seen> {
        let at = self.seen.iter().position(|seen| seen.name.as_bytes() == line.name);
        if line.deleted {
            // A deletion is counted only for a cookie that is in the table already.
            let seen = at.and_then(|at| self.seen.get_mut(at))?;
            seen.deletions += 1;
            return None;
        }
        let mut seen = match at {
            Some(at) => self.seen.remove(at),
            None => self.begin(name(line.name)?),
        };
        seen.http_only = line.http_only;
        seen.answers += 1;
        seen.window = window;
        self.seen.push(seen);
        self.seen.last_mut()
    }

    /// Returns an entry for a new cookie. If the table is full, removes the cookie that was set the
    /// longest ago.
    fn begin(&mut self, name: &str) -> Seen {
        if self.seen.len() >= MOST {
            self.seen.remove(0);
        }
        let id = self.next;
        self.next += 1;
        Seen {
            id,
            name: name.into(),
            http_only: false,
            answers: 0,
            deletions: 0,
            requests: 0,
            window: 0,
            coexists: false,
            evidence: Evidence::default(),
        }
    }

    /// Returns the cookie that the evidence shows to be the session cookie, if there is one. Waits
    /// while a cookie with a higher rank may still gain enough evidence: then it returns `None`.
    ///
    /// `former` is the name of the cookie that was picked before, if any. A successor must have at
    /// least its rank, and no response may have set it while responses still set `former`.
    pub(super) fn pick(&self, former: Option<&str>) -> Option<&Seen> {
        let former = former.map_or(Rank::None, |name| Rank::of(name, false));
        let least = former.max(Rank::HttpOnly);
        let candidates =
            || self.seen.iter().filter(move |seen| !seen.coexists && seen.rank() >= least);
        let shown = candidates().filter(|seen| seen.evidence.is_enough());
        let best = shown.max_by_key(|seen| (seen.rank(), seen.evidence.kept()))?;
        let better = |seen: &Seen| seen.rank() > best.rank() && seen.evidence.may_be_enough();
        (!candidates().any(better)).then_some(best)
    }

    /// Records that a response has set the picked cookie in this window. All cookies that were set
    /// in this window or in the one before are marked as coexisting, so none of them can become its
    /// successor.
    pub(super) fn mark_in_use(&mut self, window: u64) {
        for seen in self.seen.iter_mut().filter(|seen| seen.is_recent(window)) {
            seen.coexists = true;
        }
    }

    /// Discards all evidence after a cookie was picked in this window. New evidence decides about a
    /// later successor of that cookie.
    pub(super) fn restart(&mut self, window: u64) {
        for seen in &mut self.seen {
            seen.coexists = seen.is_recent(window);
            seen.evidence = Evidence::default();
        }
    }
}

/// The likelihood that a cookie is the session cookie, judged by its name and its attributes only.
#[derive(Clone, Copy, Debug, PartialEq, Eq, PartialOrd, Ord)]
enum Rank {
    /// The cookie is not considered.
    None,
    /// The cookie has the attribute `HttpOnly`, and its name says nothing.
    HttpOnly,
    /// The cookie's name contains one of [`PARTS`], as those of session cookies do.
    Named,
}

impl Rank {
    fn of(name: &str, http_only: bool) -> Self {
        let name = name.to_ascii_lowercase();
        let has = |parts: &[&str]| parts.iter().any(|part| name.contains(part));
        if has(&OTHERS) {
            Self::None
        } else if has(&PARTS) {
            Self::Named
        } else if http_only {
            Self::HttpOnly
        } else {
            Self::None
        }
    }
}

/// Parts of the names of session cookies, in lower case. `PHPSESSID`, `JSESSIONID`, `sessionid`,
/// `laravel_session`, `_session_id`, `ASP.NET_SessionId` and many others contain the first or the
/// second part.
const PARTS: [&str; 3] = ["sess", "sid", "wordpress_logged_in_"];
/// Parts of names, in lower case, that exclude a cookie: tokens against CSRF have them.
const OTHERS: [&str; 2] = ["csrf", "xsrf"];

impl Seen {
    /// Returns whether the table can store a cookie of this name.
    pub(super) fn may_have(text: &str) -> bool {
        name(text.as_bytes()).is_some()
    }

    fn rank(&self) -> Rank {
        Rank::of(&self.name, self.http_only)
    }

    /// Returns whether the cookie can be the session cookie, by its name and its attributes.
    pub(super) fn may_be_session(&self) -> bool {
        self.rank() > Rank::None
    }

    fn is_recent(&self, window: u64) -> bool {
        self.window + 1 >= window
    }

    pub(super) fn status(&self) -> CookieStatus {
        CookieStatus {
            name: self.name.to_string(),
            http_only: self.http_only,
            answers: self.answers,
            deletions: self.deletions,
            requests: self.requests,
        }
    }
}

impl fmt::Display for Seen {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        let http_only = if self.http_only { " (HttpOnly)" } else { "" };
        write!(f, "`{}`{http_only}", self.name)
    }
}

/// Returns the name as text. Returns `None` if it is too long or cannot be printed.
fn name(name: &[u8]) -> Option<&str> {
    let is_shown = |byte: &u8| byte.is_ascii_graphic() && *byte != b'`';
    let name = str::from_utf8(name).ok()?;
    (name.len() <= LONGEST && name.as_bytes().iter().all(is_shown)).then_some(name)
}

#[cfg(test)]
mod tests {
    use std::time::Instant;

    use bywash_engine::AddressKey;

    use super::*;

    /// Lets 20 visitors get an `HttpOnly` cookie with a new value in this window and return the
    /// value.
    fn visits(table: &mut Table, name: &str, window: u64) {
        let (name, value) = (name.as_bytes(), &[b'v'; 16]);
        for visitor in 0..20 {
            let line = Line { name, value, http_only: true, deleted: false };
            let seen = table.note(&line, window).unwrap();
            seen.evidence.record_set(value, visitor, AddressKey(visitor), Instant::now());
            seen.evidence.record_returned(visitor, None);
        }
    }

    /// Returns the name of the cookie that is picked after the cookie `former`.
    fn picked<'t>(table: &'t Table, former: Option<&str>) -> Option<&'t str> {
        table.pick(former).map(|seen| &*seen.name)
    }

    #[test]
    fn a_cookie_that_was_set_with_the_picked_one_does_not_succeed_it() {
        let mut table = Table::default();
        visits(&mut table, "a_session", 0);
        visits(&mut table, "b_session", 0);
        table.restart(0);
        visits(&mut table, "b_session", 2);
        visits(&mut table, "c_session", 2);
        table.mark_in_use(2);
        visits(&mut table, "c_session", 9);
        assert_eq!(picked(&table, Some("a_session")), None);
        visits(&mut table, "d_session", 9);
        assert_eq!(picked(&table, Some("a_session")), Some("d_session"));
    }

    #[test]
    fn a_cookie_with_a_less_likely_name_does_not_succeed() {
        let mut table = Table::default();
        visits(&mut table, "visitor", 0);
        assert_eq!(picked(&table, Some("PHPSESSID")), None);
        for former in [None, Some("shop")] {
            assert_eq!(picked(&table, former), Some("visitor"));
        }
    }

    #[test]
    fn a_cookie_that_was_dropped_succeeds_by_new_evidence() {
        let mut table = Table::default();
        visits(&mut table, "a_session", 0);
        table.restart(0);
        visits(&mut table, "b_session", 5);
        assert_eq!(picked(&table, Some("a_session")), Some("b_session"));
        table.restart(5);
        assert_eq!(picked(&table, Some("b_session")), None);
        visits(&mut table, "a_session", 9);
        assert_eq!(picked(&table, Some("b_session")), Some("a_session"));
    }
}
