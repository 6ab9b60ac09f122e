//! One worker thread: takes a request, serves it, answers. The one place where requests are executed.

use std::sync::Arc;
use std::sync::atomic::Ordering::Relaxed;

use http::StatusCode;
use serde::Serialize;

use crate::ask::{Ask, MAX_CONCEPTS, PageWanted};
use crate::board::{Banner, Board, Concept, Slot};
use crate::fault::Fault;
use crate::house::{House, Job, Receipt};
use crate::ids::{BannerId, SlotId};
use crate::office;
use crate::serve::{Page, Selector, Wanted};
use crate::terms::Size;
use crate::web::Answer;

/// A worker and its own random numbers.
#[derive(Debug)]
pub(crate) struct Worker {
    house: Arc<House>,
    selector: Selector,
}

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

impl Worker {
    pub(crate) fn new(house: Arc<House>, selector: Selector) -> Self {
        Self { house, selector }
    }

    /// Works until the queue is closed.
    pub(crate) fn run(mut self) {
        while let Some(job) = self.house.queue.pop() {
            self.take(job);
        }
    }

    fn take(&mut self, Job { ask, receipt }: Job) {
        let house = Arc::clone(&self.house);
        let _running = house.counters.run();
        if receipt.reply.left().is_some() {
            // Nobody would see the banners.
            return house.skip(&receipt);
        }
        match ask {
            Ask::Ad(_, wanted) => {
                let answer = self.page(&wanted).unwrap_or_else(Answer::No);
                house.answer(receipt, answer);
            }
            Ask::Click(token) => click(&house, &token, receipt),
            other => {
                let answer = office::serve(&house, other).unwrap_or_else(Answer::No);
                house.answer(receipt, answer);
            }
        }
    }

    fn page(&mut self, wanted: &PageWanted) -> Result<Answer, Fault> {
        let board = self.house.board();
        let slots = slots(&board, &wanted.slots)?;
        let concepts = concepts(&board, wanted, &slots)?;
        let groups = if slots.is_empty() {
            vec![(wanted.size, vec![None; wanted.count])]
        } else {
            by_size(&slots)
        };
        let mut page = Page::default();
        let mut placed = Vec::with_capacity(wanted.count);
        for (size, places) in groups {
            let before = page.banners.len();
            let wanted = Wanted { concepts: &concepts, size, count: places.len() };
            self.selector.select(&board, wanted, &mut page);
            let chosen = page.banners[before..].iter().zip(places);
            placed.extend(chosen.map(|(banner, slot)| self.place(banner, slot)));
        }
        let rescans = std::mem::take(&mut self.selector.rescans);
        self.house.counters.selected(wanted.count, placed.len(), rescans);
        Ok(Answer::json(StatusCode::OK, &Placed { banners: placed }))
    }

    fn place(&self, banner: &Banner, slot: Option<&Slot>) -> PlacedBanner {
        self.house.reserve_ahead(banner);
        if let Some(slot) = slot {
            slot.counts.placements.fetch_add(1, Relaxed);
        }
        let slot = slot.map(|slot| slot.id);
        let click = format!("/click/{}", self.house.place(banner, slot));
        PlacedBanner { banner: banner.id, size: banner.size, slot, click }
    }
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

fn click(house: &House, token: &str, receipt: Receipt) {
    let placement = house.key.read(token);
    let known = placement
        .filter(|placement| house.board().register.banners.contains_key(&placement.banner));
    match known {
        Some(placement) => house.click(placement, receipt),
        None => house.answer(receipt, Answer::No(Fault::Unknown("placement"))),
    }
}
