//! The eight stages of a visit, in the order in which a buyer visits them.

use http::Method;
use serde::Serialize;

/// One stage of a visit. Each stage is one route.
#[derive(Clone, Copy, Debug, PartialEq, Eq, PartialOrd, Ord, Hash, Serialize)]
#[serde(rename_all = "lowercase")]
pub enum Stage {
    /// `GET /`: the front page.
    Main,
    /// `GET /browse`: a list of products, of one category if the parameter `category` is given.
    Browse,
    /// `GET /search?q=`: products whose name contains the words.
    Search,
    /// `GET /details?id=`: one product, which goes into the cart.
    Details,
    /// `POST /login`: sets the session's customer.
    Login,
    /// `POST /shipping`: sets the session's address.
    Shipping,
    /// `POST /payment`: sets the session's payment reference.
    Payment,
    /// `POST /confirm`: turns the cart into an order.
    Confirm,
}

impl Stage {
    /// Every stage, in the order of a visit; `ALL[stage.index()] == stage`.
    pub const ALL: [Self; 8] = [
        Self::Main,
        Self::Browse,
        Self::Search,
        Self::Details,
        Self::Login,
        Self::Shipping,
        Self::Payment,
        Self::Confirm,
    ];

    /// Returns the index of the stage in [`Stage::ALL`], which is also its index in
    /// `Options::demand`.
    pub const fn index(self) -> usize {
        self as usize
    }

    /// Returns the stage's name in the statistics.
    pub const fn name(self) -> &'static str {
        match self {
            Self::Main => "main",
            Self::Browse => "browse",
            Self::Search => "search",
            Self::Details => "details",
            Self::Login => "login",
            Self::Shipping => "shipping",
            Self::Payment => "payment",
            Self::Confirm => "confirm",
        }
    }

    /// Returns the path of the stage's route.
    pub const fn path(self) -> &'static str {
        match self {
            Self::Main => "/",
            Self::Browse => "/browse",
            Self::Search => "/search",
            Self::Details => "/details",
            Self::Login => "/login",
            Self::Shipping => "/shipping",
            Self::Payment => "/payment",
            Self::Confirm => "/confirm",
        }
    }

    /// Returns the method of the stage's route: GET for stages that only read, POST for stages that
    /// write.
    pub const fn method(self) -> Method {
        match self {
            Self::Main | Self::Browse | Self::Search | Self::Details => Method::GET,
            Self::Login | Self::Shipping | Self::Payment | Self::Confirm => Method::POST,
        }
    }

    /// Returns the stage whose path is `path`; `None` if there is none.
    pub fn at(path: &str) -> Option<Self> {
        Self::ALL.into_iter().find(|stage| stage.path() == path)
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn every_stage_is_found_at_its_own_place_and_path() {
        for stage in Stage::ALL {
            assert_eq!(Stage::ALL[stage.index()], stage);
            assert_eq!(Stage::at(stage.path()), Some(stage));
        }
    }

    #[test]
    fn the_name_is_the_name_in_json() {
        for stage in Stage::ALL {
            assert_eq!(serde_json::to_value(stage).unwrap(), stage.name());
        }
    }
}
