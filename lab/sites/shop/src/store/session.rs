//! Visitors: who they say they are, where the goods go, how they pay.
//!
//! Every value has a default, because a load generator posts empty forms.

use bywash_site::Sid;
use rusqlite::{OptionalExtension, params};

use super::{Page, Store, StoreError, unix_ms};

/// The longest customer, address or reference kept, in characters; the rest is cut off.
const MAX_TEXT: usize = 200;

/// Whose request this is.
pub(super) struct Visit {
    pub(super) sid: Sid,
    pub(super) is_new: bool,
}

impl Store {
    /// The session named by `claimed`, or a new one. An unknown name is never adopted: whoever
    /// planted it would know the session.
    pub(super) fn visit(&mut self, claimed: Option<Sid>) -> Result<Visit, StoreError> {
        match claimed {
            Some(sid) if self.knows(sid)? => Ok(Visit { sid, is_new: false }),
            _ => Ok(Visit { sid: self.welcome()?, is_new: true }),
        }
    }

    /// Sets the customer, which is what logging in amounts to here.
    pub(super) fn log_in(&mut self, sid: Sid, name: Option<&str>) -> rusqlite::Result<Page> {
        let update = "UPDATE sessions SET customer = ?2 WHERE sid = ?1";
        self.keep(update, sid, name.unwrap_or("guest"))?;
        Ok(Page::LoggedIn)
    }

    /// Sets the address.
    pub(super) fn ship_to(&mut self, sid: Sid, address: Option<&str>) -> rusqlite::Result<Page> {
        let update = "UPDATE sessions SET address = ?2 WHERE sid = ?1";
        self.keep(update, sid, address.unwrap_or("poste restante"))?;
        Ok(Page::AddressKept)
    }

    /// Sets the payment reference.
    pub(super) fn pay_with(&mut self, sid: Sid, reference: Option<&str>) -> rusqlite::Result<Page> {
        let update = "UPDATE sessions SET payment = ?2 WHERE sid = ?1";
        self.keep(update, sid, reference.unwrap_or("on account"))?;
        Ok(Page::PaymentKept)
    }

    fn knows(&self, sid: Sid) -> rusqlite::Result<bool> {
        let mut statement =
            self.connection.prepare_cached("SELECT 1 FROM sessions WHERE sid = ?1")?;
        let found = statement.query_row([sid.to_string()], |_| Ok(())).optional()?;
        Ok(found.is_some())
    }

    fn welcome(&mut self) -> Result<Sid, StoreError> {
        let sid = Sid::draw(&self.entropy)?;
        self.write(|transaction| {
            let insert = "INSERT INTO sessions (sid, begun_ms) VALUES (?1, ?2)";
            transaction.prepare_cached(insert)?.execute(params![sid.to_string(), unix_ms()])
        })?;
        Ok(sid)
    }

    fn keep(&mut self, update: &str, sid: Sid, text: &str) -> rusqlite::Result<()> {
        let text: String = text.chars().take(MAX_TEXT).collect();
        self.write(|transaction| {
            transaction.prepare_cached(update)?.execute(params![sid.to_string(), text])
        })?;
        Ok(())
    }
}
