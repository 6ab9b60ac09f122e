//! The actions on an item. Each has three steps: log in, fill in a form, and store the result.

use crate::Page;

#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(crate) enum Action {
    Bid,
    Buy,
    Comment,
}

/// A page that is the same for every visitor and does not need the database.
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
    /// Returns the page that shows the form for the details of the action.
    pub(crate) const fn form(self) -> Page {
        match self {
            Self::Bid => Page::PutBid,
            Self::Buy => Page::BuyNow,
            Self::Comment => Page::PutComment,
        }
    }

    /// Returns the page that performs and stores the action.
    pub(crate) const fn store(self) -> Page {
        match self {
            Self::Bid => Page::StoreBid,
            Self::Buy => Page::StoreBuyNow,
            Self::Comment => Page::StoreComment,
        }
    }
}
