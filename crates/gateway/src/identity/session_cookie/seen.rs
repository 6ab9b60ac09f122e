//! The cookies that responses set.

use std::fmt;

use bywash_api::CookieStatus;

use super::evidence::Evidence;
use crate::identity::cookies::Line;

/// The number of cookies kept. A new one replaces the one whose last response is the longest ago.
const MOST: usize = 16;
/// The maximum length of a name in bytes. Cookies with longer names are ignored.
const LONGEST: usize = 64;

/// The cookies, in the order of the last responses that set them.
#[derive(Default)]
pub(super) struct Table {
    seen: Vec<Seen>,
    /// The id of the next cookie.
    next: u64,
}

/// A cookie that responses set.
pub(super) struct Seen {
    /// An id that no other cookie of the table has ever had.
    pub(super) id: u64,
    pub(super) name: Box<str>,
    http_only: bool,
    pub(super) answers: u64,
    deletions: u64,
    pub(super) requests: u64,
    pub(super) evidence: Evidence,
}

impl Table {
    pub(super) fn iter(&self) -> impl Iterator<Item = &Seen> {
        self.seen.iter()
    }

    pub(super) fn find(&self, name: &[u8]) -> Option<&Seen> {
        self.seen.iter().find(|seen| seen.name.as_bytes() == name)
    }

    pub(super) fn by_id(&mut self, id: u64) -> Option<&mut Seen> {
        self.seen.iter_mut().find(|seen| seen.id == id)
    }

    /// Records a line of a response. Returns the cookie if the line sets it and it can be kept.
    pub(super) fn note(&mut self, line: &Line<'_>) -> Option<&mut Seen> {
        let at = self.seen.iter().position(|seen| seen.name.as_bytes() == line.name);
        if line.deleted {
            // A deletion does not replace another cookie.
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
        self.seen.push(seen);
        self.seen.last_mut()
    }

    /// Creates a cookie, and makes room for it in the table.
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
            evidence: Evidence::default(),
        }
    }

    /// Returns the cookie that the evidence shows to be the session cookie, if there is one. While
    /// a cookie with a more likely name may still gain enough evidence, no other one is picked.
    pub(super) fn pick(&self) -> Option<&Seen> {
        let shown = self.seen.iter().filter(|seen| seen.evidence.is_enough());
        let best = shown.max_by_key(|seen| (seen.rank(), seen.evidence.kept()))?;
        let better = |seen: &Seen| seen.rank() > best.rank() && seen.evidence.may_be_enough();
        (best.rank() > Rank::None && !self.seen.iter().any(better)).then_some(best)
    }
}

/// The likelihood that a cookie is the session cookie, by its name and its attributes.
#[derive(Clone, Copy, Debug, PartialEq, Eq, PartialOrd, Ord)]
enum Rank {
    /// Not a session cookie.
    None,
    /// Something that scripts of the page need not read.
    HttpOnly,
    /// A session cookie.
    Named,
}

/// Parts of the names of session cookies, in lower case: `PHPSESSID`, `JSESSIONID`, `sessionid`,
/// `laravel_session`, `_session_id`, `ASP.NET_SessionId` and many others contain the first or the
/// second.
const PARTS: [&str; 3] = ["sess", "sid", "wordpress_logged_in_"];
/// Parts of names that no session cookie has.
const OTHERS: [&str; 2] = ["csrf", "xsrf"];

impl Seen {
    /// Returns whether a cookie of this name can be kept.
    pub(super) fn may_have(text: &str) -> bool {
        name(text.as_bytes()).is_some()
    }

    fn rank(&self) -> Rank {
        let name = self.name.to_ascii_lowercase();
        let has = |parts: &[&str]| parts.iter().any(|part| name.contains(part));
        if has(&OTHERS) {
            Rank::None
        } else if has(&PARTS) {
            Rank::Named
        } else if self.http_only {
            Rank::HttpOnly
        } else {
            Rank::None
        }
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

/// Returns the name as text, if it can be kept and printed.
fn name(name: &[u8]) -> Option<&str> {
    let is_shown = |byte: &u8| byte.is_ascii_graphic() && *byte != b'`';
    let name = str::from_utf8(name).ok()?;
    (name.len() <= LONGEST && name.as_bytes().iter().all(is_shown)).then_some(name)
}
