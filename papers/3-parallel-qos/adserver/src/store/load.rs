//! Reads the whole database when the server starts.

use std::collections::{BTreeMap, HashMap};
use std::sync::Arc;
use std::sync::atomic::AtomicU64;

use rusqlite::types::{FromSqlError, Type};
use rusqlite::{Connection, Row};

use crate::ids::{BannerId, ConceptId, ContractId, PublisherId, SlotId};
use crate::snapshot::{Banner, Concept, Contract, Publisher, Register, Slot, SlotCounts, Tally};
use crate::values::{Flight, Keyword, Landing, Name, Size, Timestamp};

/// Returns all stored objects from the database. Reserved impressions count as delivered.
pub(super) fn register(connection: &Connection) -> rusqlite::Result<Register> {
    let mut register = Register::default();
    let mut keywords = HashMap::new();
    each(connection, "SELECT id, word FROM concepts", |row| {
        let id = known(ConceptId::new(row.get(0)?))?;
        let keyword = known(Keyword::parse(&row.get::<_, String>(1)?))?;
        keywords.insert(id, keyword.clone());
        register.concepts.insert(keyword, id);
        Ok(())
    })?;
    each(connection, "SELECT id, name FROM publishers", |row| {
        let name = known(Name::parse(&row.get::<_, String>(1)?))?;
        let id = known(PublisherId::new(row.get(0)?))?;
        register.publishers.insert(id, Arc::new(Publisher { name }));
        Ok(())
    })?;
    slots(connection, &keywords, &mut register)?;
    contracts(connection, &keywords, &mut register)?;
    Ok(register)
}

type Keywords = HashMap<ConceptId, Keyword>;

fn slots(
    connection: &Connection,
    keywords: &Keywords,
    register: &mut Register,
) -> rusqlite::Result<()> {
    let mut concepts = concepts(connection, keywords, "SELECT slot, concept FROM slot_concepts")?;
    let select = "SELECT id, publisher, size, per_day, is_removed, placements, clicks FROM slots";
    each(connection, select, |row| {
        let id = known(SlotId::new(row.get(0)?))?;
        let counts = SlotCounts {
            placements: AtomicU64::new(row.get(5)?),
            clicks: AtomicU64::new(row.get(6)?),
            saved: AtomicU64::new(row.get(5)?),
        };
        let slot = Slot {
            id,
            publisher: known(PublisherId::new(row.get(1)?))?,
            size: known(Size::parse(&row.get::<_, String>(2)?))?,
            concepts: concepts.remove(&id.number()).unwrap_or_default(),
            per_day: row.get(3)?,
            is_removed: row.get(4)?,
            counts: Arc::new(counts),
        };
        register.slots.insert(id, Arc::new(slot));
        Ok(())
    })
}

fn contracts(
    connection: &Connection,
    keywords: &Keywords,
    register: &mut Register,
) -> rusqlite::Result<()> {
    let mut contracts = BTreeMap::new();
    let select = "SELECT id, advertiser, from_s, to_s, cancelled_at FROM contracts";
    each(connection, select, |row| {
        let id = known(ContractId::new(row.get(0)?))?;
        let contract = Contract {
            id,
            advertiser: known(Name::parse(&row.get::<_, String>(1)?))?,
            flight: Flight { from: Timestamp(row.get(2)?), to: Timestamp(row.get(3)?) },
            cancelled_at: row.get::<_, Option<i64>>(4)?.map(Timestamp),
            banners: Vec::new(),
        };
        contracts.insert(id, contract);
        Ok(())
    })?;
    let mut concepts =
        concepts(connection, keywords, "SELECT banner, concept FROM banner_concepts")?;
    let select = "SELECT id, contract, landing, size, category, contracted, reserved, clicks
                  FROM banners ORDER BY id";
    each(connection, select, |row| {
        let id = known(BannerId::new(row.get(0)?))?;
        let contract = known(ContractId::new(row.get(1)?))?;
        let contract = known(contracts.get_mut(&contract))?;
        let category = row.get::<_, Option<String>>(4)?;
        let tally = Tally::new(row.get(5)?, contract.flight, row.get(6)?, row.get(7)?);
        contract.banners.push(Arc::new(Banner {
            id,
            contract: contract.id,
            landing: known(Landing::parse(&row.get::<_, String>(2)?))?,
            size: known(Size::parse(&row.get::<_, String>(3)?))?,
            category: category.map(|category| known(Keyword::parse(&category))).transpose()?,
            concepts: concepts.remove(&id.number()).unwrap_or_default(),
            tally: Arc::new(tally),
        }));
        Ok(())
    })?;
    for contract in contracts.into_values() {
        register.insert(contract);
    }
    Ok(())
}

/// Returns the concepts of each slot or banner, by the id of that slot or banner. Each list is
/// sorted by the ids of the concepts.
fn concepts(
    connection: &Connection,
    keywords: &Keywords,
    select: &str,
) -> rusqlite::Result<HashMap<u32, Vec<Concept>>> {
    let mut concepts: HashMap<u32, Vec<Concept>> = HashMap::new();
    each(connection, select, |row| {
        let id = known(ConceptId::new(row.get(1)?))?;
        let keyword = known(keywords.get(&id))?.clone();
        concepts.entry(row.get(0)?).or_default().push(Concept { id, keyword });
        Ok(())
    })?;
    for own in concepts.values_mut() {
        own.sort_unstable();
    }
    Ok(concepts)
}

fn each(
    connection: &Connection,
    select: &str,
    mut read: impl FnMut(&Row<'_>) -> rusqlite::Result<()>,
) -> rusqlite::Result<()> {
    let mut statement = connection.prepare(select)?;
    let mut rows = statement.query(())?;
    while let Some(row) = rows.next()? {
        read(row)?;
    }
    Ok(())
}

/// Returns the value, or a database error if it is `None`. `None` means that another program has
/// written a value that this server cannot read.
fn known<T>(value: Option<T>) -> rusqlite::Result<T> {
    let strange = || FromSqlError::Other("the value was not written by an ad server".into());
    value.ok_or_else(|| rusqlite::Error::FromSqlConversionFailure(0, Type::Text, strange().into()))
}
