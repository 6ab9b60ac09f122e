//! Serves one page: looks up its concepts and slots, selects the banners on its turn in the pool,
//! and assigns the banners to the slots.

use std::sync::atomic::Ordering::Relaxed;

use bywash_levels::Request;
use http::StatusCode;
use serde::Serialize;

use crate::admin;
use crate::answer::Answer;
use crate::app_state::AppState;
use crate::ids::{BannerId, SlotId};
use crate::request::PageRequest;
use crate::request_error::RequestError;
use crate::serve::{Page, SelectionRequest, Selector};
use crate::snapshot::{Banner, Concept, Slot, Snapshot};
use crate::values::Size;

/// The answer to a page: its banners, each with its slot on the page.
#[derive(Debug, Serialize)]
struct Placed {
    banners: Vec<PlacedBanner>,
}

#[derive(Debug, Serialize)]
struct PlacedBanner {
    banner: BannerId,
    size: Size,
    slot: Option<SlotId>,
    /// The address to request for a click on the banner. This server then counts the click and
    /// redirects to the landing address.
    click: String,
}

/// Answers a page's request for banners. The threads of `turn` search in parallel.
pub(crate) fn page(
    state: &AppState,
    wanted: &PageRequest,
    turn: &mut Request,
) -> Result<Answer, RequestError> {
    let snapshot = state.snapshot();
    let named = admin::known_concepts(&snapshot.register, &wanted.concepts)?;
    let groups = if wanted.slots.is_empty() {
        let places = (0..wanted.count).map(|place| (place, None)).collect();
        vec![Group { size: wanted.size, concepts: named, places }]
    } else {
        groups(&slots(&snapshot, &wanted.slots)?, &named)
    };
    let mut selector = Selector::new(state.random_stream());
    let mut page = Page::default();
    let mut placed = Vec::with_capacity(wanted.count);
    for Group { size, concepts, places } in groups {
        let before = page.banners.len();
        let wanted = SelectionRequest { concepts: &concepts, size, count: places.len() };
        selector.select(&snapshot, wanted, &mut page, Some(turn));
        let chosen = page.banners[before..].iter().zip(places);
        placed.extend(chosen.map(|(banner, (at, slot))| (at, place(state, banner, slot))));
    }
    placed.sort_unstable_by_key(|(at, _)| *at);
    let placed: Vec<_> = placed.into_iter().map(|(_, placed)| placed).collect();
    state.counters.count_selection(wanted.count, placed.len(), selector.rescans);
    Ok(Answer::json(StatusCode::OK, &Placed { banners: placed }))
}

fn place(state: &AppState, banner: &Banner, slot: Option<&Slot>) -> PlacedBanner {
    state.reserve_ahead(banner);
    if let Some(slot) = slot {
        slot.counts.placements.fetch_add(1, Relaxed);
    }
    let slot = slot.map(|slot| slot.id);
    let click = format!("/click/{}", state.place(banner, slot));
    PlacedBanner { banner: banner.id, size: banner.size, slot, click }
}

fn slots<'a>(snapshot: &'a Snapshot, ids: &[SlotId]) -> Result<Vec<&'a Slot>, RequestError> {
    let slots = ids.iter().map(|id| {
        let slot = snapshot.register.slots.get(id).filter(|slot| !slot.is_removed);
        slot.map(|slot| &**slot).ok_or(RequestError::Unknown("slot"))
    });
    slots.collect()
}

/// The ad slots of one page that accept the same banners, because they have the same size and
/// concepts.
struct Group<'a> {
    size: Option<Size>,
    concepts: Vec<Concept>,
    /// The index of each place, which orders the banners in the answer, and its ad slot. The slot
    /// is `None` in all places if the request named no slots but a number of banners.
    places: Vec<(usize, Option<&'a Slot>)>,
}

/// Groups the slots of a page that accept the same banners. If the page names concepts, every slot
/// accepts banners about those. Otherwise each slot accepts banners about its own concepts. The
/// groups with the fewest concepts come first, because the others have more choice.
fn groups<'a>(slots: &[&'a Slot], named: &[Concept]) -> Vec<Group<'a>> {
    let mut groups: Vec<Group<'a>> = Vec::new();
    for (at, slot) in slots.iter().enumerate() {
        let concepts = if named.is_empty() { &slot.concepts } else { named };
        let alike = |group: &&mut Group| {
            group.size == Some(slot.size) && group.concepts.as_slice() == concepts
        };
        match groups.iter_mut().find(alike) {
            Some(group) => group.places.push((at, Some(*slot))),
            None => groups.push(Group {
                size: Some(slot.size),
                concepts: concepts.to_vec(),
                places: vec![(at, Some(*slot))],
            }),
        }
    }
    groups.sort_by_key(|group| group.concepts.len());
    groups
}
