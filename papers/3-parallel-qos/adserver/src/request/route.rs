//! The routes of the server: their paths, their methods, and the form fields that they accept.

use bywash_site::{Form, Refusal};
use http::Method;

use crate::ids::{ContractId, InvalidId, PublisherId, SlotId};

/// The maximum length of a token in a path, in bytes. A longer token is not found.
const MAX_TOKEN: usize = 128;

/// The operation that a method at a path stands for.
#[derive(Clone, Debug, PartialEq, Eq)]
pub(crate) enum Route {
    AddConcept,
    ListConcepts,
    AddPublisher,
    ListPublishers,
    ShowPublisher(PublisherId),
    AddSlot,
    ListSlots,
    ResizeSlot(SlotId),
    RemoveSlot(SlotId),
    Sign,
    ListContracts,
    ShowContract(ContractId),
    Cancel(ContractId),
    Ad,
    Click(String),
}

impl Route {
    /// Returns all routes at a path, each with its method. The list is empty if the path is
    /// unknown.
    pub(crate) fn at(path: &str) -> Vec<(Self, Method)> {
        let nothing = |_: InvalidId| Vec::new();
        let parts: Vec<_> = path.split('/').collect();
        match parts[..] {
            ["", "concepts"] => {
                vec![(Self::ListConcepts, Method::GET), (Self::AddConcept, Method::POST)]
            }
            ["", "publishers"] => {
                vec![(Self::ListPublishers, Method::GET), (Self::AddPublisher, Method::POST)]
            }
            ["", "publishers", id] => {
                let id = id.parse();
                id.map(|id| (Self::ShowPublisher(id), Method::GET)).into_iter().collect()
            }
            ["", "slots"] => vec![(Self::ListSlots, Method::GET), (Self::AddSlot, Method::POST)],
            ["", "slots", id] => id.parse().map_or_else(nothing, |id| {
                vec![(Self::ResizeSlot(id), Method::POST), (Self::RemoveSlot(id), Method::DELETE)]
            }),
            ["", "contracts"] => {
                vec![(Self::ListContracts, Method::GET), (Self::Sign, Method::POST)]
            }
            ["", "contracts", id] => id.parse().map_or_else(nothing, |id| {
                vec![(Self::ShowContract(id), Method::GET), (Self::Cancel(id), Method::DELETE)]
            }),
            ["", "ad"] => vec![(Self::Ad, Method::GET)],
            ["", "click", token] if token.len() <= MAX_TOKEN => {
                vec![(Self::Click(token.to_owned()), Method::GET)]
            }
            _ => Vec::new(),
        }
    }

    /// Returns the form fields that a request for this route may have.
    pub(crate) fn fields(&self) -> Fields {
        let fields = |once, words| Fields { once, ..Fields::none(words) };
        match self {
            Self::AddConcept => fields(&["name"], "a concept takes the field name, once"),
            Self::AddPublisher => fields(&["name"], "a publisher takes the field name, once"),
            Self::AddSlot => fields(
                &["publisher", "size", "concepts", "impressions_per_day"],
                "a slot takes the fields publisher, size, concepts and impressions_per_day, each \
                 once",
            ),
            Self::ResizeSlot(_) => {
                fields(&["impressions_per_day"], "a slot takes the field impressions_per_day, once")
            }
            Self::Sign => Fields {
                once: &["advertiser", "impressions", "from", "to"],
                each: &["landing", "size", "concepts", "category"],
                ..Fields::none(
                    "a contract takes the fields advertiser, impressions, from and to, each once, \
                     and landing, size, concepts and category for each banner",
                )
            },
            Self::ListPublishers | Self::ListSlots | Self::ListContracts => {
                fields(&["after"], "a list takes the field after, once")
            }
            Self::Ad => Fields {
                once: &["slots", "slot", "concepts", "size", "type"],
                others: true,
                ..Fields::none(
                    "a page takes the fields slots, slot, concepts, size and type, each once",
                )
            },
            Self::Click(_) => Fields { others: true, ..Fields::none("") },
            Self::ListConcepts
            | Self::ShowPublisher(_)
            | Self::RemoveSlot(_)
            | Self::ShowContract(_)
            | Self::Cancel(_) => Fields::none("this request takes no fields"),
        }
    }
}

/// The form fields that a route accepts. A misspelt or repeated field is an error, because it would
/// otherwise be ignored silently.
pub(crate) struct Fields {
    /// The fields that may occur at most once.
    once: &'static [&'static str],
    /// The fields that may occur as often as the contract has banners.
    each: &'static [&'static str],
    /// Whether other fields are allowed and ignored. Pages carry such fields, for instance to
    /// bypass caches.
    others: bool,
    /// The error message that explains these rules to the client.
    words: &'static str,
}

impl Fields {
    const fn none(words: &'static str) -> Self {
        Self { once: &[], each: &[], others: false, words }
    }

    /// Checks the fields of the form. Returns an error if a field is unknown or repeated without
    /// permission.
    pub(crate) fn check(&self, form: &Form) -> Result<(), Refusal> {
        let is_known = |name: &str| self.once.contains(&name) || self.each.contains(&name);
        let are_known = self.others || form.names().all(is_known);
        let stands_twice = |name: &&str| form.all(name).nth(1).is_some();
        if are_known && !self.once.iter().any(stands_twice) {
            Ok(())
        } else {
            Err(Refusal::Invalid(self.words))
        }
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn paths_are_matched_exactly() {
        let only = |path: &str| Route::at(path).first().map(|(route, _)| route.clone());
        assert_eq!(only("/contracts/7"), ContractId::new(7).map(Route::ShowContract));
        assert_eq!(only("/click/a%2fb"), Some(Route::Click("a%2fb".to_owned())));
        let long = format!("/click/{}", "0".repeat(MAX_TOKEN + 1));
        for path in [
            "/",
            "",
            "*",
            "/ad/",
            "//ad",
            "/Ad",
            "/contracts/x",
            "/contracts/1/2",
            "/slots/0",
            &long,
        ] {
            assert_eq!(only(path), None, "{path}");
        }
    }
}
