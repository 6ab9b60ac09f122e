//! One page: what it wants, the banners chosen on its turn in the pool, and their places.

use std::sync::atomic::Ordering::Relaxed;

use bywash_levels::Request;
use http::StatusCode;
use serde::Serialize;

use crate::ask::{MAX_CONCEPTS, PageWanted};
use crate::board::{Banner, Board, Concept, Slot};
use crate::fault::Fault;
use crate::house::House;
use crate::ids::{BannerId, SlotId};
use crate::office;
use crate::serve::{Page, Selector, Wanted};
use crate::terms::Size;
use crate::web::Answer;

/// What a page is told: the banners, each with its place.
#[derive(Debug, Serialize)]
struct Placed {
    banners: Vec<PlacedBanner>,
}

#[derive(Debug, Serialize)]
struct PlacedBanner {
    banner: BannerId,
    size: Size,
    slot: Option<SlotId>,
    /// Where a click goes: this server counts it, and knows the landing address.
    click: String,
}

/// The answer to a request for banners.
pub(crate) fn page(
    house: &House,
    wanted: &PageWanted,
    turn: &mut Request,
) -> Result<Answer, Fault> {
    let board = house.board();
    let slots = slots(&board, &wanted.slots)?;
    let concepts = concepts(&board, wanted, &slots)?;
    let groups = if slots.is_empty() {
        vec![(wanted.size, vec![None; wanted.count])]
    } else {
        by_size(&slots)
    };
    let mut selector = Selector::new(house.chance());
    let mut page = Page::default();
    let mut placed = Vec::with_capacity(wanted.count);
    for (size, places) in groups {
        let before = page.banners.len();
        let wanted = Wanted { concepts: &concepts, size, count: places.len() };
        selector.select(&board, wanted, &mut page, Some(turn));
        let chosen = page.banners[before..].iter().zip(places);
        placed.extend(chosen.map(|(banner, slot)| place(house, banner, slot)));
    }
    house.counters.selected(wanted.count, placed.len(), selector.rescans);
    Ok(Answer::json(StatusCode::OK, &Placed { banners: placed }))
}

fn place(house: &House, banner: &Banner, slot: Option<&Slot>) -> PlacedBanner {
    house.reserve_ahead(banner);
    if let Some(slot) = slot {
        slot.counts.placements.fetch_add(1, Relaxed);
    }
    let slot = slot.map(|slot| slot.id);
    let click = format!("/click/{}", house.place(banner, slot));
    PlacedBanner { banner: banner.id, size: banner.size, slot, click }
}

fn slots<'a>(board: &'a Board, ids: &[SlotId]) -> Result<Vec<&'a Slot>, Fault> {
    let slots = ids.iter().map(|id| {
        let slot = board.register.slots.get(id).filter(|slot| !slot.is_removed);
        slot.map(|slot| &**slot).ok_or(Fault::Unknown("slot"))
    });
    slots.collect()
}

/// Those named, or those of the slots.
fn concepts(board: &Board, wanted: &PageWanted, slots: &[&Slot]) -> Result<Vec<Concept>, Fault> {
    if !wanted.concepts.is_empty() {
        return office::known_concepts(&board.register, &wanted.concepts);
    }
    let mut concepts: Vec<_> = slots.iter().flat_map(|slot| &slot.concepts).cloned().collect();
    concepts.sort_unstable();
    concepts.dedup();
    if concepts.len() > MAX_CONCEPTS {
        return Err(Fault::Nonsense("the slots have more than 32 concepts together: name some"));
    }
    Ok(concepts)
}

type Group<'a> = (Option<Size>, Vec<Option<&'a Slot>>);

fn by_size<'a>(slots: &[&'a Slot]) -> Vec<Group<'a>> {
    let mut groups: Vec<Group<'a>> = Vec::new();
    for slot in slots {
        match groups.iter_mut().find(|(size, _)| *size == Some(slot.size)) {
            Some((_, places)) => places.push(Some(slot)),
            None => groups.push((Some(slot.size), vec![Some(slot)])),
        }
    }
    groups
}
