//! Paths and methods.

use http::Method;

use crate::ids::{ContractId, NoId, PublisherId, SlotId};

/// The longest token looked at.
const MAX_TOKEN: usize = 128;

/// What a method means at a path.
#[derive(Clone, Debug, PartialEq, Eq)]
pub(crate) enum Route {
    AddConcept,
    ListConcepts,
    AddPublisher,
    ShowPublisher(PublisherId),
    AddSlot,
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
    /// Everything at a path.
    pub(crate) fn at(path: &str) -> Vec<(Self, Method)> {
        let nothing = |_: NoId| Vec::new();
        let parts: Vec<_> = path.split('/').collect();
        match parts[..] {
            ["", "concepts"] => {
                vec![(Self::ListConcepts, Method::GET), (Self::AddConcept, Method::POST)]
            }
            ["", "publishers"] => vec![(Self::AddPublisher, Method::POST)],
            ["", "publishers", id] => {
                let id = id.parse();
                id.map(|id| (Self::ShowPublisher(id), Method::GET)).into_iter().collect()
            }
            ["", "slots"] => vec![(Self::AddSlot, Method::POST)],
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
