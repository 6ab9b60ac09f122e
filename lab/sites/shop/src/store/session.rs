//! The sessions of visitors: customer, shipping address and payment reference.
//!
//! Each of these values has a default, because a load generator posts empty forms.

use bywash_site::Sid;
use rusqlite::{OptionalExtension, params};

use super::{Page, Store, StoreError, unix_ms};

/// The maximum length of a customer, an address or a reference, in characters. The rest is cut off.
const MAX_TEXT: usize = 200;

/// The session of a request, and whether it is new.
pub(super) struct SessionLookup {
    pub(super) sid: Sid,
    pub(super) is_new: bool,
}

impl Store {
    /// Returns the session with the identifier `claimed` if it exists, or else a new one. A new
    /// session never gets the claimed identifier: an attacker who made the visitor use this
    /// identifier would know the session.
    pub(super) fn find_or_create_session(
        &mut self,
        claimed: Option<Sid>,
    ) -> Result<SessionLookup, StoreError> {
        match claimed {
            Some(sid) if self.session_exists(sid)? => Ok(SessionLookup { sid, is_new: false }),
            _ => Ok(SessionLookup { sid: self.create_session()?, is_new: true }),
        }
    }

    /// Sets the session's customer. The shop checks no password.
    pub(super) fn log_in(&mut self, sid: Sid, name: Option<&str>) -> rusqlite::Result<Page> {
        let update = "UPDATE sessions SET customer = ?2 WHERE sid = ?1";
        self.set_field(update, sid, name.unwrap_or("guest"))?;
        Ok(Page::LoggedIn)
    }

    /// Sets the session's shipping address.
    pub(super) fn ship_to(&mut self, sid: Sid, address: Option<&str>) -> rusqlite::Result<Page> {
        let update = "UPDATE sessions SET address = ?2 WHERE sid = ?1";
        self.set_field(update, sid, address.unwrap_or("poste restante"))?;
        Ok(Page::AddressKept)
    }

    /// Sets the session's payment reference.
    pub(super) fn pay_with(&mut self, sid: Sid, reference: Option<&str>) -> rusqlite::Result<Page> {
        let update = "UPDATE sessions SET payment = ?2 WHERE sid = ?1";
        self.set_field(update, sid, reference.unwrap_or("on account"))?;
        Ok(Page::PaymentKept)
    }

    fn session_exists(&self, sid: Sid) -> rusqlite::Result<bool> {
        let mut statement =
            self.connection.prepare_cached("SELECT 1 FROM sessions WHERE sid = ?1")?;
        let found = statement.query_row([sid.to_string()], |_| Ok(())).optional()?;
        Ok(found.is_some())
    }

    fn create_session(&mut self) -> Result<Sid, StoreError> {
        let sid = Sid::draw(&self.entropy)?;
        self.write(|transaction| {
            let insert = "INSERT INTO sessions (sid, begun_ms) VALUES (?1, ?2)";
            transaction.prepare_cached(insert)?.execute(params![sid.to_string(), unix_ms()])
        })?;
        Ok(sid)
    }

    fn set_field(&mut self, update: &str, sid: Sid, text: &str) -> rusqlite::Result<()> {
        let text: String = text.chars().take(MAX_TEXT).collect();
        self.write(|transaction| {
            transaction.prepare_cached(update)?.execute(params![sid.to_string(), text])
        })?;
        Ok(())
    }
}
