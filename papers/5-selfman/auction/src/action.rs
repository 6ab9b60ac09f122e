//! The actions on an item, each in three steps: log in, fill in a form, store.

use crate::Page;

#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(crate) enum Action {
    Bid,
    Buy,
    Comment,
}

/// A page that is the same for every visitor.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(crate) enum StaticPage {
    Home,
    Register,
    Browse,
    Sell,
    AboutMe,
    Logo,
}

impl Action {
    /// Returns the page with the form for the action's details.
    pub(crate) const fn form(self) -> Page {
        match self {
            Self::Bid => Page::PutBid,
            Self::Buy => Page::BuyNow,
            Self::Comment => Page::PutComment,
        }
    }

    /// Returns the page that performs the action.
    pub(crate) const fn store(self) -> Page {
        match self {
            Self::Bid => Page::StoreBid,
            Self::Buy => Page::StoreBuyNow,
            Self::Comment => Page::StoreComment,
        }
    }
}
