//! Writes single changes to the database as SQL.

use rusqlite::{Connection, Transaction, TransactionBehavior, params};

use crate::ids::{BannerId, ContractId, PublisherId, SlotId};
use crate::snapshot::{Concept, Contract, Slot};
use crate::token::Placement;
use crate::values::{Keyword, Name, Timestamp};

/// A change of the stored objects, which is committed as a whole.
#[derive(Debug)]
pub(crate) enum Change {
    Concept(Concept),
    Publisher(PublisherId, Name),
    Slot(Slot),
    /// Sets the number of impressions per day of a slot.
    Resize(SlotId, u64),
    RemoveSlot(SlotId),
    Sign(Contract),
    Cancel(ContractId, Timestamp),
    All(Vec<Change>),
}

pub(crate) fn apply(connection: &mut Connection, change: &Change) -> rusqlite::Result<()> {
    let transaction = begin(connection)?;
    write(&transaction, change)?;
    transaction.commit()
}

pub(crate) fn begin(connection: &mut Connection) -> rusqlite::Result<Transaction<'_>> {
    connection.transaction_with_behavior(TransactionBehavior::Immediate)
}

fn write(transaction: &Transaction<'_>, change: &Change) -> rusqlite::Result<()> {
    let run = |sql: &str, values: &[&dyn rusqlite::ToSql]| {
        transaction.prepare_cached(sql)?.execute(values).map(drop)
    };
    match change {
        Change::Concept(Concept { id, keyword }) => {
            run("INSERT INTO concepts VALUES (?1, ?2)", params![id.number(), keyword.as_str()])
        }
        Change::Publisher(id, name) => {
            run("INSERT INTO publishers VALUES (?1, ?2)", params![id.number(), name.as_str()])
        }
        Change::Slot(slot) => {
            let (id, size) = (slot.id.number(), slot.size.to_string());
            let insert = "INSERT INTO slots (id, publisher, size, per_day) VALUES (?1, ?2, ?3, ?4)";
            run(insert, params![id, slot.publisher.number(), size, slot.per_day])?;
            let insert = "INSERT INTO slot_concepts VALUES (?1, ?2)";
            slot.concepts.iter().try_for_each(|own| run(insert, params![id, own.id.number()]))
        }
        Change::Resize(id, per_day) => {
            run("UPDATE slots SET per_day = ?2 WHERE id = ?1", params![id.number(), per_day])
        }
        Change::RemoveSlot(id) => {
            run("UPDATE slots SET is_removed = 1 WHERE id = ?1", params![id.number()])
        }
        Change::Sign(contract) => sign(transaction, contract),
        Change::Cancel(id, at) => {
            run("UPDATE contracts SET cancelled_at = ?2 WHERE id = ?1", params![id.number(), at.0])
        }
        Change::All(changes) => changes.iter().try_for_each(|change| write(transaction, change)),
    }
}

/// Inserts a contract with its banners. The first block of each banner is stored as reserved if the
/// contract's flight is running.
fn sign(transaction: &Transaction<'_>, contract: &Contract) -> rusqlite::Result<()> {
    let insert = "INSERT INTO contracts (id, advertiser, from_s, to_s) VALUES (?1, ?2, ?3, ?4)";
    let (advertiser, flight) = (contract.advertiser.as_str(), contract.flight);
    let id = contract.id.number();
    transaction.prepare_cached(insert)?.execute(params![
        id,
        advertiser,
        flight.from.0,
        flight.to.0
    ])?;
    for banner in &contract.banners {
        let insert =
            "INSERT INTO banners (id, contract, landing, size, category, contracted, reserved)
                      VALUES (?1, ?2, ?3, ?4, ?5, ?6, ?7)";
        transaction.prepare_cached(insert)?.execute(params![
            banner.id.number(),
            id,
            banner.landing.as_str(),
            banner.size.to_string(),
            banner.category.as_ref().map(Keyword::as_str),
            banner.tally.contracted(),
            banner.tally.reserved(),
        ])?;
        for concept in &banner.concepts {
            let insert = "INSERT INTO banner_concepts VALUES (?1, ?2)";
            let values = params![banner.id.number(), concept.id.number()];
            transaction.prepare_cached(insert)?.execute(values)?;
        }
    }
    Ok(())
}

/// Records the click on a placement. Returns whether it was the first click on that placement.
pub(crate) fn click(
    transaction: &Transaction<'_>,
    placement: &Placement,
    at: Timestamp,
) -> rusqlite::Result<bool> {
    let Placement { boot, serial, banner, slot } = placement;
    let (banner, slot) = (banner.number(), slot.map(SlotId::number));
    let insert = "INSERT OR IGNORE INTO clicks VALUES (?1, ?2, ?3, ?4, ?5)";
    let values = params![boot, serial.cast_signed(), banner, slot, at.0];
    let is_first = transaction.prepare_cached(insert)?.execute(values)? == 1;
    if is_first {
        let update = "UPDATE banners SET clicks = clicks + 1 WHERE id = ?1";
        transaction.prepare_cached(update)?.execute([banner])?;
        let update = "UPDATE slots SET clicks = clicks + 1 WHERE id = ?1";
        transaction.prepare_cached(update)?.execute([slot])?;
    }
    Ok(is_first)
}

pub(crate) fn reserve(
    transaction: &Transaction<'_>,
    banner: BannerId,
    reserved: u64,
) -> rusqlite::Result<()> {
    let update = "UPDATE banners SET reserved = ?2 WHERE id = ?1";
    let values = params![banner.number(), reserved];
    transaction.prepare_cached(update)?.execute(values).map(drop)
}

pub(crate) fn placements(
    transaction: &Transaction<'_>,
    slot: SlotId,
    placements: u64,
) -> rusqlite::Result<()> {
    let update = "UPDATE slots SET placements = ?2 WHERE id = ?1";
    let values = params![slot.number(), placements];
    transaction.prepare_cached(update)?.execute(values).map(drop)
}
