//! Parses a request from its head and body, before the request may enter a queue.
//!
//! All input from clients is bounded and checked here, so that later code has only typed values.
//! Whether the objects that a request names exist is checked only when the request is served.

mod contract;
mod route;

use std::collections::BTreeSet;
use std::str::FromStr;

use bywash_site::{Form, Refusal};

use crate::Level;
use crate::counters::RequestKind;
use crate::ids::{ContractId, PublisherId, SlotId};
use crate::values::{Keyword, Name, Size, Timestamp};

pub(crate) use contract::{NewBanner, NewContract};
pub(crate) use route::Route;

/// The maximum number of banners of one page.
const MAX_COUNT: usize = 16;
/// The maximum number of concepts that one page may name.
const MAX_CONCEPTS: usize = 32;
/// The maximum number of concepts of one banner or slot.
const MAX_OWN_CONCEPTS: usize = 16;
/// The maximum number of impressions of one slot per day, and of one contract in total.
const MAX_IMPRESSIONS: u64 = 1_000_000_000;

/// A parsed request, which may enter a queue.
#[derive(Debug)]
pub(crate) enum ParsedRequest {
    AddConcept(Keyword),
    ListConcepts,
    AddPublisher(Name),
    /// Lists the publishers whose id is larger than this one; `None` lists all from the first on.
    /// The variants for the other lists have the same meaning.
    ListPublishers(Option<PublisherId>),
    ShowPublisher(PublisherId),
    AddSlot(NewSlot),
    ListSlots(Option<SlotId>),
    ResizeSlot(SlotId, u64),
    RemoveSlot(SlotId),
    Sign(NewContract),
    ListContracts(Option<ContractId>),
    ShowContract(ContractId),
    Cancel(ContractId),
    Ad(Level, PageRequest),
    Click(String),
}

/// A page's request for banners.
#[derive(Debug)]
pub(crate) struct PageRequest {
    /// The number of banners that the page wants.
    pub(crate) count: usize,
    /// The concepts that the page names. If it names none, the concepts of its slots apply.
    pub(crate) concepts: BTreeSet<Keyword>,
    /// The size of the wanted banners; `None` accepts any size.
    pub(crate) size: Option<Size>,
    /// The slots of the page: either none, or one for each wanted banner.
    pub(crate) slots: Vec<SlotId>,
}

/// A slot that a publisher offers.
#[derive(Debug)]
pub(crate) struct NewSlot {
    pub(crate) publisher: PublisherId,
    pub(crate) size: Size,
    pub(crate) concepts: BTreeSet<Keyword>,
    pub(crate) per_day: u64,
}

impl ParsedRequest {
    /// Parses a request for `route` that arrived at `now`. `level` is the level that the gateway
    /// has signed. If `has_type` is true, the form field `type` decides the level instead; without
    /// this field, the level is low.
    pub(crate) fn read(
        route: Route,
        form: &Form,
        level: Level,
        has_type: bool,
        now: Timestamp,
    ) -> Result<Self, Refusal> {
        route.fields().check(form)?;
        Ok(match route {
            Route::AddConcept => {
                Self::AddConcept(form.get("name").and_then(Keyword::parse).ok_or(KEYWORD)?)
            }
            Route::ListConcepts => Self::ListConcepts,
            Route::AddPublisher => {
                Self::AddPublisher(form.get("name").and_then(Name::parse).ok_or(NAME)?)
            }
            Route::ListPublishers => Self::ListPublishers(after(form)?),
            Route::ShowPublisher(id) => Self::ShowPublisher(id),
            Route::AddSlot => Self::AddSlot(NewSlot {
                publisher: form.get("publisher").and_then(|id| id.parse().ok()).ok_or(PUBLISHER)?,
                size: form.get("size").and_then(Size::parse).ok_or(SIZE)?,
                concepts: own_concepts(form.get("concepts").unwrap_or_default())?,
                per_day: impressions(form.get("impressions_per_day")).ok_or(PER_DAY)?,
            }),
            Route::ListSlots => Self::ListSlots(after(form)?),
            Route::ResizeSlot(id) => {
                let per_day = impressions(form.get("impressions_per_day")).ok_or(PER_DAY)?;
                Self::ResizeSlot(id, per_day)
            }
            Route::RemoveSlot(id) => Self::RemoveSlot(id),
            Route::Sign => Self::Sign(NewContract::read(form, now)?),
            Route::ListContracts => Self::ListContracts(after(form)?),
            Route::ShowContract(id) => Self::ShowContract(id),
            Route::Cancel(id) => Self::Cancel(id),
            Route::Ad => {
                let level = if has_type { level_of_type(form)? } else { level };
                Self::Ad(level, PageRequest::read(form)?)
            }
            Route::Click(token) => Self::Click(token),
        })
    }

    /// Returns the kind under which this request is counted.
    pub(crate) fn kind(&self) -> RequestKind {
        match self {
            Self::Ad(level, _) => RequestKind::Ad(*level),
            Self::Click(_) => RequestKind::Click,
            Self::AddConcept(_)
            | Self::ListConcepts
            | Self::AddPublisher(_)
            | Self::ListPublishers(_)
            | Self::ShowPublisher(_)
            | Self::AddSlot(_)
            | Self::ListSlots(_)
            | Self::ResizeSlot(..)
            | Self::RemoveSlot(_)
            | Self::Sign(_)
            | Self::ListContracts(_)
            | Self::ShowContract(_)
            | Self::Cancel(_) => RequestKind::Admin,
        }
    }
}

impl PageRequest {
    fn read(form: &Form) -> Result<Self, Refusal> {
        let slots = match form.get("slot") {
            None => Vec::new(),
            Some(text) => {
                let ids = text.split(',').take(MAX_COUNT + 1).map(str::parse);
                ids.collect::<Result<Vec<_>, _>>().map_err(|_| SLOT)?
            }
        };
        let count = match form.get("slots") {
            None if slots.is_empty() => return Err(COUNT),
            None => slots.len(),
            Some(text) => {
                number(text).and_then(|count| usize::try_from(count).ok()).ok_or(COUNT)?
            }
        };
        if !(1..=MAX_COUNT).contains(&count) {
            return Err(COUNT);
        }
        let different = slots.iter().collect::<BTreeSet<_>>().len();
        if !slots.is_empty() && (slots.len() != count || different != count) {
            return Err(SLOT);
        }
        let concepts = match form.get("concepts") {
            None if !slots.is_empty() => BTreeSet::new(),
            text => keywords(text.unwrap_or_default(), MAX_CONCEPTS).ok_or(CONCEPTS)?,
        };
        let size = form.get("size").map(|text| Size::parse(text).ok_or(SIZE)).transpose()?;
        if size.is_some() && !slots.is_empty() {
            return Err(SIZE_OF_SLOTS);
        }
        Ok(Self { count, concepts, size, slots })
    }
}

/// Parses the optional form field `after`, the id after which a list continues. Returns an error if
/// the field is not a valid id.
fn after<I: FromStr>(form: &Form) -> Result<Option<I>, Refusal> {
    form.get("after").map(|text| text.parse().map_err(|_| AFTER)).transpose()
}

fn level_of_type(form: &Form) -> Result<Level, Refusal> {
    match form.get("type") {
        None | Some("0") => Ok(Level::Low),
        Some("1") => Ok(Level::High),
        Some(_) => Err(TYPE),
    }
}

/// Parses a number that consists of digits only. Returns `None` if the text has other characters or
/// is too large.
fn number(text: &str) -> Option<u64> {
    let is_plain = text.bytes().all(|byte| byte.is_ascii_digit());
    is_plain.then(|| text.parse().ok()).flatten()
}

fn impressions(text: Option<&str>) -> Option<u64> {
    text.and_then(number).filter(|number| (1..=MAX_IMPRESSIONS).contains(number))
}

fn own_concepts(text: &str) -> Result<BTreeSet<Keyword>, Refusal> {
    keywords(text, MAX_OWN_CONCEPTS).ok_or(OWN_CONCEPTS)
}

/// Parses 1 to `most` keywords, separated by commas. Returns `None` if there are more keywords, or
/// if one is invalid.
fn keywords(text: &str, most: usize) -> Option<BTreeSet<Keyword>> {
    let keywords =
        text.split(',').take(most + 1).map(Keyword::parse).collect::<Option<Vec<_>>>()?;
    (keywords.len() <= most).then(|| keywords.into_iter().collect())
}

const KEYWORD: Refusal = Refusal::Invalid("name must be 1 to 64 characters of a-z 0-9 - _");
const NAME: Refusal =
    Refusal::Invalid("name must be 1 to 100 characters without control characters");
const PUBLISHER: Refusal = Refusal::Invalid("publisher must be the number of a publisher");
const SIZE: Refusal =
    Refusal::Invalid("size must be WIDTHxHEIGHT in pixels, each from 1 to 4096, as in 468x60");
const SIZE_OF_SLOTS: Refusal =
    Refusal::Invalid("slots have a size of their own: send either slots or size");
const PER_DAY: Refusal =
    Refusal::Invalid("impressions_per_day must be a whole number from 1 to 1000000000");
const OWN_CONCEPTS: Refusal = Refusal::Invalid(
    "concepts must be 1 to 16 names with commas between, each of 1 to 64 characters of a-z 0-9 - _",
);
const CONCEPTS: Refusal = Refusal::Invalid(
    "concepts must be 1 to 32 names with commas between, each of 1 to 64 characters of a-z 0-9 - _",
);
const COUNT: Refusal = Refusal::Invalid("slots must be a whole number from 1 to 16");
const SLOT: Refusal = Refusal::Invalid(
    "slot must be the numbers of different slots, separated by commas, as many as slots says",
);
const AFTER: Refusal = Refusal::Invalid("after must be the last number of the previous list");
const TYPE: Refusal = Refusal::Invalid("type must be 0 or 1");

#[cfg(test)]
mod tests {
    use super::*;

    fn page(query: &str, has_level: bool) -> Result<(Level, PageRequest), Refusal> {
        match ParsedRequest::read(
            Route::Ad,
            &Form::read(query, b""),
            Level::Low,
            has_level,
            Timestamp(0),
        )? {
            ParsedRequest::Ad(level, wanted) => Ok((level, wanted)),
            other => panic!("{other:?}"),
        }
    }

    #[test]
    fn a_page_says_how_many_and_about_what() {
        let (_, wanted) = page("slots=3&concepts=car,road,car&size=468x60", false).unwrap();
        assert_eq!((wanted.count, wanted.concepts.len()), (3, 2));
        let (_, wanted) = page("slot=4,5", false).unwrap();
        assert_eq!((wanted.count, wanted.slots.len(), wanted.concepts.len()), (2, 2, 0));
        let many = format!("slots=1&concepts={}", ["c"; 33].join(","));
        for (wrong, words) in [
            ("concepts=car", COUNT),
            ("slots=0&concepts=car", COUNT),
            ("slots=17&concepts=car", COUNT),
            ("slots=-1&concepts=car", COUNT),
            ("slots=1", CONCEPTS),
            ("slots=1&concepts=", CONCEPTS),
            ("slots=1&concepts=a,,b", CONCEPTS),
            ("slots=1&concepts=<script>", CONCEPTS),
            (&many, CONCEPTS),
            ("slots=1&concepts=a&size=big", SIZE),
            ("slots=2&slot=1", SLOT),
            ("slot=1,x", SLOT),
            ("slot=1,1", SLOT),
            ("slot=1&size=468x60", SIZE_OF_SLOTS),
        ] {
            assert_eq!(page(wrong, false).unwrap_err(), words, "{wrong:?}");
        }
    }

    #[test]
    fn a_level_is_believed_only_where_the_laboratory_wants_it() {
        let level = |query, has_level| page(query, has_level).map(|(level, _)| level);
        assert_eq!(level("slots=1&concepts=a&type=1", true), Ok(Level::High));
        assert_eq!(level("slots=1&concepts=a", true), Ok(Level::Low));
        assert_eq!(level("slots=1&concepts=a&type=2", true), Err(TYPE));
        assert_eq!(level("slots=1&concepts=a&type=1", false), Ok(Level::Low));
    }
}
