//! The admin API for contracts. A contract is signed if there is capacity. A signed contract can be
//! reported on and cancelled.

use std::sync::Arc;

use serde::Serialize;
use serde_json::json;

use super::{FULL, MAX_CONTRACTS, change, found, known_concepts, made};
use crate::answer::Answer;
use crate::app_state::AppState;
use crate::capacity::{Demand, check_demand, demands, supplies};
use crate::ids::{BannerId, ContractId};
use crate::request::{NewBanner, NewContract};
use crate::request_error::RequestError;
use crate::snapshot::{Banner, Contract, Register, Tally, due};
use crate::store::Change;
use crate::values::{Flight, Keyword, Landing, Name, Size, Timestamp};

pub(super) fn sign(state: &AppState, new: NewContract) -> Result<Answer, RequestError> {
    let _lock = state.lock_changes();
    let now = Timestamp::now();
    let mut register = state.snapshot().register.clone();
    let contract = build_contract(&register, new, now)?;
    let new: Vec<_> =
        contract.banners.iter().map(|banner| demand(banner, contract.flight, now)).collect();
    check_demand(&supplies(&register), &demands(&register, now), &new)
        .map_err(RequestError::Capacity)?;
    let report = Report::of(&contract, now);
    register.insert(contract.clone());
    change(state, Change::Sign(contract), register)?;
    Ok(made(&report))
}

/// Builds the contract that `new` describes. Returns an error if `new` names an unknown concept, or
/// if no contract id or banner id is left.
fn build_contract(
    register: &Register,
    new: NewContract,
    now: Timestamp,
) -> Result<Contract, RequestError> {
    if register.contracts.len() >= MAX_CONTRACTS {
        return Err(FULL);
    }
    let last = register.contracts.last_key_value().map(|(id, _)| *id);
    let id = ContractId::after(last).ok_or(FULL)?;
    let NewContract { advertiser, impressions, flight, banners } = new;
    let count = banners.len() as u64;
    let mut last = register.banners.last_key_value().map(|(id, _)| *id);
    let mut drawn = Vec::with_capacity(banners.len());
    for (place, banner) in (0..).zip(banners) {
        let NewBanner { landing, size, concepts, category } = banner;
        last = BannerId::after(last);
        // All banners get equal parts of the impressions. The remainder goes to the first banners,
        // one impression each.
        let share = impressions / count + u64::from(place < impressions % count);
        let tally = Tally::new(share, flight, 0, 0);
        if flight.holds(now) {
            tally.reserve(tally.next_reservation());
        }
        drawn.push(Arc::new(Banner {
            id: last.ok_or(FULL)?,
            contract: id,
            landing,
            size,
            category,
            concepts: known_concepts(register, &concepts)?,
            tally: Arc::new(tally),
        }));
    }
    Ok(Contract { id, advertiser, flight, cancelled_at: None, banners: drawn })
}

fn demand(banner: &Banner, flight: Flight, now: Timestamp) -> Demand {
    let concepts = banner.concepts.iter().map(|concept| concept.id).collect();
    Demand::new(banner.size, concepts, banner.tally.owed(), flight, now)
}

pub(super) fn show(state: &AppState, id: ContractId) -> Result<Answer, RequestError> {
    let snapshot = state.snapshot();
    let contract = snapshot.register.contracts.get(&id).ok_or(RequestError::Unknown("contract"))?;
    Ok(found(&Report::of(contract, Timestamp::now())))
}

pub(super) fn list(state: &AppState, after: Option<ContractId>) -> Answer {
    let now = Timestamp::now();
    let report = |_, contract: &Contract| json!(Report::of(contract, now));
    super::list("contracts", &state.snapshot().register.contracts, after, report)
}

pub(super) fn cancel(state: &AppState, id: ContractId) -> Result<Answer, RequestError> {
    let _lock = state.lock_changes();
    let now = Timestamp::now();
    let mut register = state.snapshot().register.clone();
    let contract = register.contracts.get(&id).ok_or(RequestError::Unknown("contract"))?;
    if contract.cancelled_at.is_some() {
        return Err(RequestError::Conflict("the contract is cancelled already"));
    }
    if !contract.is_open(now) {
        return Err(RequestError::Conflict("the contract has ended"));
    }
    let cancelled = Contract { cancelled_at: Some(now), ..Contract::clone(contract) };
    let banners = cancelled.banners.clone();
    register.insert(cancelled.clone());
    change(state, Change::Cancel(id, now), register)?;
    for banner in banners {
        // Running requests may still use the previous snapshot, so stop the deliveries in the
        // shared counts as well.
        banner.tally.cancel();
    }
    Ok(found(&Report::of(&cancelled, now)))
}

/// The report on one contract, for its advertiser.
#[derive(Debug, Serialize)]
struct Report {
    contract: ContractId,
    advertiser: Name,
    status: Status,
    from: Timestamp,
    to: Timestamp,
    cancelled_at: Option<Timestamp>,
    impressions: u64,
    delivered: u64,
    clicks: u64,
    /// The number of clicks per delivered impression; `None` if no impression was delivered.
    click_through_rate: Option<f64>,
    schedule: Schedule,
    banners: Vec<BannerReport>,
}

#[derive(Clone, Copy, Debug, PartialEq, Eq, Serialize)]
#[serde(rename_all = "lowercase")]
enum Status {
    Planned,
    Running,
    Ended,
    Cancelled,
}

/// The comparison of a contract's delivered impressions with its impressions that are due now.
#[derive(Debug, Serialize)]
struct Schedule {
    /// The number of impressions that should be delivered now, if they are spread evenly over the
    /// flight.
    due: u64,
    /// The number of delivered impressions minus the number of due ones. It is negative if the
    /// contract is behind.
    ahead: i64,
    is: ScheduleState,
}

#[derive(Clone, Copy, Debug, PartialEq, Eq, Serialize)]
#[serde(rename_all = "kebab-case")]
enum ScheduleState {
    Behind,
    OnTime,
    Ahead,
}

#[derive(Debug, Serialize)]
struct BannerReport {
    banner: BannerId,
    landing: Landing,
    size: Size,
    category: Option<Keyword>,
    concepts: Vec<Keyword>,
    impressions: u64,
    delivered: u64,
    clicks: u64,
}

impl Report {
    fn of(contract: &Contract, now: Timestamp) -> Self {
        let Contract { id, ref advertiser, flight, cancelled_at, .. } = *contract;
        let banners: Vec<_> = contract.banners.iter().map(|own| BannerReport::of(own)).collect();
        let sum = |figure: fn(&BannerReport) -> u64| banners.iter().map(figure).sum::<u64>();
        let impressions = sum(|banner| banner.impressions);
        let delivered = sum(|banner| banner.delivered);
        let clicks = sum(|banner| banner.clicks);
        let status = match (cancelled_at, now < flight.from, now < flight.to) {
            (Some(_), ..) => Status::Cancelled,
            (None, true, _) => Status::Planned,
            (None, false, true) => Status::Running,
            (None, false, false) => Status::Ended,
        };
        Self {
            contract: id,
            advertiser: advertiser.clone(),
            status,
            from: flight.from,
            to: flight.to,
            cancelled_at,
            impressions,
            delivered,
            clicks,
            click_through_rate: (delivered > 0).then(|| clicks as f64 / delivered as f64),
            schedule: Schedule::of(
                due(impressions, flight, cancelled_at.unwrap_or(now)),
                delivered,
            ),
            banners,
        }
    }
}

impl Schedule {
    fn of(due: u64, delivered: u64) -> Self {
        let is = match delivered.cmp(&due) {
            std::cmp::Ordering::Less => ScheduleState::Behind,
            std::cmp::Ordering::Equal => ScheduleState::OnTime,
            std::cmp::Ordering::Greater => ScheduleState::Ahead,
        };
        Self { due, ahead: delivered.cast_signed().saturating_sub(due.cast_signed()), is }
    }
}

impl BannerReport {
    fn of(banner: &Banner) -> Self {
        let Banner { id, landing, size, category, concepts, tally, .. } = banner;
        Self {
            banner: *id,
            landing: landing.clone(),
            size: *size,
            category: category.clone(),
            concepts: concepts.iter().map(|concept| concept.keyword.clone()).collect(),
            impressions: tally.contracted(),
            delivered: tally.delivered(),
            clicks: tally.clicks(),
        }
    }
}
